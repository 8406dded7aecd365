//! A file of instructions in the window of an agent, as hosts are told of it.

use std::path::PathBuf;

use centurion_config::memory::{MemoryFile, Scope};

/// A file in the window, with about how many tokens it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextFile {
    pub path: PathBuf,
    /// `User`, `Project`, `Local` or `Managed`.
    pub kind: &'static str,
    pub tokens: u64,
}

impl From<&MemoryFile> for ContextFile {
    fn from(file: &MemoryFile) -> Self {
        let kind = match file.scope {
            Scope::Managed => "Managed",
            Scope::User => "User",
            Scope::Project => "Project",
            Scope::Local => "Local",
        };
        Self { path: file.path.clone(), kind, tokens: file.content.len() as u64 / 4 }
    }
}
