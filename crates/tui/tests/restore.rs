//! The terminal is left as it was found, however the program ends (failure 17).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

/// The end of the sequences that restore a terminal.
const RESTORED: &str = "\x1b[23;2t";

struct Program {
    child: Child,
    terminal: std::fs::File,
    other_end: OwnedFd,
    before: String,
    /// All that was written between the first frame and the end.
    seen: String,
}

impl Program {
    /// Starts the program in a terminal of its own, and waits for its first frame.
    fn start() -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let other_end = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&other_end, size).unwrap();
        let before = settings(&other_end);
        let end = || Stdio::from(other_end.as_fd().try_clone_to_owned().unwrap());
        let child = Command::new(env!("CARGO_BIN_EXE_centurion-terminal"))
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let mut program =
            Self { child, terminal: terminal.into(), other_end, before, seen: String::new() };
        program.seen = program.wait_for("> ready");
        assert_ne!(settings(&program.other_end), program.before, "the modes were not set");
        program
    }

    /// Reads up to a text of the program.
    fn wait_for(&mut self, text: &str) -> String {
        let mut found = String::new();
        let mut buffer = [0; 4096];
        while !found.contains(text) {
            let count = self.terminal.read(&mut buffer).unwrap();
            found.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        found
    }

    fn send(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).unwrap();
    }

    #[track_caller]
    fn assert_restored(&mut self) {
        let rest = self.wait_for(RESTORED);
        self.seen.push_str(&rest);
        let _ = self.child.wait();
        assert_eq!(settings(&self.other_end), self.before);
    }
}

/// The settings of a terminal, as `stty -a` shows them.
fn settings(tty: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(tty).unwrap())
}

#[test]
fn the_terminal_is_restored_after_a_return() {
    let mut program = Program::start();
    program.send("q");
    program.assert_restored();
}

/// What a terminal answers late is typed into no shell.
#[test]
fn an_answer_of_the_terminal_that_is_under_way_is_heard_before_the_program_leaves() {
    let mut program = Program::start();
    program.send("q");
    // The key was read, and what comes now is for a program that leaves.
    while rustix::io::ioctl_fionread(&program.other_end).unwrap() > 0 {
        std::thread::yield_now();
    }
    program.send("\x1bP>|tmux 3.3a\x1b\\\x1b[?1;2c");
    program.assert_restored();
    rustix::io::ioctl_fionbio(&program.other_end, true).unwrap();
    let left = rustix::io::read(&program.other_end, &mut [0; 64]);
    assert_eq!(left, Err(rustix::io::Errno::AGAIN), "the shell would read it");
}

#[test]
fn the_terminal_is_restored_after_a_panic() {
    let mut program = Program::start();
    program.send("p");
    program.assert_restored();
}

#[test]
fn the_terminal_is_restored_after_a_kill_without_a_trace_of_the_live_region() {
    let mut program = Program::start();
    program.child.kill().unwrap();
    program.assert_restored();
    let mut screen = vt100::Parser::default();
    screen.process(program.seen.as_bytes());
    assert_eq!(screen.screen().contents().trim(), "");
}

#[test]
fn the_terminal_is_restored_after_a_kill_that_follows_a_suspension() {
    let mut program = Program::start();
    program.send("s");
    program.wait_for("resumed");
    program.child.kill().unwrap();
    program.assert_restored();
}

#[test]
fn a_lone_escape_is_a_key_after_a_pause_and_a_paste_arrives_whole() {
    let mut program = Program::start();
    program.send("\x1b");
    program.wait_for("Escape");
    program.send(&format!("\x1b[200~{}\x1b[201~", "x".repeat(100_000)));
    program.wait_for("pasted 100000");
    program.send("q");
    program.assert_restored();
}

#[test]
fn without_marks_of_a_paste_an_enter_inside_of_one_read_is_a_line_end() {
    let mut program = Program::start();
    program.send("one\rtwo\rthree");
    program.wait_for("pasted 13");
    // The terminal says that it marks pastes: what comes together was typed fast.
    program.send("\x1b[?2004;1$y");
    program.send("a\rb\rc");
    program.wait_for("Char('c')");
    program.send("q");
    program.assert_restored();
}
