//! The wishes of the terminal to the program around it: files, other programs, other sessions.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use centurion_journal::MOST_TRANSCRIPT;
use centurion_protocol::{SessionId, bounded};
use centurion_tui::{Desk, DeskFuture, Effect, Fact, Happening, SessionEntry, TerminalFront};
use tokio::io::AsyncReadExt as _;

use super::files::Kept;
use super::key_files::KeyFiles;
use super::own_shell::{self, OwnShells};
use crate::explain::explained;
use crate::sessions;
use crate::surroundings::Surroundings;

/// The most output of a command that is kept.
const MOST_OUTPUT: u64 = 256 * 1024;
/// The most files and directories that a search for names looks at.
const MOST_LOOKED_AT: usize = 50_000;
/// The most files that a search gives.
const MOST_FILES: usize = 30;

/// The text behind `?`.
const KEYS: &str = "\
enter            send; while it works: next, between two calls
ctrl+x enter     later: after the turn
ctrl+x ctrl+s    now: stops the turn for it
up               takes back what was not read; else older prompts
alt+enter ctrl+j new line (also \\ enter)
esc              closes what is open, else ends your own `!` command, else stops this turn only
esc esc          clears the draft into the history; on an empty one: /rewind
ctrl+c           the same; twice on an empty prompt leaves
ctrl+d           leaves on an empty prompt
ctrl+g           the draft in your editor
ctrl+s           puts the draft aside, and back
ctrl+r           searches earlier prompts
ctrl+v           the image that was copied last
alt+p alt+t      the model; whether it thinks
down             the tree of agents: enter focus, b background, x x stop
ctrl+x down      the tree from anywhere; in focus ctrl+x and an arrow: siblings, parent
alt+a            the oldest question
ctrl+b           lets waiting calls go on in the background
ctrl+x ctrl+k    twice: stops all agents in the background
ctrl+t           to-dos, agents and shells: enter view, f focus, x x stop
ctrl+o           the whole transcript
shift+tab        manual, accept edits, plan
/ commands       @ files and agents       ! a shell command of your own";

pub(super) struct ProgramDesk {
    surroundings: Arc<Surroundings>,
    kept: Kept,
    front: Weak<TerminalFront>,
    shells: OwnShells,
    keys: Arc<KeyFiles>,
}

impl ProgramDesk {
    pub(super) fn new(surroundings: &Surroundings, kept: Kept, front: &Arc<TerminalFront>) -> Self {
        Self {
            surroundings: Arc::new(surroundings.for_later()),
            kept,
            front: Arc::downgrade(front),
            shells: OwnShells::default(),
            keys: Arc::new(KeyFiles::new(&surroundings.dirs)),
        }
    }

    /// Reads the person's keys.
    pub(super) fn read_keys(&self) {
        if let Some(front) = self.front.upgrade() {
            for fact in self.keys.changed() {
                front.happens(Happening::Fact(fact));
            }
        }
    }

    /// Shows the sessions of this directory.
    pub(super) fn list_sessions(&self) {
        if let Some(front) = self.front.upgrade() {
            front.happens(Happening::Fact(Fact::Sessions(entries(&self.surroundings))));
        }
    }
}

impl Desk for ProgramDesk {
    fn carry_out(&self, effect: Effect) -> DeskFuture {
        let surroundings = Arc::clone(&self.surroundings);
        match effect {
            Effect::ListSessions => blocking(move || vec![Fact::Sessions(entries(&surroundings))]),
            Effect::LookAtFiles => {
                let keys = Arc::clone(&self.keys);
                blocking(move || keys.changed())
            }
            Effect::SearchSessions(words) => blocking(move || {
                let sessions = said_in(&surroundings, &words);
                vec![Fact::Found { words, sessions }]
            }),
            Effect::FindFiles(word) => blocking(move || {
                let files = files_like(&surroundings.cwd, &word);
                vec![Fact::Files { word, files }]
            }),
            Effect::SaveDraft { agent, draft } => {
                let save = self.kept.draft_saver(agent.as_ref(), draft);
                blocking(move || told("the draft is not kept", save()))
            }
            Effect::Remember(text) => {
                let kept = self.kept.clone();
                blocking(move || told("the prompt is not in the history", kept.remember(&text)))
            }
            Effect::Shell { number, command } => {
                let (front, stop) = (self.front.clone(), self.shells.begin(number));
                let shells = self.shells.clone();
                Box::pin(async move {
                    let told = front.clone();
                    let prints = move |text: String| {
                        if let Some(front) = told.upgrade() {
                            front.happens(Happening::Fact(Fact::ShellPrinted { number, text }));
                        }
                    };
                    let (output, is_success) =
                        own_shell::run(&command, &surroundings, stop, prints).await;
                    shells.ended(number);
                    if let Some(handle) = front.upgrade().and_then(|front| front.session()) {
                        handle.remind(format!("The user ran `{command}` in a shell of their own. It printed:\n{output}"));
                    }
                    vec![Fact::ShellEnded { number, command, output, is_success }]
                })
            }
            Effect::StopShell(number) => {
                self.shells.stop(number);
                Box::pin(std::future::ready(Vec::new()))
            }
            Effect::Show { command } if command == "keys" => {
                Box::pin(std::future::ready(vec![Fact::Shown {
                    title: "Keys".to_owned(),
                    text: KEYS.to_owned(),
                }]))
            }
            Effect::Show { command } if command.starts_with("permissions ") => {
                let call = command.trim_start_matches("permissions").trim();
                let handle = self.front.upgrade().and_then(|front| front.session());
                let text = match &handle {
                    Some(handle) => {
                        explained(call, handle.mode(), &surroundings, |it| handle.explain_call(it))
                            .unwrap_or_else(|error| format!("{error:#}"))
                    }
                    None => "the session is not open yet".to_owned(),
                };
                Box::pin(std::future::ready(vec![Fact::Shown {
                    title: format!("/permissions {call}"),
                    text,
                }]))
            }
            Effect::Show { command } => Box::pin(async move {
                let text = own_output(&command, &surroundings.cwd).await;
                vec![Fact::Shown { title: format!("/{command}"), text }]
            }),
            _ => Box::pin(std::future::ready(Vec::new())),
        }
    }

    fn edit(&self, text: &str) -> io::Result<String> {
        let env = &self.surroundings.env;
        let editor = env.get("VISUAL").or(env.get("EDITOR")).unwrap_or("vi").to_owned();
        let mut file = tempfile::Builder::new().prefix("centurion-").suffix(".md").tempfile()?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        // The words of the variable may hold arguments.
        let status = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("{editor} \"$1\""))
            .arg("sh")
            .arg(file.path())
            .status()?;
        if !status.success() {
            return Ok(text.to_owned());
        }
        bounded::read_text_file(file.path(), MOST_TRANSCRIPT)
    }
}

fn blocking(work: impl FnOnce() -> Vec<Fact> + Send + 'static) -> DeskFuture {
    Box::pin(async move { tokio::task::spawn_blocking(work).await.unwrap_or_default() })
}

/// Tells of a failure.
fn told<E: std::error::Error>(what: &str, done: Result<(), E>) -> Vec<Fact> {
    let why = |error: E| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    };
    done.err().map(|error| Fact::Notice(format!("{what}: {}", why(error)))).into_iter().collect()
}

/// The sessions of this directory, newest first.
fn entries(surroundings: &Surroundings) -> Vec<SessionEntry> {
    let now = SystemTime::now();
    let age = |modified: SystemTime| {
        let seconds = now.duration_since(modified).unwrap_or_default().as_secs();
        match seconds {
            0..60 => format!("{seconds} s"),
            60..3_600 => format!("{} m", seconds / 60),
            3_600..86_400 => format!("{} h", seconds / 3_600),
            _ => format!("{} d", seconds / 86_400),
        }
    };
    let here = sessions::here(&surroundings.dirs, &surroundings.cwd);
    let entry = |it: sessions::Here| SessionEntry {
        id: it.id,
        title: it.title,
        age: age(it.modified),
        bytes: it.bytes,
    };
    here.into_iter().map(entry).collect()
}

/// The sessions in whose transcripts words stand.
fn said_in(surroundings: &Surroundings, words: &str) -> Vec<SessionId> {
    let lower = words.to_lowercase();
    let has = |path: &Path| {
        let text = bounded::read_file(path, MOST_TRANSCRIPT).unwrap_or_default();
        String::from_utf8_lossy(&text).to_lowercase().contains(&lower)
    };
    let here = sessions::here(&surroundings.dirs, &surroundings.cwd);
    here.into_iter().filter(|it| has(&it.path)).map(|it| it.id).collect()
}

/// The files below a directory whose paths hold a word, those nearest to it first.
fn files_like(root: &Path, word: &str) -> Vec<String> {
    const LEFT_OUT: [&str; 4] = ["target", "node_modules", "__pycache__", "dist"];
    let lower = word.to_lowercase();
    let (mut found, mut looked_at) = (Vec::new(), 0);
    let mut directories: VecDeque<PathBuf> = VecDeque::from([root.to_owned()]);
    while let Some(directory) = directories.pop_front() {
        let mut entries: Vec<_> =
            std::fs::read_dir(&directory).into_iter().flatten().flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            looked_at += 1;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(kind) = entry.file_type() else { continue };
            if name.starts_with('.') || kind.is_symlink() {
                continue;
            }
            let path = entry.path();
            if kind.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
                directories.push_back(path.clone());
            }
            let shown = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            if shown.to_lowercase().contains(&lower) && !kind.is_dir() {
                found.push(shown);
            }
            if found.len() >= MOST_FILES || looked_at >= MOST_LOOKED_AT {
                return found;
            }
        }
    }
    found
}

/// The output of this program itself with other arguments: what has a command shows the same in the terminal.
async fn own_output(command: &str, cwd: &Path) -> String {
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    let arguments: Vec<&str> = match (name, rest) {
        ("agents", agent) => vec!["agents", "explain", agent],
        ("team", _) => vec!["tasks"],
        _ => vec!["doctor"],
    };
    let Ok(program) = std::env::current_exe() else {
        return "this program's own file cannot be found".to_owned();
    };
    let mut own = tokio::process::Command::new(program);
    own.args(arguments).current_dir(cwd);
    output_of(own).await.0
}

async fn output_of(mut command: tokio::process::Command) -> (String, bool) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return (error.to_string(), false),
    };
    let mut bytes = Vec::new();
    let mut errors = Vec::new();
    if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
        let (mut out, mut err) = (out.take(MOST_OUTPUT), err.take(MOST_OUTPUT));
        // Output beyond the limit is not read, and a program that goes on writing is ended with this.
        let _ = tokio::join!(out.read_to_end(&mut bytes), err.read_to_end(&mut errors));
    }
    let is_success = child.wait().await.is_ok_and(|status| status.success());
    bytes.append(&mut errors);
    (String::from_utf8_lossy(&bytes).trim_end().to_owned(), is_success)
}
