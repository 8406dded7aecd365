//! The program that a pane is made with: it asks the lead what it is to execute, and becomes that.
//!
//! So the environment of a member, keys included, passes over a private socket, and no other user of the machine reads it
//! from a command line.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Context;
use centurion_engine::member_execution;

use super::pane_output;

/// The first argument of such a program.
pub(crate) const ARGUMENT: &str = "__member";

/// The variables that are the pane's own.
const OF_PANE: [&str; 3] = ["TERM", "TMUX", "TMUX_PANE"];

/// Becomes a member: the arguments are the directory of sockets, the session of the lead and the ticket.
pub(crate) async fn become_member(
    mut arguments: impl Iterator<Item = OsString>,
) -> anyhow::Result<ExitCode> {
    if std::io::stdin().is_terminal() {
        pane_output::take_no_keys().context("the terminal of the pane cannot be set")?;
    }
    let mut next = || arguments.next().context("this is for the panes of teams alone");
    let directory = PathBuf::from(next()?);
    let session = next()?.to_string_lossy().parse().context("the session of the lead")?;
    let ticket = next()?.to_string_lossy().into_owned();
    let execution = member_execution(&directory, session, &ticket).await?;
    let own =
        OF_PANE.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    let failed = Command::new(&execution.program)
        .args(&execution.args)
        .env_clear()
        .envs(execution.environment)
        .envs(own)
        .current_dir(&execution.cwd)
        .exec();
    Err(failed).with_context(|| execution.program.to_string_lossy().into_owned())
}
