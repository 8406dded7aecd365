//! Files and directories change, or come into force.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Block;
use super::session::watch_paths;
use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::Reply;

/// A file of instructions was loaded.
#[derive(Clone, Debug, Serialize)]
pub struct InstructionsLoaded<'a> {
    pub file_path: &'a Path,
    /// `User`, `Project`, `Local` or `Managed`.
    pub memory_type: &'a str,
    /// `session_start`, `nested_traversal`, `path_glob_match`, `include` or `compact`.
    pub load_reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub globs: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_file_path: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_file_path: Option<&'a Path>,
}

impl EventInput for InstructionsLoaded<'_> {
    const EVENT: Event = Event::InstructionsLoaded;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.load_reason)
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}

/// A settings file or the skills changed; a block keeps the previous state.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigChange<'a> {
    /// `user_settings`, `project_settings`, `local_settings`, `policy_settings` or `skills`.
    pub source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_path: Option<&'a Path>,
}

impl EventInput for ConfigChange<'_> {
    const EVENT: Event = Event::ConfigChange;
    type Verdict = Block;

    fn subject(&self) -> Option<&str> {
        Some(self.source)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        // The settings of the machine's administrator always count, whatever a hook decides.
        if self.source == "policy_settings" { Block::default() } else { Block::of(replies) }
    }
}

/// The shell changed its directory.
#[derive(Clone, Debug, Serialize)]
pub struct CwdChanged<'a> {
    pub old_cwd: &'a Path,
    pub new_cwd: &'a Path,
}

impl EventInput for CwdChanged<'_> {
    const EVENT: Event = Event::CwdChanged;
    /// Files to watch from now on.
    type Verdict = Option<Vec<PathBuf>>;

    fn fold(&self, common: &Common, replies: &[Reply]) -> Option<Vec<PathBuf>> {
        watch_paths(common, replies)
    }

    fn watches(verdict: &Option<Vec<PathBuf>>) -> Option<&[PathBuf]> {
        verdict.as_deref()
    }
}

/// A working directory was added.
#[derive(Clone, Debug, Serialize)]
pub struct DirectoryAdded<'a> {
    pub directory: &'a Path,
    /// `slash_command` or `register_repo_root`.
    pub source: &'a str,
}

impl EventInput for DirectoryAdded<'_> {
    const EVENT: Event = Event::DirectoryAdded;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.source)
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}

/// A watched file changed.
#[derive(Clone, Debug, Serialize)]
pub struct FileChanged<'a> {
    pub file_path: &'a Path,
    /// `change`, `add` or `unlink`.
    pub event: &'a str,
}

impl EventInput for FileChanged<'_> {
    const EVENT: Event = Event::FileChanged;
    /// Files to watch from now on.
    type Verdict = Option<Vec<PathBuf>>;

    fn subject(&self) -> Option<&str> {
        self.file_path.file_name()?.to_str()
    }

    fn fold(&self, common: &Common, replies: &[Reply]) -> Option<Vec<PathBuf>> {
        watch_paths(common, replies)
    }

    fn watches(verdict: &Option<Vec<PathBuf>>) -> Option<&[PathBuf]> {
        verdict.as_deref()
    }
}
