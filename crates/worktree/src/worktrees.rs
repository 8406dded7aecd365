//! The worktrees of a repository: those in use, those that were kept, and what a dead process left.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::checkout::{Checkout, CheckoutError};
use crate::create::{self, CreateError, Wish};
use crate::entry::{Entry, entry};
use crate::git::{Git, GitError};
use crate::home::{self, BroughtWork};
use crate::names::{for_shell, shown};
use crate::pipes;
use crate::private;
use crate::record::{Kept, Lease, Record};
use crate::remove::{self, Trash};
use crate::report::{self, Caller, Report};
use crate::salvage;
use crate::snapshot::{self, Uncommitted};
use crate::state::{self, Work};
use crate::untouched;

/// A worktree that this process uses.
#[derive(Debug)]
pub struct Worktree {
    pub record: Record,
    /// Set where the worktree existed before.
    pub existed: bool,
    /// Links and copies that could not be made.
    pub warnings: Vec<String>,
    pub(crate) common: PathBuf,
    pub(crate) kept: Kept,
    pub(crate) lease: Lease,
}

impl Worktree {
    /// The directories that links in it lead to.
    pub fn linked(&self) -> impl Iterator<Item = &Path> {
        self.record.links.iter().map(|(_, target)| target.as_path())
    }

    /// The git directory of the repository that it belongs to.
    pub fn common(&self) -> &Path {
        &self.common
    }
}

/// Result of the work in a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Nothing was done in it.
    Untouched,
    /// It is an ordinary worktree now.
    Kept(Box<Report>),
}

/// Fate of a worktree at the end of the work in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Nothing was done in it. What is to be deleted was put aside, since that may take long.
    Removed(Trash),
    /// It is an ordinary worktree now.
    Kept(Box<Report>),
}

/// The failure to bring work home. All of the work is where the agent left it.
#[derive(Debug, Error)]
#[error("the work in {} stays there, and is not in the repository: {source}", shown(.path))]
pub struct SettleError {
    pub path: PathBuf,
    pub branch: String,
    pub source: GitError,
}

impl SettleError {
    pub(crate) fn of(record: &Record) -> impl FnOnce(GitError) -> Self + use<> {
        let (path, branch) = (record.path.clone(), record.branch.clone());
        move |source| Self { path, branch, source }
    }
}

/// Makes and ends worktrees.
#[derive(Clone)]
pub struct Worktrees {
    pub(crate) git: Git,
}

impl Worktrees {
    pub fn new(git: Git) -> Self {
        Self { git }
    }

    /// The same for a repository that may name programs.
    pub(crate) async fn tamed(&self, git_dir: &Path) -> Result<Self, GitError> {
        Ok(Self { git: self.git.tamed(git_dir).await? })
    }

    /// The checkout around a directory.
    pub async fn checkout(&self, directory: &Path) -> Result<Checkout, CheckoutError> {
        Checkout::around(&self.git, directory).await
    }

    /// Makes a worktree for a caller that works in a directory, or opens the one that has the name.
    pub async fn create(&self, directory: &Path, wish: &Wish) -> Result<Worktree, CreateError> {
        let from = self.checkout(directory).await?;
        let git = self.git.tamed(&from.git_dir).await?;
        create::create(&git, &from, wish).await
    }

    /// The same for a caller in a worktree of a repository that is known. The `.git` there may be an agent's word.
    pub async fn create_in(
        &self,
        common: &Path,
        directory: &Path,
        wish: &Wish,
    ) -> Result<Worktree, CreateError> {
        let from = self.checkout(directory).await?;
        if from.common != common {
            let reason = format!("it is no checkout of {} any more", shown(common));
            return Err(CreateError::Unusable { path: directory.to_owned(), reason });
        }
        let git = self.git.tamed(&from.git_dir).await?;
        create::create(&git, &from, wish).await
    }

    /// Looks for the work done in a worktree so far.
    pub async fn work(&self, worktree: &Worktree) -> Result<Work, GitError> {
        let git = self.git.tamed(&state::git_dir(&worktree.kept, &worktree.record)).await?;
        state::look(&git, &worktree.kept, &worktree.record).await
    }

    /// Ends the work in a worktree: if something was done in it, its history is brought home. `caller` is where the work
    /// is to go. Nothing is removed.
    pub async fn finish(
        &self,
        worktree: &mut Worktree,
        caller: Option<&Path>,
    ) -> Result<Finished, SettleError> {
        let Worktree { record, common, kept, .. } = worktree;
        self.end(common, kept, record, caller).await
    }

    /// Lets a worktree go, and removes it if nothing was done in it.
    pub async fn settle(
        &self,
        mut worktree: Worktree,
        caller: Option<&Path>,
    ) -> Result<Settled, SettleError> {
        let finished = self.finish(&mut worktree, caller).await?;
        let Worktree { record, common, kept, lease, .. } = worktree;
        let settled = self.remove_if(finished, &common, &kept, record, caller).await;
        drop(lease);
        settled
    }

    pub(crate) async fn remove_if(
        &self,
        finished: Finished,
        common: &Path,
        kept: &Kept,
        mut record: Record,
        caller: Option<&Path>,
    ) -> Result<Settled, SettleError> {
        if let Finished::Kept(report) = finished {
            return Ok(Settled::Kept(report));
        }
        let reason = match remove::remove(&self.git, common, kept, &record).await {
            Ok(removal) => return Ok(Settled::Removed(removal.trash)),
            Err(error) => format!("nothing was done in it, and it could not be removed: {error}"),
        };
        let refused = SettleError::of(&record);
        let kept = self.keep(common, kept, &mut record, Work::default(), caller).await;
        let mut report = kept.map_err(refused)?;
        report.notes.push(reason);
        Ok(Settled::Kept(Box::new(report)))
    }

    pub(crate) async fn end(
        &self,
        common: &Path,
        kept: &Kept,
        record: &mut Record,
        caller: Option<&Path>,
    ) -> Result<Finished, SettleError> {
        let refused = SettleError::of(record);
        let ended = async {
            if untouched::is_sure(kept, record).await {
                return Ok(Finished::Untouched);
            }
            check_plain(kept, record)?;
            let tamed = self.tamed(&state::git_dir(kept, record)).await?;
            let mut work = Work::default();
            // Its files may be gone, by another hand. Its history may be there.
            if record.path.is_dir() {
                work = state::look(&tamed.git, kept, record).await?;
                if work.is_nothing() {
                    return Ok(Finished::Untouched);
                }
            }
            let report = tamed.keep(common, kept, record, work, caller).await?;
            Ok(Finished::Kept(Box::new(report)))
        };
        ended.await.map_err(refused)
    }

    pub(crate) async fn keep(
        &self,
        common: &Path,
        kept: &Kept,
        record: &mut Record,
        work: Work,
        caller: Option<&Path>,
    ) -> Result<Report, GitError> {
        let git = &self.git;
        let (mut brought, rest) = self.bring(common, kept, record, &work).await?;
        brought.notes.extend(rest.refusal);
        if brought.head != brought.tip {
            brought.notes.push(off_branch(record, &brought.tip));
        }
        let content = rest.commits.files.unwrap_or_else(|| brought.head.clone());
        let files = report::changed_files(git, common, (&record.base, &content)).await?;
        let caller = match caller {
            Some(directory) => Checkout::around(git, directory).await.ok(),
            None => None,
        };
        // An agent's `.git` may say anything.
        let caller = caller.filter(|from| from.common == *common);
        let git = &match &caller {
            Some(from) => git.tamed(&from.git_dir).await?,
            None => git.clone(),
        };
        let caller = caller.as_ref().map(|from| Caller {
            git_dir: &from.git_dir,
            head: &from.head,
            name: from.branch.as_deref().unwrap_or(&from.head),
        });
        let (ahead, behind) = match &caller {
            Some(it) => report::distance(git, it.git_dir, (it.head, &brought.head)).await?,
            None => report::distance(git, common, (&record.base, &brought.head)).await?,
        };
        let siblings = Self::siblings(common, record);
        let merges = report::try_merges(git, common, &content, caller.as_ref(), &siblings).await;
        Ok(Report {
            path: record.path.clone(),
            branch: record.branch.clone(),
            base: record.base.clone(),
            head: brought.head,
            ahead,
            behind,
            files,
            uncommitted: rest.count,
            ignored: work.ignored.len(),
            operation: brought.operation,
            saved: brought.saved,
            merges,
            notes: brought.notes,
        })
    }

    /// Brings home all that there is, or what is whole of it.
    async fn bring(
        &self,
        common: &Path,
        kept: &Kept,
        record: &mut Record,
        work: &Work,
    ) -> Result<(BroughtWork, Uncommitted), GitError> {
        let git = &self.git;
        let is_out = state::is_out(kept, record);
        let whole = async {
            let rest = snapshot::take(git, kept, record, work).await?;
            let brought = if is_out {
                home::bring(git, common, kept, record, &rest.commits).await?
            } else {
                home::stay(git, common, record, &rest.commits).await?
            };
            Ok((brought, rest))
        };
        let error = match whole.await {
            Err(error @ GitError::Failed { .. }) if is_out => error,
            done => return done,
        };
        let salvaged = salvage::bring(git, common, kept, record, work).await;
        let Some((brought, files)) = salvaged? else { return Err(error) };
        let changed = report::changed_files(git, common, (&brought.head, &files)).await?;
        let mut rest = Uncommitted { count: changed.len(), ..Uncommitted::default() };
        rest.commits.files = Some(files);
        Ok((brought, rest))
    }

    /// The other worktrees of the same session.
    fn siblings(common: &Path, record: &Record) -> Vec<Record> {
        let all = Kept::all(common).unwrap_or_default();
        let all = all.iter().filter_map(|kept| kept.record().ok());
        all.filter(|it| {
            it.slug != record.slug
                && it.owner.session.is_some()
                && it.owner.session == record.owner.session
        })
        .collect()
    }

    /// All worktrees that are known in the repository around a directory.
    pub async fn list(&self, directory: &Path) -> Result<Vec<Entry>, CreateError> {
        let from = self.checkout(directory).await?;
        let all = Kept::all(&from.common)
            .map_err(|source| CreateError::Files { path: from.common.clone(), source })?;
        Ok(all.into_iter().map(entry).collect())
    }

    /// Finds the directories that earlier processes put aside and did not delete.
    pub fn trash(&self, from: &Checkout) -> Trash {
        Trash::left(&from.worktrees())
    }
}

/// The note about a worktree whose `HEAD` is not its branch.
fn off_branch(record: &Record, tip: &str) -> String {
    let (branch, tip) = (&record.branch, tip.get(..12).unwrap_or(tip));
    format!("its HEAD, which this is about and which is merged, is not {branch}, which is at {tip}")
}

/// Makes sure that git can work in a private repository.
pub(crate) fn check_plain(kept: &Kept, record: &Record) -> io::Result<()> {
    if record.path.is_symlink() {
        let text = "is a link, in the place of a worktree: git must not follow it";
        return Err(io::Error::other(format!("{} {text}", shown(&record.path))));
    }
    if let Some(path) = pipes::first_in(&record.path) {
        let text = "is a pipe or the like, which git would wait for: remove it and run `centurion worktrees clean`";
        return Err(io::Error::other(format!("{} {text}", for_shell(&path))));
    }
    let own = kept.private_repository();
    match private::first_odd(&own).filter(|_| state::is_out(kept, record)) {
        Some(path) => Err(io::Error::other(format!(
            "its repository has links or pipes in it, which git must not follow: remove {} and run `centurion worktrees clean`",
            for_shell(&path)
        ))),
        None => Ok(()),
    }
}
