//! Commits of what an agent left without committing it, made beside its branch and its index.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::branch;
use crate::contents::is_untouched;
use crate::files::{remove_if_there, replace_copy};
use crate::git::{At, Git, GitError};
use crate::home::UncommittedCommits;
use crate::kept::{Ignored, uncommitted};
use crate::names;
use crate::record::{Kept, Record};
use crate::report;
use crate::state::{self, Work};
use crate::whole_index::unhide;

/// The most that is put into a commit, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;
pub(crate) const MOST_SAVED: &str = "64 MB";

/// The beginning of the message of such a commit.
const SUBJECT: &str = "What was not committed in ";

/// Checks that a commit is one of ours, by its subject.
pub(crate) fn is_ours(subject: &str) -> bool {
    subject.starts_with(SUBJECT)
}

/// Uncommitted work.
#[derive(Debug, Default)]
pub(crate) struct Uncommitted {
    pub(crate) commits: UncommittedCommits,
    /// Number of files.
    pub(crate) count: usize,
    /// Reason for which they are in no commit.
    pub(crate) refusal: Option<String>,
}

/// Makes commits of what is not committed in a worktree.
pub(crate) async fn take(
    git: &Git,
    kept: &Kept,
    record: &Record,
    work: &Work,
) -> Result<Uncommitted, GitError> {
    let git_dir = state::git_dir(kept, record);
    let own = || At::git_dir(&git_dir);
    let mut found = Uncommitted::default();
    if !git_dir.is_dir() {
        return Ok(found);
    }
    // Nothing on a branch that has no commit yet.
    let head = branch::commit_at(git, &git_dir, "HEAD").await?;
    let head = head.as_deref();
    let tree = match head {
        Some(head) => git.run(own(), ["rev-parse", &format!("{head}^{{tree}}")]).await?,
        None => String::new(),
    };
    let tree = tree.trim();
    // Its own index: what it staged may be nowhere else.
    let staged = staged_tree(git, kept, &git_dir).await?;
    found.commits.has_conflicts = staged.is_none();
    if let Some(staged) = staged.filter(|it| it != tree && state::is_out(kept, record)) {
        found.commits.staged = Some(commit(git, &git_dir, (&staged, head), record).await?);
    }
    if work.open().next().is_none() {
        return Ok(found);
    }
    if is_large(&record.path, work.open()) {
        let open = uncommitted(git, &git_dir, record, Ignored::LeftOut).await?;
        if is_large(&record.path, &open) {
            found.count = open.len();
            found.refusal = Some(format!(
                "the {} files that are not committed are in the worktree alone: they have more than the {MOST_SAVED} that are kept elsewhere as well",
                open.len()
            ));
            return Ok(found);
        }
    }
    let inner = new_repositories(git, &own().work_tree(&record.path)).await?;
    if !inner.is_empty() {
        let inner: Vec<String> = inner.iter().map(names::shown).collect();
        let inner = inner.join(", ");
        found.refusal = Some(format!("the repositories in it are in the worktree alone: {inner}"));
    }
    let files = tree_of_files(git, kept, &git_dir, record, work).await?;
    if files != tree {
        let commit = commit(git, &git_dir, (&files, head), record).await?;
        let name = format!("refs/heads/{}", record.branch);
        let tip = branch::commit_at(git, &git_dir, &name).await?;
        let since = head.or(tip.as_deref()).unwrap_or(record.known_tip());
        found.count = report::changed_files(git, &git_dir, (since, &commit)).await?.len();
        found.commits.files = Some(commit);
    }
    Ok(found)
}

/// The tree of what is staged; `None` where files have conflicts, which no tree can hold. It is made from a copy of the
/// index: no lock is taken, and one that a killed git left is in no way.
async fn staged_tree(git: &Git, kept: &Kept, git_dir: &Path) -> Result<Option<String>, GitError> {
    let index = kept.path().join(format!("staged.{}", std::process::id()));
    remove_if_there(&index)?;
    replace_copy(&git_dir.join("index"), &index)?;
    let said = git.try_run(At::git_dir(git_dir).index(&index), ["write-tree"]).await;
    remove_if_there(&index)?;
    let said = said?;
    let tree = || String::from_utf8_lossy(&said.stdout).trim().to_owned();
    Ok((said.code == Some(0)).then(tree))
}

/// Makes a tree of the files as they are.
async fn tree_of_files(
    git: &Git,
    kept: &Kept,
    git_dir: &Path,
    record: &Record,
    work: &Work,
) -> Result<String, GitError> {
    let index = kept.path().join(format!("snapshot.{}", std::process::id()));
    replace_copy(&kept.index(), &index)?;
    let at = || At::git_dir(git_dir).work_tree(&record.path).index(&index);
    unhide(git, &at()).await?;
    add_all(git, &at(), record, &[]).await?;
    // Files that were added although git ignores them are part of the work.
    let is_file = |path: &&PathBuf| {
        fs::symlink_metadata(record.path.join(path)).is_ok_and(|metadata| !metadata.is_dir())
    };
    let forced = names::joined(work.forced.iter().filter(is_file));
    if !forced.is_empty() {
        let args = ["update-index", "-z", "--add", "--remove", "--stdin"];
        git.run(at().input(&forced), args).await?;
    }
    let tree = git.run(at(), ["write-tree"]).await?;
    fs::remove_file(&index)?;
    Ok(tree.trim().to_owned())
}

/// A commit of the files as they are, on top of another one.
pub(crate) async fn files_on(
    git: &Git,
    kept: &Kept,
    record: &Record,
    work: &Work,
    parent: &str,
) -> Result<String, GitError> {
    let git_dir = state::git_dir(kept, record);
    let tree = tree_of_files(git, kept, &git_dir, record, work).await?;
    commit(git, &git_dir, (&tree, Some(parent)), record).await
}

async fn commit(
    git: &Git,
    git_dir: &Path,
    (tree, parent): (&str, Option<&str>),
    record: &Record,
) -> Result<String, GitError> {
    let message = format!("{SUBJECT}{}", record.branch);
    let mut args = vec!["commit-tree", tree, "-m", &message];
    args.extend(parent.iter().flat_map(|parent| ["-p", parent]));
    Ok(git.run(ours(At::git_dir(git_dir)), args).await?.trim().to_owned())
}

/// Checks that files and directories of a worktree have more than a commit may hold.
pub(crate) fn is_large<'a>(top: &Path, paths: impl IntoIterator<Item = &'a PathBuf>) -> bool {
    let mut size = 0;
    let mut left: Vec<PathBuf> = paths.into_iter().map(|path| top.join(path)).collect();
    while let Some(path) = left.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| entry.path()));
        } else {
            size += metadata.len();
        }
        if size > LARGEST {
            return true;
        }
    }
    false
}

/// Adds all files of a worktree to an index, but for what we put there, and for repositories within this one, which
/// name programs of their own.
pub(crate) async fn add_all(
    git: &Git,
    at: &At<'_>,
    record: &Record,
    options: &[&str],
) -> Result<(), GitError> {
    add_files(git, at, options, &record.submodules).await?;
    let put: Vec<OsString> = put_paths(record).map(|path| spec("top,literal", &path)).collect();
    if !put.is_empty() {
        let remove = ["rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--"];
        git.run(at.clone(), remove.map(OsString::from).into_iter().chain(put)).await?;
    }
    Ok(())
}

/// The same without regard to what we put there.
pub(crate) async fn add_files(
    git: &Git,
    at: &At<'_>,
    options: &[&str],
    submodules: &[PathBuf],
) -> Result<(), GitError> {
    let mut inner = inner_repositories(git, at).await?;
    inner.extend(new_repositories(git, at).await?);
    // Files that were written where nothing is checked out are added, too.
    let add = ["-c", "core.sparseCheckout=false", "add", "--all"];
    let mut add: Vec<OsString> = add.map(OsString::from).into();
    add.extend(options.iter().map(OsString::from));
    add.extend(["--", "."].map(OsString::from));
    add.extend(inner.iter().chain(submodules).map(|it| spec("exclude,top,literal", it)));
    if let Err(error) = git.run(at.clone(), &add).await {
        // An attribute may ask for an encoding that the files are not in: then they are taken as they are.
        let empty = git.run(at.clone(), ["hash-object", "-t", "tree", "/dev/null"]).await?;
        let plain = at.clone().variable("GIT_ATTR_SOURCE", empty.trim());
        git.run(plain, &add).await.map_err(|_| error)?;
    }
    Ok(())
}

/// A path for git, with what is meant by it.
fn spec(magic: &str, path: &Path) -> OsString {
    let mut spec = OsString::from(format!(":({magic})"));
    spec.push(path);
    spec
}

/// The repositories within one that its index knows.
pub(crate) async fn inner_repositories(git: &Git, at: &At<'_>) -> Result<Vec<PathBuf>, GitError> {
    let said = git.run_raw(at.clone(), ["ls-files", "-z", "--stage"]).await?;
    let links = names::parts(&said).filter(|entry| entry.starts_with(b"160000 "));
    let path = |entry: &[u8]| entry.splitn(2, |byte| *byte == b'\t').nth(1).map(names::path);
    Ok(links.filter_map(path).collect())
}

/// Directories that its index does not know: git names them, and not what is in them.
async fn new_repositories(git: &Git, at: &At<'_>) -> Result<Vec<PathBuf>, GitError> {
    let said =
        git.run_raw(at.clone(), ["ls-files", "-z", "--others", "--exclude-standard"]).await?;
    let inner = names::parts(&said).filter_map(|path| path.strip_suffix(b"/"));
    Ok(inner.map(names::path).collect())
}

/// The untouched links and copies that we put into a worktree.
pub(crate) fn put_paths(record: &Record) -> impl Iterator<Item = PathBuf> + '_ {
    let links = record.links.iter().map(|(path, _)| path);
    let copies = record.copies.iter().map(|(path, _)| path);
    let is_ours = |path: &&PathBuf| is_untouched(&record.path, path, &record.links, &record.copies);
    links.chain(copies).filter(is_ours).cloned()
}

/// Commits that are made here have an author, whatever is configured.
pub(crate) fn ours(at: At<'_>) -> At<'_> {
    at.variable("GIT_AUTHOR_NAME", "Centurion")
        .variable("GIT_AUTHOR_EMAIL", "centurion@localhost")
        .variable("GIT_COMMITTER_NAME", "Centurion")
        .variable("GIT_COMMITTER_EMAIL", "centurion@localhost")
}
