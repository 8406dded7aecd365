//! Files in which a session keeps what is too long for a conversation.
//!
//! There is one writer for them: it takes credentials out, and lets only the owner read.

use std::io::{self, Write as _};
use std::path::Path;

use centurion_files::private;

use crate::redact;

/// Writes a file that did not exist, without the credentials of its text, mode 0600. The directory is made where it is
/// missing.
pub fn keep(path: &Path, text: &str) -> io::Result<()> {
    private::create(path)?.write_all(&redact(text.as_bytes()))
}

/// Writes a file anew, or replaces what it holds, without the credentials of its text, mode 0600.
pub fn keep_over(path: &Path, text: &str) -> io::Result<()> {
    private::write(path, &redact(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use centurion_testkit::secrets::secrets;

    use super::*;

    #[test]
    fn a_kept_file_holds_no_credential_and_is_for_its_owner_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("new/kept.txt");
        let lines: Vec<String> = secrets().into_iter().map(|secret| secret.text).collect();
        keep(&path, &format!("before\n{}\nafter", lines.join("\n"))).unwrap();
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(kept.starts_with("before\n") && kept.ends_with("after"), "{kept}");
        for secret in secrets() {
            let piece = &secret.piece[..secret.piece.len().min(16)];
            assert!(!kept.contains(piece), "{}", secret.kind);
        }
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(keep(&path, "x").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        keep_over(&path, &format!("again\n{}", lines.join("\n"))).unwrap();
        let again = std::fs::read_to_string(&path).unwrap();
        assert!(again.starts_with("again\n") && again.len() < kept.len(), "{again}");
        assert!(secrets().iter().all(|it| !again.contains(&it.piece[..it.piece.len().min(16)])));
    }
}
