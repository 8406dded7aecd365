//! The files that the terminal keeps for a directory: drafts and the history of prompts, both private.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use centurion_files::private;
use centurion_protocol::{AgentId, bounded};
use centurion_tui::{Draft, DraftError, load_draft, save_draft};
use parking_lot::Mutex;

use crate::surroundings::Surroundings;

/// The largest history that is read.
const MOST_HISTORY: u64 = 4 * 1024 * 1024;
/// The time for which the draft for an agent is kept.
const KEPT_FOR: Duration = Duration::from_hours(30 * 24);
/// The most files of the directory that are looked at for drafts.
const MOST_ENTRIES: usize = 10_000;

#[derive(Clone)]
pub(super) struct TerminalFiles {
    place: PathBuf,
    saved: Arc<Mutex<DraftOrder>>,
}

/// The order in which drafts were made and saved: writes run beside each other.
#[derive(Default)]
struct DraftOrder {
    made: u64,
    last: HashMap<PathBuf, u64>,
}

impl TerminalFiles {
    pub(super) fn new(surroundings: &Surroundings) -> Self {
        let places = surroundings.dirs.project_dirs(&surroundings.cwd);
        let place =
            places.into_iter().next().unwrap_or_else(|| surroundings.dirs.own_projects_dir());
        Self { place, saved: Arc::default() }
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

    /// The drafts that earlier processes left, each with its agent; `None` is the main one. Those that were left long ago
    /// are removed.
    pub(super) fn drafts(&self) -> Vec<(Option<AgentId>, Draft)> {
        let now = SystemTime::now();
        let mut drafts = Vec::new();
        let entries = std::fs::read_dir(&self.place).into_iter().flatten().flatten();
        for entry in entries.take(MOST_ENTRIES) {
            let name = entry.file_name();
            let Some(agent) = name.to_str().and_then(drafted_for) else { continue };
            let path = entry.path();
            let left = entry.metadata().and_then(|file| file.modified()).unwrap_or(now);
            if agent.is_some() && now.duration_since(left).unwrap_or_default() > KEPT_FOR {
                let _ = std::fs::remove_file(&path);
                continue;
            }
            // A draft that cannot be read is left where it is.
            drafts.extend(load_draft(&path).ok().map(|draft| (agent, draft)));
        }
        drafts
    }

    /// Makes a function that saves a draft. Of two that are saved at once, the one that was made later stays.
    pub(super) fn draft_saver(
        &self,
        agent: Option<&AgentId>,
        draft: Draft,
    ) -> impl FnOnce() -> Result<(), DraftError> + Send + use<> {
        let path = self.place.join(draft_name(agent));
        let saved = Arc::clone(&self.saved);
        let number = {
            let mut saved = saved.lock();
            saved.made += 1;
            saved.made
        };
        move || {
            let mut saved = saved.lock();
            let last = saved.last.entry(path.clone()).or_default();
            if *last > number {
                return Ok(());
            }
            *last = number;
            if let Some(place) = path.parent() {
                private::create_directory(place)
                    .map_err(|source| DraftError::Save { path: path.clone(), source })?;
            }
            save_draft(&draft, &path)
        }
    }
}

/// The name of the file of an agent's draft: no id leads out of the directory, and none is the main draft's.
fn draft_name(agent: Option<&AgentId>) -> String {
    let Some(agent) = agent else { return "draft.json".to_owned() };
    let letters: String = agent
        .as_str()
        .bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02x}"),
        })
        .collect();
    format!("draft.of-{letters}.json")
}

#[expect(clippy::option_option, reason = "a draft of the main agent names none")]
/// The agent of a draft's file; `None` if it is no draft.
fn drafted_for(name: &str) -> Option<Option<AgentId>> {
    if name == "draft.json" {
        return Some(None);
    }
    let letters = name.strip_prefix("draft.of-")?.strip_suffix(".json")?;
    let mut parts = letters.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    Some(Some(AgentId::new(String::from_utf8(bytes).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(scratch: &tempfile::TempDir) -> TerminalFiles {
        TerminalFiles { place: scratch.path().join("project"), saved: Arc::default() }
    }

    fn save(kept: &TerminalFiles, agent: Option<&str>, draft: &Draft) {
        kept.draft_saver(agent.map(AgentId::new).as_ref(), draft.clone())().unwrap();
    }

    fn texts(kept: &TerminalFiles) -> Vec<(Option<String>, String)> {
        let text = |(agent, draft): (Option<AgentId>, Draft)| {
            (agent.map(|agent| agent.to_string()), draft.text())
        };
        let mut texts: Vec<_> = kept.drafts().into_iter().map(text).collect();
        texts.sort();
        texts
    }

    #[test]
    fn prompts_come_back() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = kept(&scratch);
        assert!(kept.history().is_empty() && kept.drafts().is_empty());
        private::create_directory(&kept.place).unwrap();
        kept.remember("one").unwrap();
        kept.remember("two\nlines").unwrap();
        assert_eq!(kept.history(), ["one", "two\nlines"]);
    }

    #[test]
    fn each_draft_comes_back_to_its_own_agent_whatever_its_id() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = kept(&scratch);
        let ids = ["a1", "main", "../../x", "ada@team", "%2e", "é", ""];
        save(&kept, None, &Draft::of("of main"));
        for id in ids {
            save(&kept, Some(id), &Draft::of(&format!("of {id}")));
        }
        let mut expected: Vec<_> =
            ids.iter().map(|id| (Some((*id).to_owned()), format!("of {id}"))).collect();
        expected.push((None, "of main".to_owned()));
        expected.sort();
        assert_eq!(texts(&kept), expected);
        save(&kept, Some("../../x"), &Draft::new());
        assert_eq!(texts(&kept).len(), ids.len(), "an empty draft has no file");
        let outside = std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(outside, 1, "no id leads out of the directory");
    }

    #[test]
    fn a_pasted_chip_and_what_was_put_aside_come_back() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = kept(&scratch);
        let mut draft = Draft::of("aside");
        draft.stash();
        let pasted = "line\n".repeat(500);
        draft.paste(&pasted);
        save(&kept, None, &draft);
        let (_, mut back) = kept.drafts().pop().unwrap();
        let shown = back.lines(80).0[0].text();
        assert!(shown.starts_with("[paste 1 · 501 lines"), "{shown}");
        assert_eq!(back.take().text, pasted);
        assert!(back.stash());
        assert_eq!(back.text(), "aside");
    }

    #[test]
    fn a_draft_that_was_made_earlier_never_replaces_a_later_one() {
        let scratch = tempfile::tempdir().unwrap();
        let kept = kept(&scratch);
        let early = kept.draft_saver(None, Draft::of("early"));
        let late = kept.draft_saver(None, Draft::of("late"));
        late().unwrap();
        early().unwrap();
        assert_eq!(texts(&kept), [(None, "late".to_owned())]);
    }
}
