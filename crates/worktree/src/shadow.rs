//! A repository whose configuration an agent may change at any moment, looked at through a git directory of our own.
//!
//! Git runs programs that a repository's configuration names, and each git reads it anew: what was looked at before may be
//! another one by then. So git does not read that of a repository which an agent can write to. It gets a git directory that
//! has the index, the commit and the ignored names as they are there, borrows the objects, and has a configuration of ours,
//! with those settings that only say how files are compared.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use centurion_files::private;
use rustix::fs::{FlockOperation, flock};

use crate::branch::commit_at;
use crate::files::{LONG, SHORT, read_text, replace_copy};
use crate::git::{At, Git, GitError};
use crate::names::shown;
use crate::pipes;
use crate::record::check_way;

/// The directory of these in a repository's git directory.
const LOOKS: &str = "centurion/looks";

/// The file whose lock says that a process looks.
const LEASE: &str = "lease";

/// Settings that run nothing, with values of one word.
const PLAIN: [&str; 7] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "extensions.objectformat",
];

/// The git directory. It goes with this.
#[derive(Debug)]
pub(crate) struct Shadow {
    path: PathBuf,
    /// The commit that the repository is at.
    pub(crate) head: Option<String>,
    _lease: File,
}

impl Shadow {
    /// Of the repository at a git directory. `ours` is the git directory of one that no agent writes to, if there is one.
    pub(crate) async fn of(
        git: &Git,
        git_dir: &Path,
        ours: Option<&Path>,
    ) -> Result<Self, GitError> {
        let common = common_of(git_dir)?;
        let odd = [git_dir, common.as_path()].into_iter().find_map(pipes::first_below);
        if let Some(odd) = odd {
            let text = format!("{} is a pipe or the like, which git would wait for", shown(odd));
            return Err(io::Error::other(text).into());
        }
        // Names of objects are found by files alone.
        let head = commit_at(git, git_dir, "HEAD").await?;
        let config = configuration(git, git_dir, &common).await?;
        let shadow = Self::new(git, ours, head)?;
        shadow.fill(git_dir, &common, &config)?;
        Ok(shadow)
    }

    fn new(git: &Git, ours: Option<&Path>, head: Option<String>) -> io::Result<Self> {
        let (above, _locked) = match ours {
            Some(common) => {
                let above = common.join(LOOKS);
                check_way(&above)?;
                private::create_directory(&above)?;
                // One that is being made has no lease yet.
                let directory = File::open(&above)?;
                flock(&directory, FlockOperation::LockExclusive)?;
                sweep(&above);
                (above, Some(directory))
            }
            None => (git.scratch(), None),
        };
        for number in 0.. {
            let path = above.join(format!("centurion-{}-{number}", std::process::id()));
            match private::create_new_directory(&path) {
                Ok(()) => {
                    let lease = private::create(&path.join(LEASE))?;
                    flock(&lease, FlockOperation::NonBlockingLockExclusive)?;
                    return Ok(Self { path, head, _lease: lease });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn fill(&self, git_dir: &Path, common: &Path, config: &str) -> io::Result<()> {
        for directory in ["objects/info", "refs", "info"] {
            fs::create_dir_all(self.path.join(directory))?;
        }
        let write = |name: &str, text: &str| fs::write(self.path.join(name), text);
        write("config", config)?;
        let head = self.head.as_deref().unwrap_or("ref: refs/heads/none");
        write("HEAD", &format!("{head}\n"))?;
        write("objects/info/alternates", &format!("{}\n", shown(common.join("objects"))))?;
        replace_copy(&git_dir.join("index"), &self.index())?;
        for name in ["info/exclude", "shallow"] {
            replace_copy(&common.join(name), &self.path.join(name))?;
        }
        for entry in fs::read_dir(git_dir)? {
            let name = entry?.file_name();
            // An index in two parts.
            if name.as_encoded_bytes().starts_with(b"sharedindex.") {
                replace_copy(&git_dir.join(&name), &self.path.join(&name))?;
            }
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.path.join("index")
    }

    /// Git's place in a checkout of the repository.
    pub(crate) fn at<'a>(&'a self, work_tree: &'a Path) -> At<'a> {
        At::git_dir(&self.path).work_tree(work_tree)
    }
}

impl Drop for Shadow {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "what was only looked at stays");
        }
    }
}

/// Removes what processes left that died.
fn sweep(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let Ok((lease, _)) = centurion_files::open_regular(&entry.path().join(LEASE)) else {
            continue;
        };
        if flock(&lease, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The git directory that has the objects and the configuration.
fn common_of(git_dir: &Path) -> io::Result<PathBuf> {
    let file = git_dir.join("commondir");
    if fs::symlink_metadata(&file).is_err() {
        return Ok(git_dir.to_owned());
    }
    git_dir.join(read_text(&file, SHORT)?.trim_end_matches('\n')).canonicalize()
}

/// The settings that are taken over, as a file.
async fn configuration(git: &Git, git_dir: &Path, common: &Path) -> Result<String, GitError> {
    let text = read_text(&common.join("config"), LONG)?;
    let mut settings = vec![("core.bare".to_owned(), "false".to_owned())];
    if !text.is_empty() {
        let at = At::git_dir(git_dir).input(text.as_bytes());
        let said = git.run(at, ["config", "--file", "-", "--list", "-z"]).await?;
        let is_word = |value: &str| value.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let pairs =
            said.split_terminator('\0').map(|it| it.split_once('\n').unwrap_or((it, "true")));
        let plain = pairs.filter(|(key, value)| PLAIN.contains(key) && is_word(value));
        settings.extend(plain.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }
    let version = u8::from(settings.iter().any(|(key, _)| key.starts_with("extensions.")));
    settings.insert(0, ("core.repositoryformatversion".to_owned(), version.to_string()));
    let line = |(key, value): &(String, String)| {
        let (section, name) = key.split_once('.').unwrap_or(("core", key));
        format!("[{section}]\n\t{name} = {value}\n")
    };
    Ok(settings.iter().map(line).collect())
}
