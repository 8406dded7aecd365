//! Commands of the person's own settings that run beside a session: the status line, rows of agents, names of files.
//!
//! Commands of a repository's settings are not among them before the folder is trusted: settings leave them out until then.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use centurion_config::settings::Settings;
use centurion_host::OwnFileNames;
use centurion_protocol::{AgentId, Env};
use centurion_tools::{Bound, PipedProgram};
use centurion_tui::Fact;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::live_settings::LiveSettings;
use crate::setup;
use crate::surroundings::Surroundings;

/// The longest time that such a command may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most output that is read of it.
const MOST_OUTPUT: usize = 64 * 1024;
/// The most lines of a status line, and the most names of files.
const MOST_STATUS_LINES: usize = 3;
const MOST_NAMES: usize = 30;

/// The commands that are in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ShellCommands {
    status: Option<String>,
    agents: Option<String>,
    names: Option<String>,
}

/// The state that a status line is wanted for.
#[derive(Debug, Default)]
enum StatusLineWork {
    #[default]
    Nothing,
    /// One is made, and no other is wanted.
    Making,
    /// One is made, and another is wanted for this state.
    Newer(Value),
}

/// The commands, and what they wait for.
pub(crate) struct OwnCommands {
    cwd: PathBuf,
    env: Arc<Env>,
    commands: Mutex<ShellCommands>,
    wanted: Mutex<StatusLineWork>,
}

impl OwnCommands {
    pub(crate) fn new(cwd: &Path, env: &Arc<Env>) -> Self {
        Self {
            cwd: cwd.to_owned(),
            env: Arc::clone(env),
            commands: Mutex::default(),
            wanted: Mutex::default(),
        }
    }

    /// Takes over the commands of settings; tells whether one makes a status line.
    pub(crate) fn configure(&self, settings: &Settings) -> bool {
        let is_off = settings.hook_limits().disabled.is_some();
        let command = |key: &str| {
            let value = settings.value(key).filter(|_| !is_off)?;
            value["command"].as_str().filter(|it| !it.trim().is_empty()).map(str::to_owned)
        };
        let commands = ShellCommands {
            status: command("statusLine"),
            agents: command("subagentStatusLine"),
            names: command("fileSuggestion"),
        };
        let makes_status = commands.status.is_some() || commands.agents.is_some();
        *self.commands.lock() = commands;
        makes_status
    }

    /// Makes the status line and the rows of agents for a state. One is made at a time, and always for the newest state.
    pub(crate) async fn show_status(self: Arc<Self>, state: Value) -> Vec<Fact> {
        let ShellCommands { status, agents, .. } = self.commands.lock().clone();
        if status.is_none() && agents.is_none() {
            return Vec::new();
        }
        {
            let mut wanted = self.wanted.lock();
            if !matches!(*wanted, StatusLineWork::Nothing) {
                *wanted = StatusLineWork::Newer(state);
                return Vec::new();
            }
            *wanted = StatusLineWork::Making;
        }
        let mut state = state;
        loop {
            let mut facts = Vec::new();
            if let Some(command) = &status {
                let text = self.run(command, &state).await.unwrap_or_default();
                let lines = text.lines().take(MOST_STATUS_LINES).map(str::to_owned).collect();
                facts.push(Fact::StatusLine(lines));
            }
            let has_agents = state["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty());
            if let Some(command) = agents.as_ref().filter(|_| has_agents) {
                let text = self.run(command, &state).await.unwrap_or_default();
                facts.push(Fact::AgentRows(text.lines().filter_map(agent_row).collect()));
            }
            let mut wanted = self.wanted.lock();
            match std::mem::take(&mut *wanted) {
                StatusLineWork::Newer(newer) => {
                    *wanted = StatusLineWork::Making;
                    state = newer;
                }
                StatusLineWork::Nothing | StatusLineWork::Making => return facts,
            }
        }
    }

    /// The names that the person's own command finds for a word; `None` without one.
    pub(crate) async fn names_like(&self, word: &str) -> Option<Vec<String>> {
        let command = self.commands.lock().names.clone()?;
        let text = self.run(&command, &json!({"query": word})).await?;
        Some(
            text.lines()
                .map(str::trim)
                .filter(|it| !it.is_empty())
                .take(MOST_NAMES)
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Runs a command with JSON on its standard input; what it printed, if it succeeded in time. What it started ends with it,
    /// when it is too slow, and when the program ends.
    async fn run(&self, command: &str, input: &Value) -> Option<String> {
        let variables = self.env.of_programs();
        let mut environment: BTreeMap<String, String> =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        environment.insert("CLAUDE_PROJECT_DIR".to_owned(), self.cwd.display().to_string());
        let program = PipedProgram {
            program: "sh".into(),
            args: vec!["-c".into(), command.into()],
            environment,
            cwd: self.cwd.clone(),
        };
        let (guard, input) = (setup::guard().ok()?, input.to_string());
        let running = Bound::run(&guard, &program, input.as_bytes(), MOST_OUTPUT);
        let output = tokio::time::timeout(PATIENCE, running).await.ok()?.ok()?;
        (output.code == Some(0)).then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Names of files for a host, by the command of the settings as they are at that moment.
pub(crate) struct OwnNames {
    commands: OwnCommands,
    settings: LiveSettings,
}

impl OwnNames {
    pub(crate) fn new(surroundings: &Surroundings, settings: &LiveSettings) -> Arc<Self> {
        let commands = OwnCommands::new(&surroundings.cwd, &surroundings.env);
        Arc::new(Self { commands, settings: settings.clone() })
    }
}

impl OwnFileNames for OwnNames {
    fn names_like<'a>(&'a self, word: &'a str) -> BoxFuture<'a, Option<Vec<String>>> {
        self.settings.with(|state| self.commands.configure(&state.settings));
        Box::pin(self.commands.names_like(word))
    }
}

/// A row of an agent, as a command writes it: `{"id": …, "content": …}`.
fn agent_row(line: &str) -> Option<(AgentId, String)> {
    let row: Value = serde_json::from_str(line).ok()?;
    Some((AgentId::new(row["id"].as_str()?), row["content"].as_str()?.to_owned()))
}
