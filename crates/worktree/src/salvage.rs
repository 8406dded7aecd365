//! Bringing home what is whole of a repository in which objects are missing.
//!
//! While an agent works, its repository borrows the objects of the one that it belongs to. What a person deletes and
//! prunes there meanwhile may be what the agent has built on, such as a branch that it merged. Then git brings home
//! nothing of that. What is whole comes home all the same: the commits below the gap, and the files as they are, saved on
//! top of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::branch;
use crate::files::remove_if_there;
use crate::git::{At, Git, GitError};
use crate::home::{self, BroughtWork};
use crate::lfs;
use crate::names::for_shell;
use crate::ordinary::{self, Head};
use crate::record::{Kept, Record};
use crate::saved::SavedNames;
use crate::snapshot;
use crate::state::Work;

/// The most commits that are looked at.
const MOST: usize = 500;

/// The commits that a repository has without a gap, and their ancestors in the place of those with one.
struct CompleteHistory<'a> {
    git: &'a Git,
    own: &'a Path,
    known: BTreeMap<String, bool>,
    base: &'a str,
}

impl CompleteHistory<'_> {
    async fn has(&mut self, id: &str) -> Result<bool, GitError> {
        if let Some(known) = self.known.get(id) {
            return Ok(*known);
        }
        // Beyond that number, nothing is whole.
        if self.known.len() >= MOST {
            return Ok(false);
        }
        let args = ["rev-list", "--objects", "--quiet", id, "--not", self.base];
        let output = self.git.try_run(At::git_dir(self.own), args).await?;
        let is_whole = output.code == Some(0);
        self.known.insert(id.to_owned(), is_whole);
        Ok(is_whole)
    }

    async fn parents(&self, id: &str) -> Result<Vec<String>, GitError> {
        let args = ["rev-list", "--no-walk", "--parents", id];
        let output = self.git.try_run(At::git_dir(self.own), args).await?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(said.split_whitespace().skip(1).map(str::to_owned).collect())
    }

    /// The nearest commits below one that are whole: itself, or those of its ancestors that no other of them has.
    async fn below(&mut self, id: &str) -> Result<Vec<String>, GitError> {
        let (mut left, mut seen) = (vec![id.to_owned()], BTreeSet::new());
        let mut found = Vec::new();
        while let Some(id) = left.pop() {
            if !seen.insert(id.clone()) {
                continue;
            }
            if self.has(&id).await? {
                found.push(id);
            } else {
                let parents = self.parents(&id).await?;
                left.extend(parents.into_iter().rev());
            }
        }
        Ok(found)
    }
}

/// Brings home what is whole. Nothing where nothing is missing: then something else is in the way.
pub(crate) async fn bring(
    git: &Git,
    common: &Path,
    kept: &Kept,
    record: &mut Record,
    work: &Work,
) -> Result<Option<(BroughtWork, String)>, GitError> {
    let own = kept.private_repository();
    let base = record.known_tip().to_owned();
    let mut found = home::own_refs(git, kept, record).await?;
    let head = branch::commit_at(git, &own, "HEAD").await?;
    found.extend(head.clone().map(|head| ("HEAD".to_owned(), head)));
    for (at, id) in home::logged(&own.join("logs/refs/stash")).into_iter().rev().enumerate() {
        found.insert(format!("stash/{at}"), id);
    }
    for id in home::logged(&own.join("logs/HEAD")) {
        found.insert(format!("log/{}", id.get(..12).unwrap_or(&id)), id);
    }
    let mut whole = CompleteHistory { git, own: &own, known: BTreeMap::new(), base: &base };
    let mut names = SavedNames::load(git, common, record).await?;
    let mut missing = BTreeSet::new();
    for (name, id) in &found {
        if whole.has(id).await? {
            names.keep(id, name);
            continue;
        }
        missing.insert(id);
        for below in whole.below(id).await? {
            names.keep(&below, &format!("log/{}", below.get(..12).unwrap_or(&below)));
        }
    }
    if missing.is_empty() || !record.path.is_dir() {
        return Ok(None);
    }
    let tip = match &head {
        Some(head) => whole.below(head).await?.into_iter().next(),
        None => None,
    };
    let tip = tip.unwrap_or_else(|| base.clone());
    let files = snapshot::files_on(git, kept, record, work, &tip).await?;
    names.keep(&files, "uncommitted");
    let lost = missing.len();
    let saved = names.wanted().iter().map(|(_, name)| name.clone()).collect();
    names.keep(&tip, "branch");
    home::fetch(git, common, &own, names.wanted()).await?;
    let left_contents = lfs::bring(&own, common).await?;
    let mut notes: Vec<String> =
        branch::advance(git, common, kept, record, &tip).await?.into_iter().collect();
    notes.extend(left_contents.note());
    notes.push(format!(
        "{lost} of its commits need others that the repository no longer has, such as those of a branch that was deleted and \
         pruned meanwhile: they are in {} alone. It is at {} now, and its files are as they were, not committed",
        for_shell(&own),
        tip.get(..12).unwrap_or(&tip)
    ));
    let at = if record.tip == tip { Head::Branch } else { Head::Commit(&tip) };
    ordinary::become_ordinary(git, &own, record, at).await?;
    // They may name what is missing.
    for part in ["index", "logs/HEAD", "ORIG_HEAD"] {
        remove_if_there(&record.admin.join(part))?;
    }
    git.run(At::git_dir(&record.admin), ["read-tree", "HEAD"]).await?;
    record.is_out = false;
    kept.write(record)?;
    let brought = BroughtWork { head: tip.clone(), tip, saved, operation: None, notes };
    Ok(Some((brought, files)))
}
