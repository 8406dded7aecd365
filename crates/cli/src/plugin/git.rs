//! Fetching with git: nobody is asked anything, nothing of the repository runs, and no shell is used.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use centurion_config::plugins::{GitSource, without_secrets};

use crate::output::printable;

/// What git must not do, whatever the user's own configuration says.
const SETTINGS: [&str; 8] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "credential.interactive=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    // A server that says nothing for so long will not.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
];

/// How many lines of what git says are shown.
const MOST_LINES: usize = 6;

/// Fetches what a source wants to a place where nothing is; gives the commit.
pub(super) fn fetch(source: &GitSource, to: &Path) -> anyhow::Result<String> {
    let mut clone = git(None);
    clone.args(["clone", "--quiet", "--depth", "1", "--no-tags", "--template="]);
    if let Some(reference) = source.reference() {
        clone.args(["--branch", reference]);
    }
    clone.arg("--").arg(source.url()).arg(to);
    run(clone, source)?;
    if let Some(commit) = source.commit() {
        let mut fetch = git(Some(to));
        fetch.args(["fetch", "--quiet", "--depth", "1", "origin", commit]);
        run(fetch, source)?;
        let mut checkout = git(Some(to));
        checkout.args(["checkout", "--quiet", "--detach", commit, "--"]);
        run(checkout, source)?;
    }
    head(to).context("what was fetched has no commit")
}

/// The commit that a checkout is at.
pub(super) fn head(directory: &Path) -> Option<String> {
    let mut command = git(Some(directory));
    let output =
        command.args(["rev-parse", "--verify", "HEAD"]).stderr(Stdio::null()).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?;
    Some(commit.trim().to_owned()).filter(|commit| output.status.success() && !commit.is_empty())
}

fn git(directory: Option<&Path>) -> Command {
    let mut command = Command::new("git");
    if let Some(directory) = directory {
        command.arg("-C").arg(directory);
    }
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "")
        .env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_OBJECT_DIRECTORY")
        .env_remove("GIT_TEMPLATE_DIR")
        .stdin(Stdio::null());
    command
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
