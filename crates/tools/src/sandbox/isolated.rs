//! The places of an agent that works in a worktree of its own.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use centurion_protocol::{Env, bounded};
use centurion_sandbox::{Network, Sandbox, UnixSockets};
use thiserror::Error;

use crate::disk;

/// The files in a git directory that decide which programs git runs and where it finds objects. The other files change
/// with every commit.
const GIT_PARTS: [&str; 6] = [
    "commondir",
    "config",
    "config.worktree",
    "hooks/",
    "info/attributes",
    "objects/info/alternates",
];

/// The largest `.git` file: it holds one path.
const LARGEST_POINTER: u64 = 64 * 1024;

/// The files of git's configuration for all users.
const SYSTEM_CONFIGURATION: [&str; 2] = ["/etc/gitconfig", "/usr/local/etc/gitconfig"];

/// The paths that the commands and file tools of an isolated agent may change, and the paths around it that they may
/// not.
///
/// All paths are absolute and free of links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsolatedPlaces {
    /// The worktree, in which every command starts.
    pub root: PathBuf,
    /// The checkout that the agent must not change.
    pub checkout: PathBuf,
    /// The git directory that `.git` of the worktree names, if there is one.
    pub git_dir: Option<PathBuf>,
    /// Directories that the agent may change, even within a kept path.
    pub own: Vec<PathBuf>,
    /// Paths that stay unchanged. A missing one cannot be created; a missing directory ends with a slash.
    pub kept: Vec<PathBuf>,
}

/// A worktree with git data of its own, on disk.
#[derive(Clone, Copy, Debug)]
pub struct WorktreePaths<'a> {
    pub root: &'a Path,
    /// The parent's checkout.
    pub checkout: &'a Path,
    /// The directory of the worktree's own references, index and objects.
    pub git_dir: &'a Path,
    /// The git directory of the parent's repository.
    pub common_dir: &'a Path,
}

/// The reason that no command of an isolated agent can run.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum WorktreeGone {
    #[error(
        "nothing was run: the worktree {} of this agent no longer exists. Stop and report that", .0.display()
    )]
    Missing(PathBuf),
    #[error(
        "nothing was run: {} is no longer the worktree of this agent, because {reason}. Stop and report that",
        .root.display()
    )]
    Other { root: PathBuf, reason: &'static str },
}

impl IsolatedPlaces {
    /// The places of a worktree. Also keeps git's configuration for the user and the machine, which holds in the
    /// parent's checkout as well; `env` tells its paths.
    pub fn of_worktree(paths: &WorktreePaths<'_>, env: &Env) -> io::Result<Self> {
        let (root, checkout) = (paths.root.canonicalize()?, paths.checkout.canonicalize()?);
        // Another agent's command may have put a link there since it was made.
        let below = paths.root.strip_prefix(paths.checkout).unwrap_or(paths.root);
        if root != checkout.join(below) {
            return Err(io::Error::other("a link leads there, and not to the worktree"));
        }
        let git_dir = paths.git_dir.canonicalize()?;
        let common_dir = paths.common_dir.canonicalize()?;
        let kept = [checkout.clone(), common_dir, root.join(".git")].into_iter();
        let kept = kept.chain(GIT_PARTS.map(|part| git_dir.join(part)));
        Ok(Self {
            kept: kept.chain(git_configuration(env)).collect(),
            own: vec![root.clone(), git_dir.clone()],
            git_dir: Some(git_dir),
            root,
            checkout,
        })
    }

    /// The places of a directory that is no git worktree, such as one that a hook made.
    pub fn of_directory(root: &Path, checkout: &Path, env: &Env) -> io::Result<Self> {
        let (root, checkout) = (root.canonicalize()?, checkout.canonicalize()?);
        Ok(Self {
            kept: [checkout.clone()].into_iter().chain(git_configuration(env)).collect(),
            own: vec![root.clone()],
            git_dir: None,
            root,
            checkout,
        })
    }

    /// The same with more kept paths.
    #[must_use]
    pub fn keeping(mut self, more: impl IntoIterator<Item = PathBuf>) -> Self {
        self.kept.extend(more);
        self
    }

    /// Whether a path lies in the worktree once its links are followed.
    pub fn contains(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|path| path.starts_with(&self.root))
    }

    /// Checks that the worktree still exists. With another directory in its place, git would look for a repository
    /// above it and find the parent's.
    pub(crate) fn check(&self) -> Result<(), WorktreeGone> {
        let other = |reason| WorktreeGone::Other { root: self.root.clone(), reason };
        match self.root.symlink_metadata() {
            Err(_) => return Err(WorktreeGone::Missing(self.root.clone())),
            Ok(metadata) if !metadata.is_dir() => return Err(other("it is not a directory")),
            Ok(_) if self.root.canonicalize().ok().as_ref() != Some(&self.root) => {
                return Err(other("a link leads there"));
            }
            Ok(_) => {}
        }
        let Some(git_dir) = &self.git_dir else { return Ok(()) };
        if !git_dir.is_dir() {
            return Err(other("its git data is gone"));
        }
        match self.named_git_dir() {
            Ok(named) if named == *git_dir => Ok(()),
            _ => Err(other("its .git does not name the git data of this agent")),
        }
    }

    /// The target of `.git` in the worktree.
    fn named_git_dir(&self) -> io::Result<PathBuf> {
        let file = disk::open_own(&self.root.join(".git"))?;
        let pointer = bounded::read_all(file, LARGEST_POINTER)?;
        let named = pointer.strip_prefix(b"gitdir: ").unwrap_or_default().trim_ascii_end();
        self.root.join(OsStr::from_bytes(named)).canonicalize()
    }

    /// Whether a link is on the way to a kept path, as with a `~/.gitconfig` that leads elsewhere.
    pub(super) fn is_kept_behind_links(&self) -> bool {
        self.kept.iter().any(|kept| {
            let existing = kept.ancestors().find(|path| path.symlink_metadata().is_ok());
            existing.is_some_and(|path| path.canonicalize().ok().as_deref() != Some(path))
        })
    }

    /// A sandbox in which everything but the kept paths is open.
    pub(super) fn open_sandbox(&self) -> Sandbox {
        Sandbox {
            write: vec!["/".into()],
            deny_write: self.kept.clone(),
            write_within: self.own.clone(),
            network: Network::Open,
            unix_sockets: UnixSockets::Allowed,
            ..Sandbox::default()
        }
    }

    /// The user's sandbox, narrowed to the kept paths. The agent's own places are open only if the user lets commands
    /// write in the parent's checkout.
    pub(super) fn narrow(&self, mut sandbox: Sandbox) -> Sandbox {
        if self.is_checkout_writable(&sandbox) {
            sandbox.write.extend_from_slice(&self.own);
            sandbox.write_within.extend_from_slice(&self.own);
        }
        sandbox.deny_write.extend_from_slice(&self.kept);
        sandbox
    }

    fn is_checkout_writable(&self, sandbox: &Sandbox) -> bool {
        let real = |path: &PathBuf| path.canonicalize().ok();
        let is_part =
            |place: PathBuf| place.starts_with(&self.checkout) || self.checkout.starts_with(place);
        let is_above = |place: PathBuf| self.checkout.starts_with(place);
        sandbox.write.iter().filter_map(real).any(is_part)
            && !sandbox.deny_write.iter().filter_map(real).any(is_above)
    }
}

/// Git's configuration outside of repositories.
fn git_configuration(env: &Env) -> Vec<PathBuf> {
    let named = |name: &str| env.get(name).filter(|path| path.starts_with('/')).map(PathBuf::from);
    // A link to all homes belongs to the administrator, and no command replaces it.
    let home = named("HOME").map(|home| home.canonicalize().unwrap_or(home));
    let directory = named("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|it| it.join(".config")));
    let system = match named("GIT_CONFIG_SYSTEM") {
        Some(file) => vec![file],
        None => SYSTEM_CONFIGURATION.map(PathBuf::from).to_vec(),
    };
    let users = home.map(|home| home.join(".gitconfig"));
    let users = users.into_iter().chain(directory.map(|directory| directory.join("git/")));
    users.chain(named("GIT_CONFIG_GLOBAL")).chain(system).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn worktree() -> (tempfile::TempDir, IsolatedPlaces) {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().join("top");
        let (root, git_dir) = (top.join(".claude/worktrees/w"), top.join(".git/own/w/git"));
        for directory in [&root, &git_dir] {
            fs::create_dir_all(directory).unwrap();
        }
        fs::write(root.join(".git"), format!("gitdir: {}\n", git_dir.display())).unwrap();
        let common_dir = top.join(".git");
        let paths = WorktreePaths {
            root: &root,
            checkout: &top,
            git_dir: &git_dir,
            common_dir: &common_dir,
        };
        let env = Env::from([("HOME", "/home/user"), ("GIT_CONFIG_SYSTEM", "/system")]);
        let places = IsolatedPlaces::of_worktree(&paths, &env).unwrap();
        (scratch, places)
    }

    #[test]
    fn what_git_obeys_is_kept_and_the_rest_of_the_worktree_is_its_own() {
        let (_scratch, places) = worktree();
        let git_dir = places.git_dir.clone().unwrap();
        assert_eq!(places.own, [places.root.clone(), git_dir.clone()]);
        for kept in [
            places.checkout.clone(),
            places.checkout.join(".git"),
            places.root.join(".git"),
            git_dir.join("config"),
            git_dir.join("hooks/"),
            "/home/user/.gitconfig".into(),
            "/home/user/.config/git/".into(),
            "/system".into(),
        ] {
            assert!(places.kept.contains(&kept), "{}", kept.display());
        }
    }

    #[test]
    fn a_link_on_the_way_to_what_is_kept_is_noticed() {
        let (scratch, places) = worktree();
        assert!(!places.is_kept_behind_links());
        let home = scratch.path().canonicalize().unwrap();
        fs::write(home.join("real"), "").unwrap();
        symlink("real", home.join(".gitconfig")).unwrap();
        assert!(!places.clone().keeping([home.join("missing/file")]).is_kept_behind_links());
        assert!(places.keeping([home.join(".gitconfig")]).is_kept_behind_links());
    }

    #[test]
    fn only_the_worktree_itself_counts_as_the_worktree() {
        type Change = fn(&IsolatedPlaces);
        let changes: [(Change, &str); 5] = [
            (|it| fs::remove_dir_all(&it.root).unwrap(), "no longer exists"),
            (|it| fs::remove_file(it.root.join(".git")).unwrap(), "does not name the git data"),
            (
                |it| fs::write(it.root.join(".git"), "gitdir: ../../../.git\n").unwrap(),
                "does not name the git data",
            ),
            (
                |it| fs::remove_dir_all(it.git_dir.as_ref().unwrap()).unwrap(),
                "its git data is gone",
            ),
            (
                |it| {
                    let moved = it.checkout.join("moved");
                    fs::rename(&it.root, &moved).unwrap();
                    symlink(&moved, &it.root).unwrap();
                },
                "it is not a directory",
            ),
        ];
        for (change, expected) in changes {
            let (_scratch, places) = worktree();
            assert_eq!(places.check(), Ok(()));
            change(&places);
            let said = places.check().unwrap_err().to_string();
            assert!(said.contains(expected) && said.starts_with("nothing was run"), "{said}");
        }
    }

    #[test]
    fn what_a_link_leads_to_is_not_taken_for_the_worktree() {
        for exchanged in [".claude", ".claude/worktrees", ".claude/worktrees/w"] {
            let (scratch, places) = worktree();
            let other = scratch.path().join("other");
            fs::rename(places.checkout.join(exchanged), &other).unwrap();
            symlink(&other, places.checkout.join(exchanged)).unwrap();
            let paths = WorktreePaths {
                root: &places.root,
                checkout: &places.checkout,
                git_dir: places.git_dir.as_ref().unwrap(),
                common_dir: &places.checkout.join(".git"),
            };
            let refused = IsolatedPlaces::of_worktree(&paths, &Env::default()).unwrap_err();
            assert!(refused.to_string().contains("a link leads there"), "{refused}");
        }
    }

    #[test]
    fn the_agents_places_are_open_only_where_the_user_lets_the_project_be_written() {
        let (_scratch, places) = worktree();
        let sub = places.checkout.join("sub");
        fs::create_dir(&sub).unwrap();
        let own = |write: Vec<PathBuf>, deny_write: Vec<PathBuf>| {
            let users = Sandbox { write, deny_write, ..Sandbox::default() };
            let narrowed = places.narrow(users.clone());
            assert!(places.kept.iter().all(|kept| narrowed.deny_write.contains(kept)));
            assert_eq!(narrowed.network, users.network);
            narrowed.write_within == places.own
        };
        let checkout = places.checkout.clone();
        assert!(own(vec![checkout.clone()], vec![checkout.join(".claude/")]));
        assert!(own(vec![sub], vec![]));
        assert!(own(vec!["/".into()], vec![]));
        assert!(!own(vec!["/usr".into()], vec![]));
        assert!(!own(vec![checkout.clone()], vec![checkout]));
    }
}
