//! Facts about a session from the two ends of its transcript, without reading the rest.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use centurion_protocol::Block;
use centurion_protocol::markup::typed_commands;
use centurion_protocol::transcript::{HeadView, LineKind, TITLE_FIELD};

/// The bytes at the end of a transcript that are searched for a later name of the session.
const TAIL: u64 = 64 * 1024;

/// The bytes at the beginning of a transcript that are read.
const HEAD: u64 = 4 * 1024 * 1024;

/// A session at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The length of the transcript.
    pub bytes: u64,
    /// The name that the session was given, or else the first line of its first prompt.
    pub title: String,
    /// The directory in which it began.
    pub cwd: String,
    /// The directory of its last record; empty where the end of the transcript tells none.
    pub last_cwd: String,
    /// The git branch on which it began; empty outside of a repository.
    pub branch: String,
}

impl Glance {
    pub fn at(path: &Path) -> Option<Self> {
        let bytes = path.metadata().ok()?.len();
        let (mut title, mut cwd, mut branch) = (String::new(), String::new(), String::new());
        let mut file = File::open(path).ok()?;
        let tail = tail(&mut file, bytes)?;
        let (named, last_cwd) = (last_title(&tail), last_cwd(&tail).unwrap_or_default());
        file.rewind().ok()?;
        // The lines of a beginning: one without end is none.
        for line in BufReader::new(file.take(HEAD)).split(b'\n').take(50).map_while(Result::ok) {
            let Ok(view) = serde_json::from_slice::<HeadView<'_>>(&line) else { continue };
            if cwd.is_empty() {
                view.cwd.as_deref().unwrap_or_default().clone_into(&mut cwd);
            }
            if branch.is_empty() {
                view.git_branch.as_deref().unwrap_or_default().clone_into(&mut branch);
            }
            if let Some(given) = &view.custom_title {
                title = given.to_string();
            } else if let Some(text) = typed_text(&view) {
                if title.is_empty() {
                    let text = typed_commands(&text).unwrap_or(text);
                    text.lines().next().unwrap_or_default().clone_into(&mut title);
                }
                break;
            }
        }
        Some(Self { bytes, title: named.unwrap_or(title), cwd, last_cwd, branch })
    }
}

/// The end of a transcript.
fn tail(file: &mut File, bytes: u64) -> Option<Vec<u8>> {
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(bytes.saturating_sub(TAIL))).ok()?;
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    Some(tail)
}

/// The directory of the last record.
fn last_cwd(tail: &[u8]) -> Option<String> {
    let mut lines = tail.rsplit(|byte| *byte == b'\n');
    lines
        .find_map(|line| Some(serde_json::from_slice::<HeadView<'_>>(line).ok()?.cwd?.into_owned()))
}

/// The last name that the end of a transcript gives the session.
fn last_title(tail: &[u8]) -> Option<String> {
    let lines = tail.rsplit(|byte| *byte == b'\n');
    let mut named =
        lines.filter(|line| memchr::memmem::find(line, TITLE_FIELD.as_bytes()).is_some());
    named.find_map(|line| {
        let view = serde_json::from_slice::<HeadView<'_>>(line).ok()?;
        view.custom_title.map(Cow::into_owned)
    })
}

/// The text that a person typed on this line.
fn typed_text(view: &HeadView<'_>) -> Option<String> {
    if view.kind != LineKind::User || view.is_meta || view.is_sidechain {
        return None;
    }
    let message = view.message.as_ref()?;
    if let Ok(text) = serde_json::from_str::<String>(message.content.get()) {
        return Some(text);
    }
    let parts: Vec<&serde_json::value::RawValue> =
        serde_json::from_str(message.content.get()).ok()?;
    parts.into_iter().find_map(|part| match Block::parse(part) {
        Ok(Block::Text(text)) => Some(text),
        _ => None,
    })
}
