//! Saving all of a worktree in refs of the repository, and making it again from them.

use std::path::{Path, PathBuf};

use crate::branch::{self, commit_at};
use crate::checkout::Checkout;
use crate::create::{self, CreateError, Locked};
use crate::exact;
use crate::files::replace_copy;
use crate::git::{At, Git, GitError};
use crate::home;
use crate::kept::KeptError;
use crate::names::shown;
use crate::place::{self, Building};
use crate::private;
use crate::record::{Kept, Record, Stage, is_commit, is_word};
use crate::remove;
use crate::slug::Slug;
use crate::snapshot::{add_all, inner_repositories, ours};
use crate::whole_index::unhide;
use crate::worktrees::Worktrees;

/// Names of the saved refs of a worktree, below the refs of its agent.
const BRANCH: &str = "branch";
const HEAD: &str = "HEAD";
const STAGED: &str = "staged";
const FILES: &str = "uncommitted";
/// A commit that says what was known of the worktree, on top of the one that it began at.
const RECORD: &str = "record";

/// Saves a worktree: its branch, its commit, what is staged, its files where they are not committed, and its record.
pub(crate) async fn save(
    git: &Git,
    common: &Path,
    record: &Record,
    (tip, head): (&str, &str),
    has_files: bool,
) -> Result<(), GitError> {
    let saved = record.saved_refs();
    let mut refs = vec![(BRANCH.to_owned(), Some(tip.to_owned()))];
    refs.push((HEAD.to_owned(), Some(head.to_owned())));
    // Work that an agent brought home need not be what the branch is now.
    let before = commit_at(git, common, &format!("{saved}/{BRANCH}")).await?;
    if let Some(before) = before.filter(|it| it != tip && it != head) {
        refs.push(logged(&before));
    }
    if record.admin.is_dir() {
        for id in home::left_behind(git, &record.admin).await? {
            refs.push(logged(&id));
        }
    }
    let (mut staged, mut files) = (None, None);
    if record.path.is_dir() {
        let index = record.admin.join("centurion-index");
        replace_copy(&record.admin.join("index"), &index)?;
        let at = || record.at_home().index(&index);
        staged = Some(git.run(at(), ["write-tree"]).await?);
        if has_files {
            unhide(git, &at()).await?;
            add_all(git, &at(), record, &["--force"]).await?;
            let added = git.run(at(), ["write-tree"]).await?;
            exact::add(git, &at(), &record.path, (head, added.trim())).await?;
            files = Some(git.run(at(), ["write-tree"]).await?);
        }
        std::fs::remove_file(&index)?;
    }
    let tree = git.run(At::git_dir(common), ["rev-parse", &format!("{head}^{{tree}}")]).await?;
    // Of a worktree whose directory is gone, what was saved last is what is known.
    let now = [(STAGED, staged), (FILES, files)].into_iter().filter(|_| record.path.is_dir());
    for (name, kept) in now {
        let commit = match kept.filter(|it| *it != tree) {
            Some(tree) => {
                let message = format!("What was not committed in {}", record.branch);
                Some(commit(git, common, (&tree, head), &message).await?)
            }
            None => None,
        };
        // Earlier uncommitted work is not how it is now, and is kept all the same.
        if let Some(before) = commit_at(git, common, &format!("{saved}/{name}")).await?
            && is_lost(git, common, &before, [commit.as_deref(), Some(tip), Some(head)]).await?
        {
            refs.push(logged(&before));
        }
        refs.push((name.to_owned(), commit));
    }
    refs.sort();
    refs.dedup();
    let base = commit_at(git, common, &record.base).await?;
    let base = base.as_deref().unwrap_or(head);
    let text = serde_json::to_string_pretty(record).map_err(std::io::Error::from)?;
    let tree = format!("{base}^{{tree}}");
    let tree = git.run(At::git_dir(common), ["rev-parse", &tree]).await?;
    let message = format!("What is known of {}\n\n{text}", record.branch);
    refs.push((RECORD.to_owned(), Some(commit(git, common, (&tree, base), &message).await?)));
    // All of them or none.
    let input: String = refs
        .iter()
        .map(|(name, commit)| match commit {
            Some(commit) => format!("update {saved}/{name} {commit}\n"),
            None => format!("delete {saved}/{name}\n"),
        })
        .collect();
    let at = At::git_dir(common).input(input.as_bytes());
    git.run(at, ["update-ref", "--stdin"]).await?;
    Ok(())
}

/// The ref, with its commit, that keeps one which is not how the worktree is now.
fn logged(id: &str) -> (String, Option<String>) {
    (format!("log/{}", id.get(..12).unwrap_or(id)), Some(id.to_owned()))
}

/// Checks that none of the commits has the files of a saved one.
async fn is_lost(
    git: &Git,
    common: &Path,
    saved: &str,
    others: [Option<&str>; 3],
) -> Result<bool, GitError> {
    let trees = [saved].into_iter().chain(others.into_iter().flatten());
    let trees = trees.map(|commit| format!("{commit}^{{tree}}"));
    let args: Vec<String> = ["rev-parse".to_owned()].into_iter().chain(trees).collect();
    let said = git.run(At::git_dir(common), args).await?;
    let mut trees = said.lines();
    let saved = trees.next();
    Ok(!trees.any(|tree| Some(tree) == saved))
}

async fn commit(
    git: &Git,
    common: &Path,
    (tree, parent): (&str, &str),
    message: &str,
) -> Result<String, GitError> {
    let args = ["commit-tree", tree.trim(), "-p", parent, "-F", "-"];
    let at = ours(At::git_dir(common)).input(message.as_bytes());
    Ok(git.run(at, args).await?.trim().to_owned())
}

/// Saved state of a worktree.
struct SavedState {
    tip: String,
    head: Option<String>,
    staged: Option<String>,
    files: Option<String>,
    /// Its record, as far as it can be believed: refs may be a stranger's.
    record: Option<Record>,
}

impl SavedState {
    async fn load(git: &Git, common: &Path, key: &str) -> Result<Option<Self>, GitError> {
        let commit = |what: &str| {
            let name = format!("refs/centurion/agents/{key}/{what}");
            async move { commit_at(git, common, &name).await }
        };
        let Some(tip) = commit(BRANCH).await? else { return Ok(None) };
        let mut record = None;
        if let Some(id) = commit(RECORD).await? {
            let text = git.run(At::git_dir(common), ["cat-file", "commit", &id]).await?;
            let json = text.find("\n{").and_then(|at| text.get(at..)).unwrap_or_default();
            record = serde_json::from_str::<Record>(json).ok();
        }
        let is_its = |it: &Record| {
            it.saved_refs() == format!("refs/centurion/agents/{key}") && is_commit(&it.base)
        };
        record = record.filter(is_its);
        if let Some(it) = &record
            && commit_at(git, common, &it.base).await?.is_none()
        {
            record = None;
        }
        let (head, staged) = (commit(HEAD).await?, commit(STAGED).await?);
        Ok(Some(Self { tip, head, staged, files: commit(FILES).await?, record }))
    }
}

impl Worktrees {
    /// The checkout that a saved worktree was made for, as far as that is known.
    pub async fn saved_for(
        &self,
        directory: &Path,
        id: &str,
    ) -> Result<Option<PathBuf>, KeptError> {
        let from = self.checkout(directory).await?;
        let git = self.git.tamed(&from.git_dir).await?;
        let (_, key) = named(id)?;
        let saved = SavedState::load(&git, &from.common, &key).await?;
        Ok(saved.and_then(|saved| saved.record).map(|record| record.caller))
    }

    /// Brings back a worktree that was saved and removed, by the id of its agent: the branch, the files, what was staged,
    /// and what was known of it.
    pub async fn restore(&self, directory: &Path, id: &str) -> Result<Record, KeptError> {
        let from = self.checkout(directory).await?;
        let (usual, key) = named(id)?;
        let git = self.git.tamed(&from.git_dir).await?;
        let Some(saved) = SavedState::load(&git, &from.common, &key).await? else {
            return Err(KeptError::NothingSaved(id.to_owned()));
        };
        let slug = saved.record.as_ref().map_or_else(|| usual.clone(), |it| it.slug.clone());
        let path = place::prepare(&from, &slug)?;
        let kept = Kept::of(&from.common, &slug);
        if path.exists() || kept.path().exists() {
            return Err(KeptError::Taken(shown(path)));
        }
        branch::check_free(&git, &from.common, &slug.branch()).await?;
        kept.reserve()?;
        let _lease = kept.lease()?;
        let made =
            make(&git, &from, &kept, &saved, Record::restored(slug, path, &saved.tip, id, &from));
        match made.await {
            Ok(record) => Ok(record),
            Err(error) => {
                // Saved work stays saved: the rest of it can go.
                match kept.record() {
                    Ok(record) => {
                        let removed = remove::remove(&git, &from.common, &kept, &record).await;
                        removed.map(|removal| removal.trash.delete()).map_err(KeptError::Stays)?;
                    }
                    Err(_) => {
                        kept.free();
                    }
                }
                Err(error)
            }
        }
    }
}

/// The usual name of a worktree, by the id of its agent, and the name that it is saved under.
fn named(id: &str) -> Result<(Slug, String), KeptError> {
    // Worktrees of sessions are saved under their own names.
    let usual = if is_word(id) { Slug::of_agent(id)? } else { Slug::try_from(id.to_owned())? };
    let key = if is_word(id) { id.to_owned() } else { usual.as_str().to_owned() };
    Ok((usual, key))
}

/// Makes a worktree of what is saved. The record says that it is being made, and has the branch begin where it is.
async fn make(
    git: &Git,
    from: &Checkout,
    kept: &Kept,
    saved: &SavedState,
    mut record: Record,
) -> Result<Record, KeptError> {
    kept.write(&record)?;
    let begins = (record.branch.as_str(), saved.tip.as_str());
    let building = Building::new(kept, &record.path).map_err(CreateError::files(kept.path()))?;
    record.admin = create::add(git, &from.common, kept, &building, begins).await?;
    kept.write(&record)?;
    let (admin, top) = (record.admin.clone(), building.at().to_owned());
    let at = || At::git_dir(&admin).work_tree(&top);
    // Configuration may depend on where git works.
    let git = &git.tamed(&admin).await?;
    if let Some(head) = saved.head.as_deref().filter(|head| *head != saved.tip) {
        git.run(At::git_dir(&admin), ["update-ref", "--no-deref", "HEAD", head]).await?;
    }
    git.run(at(), ["reset", "--hard", "--quiet", "HEAD"]).await?;
    replace_copy(&admin.join("index"), &kept.index())?;
    record.submodules = inner_repositories(git, &at()).await?;
    if let Some(files) = &saved.files {
        let args = ["restore", "--source", files, "--worktree", "--no-overlay", "--", "."];
        git.run(at(), args).await?;
        exact::check_out(git, &at(), ("HEAD", files)).await?;
    }
    if let Some(staged) = &saved.staged {
        git.run(at(), ["read-tree", staged]).await?;
    }
    if let Some(known) = &saved.record {
        record.base.clone_from(&known.base);
        record.owner.clone_from(&known.owner);
        (record.made, record.is_private) = (known.made, known.is_private);
    }
    if record.is_private {
        private::make(git, from, kept, &record, &[]).await?;
    }
    create::put_in_place(building, &record, Locked::No)?;
    record.stage = Stage::Ready;
    kept.write(&record)?;
    Ok(record)
}
