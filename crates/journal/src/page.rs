//! One page of a transcript: what was said and done before an offset, without reading the rest of the file.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use centurion_protocol::transcript::{HeadView, LineKind};
use centurion_protocol::{Block, bounded};
use serde_json::value::RawValue;

/// The longest page, for a record that is longer than what was asked for.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Records of a transcript that follow one another.
#[derive(Debug, Default)]
pub struct Page {
    /// Oldest first.
    pub entries: Vec<PageEntry>,
    /// The offset of the first byte of the page; 0 is the beginning of the transcript.
    pub start: u64,
    /// The offset behind its last byte.
    pub end: u64,
}

/// A record that people read.
#[derive(Debug)]
pub struct PageEntry {
    pub speaker: Speaker,
    pub blocks: Vec<Block>,
}

/// The author of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    Model,
    /// A person, or the agent that gave the task.
    Person,
    /// The runtime, or a tool with its result.
    Runtime,
}

impl Page {
    /// The records of at most about `most` bytes before an offset, or before the end: at least one, if there is one.
    pub fn before(path: &Path, before: Option<u64>, most: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let end = before.map_or(length, |before| before.min(length));
        let mut room = most.clamp(1, LONGEST);
        loop {
            let from = end.saturating_sub(room);
            file.seek(SeekFrom::Start(from))?;
            let bytes = bounded::read_all(io::Read::take(&mut file, end - from), LONGEST)?;
            // The first line of a page that begins within the file may be the rest of one.
            let cut = match bytes.iter().position(|byte| *byte == b'\n') {
                _ if from == 0 => 0,
                Some(at) => at + 1,
                None => bytes.len(),
            };
            if cut < bytes.len() || from == 0 || room >= LONGEST {
                let lines = bytes.get(cut..).unwrap_or_default();
                let start = from + cut as u64;
                return Ok(Self { entries: entries(lines), start, end });
            }
            room = (room * 4).min(LONGEST);
        }
    }
}

fn entries(lines: &[u8]) -> Vec<PageEntry> {
    lines.split(|byte| *byte == b'\n').filter_map(entry).collect()
}

/// The record of a line; `None` where people read none.
fn entry(line: &[u8]) -> Option<PageEntry> {
    let view: HeadView<'_> = serde_json::from_slice(line).ok()?;
    let raw = view.message.as_ref()?.content;
    let blocks = if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
        vec![Block::Text(text)]
    } else {
        let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).ok()?;
        parts.into_iter().filter_map(|part| Block::parse(part).ok()).collect()
    };
    let is_result = blocks.iter().any(|block| matches!(block, Block::ToolResult(_)));
    let speaker = match view.kind {
        LineKind::Assistant => Speaker::Model,
        LineKind::User if !view.is_meta && !is_result => Speaker::Person,
        LineKind::User => Speaker::Runtime,
        _ => return None,
    };
    Some(PageEntry { speaker, blocks })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn transcript(count: usize) -> (tempfile::TempDir, std::path::PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("t.jsonl");
        let mut text = String::from("{\"type\":\"custom-title\",\"customTitle\":\"x\"}\n");
        for number in 0..count {
            writeln!(
                text,
                "{{\"type\":\"user\",\"isSidechain\":false,\"message\":{{\"role\":\"user\",\"content\":\"prompt {number}\"}}}}"
            )
            .unwrap();
        }
        std::fs::write(&path, text).unwrap();
        (scratch, path)
    }

    fn texts(page: &Page) -> Vec<String> {
        let text = |entry: &PageEntry| match &entry.blocks[0] {
            Block::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        page.entries.iter().map(text).collect()
    }

    #[test]
    fn pages_backwards_hold_every_record_once() {
        let (_scratch, path) = transcript(100);
        for most in [1, 90, 1000, 1_000_000] {
            let (mut before, mut all) = (None, Vec::new());
            loop {
                let page = Page::before(&path, before, most).unwrap();
                let mut said = texts(&page);
                said.append(&mut all);
                all = said;
                if page.start == 0 {
                    break;
                }
                assert!(Some(page.start) != before, "a page has at least one line");
                before = Some(page.start);
            }
            let expected: Vec<String> = (0..100).map(|number| format!("prompt {number}")).collect();
            assert_eq!(all, expected, "{most}");
        }
    }

    #[test]
    fn a_record_longer_than_a_page_is_read_whole() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("t.jsonl");
        let long = "x".repeat(100_000);
        std::fs::write(
            &path,
            format!("{{\"type\":\"assistant\",\"message\":{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"{long}\"}}]}}}}\n"),
        )
        .unwrap();
        let page = Page::before(&path, None, 10).unwrap();
        assert_eq!((texts(&page), page.start), (vec![long], 0));
        assert_eq!(page.entries[0].speaker, Speaker::Model);
    }
}
