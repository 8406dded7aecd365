//! The source of a hook, and its location in a file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::settings::Level;

/// The source of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookSource {
    Settings(Level),
    Plugin(Arc<PluginSource>),
    /// The skill of this name.
    Skill(Arc<str>),
    /// The definition of the agent of this name.
    Agent(Arc<str>),
    /// The host.
    Host,
}

/// A plugin, as far as its hooks need to know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSource {
    pub name: String,
    /// Its installation directory.
    pub root: PathBuf,
    /// The directory for its data, which survives updates.
    pub data: PathBuf,
    /// The user's configuration.
    pub options: BTreeMap<String, String>,
    /// Whether the administrator of the machine enabled it.
    pub is_managed: bool,
}

/// The location of a hook in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookOrigin {
    pub source: HookSource,
    pub file: Option<Arc<Path>>,
    /// Counted from one.
    pub line: Option<usize>,
}

impl HookOrigin {
    pub fn new(source: HookSource) -> Self {
        Self { source, file: None, line: None }
    }

    pub fn in_file(source: HookSource, file: impl Into<Arc<Path>>, line: Option<usize>) -> Self {
        Self { source, file: Some(file.into()), line }
    }

    pub(crate) fn at(&self, line: Option<usize>) -> Self {
        Self { line: line.or(self.line), ..self.clone() }
    }
}

impl HookSource {
    pub(crate) fn plugin(&self) -> Option<&PluginSource> {
        match self {
            Self::Plugin(plugin) => Some(plugin),
            _ => None,
        }
    }

    pub(crate) fn is_settings(&self) -> bool {
        matches!(self, Self::Settings(_))
    }

    pub(crate) fn is_managed(&self) -> bool {
        match self {
            Self::Settings(level) => *level == Level::Managed,
            Self::Plugin(plugin) => plugin.is_managed,
            Self::Skill(_) | Self::Agent(_) | Self::Host => false,
        }
    }
}

impl fmt::Display for HookSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(level) => write!(formatter, "{level} settings"),
            Self::Plugin(plugin) => write!(formatter, "plugin {}", plugin.name),
            Self::Skill(name) => write!(formatter, "skill {name}"),
            Self::Agent(name) => write!(formatter, "agent {name}"),
            Self::Host => formatter.write_str("the host"),
        }
    }
}

impl fmt::Display for HookOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(formatter, "{}:{line}", file.display()),
            (Some(file), None) => write!(formatter, "{}", file.display()),
            (None, _) => self.source.fmt(formatter),
        }
    }
}

/// A declared hook that cannot run as written, or at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookProblem {
    pub origin: HookOrigin,
    /// The problem and its remedy.
    pub message: String,
    /// True if nothing is wrong with the hook: the settings or the trust in a folder keep it off.
    pub is_off: bool,
}

impl fmt::Display for HookProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.origin, self.message)
    }
}
