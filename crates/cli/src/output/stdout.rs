//! Standard output that cannot hang the program.
//!
//! A reader that goes away, and one that does not read, are both found out: before a piece is written, the
//! pipe is asked whether it takes one. While it does not, memory does not grow, because nothing else
//! happens; and a signal to end still ends the program, because a thread of its own listens for it.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::signals::Signals;

/// A pipe that says that it takes something takes at least this much at once (`PIPE_BUF`).
const PIECE: usize = 4096;

/// How long a reader may take for one piece before signals are listened for.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long a reader may take for one piece when the program is to end.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// How often a pipe that takes nothing is asked.
const PAUSE: Duration = Duration::from_millis(50);

/// What is known of standard output.
#[derive(Default)]
pub(super) struct Stdout {
    kind: OnceLock<Kind>,
    /// Set once the program is to end: a host that does not read now is not waited for.
    is_ending: Arc<AtomicBool>,
    /// How many threads listen for signals in the place of a runtime that waits for its reader.
    listeners: AtomicU8,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A pipe or a socket: another process has to read.
    Stream,
    Other,
}

impl Stdout {
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if self.kind() == Kind::Other {
            return stdout.write_all(bytes).and_then(|()| stdout.flush());
        }
        for piece in bytes.chunks(PIECE) {
            self.wait_for_reader()?;
            stdout.write_all(piece)?;
            // Standard output keeps back what follows the last line end.
            stdout.flush()?;
        }
        Ok(())
    }

    /// Whether the reader has gone, though nothing was written.
    pub(super) fn has_lost_reader(&self) -> bool {
        self.kind() == Kind::Stream && ask(PollFlags::empty(), Duration::ZERO).is_err()
    }

    /// From now on a reader that does not read is not waited for.
    pub(super) fn end_soon(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    fn kind(&self) -> Kind {
        *self.kind.get_or_init(|| {
            let file = io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from);
            let kind = file.and_then(|file| file.metadata()).map(|known| known.file_type());
            match kind {
                Ok(kind) if kind.is_fifo() || kind.is_socket() => Kind::Stream,
                _ => Kind::Other,
            }
        })
    }

    /// Waits until the pipe takes a piece.
    fn wait_for_reader(&self) -> io::Result<()> {
        if ask(PollFlags::OUT, PATIENCE)? {
            return Ok(());
        }
        self.listen_for_signals();
        let mut since = None;
        while !ask(PollFlags::OUT, PAUSE)? {
            if self.is_ending.load(Ordering::Relaxed)
                && since.get_or_insert_with(Instant::now).elapsed() > LAST_PATIENCE
            {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "its reader does not read"));
            }
        }
        Ok(())
    }

    /// The runtime's thread waits here, so that another one must hear the signals meanwhile.
    fn listen_for_signals(&self) {
        if self.listeners.swap(1, Ordering::Relaxed) > 0 {
            return;
        }
        let is_ending = Arc::clone(&self.is_ending);
        // It ends with the process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                if let Ok(mut signals) = Signals::new() {
                    signals.next().await;
                    is_ending.store(true, Ordering::Relaxed);
                }
            });
        });
    }
}

/// Whether standard output is as wanted within a time; an error when its reader has gone.
fn ask(wanted: PollFlags, patience: Duration) -> io::Result<bool> {
    let stdout = io::stdout();
    let mut asked = [PollFd::new(&stdout, wanted)];
    let patience = Timespec::try_from(patience).unwrap_or_default();
    match poll(&mut asked, Some(&patience)) {
        Ok(_) => {}
        // A signal came: ask again.
        Err(rustix::io::Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let found = asked.first().map_or(PollFlags::empty(), PollFd::revents);
    if found.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(found.contains(wanted) && !wanted.is_empty())
}
