//! Worktrees that were kept: what is in them, and letting them go.
//!
//! One can go when everything in it is somewhere else: its commits in another branch, and nothing that is not committed. Any
//! other is first saved: its commits and its files under `refs/centurion/agents/<id>/`, from where it is restored.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::branch;
use crate::checkout::{Checkout, CheckoutError};
use crate::create::CreateError;
use crate::entry::{Entry, Standing, explain_moved};
use crate::git::{At, Git, GitError};
use crate::names::{self, for_shell, shown};
use crate::operation::Operation;
use crate::record::{Lease, Record};
use crate::remove::{self, Removal, Trash};
use crate::report::Report;
use crate::restore;
use crate::snapshot::{MOST_SAVED, inner_repositories, is_large, put_paths};
use crate::state::{self, Work};
use crate::whole_index::WholeIndex;
use crate::worktrees::{Worktrees, check_plain};

/// Reasons for which a worktree stays as it is.
#[derive(Debug, Error)]
pub enum KeptError {
    #[error("process {0} uses it")]
    InUse(String),
    #[error("it is not in order: `centurion worktrees clean` without a name mends it")]
    Left,
    /// An operation of git, such as a merge, is unfinished in it.
    #[error("{0}")]
    Operation(String),
    #[error("what is written about it cannot be read ({reason}): look into {}", shown(.at))]
    Unreadable { reason: String, at: PathBuf },
    /// It is at another place.
    #[error("{0}")]
    Moved(String),
    #[error("it cannot be removed: {0}")]
    Stays(std::io::Error),
    #[error("{0}; `--force` saves it and removes the worktree")]
    Holds(String),
    #[error(
        "the submodule {0} was filled in it, which cannot be saved here: look after it by hand"
    )]
    Submodule(String),
    #[error(
        "{count} of its files and directories are not committed and have more than the {MOST_SAVED} that can be saved: commit or \
         move what is needed and delete the rest (`git -C {path} status --ignored` lists them)"
    )]
    Large { count: usize, path: String },
    #[error("{0} is there already")]
    Taken(String),
    #[error("nothing is saved of `{0}`")]
    NothingSaved(String),
    #[error("no worktree can have this name: {0}")]
    Name(#[from] crate::slug::SlugError),
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl From<std::io::Error> for KeptError {
    fn from(error: std::io::Error) -> Self {
        Self::Git(error.into())
    }
}

/// Treatment of work that exists only in the worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsaved {
    /// The worktree stays.
    Stays,
    /// The work is saved, then the worktree is removed.
    IsSaved,
}

impl Worktrees {
    /// Contents of a kept worktree.
    pub async fn report(&self, directory: &Path, entry: &Entry) -> Result<Report, KeptError> {
        let from = self.checkout(directory).await?;
        let record = readable(entry)?;
        // Work in a private repository is brought home first, by one process at a time.
        let is_out = state::is_out(&entry.kept, record);
        let _lease = if is_out { Some(lease(entry)?) } else { None };
        check_plain(&entry.kept, record)?;
        let tamed = self.tamed(&state::git_dir(&entry.kept, record)).await?;
        let mut work = Work::default();
        if record.path.is_dir() {
            work = state::look(&tamed.git, &entry.kept, record).await?;
        }
        let mut record = record.clone();
        let caller = Some(directory);
        Ok(tamed.keep(&from.common, &entry.kept, &mut record, work, caller).await?)
    }

    /// All that differs in a worktree from the commit that it began at, as text.
    /// Files that are not to be shown are left out, and named at its end.
    pub async fn diff(
        &self,
        entry: &Entry,
        shows: &(dyn Fn(&Path) -> bool + Sync),
    ) -> Result<String, KeptError> {
        let patch = self.patch(entry, shows).await?;
        Ok(String::from_utf8_lossy(&patch).into_owned())
    }

    /// The same as a patch that git can apply, byte for byte, whatever the user's configuration says of colours and prefixes.
    pub async fn patch(
        &self,
        entry: &Entry,
        shows: &(dyn Fn(&Path) -> bool + Sync),
    ) -> Result<Vec<u8>, KeptError> {
        let record = readable(entry)?;
        check_plain(&entry.kept, record)?;
        let git_dir = state::git_dir(&entry.kept, record);
        let git = self.git.tamed(&git_dir).await?;
        let at = || At::git_dir(&git_dir).work_tree(&record.path);
        let index = WholeIndex::of(&git, &at(), &git_dir.join("index")).await?;
        let at = || at().index(index.path());
        let args = [&PATCH[..], &["--ignore-submodules=dirty"]].concat();
        let names = ["--name-only", "-z", "--no-renames", &record.base];
        let changed = git.run_raw(at(), args.iter().chain(&names)).await?;
        let is_hidden = |path: &PathBuf| !shows(&record.path.join(path));
        let mut hidden: Vec<PathBuf> =
            names::parts(&changed).map(names::path).filter(is_hidden).collect();
        let mut args: Vec<OsString> = args.iter().map(OsString::from).collect();
        args.extend([record.base.as_str(), "--", ":/"].map(OsString::from));
        args.extend(hidden.iter().map(|path| {
            let mut left_out = OsString::from(":(top,exclude,literal)");
            left_out.push(path);
            left_out
        }));
        let mut patch = git.run_raw(at(), args).await?;
        let listed = ["ls-files", "-z", "--others", "--exclude-standard"];
        let untracked = git.run_raw(at(), listed).await?;
        let put: Vec<PathBuf> = put_paths(record).collect();
        let untracked = names::parts(&untracked).map(names::path);
        for path in untracked.filter(|path| !put.contains(path)) {
            if is_hidden(&path) {
                hidden.push(path);
                continue;
            }
            let args = PATCH.iter().chain(&["--no-index", "--", "/dev/null"]).map(OsStr::new);
            let output = git.try_run(at(), args.chain([path.as_os_str()])).await?;
            patch.extend(output.stdout);
        }
        if !hidden.is_empty() {
            let hidden: Vec<String> = hidden.iter().map(shown).collect();
            patch.extend(format!("(not shown: {})\n", hidden.join(", ")).into_bytes());
        }
        Ok(patch)
    }

    /// Removes a worktree that was kept, with its branch.
    pub async fn let_go(
        &self,
        directory: &Path,
        entry: &Entry,
        unsaved: Unsaved,
    ) -> Result<Trash, KeptError> {
        let from = self.checkout(directory).await?;
        let record = usable(entry)?;
        let lease = lease(entry)?;
        check_plain(&entry.kept, record)?;
        let tamed = self.tamed(&record.admin).await?;
        let git = &tamed.git;
        if let Some(operation) = Operation::at_home(git, record).await? {
            return Err(KeptError::Operation(operation.explain(record)));
        }
        let branch = format!("refs/heads/{}", record.branch);
        let head = state::head(git, &from.common, record).await?;
        let tip = branch::commit_at(git, &from.common, &branch).await?;
        let tip = tip.unwrap_or_else(|| head.clone());
        let rest = uncommitted(git, &record.admin, record, Ignored::Counted).await?;
        if let Some(path) = inner_repository(git, record, &rest).await? {
            return Err(KeptError::Submodule(shown(path)));
        }
        if is_large(&record.path, &rest) {
            let (count, path) = (rest.len(), for_shell(&record.path));
            return Err(KeptError::Large { count, path });
        }
        if unsaved == Unsaved::Stays {
            if !rest.is_empty() {
                let count = rest.len();
                return Err(KeptError::Holds(format!("{count} of its files are not committed")));
            }
            for commit in [&tip, &head] {
                if !is_elsewhere(git, &from, record, commit).await? {
                    let text = format!("no other branch has the commits of {branch}");
                    return Err(KeptError::Holds(text));
                }
            }
        }
        restore::save(git, &from.common, record, (&tip, &head), !rest.is_empty()).await?;
        let mut record = record.clone();
        record.base.clone_from(&tip);
        let removed = remove::remove(git, &from.common, &entry.kept, &record).await;
        drop(lease);
        removed.and_then(Removal::whole).map_err(KeptError::Stays)
    }
}

/// Asks for a patch as git makes it by itself.
const PATCH: [&str; 6] =
    ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/"];

/// The record of a worktree that can be looked at.
fn readable(entry: &Entry) -> Result<&Record, KeptError> {
    match (&entry.record, &entry.standing) {
        (_, Standing::InUse { process }) => Err(KeptError::InUse(process.clone())),
        (Some(record), Standing::Kept | Standing::Gone | Standing::Paused { .. }) => Ok(record),
        (Some(record), Standing::Moved { to }) => Err(KeptError::Moved(explain_moved(record, to))),
        (_, Standing::Unreadable { reason }) => {
            let (reason, at) = (reason.clone(), entry.kept.path().to_owned());
            Err(KeptError::Unreadable { reason, at })
        }
        _ => Err(KeptError::Left),
    }
}

/// The record of a worktree that was kept.
fn usable(entry: &Entry) -> Result<&Record, KeptError> {
    let record = readable(entry)?;
    match entry.standing {
        Standing::Paused { operation } => Err(KeptError::Operation(operation.explain_out(record))),
        _ => Ok(record),
    }
}

/// Has no other process use a worktree meanwhile.
fn lease(entry: &Entry) -> Result<Lease, KeptError> {
    let in_use = || KeptError::InUse(entry.kept.holder().unwrap_or_default());
    entry.kept.lease()?.ok_or_else(in_use)
}

/// Treatment of files that git ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ignored {
    Counted,
    LeftOut,
}

/// The files that are not committed, without what we put there: also those that git is told not to look at.
pub(crate) async fn uncommitted(
    git: &Git,
    git_dir: &Path,
    record: &Record,
    ignored: Ignored,
) -> Result<Vec<PathBuf>, GitError> {
    if !record.path.is_dir() {
        return Ok(Vec::new());
    }
    let ignored = if ignored == Ignored::Counted { "--ignored" } else { "--ignored=no" };
    let args = [
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=all",
        "--ignore-submodules=dirty",
        ignored,
        "--no-renames",
    ];
    let at = At::git_dir(git_dir).work_tree(&record.path);
    let index = WholeIndex::of(git, &at, &git_dir.join("index")).await?;
    let said = git.run_raw(at.index(index.path()), args).await?;
    let put: Vec<PathBuf> = put_paths(record).collect();
    // Of a directory, git says a `/` at the end, which paths do not know.
    let paths = names::parts(&said).filter_map(|entry| entry.get(3..)).map(names::path);
    Ok(paths.filter(|path| !put.contains(path)).collect())
}

/// A repository within the worktree that has something in it: what it holds cannot be saved here.
async fn inner_repository(
    git: &Git,
    record: &Record,
    uncommitted: &[PathBuf],
) -> Result<Option<PathBuf>, GitError> {
    if !record.path.is_dir() {
        return Ok(None);
    }
    let known = inner_repositories(git, &record.at_home()).await?;
    let known = known.into_iter().filter(|path| state::is_filled(&record.path.join(path)));
    let new = uncommitted.iter().filter(|path| record.path.join(path).join(".git").exists());
    Ok(known.chain(new.cloned()).next())
}

/// Checks that other refs have all commits of a branch.
async fn is_elsewhere(
    git: &Git,
    from: &Checkout,
    record: &Record,
    tip: &str,
) -> Result<bool, GitError> {
    let args = ["for-each-ref", "--format=%(refname)", "--contains", tip];
    let said = git.run(At::git_dir(&from.common), args).await?;
    let own = [format!("refs/heads/{}", record.branch), record.saved_refs()];
    Ok(said.lines().any(|name| name != own[0] && !name.starts_with(&own[1])))
}
