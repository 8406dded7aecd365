//! The checkout around a directory: its repository, branch and commit.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::git::{At, Git, GitError};
use crate::names::shown;
use crate::plain;
use crate::private::PrivateRepository;

/// Directory of agents' worktrees, below the repository's own checkout.
pub(crate) const WORKTREES: &str = ".claude/worktrees";

/// A checkout: of a repository, one of its worktrees, or an agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    /// Its top directory.
    pub top: PathBuf,
    /// The git directory that its own git uses: of an agent's worktree, the private one.
    pub git_dir: PathBuf,
    /// The git directory that all worktrees share.
    pub common: PathBuf,
    /// The checkout that agents' worktrees are made below: the repository's own, where it has one.
    pub home: PathBuf,
    /// The commit that it is at.
    pub head: String,
    /// The branch that it is on.
    pub branch: Option<String>,
}

/// Reasons for which no worktree can be made from a directory.
#[derive(Debug, Error)]
pub enum CheckoutError {
    #[error("{} is not in a git repository", shown(.0))]
    NoRepository(PathBuf),
    #[error("the repository {} is bare: it has no files to work on", shown(.0))]
    Bare(PathBuf),
    #[error("the repository {} has no commit yet: commit something first", shown(.0))]
    NoCommit(PathBuf),
    #[error("the path {} is not UTF-8 or has a line break, which git's own files cannot hold", shown(.0))]
    Path(PathBuf),
    #[error("{}: {source}", shown(.path))]
    Directory { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Checkout {
    /// The checkout around a directory.
    pub async fn around(git: &Git, directory: &Path) -> Result<Self, CheckoutError> {
        let directory = directory
            .canonicalize()
            .map_err(|source| CheckoutError::Directory { path: directory.to_owned(), source })?;
        match plain::checkout(&directory) {
            Some(found) => Ok(found),
            None => Self::asked(git, directory).await,
        }
    }

    /// The same by git, which knows all forms.
    pub(crate) async fn asked(git: &Git, directory: PathBuf) -> Result<Self, CheckoutError> {
        const QUESTIONS: [&str; 9] = [
            "rev-parse",
            "--path-format=absolute",
            "--is-bare-repository",
            "--git-common-dir",
            "--git-dir",
            "--show-toplevel",
            "HEAD^{commit}",
            "--symbolic-full-name",
            "HEAD",
        ];
        let output = git.try_run(At::found_from(&directory), QUESTIONS).await?;
        let odd = || CheckoutError::Path(directory.clone());
        let said = String::from_utf8(output.stdout).map_err(|_| odd())?;
        let mut lines = said.lines();
        let mut next = || lines.next().map(str::to_owned);
        let (bare, common, git_dir, top) = (next(), next(), next(), next());
        let (Some(bare), Some(common), Some(git_dir)) = (bare, common, git_dir) else {
            return Err(refusal(&directory, &output.stderr));
        };
        // A line break in a path is one between answers.
        if ![&common, &git_dir].iter().all(|path| Path::new(path).is_dir()) {
            return Err(odd());
        }
        let Some(top) = top.filter(|_| bare != "true") else {
            return Err(CheckoutError::Bare(git_dir.into()));
        };
        let is_id = |text: &String| text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let head =
            next().filter(is_id).ok_or_else(|| CheckoutError::NoCommit(top.clone().into()))?;
        let branch = next().and_then(|name| Some(name.strip_prefix("refs/heads/")?.to_owned()));
        let (top, git_dir) = (PathBuf::from(top), PathBuf::from(git_dir));
        // Of an agent's worktree, the repository is the one that the agent's repository belongs to.
        let (common, home) = if let Some(private) = PrivateRepository::at(&git_dir) {
            let home = top.ancestors().nth(3).unwrap_or(&top).to_owned();
            (private.common().to_owned(), home)
        } else {
            let common = PathBuf::from(common);
            let home = main_checkout(&common).unwrap_or_else(|| top.clone());
            (common, home)
        };
        Ok(Self { top, git_dir, common, home, head, branch })
    }

    /// Git's place in it.
    pub(crate) fn at(&self) -> At<'_> {
        At::git_dir(&self.git_dir).work_tree(&self.top)
    }

    /// The directory of agents' worktrees.
    pub fn worktrees(&self) -> PathBuf {
        self.home.join(WORKTREES)
    }
}

/// The checkout that has the git directory in it.
fn main_checkout(common: &Path) -> Option<PathBuf> {
    common.file_name().filter(|name| *name == ".git")?;
    common.parent().map(Path::to_owned)
}

fn refusal(directory: &Path, said: &[u8]) -> CheckoutError {
    let said = String::from_utf8_lossy(said).trim().trim_start_matches("fatal: ").to_owned();
    if said.contains("not a git repository") {
        return CheckoutError::NoRepository(directory.to_owned());
    }
    GitError::Failed { command: "rev-parse".to_owned(), code: None, said }.into()
}
