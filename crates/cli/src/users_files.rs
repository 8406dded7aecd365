//! The user's own configuration where it lies within a place that the session may write: files that flags name, a
//! configuration directory inside the project, and links that lead from the home directory into a repository, as they do
//! where a person keeps such files in one.
//!
//! These files need no trust, and some are read again while a session runs: a program that may write them may do anything.

use std::fs;
use std::path::{Path, PathBuf};

use centurion_config::repository::USERS_GIT_CONFIGURATION;

use crate::args::RunArgs;
use crate::kept::SHELL_FILES;
use crate::surroundings::Surroundings;

/// What the user's configuration directories hold that decides what runs and what is allowed. Agents keep their
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

/// How many entries of the user's directories are looked at.
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
    let candidates = flags.into_iter().chain(config).chain(state).chain(home);
    let mut found = Vec::new();
    let mut left = MOST_ENTRIES;
    for candidate in candidates {
        collect(&candidate, writable, &mut left, &mut found);
    }
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

/// Adds a file, or what is in a directory: itself where it can be written, and wherever links lead.
fn collect(path: &Path, writable: &[PathBuf], left: &mut usize, found: &mut Vec<PathBuf>) {
    *left = left.saturating_sub(1);
    if *left == 0 {
        return;
    }
    let is_writable = |path: &Path| writable.iter().any(|place| path.starts_with(place));
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    let place = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
    let real = path.canonicalize().ok();
    found.extend([place, real].into_iter().flatten().filter(|path| is_writable(path)));
    // What a link leads to is added whole.
    if fs::symlink_metadata(path).is_ok_and(|it| it.is_dir()) {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let is_worth_a_look = entry.file_type().is_ok_and(|it| it.is_dir() || it.is_symlink());
            if is_worth_a_look {
                collect(&entry.path(), writable, left, found);
            }
        }
    }
}
