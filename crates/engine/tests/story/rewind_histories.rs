//! Random histories of files that agents and others change in turn: a rewind brings back what was before the agents'
//! first change, says beforehand what it will do, and keeps whatever others have written.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::{Block, RecordId, SeededWorld, World as _};
use centurion_tools::Rewind;
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bench::Bench;

const FILES: [&str; 3] = ["a.txt", "b.sh", "deep/c.txt"];

/// A change by others. Every content is another one.
#[derive(Clone, Copy, Debug)]
enum Theirs {
    Write(usize),
    Remove(usize),
    Mode(usize, u32),
}

/// A prompt: what others do before it, and which files the agent changes, in this order.
#[derive(Clone, Debug)]
struct Turn {
    theirs: Vec<Theirs>,
    ours: Vec<usize>,
}

fn any_theirs() -> impl Strategy<Value = Theirs> {
    let file = 0..FILES.len();
    prop_oneof![
        3 => file.clone().prop_map(Theirs::Write),
        1 => file.clone().prop_map(Theirs::Remove),
        1 => (file, prop::sample::select(&[0o600, 0o644, 0o755][..]))
            .prop_map(|(file, mode)| Theirs::Mode(file, mode)),
    ]
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let theirs = prop::collection::vec(any_theirs(), 0..3);
    let ours = prop::collection::vec(0..FILES.len(), 0..4);
    (theirs, ours).prop_map(|(theirs, ours)| Turn { theirs, ours })
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    File { bytes: Vec<u8>, mode: u32 },
    Link,
}

impl Found {
    fn look(path: &Path) -> Self {
        match std::fs::symlink_metadata(path) {
            Err(_) => Self::Nothing,
            Ok(metadata) if metadata.is_symlink() => Self::Link,
            Ok(metadata) => {
                let bytes = std::fs::read(path).unwrap();
                Self::File { bytes, mode: metadata.permissions().mode() & 0o777 }
            }
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::File { bytes, .. } => Some(bytes),
            Self::Nothing | Self::Link => None,
        }
    }
}

/// What a file went through behind the prompt that is gone back to.
#[derive(Debug)]
struct Fate {
    /// Before the first change by the agent.
    before: Found,
    /// The content that the agent gave it last.
    written: Vec<u8>,
    /// Contents that others gave it since.
    foreign: BTreeSet<Vec<u8>>,
}

/// The paths of the files, and a number for each content.
struct Place {
    paths: Vec<PathBuf>,
    contents: usize,
}

impl Place {
    fn new(bench: &Bench) -> Self {
        let paths: Vec<PathBuf> = FILES.iter().map(|name| bench.project().join(name)).collect();
        std::fs::create_dir_all(paths[2].parent().unwrap()).unwrap();
        for path in &paths[..2] {
            std::fs::write(path, "the first\r\ncontent\n").unwrap();
        }
        Self { paths, contents: 0 }
    }

    fn change(&mut self, change: Theirs) {
        match change {
            Theirs::Write(file) => {
                self.contents += 1;
                std::fs::write(&self.paths[file], format!("theirs {}\n", self.contents)).unwrap();
            }
            Theirs::Remove(file) => drop(std::fs::remove_file(&self.paths[file])),
            Theirs::Mode(file, mode) => {
                let mode = std::fs::Permissions::from_mode(mode);
                drop(std::fs::set_permissions(&self.paths[file], mode));
            }
        }
    }

    fn look(&self) -> Vec<Found> {
        self.paths.iter().map(|path| Found::look(path)).collect()
    }
}

fn prompt(n: usize) -> RecordId {
    SeededWorld::new(9_000 + n as u64).record_id()
}

/// The content that the agent gives a file by its change with this number.
fn ours(turn: usize, change: usize) -> String {
    format!("ours {turn} {change}\n")
}

/// A model that reads and writes the files of each turn.
fn scripts(turns: &[Turn]) -> Value {
    let mut all = serde_json::Map::from_iter([("begin".to_owned(), json!(["ready"]))]);
    for (n, turn) in turns.iter().enumerate() {
        let mut steps = Vec::new();
        for (change, file) in turn.ours.iter().enumerate() {
            let name = FILES[*file];
            steps.push(json!([{"tool": "Read", "input": {"file_path": name}}]));
            let input = json!({"file_path": name, "content": ours(n, change)});
            steps.push(json!([{"tool": "Write", "input": input}]));
        }
        steps.push(json!("done"));
        all.insert(format!("turn{n}"), Value::Array(steps));
    }
    Value::Object(all)
}

/// What became of the files that the agent has changed from a turn on. `starts` has what was there when each turn began.
fn fates(turns: &[Turn], starts: &[Vec<Found>], to: usize) -> BTreeMap<usize, Fate> {
    let mut fates: BTreeMap<usize, Fate> = BTreeMap::new();
    for (n, turn) in turns.iter().enumerate().skip(to) {
        for (change, file) in turn.ours.iter().enumerate() {
            let written = ours(n, change).into_bytes();
            let start = &starts[n][*file];
            let is_first_in_turn = !turn.ours[..change].contains(file);
            let Some(fate) = fates.get_mut(file) else {
                let foreign = BTreeSet::new();
                fates.insert(*file, Fate { before: start.clone(), written, foreign });
                continue;
            };
            if let Some(bytes) = start.bytes().filter(|it| is_first_in_turn && *it != fate.written)
            {
                fate.foreign.insert(bytes.to_vec());
            }
            fate.written = written;
        }
    }
    fates
}

/// The paths of a rewind's parts.
fn parts(rewind: &Rewind) -> (Vec<PathBuf>, Vec<PathBuf>, Vec<PathBuf>) {
    (
        rewind.files.iter().map(|it| it.path.clone()).collect(),
        rewind.set_aside.iter().map(|it| it.path.clone()).collect(),
        rewind.skipped_links.clone(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_rewind_does_what_it_said_brings_back_what_was_and_loses_nothing_of_others(
        turns in prop::collection::vec(any_turn(), 1..5),
        last in prop::collection::vec(any_theirs(), 0..3),
        link in prop::option::weighted(0.2, 0..FILES.len()),
        to in any::<prop::sample::Index>(),
    ) {
        // D-56, context.md 8, 20
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut bench = Bench::cast(&scripts(&turns));
            let history = bench.dir.path().join("history");
            bench.also(move |options| options.storage.file_history = Some(history.clone()));
            let place = Arc::new(Mutex::new(Place::new(&bench)));
            let starts = Arc::new(Mutex::new(Vec::new()));
            let done = Arc::new(Mutex::new(None));
            let to = to.index(turns.len());
            let (kept, at, seen) = (Arc::clone(&done), Arc::clone(&place), Arc::clone(&starts));
            let all = turns.clone();
            let told = bench
                .live("@@begin", |handle, watcher| async move {
                    let results = |events: &[Value]| events.iter().filter(|it| it["type"] == "result").count();
                    for (n, turn) in all.iter().enumerate() {
                        watcher.until(|events, _| results(events) > n).await;
                        for change in &turn.theirs {
                            at.lock().change(*change);
                        }
                        seen.lock().push(at.lock().look());
                        handle.submit(prompt(n), vec![Block::text(format!("@@turn{n}"))]);
                    }
                    watcher.until(|events, _| results(events) > all.len()).await;
                    tokio::task::yield_now().await;
                    for change in &last {
                        at.lock().change(*change);
                    }
                    if let Some(file) = link {
                        let path = at.lock().paths[file].clone();
                        drop(std::fs::remove_file(&path));
                        symlink("/etc/hostname", &path).unwrap();
                    }
                    let end = at.lock().look();
                    let plan = handle.rewind_files(prompt(to), true).unwrap();
                    assert_eq!(at.lock().look(), end, "a trial changes nothing");
                    let rewind = handle.rewind_files(prompt(to), false).unwrap();
                    *kept.lock() = Some((end, plan, rewind));
                })
                .await;
            let (end, plan, rewind) = done.lock().take().unwrap();
            let (now, starts) = (place.lock().look(), starts.lock().clone());
            assert_eq!(parts(&plan), parts(&rewind), "what it says beforehand");
            assert!(rewind.failed.is_empty() && plan.failed.is_empty(), "{rewind:?}");
            let mut fates = fates(&turns, &starts, to);
            let paths = place.lock().paths.clone();
            for (file, path) in paths.iter().enumerate() {
                let aside = rewind.set_aside.iter().filter(|it| it.path == *path);
                let aside: BTreeSet<Vec<u8>> = aside.map(|it| std::fs::read(&it.copy).unwrap()).collect();
                let Some(fate) = fates.get_mut(&file) else {
                    assert_eq!(now[file], end[file], "no agent has changed {}", path.display());
                    assert!(aside.is_empty());
                    continue;
                };
                if end[file] == Found::Link {
                    assert_eq!((&now[file], rewind.skipped_links.contains(path)), (&Found::Link, true));
                    continue;
                }
                assert_eq!(now[file], fate.before, "{}: {:?}", path.display(), told.results());
                let is_theirs = |it: &&[u8]| **it != *fate.written && fate.before.bytes() != Some(*it);
                if let Some(bytes) = end[file].bytes().filter(is_theirs) {
                    fate.foreign.insert(bytes.to_vec());
                }
                assert_eq!(aside, fate.foreign, "{}", path.display());
            }
        });
    }
}
