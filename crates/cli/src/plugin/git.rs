//! Fetching with git: the user is asked nothing, nothing of the repository runs, and no shell is used.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use centurion_config::plugins::{GitSource, without_secrets};
use centurion_config::repository::GitDirs;
use centurion_protocol::Env;
use centurion_tools::{GitPlaces, InstalledGit};

use crate::output::printable;

/// The longest time for which a stranger's repository is looked at.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest name of a commit.
const MOST_HEAD: u64 = 1024;

/// The most lines of git's output that are shown.
const MOST_LINES: usize = 6;

/// Fetches what a source wants to a place where nothing is; gives the commit.
pub(super) fn fetch(source: &GitSource, env: &Env, to: &Path) -> anyhow::Result<String> {
    let beside = to.parent().context("a repository cannot be fetched to the root")?;
    let mut clone = git(env, beside)?;
    clone.args(["clone", "--quiet", "--depth", "1", "--no-tags", "--template="]);
    if let Some(reference) = source.reference() {
        clone.args(["--branch", reference]);
    }
    clone.arg("--").arg(source.url()).arg(to);
    run(clone, source)?;
    if let Some(commit) = source.commit() {
        let mut fetch = git(env, to)?;
        fetch.args(["fetch", "--quiet", "--depth", "1", "origin", commit]);
        run(fetch, source)?;
        let mut checkout = git(env, to)?;
        checkout.args(["checkout", "--quiet", "--detach", commit, "--"]);
        run(checkout, source)?;
    }
    head(env, to).context("what was fetched has no commit")
}

/// The commit that a checkout is at. It may be a stranger's directory.
pub(super) fn head(env: &Env, directory: &Path) -> Option<String> {
    head_within(env, directory, PATIENCE)
}

fn head_within(env: &Env, directory: &Path, patience: Duration) -> Option<String> {
    let work_tree = directory.canonicalize().ok()?;
    let dirs = GitDirs::of(&work_tree)?;
    let git = InstalledGit::find(env, &work_tree)?;
    let places = GitPlaces { work_tree, directories: vec![dirs.own, dirs.common] };
    let mut command = git.reading(&places, &["rev-parse", "--verify", "HEAD"]).ok()?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let deadline = Instant::now() + patience;
    // It says one line, which a pipe holds.
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().and_then(|()| child.wait()).ok()?;
                return None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let mut commit = String::new();
    child.stdout.take()?.take(MOST_HEAD).read_to_string(&mut commit).ok()?;
    Some(commit.trim().to_owned()).filter(|commit| status.success() && !commit.is_empty())
}

fn git(env: &Env, directory: &Path) -> anyhow::Result<Command> {
    InstalledGit::fetching(env, directory).context("git cannot be started")
}

fn run(mut command: Command, source: &GitSource) -> anyhow::Result<()> {
    let output = command.output().context("git cannot be started")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.replace(source.url(), &without_secrets(source.url()));
    let lines: Vec<String> =
        said.lines().filter(|line| !line.trim().is_empty()).map(printable).collect();
    let last = lines.iter().skip(lines.len().saturating_sub(MOST_LINES));
    bail!("{source} cannot be fetched: {}", last.cloned().collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_in_which_git_waits_for_ever_is_looked_at_for_a_while() {
        let scratch = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "init.defaultBranch=main",
            ]);
            let status = git.args(arguments).current_dir(scratch.path()).status();
            assert!(status.unwrap().success(), "{arguments:?}");
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let env = Env::new([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        let found = head_within(&env, scratch.path(), Duration::from_mins(1));
        assert_eq!(found.map(|commit| commit.len()), Some(40));
        let branch = scratch.path().join(".git/refs/heads/main");
        std::fs::remove_file(&branch).unwrap();
        assert!(Command::new("mkfifo").arg(&branch).status().unwrap().success());
        assert_eq!(head_within(&env, scratch.path(), Duration::from_millis(300)), None);
    }
}
