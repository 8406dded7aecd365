//! Commits of what an agent left without committing it, made beside its branch and its index.

use std::fs;
use std::path::{Path, PathBuf};

use crate::branch;
use crate::contents::is_untouched;
use crate::git::{At, Git, GitError};
use crate::home::Rest;
use crate::record::{Kept, Record};
use crate::report;
use crate::state::Work;

/// The most that is put into a commit, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// What is not committed.
#[derive(Debug, Default)]
pub(crate) struct Uncommitted {
    pub(crate) commits: Rest,
    /// How many files.
    pub(crate) uncommitted: usize,
}

/// Makes commits of what is not committed.
pub(crate) async fn take(
    git: &Git,
    kept: &Kept,
    record: &Record,
    work: &Work,
) -> Result<Uncommitted, GitError> {
    let private = kept.private_repository();
    let own = || At::git_dir(&private);
    let mut found = Uncommitted::default();
    // Nothing on a branch that has no commit yet.
    let head = branch::commit_at(git, &private, "HEAD").await?;
    let head = head.as_deref();
    let tree = match head {
        Some(head) => git.run(own(), ["rev-parse", &format!("{head}^{{tree}}")]).await?,
        None => String::new(),
    };
    let tree = tree.trim();
    // Its own index: what it staged may be nowhere else.
    let staged = git.try_run(own(), ["write-tree"]).await?;
    let staged_tree = String::from_utf8_lossy(&staged.stdout).trim().to_owned();
    found.commits.has_conflicts = staged.code != Some(0);
    if staged.code == Some(0) && staged_tree != tree {
        found.commits.staged = Some(commit(git, &private, (&staged_tree, head), record).await?);
    }
    if work.uncommitted() == 0 {
        return Ok(found);
    }
    if size(&record.path, work) > LARGEST {
        found.uncommitted = work.uncommitted();
        return Ok(found);
    }
    let index = kept.path().join("snapshot");
    fs::copy(kept.index(), &index)?;
    let at = || own().work_tree(&record.path).index(&index);
    add_all(git, &at(), record, &[]).await?;
    let files = git.run(at(), ["write-tree"]).await?;
    fs::remove_file(&index)?;
    if files.trim() != tree {
        let commit = commit(git, &private, (files.trim(), head), record).await?;
        let name = format!("refs/heads/{}", record.branch);
        let tip = branch::commit_at(git, &private, &name).await?;
        let since = head.or(tip.as_deref()).unwrap_or(record.known_tip());
        found.uncommitted = report::changed_files(git, &private, (since, &commit)).await?.len();
        found.commits.files = Some(commit);
    }
    Ok(found)
}

async fn commit(
    git: &Git,
    git_dir: &Path,
    (tree, parent): (&str, Option<&str>),
    record: &Record,
) -> Result<String, GitError> {
    let message = format!("What was not committed in {}", record.branch);
    let mut args = vec!["commit-tree", tree, "-m", &message];
    args.extend(parent.iter().flat_map(|parent| ["-p", parent]));
    Ok(git.run(ours(At::git_dir(git_dir)), args).await?.trim().to_owned())
}

fn size(top: &Path, work: &Work) -> u64 {
    let size =
        |path: &PathBuf| fs::symlink_metadata(top.join(path)).map_or(0, |metadata| metadata.len());
    work.untracked.iter().chain(&work.changed).map(size).sum()
}

/// Adds all files of a worktree to an index, but for what we put there, and for repositories within this one, which
/// name programs of their own.
pub(crate) async fn add_all(
    git: &Git,
    at: &At<'_>,
    record: &Record,
    options: &[&str],
) -> Result<(), GitError> {
    let inner = inner_repositories(git, at).await?;
    let submodules = record.submodules.iter().map(|path| path.display().to_string());
    let mut add: Vec<String> = ["add", "--all"].map(str::to_owned).into();
    add.extend(options.iter().map(|&option| option.to_owned()));
    add.extend(["--", "."].map(str::to_owned));
    add.extend(inner.into_iter().chain(submodules).map(|it| format!(":(exclude,top,literal){it}")));
    git.run(at.clone(), &add).await?;
    let put: Vec<String> = put_paths(record).map(|path| format!(":(top,literal){path}")).collect();
    if !put.is_empty() {
        let remove =
            ["rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--"].map(str::to_owned);
        git.run(at.clone(), remove.into_iter().chain(put)).await?;
    }
    Ok(())
}

/// The repositories within one that its index knows.
pub(crate) async fn inner_repositories(git: &Git, at: &At<'_>) -> Result<Vec<String>, GitError> {
    let said = git.run(at.clone(), ["ls-files", "-z", "--stage"]).await?;
    let links = said.split_terminator('\0').filter(|entry| entry.starts_with("160000 "));
    Ok(links.filter_map(|entry| Some(entry.split_once('\t')?.1.to_owned())).collect())
}

/// What we put into a worktree and is as it was put there.
pub(crate) fn put_paths(record: &Record) -> impl Iterator<Item = String> + '_ {
    let links = record.links.iter().map(|(path, _)| path);
    let copies = record.copies.iter().map(|(path, _)| path);
    let is_ours = |path: &&PathBuf| is_untouched(&record.path, path, &record.links, &record.copies);
    links.chain(copies).filter(is_ours).map(|path| path.display().to_string())
}

/// Commits that are made here have an author, whatever is configured.
pub(crate) fn ours(at: At<'_>) -> At<'_> {
    at.variable("GIT_AUTHOR_NAME", "Centurion")
        .variable("GIT_AUTHOR_EMAIL", "centurion@localhost")
        .variable("GIT_COMMITTER_NAME", "Centurion")
        .variable("GIT_COMMITTER_EMAIL", "centurion@localhost")
}
