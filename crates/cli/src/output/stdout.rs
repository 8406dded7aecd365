//! Standard output, byte by byte: where bytes go, and whether there is a reader.

use std::io::{self, ErrorKind, IsTerminal as _, Write};

use centurion_host::Sink;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::stdio::stdout;

/// The most bytes that are written to a pipe at once (`PIPE_BUF`): a reader that reads a little makes itself known.
const PIECE: usize = 4096;

/// The longest time for which the reader of standard error may take nothing when the program is to end.
const LAST_PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Writes to standard output without a buffer. A write waits for a reader that does not read.
#[derive(Default)]
pub(super) struct Stdout {
    /// The kind of the output, as far as it is known.
    kind: Option<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A pipe or a socket: another process has to read.
    Stream,
    /// A person may stop it.
    Terminal,
    /// A file or a device, which waits for no reader.
    Other,
}

impl Kind {
    fn look() -> Self {
        let kind = rustix::fs::fstat(stdout()).map(|known| FileType::from_raw_mode(known.st_mode));
        match kind {
            Ok(FileType::Fifo | FileType::Socket) => Self::Stream,
            _ if io::stdout().is_terminal() => Self::Terminal,
            _ => Self::Other,
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let kind = *self.kind.get_or_insert_with(Kind::look);
        let most = if kind == Kind::Stream { PIECE } else { bytes.len() };
        let piece = bytes.get(..most).unwrap_or(bytes);
        loop {
            match rustix::io::write(stdout(), piece) {
                // The process that started this one has made it so.
                Err(rustix::io::Errno::AGAIN) => drop(ask(PollFlags::OUT, None)?),
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Stdout {
    /// A pipe that says that it takes something takes at least one piece at once.
    fn is_ready(&mut self) -> bool {
        match *self.kind.get_or_insert_with(Kind::look) {
            Kind::Stream => takes_piece(),
            Kind::Terminal => false,
            Kind::Other => true,
        }
    }
}

/// Whether a pipe takes a piece now. Where its reader has gone, the write says so.
fn takes_piece() -> bool {
    let stdout = stdout();
    let mut asked = [PollFd::new(&stdout, PollFlags::OUT)];
    let polled = poll(&mut asked, Some(&Timespec::default()));
    polled.is_ok() && asked.first().is_some_and(|it| it.revents().contains(PollFlags::OUT))
}

/// Whether standard error takes a line within the time that a reader has at the end.
pub(super) fn standard_error_takes_line() -> bool {
    let stderr = rustix::stdio::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    poll(&mut asked, Some(&LAST_PATIENCE)).is_ok_and(|ready| ready > 0)
}

/// Whether the reader has gone, though nothing was written.
pub(super) fn has_lost_reader() -> bool {
    Kind::look() == Kind::Stream && ask(PollFlags::empty(), Some(Timespec::default())).is_err()
}

/// Waits until standard output is as wanted, for as long as is said; an error when its reader has gone.
fn ask(wanted: PollFlags, patience: Option<Timespec>) -> io::Result<()> {
    let stdout = stdout();
    let mut asked = [PollFd::new(&stdout, wanted)];
    match poll(&mut asked, patience.as_ref()) {
        // After a signal the caller asks again.
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let found = asked.first().map_or(PollFlags::empty(), PollFd::revents);
    if found.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
        return Err(ErrorKind::BrokenPipe.into());
    }
    Ok(())
}
