//! `centurion trust`: which folders may bring allow rules, hooks and servers of their own.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use centurion_config::trust::{Kept, TrustKey, TrustState, TrustedBy};
use clap::{Parser, Subcommand};

use crate::configuration::open_trust;
use crate::output::Output;
use crate::surroundings::Surroundings;

/// Shows, grants or revokes trust in a folder.
#[derive(Debug, Parser)]
#[command(name = "centurion trust")]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say whether a folder is trusted
    Status { folder: Option<PathBuf> },
    /// Trust a folder: what its repository brings counts from now on
    Grant { folder: Option<PathBuf> },
    /// Trust a folder no longer
    Revoke { folder: Option<PathBuf> },
    /// List the folders that are trusted
    List,
}

pub(crate) fn run(args: &TrustArgs) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::observe()?;
    let mut trust = open_trust(&surroundings)?;
    let key = |folder: &Option<PathBuf>| {
        let folder =
            folder.as_ref().map_or(surroundings.cwd.clone(), |path| surroundings.cwd.join(path));
        anyhow::ensure!(folder.is_dir(), "{} is no folder", folder.display());
        Ok(TrustKey::of(&folder))
    };
    let text = match args.action.as_ref().unwrap_or(&Action::Status { folder: None }) {
        Action::Status { folder } => {
            let key = key(folder)?;
            format!("{}: {}\n", key.path().display(), describe(&trust.state(&key)))
        }
        Action::Grant { folder } => {
            let key = key(folder)?;
            let kept = trust.grant(&key).context("the answer could not be kept")?;
            anyhow::ensure!(
                kept == Kept::Stored,
                "the home directory cannot be trusted: too much lies below it"
            );
            format!("{}: trusted\n", key.path().display())
        }
        Action::Revoke { folder } => {
            let key = key(folder)?;
            trust.revoke(&key).context("the answer could not be kept")?;
            format!("{}: not trusted\n", key.path().display())
        }
        Action::List => {
            let line = |(path, by): (&std::path::Path, TrustedBy)| {
                format!("{}  ({})\n", path.display(), who(by))
            };
            trust.list().into_iter().map(line).collect()
        }
    };
    Output::default().write(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// The state of a folder in words.
pub(crate) fn describe(state: &TrustState) -> String {
    match state {
        TrustState::Trusted(by) => format!("trusted ({})", who(*by)),
        TrustState::Parent(parent) => format!(
            "a folder above it is trusted ({}), it is not itself: its allow rules, hooks and servers are off",
            parent.display()
        ),
        TrustState::Untrusted => {
            "not trusted: allow rules, hooks and servers that its repository brings are off; \
             `centurion trust grant` turns them on"
                .to_owned()
        }
    }
}

fn who(by: TrustedBy) -> &'static str {
    match by {
        TrustedBy::Store => "granted here",
        TrustedBy::ThisRun => "for this run",
        TrustedBy::Other => "granted to another program",
    }
}
