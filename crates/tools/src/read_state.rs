//! The files that an agent has read, by content.
//!
//! Two rules depend on it: an agent reads a file before it changes it, and it learns of a change that another process
//! or agent made in between. Both compare the hash of the whole content; times and sizes prove nothing.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use blake3::Hash;
use parking_lot::Mutex;
use serde_json::Value;

use crate::context::lock;
use crate::paths::resolve;

/// The files that one agent has read.
///
/// A clone shares the entries until one side changes its own. So a child starts with its parent's knowledge, for the
/// price of a pointer, and learns separately.
#[derive(Debug, Default)]
pub struct ReadState {
    files: Mutex<Arc<HashMap<Arc<Path>, SeenFile>>>,
}

/// One file as it was when it was last read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SeenFile {
    hash: Hash,
    view: View,
}

/// The part of a file that an agent has seen. Lines count from one, ends are included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    Whole,
    /// Sorted ranges that neither touch nor overlap, of a file of `total` lines.
    Lines {
        ranges: Vec<(usize, usize)>,
        total: usize,
    },
}

/// An agent's knowledge of a file that it is about to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Knowledge {
    Unread,
    /// The file had the content with this hash when the agent read it, and has another now.
    Outdated(Hash),
    Current(View),
}

impl Clone for ReadState {
    fn clone(&self) -> Self {
        Self { files: Mutex::new(Arc::clone(&lock(&self.files))) }
    }
}

impl ReadState {
    /// Records that the agent has seen `view` of the file at `path` (resolved), whose whole content has this hash.
    /// Views of the same content add up.
    pub fn record(&self, path: &Path, hash: Hash, view: View) {
        let mut files = lock(&self.files);
        let files = Arc::make_mut(&mut files);
        match files.get_mut(path) {
            Some(seen) if seen.hash == hash => seen.view = seen.view.union(&view),
            Some(seen) => *seen = SeenFile { hash, view },
            None => {
                files.insert(path.into(), SeenFile { hash, view });
            }
        }
    }

    /// Returns the knowledge of the file at `path` (resolved) whose content hashes to `current` now.
    pub fn knowledge(&self, path: &Path, current: Hash) -> Knowledge {
        match lock(&self.files).get(path) {
            None => Knowledge::Unread,
            Some(seen) if seen.hash != current => Knowledge::Outdated(seen.hash),
            Some(seen) => Knowledge::Current(seen.view.clone()),
        }
    }

    /// The known files, in order.
    pub fn paths(&self) -> Vec<Arc<Path>> {
        let mut paths: Vec<_> = lock(&self.files).keys().cloned().collect();
        paths.sort();
        paths
    }

    /// Takes over what another one knows, and forgets the rest.
    pub fn become_as(&self, other: &Self) {
        let files = Arc::clone(&lock(&other.files));
        *lock(&self.files) = files;
    }

    /// The state after these earlier results, in the order of the transcript.
    pub fn replayed<'r>(results: impl IntoIterator<Item = &'r Value>) -> Self {
        let state = Self::default();
        results.into_iter().for_each(|result| state.replay(result));
        state
    }

    /// Learns from the data of an earlier result of a file tool, as transcripts keep it. Ignores data of other tools.
    /// The caller passes results in the order of the transcript.
    pub fn replay(&self, data: &Value) {
        let file = data.get("file").unwrap_or(data);
        let Some(path) = file.get("filePath").and_then(Value::as_str) else { return };
        let Some(hash) = file.get("contentHash").and_then(Value::as_str) else { return };
        let Ok(hash) = Hash::from_hex(hash) else { return };
        let number = |name: &str| {
            file.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
        };
        let view = match (number("startLine"), number("numLines"), number("totalLines")) {
            (Some(start), Some(count), Some(total)) => View::lines(start, count, total),
            _ => View::Whole,
        };
        self.record(&resolve(Path::new(path)), hash, view);
    }
}

impl View {
    /// `count` lines from line `start` on, of a file of `total` lines.
    pub fn lines(start: usize, count: usize, total: usize) -> Self {
        if count == 0 && total > 0 {
            return Self::Lines { ranges: Vec::new(), total };
        }
        Self::of(vec![(start, start.saturating_add(count).saturating_sub(1))], total)
    }

    fn of(ranges: Vec<(usize, usize)>, total: usize) -> Self {
        match ranges.as_slice() {
            [(start, end)] if *start <= 1 && *end >= total => Self::Whole,
            _ => Self::Lines { ranges, total },
        }
    }

    /// The union of two views of one content.
    fn union(&self, other: &Self) -> Self {
        let (Self::Lines { ranges: mine, .. }, Self::Lines { ranges: theirs, total }) =
            (self, other)
        else {
            return Self::Whole;
        };
        let mut sorted: Vec<_> = mine.iter().chain(theirs).copied().collect();
        sorted.sort_unstable();
        let mut merged: Vec<(usize, usize)> = Vec::with_capacity(sorted.len());
        for (start, end) in sorted {
            match merged.last_mut() {
                Some((_, last)) if start <= last.saturating_add(1) => *last = (*last).max(end),
                _ => merged.push((start, end)),
            }
        }
        Self::of(merged, *total)
    }

    /// The seen lines, for a sentence: `1-100, 200-300`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Whole => "all lines".to_owned(),
            Self::Lines { ranges, .. } if ranges.is_empty() => "no line".to_owned(),
            Self::Lines { ranges, .. } => {
                let shown: Vec<_> =
                    ranges.iter().take(8).map(|(start, end)| format!("{start}-{end}")).collect();
                let more = if ranges.len() > shown.len() { ", …" } else { "" };
                format!("lines {}{more}", shown.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn hash(content: &str) -> Hash {
        blake3::hash(content.as_bytes())
    }

    #[test]
    fn content_decides_and_nothing_else() {
        let state = ReadState::default();
        let path = Path::new("/a");
        assert_eq!(state.knowledge(path, hash("x")), Knowledge::Unread);
        state.record(path, hash("x"), View::Whole);
        assert_eq!(state.knowledge(path, hash("x")), Knowledge::Current(View::Whole));
        assert_eq!(state.knowledge(path, hash("y")), Knowledge::Outdated(hash("x")));
        state.record(path, hash("y"), View::lines(1, 1, 9));
        assert_eq!(state.knowledge(path, hash("y")), Knowledge::Current(View::lines(1, 1, 9)));
    }

    #[test]
    fn a_clone_knows_the_same_and_learns_apart() {
        let parent = ReadState::default();
        parent.record(Path::new("/a"), hash("x"), View::Whole);
        let child = parent.clone();
        assert!(Arc::ptr_eq(&lock(&parent.files), &lock(&child.files)));
        child.record(Path::new("/b"), hash("x"), View::Whole);
        assert_eq!(parent.knowledge(Path::new("/b"), hash("x")), Knowledge::Unread);
        assert_eq!(child.knowledge(Path::new("/a"), hash("x")), Knowledge::Current(View::Whole));
    }

    #[test]
    fn views_of_one_content_add_up() {
        let state = ReadState::default();
        let path = Path::new("/a");
        state.record(path, hash("x"), View::lines(1, 10, 30));
        state.record(path, hash("x"), View::lines(21, 10, 30));
        let Knowledge::Current(view) = state.knowledge(path, hash("x")) else { panic!("unread") };
        assert_eq!(view.describe(), "lines 1-10, 21-30");
        state.record(path, hash("x"), View::lines(11, 10, 30));
        assert_eq!(state.knowledge(path, hash("x")), Knowledge::Current(View::Whole));
    }

    #[test]
    fn a_transcript_restores_what_was_read() {
        let state = ReadState::default();
        let digest = hash("x").to_hex().to_string();
        state.replay(&json!("some text"));
        state.replay(&json!({"type": "text", "file": {
            "filePath": "/none/a", "content": "…", "numLines": 2, "startLine": 3, "totalLines": 9,
            "contentHash": digest,
        }}));
        state.replay(&json!({"type": "create", "filePath": "/none/b", "contentHash": digest}));
        state.replay(&json!({"filePath": "/none/c", "contentHash": "zz"}));
        let known = |path| state.knowledge(Path::new(path), hash("x"));
        assert_eq!(known("/none/a"), Knowledge::Current(View::lines(3, 2, 9)));
        assert_eq!(known("/none/b"), Knowledge::Current(View::Whole));
        assert_eq!(known("/none/c"), Knowledge::Unread);
    }

    proptest! {
        #[test]
        fn a_view_covers_exactly_the_lines_that_were_read(
            reads in proptest::collection::vec((1_usize..40, 1_usize..12), 1..12)
        ) {
            const TOTAL: usize = 40;
            let state = ReadState::default();
            let mut lines = BTreeSet::new();
            for (start, count) in reads {
                let count = count.min(TOTAL + 1 - start);
                state.record(Path::new("/a"), hash("x"), View::lines(start, count, TOTAL));
                lines.extend(start..start + count);
            }
            let Knowledge::Current(view) = state.knowledge(Path::new("/a"), hash("x")) else {
                panic!("unread");
            };
            match view {
                View::Whole => prop_assert_eq!(lines.len(), TOTAL),
                View::Lines { ranges, .. } => {
                    let covered: BTreeSet<_> =
                        ranges.iter().flat_map(|(start, end)| *start..=*end).collect();
                    prop_assert_eq!(&covered, &lines);
                    prop_assert!(lines.len() < TOTAL);
                    prop_assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
                }
            }
        }
    }
}
