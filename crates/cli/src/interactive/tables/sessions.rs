//! The sessions that can be resumed: those of this directory, of all, or of this branch.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use centurion_engine::interrupted_agents;
use centurion_journal::transcript::Loaded;
use centurion_journal::{
    Journal, MOST_TRANSCRIPT, Page, PageEntry, Redaction, Stamp, TranscriptFile,
};
use centurion_protocol::{Block, SessionId, SystemWorld, ToolResultContent, bounded};
use centurion_tui::{Line, Table, TableOf, TableRow, Tone, lines_of, page_lines};

use super::Tables;
use super::session_costs::Spending;
use crate::sessions::{self, ListedSession};

/// The bytes at the end of a session that a preview shows.
const PREVIEW: u64 = 64 * 1024;
/// The most lines of a preview.
const MOST_LINES: usize = 200;
/// The newest sessions, whose agents are looked at.
const LOOKED_AT: usize = 100;
/// The most bytes of a session whose cost is counted for its row.
const MOST_COUNTED: u64 = 512 * 1024;
/// The most places at which words were found that a session shows.
const MOST_PLACES: usize = 5;
/// The characters around a place.
const AROUND: usize = 60;

/// The sessions of the places that a subject means, newest first, without the one that is open.
fn of_places(tables: &Tables, places: &str) -> Vec<ListedSession> {
    let (dirs, cwd) = (&tables.surroundings.dirs, &tables.surroundings.cwd);
    let mut found = match places {
        "all" => sessions::everywhere(dirs),
        _ => sessions::here(dirs, cwd),
    };
    let own = tables.handle.as_ref().map(centurion_engine::Handle::id);
    found.retain(|it| Some(it.id) != own);
    if places == "branch" {
        let branch = branch_of(cwd).unwrap_or_default();
        found.retain(|it| it.branch == branch);
    }
    found
}

pub(super) fn table(tables: &Tables, places: &str) -> Table {
    let found = of_places(tables, places);
    let whose = match places {
        "all" => "in all folders".to_owned(),
        "branch" => format!("on {}", branch_of(&tables.surroundings.cwd).unwrap_or_default()),
        _ => "here".to_owned(),
    };
    let title = format!("Resume · {} {whose}", found.len());
    let rows = found.iter().enumerate();
    let rows = rows.map(|(at, it)| row(it, at < LOOKED_AT, places == "all")).collect();
    Table::new(TableOf::Sessions, title, rows)
}

fn row(session: &ListedSession, looks: bool, says_where: bool) -> TableRow {
    let interrupted = if looks { interrupted_agents(&session.path) } else { Vec::new() };
    let mut hints = Vec::new();
    if !interrupted.is_empty() {
        hints.push(said_of(&interrupted));
    }
    if says_where {
        hints.push(session.cwd.clone());
    }
    let tone = if interrupted.is_empty() { Tone::Plain } else { Tone::Notable };
    let cost = if looks && session.bytes <= MOST_COUNTED {
        Spending::of(&session.path).with_agents(&session.path).dollars()
    } else {
        String::new()
    };
    let cells = vec![age(session.modified), session.branch.clone(), size(session.bytes), cost];
    let title = if session.title.is_empty() { "(nothing was said)" } else { &session.title };
    let hint = hints.join(" · ");
    TableRow { cells, hint, tone, ..TableRow::new(session.id.to_string(), title) }
}

fn said_of(interrupted: &[String]) -> String {
    let names = interrupted.join(", ");
    match interrupted.len() {
        1 => format!("1 agent interrupted: {names}"),
        count => format!("{count} agents interrupted: {names}"),
    }
}

fn age(modified: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(modified).unwrap_or_default().as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KB", bytes / 1_024),
        _ => format!("{}.{} MB", bytes / 1_048_576, bytes % 1_048_576 * 10 / 1_048_576),
    }
}

fn path_of(tables: &Tables, id: &str) -> Option<PathBuf> {
    let (dirs, cwd) = (&tables.surroundings.dirs, &tables.surroundings.cwd);
    sessions::find(dirs, cwd, id.parse::<SessionId>().ok()?)
}

/// The end of what was said in a session.
pub(super) fn detail(tables: &Tables, id: &str) -> Vec<Line> {
    let Some(path) = path_of(tables, id) else { return lines_of("it is not there any more") };
    let mut lines = lines_of(&Spending::of(&path).with_agents(&path).words());
    lines.push(Line::default());
    let interrupted = interrupted_agents(&path);
    if !interrupted.is_empty() {
        lines.extend(lines_of(&format!("{}; a message resumes it", said_of(&interrupted))));
        lines.push(Line::default());
    }
    match Page::before(&path, None, PREVIEW) {
        Ok(page) => {
            let mut said = page_lines(&page);
            let surplus = said.len().saturating_sub(MOST_LINES);
            said.drain(..surplus);
            lines.extend(said);
        }
        Err(error) => lines.extend(lines_of(&error.to_string())),
    }
    lines
}

/// The sessions in which words were said, each with the places.
pub(super) fn search(tables: &Tables, words: &str, places: &str) -> Vec<(String, Vec<Line>)> {
    let words = words.to_lowercase();
    let found = of_places(tables, places).into_iter().filter_map(|session| {
        let places = places_in(&session.path, &words);
        (!places.is_empty()).then(|| (session.id.to_string(), lines_of(&places.join("\n"))))
    });
    found.collect()
}

/// The places of a transcript at which something was said, the last ones.
fn places_in(path: &Path, words: &str) -> Vec<String> {
    // Words stand escaped in the file: that is looked at first, because it is quick.
    let escaped = serde_json::to_string(words).unwrap_or_default();
    let escaped = escaped.trim_matches('"').to_owned();
    let text = bounded::read_file(path, MOST_TRANSCRIPT).unwrap_or_default();
    if !String::from_utf8_lossy(&text).to_lowercase().contains(&escaped) {
        return Vec::new();
    }
    let Ok(page) = Page::before(path, None, MOST_TRANSCRIPT) else { return Vec::new() };
    let texts = page.entries.iter().rev().flat_map(texts_of);
    let places = texts.flat_map(|text| around(&text, words)).take(MOST_PLACES);
    places.map(|place| format!("… {place} …")).collect()
}

/// The texts of a record that people read.
fn texts_of(entry: &PageEntry) -> Vec<String> {
    let text = |block: &Block| match block {
        Block::Text(text) => vec![text.clone()],
        Block::ToolUse(call) => vec![format!("{} {}", call.name, call.input.get())],
        Block::ToolResult(result) => result
            .content
            .iter()
            .filter_map(|part| match part {
                ToolResultContent::Text(text) => Some(text.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    entry.blocks.iter().flat_map(text).collect()
}

/// The lines of a text that have words, cut to what is around them.
fn around(text: &str, words: &str) -> Vec<String> {
    let cut = |line: &str| {
        let lower = line.to_lowercase();
        let at = lower.find(words)?;
        // Letters may have another length in lower case: the place is meant, not the byte.
        let before = lower.get(..at).map_or(0, |text| text.chars().count());
        let skipped = before.saturating_sub(AROUND);
        let most = 2 * AROUND + words.chars().count();
        Some(line.chars().skip(skipped).take(most).collect::<String>().trim().to_owned())
    };
    text.lines().filter_map(cut).collect()
}

/// The branch of a checkout, without asking git.
fn branch_of(cwd: &Path) -> Option<String> {
    let root = centurion_config::paths::repo_root(cwd)?;
    let git = root.join(".git");
    let directory = if git.is_file() {
        let text = bounded::read_text_file(&git, 4_096).ok()?;
        root.join(text.strip_prefix("gitdir:")?.trim())
    } else {
        git
    };
    let head = bounded::read_text_file(&directory.join("HEAD"), 4_096).ok()?;
    Some(head.trim().strip_prefix("ref: refs/heads/")?.to_owned())
}

/// Names a session that is not open.
pub(super) fn rename(tables: &Tables, session: SessionId, title: &str) -> anyhow::Result<String> {
    let path = path_of(tables, &session.to_string());
    let path = path.ok_or_else(|| anyhow::anyhow!("the session is not there any more"))?;
    let file = TranscriptFile::open(&path)?;
    let stamp = Stamp {
        session,
        agent: None,
        cwd: tables.surroundings.cwd.display().to_string(),
        git_branch: String::new(),
        entrypoint: "cli".to_owned(),
    };
    let world = Arc::new(SystemWorld);
    let journal = Journal::resume(file, &Loaded::default(), stamp, world, Redaction::On);
    journal.note_title(title)?;
    Ok(format!("it is called {title} from now on"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_cut_around_the_words_whatever_the_letters_are() {
        let long = format!("{}İ the Needle in it {}", "ä".repeat(200), "ö".repeat(200));
        let found = around(&format!("nothing\n{long}\n"), "needle");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("the Needle in it"), "{found:?}");
        assert!(found[0].chars().count() <= 2 * AROUND + 6, "{found:?}");
        assert!(around("no such words", "needle").is_empty());
    }
}
