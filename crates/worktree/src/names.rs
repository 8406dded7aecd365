//! Names of files as text: the one place where they become that.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The parts of what git says with `-z`.
pub(crate) fn parts(said: &[u8]) -> impl Iterator<Item = &[u8]> {
    said.split(|byte| *byte == 0).filter(|part| !part.is_empty())
}

/// A path as git says it.
pub(crate) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Paths in the form in which git reads them with `-z`.
pub(crate) fn joined<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<u8> {
    let with_end = |path: &'a PathBuf| path.as_os_str().as_bytes().iter().copied().chain([0]);
    paths.into_iter().flat_map(with_end).collect()
}

/// A path as one word of a shell's command.
pub(crate) fn for_shell(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_command() {
        assert_eq!(for_shell(Path::new("/a/b-1")), "/a/b-1");
        assert_eq!(for_shell(Path::new("/my repo/it's")), r"'/my repo/it'\''s'");
    }
}
