//! The terminal itself: its modes, its size, what it sends and what is written to it.
//!
//! [`Terminal`] has a description of the terminal of its own, so that what is set on it (no blocking) is not set for
//! the programs that share standard input. The modes are undone when it is dropped, on a panic, and by the
//! [keeper](crate::keeper) if the process is killed.

mod modes;
mod questions;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

pub(crate) use modes::{SavedModes, restore_termios};
use questions::Questions;

use crate::frame::Size;
use crate::input::{Input, InputParser, Key, KeyCode, TerminalReply, unbracketed_paste};
use crate::keeper::{Keeper, KeeperProgram};

/// The pause after which what has begun is whole: a lone Escape is a key, a window keeps its size.
const PAUSE: Duration = Duration::from_millis(50);

/// The pause after which the end of a paste does not come any more. What follows it is read as keys, so it is long.
const PASTE_PAUSE: Duration = Duration::from_secs(2);

/// The bytes of one read.
const READ: usize = 64 * 1024;

/// The mode in which pastes are marked.
const BRACKETED_PASTE: u16 = 2004;

/// The longest line that is taken whole.
const LONGEST_LINE: usize = 1 << 20;

/// The settings of a [`Terminal`].
#[derive(Clone, Debug, Default)]
pub struct TerminalOptions {
    /// Lines as the terminal edits them, for the plain surface: no mode is changed.
    pub is_plain: bool,
    /// Restores the terminal if this process is killed.
    pub keeper: Option<KeeperProgram>,
}

/// A terminal in the modes that a surface needs.
#[derive(Debug)]
pub struct Terminal {
    tty: AsyncFd<OwnedFd>,
    options: TerminalOptions,
    keeper: Option<Keeper>,
    is_active: bool,
    /// The rows of the live region above the cursor, as the keeper knows them.
    told: Option<(Option<u16>, bool)>,
    parser: InputParser,
    questions: Questions,
    resizes: Signal,
    inputs: VecDeque<Input>,
    /// The time at which what has begun is taken as it is: an Escape, or a paste without an end.
    escape_at: Option<Instant>,
    resize_at: Option<Instant>,
    /// True if the terminal is known to mark what is pasted.
    brackets_pastes: bool,
    /// The beginning of a line, where the terminal edits lines itself.
    line: Vec<u8>,
}

impl Terminal {
    /// Opens the terminal of standard input and sets its modes. Must be called inside of a Tokio runtime.
    pub fn enter(options: TerminalOptions) -> io::Result<Self> {
        Self::enter_tty(open_tty()?, options)
    }

    /// Sets the modes of a terminal that is open. Nothing else may depend on whether its reads block.
    pub fn enter_tty(tty: OwnedFd, options: TerminalOptions) -> io::Result<Self> {
        // An `OwnedFd` names the same file as long as it lives.
        #[expect(
            deprecated,
            reason = "what replaces it is unsafe, for types whose file may change"
        )]
        let tty = AsyncFd::new(tty)?;
        let mut terminal = Self {
            tty,
            options,
            keeper: None,
            is_active: false,
            told: None,
            parser: InputParser::new(),
            questions: Questions::default(),
            resizes: signal(SignalKind::window_change())?,
            inputs: VecDeque::new(),
            escape_at: None,
            resize_at: None,
            brackets_pastes: false,
            line: Vec::new(),
        };
        terminal.resume()?;
        Ok(terminal)
    }

    /// Tells whether the terminal edits lines itself.
    pub fn is_plain(&self) -> bool {
        self.options.is_plain
    }

    /// The size of the window.
    pub fn size(&self) -> Size {
        match rustix::termios::tcgetwinsize(self.tty.get_ref()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col, rows: size.ws_row }
            }
            _ => Size::default(),
        }
    }

    /// Has the size of the window told soon, also where no signal says that it has changed.
    pub(crate) fn expect_size(&mut self) {
        self.resize_at.get_or_insert_with(|| Instant::now() + PAUSE);
    }

    /// The process id of the keeper, which is a child of this process in a session of its own.
    pub fn keeper_id(&self) -> Option<u32> {
        self.keeper.as_ref().map(Keeper::id)
    }

    /// Has the keeper erase the live region after a kill, if it has so many rows above the cursor, and leave the other screen
    /// if that is shown.
    pub fn keep_rows(&mut self, rows: Option<u16>, is_other: bool) {
        let told = Some((rows, is_other));
        if !self.is_active || told == self.told {
            return;
        }
        self.told = told;
        modes::shows_other_screen(is_other);
        if let Some(keeper) = &mut self.keeper {
            keeper.live(rows, is_other);
        }
    }

    /// Undoes the modes: before an editor, or before the process stops.
    pub fn suspend(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_active) {
            return Ok(());
        }
        self.hear_out();
        self.told = None;
        let undone = modes::undo(self.tty.get_ref().as_fd());
        // The keeper writes later what the terminal does not take now.
        let is_left = undone.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        if let Some(keeper) = self.keeper.as_mut().filter(|_| !is_left) {
            keeper.pause();
        }
        undone
    }

    /// Sets the modes again.
    pub fn resume(&mut self) -> io::Result<()> {
        if self.is_active || self.options.is_plain {
            return Ok(());
        }
        let kept = SavedModes::of(self.tty.get_ref().as_fd())?;
        match (&mut self.keeper, &self.options.keeper) {
            (Some(keeper), _) => keeper.resume(),
            (None, Some(program)) => {
                self.keeper = Some(Keeper::start(program, self.tty.get_ref().as_fd(), &kept)?);
            }
            (None, None) => {}
        }
        // From here on there is something to undo.
        self.is_active = true;
        self.questions.asked_at_start();
        modes::set(self.tty.get_ref().as_fd(), kept)
    }

    /// Takes the answers of the terminal that are under way, so that none is typed into what comes after us. Keys among them
    /// are kept.
    fn hear_out(&mut self) {
        let mut buffer = vec![0; READ];
        while let Some(patience) = self.questions.patience() {
            match modes::read_within(self.tty.get_ref().as_fd(), &mut buffer, patience) {
                Ok(count @ 1..) if self.take(&buffer, Some(Ok(count))).is_ok() => {}
                _ => return,
            }
        }
    }

    /// Undoes the modes and stops this process group, as Ctrl+Z does elsewhere; returns when it continues.
    pub fn stop_process(&mut self) -> io::Result<()> {
        self.suspend()?;
        rustix::process::kill_current_process_group(rustix::process::Signal::TSTP)?;
        self.resume()
    }

    /// Writes everything, as fast as the terminal takes it.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.questions.look_for(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let mut ready = self.tty.writable().await?;
            match ready.try_io(|tty| Ok(rustix::io::write(tty.get_ref(), rest)?)) {
                Ok(Ok(count)) => rest = &rest[count..],
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(_would_block) => {}
            }
        }
        Ok(())
    }

    /// The next inputs, which came together. Nothing is lost if this is dropped before it is done.
    ///
    /// Fails when the terminal is gone.
    pub async fn next(&mut self) -> io::Result<Vec<Input>> {
        loop {
            if !self.inputs.is_empty() {
                return Ok(self.inputs.drain(..).collect());
            }
            let (escape_at, resize_at) = (self.escape_at, self.resize_at);
            tokio::select! {
                ready = self.tty.readable() => {
                    let mut buffer = vec![0; READ];
                    let read = ready?.try_io(|tty| {
                        Ok(rustix::io::read(tty.get_ref(), &mut buffer[..])?)
                    });
                    self.take(&buffer, read.ok())?;
                }
                () = at(escape_at) => {
                    self.escape_at = None;
                    let mut out = Vec::new();
                    if self.parser.is_pasting() {
                        self.parser.give_up_paste(&mut out);
                        // The rest of it may still come, and an Enter in that is a line end.
                        self.brackets_pastes = false;
                    } else {
                        self.parser.flush(&mut out);
                    }
                    self.inputs.extend(out);
                }
                _ = self.resizes.recv() => self.resize_at = Some(Instant::now() + PAUSE),
                () = at(resize_at) => {
                    self.resize_at = None;
                    self.inputs.push_back(Input::Resized(self.size()));
                }
            }
        }
    }

    fn take(&mut self, buffer: &[u8], read: Option<io::Result<usize>>) -> io::Result<()> {
        let count = match read {
            None => return Ok(()),
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Some(Err(error)) => return Err(error),
            // Ctrl+D, where the terminal edits lines.
            Some(Ok(0)) if self.options.is_plain => {
                self.inputs.push_back(Input::Key(Key::plain(KeyCode::Char('d')).ctrl()));
                return Ok(());
            }
            Some(Ok(0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(Ok(count)) => count,
        };
        if self.options.is_plain {
            self.take_lines(&buffer[..count]);
            return Ok(());
        }
        let mut out = Vec::new();
        self.parser.feed(&buffer[..count], &mut out);
        self.questions.hear(&out);
        self.brackets_pastes |= out.iter().any(tells_brackets);
        if !self.brackets_pastes {
            unbracketed_paste(&mut out);
        }
        self.inputs.extend(out);
        let pause = if self.parser.is_pasting() { PASTE_PAUSE } else { PAUSE };
        let is_open = self.parser.is_pending() || self.parser.is_pasting();
        self.escape_at = is_open.then(|| Instant::now() + pause);
        Ok(())
    }
}

impl Terminal {
    /// Takes bytes of lines; one that has no end waits for it.
    fn take_lines(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => {
                    let line = std::mem::take(&mut self.line);
                    self.inputs.push_back(Input::Line(String::from_utf8_lossy(&line).into_owned()));
                }
                byte if self.line.len() < LONGEST_LINE => self.line.push(*byte),
                _ => {}
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone need not be restored.
        let undone = self.suspend();
        let is_left = undone.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        if let Some(keeper) = self.keeper.take().filter(|_| !is_left) {
            keeper.dismiss();
        }
    }
}

/// Tells whether a terminal that sends this marks what is pasted.
fn tells_brackets(input: &Input) -> bool {
    match input {
        Input::Paste(_) => true,
        Input::Reply(TerminalReply::Mode { mode, known }) => *mode == BRACKETED_PASTE && *known,
        _ => false,
    }
}

/// Waits until a time, or for ever.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// A description of the terminal of standard input that is ours alone.
fn open_tty() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let name = rustix::termios::ttyname(rustix::stdio::stdin(), Vec::new())?;
    // The name may belong to another mount namespace.
    let opened = rustix::fs::open(name, flags, Mode::empty());
    Ok(opened.or_else(|_| rustix::fs::open("/dev/tty", flags, Mode::empty()))?)
}
