//! The shared knowledge of a session's agents about files: contents that were read, and the last writer.
//!
//! When an agent's change is refused because the file has changed, the agent is told which agent changed it, and how.
//! Contents are kept while there is room for them; without them, the agent is told less. Processes of one session note in
//! files what their agents write.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use blake3::Hash;
use centurion_diff::LineDiff;
use centurion_protocol::bounded;
use centurion_redact::keep_over;
use parking_lot::Mutex;

use crate::context::lock;
use crate::text_file::decode;

/// The largest file that is kept, and the bytes kept in all.
const LARGEST: usize = 128 * 1024;
const ROOM: usize = 4 * 1024 * 1024;

/// The number of files whose writer is known.
const MOST_WRITERS: usize = 4096;

/// The directory of notes, and the bytes of one.
const NOTES: &str = "writers";
const LONGEST_NOTE: u64 = 4096;

/// The bytes of a difference that an agent is told.
const MOST_TOLD: usize = 4000;

/// The files of a session.
#[derive(Debug, Default)]
pub struct SharedFiles {
    contents: Mutex<Contents>,
    writers: Mutex<HashMap<PathBuf, SharedWrite>>,
    /// The notes of all processes of the session, once there are several.
    notes: OnceLock<PathBuf>,
}

#[derive(Debug, Default)]
struct Contents {
    by_hash: HashMap<Hash, Arc<[u8]>>,
    /// Oldest first.
    order: VecDeque<Hash>,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct SharedWrite {
    hash: Hash,
    by: Arc<str>,
}

/// A change of a file since an agent read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OthersChange {
    /// The agent that wrote the file; `None` for a person, a command or another program.
    pub(crate) by: Option<Arc<str>>,
    /// The difference between the content that the agent has read and the present one.
    pub(crate) difference: Option<String>,
}

impl SharedFiles {
    /// Keeps the content of a file.
    pub(crate) fn keep(&self, hash: Hash, bytes: &[u8]) {
        if bytes.len() > LARGEST {
            return;
        }
        let mut contents = lock(&self.contents);
        if contents.by_hash.contains_key(&hash) {
            return;
        }
        contents.by_hash.insert(hash, bytes.into());
        contents.order.push_back(hash);
        contents.bytes += bytes.len();
        while contents.bytes > ROOM {
            let Some(oldest) = contents.order.pop_front() else { break };
            let length = contents.by_hash.remove(&oldest).map_or(0, |bytes| bytes.len());
            contents.bytes -= length;
        }
    }

    /// From now on, other processes of the session note in a directory what they write, and so does this one.
    pub fn share_in(&self, directory: &Path) {
        self.notes.get_or_init(|| directory.join(NOTES));
    }

    /// Records the writer of a file.
    pub(crate) fn wrote(&self, path: &Path, hash: Hash, by: &Arc<str>) {
        if let Some(notes) = self.notes.get() {
            let note = format!("{hash}\n{by}");
            if let Err(error) = keep_over(&notes.join(note_name(path)), &note) {
                tracing::debug!(%error, "other processes are not told what was written");
            }
        }
        let mut writers = lock(&self.writers);
        if writers.len() >= MOST_WRITERS {
            writers.clear();
        }
        writers.insert(path.to_owned(), SharedWrite { hash, by: Arc::clone(by) });
    }

    /// Describes how a file has changed since an agent read it.
    pub(crate) fn since(&self, path: &Path, seen: Hash, now: &[u8]) -> OthersChange {
        let hash = blake3::hash(now);
        let by = lock(&self.writers).get(path).filter(|it| it.hash == hash).map(|it| it.by.clone());
        let by = by.or_else(|| self.noted(path, hash));
        let seen = lock(&self.contents).by_hash.get(&seen).cloned();
        let difference = seen.and_then(|seen| difference(&seen, now));
        OthersChange { by, difference }
    }

    /// The agent of another process that wrote a content.
    fn noted(&self, path: &Path, hash: Hash) -> Option<Arc<str>> {
        let note = self.notes.get()?.join(note_name(path));
        let text = bounded::read_text_file(&note, LONGEST_NOTE).ok()?;
        let (written, by) = text.split_once('\n')?;
        (written == hash.to_hex().as_str()).then(|| by.into())
    }
}

/// The name of the note about a file.
fn note_name(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex().to_string()
}

/// The lines that differ between two contents; `None` unless both are text.
fn difference(old: &[u8], new: &[u8]) -> Option<String> {
    let (old, new) = (decode(old.to_vec()).ok()?, decode(new.to_vec()).ok()?);
    let diff = LineDiff::new(&old.content, &new.content);
    let mut text: String = diff.hunks(1).map(|hunk| hunk.to_string()).collect();
    if text.len() > MOST_TOLD {
        text.truncate(text.floor_char_boundary(MOST_TOLD));
        text.push_str("\n…");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_contents_make_room_for_new_ones() {
        let files = SharedFiles::default();
        let content = |n: usize| format!("{n}\n").repeat(20_000).into_bytes();
        for n in 0..200 {
            let bytes = content(n);
            files.keep(blake3::hash(&bytes), &bytes);
            files.keep(blake3::hash(&bytes), &bytes);
        }
        let kept = lock(&files.contents);
        assert!(kept.bytes <= ROOM && kept.by_hash.len() == kept.order.len(), "{}", kept.bytes);
        assert_eq!(kept.bytes, kept.by_hash.values().map(|bytes| bytes.len()).sum::<usize>());
        drop(kept);
        let path = Path::new("/a");
        let known = files.since(path, blake3::hash(&content(199)), b"x");
        assert!(known.difference.is_some());
        assert_eq!(files.since(path, blake3::hash(&content(0)), b"x"), OthersChange::default());
    }

    #[test]
    fn processes_of_one_session_know_what_agents_of_others_wrote() {
        let scratch = tempfile::tempdir().unwrap();
        let (lead, member) = (SharedFiles::default(), SharedFiles::default());
        let (path, by) = (Path::new("/p/a"), Arc::from("agent ada (a1)"));
        let hash = blake3::hash(b"new");
        let writer = |files: &SharedFiles| files.since(path, blake3::hash(b"old"), b"new").by;
        // One process alone notes nothing.
        lead.wrote(path, hash, &by);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0);
        lead.share_in(scratch.path());
        member.share_in(scratch.path());
        assert_eq!(writer(&member), None);
        lead.wrote(path, hash, &by);
        assert_eq!(writer(&member), Some(by));
        // What was there before a command changed it is no word about the present content.
        assert_eq!(member.since(path, hash, b"newer").by, None);
        assert_eq!(member.since(Path::new("/p/b"), hash, b"new").by, None);
    }
}
