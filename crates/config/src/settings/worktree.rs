//! Settings about worktrees of agents.

use super::merge::MergedValues;

/// The way in which worktrees are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeSettings {
    /// Directories that lead to those of the checkout.
    pub symlink_directories: Vec<String>,
    /// The only directories that are checked out; none means all.
    pub sparse_paths: Vec<String>,
    /// Start from the default branch of the remote, and not from the caller's commit.
    pub is_fresh: bool,
    /// Whether an isolated agent runs commands only where its parent's checkout can be kept from them.
    pub requires_sandbox: bool,
}

impl Default for WorktreeSettings {
    fn default() -> Self {
        Self {
            symlink_directories: vec!["node_modules".to_owned()],
            sparse_paths: Vec::new(),
            is_fresh: false,
            requires_sandbox: false,
        }
    }
}

impl WorktreeSettings {
    pub(super) fn new(merged: &MergedValues) -> Self {
        let texts = |path: &str| merged.texts(path).into_iter().map(|it| it.value).collect();
        let links = "worktree.symlinkDirectories";
        let usual = Self::default();
        Self {
            symlink_directories: match merged.first(links) {
                Some(_) => texts(links),
                None => usual.symlink_directories,
            },
            sparse_paths: texts("worktree.sparsePaths"),
            is_fresh: merged.text("worktree.baseRef").is_some_and(|it| it.value == "fresh"),
            requires_sandbox: merged.bool("worktree.requireSandbox").unwrap_or(false),
        }
    }
}
