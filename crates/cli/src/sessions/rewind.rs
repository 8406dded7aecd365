//! `centurion sessions rewind`: back to an earlier prompt, with files, conversation or both.
//!
//! Nothing is deleted. What was said since stays in the transcript, on a branch of its own; files that others changed
//! since are set aside.

use std::convert::Infallible;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use centurion_journal::transcript::Loaded;
use centurion_journal::{Journal, Redaction, Stamp, TranscriptFile};
use centurion_protocol::{RecordId, SessionId, SystemWorld, World as _};
use centurion_tools::{ChangeLog, Checkpoints, FileHistory, Prompt, Rewind};
use clap::Args;
use serde_json::json;

use super::file_history;
use crate::output::{Output, printable};

/// The most characters of a prompt that a list shows.
const SHOWN: usize = 60;

#[derive(Debug, Args)]
pub(super) struct RewindArgs {
    pub(super) session: SessionId,
    /// The prompt that is taken back; without it, prompts are listed
    #[arg(long, value_name = "PROMPT")]
    to: Option<RecordId>,
    /// Only the files
    #[arg(long, conflicts_with = "conversation")]
    files: bool,
    /// Only the conversation
    #[arg(long)]
    conversation: bool,
    /// Say what would be done
    #[arg(long, requires = "to")]
    dry_run: bool,
}

pub(super) fn run(
    args: &RewindArgs,
    path: &Path,
    json: bool,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    // Locked before it is read: a session that is open continues meanwhile.
    let mut file = TranscriptFile::open(path)?;
    let history = FileHistory::read(&file.read()?);
    let Some(to) = args.to else {
        list(&history, json, output);
        return Ok(ExitCode::SUCCESS);
    };
    let prompt = history.find(to).with_context(|| {
        format!("there is no prompt {to}\nhelp: centurion sessions rewind {}", args.session)
    })?;
    anyhow::ensure!(
        args.files || !prompt.is_rewind,
        "{to} is what files were before a rewind\nhelp: --files brings them back"
    );
    let directory = file_history(path);
    if args.dry_run {
        let rewind = Rewind::plan(&history, prompt, &directory);
        tell(&rewind, Tense::Would, args, json, output);
        return Ok(ExitCode::SUCCESS);
    }
    let stamp = Stamp {
        session: args.session,
        agent: None,
        cwd: std::env::current_dir().unwrap_or_default().display().to_string(),
        git_branch: String::new(),
        entrypoint: "cli".to_owned(),
    };
    let world = Arc::new(SystemWorld);
    let journal = Journal::resume(file, &Loaded::default(), stamp, world.clone(), Redaction::On);
    let journal = Arc::new(journal);
    let rewind = if args.conversation {
        Rewind::default()
    } else {
        let checkpoints = Checkpoints::new(directory, log(&journal), world.clone());
        // The changes that are undone now can be brought back as well.
        let Ok(_) = checkpoints.begin(|| Ok::<_, Infallible>(world.record_id()));
        Rewind::apply(&history, prompt, &checkpoints)
    };
    if !args.files && rewind.failed.is_empty() {
        journal.branch_from(prompt.parent)?;
    }
    tell(&rewind, Tense::Did, args, json, output);
    Ok(if rewind.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn log(journal: &Arc<Journal>) -> ChangeLog {
    let journal = Arc::clone(journal);
    Box::new(move |prompt, files, timestamp| {
        journal.note_files(prompt, files, timestamp).map_err(Into::into)
    })
}

fn list(history: &FileHistory, json: bool, output: &Output) {
    if json {
        let entry = |prompt: &Prompt| {
            let files = history.changed_since(prompt);
            json!({
                "id": prompt.record, "time": prompt.time, "text": prompt.text, "filesChanged": files,
                "isCurrent": prompt.is_current,
            })
        };
        return output.json_line(&history.prompts.iter().map(entry).collect::<Vec<_>>());
    }
    for prompt in &history.prompts {
        let line = prompt.text.lines().next().unwrap_or_default();
        let text = printable(&line[..line.floor_char_boundary(SHOWN)]);
        let files = match history.changed_since(prompt) {
            1 => "1 file changed since".to_owned(),
            files => format!("{files} files changed since"),
        };
        let branch = if prompt.is_current || prompt.is_rewind { "" } else { ", taken back" };
        output.write(format!("{}  {text}  ({files}{branch})\n", prompt.record).as_bytes());
    }
}

#[derive(Clone, Copy)]
enum Tense {
    Did,
    Would,
}

fn tell(rewind: &Rewind, tense: Tense, args: &RewindArgs, json: bool, output: &Output) {
    if json {
        return output.json_line(rewind);
    }
    let mut text = String::new();
    let mut say = |line: String| text.extend([printable(&line).as_str(), "\n"]);
    for file in &rewind.files {
        let does = match tense {
            Tense::Did => "brought back",
            Tense::Would => "would be brought back",
        };
        let (more, less) = (file.insertions, file.deletions);
        let (path, by_whom) = (file.path.display(), file.by_whom());
        say(format!("{does}: {path} (+{more} -{less}){by_whom}"));
    }
    for aside in &rewind.set_aside {
        say(match tense {
            Tense::Did => format!(
                "changed by others, set aside: {} is in {}",
                aside.path.display(),
                aside.copy.display()
            ),
            Tense::Would => {
                format!("changed by others, would be set aside: {}", aside.path.display())
            }
        });
    }
    for link in &rewind.skipped_links {
        say(format!("a link now, left alone: {}", link.display()));
    }
    for (path, reason) in &rewind.failed {
        say(format!("not brought back: {}: {reason}", path.display()));
    }
    if !args.files {
        let said = match tense {
            _ if !rewind.failed.is_empty() => {
                "the conversation stays as it is; --conversation takes it back all the same"
            }
            Tense::Did => {
                "the next prompt continues from there; what was said since stays in the transcript"
            }
            Tense::Would => "the next prompt would continue from there",
        };
        say(said.to_owned());
    }
    output.write(text.as_bytes());
}
