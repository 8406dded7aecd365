//! The prompts to which one can go back, each with what going back would do to files.

use anyhow::Context as _;
use centurion_journal::MOST_TRANSCRIPT;
use centurion_protocol::bounded;
use centurion_tools::{FileHistory, Prompt, Rewind};
use centurion_tui::{Line, Table, TableOf, TableRow, Tone, lines_of};

use super::{Tables, one_line};
use crate::sessions;

/// The history of files, and the path of the transcript.
fn history(tables: &Tables) -> anyhow::Result<(FileHistory, std::path::PathBuf)> {
    let path = tables.handle()?.transcript(None).context("this session keeps no transcript")?;
    let text = bounded::read_file(&path, MOST_TRANSCRIPT).unwrap_or_default();
    Ok((FileHistory::read(&text), path))
}

/// The prompts of the conversation as it is, in their order: their places are the numbers of `/rewind`.
fn prompts(history: &FileHistory) -> Vec<&Prompt> {
    history.prompts.iter().filter(|it| it.is_current && !it.is_rewind).collect()
}

pub(super) fn table(tables: &Tables) -> anyhow::Result<Table> {
    let (history, _) = history(tables)?;
    let prompts = prompts(&history);
    let row = |(at, prompt): (usize, &&Prompt)| {
        let changed = match history.changed_since(prompt) {
            0 => "no file".to_owned(),
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        let tone = if changed == "no file" { Tone::Plain } else { Tone::Notable };
        let cells = vec![format!("{changed} since")];
        let value = prompt.text.clone();
        TableRow {
            cells,
            tone,
            value,
            ..TableRow::new((at + 1).to_string(), one_line(&prompt.text))
        }
    };
    // The newest first: one goes back a little more often than far.
    let rows = prompts.iter().enumerate().map(row).rev().collect();
    Ok(Table::new(TableOf::Points, "Go back to before", rows))
}

/// The effects that going back to a prompt would have.
pub(super) fn detail(tables: &Tables, id: &str) -> Vec<Line> {
    let told = || -> anyhow::Result<String> {
        let (history, path) = history(tables)?;
        let prompts = prompts(&history);
        let place = id.parse::<usize>()?.checked_sub(1).context("there is no such prompt")?;
        let prompt = *prompts.get(place).context("there is no such prompt")?;
        let plan = Rewind::plan(&history, prompt, &sessions::file_history(&path));
        Ok(said(&plan, &prompts[place..]))
    };
    lines_of(&told().unwrap_or_else(|error| error.to_string()))
}

fn said(plan: &Rewind, taken_back: &[&Prompt]) -> String {
    let mut lines: Vec<String> = Vec::new();
    if plan.files.is_empty() && plan.set_aside.is_empty() {
        lines.push("No file would change.".to_owned());
    }
    for file in &plan.files {
        let (more, less) = (file.insertions, file.deletions);
        let (path, by_whom) = (file.path.display(), file.by_whom());
        lines.push(format!("would be as it was: {path} (+{more} -{less}){by_whom}"));
    }
    for aside in &plan.set_aside {
        let path = aside.path.display();
        lines.push(format!("changed by others, would be set aside: {path}"));
    }
    for link in &plan.skipped_links {
        lines.push(format!("a link now, left alone: {}", link.display()));
    }
    for (path, reason) in &plan.failed {
        lines.push(format!("would not come back: {}: {reason}", path.display()));
    }
    lines.push(String::new());
    lines.push("Taken back would be:".to_owned());
    lines.extend(taken_back.iter().map(|prompt| format!("  › {}", one_line(&prompt.text))));
    lines.join("\n")
}
