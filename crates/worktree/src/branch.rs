//! The branch of a worktree, as the repository has it.

use std::io;
use std::path::{Path, PathBuf};

use crate::git::{At, Git, GitError, said};
use crate::names::for_shell;
use crate::record::{Kept, Record};
use crate::refs::{FiledRef, filed_ref, worktrees_on};

/// The commit that a ref of a repository is at, if there is one.
pub(crate) async fn commit_at(
    git: &Git,
    git_dir: &Path,
    name: &str,
) -> Result<Option<String>, GitError> {
    let name = format!("{name}^{{commit}}");
    let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
    let output = git.try_run(At::git_dir(git_dir), args).await?;
    match output.code {
        Some(0) => Ok(Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())),
        Some(1) => Ok(None),
        _ => Err(crate::git::failed(&args, &output)),
    }
}

/// The commit that a ref of the repository itself is at, without a git process where its files say it.
pub(crate) async fn in_repository(
    git: &Git,
    common: &Path,
    name: &str,
) -> Result<Option<String>, GitError> {
    match filed_ref(common, name) {
        FiledRef::Id(id) => Ok(Some(id)),
        FiledRef::Missing => Ok(None),
        FiledRef::Unclear => commit_at(git, common, name).await,
    }
}

/// The commit of a branch, or of what was kept of it where it is gone.
pub(crate) async fn tip(
    git: &Git,
    common: &Path,
    record: &Record,
) -> Result<Option<String>, GitError> {
    match commit_at(git, common, &format!("refs/heads/{}", record.branch)).await? {
        Some(tip) => Ok(Some(tip)),
        None => commit_at(git, common, &format!("{}/branch", record.saved_refs())).await,
    }
}

/// Makes sure that a branch is not there yet: what fails later removes it, and must not remove another's.
pub(crate) async fn check_free(git: &Git, common: &Path, branch: &str) -> Result<(), GitError> {
    if in_repository(git, common, &format!("refs/heads/{branch}")).await?.is_none() {
        return Ok(());
    }
    Err(io::Error::other(format!("a branch named {branch} already exists, of no worktree of ours"))
        .into())
}

/// Another checkout that is on the branch of a worktree.
pub(crate) async fn elsewhere(
    git: &Git,
    common: &Path,
    record: &Record,
) -> Result<Option<PathBuf>, GitError> {
    let listed = git.run(At::git_dir(common), ["worktree", "list", "--porcelain"]).await?;
    let branch = format!("branch refs/heads/{}", record.branch);
    let on_it = listed.split("\n\n").filter(|it| it.lines().any(|line| line == branch));
    let mut paths = on_it.filter_map(|it| it.lines().next()?.strip_prefix("worktree "));
    Ok(paths.find(|path| Path::new(path) != record.path).map(PathBuf::from))
}

/// Checks that another checkout is on the branch of a worktree.
pub(crate) async fn is_elsewhere(
    git: &Git,
    common: &Path,
    record: &Record,
) -> Result<bool, GitError> {
    match worktrees_on(common, &record.branch, &record.admin) {
        Some(found) => Ok(!found.is_empty()),
        None => Ok(elsewhere(git, common, record).await?.is_some()),
    }
}

/// Sets the branch in the repository. Where another has moved it, is on it or is in its way, it stays, and what is
/// returned says so: what was done is kept beside it.
pub(crate) async fn advance(
    git: &Git,
    common: &Path,
    kept: &Kept,
    record: &mut Record,
    tip: &str,
) -> Result<Option<String>, GitError> {
    let name = format!("refs/heads/{}", record.branch);
    let saved = format!("{}/branch", record.saved_refs());
    let (branch, was) = (&record.branch, commit_at(git, common, &name).await?);
    if was.as_deref() != Some(tip) {
        if let Some(path) = elsewhere(git, common, record).await? {
            let path = for_shell(&path);
            return Ok(Some(format!(
                "{branch} is checked out in {path} and was not moved: `git -C {path} merge {saved}` does it"
            )));
        }
        if was.as_ref().is_some_and(|was| *was != record.tip) {
            return Ok(Some(format!(
                "{branch} was moved by another meanwhile: the agent's commits are in {saved}"
            )));
        }
        let was = was.unwrap_or_else(|| "0".repeat(tip.len()));
        let args = ["update-ref", "-m", "centurion: an agent's work", &name, tip, &was];
        let output = git.try_run(At::git_dir(common), args).await?;
        if output.code != Some(0) {
            return Ok(Some(format!(
                "{branch} cannot be set ({}): the agent's commits are in {saved}",
                said(&output)
            )));
        }
    }
    tip.clone_into(&mut record.tip);
    kept.write(record)?;
    Ok(None)
}
