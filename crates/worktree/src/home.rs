//! From a worktree's private repository to the one that it belongs to: all that an agent made is there in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::branch;
use crate::checkout::Checkout;
use crate::files::{LONG, SHORT, read_text};
use crate::git::{At, Git, GitError};
use crate::lfs;
use crate::operation::Operation;
use crate::ordinary::{self, Head};
use crate::private::{self, PrivateRepository};
use crate::record::{Kept, Record, is_commit};
use crate::saved::SavedNames;
use crate::slug::Slug;
use crate::state;
use crate::unreached;

/// The most entries of a log that are looked at.
const MOST_LOGGED: usize = 50_000;

/// Lets any commit be asked for by its id.
const UPLOAD: &str = "git -c uploadpack.allowAnySHA1InWant=true upload-pack";

/// Result of bringing work home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BroughtWork {
    /// The commit of its branch now, and the commit of its `HEAD`.
    pub(crate) tip: String,
    pub(crate) head: String,
    /// The refs that hold what is not on the branch, under `refs/centurion/agents/<id>/`.
    pub(crate) saved: Vec<String>,
    /// The operation in progress that keeps the worktree from being an ordinary one.
    pub(crate) operation: Option<Operation>,
    /// Notes for the report.
    pub(crate) notes: Vec<String>,
}

/// Commits of what an agent did not commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UncommittedCommits {
    /// The files as they are, where they are not those of the agent's commit.
    pub(crate) files: Option<String>,
    /// The files as they are staged, where that is something else again.
    pub(crate) staged: Option<String>,
    /// Set where files with conflicts are staged, which no commit can hold.
    pub(crate) has_conflicts: bool,
}

/// Gets the caller's commit into the repository, where only the caller's own one has it.
pub(crate) async fn fetch_commit(
    git: &Git,
    from: &Checkout,
    record: &Record,
) -> Result<(), GitError> {
    if PrivateRepository::at(&from.git_dir).is_none() {
        return Ok(());
    }
    let to = format!("{}/base", record.saved_refs());
    fetch(git, &from.common, &from.git_dir, &[(record.base.clone(), to)].into()).await
}

/// Fetches commits from one repository on this machine into refs of another. Git checks every object.
pub(crate) async fn fetch(
    git: &Git,
    to: &Path,
    from: &Path,
    wanted: &BTreeSet<(String, String)>,
) -> Result<(), GitError> {
    let refspecs: Vec<String> = wanted.iter().map(|(id, name)| format!("+{id}:{name}\n")).collect();
    let refspecs = refspecs.concat();
    // A path that a configuration is not expected to rewrite; if it does, nothing is fetched.
    let near = from.strip_prefix(to).unwrap_or(from);
    let (upload, from) = (format!("--upload-pack={UPLOAD}"), near.display().to_string());
    let args = [
        "-c",
        "fetch.fsckObjects=true",
        "-c",
        "protocol.file.allow=always",
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
        &upload,
        "--stdin",
        &from,
    ];
    // Rewrites of a path by a configuration do not count.
    // A work tree that the configuration names would be where the path begins.
    let at = At::git_dir(to).work_tree(to).variable("GIT_ALLOW_PROTOCOL", "file");
    git.run(at.input(refspecs.as_bytes()), args).await.map(|_| ())
}

/// Brings home what was done in a private repository.
pub(crate) async fn bring(
    git: &Git,
    common: &Path,
    kept: &Kept,
    record: &mut Record,
    rest: &UncommittedCommits,
) -> Result<BroughtWork, GitError> {
    let own = kept.private_repository();
    let head = branch::commit_at(git, &own, "HEAD").await?;
    let mut found = own_refs(git, kept, record).await?;
    let tip = found.remove(&format!("refs/heads/{}", record.branch));
    let tip = tip.or_else(|| head.clone()).unwrap_or_else(|| record.known_tip().to_owned());
    let at = head.clone().unwrap_or_else(|| tip.clone());
    let mut names = SavedNames::load(git, common, record).await?;
    let stashed = logged(&own.join("logs/refs/stash"));
    found.extend(stashed.into_iter().rev().enumerate().map(|(at, id)| (format!("stash/{at}"), id)));
    found.extend(linked_heads(&own));
    let lost = drop_missing(git, &own, &mut found).await?;
    for (name, id) in &found {
        names.keep(id, name);
    }
    for (commit, name) in [(&rest.files, "uncommitted"), (&rest.staged, "staged")] {
        if let Some(id) = commit {
            names.keep(id, name);
        }
    }
    let mut known: Vec<String> = names.wanted().iter().map(|(id, _)| id.clone()).collect();
    known.extend([tip.clone(), record.base.clone()]);
    for id in unreached::find(git, &own, &known).await? {
        names.keep(&id, &format!("log/{}", id.get(..12).unwrap_or(&id)));
    }
    if at != tip && !known.contains(&at) {
        names.keep(&at, "HEAD");
    }
    let saved = names.wanted().iter().map(|(_, name)| name.clone()).collect();
    names.keep(&tip, "branch");
    fetch(git, common, &own, names.wanted()).await?;
    // Before the branch has the pointers to them.
    let left_contents = lfs::bring(&own, common).await?;
    let refusal = branch::advance(git, common, kept, record, &tip).await?;
    let is_on_branch = refusal.is_none() && ordinary::is_on_branch(&own, record, head.as_deref())?;
    let mut notes: Vec<String> = refusal.into_iter().collect();
    notes.extend(left_contents.note());
    if lost > 0 {
        notes.push(format!("{lost} of its refs name commits that it does not have"));
    }
    let conflict = rest.has_conflicts.then_some(Operation::Conflict);
    let operation = Operation::in_progress(&own).or(conflict);
    match operation {
        // Its files are gone, by another hand: there is nothing to continue with.
        _ if !record.path.is_dir() => record.is_out = false,
        None => {
            let at = if is_on_branch { Head::Branch } else { Head::Commit(&at) };
            ordinary::become_ordinary(git, &own, record, at).await?;
            record.is_out = false;
            notes.extend(head.is_none().then(|| unborn_note(record)));
        }
        // It continues where it was begun. A person may have led the worktree's git elsewhere.
        Some(operation) => {
            private::point(&record.path, &own)?;
            notes.push(operation.explain_out(record));
        }
    }
    kept.write(record)?;
    Ok(BroughtWork { tip, head: at, saved, operation, notes })
}

/// Describes a worktree that is home already.
pub(crate) async fn stay(
    git: &Git,
    common: &Path,
    record: &Record,
    rest: &UncommittedCommits,
) -> Result<BroughtWork, GitError> {
    let head = state::head(git, common, record).await?;
    let tip = branch::commit_at(git, common, &format!("refs/heads/{}", record.branch)).await?;
    let conflict = rest.has_conflicts.then_some(Operation::Conflict);
    let operation = Operation::at_home(git, record).await?.or(conflict);
    let notes = operation.map(|it| it.explain(record)).into_iter().collect();
    let tip = tip.unwrap_or_else(|| head.clone());
    Ok(BroughtWork { tip, head, operation, notes, ..BroughtWork::default() })
}

/// The note about a worktree that was on a branch without a commit.
fn unborn_note(record: &Record) -> String {
    format!(
        "it was on a branch without a commit; it is on {} now, with its files and what was staged as they were",
        record.branch
    )
}

/// The refs of a private repository that are not as they were.
pub(crate) async fn own_refs(
    git: &Git,
    kept: &Kept,
    record: &Record,
) -> Result<BTreeMap<String, String>, GitError> {
    let before = read_text(&kept.refs(), LONG)?;
    let before: BTreeSet<&str> = before.lines().collect();
    // Also those that name no commit: their number is told.
    let own = kept.private_repository();
    let at = At::git_dir(&own).variable("GIT_REF_PARANOIA", "1");
    let listed = private::listed_refs(git, at).await?;
    let branch = format!("refs/heads/{}", record.branch);
    let parted = listed.lines().filter_map(|line| line.split_once(' '));
    let new = parted.filter(|(name, id)| {
        let is_shown = *name != "refs/stash" && !name.starts_with("refs/bisect/");
        is_shown && (*name == branch || !before.contains(format!("{id} {name}").as_str()))
    });
    Ok(new.map(|(name, id)| (name.to_owned(), id.to_owned())).collect())
}

/// Drops names of commits that are not there, since git brings home all or nothing; how many.
async fn drop_missing(
    git: &Git,
    own: &Path,
    found: &mut BTreeMap<String, String>,
) -> Result<usize, GitError> {
    if found.is_empty() {
        return Ok(0);
    }
    let count = found.len();
    let input: String = found.values().flat_map(|id| [id, "\n"]).collect();
    let at = At::git_dir(own).input(input.as_bytes());
    let said = git.run(at, ["cat-file", "--batch-check"]).await?;
    let missing = said.lines().filter_map(|line| line.strip_suffix(" missing"));
    let missing: BTreeSet<&str> = missing.collect();
    found.retain(|_, id| !missing.contains(id.as_str()));
    Ok(count - found.len())
}

/// The most worktrees of its own that an agent's repository is looked through for.
const MOST_LINKED: usize = 200;

/// The git directories of worktrees that an agent itself made.
pub(crate) fn linked(own: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(own.join("worktrees")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.take(MOST_LINKED).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// The commits that such worktrees are at without a branch.
fn linked_heads(own: &Path) -> impl Iterator<Item = (String, String)> {
    linked(own).into_iter().enumerate().filter_map(|(number, directory)| {
        let head = read_text(&directory.join("HEAD"), SHORT).ok()?;
        let head = head.trim();
        let name = directory.file_name()?.to_str().filter(|it| Slug::parse(it).is_ok());
        let name = name.map_or_else(|| number.to_string(), str::to_owned);
        let is_id = head.len() >= 40 && is_commit(head);
        is_id.then(|| (format!("worktrees/{name}"), head.to_owned()))
    })
}

/// The commits that a log of refs names, the oldest first.
pub(crate) fn logged(log: &Path) -> Vec<String> {
    let text = read_text(log, LONG).unwrap_or_default();
    let ids = text.lines().filter_map(|line| line.split(' ').nth(1));
    let is_id = |id: &&str| id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A branch that is renamed is at no commit for a moment.
    let ids = ids.filter(is_id).filter(|id| id.bytes().any(|byte| byte != b'0'));
    let mut ids: Vec<String> = ids.map(str::to_owned).collect();
    ids.split_off(ids.len().saturating_sub(MOST_LOGGED))
}

/// The commits that the `HEAD` of an ordinary worktree was at and that no ref has any more.
pub(crate) async fn left_behind(git: &Git, admin: &Path) -> Result<Vec<String>, GitError> {
    let mut logged: BTreeSet<String> = logged(&admin.join("logs/HEAD")).into_iter().collect();
    // Refs of the worktree alone go with it.
    let args = ["for-each-ref", "--format=%(objectname)", "refs/worktree", "refs/rewritten"];
    let refs = git.run(At::git_dir(admin), args).await?;
    logged.extend(refs.lines().map(str::to_owned));
    if logged.is_empty() {
        return Ok(Vec::new());
    }
    let input: String = logged.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    let args = [
        "rev-list",
        "--stdin",
        "--ignore-missing",
        "--not",
        "--exclude=refs/worktree/*",
        "--exclude=refs/rewritten/*",
        "--all",
    ];
    let listed = git.run(At::git_dir(admin).input(input.as_bytes()), args).await?;
    Ok(listed.lines().filter(|id| logged.contains(*id)).map(str::to_owned).collect())
}
