//! Names of files as text: the one place where they become that.

use std::path::Path;

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
