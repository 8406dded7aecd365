//! The lines that a pane shows of its member. They are written beside the member's work: a pane that takes none, because
//! its tmux hangs, holds nothing up. Lines for which there is no room are left out, and the next one says how many.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::{stderr, stdin};
use rustix::termios::{InputModes, LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// The most lines that wait for the pane.
const MOST_WAITING: usize = 1_000;

/// The way of lines to the pane.
#[derive(Clone)]
pub(super) struct PaneLines {
    lines: SyncSender<String>,
    /// The number of lines that were left out since one was shown.
    left_out: Arc<AtomicUsize>,
}

impl PaneLines {
    /// Begins to write to standard error.
    pub(super) fn begin() -> io::Result<Self> {
        Self::to(|text| write_all(text.as_bytes()))
    }

    fn to(mut write: impl FnMut(&str) -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (lines, waiting): (_, Receiver<String>) = sync_channel(MOST_WAITING);
        let left_out = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&left_out);
        let show_all = move || {
            for line in waiting {
                let missing = counted.swap(0, Ordering::Relaxed);
                let gap = if missing > 0 {
                    format!("({missing} lines are not shown)\n")
                } else {
                    String::new()
                };
                if write(&format!("{gap}{line}\n")).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("pane".to_owned()).stack_size(64 * 1024).spawn(show_all)?;
        Ok(Self { lines, left_out })
    }

    /// Shows a line, if the pane takes it.
    pub(super) fn show(&self, line: &str) {
        if self.lines.try_send(line.to_owned()).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(stderr(), bytes) {
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let stderr = stderr();
                let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
                poll(&mut asked, None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Has the terminal of a pane only show: keys that are typed there neither signal the member nor stop its output.
pub(super) fn take_no_keys() -> io::Result<()> {
    let mut modes = tcgetattr(stdin())?;
    modes.local_modes.remove(LocalModes::ISIG | LocalModes::ICANON | LocalModes::ECHO);
    modes.input_modes.remove(InputModes::IXON);
    tcsetattr(stdin(), OptionalActions::Now, &modes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pane_that_takes_nothing_holds_nothing_up_and_says_later_what_is_missing() {
        let (continues, may_continue) = channel::<()>();
        let (written, shown) = channel();
        let lines = PaneLines::to(move |text| {
            written.send(text.to_owned()).unwrap();
            may_continue.recv().map_err(io::Error::other)
        });
        let lines = lines.unwrap();
        lines.show("first");
        let patience = Duration::from_secs(20);
        assert_eq!(shown.recv_timeout(patience).unwrap(), "first\n");
        // The writer waits for the pane now.
        for number in 0..MOST_WAITING + 7 {
            lines.show(&number.to_string());
        }
        continues.send(()).unwrap();
        assert_eq!(shown.recv_timeout(patience).unwrap(), "(7 lines are not shown)\n0\n");
        continues.send(()).unwrap();
        assert_eq!(shown.recv_timeout(patience).unwrap(), "1\n");
    }
}
