//! The commits of an agent's repository that no ref has: reset away, amended, dropped.
//!
//! The log of `HEAD` names most of them, and an agent can do without one. So all commits that are in its repository, and in no
//! other, are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::files::{LONG, read};
use crate::git::{At, Git, GitError};
use crate::home::{linked, logged};
use crate::snapshot::is_ours;

/// The most objects that are looked at.
const MOST_OBJECTS: usize = 200_000;

/// Finds them, those that no other of them is built on and those that `HEAD` was at. What is built on the known ones' ancestors
/// alone is not among them.
pub(crate) async fn find(git: &Git, own: &Path, known: &[String]) -> Result<Vec<String>, GitError> {
    let places = linked(own).into_iter().chain([own.to_owned()]);
    let logged: BTreeSet<String> = places.flat_map(|it| logged(&it.join("logs/HEAD"))).collect();
    let made = commits(git, own).await.unwrap_or_else(|error| {
        tracing::debug!(%error, "the commits of an agent's repository are not known");
        Vec::new()
    });
    let all: BTreeSet<String> = logged.iter().cloned().chain(made).collect();
    match list(git, own, known, &all, &logged).await {
        // One of them may be built on what is not there.
        Err(GitError::Failed { .. }) if all.len() > logged.len() => {
            list(git, own, known, &logged, &logged).await
        }
        listed => listed,
    }
}

async fn list(
    git: &Git,
    own: &Path,
    known: &[String],
    asked: &BTreeSet<String>,
    logged: &BTreeSet<String>,
) -> Result<Vec<String>, GitError> {
    if asked.iter().all(|id| known.contains(id)) {
        return Ok(Vec::new());
    }
    let asked = asked.iter().map(|id| format!("{id}\n"));
    let known = known.iter().map(|id| format!("^{id}\n"));
    let input: String = asked.chain(known).collect();
    let args = ["rev-list", "--stdin", "--ignore-missing", "--format=%H %P%x00%s"];
    let listed = git.run(At::git_dir(own).input(input.as_bytes()), args).await?;
    let mut found: BTreeMap<&str, bool> = BTreeMap::new();
    let mut below: BTreeSet<&str> = BTreeSet::new();
    for line in listed.lines().filter(|line| !line.starts_with("commit ")) {
        let Some((ids, subject)) = line.split_once('\0') else { continue };
        let mut ids = ids.split_whitespace();
        let Some(id) = ids.next() else { continue };
        found.insert(id, is_ours(subject));
        below.extend(ids);
    }
    let counts =
        |(id, is_ours): &(&str, bool)| logged.contains(*id) || (!below.contains(id) && !is_ours);
    Ok(found.into_iter().filter(counts).map(|(id, _)| id.to_owned()).collect())
}

/// The commits among the objects that this repository alone has.
async fn commits(git: &Git, own: &Path) -> Result<Vec<String>, GitError> {
    let objects = objects(git, own).await?;
    if objects.is_empty() || objects.len() > MOST_OBJECTS {
        return Ok(Vec::new());
    }
    let input: String = objects.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    let args = ["cat-file", "--batch-check"];
    let said = git.run(At::git_dir(own).input(input.as_bytes()), args).await?;
    let commits = said.lines().filter_map(|line| line.split_once(" commit "));
    Ok(commits.map(|(id, _)| id.to_owned()).collect())
}

/// The ids of those objects: loose ones by their names, packed ones by the index of their pack.
async fn objects(git: &Git, own: &Path) -> Result<Vec<String>, GitError> {
    let mut found = Vec::new();
    for directory in fs::read_dir(own.join("objects"))? {
        let directory = directory?;
        let name = directory.file_name().to_string_lossy().into_owned();
        let names = || fs::read_dir(directory.path()).into_iter().flatten().flatten();
        if name.len() == 2 {
            let rest = names().map(|entry| entry.file_name().to_string_lossy().into_owned());
            let ids = rest.map(|rest| format!("{name}{rest}"));
            found.extend(ids.filter(|id| id.bytes().all(|byte| byte.is_ascii_hexdigit())));
        } else if name == "pack" {
            let packs = names().map(|entry| entry.path());
            for index in packs.filter(|it| it.extension().is_some_and(|it| it == "idx")) {
                let bytes = read(&index, LONG)?;
                let listed = git.run(At::git_dir(own).input(&bytes), ["show-index"]).await?;
                let ids = listed.lines().filter_map(|line| line.split(' ').nth(1));
                found.extend(ids.map(str::to_owned));
            }
        }
        if found.len() > MOST_OBJECTS {
            break;
        }
    }
    Ok(found)
}
