//! The kept output of a command, without credentials of known shapes.
//!
//! While a command runs, the model reads its output unchanged. The file that stays on disk afterwards has no
//! credentials.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use centurion_files::private;
use centurion_redact::Stream;

use crate::disk;

/// The bytes that are read at once.
const PIECE: usize = 64 * 1024;

/// The text in place of an output that could not be redacted.
const LOST: &[u8] =
    b"(This output held credentials. It could not be written without them, and was removed.)\n";

/// Removes the credentials from a file. Leaves a file without credentials as it is; empties a file that cannot be
/// rewritten because the disk is full.
pub(crate) fn redact_file(path: &Path) -> io::Result<()> {
    let mut file = disk::open_own(path)?;
    if !copy(&mut file, &mut io::sink())? {
        return Ok(());
    }
    file.rewind()?;
    let beside = path.with_extension("redacting");
    // A killed program may have left one.
    let _ = fs::remove_file(&beside);
    let written = private::create(&beside)
        .and_then(|mut redacted| copy(&mut file, &mut redacted))
        .and_then(|_| fs::rename(&beside, path));
    let Err(error) = written else { return Ok(()) };
    let _ = fs::remove_file(&beside);
    let mut emptied = File::options().write(true).truncate(true).open(path)?;
    let _ = emptied.write_all(LOST);
    Err(error)
}

/// Copies a text without its credentials; returns whether it had any.
fn copy(from: &mut File, to: &mut impl io::Write) -> io::Result<bool> {
    let (mut stream, mut out) = (Stream::default(), Vec::new());
    let mut piece = vec![0; PIECE];
    loop {
        let count = from.read(&mut piece)?;
        match count {
            0 => stream.finish(&mut out),
            count => stream.push(piece.get(..count).unwrap_or_default(), &mut out),
        }
        to.write_all(&out)?;
        out.clear();
        if count == 0 {
            return Ok(stream.has_redacted());
        }
    }
}

#[cfg(test)]
mod tests {
    use centurion_testkit::secrets::secrets;

    use super::*;

    #[test]
    fn what_is_kept_of_an_output_holds_no_credentials() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("b1.output");
        let filler = "some line of output\n".repeat(5_000);
        for secret in secrets() {
            fs::write(&path, format!("{filler}{}\n{filler}", secret.text)).unwrap();
            redact_file(&path).unwrap();
            let kept = fs::read_to_string(&path).unwrap();
            let piece = &secret.piece[..secret.piece.len().min(16)];
            assert!(kept.contains("[redacted: ") && !kept.contains(piece), "{}", secret.kind);
            assert!(kept.starts_with(&filler) && kept.ends_with(&filler), "{}", secret.kind);
        }
        fs::write(&path, &filler).unwrap();
        redact_file(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), filler);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_output_that_cannot_be_written_without_its_credentials_is_emptied() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("b1.output");
        fs::write(&path, format!("token {}\n", secrets()[0].text)).unwrap();
        // A directory in its place stands for a disk that takes nothing.
        fs::create_dir_all(path.with_extension("redacting").join("x")).unwrap();
        assert!(redact_file(&path).is_err());
        assert_eq!(fs::read(&path).unwrap(), LOST);
    }
}
