//! The keeper: a process that restores the terminal if we are killed and cannot.
//!
//! It knows the settings of before, and holds the read end of a pipe whose write end only we have. One byte on the pipe
//! says that there is nothing to restore, or that there is again; others say where the live region begins, so that it can
//! be erased. If the pipe closes while there is something to restore, we are dead.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};

use crate::terminal::{Kept, restore_termios};

/// The argument after that of a guard that makes the program a keeper: it calls [`run`].
pub const KEEPER_ARGUMENT: &str = "terminal";

const PAUSED: u8 = b'p';
const RESUMED: u8 = b'r';
/// Two bytes follow: the rows of the live region above the cursor.
const LIVE: u8 = b'l';

/// The longest line of settings.
const LONGEST_LINE: u64 = 1024;

/// The command line that starts a keeper.
#[derive(Clone, Debug)]
pub struct KeeperProgram {
    /// An executable that calls [`run`].
    pub program: PathBuf,
    /// Arguments that make the program call [`run`].
    pub args: Vec<OsString>,
}

/// A keeper that runs. It restores the terminal when this is gone without having been [dismissed](Keeper::dismiss).
#[derive(Debug)]
pub(crate) struct Keeper {
    child: Child,
    pipe: ChildStdin,
}

impl Keeper {
    pub(crate) fn start(
        program: &KeeperProgram,
        tty: BorrowedFd<'_>,
        kept: &Kept,
    ) -> io::Result<Self> {
        let mut child = Command::new(&program.program)
            .args(&program.args)
            .stdin(Stdio::piped())
            .stdout(tty.try_clone_to_owned()?)
            .stderr(Stdio::null())
            .spawn()?;
        let mut pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(format!("{}\n{}", kept.to_line(), char::from(RESUMED)).as_bytes())?;
        Ok(Self { child, pipe })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// There is nothing to restore for a while. A keeper that is gone cannot be told, and need not be.
    pub(crate) fn pause(&mut self) {
        let _ = self.pipe.write_all(&[PAUSED]);
    }

    pub(crate) fn resume(&mut self) {
        let _ = self.pipe.write_all(&[RESUMED]);
    }

    /// The live region has so many rows above the cursor.
    pub(crate) fn live(&mut self, rows: u16) {
        let [first, second] = rows.to_le_bytes();
        let _ = self.pipe.write_all(&[LIVE, first, second]);
    }

    /// Ends the keeper: the terminal is as it was.
    pub(crate) fn dismiss(mut self) {
        self.pause();
        drop(self.pipe);
        let _ = self.child.wait();
    }
}

/// Runs as the keeper, with the terminal as standard output and the pipe as standard input.
pub fn run() -> ExitCode {
    // A session of its own: the signals of the terminal do not reach it, and it may write from the background.
    let _ = rustix::process::setsid();
    let tty = rustix::stdio::stdout();
    let mut pipe = BufReader::new(rustix::stdio::stdin().try_clone_to_owned().map_or_else(
        |_| Box::new(io::empty()) as Box<dyn io::Read>,
        |fd| Box::new(std::fs::File::from(fd)),
    ));
    let mut line = String::new();
    if pipe.by_ref().take(LONGEST_LINE).read_line(&mut line).is_err() {
        return ExitCode::FAILURE;
    }
    let Some(kept) = Kept::from_line(line.trim_end(), tty.as_fd()) else {
        return ExitCode::FAILURE;
    };
    let (mut is_needed, mut rows_above) = (false, None);
    let (mut byte, mut rows) = ([0], [0; 2]);
    loop {
        match pipe.read(&mut byte) {
            Ok(0) => break,
            Ok(_) if byte[0] == LIVE => {
                if pipe.read_exact(&mut rows).is_err() {
                    break;
                }
                rows_above = Some(u16::from_le_bytes(rows));
            }
            // An editor or a shell had the screen meanwhile.
            Ok(_) => (is_needed, rows_above) = (byte[0] == RESUMED, None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    if is_needed && restore_termios(tty.as_fd(), &kept, rows_above).is_err() {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
