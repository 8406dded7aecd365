//! The user's own configuration where it lies within a place that the session may write: files that flags name, a
//! configuration directory inside the project, and links that lead from the home directory into a repository, as they do
//! where a person keeps such files in one.
//!
//! These files need no trust, and some are read again while a session runs: a program that may write them may do anything.

use std::fs;
use std::path::{Path, PathBuf};

use centurion_config::repository::USERS_GIT_CONFIGURATION;

use crate::args::RunArgs;
use crate::protected_files::SHELL_FILES;
use crate::surroundings::Surroundings;

/// Entries of the user's configuration directories that decide what runs and what is allowed. Agents keep their
/// memory there as well, which is theirs to write.
const PARTS: [&str; 16] = [
    ".claude.json",
    "CLAUDE.md",
    "agents",
    "commands",
    "hooks",
    "mcp-credentials.json",
    "output-styles",
    "plugins",
    "rules",
    "scheduled_tasks.json",
    "settings.json",
    "settings.local.json",
    "skills",
    "trust.d",
    "trust.json",
    "workflows",
];

/// The most entries of the user's directories that are looked at.
const MOST_ENTRIES: usize = 5_000;

/// The user's files that lie within one of these places, or are links to something that does.
pub(crate) fn users_files(
    args: &RunArgs,
    surroundings: &Surroundings,
    writable: &[PathBuf],
) -> Vec<PathBuf> {
    let flags = flag_files(args, &surroundings.cwd);
    let dirs = &surroundings.dirs;
    let config = dirs.config_dirs().iter().flat_map(|it| PARTS.iter().map(|part| it.join(part)));
    let state = dirs.state_files().iter().cloned();
    let home = surroundings.home.iter().flat_map(|home| {
        SHELL_FILES.iter().chain(&USERS_GIT_CONFIGURATION).map(|name| home.join(name))
    });
    let candidates: Vec<PathBuf> =
        flags.into_iter().chain(config).chain(state).chain(home).collect();
    let mut collector = Collector { writable, left: MOST_ENTRIES, found: Vec::new(), parent: None };
    // All of them come before what is inside of any: only that has a bound.
    let directories: Vec<&PathBuf> = candidates.iter().filter(|it| collector.add(it)).collect();
    for directory in directories {
        collector.walk(directory);
    }
    let mut found = collector.found;
    found.sort();
    found.dedup();
    found
}

/// The files that flags name: each takes JSON or a file.
fn flag_files(args: &RunArgs, cwd: &Path) -> Vec<PathBuf> {
    let settings = args.settings.settings.iter();
    let named = settings.chain(&args.delegation.definitions.agents).chain(&args.mcp.mcp_config);
    named.filter(|text| !text.trim_start().starts_with('{')).map(|text| cwd.join(text)).collect()
}

/// Gathers files that lie in writable places.
struct Collector<'a> {
    writable: &'a [PathBuf],
    /// The number of entries that may still be looked at.
    left: usize,
    found: Vec<PathBuf>,
    /// The directory that was looked at last, and where it really is: most candidates stand in few directories.
    parent: Option<(PathBuf, Option<PathBuf>)>,
}

impl Collector<'_> {
    /// Adds what can be written of a path: itself, and where it leads if it is a link. Whether it is a directory.
    fn add(&mut self, path: &Path) -> bool {
        let entry = fs::symlink_metadata(path);
        let place = self.place(path);
        // A file that is no link is in its place and nowhere else.
        let is_link = entry.as_ref().is_ok_and(fs::Metadata::is_symlink);
        let real = is_link.then(|| path.canonicalize().ok()).flatten();
        let is_writable = |path: &PathBuf| self.writable.iter().any(|it| path.starts_with(it));
        let found = [place, real].into_iter().flatten().filter(is_writable);
        self.found.extend(found.collect::<Vec<_>>());
        // The target of a link is added whole.
        entry.is_ok_and(|it| it.is_dir())
    }

    /// Adds what is in a directory: links, and what is in the directories there.
    fn walk(&mut self, directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|it| it.is_dir() || it.is_symlink()) {
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    return;
                }
                if self.add(&entry.path()) {
                    self.walk(&entry.path());
                }
            }
        }
    }

    /// The real place of a path, with the links of its directory resolved.
    fn place(&mut self, path: &Path) -> Option<PathBuf> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        if self.parent.as_ref().is_none_or(|(known, _)| known != parent) {
            self.parent = Some((parent.to_owned(), parent.canonicalize().ok()));
        }
        let (_, real) = self.parent.as_ref()?;
        Some(real.as_ref()?.join(name))
    }
}
