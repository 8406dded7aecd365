//! The levels that settings come from, and which of them are wanted.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

/// The author of a setting; an earlier level wins over a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The administrator of the machine.
    Managed,
    /// `--settings` of this run.
    Flag,
    /// The user, for one project.
    Local,
    /// The project.
    Project,
    /// The user, for all projects.
    User,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Managed => "managed",
            Self::Flag => "flag",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        })
    }
}

/// The levels that are read; managed and flag settings always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChoice {
    pub user: bool,
    pub project: bool,
    pub local: bool,
}

impl Default for LevelChoice {
    fn default() -> Self {
        Self { user: true, project: true, local: true }
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{0}` is no source of settings; help: name any of user, project and local, with commas")]
pub struct UnknownSource(pub String);

impl LevelChoice {
    /// Managed and flag settings alone.
    pub const NONE: Self = Self { user: false, project: false, local: false };

    /// Reads what `--setting-sources` says, such as `user,project`.
    pub fn parse(text: &str) -> Result<Self, UnknownSource> {
        let mut choice = Self::NONE;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "user" => choice.user = true,
                "project" => choice.project = true,
                "local" => choice.local = true,
                other => return Err(UnknownSource(other.to_owned())),
            }
        }
        Ok(choice)
    }

    pub fn wants(self, level: Level) -> bool {
        match level {
            Level::Managed | Level::Flag => true,
            Level::Local => self.local,
            Level::Project => self.project,
            Level::User => self.user,
        }
    }
}

/// The file and line of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub level: Level,
    /// `--settings` where the flag held the JSON itself.
    pub file: Arc<Path>,
    /// Counted from one.
    pub line: usize,
    /// The directory that `/path` in a rule of this file is relative to.
    pub root: Arc<Path>,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{} ({})", self.file.display(), self.line, self.level)
    }
}

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_named_with_commas() {
        let choice = LevelChoice::parse(" user,local,").unwrap();
        assert_eq!(choice, LevelChoice { user: true, project: false, local: true });
        assert!(choice.wants(Level::Managed) && choice.wants(Level::Flag));
        assert!(!choice.wants(Level::Project));
        assert!(!LevelChoice::parse("").unwrap().user);
        assert_eq!(LevelChoice::parse("user,team"), Err(UnknownSource("team".to_owned())));
    }
}
