//! Between a worktree's private repository and the one that it belongs to.
//!
//! Brought home, the history of an agent is in the repository, and its worktree is an ordinary one. Taken out, the worktree
//! has its own repository again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use centurion_files::private as kept_files;

use crate::checkout::Checkout;
use crate::files::{LONG, SHORT, read_text};
use crate::git::{At, Git, GitError, failed};
use crate::operation::Operation;
use crate::private::{self, PrivateRepository};
use crate::record::{Kept, Record};
use crate::state;

/// The most entries of a log that are looked at.
const MOST_LOGGED: usize = 500;

/// Lets any commit be asked for by its id.
const UPLOAD: &str = "git -c uploadpack.allowAnySHA1InWant=true upload-pack";

/// What was brought home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Brought {
    /// What its branch is now.
    pub(crate) tip: String,
    /// The refs that hold what is not on the branch, under `refs/centurion/agents/<id>/`.
    pub(crate) saved: Vec<String>,
    /// What keeps the worktree from being an ordinary one.
    pub(crate) operation: Option<Operation>,
}

/// Commits of what an agent did not commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The files as they are, where they are not those of the agent's commit.
    pub(crate) files: Option<String>,
    /// The files as they are staged, where that is something else again.
    pub(crate) staged: Option<String>,
    /// Whether files with conflicts are staged, which no commit can hold.
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
async fn fetch(
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
    git.run(At::git_dir(to).input(refspecs.as_bytes()), args).await.map(|_| ())
}

/// Brings home what was done in a private repository.
pub(crate) async fn bring(
    git: &Git,
    common: &Path,
    kept: &Kept,
    record: &mut Record,
    rest: &Rest,
) -> Result<Brought, GitError> {
    let own = kept.private_repository();
    let head = git.run(At::git_dir(&own), ["rev-parse", "--verify", "HEAD^{commit}"]).await?;
    let head = head.trim().to_owned();
    let mut found = own_refs(git, kept, record).await?;
    let branch = format!("refs/heads/{}", record.branch);
    let tip = found.remove(&branch).unwrap_or_else(|| head.clone());
    let saved = record.saved_refs();
    let mut wanted: BTreeSet<(String, String)> =
        found.iter().map(|(name, id)| (id.clone(), format!("{saved}/{name}"))).collect();
    let beside = [(&rest.files, "uncommitted"), (&rest.staged, "staged")];
    for (commit, name) in beside {
        wanted.extend(commit.iter().map(|id| (id.clone(), format!("{saved}/{name}"))));
    }
    for (at, id) in logged(&own.join("logs/refs/stash")).into_iter().rev().enumerate() {
        wanted.insert((id, format!("{saved}/stash/{at}")));
    }
    let mut known: Vec<String> = wanted.iter().map(|(id, _)| id.clone()).collect();
    known.extend([tip.clone(), record.base.clone()]);
    for id in unreached(git, &own, &known).await? {
        let short = id.get(..12).unwrap_or(&id);
        wanted.insert((id.clone(), format!("{saved}/log/{short}")));
    }
    if head != tip && !known.contains(&head) {
        wanted.insert((head.clone(), format!("{saved}/HEAD")));
    }
    let names: Vec<String> = wanted.iter().map(|(_, name)| name.clone()).collect();
    wanted.insert((tip.clone(), format!("{saved}/branch")));
    fetch(git, common, &own, &wanted).await?;
    move_branch(git, common, kept, record, &tip).await?;
    let conflict = rest.has_conflicts.then_some(Operation::Conflict);
    let operation = Operation::in_progress(&own).or(conflict);
    match operation {
        // Its files are gone, by another hand: there is nothing to go on with.
        _ if !record.path.is_dir() => record.is_out = false,
        None => {
            become_ordinary(git, &own, record, &head).await?;
            record.is_out = false;
        }
        // It goes on where it was begun. A person may have led the worktree's git elsewhere.
        Some(_) => private::point(&record.path, &own)?,
    }
    kept.write(record)?;
    Ok(Brought { tip, saved: names, operation })
}

/// The refs of a private repository that are not as they were.
async fn own_refs(
    git: &Git,
    kept: &Kept,
    record: &Record,
) -> Result<BTreeMap<String, String>, GitError> {
    let before = read_text(&kept.refs(), LONG)?;
    let before: BTreeSet<&str> = before.lines().collect();
    let listed = private::listed_refs(git, &kept.private_repository()).await?;
    let branch = format!("refs/heads/{}", record.branch);
    let parted = listed.lines().filter_map(|line| line.split_once(' '));
    let new = parted.filter(|(name, id)| {
        let is_shown = *name != "refs/stash" && !name.starts_with("refs/bisect/");
        is_shown && (*name == branch || !before.contains(format!("{id} {name}").as_str()))
    });
    Ok(new.map(|(name, id)| (name.to_owned(), id.to_owned())).collect())
}

/// The commits that a log of refs names, the oldest first.
fn logged(log: &Path) -> Vec<String> {
    let text = read_text(log, LONG).unwrap_or_default();
    let ids = text.lines().filter_map(|line| line.split(' ').nth(1));
    let ids = ids.filter(|id| id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let mut ids: Vec<String> = ids.map(str::to_owned).collect();
    ids.split_off(ids.len().saturating_sub(MOST_LOGGED))
}

/// The commits that `HEAD` was at and that no other is built on: reset away, or amended.
async fn unreached(git: &Git, own: &Path, known: &[String]) -> Result<Vec<String>, GitError> {
    let logged: BTreeSet<String> = logged(&own.join("logs/HEAD")).into_iter().collect();
    if logged.iter().all(|id| known.contains(id)) {
        return Ok(Vec::new());
    }
    let asked = logged.iter().map(|id| format!("{id}\n"));
    let known = known.iter().map(|id| format!("^{id}\n"));
    let input: String = asked.chain(known).collect();
    let args = ["rev-list", "--stdin", "--ignore-missing"];
    let listed = git.run(At::git_dir(own).input(input.as_bytes()), args).await?;
    Ok(listed.lines().filter(|id| logged.contains(*id)).map(str::to_owned).collect())
}

/// Sets the branch in the repository, unless it was moved there meanwhile: then what was done is kept beside it.
async fn move_branch(
    git: &Git,
    common: &Path,
    kept: &Kept,
    record: &mut Record,
    tip: &str,
) -> Result<(), GitError> {
    if record.tip == tip {
        return Ok(());
    }
    let name = format!("refs/heads/{}", record.branch);
    let args = ["update-ref", "-m", "centurion: an agent's work", &name, tip, &record.tip];
    let output = git.try_run(At::git_dir(common), args).await?;
    if output.code == Some(0) {
        tip.clone_into(&mut record.tip);
        kept.write(record)?;
        return Ok(());
    }
    let at = git.run(At::git_dir(common), ["rev-parse", "--verify", &name]).await;
    match at {
        // It was brought home before, by a process that could not write that down.
        Ok(at) if at.trim() == tip => {
            tip.clone_into(&mut record.tip);
            Ok(kept.write(record)?)
        }
        Ok(_) => {
            tracing::warn!(name, "a branch was moved while an agent worked on it");
            Ok(())
        }
        Err(_) => Err(failed(&args, &output)),
    }
}

/// Makes the worktree one of the repository's: its index, its commit and its log go there, and its `.git` file leads there.
async fn become_ordinary(
    git: &Git,
    own: &Path,
    record: &Record,
    head: &str,
) -> Result<(), GitError> {
    let admin = &record.admin;
    let is_split = fs::read_dir(own)?
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().starts_with("sharedindex."));
    if is_split {
        let at = At::git_dir(own).work_tree(&record.path);
        git.run(at, ["update-index", "--no-split-index"]).await?;
    }
    replace_copy(&own.join("index"), &admin.join("index"))?;
    let text = read_text(&own.join("HEAD"), SHORT)?;
    let branch = format!("ref: refs/heads/{}", record.branch);
    let is_on_branch = text.trim() == branch && head == record.tip;
    let text = if is_on_branch { branch } else { head.to_owned() };
    kept_files::replace(&admin.join("HEAD"), format!("{text}\n").as_bytes())?;
    replace_copy(&own.join("logs/HEAD"), &admin.join("logs/HEAD"))?;
    replace_copy(&own.join("ORIG_HEAD"), &admin.join("ORIG_HEAD"))?;
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
    let reason = format!("centurion works in it (process {})\n", std::process::id());
    kept_files::write(&admin.join("locked"), reason.as_bytes())?;
    if state::is_out(kept, &record) {
        // A process died while it was out: it is as the agent left it.
        return Ok(record);
    }
    let name = format!("refs/heads/{}", record.branch);
    let tip = git.run(At::git_dir(common), ["rev-parse", "--verify", &name]).await;
    let tip = tip.map_or_else(|_| record.base.clone(), |tip| tip.trim().to_owned());
    let refs = private::refs(git, common, &record.branch, &tip).await?;
    kept_files::replace(&own.join("packed-refs"), refs.as_bytes())?;
    kept_files::replace(&kept.refs(), refs.as_bytes())?;
    remove_if_there(&own.join(&name))?;
    for part in ["HEAD", "index", "logs/HEAD"] {
        replace_copy(&admin.join(part), &own.join(part))?;
    }
    private::point(&record.path, &own)?;
    let record = Record { tip, is_out: true, ..record };
    kept.write(&record)?;
    Ok(record)
}

/// Copies a regular file over another in one step. One that is not there is left out.
fn replace_copy(from: &Path, to: &Path) -> io::Result<()> {
    let (mut file, _) = match centurion_files::open_regular(from) {
        Ok(opened) => opened,
        Err(_) if !from.exists() => return Ok(()),
        Err(error) => return Err(io::Error::other(error)),
    };
    if let Some(above) = to.parent() {
        kept_files::create_directory(above)?;
    }
    let new = to.with_extension("centurion");
    remove_if_there(&new)?;
    io::copy(&mut file, &mut kept_files::create(&new)?)?;
    fs::rename(&new, to)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
