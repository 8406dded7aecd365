//! The processes that belong to a program, read from `/proc`.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use centurion_protocol::bounded;

/// The most bytes of a line about a process.
const LONGEST: u64 = 4096;

struct Process {
    path: PathBuf,
    id: u32,
    parent: u32,
    group: u32,
}

impl Process {
    /// `None` if the process has ended.
    fn read(path: PathBuf) -> Option<Self> {
        let id = path.file_name()?.to_str()?.parse().ok()?;
        let stat = bounded::read_text_file(&path.join("stat"), LONGEST).ok()?;
        // The name, in brackets, may contain anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut words = rest.split_whitespace();
        if words.next()? == "Z" {
            return None;
        }
        let parent = words.next()?.parse().ok()?;
        let group = words.next()?.parse().ok()?;
        Some(Self { path, id, parent, group })
    }

    fn reads(&self, pipe: &str) -> bool {
        fs::read_link(self.path.join("fd/0")).is_ok_and(|it| it.as_os_str() == pipe)
    }
}

/// The directories of the processes that have a pipe as standard input, of their descendants, and of the processes in
/// the same process groups: those whose parents have ended.
pub(super) fn of_readers(pipe: u64) -> Vec<PathBuf> {
    let pipe = format!("pipe:[{pipe}]");
    let own = std::process::id();
    let entries = fs::read_dir(Path::new("/proc")).into_iter().flatten().flatten();
    let mut others: Vec<_> = entries.filter_map(|entry| Process::read(entry.path())).collect();
    let mut family: Vec<_> =
        others.extract_if(.., |process| process.id != own && process.reads(&pipe)).collect();
    let groups: HashSet<_> = family.iter().map(|process| process.group).collect();
    family.extend(others.extract_if(.., |process| groups.contains(&process.group)));
    let mut ids: HashSet<_> = family.iter().map(|process| process.id).collect();
    loop {
        let children: Vec<_> =
            others.extract_if(.., |process| ids.contains(&process.parent)).collect();
        if children.is_empty() {
            return family.into_iter().map(|process| process.path).collect();
        }
        ids.extend(children.iter().map(|process| process.id));
        family.extend(children);
    }
}
