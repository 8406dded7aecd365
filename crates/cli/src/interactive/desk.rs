//! The wishes of the terminal to the program around it: files, other programs, other sessions.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Weak};

use centurion_config::settings::Level;
use centurion_files::private;
use centurion_host::SettingsDesk as _;
use centurion_journal::MOST_TRANSCRIPT;
use centurion_protocol::bounded;
use centurion_tools::NameSearch;
use centurion_tui::{
    Desk, DeskFuture, Effect, Fact, FileLine, Happening, TableChange, TableOf, TerminalFront,
    Theme, Tui, lines_of,
};
use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;

use super::files::TerminalFiles;
use super::key_files::KeyFiles;
use super::own_shell::{self, OwnShells};
use super::tables::Tables;
use super::{diffs, images, lists};
use crate::explain::explained;
use crate::live_settings::LiveSettings;
use crate::own_commands::OwnCommands;
use crate::surroundings::Surroundings;

/// The most output of a command that is kept.
const MOST_OUTPUT: u64 = 256 * 1024;

/// The text behind `?`.
const KEYS: &str = "\
enter             send; while it works: next, between two calls
ctrl+x enter      later: after the turn
ctrl+x ctrl+s     now: stops the turn for it
up                takes back what was not read; else older prompts
alt+enter ctrl+j  new line (also \\ enter)
esc               closes what is open, else ends your own `!` command, else stops this turn only
esc esc           clears the draft into the history; on an empty one: /rewind
ctrl+c            the same; twice on an empty prompt leaves
ctrl+d            leaves on an empty prompt
ctrl+g            the draft in your editor
ctrl+s            puts the draft aside, and back
ctrl+r            searches earlier prompts
ctrl+v            the image that was copied last
alt+p alt+t       the model; whether it thinks
down              the tree of agents: enter focus, b background and back, x x stop
ctrl+x down       the tree from anywhere; in focus ctrl+x and an arrow: siblings, parent
alt+a             the oldest question
ctrl+b            lets waiting calls continue in the background
ctrl+x ctrl+k     twice: stops all agents in the background
ctrl+t            to-dos, agents and shells: enter view, m message, f wait for it, x x stop
ctrl+o            the whole transcript
pgup pgdn         what was printed, in fullscreen (/tui); the wheel, too
shift+tab         manual, accept edits, plan
/ commands       @ files and agents       ! a shell command of your own";

/// The settings of the terminal: vi keys, no motion, a slow connection, a status line of the user's, colours, screen.
type TerminalSettings = (bool, bool, bool, bool, Theme, Tui);

pub(super) struct ProgramDesk {
    surroundings: Arc<Surroundings>,
    kept: TerminalFiles,
    front: Weak<TerminalFront>,
    shells: OwnShells,
    keys: Arc<KeyFiles>,
    names: NameSearch,
    own: Arc<OwnCommands>,
    /// The settings of the session, once they are known.
    settings: Mutex<Option<LiveSettings>>,
    /// The settings that were told last.
    taste: Mutex<Option<TerminalSettings>>,
}

impl ProgramDesk {
    pub(super) fn new(
        surroundings: &Surroundings,
        kept: TerminalFiles,
        front: &Arc<TerminalFront>,
    ) -> Self {
        Self {
            surroundings: Arc::new(surroundings.for_later()),
            kept,
            front: Arc::downgrade(front),
            shells: OwnShells::default(),
            keys: Arc::new(KeyFiles::new(&surroundings.dirs)),
            names: NameSearch::default(),
            own: Arc::new(OwnCommands::new(&surroundings.cwd, &surroundings.env)),
            settings: Mutex::new(None),
            taste: Mutex::new(None),
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

    /// Opens a file in the person's editor; whether it ended well.
    fn open_in_editor(&self, file: &Path) -> io::Result<bool> {
        self.open_in_editor_at(file, 1)
    }

    /// Opens a file at a line, where the editor is one that is known to go there; whether it ended well.
    fn open_in_editor_at(&self, file: &Path, line: usize) -> io::Result<bool> {
        const GO_TO_LINES: [&str; 7] = ["vi", "vim", "nvim", "nano", "emacs", "micro", "kak"];
        let env = &self.surroundings.env;
        let editor = env.get("VISUAL").or(env.get("EDITOR")).unwrap_or("vi").to_owned();
        let program = Path::new(editor.split_whitespace().next().unwrap_or_default()).file_name();
        let knows = program.is_some_and(|it| GO_TO_LINES.iter().any(|known| it == *known));
        let at = if knows && line > 1 { format!("+{line} ") } else { String::new() };
        // The words of the variable may hold arguments.
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(format!("{editor} {at}\"$1\"")).arg("sh").arg(file);
        Ok(shell.status()?.success())
    }

    /// Takes over what the settings of the session say about the terminal.
    pub(super) fn configure(&self, settings: LiveSettings) {
        *self.settings.lock() = Some(settings);
        if let Some(front) = self.front.upgrade() {
            self.look_at_settings()
                .into_iter()
                .for_each(|fact| front.happens(Happening::Fact(fact)));
        }
    }

    /// The wishes of the settings about the look of the terminal and its keys, if they have changed.
    fn look_at_settings(&self) -> Option<Fact> {
        let settings = self.settings.lock().clone()?;
        settings.with(|state| {
            let wants_status = self.own.configure(&state.settings);
            let value = |key: &str| state.settings.value(key).unwrap_or_default();
            let is_still =
                ["prefersReducedMotion", "reduceMotion"].iter().any(|key| value(key) == true);
            let env = &self.surroundings.env;
            let is_far = ["SSH_CONNECTION", "SSH_TTY"].iter().any(|name| env.get(name).is_some());
            let theme = Theme::named(value("theme").as_str().unwrap_or_default());
            let theme = theme.unwrap_or_default();
            let has_vi = matches!(value("editorMode").as_str(), Some("vim" | "vi"));
            // A wish that was told stands: the person may have chosen something else since.
            let has_variable = env.get("CLAUDE_CODE_NO_FLICKER").is_some_and(super::is_true);
            let by_variable = if has_variable { Tui::Fullscreen } else { Tui::Inline };
            let tui = value("tui").as_str().and_then(Tui::named).unwrap_or(by_variable);
            let taste = (has_vi, is_still, is_far, wants_status, theme, tui);
            let is_new = self.taste.lock().replace(taste) != Some(taste);
            is_new.then_some(Fact::Taste { has_vi, is_still, is_far, wants_status, theme, tui })
        })
    }

    /// Shows the sessions of this directory.
    pub(super) fn list_sessions(&self) {
        if let Some(front) = self.front.upgrade() {
            let tables = self.tables();
            front.happens(Happening::Fact(table_fact(&tables, TableOf::Sessions, "", false)));
        }
    }

    /// The sources of tables, as they are now.
    fn tables(&self) -> Tables {
        Tables {
            surroundings: Arc::clone(&self.surroundings),
            settings: self.settings.lock().clone(),
            handle: self.front.upgrade().and_then(|front| front.session()),
        }
    }
}

/// A table as a fact, or why there is none.
fn table_fact(tables: &Tables, of: TableOf, subject: &str, is_again: bool) -> Fact {
    match tables.read(of, subject) {
        Ok(table) => Fact::Table { table: Box::new(table), is_again },
        Err(error) => Fact::Notice(format!("{error:#}")),
    }
}

/// Makes a change that a person wants, and reads the table again in which it was made.
async fn changed(tables: Tables, change: TableChange, of: TableOf, subject: String) -> Vec<Fact> {
    let said = tables.change(change).await.unwrap_or_else(|error| format!("{error:#}"));
    let read = move || table_fact(&tables, of, &subject, true);
    let table = tokio::task::spawn_blocking(read).await.ok();
    // The words come last: what a table cannot be read for is less than what became of the change.
    table.into_iter().chain([Fact::Notice(said)]).collect()
}

impl ProgramDesk {
    /// Keeps a setting of the person's own; what is said of it.
    fn keep(&self, key: &str, value: &str) -> String {
        let settings = self.settings.lock().clone();
        match settings.map(|it| it.write(Level::User, key, value)) {
            Some(Ok(())) => format!("{key}: {value}"),
            Some(Err(error)) => format!("{key} is not kept: {error}"),
            None => "the settings are not read yet".to_owned(),
        }
    }

    /// Shows what a command is for.
    fn show(&self, command: String) -> DeskFuture {
        let surroundings = Arc::clone(&self.surroundings);
        let settings = self.settings.lock().clone();
        let (name, words) = command.split_once(' ').unwrap_or((&command, ""));
        match (name, settings) {
            ("keys", _) => ready(Fact::Shown { title: "Keys".to_owned(), text: KEYS.to_owned() }),
            ("model", settings) => {
                let env = &surroundings.env;
                ready(match settings {
                    Some(it) => it.with(|state| lists::models(env, Some(&state.settings))),
                    None => lists::models(env, None),
                })
            }
            ("permissions", _) if !words.trim().is_empty() => {
                let call = words.trim();
                let handle = self.front.upgrade().and_then(|front| front.session());
                let text = match &handle {
                    Some(handle) => {
                        explained(call, handle.mode(), &surroundings, |it| handle.explain_call(it))
                            .unwrap_or_else(|error| format!("{error:#}"))
                    }
                    None => "the session is not open yet".to_owned(),
                };
                ready(Fact::Shown { title: format!("/permissions {call}"), text })
            }
            ("diff", _) => {
                let handle = self.front.upgrade().and_then(|front| front.session());
                let transcript = handle.and_then(|handle| handle.transcript(None));
                Box::pin(async move {
                    let text =
                        diffs::by_agent(&surroundings.cwd, &surroundings.env, transcript).await;
                    vec![Fact::Shown { title: "/diff".to_owned(), text }]
                })
            }
            _ => Box::pin(async move {
                let text = own_output(&command, &surroundings.cwd).await;
                vec![Fact::Shown { title: format!("/{command}"), text }]
            }),
        }
    }
}

impl ProgramDesk {
    /// Does what a table wants.
    fn carry_out_in_table(&self, effect: Effect) -> DeskFuture {
        let tables = self.tables();
        match effect {
            Effect::Table { of, subject, is_again } => {
                blocking(move || vec![table_fact(&tables, of, &subject, is_again)])
            }
            Effect::Detail { of, subject, id } if !subject.is_empty() && of == TableOf::Agents => {
                let cwd = self.surroundings.cwd.clone();
                Box::pin(async move {
                    let text = own_output(&format!("agents {id}"), &cwd).await;
                    vec![Fact::Detail { of, id, lines: lines_of(&text) }]
                })
            }
            Effect::Detail { of, id, .. } => blocking(move || {
                let lines = tables.detail(of, &id);
                vec![Fact::Detail { of, id, lines }]
            }),
            Effect::Change { change, of, subject } => {
                Box::pin(async move { changed(tables, change, of, subject).await })
            }
            Effect::SearchSessions { words, places } => {
                blocking(move || vec![tables.search(words, &places)])
            }
            _ => Box::pin(std::future::ready(Vec::new())),
        }
    }
}

fn ready(fact: Fact) -> DeskFuture {
    Box::pin(std::future::ready(vec![fact]))
}

impl Desk for ProgramDesk {
    fn carry_out(&self, effect: Effect) -> DeskFuture {
        let surroundings = Arc::clone(&self.surroundings);
        match effect {
            Effect::LookAtFiles => {
                let (keys, taste) = (Arc::clone(&self.keys), self.look_at_settings());
                blocking(move || keys.changed().into_iter().chain(taste).collect())
            }
            Effect::FindFiles(word) => {
                let (own, search) = (Arc::clone(&self.own), self.names.begin());
                Box::pin(async move {
                    if let Some(files) = own.names_like(&word).await {
                        let is_over = search.is_over();
                        return (!is_over)
                            .then_some(Fact::Files { word, files })
                            .into_iter()
                            .collect();
                    }
                    let walk = move || {
                        let files = search.files_like(&surroundings.cwd, &word, &|_| true);
                        files.map(|files| Fact::Files { word, files }).into_iter().collect()
                    };
                    tokio::task::spawn_blocking(walk).await.unwrap_or_default()
                })
            }
            Effect::PasteImage => {
                Box::pin(async move { vec![images::copied(&surroundings).await] })
            }
            Effect::ReadImage { path, pasted } => {
                blocking(move || images::dragged(&surroundings, &path, pasted))
            }
            Effect::StatusLine(state) => Box::pin(Arc::clone(&self.own).show_status(state)),
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
            Effect::Show { command } => self.show(command),
            Effect::KeepSetting { key, value } => ready(Fact::Notice(self.keep(key, &value))),
            effect => self.carry_out_in_table(effect),
        }
    }

    fn rests(&self) {
        let forgotten = centurion_sandbox::forget_used_pages();
        tracing::debug!(forgotten, "kilobytes of code that a start needed were forgotten");
    }

    fn edit_keys(&self) -> io::Result<bool> {
        let file = self.keys.own().ok_or(io::ErrorKind::NotFound)?;
        if !file.exists() {
            let start =
                "{\n  \"bindings\": [\n    { \"context\": \"Chat\", \"bindings\": {} }\n  ]\n}\n";
            file.parent().map_or(Ok(()), private::create_directory)?;
            private::replace(&file, start.as_bytes())?;
        }
        self.open_in_editor(&file)
    }

    fn edit_file(&self, file: &FileLine) -> io::Result<bool> {
        self.open_in_editor_at(Path::new(&file.path), file.line)
    }

    fn edit(&self, text: &str) -> io::Result<String> {
        let mut file = tempfile::Builder::new().prefix("centurion-").suffix(".md").tempfile()?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        if !self.open_in_editor(file.path())? {
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

/// The output of this program itself with other arguments: what has a command shows the same in the terminal.
async fn own_output(command: &str, cwd: &Path) -> String {
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    let arguments: Vec<&str> = match (name, rest) {
        ("agents", agent) => vec!["agents", "explain", agent],
        ("team", _) => vec!["tasks"],
        ("trust", _) => vec!["trust", "status"],
        ("plugin", _) => vec!["plugin", "list"],
        _ => vec!["doctor"],
    };
    let Ok(program) = std::env::current_exe() else {
        return "this program's own file cannot be found".to_owned();
    };
    let mut own = tokio::process::Command::new(program);
    own.args(arguments).current_dir(cwd);
    let text = output_of(own).await.0;
    if name == "sandbox" { sections(&text, &["Sandbox", "Bounds"]) } else { text }
}

/// The sections of a text whose titles begin with these words.
fn sections(text: &str, titles: &[&str]) -> String {
    let wanted = |section: &&str| titles.iter().any(|title| section.starts_with(title));
    text.split("\n\n").filter(wanted).collect::<Vec<_>>().join("\n\n")
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
        // Output beyond the limit is not read, and a program that continues writing is ended with this.
        let _ = tokio::join!(out.read_to_end(&mut bytes), err.read_to_end(&mut errors));
    }
    let is_success = child.wait().await.is_ok_and(|status| status.success());
    bytes.append(&mut errors);
    (String::from_utf8_lossy(&bytes).trim_end().to_owned(), is_success)
}
