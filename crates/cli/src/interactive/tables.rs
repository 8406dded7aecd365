//! The tables of the terminal: their rows from the session and from files, their details, and the changes made in them.

mod agent_fields;
mod agents;
mod contexts;
mod costs;
mod hooks;
mod memory;
mod points;
mod rules;
mod servers;
mod session_costs;
mod sessions;
mod settings;
mod skills;
mod team;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use centurion_config::settings::{Level, Settings, SettingsFile};
use centurion_engine::Handle;
use centurion_protocol::bounded;
use centurion_tui::{Fact, FileLine, Line, Table, TableChange, TableOf};

use crate::live_settings::LiveSettings;
use crate::surroundings::Surroundings;

/// The most bytes of a file that a detail shows.
const MOST_SHOWN: u64 = 64 * 1024;

/// The sources of tables.
#[derive(Clone)]
pub(super) struct Tables {
    pub(super) surroundings: Arc<Surroundings>,
    /// The settings of the session, once they are known.
    pub(super) settings: Option<LiveSettings>,
    /// The session, once it is open.
    pub(super) handle: Option<Handle>,
}

impl Tables {
    /// Reads a table. Blocks.
    pub(super) fn read(&self, of: TableOf, subject: &str) -> anyhow::Result<Table> {
        let table = match of {
            TableOf::Sessions => sessions::table(self, subject),
            TableOf::Points => points::table(self)?,
            TableOf::Costs => costs::table(self.handle()?),
            TableOf::Contexts => contexts::table(self.handle()?),
            TableOf::Rules => rules::table(self.handle()?),
            TableOf::Settings => settings::table(&self.fresh_settings()?),
            TableOf::Agents => agents::table(self)?,
            TableOf::AgentFields => agent_fields::table(Path::new(subject))?,
            TableOf::Team => team::table(self.handle()?)?,
            TableOf::Servers => servers::table(self.handle()?),
            TableOf::Hooks => hooks::table(self.handle()?),
            TableOf::Skills => skills::table(self.handle()?),
            TableOf::Memory => memory::table(self.handle()?),
        };
        Ok(table.about(subject))
    }

    /// Reads all that is known of a row. Blocks.
    pub(super) fn detail(&self, of: TableOf, id: &str) -> Vec<Line> {
        match of {
            TableOf::Sessions => sessions::detail(self, id),
            TableOf::Points => points::detail(self, id),
            TableOf::Rules => rules::detail(self, id),
            TableOf::Memory | TableOf::Skills => start_of(Path::new(id)),
            _ => Vec::new(),
        }
    }

    /// The sessions of some places in which words were said, as a fact for the table. Blocks.
    pub(super) fn search(&self, words: String, places: &str) -> Fact {
        let rows = sessions::search(self, &words, places);
        Fact::Found { words, rows }
    }

    /// Makes a change; what is said of it.
    pub(super) async fn change(&self, change: TableChange) -> anyhow::Result<String> {
        match change {
            TableChange::ConnectServer(name) => servers::connect(self.handle()?, &name).await,
            TableChange::SwitchServer { name, is_on } => {
                servers::switch(self.handle()?, &name, is_on)
            }
            TableChange::AskToEnd(member) => {
                self.handle()?.ask_to_end(member.as_str())?;
                Ok("asked to end".to_owned())
            }
            change => {
                let tables = self.clone();
                tokio::task::spawn_blocking(move || tables.change_files(change)).await?
            }
        }
    }

    /// Makes a change in files.
    fn change_files(&self, change: TableChange) -> anyhow::Result<String> {
        match change {
            TableChange::Setting { key, text, level } => settings::set(self, &key, &text, level),
            TableChange::AgentField { file, field, text } => {
                agent_fields::set(Path::new(&file), &field, text.as_deref())
            }
            TableChange::NewAgent { name, is_own } => agents::write_new(self, &name, is_own),
            TableChange::SwitchAgent { name, is_on } => agents::switch(self, &name, is_on),
            TableChange::SwitchSkill { name, is_on } => skills::switch(self, &name, is_on),
            TableChange::SessionTitle { session, title } => sessions::rename(self, session, &title),
            TableChange::SwitchServer { .. }
            | TableChange::ConnectServer(_)
            | TableChange::AskToEnd(_) => Ok(String::new()),
        }
    }

    fn handle(&self) -> anyhow::Result<&Handle> {
        self.handle.as_ref().context("the session is not open yet")
    }

    /// The settings as their files are now.
    fn fresh_settings(&self) -> anyhow::Result<Settings> {
        let live = self.settings.as_ref().context("the settings are not read yet")?;
        let mut settings = live.with(|state| state.settings.clone());
        settings.reload();
        Ok(settings)
    }

    /// The settings file of a level.
    fn settings_file(&self, level: Level) -> anyhow::Result<SettingsFile> {
        let live = self.settings.as_ref().context("the settings are not read yet")?;
        live.with(|state| {
            let sources = state.settings.sources();
            anyhow::ensure!(
                sources.levels.wants(level),
                "--setting-sources leaves these settings out"
            );
            sources.file_for(level).context("there is no file for these settings here")
        })
    }
}

/// A place in a file, for an editor.
fn file_line(path: &Path, line: usize) -> FileLine {
    FileLine { path: path.display().to_string(), line: line.max(1) }
}

/// The place in a file as people write it.
fn placed(path: &Path, line: Option<usize>) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| path.display().to_string());
    line.map_or(name.clone(), |line| format!("{name}:{line}"))
}

/// The beginning of a file.
fn start_of(path: &Path) -> Vec<Line> {
    // Opening a pipe would wait for a writer.
    if !path.is_file() {
        return centurion_tui::lines_of("it is no file any more");
    }
    let bytes = std::fs::File::open(path)
        .and_then(|file| bounded::read_all(std::io::Read::take(file, MOST_SHOWN), MOST_SHOWN));
    match bytes {
        Ok(bytes) => centurion_tui::lines_of(&String::from_utf8_lossy(&bytes)),
        Err(error) => centurion_tui::lines_of(&error.to_string()),
    }
}

/// A text on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Tokens in few characters.
fn amount(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}.{}k", tokens / 1_000, tokens % 1_000 / 100),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}
