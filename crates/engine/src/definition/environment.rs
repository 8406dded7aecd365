//! The environment of an agent: directory, platform, date and the state of the git repository.

mod git;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use centurion_protocol::markup::contain;

pub(crate) use self::git::GitState;

/// The facts about its surroundings that an agent is told.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub cwd: PathBuf,
    pub additional_directories: Vec<PathBuf>,
    pub model: String,
    pub date: String,
    pub git: Option<GitState>,
}

impl Environment {
    /// The same for an agent with another directory and another model, or one that need not know about git.
    pub(crate) fn of_agent(&self, cwd: &Path, model: &str, with_git: bool) -> Self {
        Self {
            cwd: cwd.to_owned(),
            model: model.to_owned(),
            git: self.git.clone().filter(|_| with_git),
            ..self.clone()
        }
    }

    /// The branch as records name it; empty where there is none to be told.
    pub(crate) fn branch(&self) -> &str {
        self.git.as_ref().map_or("", GitState::branch)
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
                line("Git repository", &git.render_head());
                text.push_str(&git.render_changes());
            }
        }
        // Directories, branches, files and commits have names that strangers chose.
        contain(&text).into_owned()
    }
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
}
