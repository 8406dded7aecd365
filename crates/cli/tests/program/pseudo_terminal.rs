//! Real terminals, for tests: the end that a program has, and the end that a person looks at.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::program::eventually;

/// A terminal, and the end of it that a person looks at.
pub(crate) struct Terminal {
    screen: BufReader<File>,
    line: File,
}

impl Terminal {
    pub(crate) fn new(columns: u16) -> Self {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&screen, size).unwrap();
        let path = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
        let line = OpenOptions::new().read(true).write(true).open(path).unwrap();
        Self { screen: BufReader::new(File::from(screen)), line }
    }

    /// Starts a program whose output goes to the terminal.
    pub(crate) fn start(&self, command: &mut Command) -> Child {
        let end = || Stdio::from(self.line.try_clone().unwrap());
        command.stdin(Stdio::null()).stdout(end()).stderr(end()).spawn().unwrap()
    }

    /// Reads rows until one that fits; gives everything up to it.
    pub(crate) fn until(&mut self, fits: impl Fn(&str) -> bool) -> Vec<String> {
        let mut rows = Vec::new();
        loop {
            let mut row = String::new();
            assert_ne!(self.screen.read_line(&mut row).unwrap(), 0, "{rows:?}");
            let row = row.trim_end_matches(['\r', '\n']).to_owned();
            let is_it = fits(&row);
            rows.push(row);
            if is_it {
                return rows;
            }
        }
    }

    pub(crate) fn modes(&self) -> Termios {
        tcgetattr(&self.line).unwrap()
    }
}

/// A person before a program that has a terminal to itself.
pub(crate) struct Person {
    keys: File,
    seen: Arc<Mutex<String>>,
    program: Child,
    reading: Option<JoinHandle<()>>,
    has_left: Arc<AtomicBool>,
    line: File,
}

impl Person {
    /// Starts the program in a terminal of its own, and reads all that it draws.
    pub(crate) fn before(command: &mut Command) -> Self {
        let terminal = Terminal::new(100);
        let end = || Stdio::from(terminal.line.try_clone().unwrap());
        command.env("TERM", "xterm-256color");
        let program = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let Terminal { screen, line } = terminal;
        let keys = screen.get_ref().try_clone().unwrap();
        let (seen, has_left) =
            (Arc::new(Mutex::new(String::new())), Arc::new(AtomicBool::new(false)));
        let (drawn, is_over) = (Arc::clone(&seen), Arc::clone(&has_left));
        let reading = std::thread::spawn(move || {
            let (mut screen, mut buffer) = (screen.into_inner(), [0; 4096]);
            while !is_over.load(Ordering::Relaxed)
                && let Ok(count) = screen.read(&mut buffer)
            {
                drawn.lock().push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        Self { keys, seen, program, reading: Some(reading), has_left, line }
    }

    /// Presses keys.
    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the program has drawn a text since it was last waited for.
    pub(crate) fn sees(&self, text: &str) {
        let seen = || {
            let mut seen = self.seen.lock();
            let end = seen.find(text)? + text.len();
            seen.drain(..end);
            Some(())
        };
        eventually(&format!("`{text}` in {}", self.seen.lock()), seen);
    }

    /// Leaves, and gives the exit code of the program.
    pub(crate) fn leaves(mut self) -> Option<i32> {
        self.types("\u{4}");
        let code = self.program.wait().unwrap().code();
        self.has_left.store(true, Ordering::Relaxed);
        // The last line that the other end reads.
        writeln!(self.line).unwrap();
        self.reading.take().unwrap().join().unwrap();
        code
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
