//! The definition of an agent, in every form that its author may write.

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use centurion_protocol::Effort;
use serde::Serialize;
use serde_json::Value as Json;

use super::name::is_read_only_name;
use crate::fields::{Located, WordError};
use crate::settings::printable;
use crate::trust::{PowerItem, Unaccepted};

/// One agent, as it was defined. Nothing here is resolved: the caller that starts it supplies what is not
/// said, and every value knows the line that says it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDefinition {
    /// The type by which it is asked for; that of a plugin's agent begins with the plugin's name.
    pub name: Located<String>,
    /// When to use it.
    pub description: Located<String>,
    /// Takes the place of the usual system prompt.
    pub prompt: Located<String>,
    /// The only tools it has, as they were written; without the field, or with `*`, all that there are.
    pub tools: Option<Located<Vec<String>>>,
    /// Tools that it does not have, whatever `tools` says.
    pub disallowed_tools: Option<Located<Vec<String>>>,
    pub model: Option<Located<AgentModel>>,
    pub effort: Option<Located<AgentEffort>>,
    /// One of [`PERMISSION_MODES`].
    pub permission_mode: Option<Located<String>>,
    /// As [`parse_references`](crate::mcp::parse_references) reads it.
    pub mcp_servers: Option<Located<Json>>,
    /// Patterns of the names of servers without which it cannot work.
    pub required_mcp_servers: Option<Located<Vec<String>>>,
    /// In either form that hooks have in frontmatter.
    pub hooks: Option<Located<Json>>,
    /// Skills that it knows from the start.
    pub skills: Option<Located<Vec<String>>>,
    pub max_turns: Option<Located<NonZeroU32>>,
    pub background: Option<Located<bool>>,
    pub isolation: Option<Located<Isolation>>,
    pub memory: Option<Located<MemoryScope>>,
    pub color: Option<Located<Color>>,
    /// Goes before the first turn of every run.
    pub initial_prompt: Option<Located<String>>,
    /// Whether it sees the conversation that it is started from.
    pub fork_context: Option<Located<bool>>,
    /// Whether it goes without the instruction files.
    pub omit_claude_md: Option<Located<bool>>,
    /// A short warning that it is reminded of.
    pub critical_reminder: Option<Located<String>>,
    /// The reason why its hooks, its servers, a mode that allows more and free writing to its memory do not count, if
    /// so.
    pub withheld: Option<Unaccepted>,
    pub origin: AgentOrigin,
}

impl AgentDefinition {
    /// A definition with nothing but what every one has.
    pub fn new(
        name: Located<String>,
        description: Located<String>,
        prompt: Located<String>,
        origin: AgentOrigin,
    ) -> Self {
        Self {
            name,
            description,
            prompt,
            tools: None,
            disallowed_tools: None,
            model: None,
            effort: None,
            permission_mode: None,
            mcp_servers: None,
            required_mcp_servers: None,
            hooks: None,
            skills: None,
            max_turns: None,
            background: None,
            isolation: None,
            memory: None,
            color: None,
            initial_prompt: None,
            fork_context: None,
            omit_claude_md: None,
            critical_reminder: None,
            withheld: None,
            origin,
        }
    }

    /// The item that has to be accepted before all of a definition in a project counts; `None` if nothing in it acts
    /// for the user. The text is that of the whole file, for the prompt steers what acts.
    pub(crate) fn power_item(&self, text: &str) -> Option<PowerItem> {
        let loosens = |mode: &&Located<String>| mode.value != MODE_THAT_TIGHTENS;
        let mode = self.permission_mode.as_ref().filter(loosens).map(|mode| mode.line);
        let memory = self.memory.as_ref().map(|memory| memory.line);
        let (hooks, servers) = (self.hooks.as_ref(), self.mcp_servers.as_ref());
        let brought = hooks.map(|it| it.line).or(servers.map(|it| it.line));
        // In the place of an agent that changes nothing stands one that may.
        let replaced = is_read_only_name(&self.name).then_some(self.name.line);
        // A command is carried out as if the user had typed it.
        let command = self.initial_command().map(|prompt| prompt.line);
        let line = brought.or(mode).or(memory).or(replaced).or(command)?;
        let values = (hooks.map(|it| &it.value), servers.map(|it| &it.value));
        let name = format!("agent `{}`", printable(&self.name));
        Some(PowerItem::of_text(&self.origin.path, Some(line), name, text, values))
    }

    /// Its text before the first input, if that is a command.
    pub fn initial_command(&self) -> Option<&Located<String>> {
        self.initial_prompt.as_ref().filter(|prompt| prompt.trim_start().starts_with('/'))
    }

    /// Whether it may have every tool that there is.
    pub fn has_all_tools(&self) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == "*"))
    }
}

/// The source of an agent, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentSource {
    BuiltIn,
    Plugin,
    User,
    Project,
    Flag,
    Policy,
}

impl AgentSource {
    const ALL: [Self; 6] =
        [Self::BuiltIn, Self::Plugin, Self::User, Self::Project, Self::Flag, Self::Policy];

    /// The source of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.as_str() == name)
    }

    /// As hosts know it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::Plugin => "plugin",
            Self::User => "userSettings",
            Self::Project => "projectSettings",
            Self::Flag => "flagSettings",
            Self::Policy => "policySettings",
        }
    }
}

impl fmt::Display for AgentSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The file and line of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOrigin {
    pub source: AgentSource,
    /// A file, or the name of what stood in for one, such as `--agents`.
    pub path: PathBuf,
    /// The plugin that brought it.
    pub plugin: Option<String>,
}

impl AgentOrigin {
    /// The directory that the file is in; `None` for what is built in.
    pub fn directory(&self) -> Option<&Path> {
        match self.source {
            AgentSource::BuiltIn => None,
            _ => self.path.parent(),
        }
    }
}

/// The model that an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentModel {
    /// That of its parent.
    Inherit,
    /// An alias or a full id.
    Named(String),
}

impl AgentModel {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Inherit => "inherit",
            Self::Named(name) => name,
        }
    }
}

/// The effort that an agent is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEffort {
    Level(Effort),
    Amount(u32),
}

impl fmt::Display for AgentEffort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(level) => level.fmt(formatter),
            Self::Amount(amount) => amount.fmt(formatter),
        }
    }
}

/// The mode that takes away from any other.
const MODE_THAT_TIGHTENS: &str = "plan";

/// The values of `permissionMode`.
pub const PERMISSION_MODES: [&str; 8] =
    ["default", "manual", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions", "bubble"];

/// The place in which an agent works apart from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    Worktree,
}

impl Isolation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worktree => "worktree",
        }
    }
}

impl FromStr for Isolation {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "worktree" => Ok(Self::Worktree),
            "remote" => Err(WordError::NoRemoteAgents),
            _ => Err(WordError::Unknown("worktree")),
        }
    }
}

/// The scope of the memory that an agent keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryScope {
    /// The user's, in all projects.
    User,
    /// Shared by all who work on the project.
    Project,
    /// The user's, in this project.
    Local,
}

impl MemoryScope {
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Local];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

impl FromStr for MemoryScope {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or(WordError::Unknown("user, project or local"))
    }
}

/// The colour that an agent is shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    Red,
    Blue,
    Green,
    Yellow,
    Purple,
    Orange,
    Pink,
    Cyan,
}

impl Color {
    pub const ALL: [Self; 8] = [
        Self::Red,
        Self::Blue,
        Self::Green,
        Self::Yellow,
        Self::Purple,
        Self::Orange,
        Self::Pink,
        Self::Cyan,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Blue => "blue",
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Purple => "purple",
            Self::Orange => "orange",
            Self::Pink => "pink",
            Self::Cyan => "cyan",
        }
    }

    /// The colour of an agent that asks for none: the same for the same name, on every machine.
    pub fn of_name(name: &str) -> Self {
        let first = blake3::hash(name.as_bytes()).as_bytes().first().copied().unwrap_or(0);
        let index = usize::from(first) % Self::ALL.len();
        Self::ALL.get(index).copied().unwrap_or(Self::Blue)
    }
}

impl FromStr for Color {
    type Err = WordError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        let found = Self::ALL.into_iter().find(|color| color.as_str() == lower);
        found.ok_or_else(|| {
            WordError::NotAmong(Self::ALL.iter().map(|color| color.as_str()).collect())
        })
    }
}
