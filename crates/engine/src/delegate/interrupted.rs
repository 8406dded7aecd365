//! Agents of a session that is not open: those whose process ended before they did.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use centurion_protocol::bounded;
use serde_json::Value;

use crate::message::life_records::{END, RESUME, SPAWN};

/// The bytes at the end of an agent's transcript in which its last end or beginning is looked for.
const TAIL: u64 = 256 * 1024;
/// The most bytes of a first line, which names the agent.
const HEAD: u64 = 64 * 1024;
/// The most agents of a session that are looked at.
const MOST: usize = 500;

/// The names of the agents of a session that were at work when their process ended, by the path of the session's
/// transcript. Those of a session that is open are told as if it was not.
pub fn interrupted_agents(transcript: &Path) -> Vec<String> {
    let directory = transcript.with_extension("").join("subagents");
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .take(MOST)
        .filter_map(|path| interrupted(&path))
        .collect();
    names.sort();
    names
}

/// The name of an agent that was interrupted; `None` for one that has ended, and for a file of another program.
fn interrupted(path: &Path) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let tail = bounded::read_all(Read::take(&mut file, TAIL), TAIL).ok()?;
    let last = |kind: &str| {
        // Text inside a record has its quotes escaped and cannot look so.
        memchr::memmem::rfind(&tail, format!("\"subtype\":\"{kind}\"").as_bytes())
    };
    let begun = last(SPAWN).max(last(RESUME));
    if last(END).is_some_and(|end| begun.is_none_or(|begun| begun < end)) {
        return None;
    }
    file.seek(SeekFrom::Start(0)).ok()?;
    let head = bounded::read_all(file.take(HEAD), HEAD).ok()?;
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let note: Value = serde_json::from_slice(line).ok()?;
        (note["subtype"] == SPAWN).then_some(())?;
        let spec = &note["data"]["spec"];
        let name = spec["name"].as_str().or_else(|| spec["agentType"].as_str());
        name.map(str::to_owned)
    })
}
