//! The origin of a rule: the level of the settings, the file and the line, or the agent that it was written for.

use std::fmt;
use std::path::{Path, PathBuf};

/// The levels that rules come from, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleLevel {
    /// The settings of the machine's administrator.
    Managed,
    /// The command line.
    Flag,
    /// The project's settings of one person.
    Local,
    /// The project's settings that all its users share.
    Project,
    /// The settings of one person for all projects.
    User,
    /// An answer given while the session ran.
    Session,
    /// The definition of an agent.
    Role,
}

impl fmt::Display for RuleLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed",
            Self::Flag => "flag",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Session => "session",
            Self::Role => "role",
        })
    }
}

/// The author of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleOrigin {
    /// A flag of the command line.
    Flag,
    /// An answer given while the session ran.
    Session,
    /// A settings file.
    Settings {
        level: RuleLevel,
        file: PathBuf,
        /// The line of the rule, from one.
        line: Option<u32>,
        /// The anchor of patterns that begin with `/`: the project for project settings, the directory of the file for
        /// others.
        root: PathBuf,
    },
    /// The definition of the agent of this name.
    Role(String),
}

impl RuleOrigin {
    pub fn level(&self) -> RuleLevel {
        match self {
            Self::Flag => RuleLevel::Flag,
            Self::Session => RuleLevel::Session,
            Self::Settings { level, .. } => *level,
            Self::Role(_) => RuleLevel::Role,
        }
    }

    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Settings { file, .. } => Some(file),
            Self::Flag | Self::Session | Self::Role(_) => None,
        }
    }

    pub fn line(&self) -> Option<u32> {
        match self {
            Self::Settings { line, .. } => *line,
            Self::Flag | Self::Session | Self::Role(_) => None,
        }
    }

    /// The anchor of patterns that begin with `/`, if it is not the agent's start directory.
    pub(crate) fn root(&self) -> Option<&Path> {
        match self {
            Self::Settings { root, .. } => Some(root),
            Self::Flag | Self::Session | Self::Role(_) => None,
        }
    }
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("the command line"),
            Self::Session => f.write_str("this session"),
            Self::Settings { file, line: Some(line), .. } => write!(f, "{}:{line}", file.display()),
            Self::Settings { file, line: None, .. } => write!(f, "{}", file.display()),
            Self::Role(name) => write!(f, "the definition of `{name}`"),
        }
    }
}

/// The origin of a rule and its original text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleSource {
    pub origin: RuleOrigin,
    pub text: String,
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` from {}", self.text, self.origin)
    }
}
