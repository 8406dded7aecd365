//! Programs that rest, and programs that only seem to.

use std::os::fd::AsFd as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::*;

/// A program in a process group of its own, with a pipe as standard input.
struct Program {
    child: Child,
    pipe: u64,
}

impl Program {
    fn start(words: &[&str]) -> Self {
        let (program, args) = words.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
        let mut child = command.spawn().unwrap();
        let pipe = rustix::fs::fstat(child.stdin.as_mut().unwrap().as_fd()).unwrap().st_ino;
        Self { child, pipe }
    }

    /// Waits until it waits for input.
    fn waits(&self) {
        let begun = Instant::now();
        let waits =
            || family::of_readers(self.pipe).iter().map(|it| wait_of(it)).collect::<Vec<_>>();
        while waits() != [Some(Wait::Input)] {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::yield_now();
        }
    }

    /// Whether it comes to rest, and stays so.
    fn comes_to_rest(&self, is_expected: bool) -> bool {
        // A program that starts seems to rest for a moment at times.
        const IN_A_ROW: usize = 30;
        let begun = Instant::now();
        let (mut looks, mut in_a_row) = (0, 0);
        while in_a_row < IN_A_ROW {
            in_a_row = if rests(self.pipe) { in_a_row + 1 } else { 0 };
            looks += 1;
            let is_enough = looks > 20 * IN_A_ROW && !is_expected;
            if is_enough || begun.elapsed() > Duration::from_secs(20) {
                return false;
            }
        }
        true
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_program_that_reads_rests_and_one_that_works_does_not() {
    let python = |code: &'static str| vec!["python3", "-c", code];
    for (words, expected) in [
        (vec!["cat"], true),
        (vec!["sleep", "60"], false),
        (vec!["sh", "-c", "while :; do :; done"], false),
        // The other processes of the program count as well.
        (vec!["sh", "-c", "cat | cat"], true),
        (vec!["sh", "-c", "cat | sleep 60"], false),
        (vec!["sh", "-c", "(sleep 60 &) ; exec cat"], false),
        // One that waits for a time, too, may have more to do.
        (python("import select; select.select([0], [], [])"), true),
        (python("import select; select.select([0], [], [], 60)"), false),
        (python("import select; p = select.poll(); p.register(0); p.poll()"), true),
        (python("import select; p = select.poll(); p.register(0); p.poll(60000)"), false),
        (python("import select; p = select.epoll(); p.register(0); p.poll()"), true),
        (python("import select; p = select.epoll(); p.register(0); p.poll(60)"), false),
        (
            python(
                "import threading, time, sys; \
                 threading.Thread(target=time.sleep, args=(60,)).start(); sys.stdin.read()",
            ),
            false,
        ),
        (python("import threading, sys; threading.Thread(target=sys.stdin.read).start()"), true),
        // A loop of events writes to itself.
        (python("import socket, sys; pair = socket.socketpair(); sys.stdin.read()"), true),
        // A socket of another kind may lead anywhere.
        (python("import socket, sys; it = socket.socket(); sys.stdin.read()"), false),
    ] {
        let program = Program::start(&words);
        assert_eq!(program.comes_to_rest(expected), expected, "{words:?}");
    }
}

#[test]
fn a_program_with_a_connection_to_another_may_have_handed_its_input_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let code = "import socket, sys; it = socket.socket(socket.AF_UNIX); it.connect(sys.argv[1]); \
                sys.stdin.read()";
    let program = Program::start(&["python3", "-c", code, path.to_str().unwrap()]);
    let (accepted, _) = listener.accept().unwrap();
    program.waits();
    assert!(!rests(program.pipe));
    drop(accepted);
    assert!(!rests(program.pipe), "nor when the other one is gone");
}

#[test]
fn of_a_pipe_without_a_reader_nothing_is_known() {
    assert!(!rests(1));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_without_a_time_limit_are_waits() {
    for (line, expected) in [
        ("0 0x0 0x7f 0x1 0x0 0x0 0x0 0x7f 0x7f", Some(Wait::Input)),
        ("232 0x4 0x7f 0x1 0xffffffff 0x0 0x0 0x7f 0x7f", Some(Wait::Input)),
        ("232 0x4 0x7f 0x1 0xffffffffffffffff 0x0 0x0 0x7f 0x7f", Some(Wait::Input)),
        ("232 0x4 0x7f 0x1 0x3e8 0x0 0x0 0x7f 0x7f", None),
        ("202 0x7f 0x189 0x0 0x0 0x0 0x0 0x7f 0x7f", Some(Wait::Other)),
        ("202 0x7f 0x189 0x0 0x7f 0x0 0x0 0x7f 0x7f", None),
        ("61 0xffffffffffffffff 0x7f 0x0 0x0 0x0 0x0 0x7f 0x7f", Some(Wait::Other)),
        ("230 0x0 0x0 0x7f 0x7f 0x0 0x0 0x7f 0x7f", None),
        ("running", None),
        ("-1 0x0 0x0", None),
        ("232 0x4", None),
        ("", None),
    ] {
        assert_eq!(calls::wait_in(line), expected, "{line}");
    }
}
