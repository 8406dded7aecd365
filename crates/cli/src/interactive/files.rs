//! The files that the terminal keeps for a directory: drafts and the history of prompts, both private.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use centurion_files::private;
use centurion_protocol::{AgentId, bounded};

use crate::surroundings::Surroundings;

/// The largest history that is read.
const MOST_HISTORY: u64 = 4 * 1024 * 1024;
/// The largest draft that is kept.
const MOST_DRAFT: u64 = 16 * 1024 * 1024;

#[derive(Clone)]
pub(super) struct Kept {
    place: PathBuf,
}

impl Kept {
    pub(super) fn new(surroundings: &Surroundings) -> Self {
        let places = surroundings.dirs.project_dirs(&surroundings.cwd);
        let place =
            places.into_iter().next().unwrap_or_else(|| surroundings.dirs.own_projects_dir());
        Self { place }
    }

    /// The prompts of earlier sessions, oldest first.
    pub(super) fn history(&self) -> Vec<String> {
        let text = bounded::read_file(&self.place.join("prompts.history"), MOST_HISTORY)
            .unwrap_or_default();
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    /// Adds a prompt to the history.
    pub(super) fn remember(&self, text: &str) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(text)?;
        line.push(b'\n');
        let path = self.place.join("prompts.history");
        if path.metadata().is_ok_and(|file| file.len() > MOST_HISTORY / 2) {
            // The older half goes.
            let kept = self.history();
            let newer = kept.iter().skip(kept.len() / 2);
            let lines: Vec<String> =
                newer.filter_map(|text| serde_json::to_string(text).ok()).collect();
            private::replace(&path, format!("{}\n", lines.join("\n")).as_bytes())?;
        }
        private::open(OpenOptions::new().append(true).create(true), &path)?.write_all(&line)
    }

    /// The draft for an agent; `None` is the main agent.
    pub(super) fn draft(&self, agent: Option<&AgentId>) -> String {
        let bytes = bounded::read_file(&self.draft_file(agent), MOST_DRAFT).unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }

    pub(super) fn save_draft(&self, agent: Option<&AgentId>, text: &str) -> std::io::Result<()> {
        let path = self.draft_file(agent);
        if text.is_empty() {
            return match std::fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        private::create_directory(&self.place)?;
        private::replace(&path, text.as_bytes())
    }

    fn draft_file(&self, agent: Option<&AgentId>) -> PathBuf {
        let is_plain = |id: &&AgentId| id.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric());
        let name = agent.filter(is_plain).map_or("main", AgentId::as_str);
        self.place.join(format!("draft.{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_and_prompts_come_back() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = Kept { place: scratch.path().join("project") };
        assert_eq!((kept.draft(None), kept.history()), (String::new(), Vec::<String>::new()));
        kept.save_draft(None, "half a\nprompt").unwrap();
        kept.remember("one").unwrap();
        kept.remember("two\nlines").unwrap();
        assert_eq!(kept.draft(None), "half a\nprompt");
        assert_eq!(kept.history(), ["one", "two\nlines"]);
        let agent = AgentId::new("../../x");
        kept.save_draft(Some(&agent), "no name leads out").unwrap();
        assert_eq!(kept.draft(None), "no name leads out");
        kept.save_draft(None, "").unwrap();
        assert_eq!(kept.draft(None), "");
    }
}
