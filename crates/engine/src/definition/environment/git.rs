//! The state of the git repository when a session starts: branch, changes, recent commits.
//!
//! The repository may be a stranger's. The branch is read from its file; git is run only so that it can
//! start nothing, and what it says is text of others.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use centurion_config::repository::{GitDirs, Head};
use centurion_protocol::Env;
use centurion_tools::{GitPlaces, GitText, InstalledGit};

/// A repository that takes longer than this to look at is described without its changes.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);
/// The most lines of `git status` that a model is shown.
const STATUS_LINES: usize = 40;
/// The longest line that is shown.
const LINE_BYTES: usize = 400;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GitState {
    /// `None` where it cannot be told.
    head: Option<Head>,
    /// `None` where git could not be asked.
    changes: Option<Changes>,
    recent_commits: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Changes {
    /// A line each; empty when clean.
    lines: Vec<String>,
    more: usize,
    /// There are more than were counted.
    is_cut: bool,
}

impl GitState {
    /// Looks at the repository whose top is `root`.
    pub(crate) async fn observe(root: &Path, env: &Env) -> Self {
        let Some(dirs) = GitDirs::of(root) else { return Self::default() };
        let head = dirs.head();
        let Some(git) = InstalledGit::find(env, root) else {
            return Self { head, ..Self::default() };
        };
        let places =
            GitPlaces { work_tree: root.to_owned(), directories: vec![dirs.own, dirs.common] };
        let looking = async {
            tokio::join!(
                git.read(&places, &["status", "--porcelain=v1", "--ignore-submodules=dirty"]),
                git.read(&places, &["log", "-5", "--format=%h %s", "--no-show-signature"])
            )
        };
        let (status, log) = tokio::time::timeout(GIT_TIMEOUT, looking).await.unwrap_or_default();
        Self {
            head,
            changes: status.as_ref().map(Changes::parse),
            recent_commits: log.iter().flat_map(|log| log.text.lines()).map(shown).collect(),
        }
    }

    pub(super) fn branch(&self) -> &str {
        match &self.head {
            Some(Head::Branch(branch)) => branch,
            Some(Head::Detached) => "HEAD",
            None => "",
        }
    }

    /// Renders the state of the head, to follow "Git repository:".
    pub(super) fn render_head(&self) -> String {
        match &self.head {
            Some(Head::Branch(branch)) => format!("yes, on branch {branch}"),
            Some(Head::Detached) => "yes, on no branch".to_owned(),
            None => "yes".to_owned(),
        }
    }

    /// Changes and commits; empty where git could not be asked.
    pub(super) fn render_changes(&self) -> String {
        let Some(changes) = &self.changes else { return String::new() };
        let mut text = String::from("\nGit status when the session started:\n");
        if changes.lines.is_empty() {
            text.push_str("(clean)\n");
        }
        for line in &changes.lines {
            text.push_str(line);
            text.push('\n');
        }
        let least = if changes.is_cut { "at least " } else { "" };
        if changes.more > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "(and {least}{} more)", changes.more);
        }
        if !self.recent_commits.is_empty() {
            let _ = write!(text, "\nRecent commits:\n{}\n", self.recent_commits.join("\n"));
        }
        text
    }
}

impl Changes {
    fn parse(status: &GitText) -> Self {
        let mut lines = status.text.lines();
        let shown = lines.by_ref().take(STATUS_LINES).map(shown).collect();
        Self { lines: shown, more: lines.count(), is_cut: status.is_cut }
    }
}

/// A line of git's as a model is shown it. The caller defuses markup.
fn shown(line: &str) -> String {
    let mut line: String = line.chars().filter(|c| !c.is_control()).collect();
    line.truncate(line.floor_char_boundary(LINE_BYTES));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> GitText {
        GitText { text: text.to_owned(), is_cut: false }
    }

    #[test]
    fn changes_are_bounded_and_counted() {
        let changes = Changes::parse(&text(&["?? file\n"; 50].concat()));
        assert_eq!((changes.lines.len(), changes.more), (40, 10));
        let state = GitState { changes: Some(changes), ..GitState::default() };
        assert!(state.render_changes().ends_with("(and 10 more)\n"));
        let clean = GitState { changes: Some(Changes::default()), ..GitState::default() };
        assert!(clean.render_changes().ends_with("(clean)\n"));
    }

    #[test]
    fn what_git_could_not_be_asked_about_is_not_said() {
        assert_eq!(GitState::default().render_head(), "yes");
        assert_eq!(GitState::default().render_changes(), "");
    }

    #[test]
    fn lines_of_git_are_bounded_and_hold_no_control_characters() {
        assert_eq!(shown("?? \u{1b}]0;x\u{7}a\rb"), "?? ]0;xab");
        assert!(shown(&"é".repeat(1000)).len() <= LINE_BYTES);
    }
}
