//! The result of an agent in words: the reason of a failure, and as much of its report as fits.

use std::fmt::Write as _;

use centurion_protocol::Outcome;

use crate::agent::isolation::WorktreeEnd;
use crate::agent::task::{End, Task};
use crate::message::titles::listed;
use centurion_worktree::ChangedFile;

/// The most bytes of a report in its recipient's conversation; the output file has all of it.
pub(crate) const REPORT_BOUND: usize = 32_000;

/// The reason why an agent did not do what it was asked to, for its parent.
pub(crate) fn failure(end: &End) -> String {
    let reasons = end.errors.join("; ");
    let with = |what: &str| {
        if reasons.is_empty() { format!("{what}.") } else { format!("{what}: {reasons}.") }
    };
    match end.outcome {
        Outcome::Completed => String::new(),
        Outcome::Empty => with("The agent ended without a report"),
        Outcome::MaxTokens => with("The agent's answer was cut off"),
        Outcome::Refusal => with("The agent's model declined"),
        Outcome::MaxTurns => {
            format!("The agent was stopped after {} requests, the most it may make.", end.turns)
        }
        Outcome::Budget => with("The agent was stopped: its budget is used up"),
        Outcome::ContextOverflow => with("The agent's conversation outgrew its model's window"),
        Outcome::CompactionFailed => with("The agent's conversation could not be made shorter"),
        Outcome::GoalMissed => with("The agent's goal was given up"),
        Outcome::CommandFailed => with("The agent was given a command that cannot be carried out"),
        Outcome::ApiError => with("The agent terminated early due to an API error"),
        Outcome::SchemaMismatch => with("The agent did not hand over data of the required shape"),
        Outcome::JournalFailed => with("The agent's transcript could not be written"),
        Outcome::Stalled => with("The agent was stopped: nothing came of it for too long"),
        Outcome::Denied => with("The agent was not allowed to do what it needed"),
        Outcome::Interrupted => {
            "The agent was interrupted: the program ended before it did. What it had done stands."
                .to_owned()
        }
        Outcome::Fault => with("The agent was ended by a fault of the program"),
        Outcome::HookStopped => with("A hook ended the agent"),
        Outcome::Deferred | Outcome::DeferredUnavailable => {
            with("A call of the agent was put off, which only the main agent's can be")
        }
        Outcome::Cancelled => with("The agent was stopped"),
    }
}

/// The outcome and the whole report.
pub(crate) fn whole_result(task: &Task, end: &End) -> String {
    if end.outcome.is_success() {
        return bounded_result(task, end);
    }
    format!("{}\n{}", failure(end), bounded_result(task, end)).trim_end().to_owned()
}

/// The report as its recipient reads it: all of it, or its beginning and where the rest is.
pub(crate) fn bounded_result(task: &Task, end: &End) -> String {
    result_within(task, end, REPORT_BOUND)
}

/// The report up to a bound, and where the rest is.
pub(crate) fn result_within(task: &Task, end: &End, bound: usize) -> String {
    let text = match &end.structured {
        Some(structured) => structured.to_string(),
        None => end.text.clone(),
    };
    if text.len() <= bound {
        return text;
    }
    let cut = text.floor_char_boundary(bound);
    let (more, file) = (text.len() - cut, task.output.path().display());
    format!("{}\n[{more} more bytes: the whole report is in {file}]", &text[..cut])
}
/// The lines about a worktree in a report; none if it is gone.
pub(crate) fn worktree_words(end: &WorktreeEnd) -> String {
    let Some(path) = end.path() else { return String::new() };
    let mut text = format!("worktreePath: {}\n", path.display());
    if let Some(branch) = end.branch() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "worktreeBranch: {branch}");
    }
    let _ = writeln!(text, "{}", worktree_work(end));
    text
}

/// Describes the content of a kept worktree, and tells whether it merges with the others' work.
pub(crate) fn worktree_work(end: &WorktreeEnd) -> String {
    let report = match end {
        WorktreeEnd::Untouched => return String::new(),
        WorktreeEnd::Stays { reason, .. } => return format!("The worktree stays: {reason}."),
        WorktreeEnd::Kept { report } => report,
    };
    let (added, removed) = report
        .files
        .iter()
        .filter_map(|file| file.lines)
        .fold((0, 0), |(added, removed), lines| (added + lines.0, removed + lines.1));
    let mut text = format!(
        "Work in the worktree: {} changed since {}: {} (+{added} -{removed} in all); its HEAD is {}, {} ahead, {} behind",
        counted(report.files.len() as u64, "file"),
        short(&report.base),
        listed(report.files.iter().map(changed_file), ", "),
        short(&report.head),
        report.ahead,
        report.behind
    );
    if report.uncommitted > 0 {
        let _ = write!(text, "; {} not committed", counted(report.uncommitted as u64, "file"));
    }
    if report.ignored > 0 {
        let _ = write!(text, "; {} that git ignores", report.ignored);
    }
    for note in &report.notes {
        let _ = write!(text, "; {note}");
    }
    for merge in &report.merges {
        if merge.conflicts.is_empty() {
            let _ = write!(text, "; merges into {} without conflict", merge.with);
        } else {
            let files = listed(merge.conflicts.iter(), ", ");
            let _ = write!(text, "; conflicts with {} in {files}", merge.with);
        }
    }
    if !report.saved.is_empty() {
        let _ = write!(text, "; also kept: {}", listed(report.saved.iter(), ", "));
    }
    text.push('.');
    text
}

/// The beginning of a commit's id.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// A file with how many of its lines were added and removed.
fn changed_file(file: &ChangedFile) -> String {
    match file.lines {
        Some((added, removed)) => format!("{} (+{added} -{removed})", file.path),
        None => format!("{} (no text)", file.path),
    }
}

pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
