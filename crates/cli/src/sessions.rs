//! `centurion sessions`: what was talked about here, and one session in full.

mod rewind;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context;
use centurion_config::paths::{Dirs, project_slug};
use centurion_journal::{Glance, MOST_TRANSCRIPT};
use centurion_protocol::{Block, Role, SessionId, Timestamp, ToolResultContent, bounded};
use clap::{Parser, Subcommand};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::args::NamedSession;
use crate::output::{Output, printable};
use crate::surroundings::Surroundings;

/// The most characters of a first prompt that the list shows.
const TITLE: usize = 70;
/// The most lines of each result that a session in full shows.
const RESULT_LINES: usize = 12;

/// Lists sessions, or shows one.
#[derive(Debug, Parser)]
#[command(name = "centurion sessions")]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    action: Option<SessionsAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Sessions of all directories
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Subcommand)]
enum SessionsAction {
    /// List the sessions of this directory, newest first
    List,
    /// Print what was said and done in a session
    Show { id: SessionId },
    /// Go back to an earlier prompt of a session, or list those to which one can go back
    Rewind(rewind::RewindArgs),
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    id: SessionId,
    modified: Timestamp,
    bytes: u64,
    title: String,
    cwd: String,
    path: PathBuf,
}

pub(crate) fn run(args: &SessionsArgs) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::observe()?;
    let output = Output::default();
    match &args.action {
        Some(SessionsAction::Show { id }) => {
            show(&existing(&surroundings, *id)?, args.json, &output)?;
        }
        Some(SessionsAction::Rewind(rewind)) => {
            let path = existing(&surroundings, rewind.session)?;
            return rewind::run(rewind, &path, args.json, &output);
        }
        Some(SessionsAction::List) | None => {
            let all = if args.all {
                newest_first(&all_projects(&surroundings.dirs))
            } else {
                of_project(&surroundings.dirs, &surroundings.cwd).collect()
            };
            list(all, args.json, &output);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The transcript of a session that the user named.
fn existing(surroundings: &Surroundings, id: SessionId) -> anyhow::Result<PathBuf> {
    find(&surroundings.dirs, &surroundings.cwd, id)
        .with_context(|| format!("there is no session {id}\nhelp: centurion sessions --all"))
}

/// The directory of copies of the files that the agents of a session change.
pub(crate) fn file_history(transcript: &Path) -> PathBuf {
    transcript.with_extension("").join(centurion_engine::FILE_HISTORY)
}

/// The transcript of a session of this directory.
pub(crate) fn find_here(dirs: &Dirs, cwd: &Path, id: SessionId) -> Option<PathBuf> {
    find_in(dirs.project_dirs(cwd), id).filter(|path| is_of_project(path, cwd))
}

/// The transcript of a session: of this directory, or else of any other.
pub(crate) fn find(dirs: &Dirs, cwd: &Path, id: SessionId) -> Option<PathBuf> {
    find_here(dirs, cwd, id).or_else(|| find_in(all_projects(dirs), id))
}

fn find_in(places: Vec<PathBuf>, id: SessionId) -> Option<PathBuf> {
    let name = format!("{id}.jsonl");
    places.into_iter().map(|place| place.join(&name)).find(|path| path.is_file())
}

/// The directories of all projects that have sessions.
fn all_projects(dirs: &Dirs) -> Vec<PathBuf> {
    dirs.projects_dirs().iter().flat_map(|place| subdirectories(place)).collect()
}

/// The error for a user who wants to resume without saying what.
pub(crate) fn which(dirs: &Dirs, cwd: &Path) -> anyhow::Error {
    let newest = of_project(dirs, cwd)
        .take(5)
        .filter_map(|(id, path, modified)| summary(id, path, modified));
    let help: Vec<String> = newest
        .map(|session| format!("\nhelp: --resume {}  {}", session.id, session.title))
        .collect();
    anyhow::anyhow!("--resume needs the id or the name of a session{}", help.concat())
}

/// The session that a person names: by its id, wherever it is, or by the name that it has in this directory.
pub(crate) fn named(
    dirs: &Dirs,
    cwd: &Path,
    named: &NamedSession,
) -> anyhow::Result<(SessionId, PathBuf)> {
    const HELP: &str = "help: centurion sessions lists those of this directory";
    let wanted = match named {
        NamedSession::Id(id) => {
            let path = find(dirs, cwd, *id);
            return Ok((*id, path.with_context(|| format!("there is no session {id}\n{HELP}"))?));
        }
        NamedSession::Title(title) => title,
    };
    let mut found: Vec<ListedSession> = here(dirs, cwd);
    found.retain(|session| session.title.trim() == wanted);
    match found.as_slice() {
        [] => anyhow::bail!("there is no session named `{wanted}` in this directory\n{HELP}"),
        [session] => Ok((session.id, session.path.clone())),
        several => {
            let help: Vec<String> =
                several.iter().map(|it| format!("\nhelp: --resume {}", it.id)).collect();
            anyhow::bail!("several sessions are named `{wanted}`{}", help.concat())
        }
    }
}

/// A session of a directory, in short.
pub(crate) struct ListedSession {
    pub(crate) id: SessionId,
    pub(crate) path: PathBuf,
    pub(crate) modified: SystemTime,
    pub(crate) title: String,
    pub(crate) bytes: u64,
    pub(crate) cwd: String,
    pub(crate) branch: String,
}

/// All sessions of a directory, newest first.
pub(crate) fn here(dirs: &Dirs, cwd: &Path) -> Vec<ListedSession> {
    of_project(dirs, cwd).filter_map(at_a_glance).collect()
}

/// All sessions of all directories, newest first.
pub(crate) fn everywhere(dirs: &Dirs) -> Vec<ListedSession> {
    newest_first(&all_projects(dirs)).into_iter().filter_map(at_a_glance).collect()
}

fn at_a_glance((id, path, modified): Transcript) -> Option<ListedSession> {
    let Glance { bytes, title, cwd, branch, .. } = Glance::at(&path)?;
    Some(ListedSession { id, path, modified, title, bytes, cwd, branch })
}

/// The session of a directory that was written last.
pub(crate) fn newest(dirs: &Dirs, cwd: &Path) -> Option<(SessionId, PathBuf)> {
    of_project(dirs, cwd).next().map(|(id, path, _)| (id, path))
}

/// The transcripts of the sessions that belong to a directory, newest first. Several directories may have one name among
/// the places of sessions.
fn of_project(dirs: &Dirs, cwd: &Path) -> impl Iterator<Item = Transcript> {
    let all = newest_first(&dirs.project_dirs(cwd)).into_iter();
    all.filter(move |(_, path, _)| is_of_project(path, cwd))
}

/// Whether a session at the place of a directory began there, and not in another directory of the same name. One that
/// was brought from a place of another name, such as a fork, belongs to the directory in which it was last.
fn is_of_project(transcript: &Path, directory: &Path) -> bool {
    let Some(glance) = Glance::at(transcript) else { return true };
    let name = project_slug(directory);
    let mut places = [&glance.cwd, &glance.last_cwd].into_iter().map(Path::new);
    let Some(place) = places.find(|place| project_slug(place) == name) else { return true };
    place == directory || place.canonicalize().is_ok_and(|real| real == directory)
}

fn subdirectories(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

/// A session, its transcript, and when that was written last.
type Transcript = (SessionId, PathBuf, SystemTime);

fn newest_first(places: &[PathBuf]) -> Vec<Transcript> {
    let mut all = transcripts(places);
    all.sort_by_key(|(.., modified)| std::cmp::Reverse(*modified));
    all
}

fn transcripts(places: &[PathBuf]) -> Vec<Transcript> {
    let entries = |place: &PathBuf| std::fs::read_dir(place).into_iter().flatten().flatten();
    places
        .iter()
        .flat_map(entries)
        .filter_map(|entry| {
            let path = entry.path();
            let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?.parse().ok()?;
            Some((id, path, entry.metadata().ok()?.modified().ok()?))
        })
        .collect()
}

fn list(all: Vec<Transcript>, json: bool, output: &Output) {
    let summaries: Vec<Summary> =
        all.into_iter().filter_map(|(id, path, modified)| summary(id, path, modified)).collect();
    if json {
        return output.json_line(&summaries);
    }
    if summaries.is_empty() {
        return output.write(b"No sessions here yet. centurion -p \"what to do\" starts one.\n");
    }
    for summary in summaries {
        let when =
            summary.modified.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
        let title = printable(&summary.title);
        output.write(format!("{}  {when}  {title}\n", summary.id).as_bytes());
    }
}

/// Reads the two ends of a transcript for the list, and not the rest of the file.
fn summary(id: SessionId, path: PathBuf, modified: SystemTime) -> Option<Summary> {
    let Glance { bytes, title, cwd, .. } = Glance::at(&path)?;
    let title = title.chars().take(TITLE).collect();
    let modified = Timestamp::from(jiff::Timestamp::try_from(modified).ok()?);
    Some(Summary { id, modified, bytes, title, cwd, path })
}

/// Prints the conversation of a transcript, as a model would see it on resume.
fn show(path: &Path, json: bool, output: &Output) -> anyhow::Result<()> {
    let text = bounded::read_file(path, MOST_TRANSCRIPT)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if json {
        output.write(&text);
        return Ok(());
    }
    let loaded = centurion_journal::transcript::load(&text);
    for message in loaded.conversation.iter() {
        for block in message.blocks() {
            for line in render(message.role(), &block).lines() {
                output.write(format!("{}\n", printable(line)).as_bytes());
            }
        }
    }
    if loaded.broken_lines > 0 {
        output.write(format!("({} lines could not be read)\n", loaded.broken_lines).as_bytes());
    }
    Ok(())
}

fn render(role: Role, block: &Block) -> String {
    match block {
        Block::Text(text) if role == Role::User => {
            format!("> {}\n\n", text.trim().replace('\n', "\n> "))
        }
        Block::Text(text) => format!("{}\n\n", text.trim()),
        Block::ToolUse(call) => format!("● {} {}\n", call.name, call.input.get()),
        Block::ToolResult(result) => {
            let text: String = result
                .content
                .iter()
                .map(|part| match part {
                    ToolResultContent::Text(text) => text.as_str(),
                    _ => "[attachment]",
                })
                .collect();
            let shown: Vec<&str> = text.lines().take(RESULT_LINES).collect();
            let more = text.lines().count().saturating_sub(RESULT_LINES);
            let more = if more > 0 { format!("\n  … {more} more lines") } else { String::new() };
            format!("  {}{more}\n\n", shown.join("\n  "))
        }
        Block::Image { .. } | Block::Document { .. } => "[attachment]\n\n".to_owned(),
        Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::Other(_) => String::new(),
    }
}
