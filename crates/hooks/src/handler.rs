//! One hook: what it runs, and under which conditions.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::condition::Condition;
use crate::event::Event;
use crate::origin::HookOrigin;

/// How much of a prompt names its hook.
const LONGEST_LABEL: usize = 80;

/// The ways in which a hook can be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerType {
    Command,
    Http,
    McpTool,
    Prompt,
    Agent,
    /// A function of the program that drives this one.
    Callback,
}

impl HandlerType {
    /// Those that a person can write.
    pub(crate) const WRITTEN: [Self; 5] =
        [Self::Command, Self::Http, Self::McpTool, Self::Prompt, Self::Agent];

    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Http => "http",
            Self::McpTool => "mcp_tool",
            Self::Prompt => "prompt",
            Self::Agent => "agent",
            Self::Callback => "callback",
        }
    }

    /// The default timeout of a hook.
    fn patience(self) -> Duration {
        Duration::from_secs(match self {
            Self::Command | Self::Http | Self::McpTool | Self::Callback => 600,
            Self::Prompt => 30,
            Self::Agent => 60,
        })
    }
}

impl fmt::Display for HandlerType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A hook.
#[derive(Clone, Debug)]
pub struct Handler {
    pub action: Action,
    pub condition: Option<Condition>,
    /// As it was written.
    pub timeout: Option<Duration>,
    /// What a person sees while it runs.
    pub status_message: Option<String>,
    /// It runs once, and is gone.
    pub once: bool,
    pub origin: HookOrigin,
}

/// What a hook runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Command(CommandAction),
    Http(HttpAction),
    McpTool { server: String, tool: String, input: Map<String, Value> },
    Prompt(PromptAction),
    Agent(PromptAction),
    Callback { id: String },
}

#[derive(Clone, Debug, PartialEq)]
pub struct CommandAction {
    /// A command line, or a program where there are arguments.
    pub command: String,
    /// The arguments of a program that is run without a shell.
    pub args: Option<Vec<String>>,
    pub shell: HookShell,
    pub waiting: Waiting,
}

/// What reads a command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookShell {
    #[default]
    Sh,
    Bash,
    PowerShell,
}

/// Who waits for a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Whatever was about to happen.
    #[default]
    Event,
    /// Nothing waits: what it says is told when it is there.
    Never,
    /// Nothing waits, and exit code 2 wakes the model.
    Wakes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HttpAction {
    pub url: String,
    pub headers: BTreeMap<String, String>,
    /// The variables that headers may name.
    pub allowed_variables: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PromptAction {
    pub prompt: String,
    pub model: Option<String>,
    /// Whether the turn goes on after a no.
    pub continue_on_block: bool,
}

impl Action {
    pub fn handler_type(&self) -> HandlerType {
        match self {
            Self::Command(_) => HandlerType::Command,
            Self::Http(_) => HandlerType::Http,
            Self::McpTool { .. } => HandlerType::McpTool,
            Self::Prompt(_) => HandlerType::Prompt,
            Self::Agent(_) => HandlerType::Agent,
            Self::Callback { .. } => HandlerType::Callback,
        }
    }

    /// How a hook is named in what people and models read.
    pub fn label(&self) -> String {
        match self {
            Self::Command(CommandAction { command, args: Some(args), .. }) => {
                let words =
                    std::iter::once(command.as_str()).chain(args.iter().map(String::as_str));
                words.collect::<Vec<_>>().join(" ")
            }
            Self::Command(command) => command.command.clone(),
            Self::Http(http) => http.url.clone(),
            Self::McpTool { server, tool, .. } => format!("mcp__{server}__{tool}"),
            Self::Prompt(prompt) | Self::Agent(prompt) => {
                prompt.prompt.chars().take(LONGEST_LABEL).collect()
            }
            Self::Callback { id } => id.clone(),
        }
    }
}

impl Handler {
    /// How long the hook may take at an event.
    pub(crate) fn patience(&self, event: Event) -> Duration {
        let usual = self.action.handler_type().patience();
        let shorter = event.patience().map_or(usual, |patience| patience.min(usual));
        self.timeout.unwrap_or(shorter)
    }

    /// Whether two hooks do the same, so that running one is enough. Hooks of plugins, skills and agents
    /// are their own, whatever others do.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        let condition = |handler: &Self| handler.condition.as_ref().map(|it| it.text().to_owned());
        self.origin.source.is_settings()
            && other.origin.source.is_settings()
            && self.action == other.action
            && condition(self) == condition(other)
    }
}
