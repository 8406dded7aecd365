//! A second reader of records, beside the disk.

use std::path::Path;

/// Is told of every write to a transcript, in the order of the writes. Must not wait: agents do meanwhile.
pub trait Mirror: Send + Sync {
    /// Takes whole lines, as they were written to the file.
    fn mirror(&self, path: &Path, lines: &[u8]);
}
