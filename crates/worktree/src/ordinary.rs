//! A worktree between its private repository and the one that it belongs to: brought home, it is an ordinary one; taken
//! out, it has its own repository again.

use std::fs;
use std::io;
use std::path::Path;

use centurion_files::private as kept_files;

use crate::branch;
use crate::files::{SHORT, read_text, remove_if_there, replace_copy};
use crate::git::{At, Git, GitError};
use crate::private;
use crate::record::{Kept, Record};
use crate::register::lock_reason;
use crate::state;

/// Position of an ordinary worktree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Head<'a> {
    /// On its own branch.
    Branch,
    Commit(&'a str),
}

/// Checks that the `HEAD` of a private repository is what its own branch is in the repository. One that has no commit comes
/// back to it.
pub(crate) fn is_on_branch(own: &Path, record: &Record, head: Option<&str>) -> io::Result<bool> {
    let Some(head) = head else { return Ok(true) };
    let text = read_text(&own.join("HEAD"), SHORT)?;
    Ok(text.trim() == format!("ref: refs/heads/{}", record.branch) && head == record.tip)
}

/// Makes the worktree one of the repository's: its index, its commit and its log go there, and its `.git` file leads there.
pub(crate) async fn become_ordinary(
    git: &Git,
    own: &Path,
    record: &Record,
    head: Head<'_>,
) -> Result<(), GitError> {
    let admin = &record.admin;
    let is_split = fs::read_dir(own)?
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("sharedindex."));
    let index = admin.join("index");
    replace_copy(&own.join("index"), &index)?;
    if is_split {
        let at = At::git_dir(own).work_tree(&record.path).index(&index);
        git.run(at, ["update-index", "--no-split-index"]).await?;
    }
    let branch = format!("refs/heads/{}", record.branch);
    let args = match head {
        Head::Branch => vec!["symbolic-ref", "HEAD", &branch],
        Head::Commit(id) => vec!["update-ref", "--no-deref", "HEAD", id],
    };
    git.run(At::git_dir(admin), args).await?;
    // Elsewhere, git has refs and logs in tables of its own.
    if !has_reftable(admin) {
        replace_copy(&own.join("logs/HEAD"), &admin.join("logs/HEAD"))?;
        replace_copy(&own.join("ORIG_HEAD"), &admin.join("ORIG_HEAD"))?;
    }
    private::point(&record.path, admin)?;
    remove_if_there(&admin.join("locked"))?;
    Ok(())
}

/// Gives a worktree that is an ordinary one its own repository again.
pub(crate) async fn take_out(
    git: &Git,
    common: &Path,
    kept: &Kept,
    record: Record,
) -> Result<Record, GitError> {
    let own = kept.private_repository();
    let admin = &record.admin;
    let reason = format!("{}\n", lock_reason());
    kept_files::write(&admin.join("locked"), reason.as_bytes())?;
    if state::is_out(kept, &record) {
        // A process died while it was out: it is as the agent left it.
        return Ok(record);
    }
    let name = format!("refs/heads/{}", record.branch);
    let tip = branch::tip(git, common, &record).await?;
    let tip = tip.unwrap_or_else(|| record.base.clone());
    let refs = private::refs(git, common, &record.branch, &tip).await?;
    kept_files::replace(&own.join("packed-refs"), refs.as_bytes())?;
    kept_files::replace(&kept.refs(), refs.as_bytes())?;
    remove_if_there(&own.join(&name))?;
    for part in ["index", "logs/HEAD"] {
        replace_copy(&admin.join(part), &own.join(part))?;
    }
    let at = At::git_dir(admin);
    let head = git.try_run(at, ["symbolic-ref", "--quiet", "HEAD"]).await?;
    let head = match head.code {
        Some(0) => format!("ref: {}", String::from_utf8_lossy(&head.stdout)),
        _ => format!("{}\n", state::head(git, common, &record).await?),
    };
    kept_files::replace(&own.join("HEAD"), head.as_bytes())?;
    private::point(&record.path, &own)?;
    let record = Record { tip, is_out: true, ..record };
    kept.write(&record)?;
    Ok(record)
}

/// Checks that git keeps the refs of a worktree in tables, and not in files.
pub(crate) fn has_reftable(admin: &Path) -> bool {
    admin.join("reftable").is_dir()
}
