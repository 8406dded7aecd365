//! `centurion trust`: which folders may bring allow rules, hooks and servers of their own, and what of them
//! was accepted.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use centurion_config::trust::{
    AnswerStorage, Difference, ItemChange, Survey, Trust, TrustKey, TrustState, TrustedBy, survey,
};
use centurion_diff::LineDiff;
use centurion_protocol::SystemWorld;
use centurion_redact::redact_text;
use clap::{Parser, Subcommand};

use crate::configuration::open_trust;
use crate::output::{Output, note, visible};
use crate::surroundings::Surroundings;

/// Shows, grants or revokes trust in a folder.
#[derive(Debug, Parser)]
#[command(name = "centurion trust")]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    action: Option<TrustAction>,
}

#[derive(Debug, Subcommand)]
enum TrustAction {
    /// Say whether a folder is trusted, and what in it differs from what was accepted
    Status { folder: Option<PathBuf> },
    /// Trust a folder: what it holds now counts from now on, and what changes later does not
    Grant { folder: Option<PathBuf> },
    /// Trust a folder no longer
    Revoke { folder: Option<PathBuf> },
    /// List the folders that are trusted
    List,
}

pub(crate) fn run(args: &TrustArgs) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::observe()?;
    let text = match args.action.as_ref().unwrap_or(&TrustAction::Status { folder: None }) {
        TrustAction::Status { folder } => status(&at(surroundings, folder.as_ref())?)?,
        TrustAction::Grant { folder } => grant(&at(surroundings, folder.as_ref())?)?,
        TrustAction::Revoke { folder } => {
            let surroundings = at(surroundings, folder.as_ref())?;
            let key = TrustKey::of(&surroundings.cwd);
            open_trust(&surroundings)?.revoke(&key).context("the answer could not be kept")?;
            format!("{}: not trusted\n", key.path().display())
        }
        TrustAction::List => {
            let line = |(path, by): (&std::path::Path, TrustedBy)| {
                format!("{}  ({})\n", path.display(), who(by))
            };
            open_trust(&surroundings)?.list().into_iter().map(line).collect()
        }
    };
    Output::default().write_text(&text);
    Ok(ExitCode::SUCCESS)
}

/// The surroundings of a folder that is named.
fn at(surroundings: Surroundings, folder: Option<&PathBuf>) -> anyhow::Result<Surroundings> {
    let Some(folder) = folder else { return Ok(surroundings) };
    let folder = surroundings.cwd.join(folder);
    anyhow::ensure!(folder.is_dir(), "{} is no folder", folder.display());
    Ok(surroundings.elsewhere(folder.canonicalize().unwrap_or(folder)))
}

fn look(surroundings: &Surroundings) -> Survey {
    let found = survey(&surroundings.cwd, surroundings.home.as_deref(), &SystemWorld);
    if found.is_cut {
        note(&format!(
            "warning: {} has more directories than are looked into\n\
             help: `centurion trust grant` in a directory accepts what is in it",
            found.root.display()
        ));
    }
    found
}

fn status(surroundings: &Surroundings) -> anyhow::Result<String> {
    let (trust, key) = (open_trust(surroundings)?, TrustKey::of(&surroundings.cwd));
    let state = trust.state(&key);
    // As it is: what looks like a password to us may be a command to a shell, and a person decides on what is shown.
    let difference = trust.difference(&key, &look(surroundings), &str::to_owned)?;
    let mut text = format!("{}: {}\n", key.path().display(), describe(&state));
    if difference.changes.is_empty() {
        return Ok(text);
    }
    text.push_str(match state {
        TrustState::Trusted(_) if difference.has_unaccepted() => {
            "\nThis differs from what was accepted. What was added or changed is off; \
             `centurion trust grant` accepts it.\n"
        }
        TrustState::Trusted(_) => "\nThis was accepted and is gone.\n",
        TrustState::Parent(_) | TrustState::Untrusted => {
            "\nThis is what `centurion trust grant` would accept.\n"
        }
    });
    for change in &difference.changes {
        text.push_str(&shown(change));
    }
    Ok(text)
}

pub(crate) fn grant(surroundings: &Surroundings) -> anyhow::Result<String> {
    let (mut trust, key) = (open_trust(surroundings)?, TrustKey::of(&surroundings.cwd));
    let found = look(surroundings);
    let before = trust.difference(&key, &found, &without_secrets).unwrap_or_default();
    keep(&mut trust, &key, &found)?;
    let mut text = format!("{}: trusted\n", key.path().display());
    for line in lines(&before) {
        let _ = writeln!(text, "  accepted: {line}");
    }
    Ok(text)
}

/// A text as it may be kept.
pub(crate) fn without_secrets(text: &str) -> String {
    redact_text(text).into_owned()
}

/// The additions and changes in the folder of a run since it was trusted, in one line each.
pub(crate) fn differences(
    trust: &Trust,
    surroundings: &Surroundings,
) -> anyhow::Result<Vec<String>> {
    let key = TrustKey::of(&surroundings.cwd);
    let found = look(surroundings);
    let found = match trust.state(&key) {
        TrustState::Trusted(_) => found,
        // A person who did not ask for it is shown nothing from elsewhere.
        TrustState::Parent(_) | TrustState::Untrusted => found.without_links_out(),
    };
    Ok(lines(&trust.difference(&key, &found, &without_secrets)?))
}

/// The most lines of what a folder brings that are shown at its first start.
const MOST_SHOWN: usize = 2_000;

/// The powers that a folder brings, as they are put before a person at the first start.
pub(crate) struct TrustQuestion {
    key: TrustKey,
    found: Survey,
    /// Each item with what it says.
    pub(crate) lines: Vec<String>,
}

impl TrustQuestion {
    /// Looks at a folder that is not trusted; `None` if it brings nothing. A person who did not ask for it is shown nothing
    /// from elsewhere.
    pub(crate) fn look(trust: &Trust, surroundings: &Surroundings) -> anyhow::Result<Option<Self>> {
        let key = TrustKey::of(&surroundings.cwd);
        let found = look(surroundings).without_links_out();
        let difference = trust.difference(&key, &found, &without_secrets)?;
        let there = difference.changes.iter().filter(|change| change.after.is_some());
        let texts: Vec<String> = there.map(shown).collect();
        let all = texts.iter().flat_map(|text| text.trim_start_matches('\n').lines());
        let mut lines: Vec<String> = all.clone().take(MOST_SHOWN).map(str::to_owned).collect();
        let more = all.count() - lines.len();
        if more > 0 {
            lines.push(format!("{more} more lines: `centurion trust status` shows all of them"));
        }
        Ok((!lines.is_empty()).then_some(Self { key, found, lines }))
    }

    /// Trusts the folder with what was shown, and with nothing that came meanwhile.
    pub(crate) fn grant(&self, surroundings: &Surroundings) -> anyhow::Result<()> {
        let mut trust = open_trust(surroundings)?;
        keep(&mut trust, &self.key, &self.found)
    }
}

/// Keeps the answer that a folder is trusted.
fn keep(trust: &mut Trust, key: &TrustKey, found: &Survey) -> anyhow::Result<()> {
    let kept = trust.grant(key, found, &without_secrets).context("the answer could not be kept")?;
    anyhow::ensure!(
        kept == AnswerStorage::Stored,
        "the home directory cannot be trusted: too much lies below it"
    );
    Ok(())
}

/// Added and changed items, in one line each.
fn lines(difference: &Difference) -> Vec<String> {
    let there = difference.changes.iter().filter(|change| change.after.is_some());
    there.map(title).collect()
}

fn title(change: &ItemChange) -> String {
    let what = match (&change.before, &change.after) {
        (None, _) => "added",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    };
    visible(&format!("{what} {}, {}", change.file.display(), change.item)).replace('\n', "\\n")
}

/// A change with its text, as a unified difference.
fn shown(change: &ItemChange) -> String {
    let (before, after) =
        (change.before.as_deref().unwrap_or_default(), change.after.as_deref().unwrap_or_default());
    let mut text = format!("\n{}\n", title(change));
    if before == after {
        text.push_str("    (it differs in what is not shown)\n");
    }
    for hunk in LineDiff::new(before, after).hunks(3) {
        for line in hunk.lines() {
            let shown = visible(line.text.trim_end_matches('\n'));
            let _ = writeln!(text, "    {}{shown}", line.sign);
        }
    }
    text
}

/// The state of a folder in words.
pub(crate) fn describe(state: &TrustState) -> String {
    match state {
        TrustState::Trusted(by) => format!("trusted ({})", who(*by)),
        TrustState::Parent(parent) => format!(
            "a folder above it is trusted ({}), it is not itself: its allow rules and servers are off, \
             and its hooks unless they were accepted with that folder",
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
