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

/// A path as a person reads it: as it is, or quoted as git does it where it has letters that command a terminal, part
/// lines or are none.
pub(crate) fn shown(path: impl AsRef<Path>) -> String {
    let bytes = path.as_ref().as_os_str().as_bytes();
    let is_plain = |c: char| !is_odd(c) && c != '"' && c != '\\';
    if let Ok(text) = std::str::from_utf8(bytes)
        && text.chars().all(is_plain)
    {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' | '\\' => quoted.extend(['\\', letter]),
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                _ if is_odd(letter) => {
                    let mut bytes = [0; 4];
                    quoted.extend(letter.encode_utf8(&mut bytes).bytes().map(octal));
                }
                _ => quoted.push(letter),
            }
        }
        quoted.extend(chunk.invalid().iter().copied().map(octal));
    }
    quoted.push('"');
    quoted
}

/// Letters that a name can hide something by.
fn is_odd(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn octal(byte: u8) -> String {
    format!("\\{byte:03o}")
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

    #[test]
    fn a_name_says_what_it_is_and_commands_nothing() {
        for plain in ["a.txt", "my file", "grün/β", "it's"] {
            assert_eq!(shown(plain), plain);
        }
        assert_eq!(shown("a\nb\tc"), r#""a\nb\tc""#);
        assert_eq!(shown("\u{1b}[31mred"), r#""\033[31mred""#);
        assert_eq!(shown("gr\u{202e}ün"), r#""gr\342\200\256ün""#);
        assert_eq!(shown(r#"say "x\y""#), r#""say \"x\\y\"""#);
        assert_eq!(shown(path(b"bad\xff\xc3.txt")), r#""bad\377\303.txt""#);
    }
}
