//! Tells whether a program waits for input, by what the kernel says of it.
//!
//! A program that has read all of its input may still start, or work on it. The kernel knows the difference: a process
//! that is done waits in a system call that reads, or that watches many files.

use std::fs;
use std::path::Path;

use centurion_protocol::bounded;

/// The system calls that read from one file, and those that watch many.
#[cfg(target_arch = "x86_64")]
const CALLS: (&[u64], &[u64]) = (&[0, 19], &[7, 23, 232, 270, 271, 281, 426, 441]);
#[cfg(target_arch = "aarch64")]
const CALLS: (&[u64], &[u64]) = (&[63, 65], &[22, 72, 73, 426, 441]);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALLS: (&[u64], &[u64]) = (&[], &[]);

/// The most bytes of a line about a system call.
const LONGEST: u64 = 4096;

/// Whether a process may wait for input from a pipe that is its standard input. True also where the kernel does not
/// tell, and where no other process has the pipe.
pub(super) fn waits_for_input(pipe: u64) -> bool {
    let pipe = format!("pipe:[{pipe}]");
    let own = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter(|entry| {
        let name = entry.file_name();
        let is_process = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        is_process && name.to_str() != Some(&own)
    });
    let mut readers = processes
        .map(|process| process.path())
        .filter(|path| fs::read_link(path.join("fd/0")).is_ok_and(|it| it.as_os_str() == &*pipe))
        .peekable();
    CALLS.0.is_empty() || readers.peek().is_none() || readers.any(|path| may_wait(&path))
}

/// Whether a thread of a process may wait for standard input.
fn may_wait(process: &Path) -> bool {
    let Ok(threads) = fs::read_dir(process.join("task")) else { return false };
    threads.flatten().any(|thread| {
        match bounded::read_text_file(&thread.path().join("syscall"), LONGEST) {
            Ok(line) => is_wait(&line),
            // A thread that has ended waits for nothing; of others nothing is known.
            Err(_) => thread.path().exists(),
        }
    })
}

/// Whether a line of the kernel tells of a system call that waits for standard input: its number, then its arguments.
fn is_wait(line: &str) -> bool {
    let mut words = line.split_whitespace();
    // Of a thread that computes the line says just that.
    let Some(call) = words.next().and_then(|word| word.parse().ok()) else { return false };
    let (reads, watches) = CALLS;
    (reads.contains(&call) && words.next() == Some("0x0")) || watches.contains(&call)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    fn start(script: &str) -> (Child, u64) {
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let pipe = child.stdin.as_mut().unwrap();
        let inode = rustix::fs::fstat(pipe.as_fd()).unwrap().st_ino;
        (child, inode)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_program_that_reads_waits_and_one_that_works_does_not() {
        for (script, expected) in
            [("exec cat", true), ("exec sleep 60", false), ("while :; do :; done", false)]
        {
            let (child, pipe) = start(script);
            let begun = Instant::now();
            // The shell may still be on its way to what it was asked for.
            while waits_for_input(pipe) != expected && begun.elapsed() < Duration::from_secs(20) {
                std::thread::yield_now();
            }
            assert_eq!(waits_for_input(pipe), expected, "{script}");
            end(child);
        }
    }

    #[test]
    fn of_a_pipe_without_a_reader_nothing_is_known() {
        assert!(waits_for_input(1));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn only_calls_for_standard_input_are_waits() {
        for (line, expected) in [
            ("0 0x0 0x7f 0x1", true),
            ("0 0x3 0x7f 0x1", false),
            ("232 0x4 0x7f 0x1", true),
            ("61 0xffffffffffffffff 0x7f 0x0", false),
            ("running", false),
            ("-1 0x0 0x0", false),
        ] {
            assert_eq!(is_wait(line), expected, "{line}");
        }
    }
}
