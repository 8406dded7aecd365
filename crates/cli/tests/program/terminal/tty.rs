//! A pseudo terminal with a program in it and an emulator before it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

/// The longest wait for something that must come.
const PATIENCE: Duration = Duration::from_mins(1);
/// The time in which a dialog hears no key, with some more.
const GUARD: Duration = Duration::from_millis(900);

/// Rows and columns of the window.
pub(crate) const ROWS: u16 = 24;
pub(crate) const COLUMNS: u16 = 80;

struct Seen {
    screen: vt100::Parser,
    /// All that was written.
    bytes: Vec<u8>,
}

/// A program in a terminal of its own.
pub(crate) struct Tty {
    pub(crate) child: Child,
    master: File,
    slave: OwnedFd,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    /// The settings of the terminal before the program began.
    before: String,
}

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

/// The settings of a terminal, as `stty -a` shows them.
fn settings(tty: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(tty).unwrap())
}

impl Tty {
    /// Starts the program in a session of its own, whose terminal this is.
    pub(crate) fn start(program: &Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name, flags, Mode::empty()).unwrap();
        tcsetwinsize(&slave, size(ROWS, COLUMNS)).unwrap();
        let before = settings(&slave);
        let end = || Stdio::from(slave.as_fd().try_clone_to_owned().unwrap());
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(program.get_program()).args(program.get_args()).env_clear();
        let variables = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(variables).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        command.current_dir(program.get_current_dir().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let screen = vt100::Parser::new(cells(ROWS), cells(COLUMNS), 10_000);
        let seen = Arc::new((Mutex::new(Seen { screen, bytes: Vec::new() }), Condvar::new()));
        let master = File::from(master);
        let (from, to, shared) =
            (master.try_clone().unwrap(), master.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || show(from, to, &shared));
        Self { child, master, slave, seen, before }
    }

    pub(crate) fn send(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen fits; returns it.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let (lock, changed) = &*self.seen;
        let mut seen = lock.lock();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = seen.screen.screen().contents();
            if fits(&screen) {
                return screen;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} did not come:\n{screen}");
            changed.wait_for(&mut seen, left);
        }
    }

    /// Waits for words on the screen.
    #[track_caller]
    pub(crate) fn see(&self, words: &str) -> String {
        self.wait(words, |screen| screen.contains(words))
    }

    /// Lets a dialog that was just seen hear keys.
    pub(crate) fn read_dialog(&self) {
        self.pass(GUARD);
    }

    /// Lets time pass: what is tested is that nothing happens meanwhile, or that a key comes late enough.
    pub(crate) fn pass(&self, time: Duration) {
        let (lock, changed) = &*self.seen;
        let never = |_: &mut Seen| true;
        changed.wait_while_for(&mut lock.lock(), never, time);
    }

    /// Everything that can be seen by scrolling back, from its beginning.
    pub(crate) fn everything(&self) -> String {
        let mut seen = self.seen.0.lock();
        let screen = seen.screen.screen_mut();
        screen.set_scrollback(usize::MAX);
        let mut rows: Vec<String> = Vec::new();
        for offset in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(offset);
            rows.extend(screen.rows(0, screen.size().1.get()).next());
        }
        screen.set_scrollback(0);
        rows.push(screen.contents());
        rows.join("\n")
    }

    /// The bytes that were written so far.
    pub(crate) fn written(&self) -> usize {
        self.seen.0.lock().bytes.len()
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let mut seen = self.seen.0.lock();
        seen.screen.screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(&self.slave, size(rows, columns)).unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        crate::program::signal(&self.child, signal);
    }

    /// Waits for the end of the program, and of what restores the terminal after a kill; returns the exit code.
    #[track_caller]
    pub(crate) fn assert_restored(&mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        crate::program::eventually("the restored settings", || {
            (settings(&self.slave) == self.before).then_some(())
        });
        self.wait_bytes(b"\x1b[23;2t");
        let seen = self.seen.0.lock();
        let screen = seen.screen.screen();
        assert!(!screen.hide_cursor() && !screen.bracketed_paste() && !screen.alternate_screen());
        code
    }

    /// Does something while the terminal takes nothing that is written, as behind a connection that stalls.
    pub(crate) fn stalled<R>(&mut self, act: impl FnOnce(&mut Child) -> R) -> R {
        // The reader waits to show its last piece, and reads no more.
        let _seen = self.seen.0.lock();
        act(&mut self.child)
    }

    /// Tells whether the modes of the program are set.
    pub(crate) fn is_raw(&self) -> bool {
        settings(&self.slave) != self.before
    }

    /// The number of times that some bytes were written.
    pub(crate) fn count(&self, wanted: &[u8]) -> usize {
        self.seen.0.lock().bytes.windows(wanted.len()).filter(|it| *it == wanted).count()
    }

    /// Tells whether the terminal shows its other screen.
    pub(crate) fn is_on_other_screen(&self) -> bool {
        self.seen.0.lock().screen.screen().alternate_screen()
    }

    /// Tells whether the program is told of the mouse.
    pub(crate) fn has_mouse(&self) -> bool {
        let seen = self.seen.0.lock();
        seen.screen.screen().mouse_protocol_mode() != vt100::MouseProtocolMode::None
    }

    #[track_caller]
    pub(crate) fn wait_bytes(&self, wanted: &[u8]) {
        crate::program::eventually("the bytes", || {
            let seen = self.seen.0.lock();
            seen.bytes.windows(wanted.len()).any(|it| it == wanted).then_some(())
        });
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Shows what the program writes, and answers as a terminal does.
fn show(mut from: File, mut to: File, seen: &(Mutex<Seen>, Condvar)) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let piece = &buffer[..count];
        let mut now = seen.0.lock();
        now.screen.process(piece);
        now.bytes.extend_from_slice(piece);
        let (row, column) = now.screen.screen().cursor_position();
        drop(now);
        seen.1.notify_all();
        let asks = |question: &[u8]| piece.windows(question.len()).any(|it| it == question);
        if asks(b"\x1b[6n") {
            let _ = write!(to, "\x1b[{};{}R", row + 1, column + 1);
        }
        if asks(b"\x1b[c") {
            let _ = to.write_all(b"\x1b[?62;22c");
        }
    }
}
