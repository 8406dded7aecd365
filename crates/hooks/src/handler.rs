//! One hook: its action, and its conditions.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::condition::Condition;
use crate::event::Event;
use crate::origin::HookOrigin;

/// The characters of a prompt that name its hook.
const LONGEST_LABEL: usize = 80;

/// The types of handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerType {
    Command,
    Http,
    McpTool,
    Prompt,
    Agent,
    /// A function of the host.
    Callback,
}

impl HandlerType {
    /// The types that a person can write.
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
    /// The timeout as written.
    pub timeout: Option<Duration>,
    /// The message that a person sees while it runs.
    pub status_message: Option<String>,
    /// Whether it runs only once.
    pub once: bool,
    pub origin: HookOrigin,
}

/// The action of a hook.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Command(CommandAction),
    Http(HttpAction),
    McpTool { server: String, tool: String, input: Map<String, Value> },
    Prompt(PromptAction),
    Agent(PromptAction),
    Callback(CallbackAction),
}

/// A function of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackAction {
    pub id: String,
    pub on_failure: OnFailure,
}

/// The effect of a function that fails: that throws, takes too long, or returns what cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// None: a person is told.
    #[default]
    Continue,
    /// The guarded thing does not happen.
    Block,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CommandAction {
    /// A command line, or a program if there are arguments.
    pub command: String,
    /// The arguments of a program that runs without a shell.
    pub args: Option<Vec<String>>,
    pub shell: HookShell,
    pub waiting: Waiting,
}

/// The shell of a command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookShell {
    #[default]
    Sh,
    Bash,
    PowerShell,
}

/// The party that waits for a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// The event waits.
    #[default]
    Event,
    /// Nothing waits: its output is delivered when it is complete.
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
    /// Whether the turn continues after a refusal.
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
            Self::Callback(_) => HandlerType::Callback,
        }
    }

    /// The name of a hook for people and models.
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
            Self::Callback(function) => function.id.clone(),
        }
    }
}

impl Handler {
    /// The timeout of the hook at an event.
    pub(crate) fn patience(&self, event: Event) -> Duration {
        let usual = self.action.handler_type().patience();
        let shorter = event.patience().map_or(usual, |patience| patience.min(usual));
        self.timeout.unwrap_or(shorter)
    }

    /// Whether two hooks do the same, so that running one is enough. Hooks of plugins, skills and agents never count as
    /// equal.
    pub(crate) fn repeats(&self, other: &Self) -> bool {
        let condition = |handler: &Self| handler.condition.as_ref().map(|it| it.text().to_owned());
        self.origin.source.is_settings()
            && other.origin.source.is_settings()
            && self.action == other.action
            && condition(self) == condition(other)
    }
}
