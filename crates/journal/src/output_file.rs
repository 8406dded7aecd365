//! An agent's work as plain text for people, in the order of events, ending with its report. The
//! transcript is for machines.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use centurion_files::private;
use centurion_protocol::Block;
use centurion_redact::redact;
use parking_lot::Mutex;

/// The bytes of a call's input that are shown.
const INPUT_BYTES: usize = 200;
/// A file that has grown beyond this takes only the end.
const MOST: usize = 16 << 20;

/// The output file of one agent, made when there is something to write.
pub struct OutputFile {
    path: PathBuf,
    state: Mutex<OutputState>,
}

#[derive(Default)]
struct OutputState {
    file: Option<File>,
    written: usize,
}

impl OutputFile {
    pub fn new(path: PathBuf) -> Self {
        Self { path, state: Mutex::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds what an answer holds.
    pub fn answer(&self, blocks: &[Block]) {
        let mut text = String::new();
        for block in blocks {
            match block {
                Block::Text(said) => text.extend([said.trim_end(), "\n"]),
                Block::ToolUse(call) => {
                    let input = call.input.get();
                    let cut = input.floor_char_boundary(INPUT_BYTES);
                    let more = if cut < input.len() { "…" } else { "" };
                    text.extend(["[", &call.name, "] ", &input[..cut], more, "\n"]);
                }
                _ => {}
            }
        }
        self.append(&text);
    }

    /// Adds how it ended, and closes the file.
    pub fn end(&self, text: &str) {
        self.state.lock().written = 0;
        self.append(text);
        *self.state.lock() = OutputState::default();
    }

    fn append(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        if state.written > MOST {
            return;
        }
        state.written += text.len();
        let written =
            state.open(&self.path).and_then(|file| file.write_all(&redact(text.as_bytes())));
        if let Err(error) = written {
            tracing::debug!(%error, path = %self.path.display(), "an output file cannot be written");
        }
    }
}

impl OutputState {
    fn open(&mut self, path: &Path) -> io::Result<&mut File> {
        if self.file.is_none() {
            let mut options = OpenOptions::new();
            options.append(true).create(true);
            let file = private::open(&mut options, path)?;
            self.file = Some(file);
        }
        self.file.as_mut().ok_or_else(|| io::Error::other("no file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_in_the_order_of_events_and_holds_no_secrets() {
        let scratch = tempfile::tempdir().unwrap();
        let output = OutputFile::new(scratch.path().join("tasks/a1.output"));
        output.answer(&[
            Block::text("Looking."),
            Block::text("sk-ant-api03-abcdefghijklmnopqrstuvwxyz"),
        ]);
        output.end("=== completed\n");
        let text = std::fs::read_to_string(output.path()).unwrap();
        assert!(text.starts_with("Looking.\n") && text.ends_with("=== completed\n"), "{text}");
        assert!(!text.contains("abcdefghijklmnop"));
    }

    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let scratch = tempfile::tempdir().unwrap();
        let precious = scratch.path().join("precious");
        std::fs::write(&precious, "kept").unwrap();
        let path = scratch.path().join("a1.output");
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        let output = OutputFile::new(path);
        output.end("=== completed\n");
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    }
}
