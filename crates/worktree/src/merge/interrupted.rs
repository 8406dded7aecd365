//! Merges that broke off while the caller's checkout was moved: they are finished, or taken back.
//!
//! Only files are changed that are exactly what one of the two commits has, or a part of it. Whatever another hand made of a
//! file stays as it is, and is named.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use centurion_files::{Existing, Location};

use super::note::MergeNote;
use super::take_over;
use super::touched::{CheckoutFile, Of, OnDisk, content, look, touched};
use crate::checkout::{Checkout, CheckoutError};
use crate::entry::Entry;
use crate::git::{At, Git, GitError};
use crate::lock::Exclusive;
use crate::names::{self, for_shell, shown};
use crate::place;
use crate::record::Record;
use crate::worktrees::Worktrees;

/// Fate of a merge that a dead process left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeEnd {
    /// The checkout is at the commit that it was to be at.
    Finished,
    /// It is as it was before.
    TakenBack,
    /// Another hand has moved it since: nothing was changed.
    Elsewhere,
}

/// A merge that was looked after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MendedMerge {
    /// The checkout that was to be moved, and where it is now.
    pub into: PathBuf,
    pub end: MergeEnd,
    /// The commits that it was between.
    pub from: String,
    pub to: String,
    /// Files that are neither as before nor as after the merge: they stay as they are.
    pub stays: Vec<String>,
    /// Further notes for the user.
    pub notes: Vec<String>,
}

impl fmt::Display for MendedMerge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |id: &str| id.get(..12).unwrap_or(id).to_owned();
        let (into, from, to) = (shown(&self.into), short(&self.from), short(&self.to));
        write!(f, "its merge into {into} was broken off ")?;
        match self.end {
            MergeEnd::Finished => write!(f, "and is finished: {to} is checked out there")?,
            MergeEnd::TakenBack => {
                write!(f, "and is taken back: {from} is checked out there, as before")?;
            }
            MergeEnd::Elsewhere => {
                write!(
                    f,
                    "between {from} and {to}; the checkout is elsewhere now: nothing was changed"
                )?;
            }
        }
        if !self.stays.is_empty() {
            let files = self.stays.join(", ");
            write!(f, "; another hand changed {files}, which stays as it is")?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}

impl Worktrees {
    /// Finishes a merge that was broken off, or takes it back.
    pub(crate) async fn mend_merge(
        &self,
        common: &Path,
        entry: &Entry,
        record: &Record,
    ) -> Result<Option<MendedMerge>, GitError> {
        let _held = Exclusive::Merging.wait(common).await?;
        let Some(note) = entry.kept.merge()? else { return Ok(None) };
        let mut mended = MendedMerge {
            into: note.top.clone(),
            end: MergeEnd::Elsewhere,
            from: note.from.clone(),
            to: note.to.clone(),
            stays: Vec::new(),
            notes: Vec::new(),
        };
        let into = match self.checkout(&note.top).await {
            Ok(into) => into,
            Err(CheckoutError::Directory { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                mended.notes.push("the checkout is gone".to_owned());
                entry.kept.forget_merge()?;
                return Ok(Some(mended));
            }
            Err(error) => return Err(io::Error::other(error).into()),
        };
        if into.common != common || into.top != note.top {
            return Err(io::Error::other("its merge speaks of another repository").into());
        }
        let git = &self.git.tamed(&into.git_dir).await?;
        if is_in(git, &into, &note.to).await? {
            mended.end = MergeEnd::Finished;
        } else if into.head == note.from {
            (mended.end, mended.stays) = finish_or_take_back(git, &into, &note).await?;
        }
        if let Some(rest) = note.rest.as_ref().filter(|_| mended.end == MergeEnd::Finished) {
            mended.notes.extend(take_over(git, record, rest).await?);
        }
        entry.kept.forget_merge()?;
        Ok(Some(mended))
    }
}

/// Checks that a checkout is at a commit.
async fn is_in(git: &Git, into: &Checkout, commit: &str) -> Result<bool, GitError> {
    let args = ["merge-base", "--is-ancestor", commit, &into.head];
    Ok(git.try_run(At::git_dir(&into.git_dir), args).await?.code == Some(0))
}

/// A file by which git keeps other processes from a checkout.
fn check_lock(into: &Checkout) -> io::Result<()> {
    let lock = into.git_dir.join("index.lock");
    if fs::symlink_metadata(&lock).is_err() {
        return Ok(());
    }
    let (top, lock) = (shown(&into.top), for_shell(&lock));
    Err(io::Error::other(format!(
        "a git works in {top}, or died there: if none does, `rm {lock}`, and then run `centurion worktrees clean`"
    )))
}

/// States of the files to change in a checkout between the two commits.
async fn between(
    git: &Git,
    into: &Checkout,
    note: &MergeNote,
) -> Result<Vec<CheckoutFile>, GitError> {
    let files = touched(git, into, (&note.from, &note.to)).await?;
    let is_ours = |path: &Path| !note.set_aside.iter().any(|it| names::path(it) == path);
    let files = files.into_iter().filter(|file| is_ours(&file.path)).collect();
    look(git, into, &note.from, files).await
}

/// Ends a merge that broke off before the branch was moved.
async fn finish_or_take_back(
    git: &Git,
    into: &Checkout,
    note: &MergeNote,
) -> Result<(MergeEnd, Vec<String>), GitError> {
    check_lock(into)?;
    let seen = between(git, into, note).await?;
    let is_whole = |seen: &CheckoutFile| {
        let on_disk = seen.on_disk;
        seen.staged == Of::After && !matches!(on_disk, OnDisk::Torn | OnDisk::Is(Of::Before))
    };
    if seen.is_empty() || !seen.iter().all(is_whole) {
        let stays = put_back(git, into, &seen).await?;
        return Ok((MergeEnd::TakenBack, stays));
    }
    // Only the branch is missing.
    let reason = format!("merge {}: Fast-forward", note.to);
    let args = ["update-ref", "-m", &reason, "HEAD", &note.to, &note.from];
    git.run(into.at(), args).await?;
    Ok((MergeEnd::Finished, Vec::new()))
}

/// Takes a merge back that git gave up, as far as something was changed.
pub(super) async fn take_back(
    git: &Git,
    into: &Checkout,
    note: &MergeNote,
) -> Result<(), GitError> {
    let seen = between(git, into, note).await?;
    if seen.iter().all(CheckoutFile::is_before) {
        return Ok(());
    }
    check_lock(into)?;
    put_back(git, into, &seen).await.map(|_| ())
}

/// Gives the index and the files of a checkout back what they were; the files that another hand made something of.
async fn put_back(
    git: &Git,
    into: &Checkout,
    seen: &[CheckoutFile],
) -> Result<Vec<String>, GitError> {
    let is_others = |seen: &&CheckoutFile| {
        seen.staged == Of::Neither || seen.on_disk == OnDisk::Is(Of::Neither)
    };
    let stays = seen.iter().filter(is_others).map(|it| shown(&it.file.path)).collect();
    stage_before(git, into, seen).await?;
    let is_ours = |seen: &&CheckoutFile| {
        seen.staged != Of::Neither && matches!(seen.on_disk, OnDisk::Torn | OnDisk::Is(Of::After))
    };
    let (there, new): (Vec<&CheckoutFile>, Vec<&CheckoutFile>) =
        seen.iter().filter(is_ours).partition(|seen| seen.file.before.is_some());
    for seen in new {
        remove(&into.top, &seen.file.path)?;
    }
    let input = names::joined(there.iter().map(|seen| &seen.file.path));
    if !input.is_empty() {
        let at = into.at().input(&input);
        git.run(at, ["checkout-index", "--force", "--index", "-z", "--stdin"]).await?;
    }
    Ok(stays)
}

/// Has the index be what it was before, in one step.
async fn stage_before(git: &Git, into: &Checkout, seen: &[CheckoutFile]) -> Result<(), GitError> {
    let staged: Vec<&CheckoutFile> = seen.iter().filter(|seen| seen.staged == Of::After).collect();
    let line = |mode: &str, id: &str, path: &PathBuf| {
        let head = format!("{mode} {id}\t").into_bytes();
        [head, names::joined([path])].concat()
    };
    // A file may be in the way of a directory: first out, then in.
    let out = staged.iter().filter(|it| it.file.before.is_none());
    let out = out.map(|it| line("0", &"0".repeat(into.head.len()), &it.file.path));
    let back = staged.iter().filter_map(|it| {
        it.file.before.as_ref().map(|side| line(&side.mode, &side.id, &it.file.path))
    });
    let input: Vec<u8> = out.chain(back).flatten().collect();
    if input.is_empty() {
        return Ok(());
    }
    let at = || into.at();
    let args = ["update-index", "--add", "--remove", "--replace", "-z", "--index-info"];
    git.run(at().input(&input), args).await?;
    let is_left_out = |seen: &&&CheckoutFile| {
        seen.on_disk == OnDisk::LeftOut && seen.file.before.is_some() && !seen.file.is_repository()
    };
    let left_out = names::joined(staged.iter().filter(is_left_out).map(|seen| &seen.file.path));
    if !left_out.is_empty() {
        let args = ["update-index", "--skip-worktree", "-z", "--stdin"];
        git.run(at().input(&left_out), args).await?;
    }
    Ok(())
}

/// Removes a file of a checkout that a merge brought, and the directories that are empty then.
fn remove(top: &Path, path: &Path) -> io::Result<()> {
    let at = top.join(path);
    let metadata = match fs::symlink_metadata(&at) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // No link leads to it.
    let location = Location::open(&at)?;
    let opened = place::open(top)?;
    let above = opened.directory(path.parent().unwrap_or(Path::new("")))?;
    if metadata.is_symlink() {
        fs::remove_file(above.at(path.file_name().unwrap_or_default()))?;
    } else {
        let (file, metadata) = centurion_files::open_regular(&at).map_err(io::Error::other)?;
        let existing = Existing { location, file, metadata, bytes: content(&at)? };
        existing.remove().map_err(io::Error::other)?;
    }
    let above = path.ancestors().skip(1).take_while(|it| !it.as_os_str().is_empty());
    for directory in above {
        let (Some(outer), Some(name)) = (directory.parent(), directory.file_name()) else { break };
        let removed = opened.directory(outer).and_then(|outer| fs::remove_dir(outer.at(name)));
        if removed.is_err() {
            break;
        }
    }
    Ok(())
}
