//! The provenance of a value: a file and its line, a parameter of the call, a setting, a rule.

use std::fmt;
use std::path::PathBuf;

use centurion_config::Located;
use centurion_config::agents::{AgentDefinition, AgentSource};
use serde::{Serialize, Serializer};

/// A value and what decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Decided<T> {
    pub value: T,
    #[serde(rename = "from")]
    pub by: Provenance,
}

impl<T> Decided<T> {
    pub(crate) fn new(value: T, by: Provenance) -> Self {
        Self { value, by }
    }

    /// The same decision about something else.
    pub(crate) fn map<U>(self, map: impl FnOnce(T) -> U) -> Decided<U> {
        Decided { value: map(self.value), by: self.by }
    }
}

/// The source of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provenance {
    /// A line of the definition.
    Definition { path: PathBuf, line: usize },
    /// The definition is part of the program.
    BuiltIn { path: PathBuf, line: usize },
    /// A parameter of the call that starts the agent.
    Call(&'static str),
    /// A flag of the command line.
    Flag(&'static str),
    /// A setting, with where it is written.
    Setting(String),
    /// An environment variable.
    Variable(&'static str),
    /// The agent that starts it.
    Parent,
    /// The session that it runs in.
    Session,
    /// A rule that binds all agents.
    Ceiling(&'static str),
    /// A default.
    Default(&'static str),
}

impl Provenance {
    /// The line of a definition that says something.
    pub(crate) fn of<T>(definition: &AgentDefinition, value: &Located<T>) -> Self {
        let (path, line) = (definition.origin.path.clone(), value.line);
        match definition.origin.source {
            AgentSource::BuiltIn => Self::BuiltIn { path, line },
            _ => Self::Definition { path, line },
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Definition { path, line } => write!(formatter, "{}:{line}", path.display()),
            Self::BuiltIn { path, line } => {
                write!(formatter, "built in, {}:{line}", path.display())
            }
            Self::Call(parameter) => write!(formatter, "`{parameter}` of the call"),
            Self::Flag(flag) => formatter.write_str(flag),
            Self::Setting(place) => formatter.write_str(place),
            Self::Variable(name) => write!(formatter, "${name}"),
            Self::Parent => formatter.write_str("the agent that starts it"),
            Self::Session => formatter.write_str("the session"),
            Self::Ceiling(rule) => write!(formatter, "ceiling: {rule}"),
            Self::Default(rule) => write!(formatter, "default: {rule}"),
        }
    }
}

impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
