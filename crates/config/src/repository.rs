//! The git directories of a checkout, as far as the history in them is its own.
//!
//! A directory can say anything about itself: that it is a worktree of another repository, that its history
//! lies elsewhere. What it says counts where the other side says the same, or where nothing outside of it is
//! meant.

mod configuration;
mod index;
mod programs;

use std::fs;
use std::path::{Path, PathBuf};

pub use self::configuration::USERS as USERS_GIT_CONFIGURATION;
pub(crate) use self::programs::git_programs;
pub use self::programs::named_by_configuration;
use crate::files;

/// Git's own files hold one path or one reference.
const LARGEST_GIT_FILE: u64 = 64 * 1024;

/// The longest name of a branch that is shown.
const LONGEST_BRANCH: usize = 200;

/// The directories of one checkout's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDirs {
    /// The directory of this checkout alone, with `HEAD`.
    pub own: PathBuf,
    /// The directory that all worktrees share; the same as `own` for most checkouts.
    pub common: PathBuf,
}

/// The branch or commit of a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    Branch(String),
    /// A commit without a branch.
    Detached,
}

impl GitDirs {
    /// The history of the checkout whose top is `root`: a directory in it, the administration of a worktree
    /// that names it in turn, or what a repository around it keeps for a submodule. `None` for any other.
    pub fn of(root: &Path) -> Option<Self> {
        let root = root.canonicalize().ok()?;
        let link = root.join(".git");
        let metadata = fs::symlink_metadata(&link).ok()?;
        if metadata.is_dir() {
            return Some(Self { own: link.clone(), common: link });
        }
        if !metadata.is_file() {
            return None;
        }
        let text = files::read(&link, LARGEST_GIT_FILE).1.ok()??;
        let own = root.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
        Self::of_worktree(&own, &link).or_else(|| Self::of_submodule(&own, &root))
    }

    /// Both must name each other: a directory that only says that it is a worktree of a repository must not
    /// get what that one was given.
    fn of_worktree(own: &Path, link: &Path) -> Option<Self> {
        let worktrees =
            own.parent().filter(|it| it.file_name().is_some_and(|it| it == "worktrees"))?;
        let back = files::read(&own.join("gitdir"), LARGEST_GIT_FILE).1.ok()??;
        let back = own.join(back.trim()).canonicalize().ok()?;
        let common = worktrees.parent().filter(|_| back == link)?;
        // Git takes the configuration from where this leads, whatever lies around it.
        let shared = files::read(&own.join("commondir"), LARGEST_GIT_FILE).1.ok()??;
        let shared = own.join(shared.trim_end_matches('\n')).canonicalize().ok()?;
        if shared != common.canonicalize().ok()? {
            return None;
        }
        Some(Self { own: own.to_owned(), common: common.to_owned() })
    }

    fn of_submodule(own: &Path, root: &Path) -> Option<Self> {
        let around = own.ancestors().find_map(|directory| {
            let is_modules = directory.file_name()? == "modules";
            let git = directory
                .parent()
                .filter(|git| is_modules && git.file_name().is_some_and(|it| it == ".git"))?;
            git.parent()
        })?;
        (root != around && root.starts_with(around))
            .then(|| Self { own: own.to_owned(), common: own.to_owned() })
    }

    /// The checkout that a worktree belongs to, where it is not this one.
    pub(crate) fn main_checkout(&self) -> Option<&Path> {
        let is_worktree = self.own != self.common;
        let named = self.common.file_name().is_some_and(|name| name == ".git");
        self.common.parent().filter(|_| is_worktree && named)
    }

    /// The branch or commit of the checkout, without git; `None` if it cannot be told.
    pub fn head(&self) -> Option<Head> {
        let head = self.own.join("HEAD");
        if head.is_symlink() {
            return None;
        }
        let text = files::read(&head, LARGEST_GIT_FILE).1.ok()??;
        if let Some(reference) = text.strip_prefix("ref:") {
            let branch = reference.trim().strip_prefix("refs/heads/")?;
            let is_name = !branch.is_empty()
                && branch.len() <= LONGEST_BRANCH
                && !branch.contains(|c: char| c.is_whitespace() || c.is_control());
            is_name.then(|| Head::Branch(branch.to_owned()))
        } else {
            let commit = text.trim();
            let is_commit = commit.len() >= 40 && commit.bytes().all(|it| it.is_ascii_hexdigit());
            is_commit.then_some(Head::Detached)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Marks the machine of these tests.
    struct HistoryTests;

    type Machine = crate::testing::Machine<HistoryTests>;

    impl Machine {
        fn new() -> Self {
            let machine = Self::with(|_| HistoryTests);
            machine.write("repo/.git/HEAD", "ref: refs/heads/main\n");
            machine.write("repo/.git/modules/sub/HEAD", &("0".repeat(40) + "\n"));
            machine.write("repo/sub/.git", "gitdir: ../.git/modules/sub\n");
            machine.write("repo/.git/worktrees/wt/HEAD", "ref: refs/heads/topic/x\n");
            machine.write("repo/.git/worktrees/wt/commondir", "../..\n");
            machine.write(
                "wt/.git",
                format!("gitdir: {}\n", machine.path("repo/.git/worktrees/wt").display()),
            );
            machine.write(
                "repo/.git/worktrees/wt/gitdir",
                format!("{}\n", machine.path("wt/.git").display()),
            );
            machine
        }

        fn of(&self, relative: &str) -> Option<GitDirs> {
            GitDirs::of(&self.path(relative))
        }
    }

    #[test]
    fn a_checkout_a_worktree_and_a_submodule_have_their_history() {
        let machine = Machine::new();
        let dirs = |own: &str, common: &str| {
            Some(GitDirs { own: machine.path(own), common: machine.path(common) })
        };
        assert_eq!(machine.of("repo"), dirs("repo/.git", "repo/.git"));
        assert_eq!(machine.of("wt"), dirs("repo/.git/worktrees/wt", "repo/.git"));
        let module = "repo/.git/modules/sub";
        assert_eq!(machine.of("repo/sub"), dirs(module, module));
        let head = |relative: &str| machine.of(relative).unwrap().head();
        assert_eq!(head("repo"), Some(Head::Branch("main".to_owned())));
        assert_eq!(head("wt"), Some(Head::Branch("topic/x".to_owned())));
        assert_eq!(head("repo/sub"), Some(Head::Detached));
    }

    #[test]
    fn no_directory_takes_the_history_of_another() {
        let machine = Machine::new();
        let repo = machine.path("repo/.git");
        for (name, gitdir) in [
            ("evil", repo.clone()),
            ("thief", repo.join("worktrees/wt")),
            ("module", repo.join("modules/sub")),
            ("repo/nested", repo.clone()),
        ] {
            machine.write(&format!("{name}/.git"), format!("gitdir: {}\n", gitdir.display()));
            assert_eq!(machine.of(name), None, "{name}");
        }
        fs::create_dir(machine.path("linked")).unwrap();
        symlink(&repo, machine.path("linked/.git")).unwrap();
        assert_eq!(machine.of("linked"), None);
    }

    #[test]
    fn a_worktree_whose_configuration_lies_elsewhere_has_no_history() {
        let machine = Machine::new();
        machine.write("evil/config", "");
        for text in ["../../../../evil\n", "/\n", ""] {
            machine.write("repo/.git/worktrees/wt/commondir", text);
            assert_eq!(machine.of("wt"), None, "{text:?}");
        }
        fs::remove_file(machine.path("repo/.git/worktrees/wt/commondir")).unwrap();
        assert_eq!(machine.of("wt"), None);
    }

    #[test]
    fn a_head_that_is_no_name_is_not_shown() {
        let machine = Machine::new();
        machine.write("secret", "ref: refs/heads/private\n");
        for text in [
            "ref: refs/heads/a b\n",
            "ref: refs/heads/\u{1b}[31m\n",
            "ref: ../x\n",
            "root:x:0\n",
            "",
        ] {
            machine.write("repo/.git/HEAD", text);
            assert_eq!(machine.of("repo").unwrap().head(), None, "{text:?}");
        }
        fs::remove_file(machine.path("repo/.git/HEAD")).unwrap();
        symlink(machine.path("secret"), machine.path("repo/.git/HEAD")).unwrap();
        assert_eq!(machine.of("repo").unwrap().head(), None);
    }
}
