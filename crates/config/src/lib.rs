//! Files that a person wrote: settings, definitions of agents and skills, memory files. This crate finds and reads
//! them, and says with file and line what is wrong with them.
//!
//! Runs nothing, and writes only what a person answered or asked for: a rule into their settings, their
//! trust in a folder, a plugin that they add, the place that an agent's memory is kept in. Reads no
//! environment and no home directory: the binary hands in an [`Env`](centurion_protocol::Env) and the
//! paths.

pub mod agent_memory;
pub mod agents;
mod fields;
mod files;
pub mod frontmatter;
pub mod mcp;
pub mod memory;
pub mod output_styles;
pub mod paths;
pub mod plugins;
mod read_rules;
pub mod repository;
mod scan;
pub mod settings;
pub mod skills;
#[cfg(test)]
mod testing;
pub mod trust;

use std::path::PathBuf;

pub use fields::Located;
pub use files::FileError;
pub use read_rules::ReadRules;

/// Something that a person should know about a file of theirs. Nothing stops because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub path: PathBuf,
    /// Counted from one; `None` where the file as a whole is meant.
    pub line: Option<usize>,
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}
