//! A process that died in the middle of writing: what it wrote later is gone.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

/// The transcripts of a session that are there: its own first, then those of its agents.
pub(crate) fn transcripts(session: PathBuf) -> Vec<PathBuf> {
    let agents = session.with_extension("").join("subagents");
    let entries = std::fs::read_dir(agents).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
    paths.sort();
    paths.insert(0, session);
    paths.retain(|path| path.exists());
    paths
}

/// Forgets what the first process wrote after a share of its records: it was gone by then, in the middle
/// of writing the next. The clock of its world moves with every look, so that records of all files have
/// an order.
pub(crate) fn cut(paths: &[PathBuf], share: f64) {
    let mut times: Vec<Timestamp> =
        paths.iter().flat_map(|path| lines(path)).map(|(time, _)| time).collect();
    times.sort();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a small number"
    )]
    let kept = (times.len() as f64 * share) as usize;
    let Some(first_lost) = times.get(kept) else { return };
    for path in paths {
        let mut text = String::new();
        for (time, line) in lines(path) {
            match time.cmp(first_lost) {
                Ordering::Less => text.extend([line.as_str(), "\n"]),
                Ordering::Equal => {
                    text.push_str(&line[..line.floor_char_boundary(line.len() / 2)]);
                }
                Ordering::Greater => {}
            }
        }
        if text.is_empty() {
            std::fs::remove_file(path).unwrap();
        } else {
            std::fs::write(path, text).unwrap();
        }
    }
}

/// The lines of a transcript, each with its time.
fn lines(path: &Path) -> Vec<(Timestamp, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let timed = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        (time(&value), line.to_owned())
    };
    text.lines().map(timed).collect()
}

/// When a line was written.
pub(crate) fn time(line: &Value) -> Timestamp {
    line["timestamp"].as_str().unwrap().parse().unwrap()
}
