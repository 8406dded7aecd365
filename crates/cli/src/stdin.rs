//! Piped input: read whole, bounded, and without waiting for ever on a pipe without a writer.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::mpsc;
use std::time::Duration;

/// The most that is read.
const BOUND: u64 = 10 * 1024 * 1024;
/// The longest time that a run with a prompt waits for the first byte of a pipe.
const PATIENCE: Duration = Duration::from_secs(3);

/// Reads piped input; empty when standard input is a terminal or nothing comes.
pub(crate) fn read_piped(has_prompt: bool) -> anyhow::Result<String> {
    if io::stdin().is_terminal() {
        return Ok(String::new());
    }
    let Ok(descriptor) = io::stdin().as_fd().try_clone_to_owned() else { return Ok(String::new()) };
    let file = File::from(descriptor);
    let kind = file.metadata()?.file_type();
    let may_block_for_ever = kind.is_fifo() || kind.is_socket();
    if !(may_block_for_ever && has_prompt) {
        return read_all(file);
    }
    // The thread is left behind if nothing ever comes; it ends with the process.
    let (sender, receiver) = mpsc::sync_channel(1);
    let (first_byte, has_come) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut file = file;
        let mut first = [0];
        let came = file.read(&mut first).unwrap_or(0);
        let _ = first_byte.send(());
        let rest =
            if came == 0 { Ok(String::new()) } else { read_all(first.as_slice().chain(file)) };
        let _ = sender.send(rest);
    });
    if has_come.recv_timeout(PATIENCE).is_ok() {
        return receiver.recv().unwrap_or_else(|_| Ok(String::new()));
    }
    crate::output::note(
        "note: nothing came on standard input for 3 seconds; continuing without it \
         (redirect it from /dev/null to skip the wait)",
    );
    Ok(String::new())
}

fn read_all(reader: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    reader.take(BOUND + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(
        bytes.len() as u64 <= BOUND,
        "standard input has more than 10 MB; put it into a file and name the file"
    );
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
