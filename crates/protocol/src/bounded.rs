//! Reading with a limit: the one way in which whole files and streams get into memory.
//!
//! A larger source is an error that says so, and at most the limit has been read by then.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file of at most `most` bytes.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let size = file.metadata().map_or(0, |file| file.len().min(most));
    // Room for one more byte than there should be: the end is seen without another piece.
    read_into(Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1), file, most)
}

/// Reads a text file of at most `most` bytes.
pub fn read_text_file(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read_file(path, most)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads to the end of an input of at most `most` bytes.
pub fn read_all(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    read_into(Vec::new(), reader, most)
}

fn read_into(mut bytes: Vec<u8>, reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let text = format!("it has more than {most} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_is_read() {
        assert_eq!(read_all(b"four".as_slice(), 4).unwrap(), b"four");
        let error = read_all(io::repeat(b'x'), 1000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(read_text_file(Path::new("/dev/zero"), 1000).is_err());
    }
}
