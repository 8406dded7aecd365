//! Tells a host of every line that is written to a transcript, for hosts that keep transcripts in a store of their own.

use std::path::Path;
use std::sync::Arc;

use centurion_engine::Mirror;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::OutputQueue;

/// The most lines of one frame: a fork begins with a copy of a whole transcript.
const MOST_ENTRIES: usize = 200;

/// Writes frames with lines of transcripts between the events of a session.
pub struct TranscriptMirror(pub Arc<OutputQueue>);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Frame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    file_path: &'a str,
    entries: &'a [&'a RawValue],
}

impl Mirror for TranscriptMirror {
    fn mirror(&self, path: &Path, lines: &[u8]) {
        let path = path.to_string_lossy();
        // A copied transcript may have torn lines.
        let lines = lines.split(|byte| *byte == b'\n');
        let entries: Vec<&RawValue> =
            lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        for entries in entries.chunks(MOST_ENTRIES) {
            let kind = "transcript_mirror";
            self.0.json_line(&Frame { kind, file_path: &path, entries });
        }
    }
}
