//! Texts that were given already: memory that applies once a file is read is given once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::loader::{Loader, clean};
use super::rules::ConditionalRule;
use super::{Memory, MemoryFile, introduced};
use crate::Problem;

/// The state of one conversation. A conversation that was compacted starts with a new one.
#[derive(Clone, Debug)]
pub struct MemoryTracker {
    memory: Arc<Memory>,
    seen: HashSet<PathBuf>,
    /// The rules that still wait.
    waiting: Vec<Arc<ConditionalRule>>,
    /// The directories whose own files have been looked for.
    visited: HashSet<PathBuf>,
    /// The files by which something came to apply, and what did.
    triggers: Vec<PathBuf>,
    applied: Vec<MemoryFile>,
}

/// Memory that applies since a file was read.
#[derive(Debug, Default)]
pub struct Applied {
    pub files: Vec<MemoryFile>,
    pub problems: Vec<Problem>,
}

impl MemoryTracker {
    pub fn new(memory: Arc<Memory>) -> Self {
        let (seen, waiting) = (memory.seen.clone(), memory.rules.clone());
        let (triggers, applied) = (Vec::new(), Vec::new());
        Self { memory, seen, waiting, visited: HashSet::new(), triggers, applied }
    }

    /// The same for a conversation that begins anew, with the files as they are on disk now. What had come to apply by
    /// a file applies from the start.
    pub fn reloaded(&self) -> Self {
        let mut tracker = Self::new(Arc::new(Memory::load(self.memory.sources.clone())));
        for path in &self.triggers {
            tracker.rules_for(path);
        }
        tracker
    }

    /// All that applies, as one text; `None` if there is nothing to say.
    pub fn render(&self) -> Option<String> {
        let files: Vec<MemoryFile> =
            self.memory.files.iter().chain(&self.applied).cloned().collect();
        introduced(&files)
    }

    /// Memory that applied from the start.
    pub fn files(&self) -> &[MemoryFile] {
        &self.memory.files
    }

    /// The instructions of the directories between the project and a file, and the rules about it,
    /// that this conversation has not been given yet.
    pub fn rules_for(&mut self, path: &Path) -> Applied {
        let memory = Arc::clone(&self.memory);
        let path = clean(&memory.sources.cwd.join(path));
        let seen = std::mem::take(&mut self.seen);
        let mut loader = Loader::new(&memory.sources, &memory.excludes, seen);
        for directory in memory.sources.nested_directories(&path) {
            if self.visited.insert(directory.to_owned()) {
                loader.project_directory(directory);
            }
        }
        self.waiting.append(&mut loader.rules);
        self.waiting.retain(|rule| {
            let applies = rule.applies_to(&path);
            if applies {
                loader.apply(rule);
            }
            !applies
        });
        self.seen = loader.seen;
        if !loader.files.is_empty() {
            self.triggers.push(path);
            self.applied.extend_from_slice(&loader.files);
        }
        Applied { files: loader.files, problems: loader.problems }
    }
}
