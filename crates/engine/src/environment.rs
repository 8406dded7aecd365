//! Where an agent stands: directory, platform, date and the state of the git repository.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use centurion_protocol::Env;
use tokio::process::Command;

use crate::session::Options;

/// A repository that takes longer than this to look at is described without its state.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);
/// How many lines of `git status` a model is shown.
const STATUS_LINES: usize = 40;

/// What an agent is told about its surroundings.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub cwd: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub model: String,
    pub date: String,
    pub git: Option<GitState>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GitState {
    pub branch: String,
    /// Changed files, a line each; empty when clean.
    pub status: Vec<String>,
    pub more_changes: usize,
    pub recent_commits: Vec<String>,
}

impl Environment {
    /// Looks at the surroundings.
    pub(crate) async fn observe(options: &Options) -> Self {
        let git = match options.repository {
            Some(_) => {
                let looking = GitState::observe(&options.cwd, &options.env);
                tokio::time::timeout(GIT_TIMEOUT, looking).await.ok().flatten()
            }
            None => None,
        };
        let now = options.world.now().to_zoned(options.time_zone.clone());
        Self {
            cwd: options.cwd.clone(),
            additional_directories: options.additional_directories.clone(),
            model: options.settings.model.clone(),
            date: now.date().to_string(),
            git,
        }
    }

    /// The same for an agent with another directory and another model, or one that need not know about git.
    pub(crate) fn of_agent(&self, cwd: &Path, model: &str, with_git: bool) -> Self {
        Self {
            cwd: cwd.to_owned(),
            model: model.to_owned(),
            git: self.git.clone().filter(|_| with_git),
            ..self.clone()
        }
    }

    /// The section of the system prompt.
    pub(crate) fn render(&self) -> String {
        let mut text = String::from("# Environment\n");
        // Writing to a string cannot fail.
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "- {name}: {value}");
        };
        line("Working directory", &self.cwd.display().to_string());
        for directory in &self.additional_directories {
            line("Additional working directory", &directory.display().to_string());
        }
        line("Platform", &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
        line("Date", &self.date);
        line("Model", &self.model);
        match &self.git {
            None => line("Git repository", "no"),
            Some(git) => {
                line("Git repository", &format!("yes, on branch {}", git.branch));
                text.push_str(&git.render());
            }
        }
        text
    }
}

impl GitState {
    async fn observe(cwd: &Path, env: &Env) -> Option<Self> {
        let (status, log) = tokio::join!(
            git(cwd, env, &["status", "--porcelain=v1", "--branch"]),
            git(cwd, env, &["log", "-5", "--format=%h %s"])
        );
        Some(Self::parse(&status?, log.as_deref().unwrap_or("")))
    }

    fn parse(status: &str, log: &str) -> Self {
        let mut lines = status.lines();
        let head = lines.next().unwrap_or("").trim_start_matches("## ");
        let head = head.strip_prefix("No commits yet on ").unwrap_or(head);
        let branch = head.split("...").next().unwrap_or(head).to_owned();
        let all: Vec<String> = lines.map(str::to_owned).collect();
        Self {
            branch,
            more_changes: all.len().saturating_sub(STATUS_LINES),
            status: all.into_iter().take(STATUS_LINES).collect(),
            recent_commits: log.lines().map(str::to_owned).collect(),
        }
    }

    fn render(&self) -> String {
        let mut text = String::from("\nGit status when the session started:\n");
        if self.status.is_empty() {
            text.push_str("(clean)\n");
        }
        for line in &self.status {
            text.push_str(line);
            text.push('\n');
        }
        if self.more_changes > 0 {
            let _ = writeln!(text, "(and {} more)", self.more_changes);
        }
        if !self.recent_commits.is_empty() {
            let _ = write!(text, "\nRecent commits:\n{}\n", self.recent_commits.join("\n"));
        }
        text
    }
}

/// The output of a git command that takes no locks, asks nothing, and runs nothing that the repository's own
/// configuration names: nobody has been asked for permission yet.
async fn git(cwd: &Path, env: &Env, arguments: &[&str]) -> Option<String> {
    let kept = ["PATH", "HOME", "XDG_CONFIG_HOME", "LANG"];
    let output = Command::new("git")
        .args([
            "--no-optional-locks",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(arguments)
        .current_dir(cwd)
        .env_clear()
        .envs(kept.iter().filter_map(|name| Some((name, env.get(name)?))))
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_begins_as_cassettes_expect_it() {
        let environment = Environment {
            cwd: "/p".into(),
            additional_directories: vec!["/q".into()],
            model: "m".into(),
            date: "2026-01-02".into(),
            git: None,
        };
        let text = environment.render();
        assert!(text.starts_with(
            "# Environment\n- Working directory: /p\n- Additional working directory: /q\n"
        ));
    }

    #[test]
    fn git_state_names_the_branch_and_bounds_the_changes() {
        let changes: String = ["?? file\n"; 50].concat();
        let git =
            GitState::parse(&format!("## main...origin/main [ahead 1]\n{changes}"), "abc one\n");
        assert_eq!((git.branch.as_str(), git.status.len(), git.more_changes), ("main", 40, 10));
        assert!(git.render().contains("(and 10 more)"));
        assert_eq!(GitState::parse("## No commits yet on trunk\n", "").branch, "trunk");
        assert!(GitState::parse("## HEAD (no branch)\n", "").render().contains("(clean)"));
    }
}
