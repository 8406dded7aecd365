//! Everything below a process, and how to end it.
//!
//! Parents are read from `/proc/<pid>/stat`: unlike the lists of children, it is there on every kernel.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal to every descendant of `root`.
pub(super) fn signal_descendants(root: Pid, signal: Signal) {
    for pid in descendants(root) {
        // One that is gone needs no signal; one that belongs to another user cannot be reached.
        let _ = kill_process(pid, signal);
    }
}

/// Kills every descendant of `root` that is there now.
///
/// All are stopped before the first is killed, so that none can fork while the others die.
pub(super) fn kill_descendants(root: Pid) {
    const ROUNDS: usize = 8;
    let mut stopped = HashSet::new();
    for _ in 0..ROUNDS {
        let fresh: Vec<Pid> =
            descendants(root).into_iter().filter(|pid| stopped.insert(*pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in fresh {
            let _ = kill_process(pid, Signal::STOP);
        }
    }
    for pid in stopped {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The processes below `root`, nearest first.
fn descendants(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some(pid) = entry.file_name().to_str().and_then(parse_pid)
            && let Ok(stat) = fs::read(entry.path().join("stat"))
            && let Some(parent) = parent(&stat)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        if let Some(more) = children.remove(pid) {
            found.extend(more);
        }
        next += 1;
    }
    found
}

/// The fourth field of a `stat` line. The second is a name in parentheses that may hold anything.
fn parent(stat: &[u8]) -> Option<Pid> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    parse_pid(rest.split_ascii_whitespace().nth(1)?)
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_hide_its_parent() {
        assert_eq!(parent(b"12 (a) S 1 (b) S 9) R 42 12 12 0"), Pid::from_raw(42));
        assert_eq!(parent(b"12 no name"), None);
    }

    #[test]
    fn a_child_is_found_and_killed() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let me = rustix::process::getpid();
        assert!(descendants(me).contains(&pid));
        assert!(descendants(pid).is_empty());
        // Only this child: other tests of this program have children too.
        kill_process(pid, Signal::KILL).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!descendants(me).contains(&pid));
    }
}
