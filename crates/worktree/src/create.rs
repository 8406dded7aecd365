//! Making a worktree, or opening one that is there.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::branch;
use crate::checkout::{Checkout, CheckoutError};
use crate::contents::{self, Contents};
use crate::entry;
use crate::files::{remove_if_there, replace_copy};
use crate::git::{At, Git, GitError};
use crate::home;
use crate::index;
use crate::lock::Exclusive;
use crate::names::shown;
use crate::operation::Operation;
use crate::ordinary;
use crate::own_branch;
use crate::pipes;
use crate::place::{self, Building};
use crate::private::{self, PrivateRepository};
use crate::record::{Kept, Owner, Record, Stage, now};
use crate::register::{admin_of, lead_to, lock_reason, register};
use crate::remove::{self, Removal, Trash};
use crate::shadow::Shadow;
use crate::slug::{Slug, SlugError};
use crate::snapshot::inner_repositories;
use crate::state;
use crate::worktrees::Worktree;

/// Parameters of a new worktree.
#[derive(Clone, Debug)]
pub struct Wish {
    pub slug: Slug,
    pub owner: Owner,
    /// Gives it a private repository while it is used.
    pub is_private: bool,
    /// Start from the default branch of the remote as it was last fetched, and not from the caller's commit.
    pub is_fresh: bool,
    pub contents: Contents,
}

/// Reasons for which no worktree is made.
#[derive(Debug, Error)]
pub enum CreateError {
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error("no worktree can have this name: {0}")]
    Slug(#[from] SlugError),
    #[error("{} is a link: worktrees are made in directories of the repository only", shown(.0))]
    Link(PathBuf),
    #[error("{} is there already and is no worktree of this repository", shown(.path))]
    Taken { path: PathBuf },
    #[error("the worktree {} is not in order: `centurion worktrees clean` mends it", shown(.path))]
    Left { path: PathBuf },
    #[error("the worktree {} is in use by process {process}", shown(.path))]
    InUse { path: PathBuf, process: String },
    /// It is at another place, or something of git's was begun in it and not ended.
    #[error("the worktree {} cannot be used: {reason}", shown(.path))]
    Unusable { path: PathBuf, reason: String },
    #[error(
        "the submodule {0} has changes, which a worktree would be without: commit them in the submodule and here"
    )]
    Submodule(String),
    #[error("{}: {source}", shown(.path))]
    Files { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
}

impl CreateError {
    pub(crate) fn files(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Files { path, source }
    }
}

/// Makes a worktree for a caller, or opens the one that has the name.
pub(crate) async fn create(
    git: &Git,
    from: &Checkout,
    wish: &Wish,
) -> Result<Worktree, CreateError> {
    let path = place::prepare(from, &wish.slug)?;
    let kept = Kept::of(&from.common, &wish.slug);
    match kept.reserve() {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return open(git, from, &kept, wish, path).await;
        }
        Err(error) => return Err(CreateError::files(kept.path())(error)),
    }
    let lease = kept.lease().map_err(CreateError::files(kept.path()))?;
    let Some(lease) = lease else {
        let process = kept.holder().unwrap_or_default();
        return Err(CreateError::InUse { path, process });
    };
    if let Err(error) = check_place(&from.common, &path) {
        kept.free();
        return Err(error);
    }
    let made = make(git, from, wish, &kept, path).await;
    match made {
        Ok((record, warnings)) => Ok(Worktree {
            record,
            kept,
            lease,
            existed: false,
            warnings,
            common: from.common.clone(),
        }),
        Err(error) => {
            // Nothing was done in it: what there is of it can go.
            if let Ok(record) = kept.record() {
                match remove::remove(git, &from.common, &kept, &record).await {
                    Ok(removal) => delete(removal.trash).await,
                    Err(error) => tracing::warn!(%error, "a worktree that is half made stays"),
                }
            } else {
                kept.free();
            }
            Err(error)
        }
    }
}

/// Checks that nothing is at the place of a worktree, and that the repository knows of none there.
fn check_place(common: &Path, path: &Path) -> Result<(), CreateError> {
    if path.exists() {
        return Err(CreateError::Taken { path: path.to_owned() });
    }
    let Some(admin) = admin_of(common, path).map_err(CreateError::files(path))? else {
        return Ok(());
    };
    let reason = format!(
        "the repository has {} for it, whose directory is gone: `git worktree prune` removes that",
        shown(&admin)
    );
    Err(CreateError::Unusable { path: path.to_owned(), reason })
}

async fn delete(trash: Trash) {
    let _ = tokio::task::spawn_blocking(|| trash.delete()).await;
}

async fn make(
    git: &Git,
    from: &Checkout,
    wish: &Wish,
    kept: &Kept,
    path: PathBuf,
) -> Result<(Record, Vec<String>), CreateError> {
    check_plain(from)?;
    check_submodules(git, from).await?;
    let mut warnings = Vec::new();
    let base = base(git, from, wish, &mut warnings).await?;
    let mut record = Record {
        branch: wish.slug.branch(),
        slug: wish.slug.clone(),
        base,
        caller: from.top.clone(),
        caller_branch: from.branch.clone(),
        owner: wish.owner.clone(),
        made: now(),
        stage: Stage::Making,
        is_private: wish.is_private,
        is_out: wish.is_private,
        submodules: Vec::new(),
        links: Vec::new(),
        copies: Vec::new(),
        tip: String::new(),
        admin: PathBuf::new(),
        path,
    };
    branch::check_free(git, &from.common, &record.branch).await?;
    let write = |record: &Record| kept.write(record).map_err(CreateError::files(kept.path()));
    write(&record)?;
    // An agent's commit may be where only its own repository has it.
    home::fetch_commit(git, from, &record).await?;
    let begins = (record.branch.as_str(), record.base.as_str());
    let building = Building::new(kept, &record.path).map_err(CreateError::files(kept.path()))?;
    record.admin = add(git, &from.common, kept, &building, begins).await?;
    let path = building.at().to_owned();
    record.tip.clone_from(&record.base);
    write(&record)?;
    if wish.is_private {
        private::make(git, from, kept, &record, &wish.contents.sparse).await?;
        private::point(&path, &kept.private_repository()).map_err(CreateError::files(&path))?;
    }
    let git_dir = state::git_dir(kept, &record);
    let tamed;
    let git = if git.depends_on_place() {
        tamed = git.tamed(&git_dir).await?;
        &tamed
    } else {
        git
    };
    let at = || At::git_dir(&git_dir).work_tree(&path);
    let reset = git.run(at(), ["reset", "--hard", "--quiet", "HEAD"]).await;
    reset.map_err(|error| with_space(&path, error))?;
    // The index as it then is.
    replace_copy(&git_dir.join("index"), &kept.index())
        .map_err(CreateError::files(&kept.index()))?;
    if index::may_have_repositories(&kept.index(), &record.base) {
        record.submodules = inner_repositories(git, &at()).await?;
    }
    let put = contents::put(git, from, &path, &wish.contents).await?;
    warnings.extend(put.warnings);
    (record.links, record.copies) = (put.links, put.copies);
    // An ordinary one is left by the end of its process, which tells git nothing.
    let locked = if wish.is_private { Locked::Yes } else { Locked::No };
    put_in_place(building, &record, locked)?;
    record.stage = Stage::Ready;
    write(&record)?;
    Ok((record, warnings))
}

/// Makes sure that git can work in the repository of an agent that starts another one.
fn check_plain(from: &Checkout) -> Result<(), CreateError> {
    if PrivateRepository::at(&from.git_dir).is_none() {
        return Ok(());
    }
    match private::first_odd(&from.git_dir) {
        Some(odd) => {
            let text = "it is a link, a pipe or the like, which git must not follow";
            Err(CreateError::files(&odd)(io::Error::other(text)))
        }
        None => Ok(()),
    }
}

/// Opens a worktree that is there.
async fn open(
    git: &Git,
    from: &Checkout,
    kept: &Kept,
    wish: &Wish,
    path: PathBuf,
) -> Result<Worktree, CreateError> {
    let lease = kept.lease().map_err(CreateError::files(kept.path()))?;
    let Some(lease) = lease else {
        let process = kept.holder().unwrap_or_default();
        return Err(CreateError::InUse { path, process });
    };
    let record = match kept.record() {
        Ok(record) if record.stage == Stage::Ready && record.path.is_dir() => record,
        // A process died while it made or removed it: nothing was done in it. What cannot be removed
        // stays, and so does its name.
        Ok(record) if record.stage != Stage::Ready => {
            let removed = remove::remove(git, &from.common, kept, &record).await;
            let trash = removed.and_then(Removal::whole).map_err(|source| match source.kind() {
                io::ErrorKind::AlreadyExists => CreateError::Taken { path: path.clone() },
                _ => CreateError::Files { path: path.clone(), source },
            })?;
            delete(trash).await;
            drop(lease);
            return Box::pin(create(git, from, wish)).await;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && !path.exists() && kept.free() => {
            drop(lease);
            return Box::pin(create(git, from, wish)).await;
        }
        Ok(record) if !path.exists() => {
            let gone = "its directory is gone: `centurion worktrees clean` with its name removes what is left";
            let reason = entry::moved(&record).map(|to| entry::explain_moved(&record, &to));
            return Err(CreateError::Unusable { path, reason: reason.unwrap_or(gone.to_owned()) });
        }
        _ => return Err(CreateError::Taken { path }),
    };
    // A merge of it was broken off: what it is at is not decided.
    if !matches!(kept.merge(), Ok(None)) {
        return Err(CreateError::Left { path });
    }
    let is_home = !state::is_out(kept, &record);
    if !wish.is_private && !is_home {
        return Err(CreateError::Left { path });
    }
    let begun = match (wish.is_private && is_home).then_some(&record) {
        Some(record) => Operation::at_home(git, record).await?,
        None => None,
    };
    if let Some(operation) = begun {
        // Only the repository knows of it: the agent's git could not continue with it.
        let reason = operation.explain(&record);
        return Err(CreateError::Unusable { path, reason });
    }
    let record = if wish.is_private && record.is_private {
        ordinary::take_out(git, &from.common, kept, record).await?
    } else {
        record
    };
    let common = from.common.clone();
    Ok(Worktree { record, kept: kept.clone(), lease, existed: true, warnings: Vec::new(), common })
}

/// The commit that the worktree begins at.
async fn base(
    git: &Git,
    from: &Checkout,
    wish: &Wish,
    warnings: &mut Vec<String>,
) -> Result<String, CreateError> {
    if !wish.is_fresh {
        return Ok(from.head.clone());
    }
    let at = || At::git_dir(&from.common);
    let name = "refs/remotes/origin/HEAD^{commit}";
    match git.run(at(), ["rev-parse", "--verify", "--quiet", name]).await {
        Ok(id) => Ok(id.trim().to_owned()),
        Err(GitError::Failed { .. }) => {
            let reason =
                "the default branch of origin is not known (git remote set-head origin -a)";
            warnings.push(format!("{reason}: the worktree begins at the present commit"));
            Ok(from.head.clone())
        }
        Err(error) => Err(error.into()),
    }
}

/// A worktree has the commits of submodules and not their files: what is changed there would be missed.
async fn check_submodules(git: &Git, from: &Checkout) -> Result<(), CreateError> {
    if !index::may_have_repositories(&from.git_dir.join("index"), &from.head) {
        return Ok(());
    }
    for path in inner_repositories(git, &from.at()).await? {
        let top = from.top.join(&path);
        let Some(git_dir) = git_dir_of(&top) else { continue };
        if let Some(odd) = pipes::first_in(&top) {
            let text = "it is a pipe or the like, which git would wait for";
            return Err(CreateError::files(&odd)(io::Error::other(text)));
        }
        // A repository of its own, which the caller may write to, with programs of its own.
        let shadow = Shadow::of(git, &git_dir, Some(&from.common)).await?;
        let args =
            ["status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=dirty"];
        let inner = git.run(shadow.at(&top), args).await?;
        drop(shadow);
        let args = ["diff-files", "--ignore-submodules=dirty", "--name-only", "--"];
        let args = args.iter().map(OsStr::new).chain([path.as_os_str()]);
        let moved = git.run(from.at(), args).await?;
        if !inner.is_empty() || !moved.is_empty() {
            return Err(CreateError::Submodule(shown(&path)));
        }
    }
    Ok(())
}

/// The git directory of a submodule that is checked out.
fn git_dir_of(top: &Path) -> Option<PathBuf> {
    let file = top.join(".git");
    if file.is_dir() {
        return Some(file);
    }
    top.join(private::pointed(top)?).canonicalize().ok()
}

/// Whether git has a worktree locked that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    Yes,
    No,
}

/// Moves a worktree that is whole to its place.
pub(crate) fn put_in_place(
    building: Building,
    record: &Record,
    locked: Locked,
) -> Result<(), CreateError> {
    let files = CreateError::files(&record.path);
    building.finish().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CreateError::Taken { path: record.path.clone() },
        _ => files(error),
    })?;
    if locked == Locked::No {
        let file = record.admin.join("locked");
        remove_if_there(&file).map_err(CreateError::files(&file))?;
    }
    Ok(())
}

/// Notes a worktree in the repository and makes its branch, without files; the directory of that note. Git has it locked
/// until it is in its place: it prunes the note of a worktree that is not there. Where git has to do it, one after the other:
/// git itself looks at the worktrees that are being made.
pub(crate) async fn add(
    git: &Git,
    common: &Path,
    kept: &Kept,
    building: &Building,
    (branch, base): (&str, &str),
) -> Result<PathBuf, CreateError> {
    let path = building.place();
    // The branch comes first, in a step of its own: `git worktree add` can then be run again.
    if !own_branch::make(common, kept, branch, base).map_err(CreateError::files(common))? {
        let (name, zero) = (format!("refs/heads/{branch}"), "0".repeat(base.len()));
        let args = ["update-ref", "-m", "branch: Created by centurion", &name, base, &zero];
        git.run(At::git_dir(common), args).await?;
    }
    let registered = register(common, kept, building, branch);
    if let Some(admin) = registered.map_err(CreateError::files(path))? {
        return Ok(admin);
    }
    let lock = Exclusive::Adding;
    let held = lock.wait(common).await.map_err(CreateError::files(&lock.path(common)))?;
    let (at, reason) = (building.at().display().to_string(), lock_reason());
    let args = ["worktree", "add", "--quiet", "--no-checkout", "--lock", "--reason", &reason];
    git.run(At::git_dir(common), args.iter().chain(&[at.as_str(), branch])).await?;
    drop(held);
    let admin = admin_of(common, building.at()).map_err(CreateError::files(path))?;
    let admin = admin.ok_or_else(|| CreateError::Taken { path: path.to_owned() })?;
    lead_to(&admin, path).map_err(CreateError::files(&admin))?;
    Ok(admin)
}

/// A file system with less room than this is as good as full.
const LITTLE: u64 = 1024 * 1024;

/// Git says which file it cannot write, and not that there is no room for it.
fn with_space(path: &Path, error: GitError) -> CreateError {
    match rustix::fs::statvfs(path) {
        Ok(stat) if stat.f_bavail.saturating_mul(stat.f_frsize) < LITTLE => {
            let text = format!("no space is left on the file system: {error}");
            let source = io::Error::new(io::ErrorKind::StorageFull, text);
            CreateError::Files { path: path.to_owned(), source }
        }
        _ => error.into(),
    }
}

impl Worktree {
    /// The repository that its agent's git uses, if that is its own.
    pub fn private_repository(&self) -> Option<PrivateRepository> {
        let path = self.kept.private_repository();
        self.record.is_private.then(|| PrivateRepository::at(&path)).flatten()
    }
}
