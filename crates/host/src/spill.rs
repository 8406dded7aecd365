//! Bytes that wait on disk because their reader does not read: first in, first out.
//!
//! They stand in files of a bounded size, each of which is closed as soon as it was read, so that a reader that is
//! always behind does not make a file grow for ever. Who makes the files sees to it that they have no name.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Opens an empty file that can be read and written, and is gone when it is closed.
pub type OpenSpill = Box<dyn Fn() -> io::Result<File> + Send + Sync>;

/// From this size on a file gets nothing more.
const FULL: u64 = 16 * 1024 * 1024;

/// The most that is read at once.
pub(crate) const LARGEST_READ: usize = 256 * 1024;

pub(crate) struct Spill {
    open: OpenSpill,
    /// Oldest first. None is empty.
    files: VecDeque<SpillFile>,
    unread: u64,
}

struct SpillFile {
    file: File,
    read: u64,
    written: u64,
}

impl Spill {
    pub(crate) fn new(open: OpenSpill) -> Self {
        Self { open, files: VecDeque::new(), unread: 0 }
    }

    /// The number of bytes that wait.
    pub(crate) fn unread(&self) -> u64 {
        self.unread
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.files.back().is_none_or(|last| last.written >= FULL) {
            self.files.push_back(SpillFile { file: (self.open)()?, read: 0, written: 0 });
        }
        if let Some(last) = self.files.back_mut() {
            last.file.write_all_at(bytes, last.written)?;
            last.written += bytes.len() as u64;
            self.unread += bytes.len() as u64;
        }
        Ok(())
    }

    /// Takes the oldest bytes into an empty buffer; none when nothing waits.
    pub(crate) fn take(&mut self, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        let Some(first) = self.files.front_mut() else { return Ok(()) };
        let left = usize::try_from(first.written - first.read).unwrap_or(LARGEST_READ);
        buffer.resize(left.min(LARGEST_READ), 0);
        first.file.read_exact_at(buffer, first.read)?;
        first.read += buffer.len() as u64;
        self.unread -= buffer.len() as u64;
        if first.read == first.written {
            self.files.pop_front();
        }
        Ok(())
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.files.clear();
        self.unread = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_comes_back_in_order_and_leaves_no_file_open() {
        let mut spill = Spill::new(Box::new(tempfile::tempfile));
        let pieces = (0_u32..600).map(|number| number.to_le_bytes().repeat(16 * 1024));
        let (mut written, mut read, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
        for (number, piece) in pieces.enumerate() {
            spill.append(&piece).unwrap();
            written.extend(piece);
            // A reader that is always behind.
            if number % 8 == 7 {
                spill.take(&mut buffer).unwrap();
                read.extend_from_slice(&buffer);
            }
        }
        assert!(spill.files.len() > 1, "one file does not hold all");
        while spill.unread() > 0 {
            spill.take(&mut buffer).unwrap();
            read.extend_from_slice(&buffer);
        }
        assert!(read == written);
        assert!(spill.files.is_empty());
        spill.take(&mut buffer).unwrap();
        assert!(buffer.is_empty());
    }
}
