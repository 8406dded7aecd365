//! Bringing the work of a worktree into the caller's checkout.
//!
//! The commits are made beside all checkouts. Then the caller's checkout is moved to the last of them by a fast-forward,
//! which leaves alone whatever was changed there in other files. What that is about is written down first (`note.rs`), so
//! that one that breaks off is finished or taken back (`interrupted.rs`).

mod interrupted;
mod note;
mod touched;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::checkout::{Checkout, CheckoutError};
use crate::entry::{Entry, Standing, explain_moved};
use crate::files::replace_copy;
use crate::git::{At, Git, GitError};
use crate::kept::{Ignored, uncommitted};
use crate::lock::Exclusive;
use crate::names::{for_shell, shown as shown_path};
use crate::operation::Operation;
use crate::record::{Kept, Record};
use crate::report::{distance, try_merge};
use crate::saved::SavedNames;
use crate::snapshot::{add_all, ours};
use crate::state;
use crate::whole_index::unhide;
use crate::worktrees::{Worktrees, check_plain};

use self::interrupted::take_back;
pub use self::interrupted::{MendedMerge, MergeEnd};
use self::note::{MergeNote, RestNote};
use self::touched::{look, touched};

/// Way to bring commits over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// A merge; a fast-forward where that is one.
    Merge,
    /// One commit with all changes.
    Squash,
    /// Each commit again, on top of the caller's.
    Rebase,
    /// The same with some commits only.
    CherryPick(Vec<String>),
}

/// A file that a merge may not change, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRefusal {
    pub file: PathBuf,
    pub reason: String,
}

/// Parameters of a merge.
#[derive(Clone, Copy)]
pub struct Merge<'a> {
    pub how: &'a How,
    /// Message of new commits.
    pub message: &'a str,
    /// Looks at the files that would change, before anything does; says why not.
    pub check: &'a (dyn Fn(&[PathBuf]) -> Result<(), FileRefusal> + Sync),
}

impl<'a> Merge<'a> {
    /// One that may change any file.
    pub fn any(how: &'a How, message: &'a str) -> Self {
        Self { how, message, check: &|_| Ok(()) }
    }
}

/// Result of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The commit that the caller's checkout was at, and is at now.
    pub from: String,
    pub to: String,
    /// Number of commits made or brought over.
    pub commits: u64,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

/// Reasons for which nothing was merged. Everything is as it was.
#[derive(Debug, Error)]
pub enum MergeError {
    #[error("there is no worktree `{0}`")]
    Unknown(String),
    #[error("process {0} uses the worktree: wait until its agent has ended")]
    InUse(String),
    #[error("the worktree is not in order: `centurion worktrees clean` mends it")]
    Left,
    /// Another merge into the same checkout was broken off.
    #[error(
        "a merge of {0} into this checkout was broken off: `centurion worktrees clean` mends it"
    )]
    BrokenOff(String),
    /// Something of git's was begun in the worktree and not ended.
    #[error("{0}")]
    Operation(String),
    /// The worktree is at another place.
    #[error("{0}")]
    Moved(String),
    #[error("conflicts in {}: nothing was changed", files.join(", "))]
    Conflicts {
        files: Vec<String>,
        /// The commit that could not be made again.
        commit: Option<String>,
        /// Commands after which the work can be merged.
        help: String,
    },
    #[error("nothing was merged: it changes {}: {}", shown_path(&.0.file), .0.reason)]
    Refused(FileRefusal),
    #[error("there is nothing to merge: the branch has no commit that is not in {0} already")]
    Nothing(String),
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Worktrees {
    /// Merges what was done in a worktree into the checkout around a directory. What is not committed there is
    /// committed on its branch first, with this message.
    pub async fn merge(
        &self,
        directory: &Path,
        entry: &Entry,
        &Merge { how, message, check }: &Merge<'_>,
    ) -> Result<Merged, MergeError> {
        let record = usable(entry)?;
        let in_use = || MergeError::InUse(entry.kept.holder().unwrap_or_default());
        let lease = entry.kept.lease().map_err(GitError::from)?.ok_or_else(in_use)?;
        let common = self.checkout(directory).await?.common;
        let _held = Exclusive::Merging.wait(&common).await.map_err(GitError::from)?;
        // Its commit once no other process merges into it.
        let into = self.checkout(directory).await?;
        check_order(&into)?;
        let git = &self.git.tamed(&into.git_dir).await?;
        let (mut rest, mut notes) = (None, Vec::new());
        let mut tip = state::head(git, &into.common, record).await?;
        if entry.standing == Standing::Kept {
            if let Some(operation) = Operation::at_home(git, record).await? {
                return Err(MergeError::Operation(operation.explain(record)));
            }
            check_plain(&entry.kept, record).map_err(GitError::from)?;
            // Configuration may depend on where git works.
            let there = git.tamed(&record.admin).await?;
            let found = commit_rest(&there, &into.common, record, (&tip, message)).await?;
            (rest, notes) = (found.rest, found.note.into_iter().collect());
            tip = rest.as_ref().map_or(tip, |rest| rest.commit.clone());
        }
        let tip = tip.as_str();
        let (ahead, behind) = distance(git, &into.git_dir, (&into.head, tip)).await?;
        if ahead == 0 {
            let name = into.branch.clone().unwrap_or_else(|| into.head.clone());
            return Err(MergeError::Nothing(name));
        }
        let to = match how {
            How::Merge if behind == 0 => Ok(tip.to_owned()),
            _ => commits(git, &into, tip, how, message).await,
        };
        let to = to.map_err(|error| error.with_help(&into, entry, record, how, rest.is_some()))?;
        let files = touched(git, &into, (&into.head, &to)).await?;
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        check(&paths).map_err(MergeError::Refused)?;
        let (commits, _) = distance(git, &into.git_dir, (&into.head, &to)).await?;
        let seen = look(git, &into, &into.head, files).await?;
        let aside = seen.iter().filter(|seen| !seen.is_before());
        let set_aside = aside.map(|seen| seen.file.path.as_os_str().as_bytes().to_owned());
        let note = MergeNote {
            top: into.top.clone(),
            from: into.head.clone(),
            to: to.clone(),
            set_aside: set_aside.collect(),
            rest,
        };
        fast_forward(git, &into, &entry.kept, &note).await?;
        // From here on it is done, whatever else fails. What is not, is mended later.
        let taken = match &note.rest {
            Some(rest) => take_over(git, record, rest).await,
            None => Ok(None),
        };
        match taken.and_then(|moved| entry.kept.forget_merge().map(|()| moved).map_err(Into::into))
        {
            Ok(moved) => notes.extend(moved),
            Err(error) => {
                let branch = &record.branch;
                notes.push(format!(
                    "{branch} itself is not in order ({error}): `centurion worktrees clean` mends it"
                ));
            }
        }
        drop(lease);
        Ok(Merged { from: into.head, to, commits, notes })
    }
}

/// Makes sure that no earlier merge has left the checkout between two commits.
fn check_order(into: &Checkout) -> Result<(), MergeError> {
    for kept in Kept::all(&into.common).map_err(GitError::from)? {
        // Unreadable records are reported with their own worktree.
        if let Ok(Some(note)) = kept.merge()
            && note.top == into.top
        {
            let name = kept.path().file_name().unwrap_or_default();
            return Err(MergeError::BrokenOff(shown_path(name)));
        }
    }
    Ok(())
}

/// Moves the caller's checkout to a commit that is built on its own, with all of its files or not at all.
async fn fast_forward(
    git: &Git,
    into: &Checkout,
    kept: &Kept,
    note: &MergeNote,
) -> Result<(), GitError> {
    kept.write_merge(note)?;
    let at = || into.at();
    let args = [
        "merge",
        "--ff-only",
        "--quiet",
        "--no-squash",
        "--commit",
        "--no-autostash",
        "--no-verify-signatures",
        "--no-overwrite-ignore",
        &note.to,
    ];
    let Err(error) = git.run(at(), args).await else { return Ok(()) };
    // Git changes the files before the branch: what is so counts, and not how git ended. What cannot be found out or taken
    // back now stays written down. Either way, the first reason is the one that counts.
    let Ok(now) = git.run(at(), ["rev-parse", "--verify", "HEAD"]).await else { return Err(error) };
    let is_back = match now.trim() {
        now if now == note.to => return Ok(()),
        now if now == note.from => take_back(git, into, note).await,
        // Another process moved it, so that git refused.
        _ => Ok(()),
    };
    match is_back {
        Ok(()) => kept.forget_merge()?,
        Err(cause) => tracing::warn!(%cause, "a merge that failed is not taken back yet"),
    }
    Err(error)
}

/// The record of a worktree that can be merged.
fn usable(entry: &Entry) -> Result<&Record, MergeError> {
    match (&entry.record, &entry.standing) {
        (_, Standing::InUse { process }) => Err(MergeError::InUse(process.clone())),
        (Some(record), Standing::Kept | Standing::Gone) => Ok(record),
        (Some(record), Standing::Paused { operation }) => {
            Err(MergeError::Operation(operation.explain_out(record)))
        }
        (Some(record), Standing::Moved { to }) => Err(MergeError::Moved(explain_moved(record, to))),
        _ => Err(MergeError::Left),
    }
}

impl MergeError {
    /// Says of conflicts how they can be solved: where the work is, so that the caller's checkout stays as it is.
    fn with_help(
        mut self,
        into: &Checkout,
        entry: &Entry,
        record: &Record,
        how: &How,
        has_rest: bool,
    ) -> Self {
        let Self::Conflicts { commit, help, .. } = &mut self else { return self };
        let name = into.branch.as_deref().unwrap_or(&into.head);
        let (here, there) = (for_shell(&into.top), for_shell(&record.path));
        *help = match (how, commit) {
            (How::CherryPick(_), Some(commit)) => {
                format!("`git -C {here} cherry-pick {commit}`, and solve the conflicts there")
            }
            _ if entry.standing == Standing::Gone => {
                format!("`git -C {here} merge {}`, and solve the conflicts there", record.branch)
            }
            (_, commit) => {
                let open = format!("`git -C {there} add -A`, `git -C {there} commit -m Work`, ");
                let open = if has_rest { open.as_str() } else { "" };
                let verb = if commit.is_some() { "rebase" } else { "merge" };
                format!(
                    "{open}`git -C {there} {verb} {name}`; solve the conflicts there and continue with `git -C {there} {verb} \
                     --continue`; then merge {} again",
                    entry.name()
                )
            }
        };
        self
    }
}

/// Makes the commits that are brought over; the last of them.
async fn commits(
    git: &Git,
    into: &Checkout,
    tip: &str,
    how: &How,
    message: &str,
) -> Result<String, MergeError> {
    match how {
        How::Merge => merge_commit(git, into, tip, message, &[&into.head, tip]).await,
        How::Squash => merge_commit(git, into, tip, message, &[&into.head]).await,
        How::Rebase => {
            let range = format!("{}..{tip}", into.head);
            let args = ["rev-list", "--reverse", "--no-merges", "--topo-order", &range];
            let listed = git.run(At::git_dir(&into.git_dir), args).await?;
            again(git, into, listed.lines()).await
        }
        How::CherryPick(commits) => again(git, into, commits.iter().map(String::as_str)).await,
    }
}

/// Path of the index that has the uncommitted files.
fn rest_index(record: &Record) -> PathBuf {
    record.admin.join("centurion-index")
}

/// Commits made of the uncommitted files of a worktree.
#[derive(Default)]
struct RestFound {
    rest: Option<RestNote>,
    note: Option<String>,
}

/// Makes a commit of what is not committed in a worktree, beside its branch and its index. What is staged and is in no
/// file is kept beside it.
async fn commit_rest(
    git: &Git,
    common: &Path,
    record: &Record,
    (head, message): (&str, &str),
) -> Result<RestFound, GitError> {
    if uncommitted(git, &record.admin, record, Ignored::LeftOut).await?.is_empty() {
        return Ok(RestFound::default());
    }
    let index = rest_index(record);
    replace_copy(&record.admin.join("index"), &index)?;
    let at = || record.at_home().index(&index);
    let staged = git.run(at(), ["write-tree"]).await?;
    unhide(git, &at()).await?;
    add_all(git, &at(), record, &[]).await?;
    let files = git.run(at(), ["write-tree"]).await?;
    let committed = git.run(at(), ["rev-parse", &format!("{head}^{{tree}}")]).await?;
    let mut found = RestFound::default();
    let identified = || identified(git, at());
    if ![&files, &committed].contains(&&staged) {
        let message = format!("What was staged in {}", record.branch);
        let args = ["commit-tree", staged.trim(), "-p", head, "-m", &message];
        let commit = git.run(identified().await, args).await?;
        let mut names = SavedNames::load(git, common, record).await?;
        names.keep(commit.trim(), "staged");
        for (id, name) in names.wanted() {
            git.run(At::git_dir(common), ["update-ref", name, id]).await?;
            found.note = Some(format!("what was staged and is in none of its files is in {name}"));
        }
    }
    if files != committed {
        let args = ["commit-tree", files.trim(), "-p", head, "-m", message];
        let commit = git.run(identified().await, args).await?.trim().to_owned();
        let (tip, staged) = (head.to_owned(), staged.trim().to_owned());
        found.rest = Some(RestNote { tip, commit, staged });
    }
    Ok(found)
}

/// Has a worktree be at the commit that was made of what was not committed; says so where another hand has moved it since.
/// Can be called again where it was broken off.
async fn take_over(
    git: &Git,
    record: &Record,
    rest: &RestNote,
) -> Result<Option<String>, GitError> {
    let at = || record.at_home();
    let index = rest_index(record);
    let head = git.run(at(), ["rev-parse", "--verify", "HEAD"]).await?;
    if ![&rest.commit, &rest.tip].contains(&&head.trim().to_owned()) {
        return Ok(Some(format!("{} stays where it was moved to", record.branch)));
    }
    if head.trim() != rest.commit {
        let args = ["update-ref", "-m", "centurion: what was not committed", "HEAD"];
        git.run(at(), args.iter().chain(&[rest.commit.as_str(), &rest.tip])).await?;
    }
    // The last step of all: where it is not there any more, that was done.
    if index.exists() && git.run(at(), ["write-tree"]).await?.trim() == rest.staged {
        std::fs::rename(index, record.admin.join("index"))?;
    }
    Ok(None)
}

/// With the user's name where there is one.
async fn identified<'a>(git: &Git, at: At<'a>) -> At<'a> {
    let known = git.try_run(at.clone(), ["var", "GIT_COMMITTER_IDENT"]).await;
    if known.is_ok_and(|output| output.code == Some(0)) { at } else { ours(at) }
}

/// Makes the commit of a merge.
async fn merge_commit(
    git: &Git,
    into: &Checkout,
    tip: &str,
    message: &str,
    parents: &[&str],
) -> Result<String, MergeError> {
    let tree = try_merge(git, &into.git_dir, None, (&into.head, tip)).await?;
    let tree = tree.map_err(|files| conflicts(files, None))?;
    let mut args = vec!["commit-tree", &tree, "-m", message];
    args.extend(parents.iter().flat_map(|parent| ["-p", parent]));
    let at = identified(git, At::git_dir(&into.git_dir)).await;
    Ok(git.run(at, args).await?.trim().to_owned())
}

fn conflicts(files: Vec<String>, commit: Option<String>) -> MergeError {
    MergeError::Conflicts { files, commit, help: String::new() }
}

/// Makes commits again on top of the caller's; the last of them.
async fn again(
    git: &Git,
    into: &Checkout,
    commits: impl Iterator<Item = &str>,
) -> Result<String, MergeError> {
    let mut onto = into.head.clone();
    for commit in commits {
        let git_dir = &into.git_dir;
        let name = format!("{commit}^{{commit}}");
        let args = ["rev-parse", "--verify", "--end-of-options", &name];
        let commit = git.run(At::git_dir(git_dir), args).await?;
        let format = "--format=%H%x00%P%x00%an%x00%ae%x00%aI%x00%B";
        let said =
            git.run(At::git_dir(git_dir), ["show", "--no-patch", format, commit.trim()]).await?;
        let mut fields = said.splitn(6, '\0');
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let (id, parents) = (field(), field());
        let (name, email, date, message) = (field(), field(), field(), field());
        let base = parents.split(' ').next().filter(|parent| !parent.is_empty());
        let tree = try_merge(git, git_dir, base, (&onto, &id)).await?;
        let tree = tree.map_err(|files| conflicts(files, Some(id.clone())))?;
        let at = identified(git, At::git_dir(git_dir)).await;
        let at = at
            .variable("GIT_AUTHOR_NAME", name)
            .variable("GIT_AUTHOR_EMAIL", email)
            .variable("GIT_AUTHOR_DATE", date)
            .input(message.as_bytes());
        let args = ["commit-tree", &tree, "-p", &onto, "-F", "-"];
        let made = git.run(at, args).await?;
        made.trim().clone_into(&mut onto);
    }
    Ok(onto)
}
