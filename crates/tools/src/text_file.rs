//! Text as files hold it: an encoding, perhaps a byte-order mark, line ends of one kind or both.
//!
//! Decoding is lossless for every text that can be edited, so that an edit changes only the bytes that it means.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};
use thiserror::Error;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16_LE_MARK: &[u8] = b"\xff\xfe";
const UTF16_BE_MARK: &[u8] = b"\xfe\xff";

/// The bytes of a file that decide whether it is text.
const PROBE: usize = 8 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf8WithMark,
    Utf16Le,
    Utf16Be,
    /// Everything else that looks like text: each byte is one character.
    Windows1252,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) content: String,
    pub(crate) encoding: Encoding,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("the content is not text")]
pub(crate) struct NotText;

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum EncodeError {
    #[error("`{character}` does not exist in {encoding}, the encoding of the file")]
    Unrepresentable { character: char, encoding: &'static str },
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8WithMark => "UTF-8 with a byte-order mark",
            Self::Utf16Le => "UTF-16 (little-endian)",
            Self::Utf16Be => "UTF-16 (big-endian)",
            Self::Windows1252 => "Latin-1 (Windows-1252)",
        }
    }

    /// Detects the encoding from the first bytes; `None` when they do not look like text.
    pub(crate) fn sniff(start: &[u8]) -> Option<Self> {
        if start.starts_with(UTF8_MARK) {
            return Some(Self::Utf8WithMark);
        }
        if start.starts_with(UTF16_LE_MARK) {
            return Some(Self::Utf16Le);
        }
        if start.starts_with(UTF16_BE_MARK) {
            return Some(Self::Utf16Be);
        }
        let start = start.get(..PROBE).unwrap_or(start);
        if start.contains(&0) {
            return None;
        }
        match std::str::from_utf8(start) {
            Ok(_) => Some(Self::Utf8),
            // The probe may end in the middle of a character.
            Err(error) if error.error_len().is_none() => Some(Self::Utf8),
            Err(_) => {
                let control = start.iter().filter(|byte| is_odd_control(**byte)).count();
                (control * 20 <= start.len()).then_some(Self::Windows1252)
            }
        }
    }

    /// The bytes of `content`, with the mark of the encoding.
    pub(crate) fn encode(self, content: &str) -> Result<Vec<u8>, EncodeError> {
        Ok(match self {
            Self::Utf8 => content.as_bytes().to_vec(),
            Self::Utf8WithMark => [UTF8_MARK, content.as_bytes()].concat(),
            Self::Utf16Le => UTF16_LE_MARK
                .iter()
                .copied()
                .chain(content.encode_utf16().flat_map(u16::to_le_bytes))
                .collect(),
            Self::Utf16Be => UTF16_BE_MARK
                .iter()
                .copied()
                .chain(content.encode_utf16().flat_map(u16::to_be_bytes))
                .collect(),
            Self::Windows1252 => {
                let (bytes, _, unmappable) = WINDOWS_1252.encode(content);
                if unmappable {
                    return Err(self.first_unmappable(content));
                }
                bytes.into_owned()
            }
        })
    }

    fn first_unmappable(self, content: &str) -> EncodeError {
        let mut buffer = [0; 4];
        let character = content
            .chars()
            .find(|character| WINDOWS_1252.encode(character.encode_utf8(&mut buffer)).2)
            .unwrap_or(char::REPLACEMENT_CHARACTER);
        EncodeError::Unrepresentable { character, encoding: self.name() }
    }
}

/// Whether a byte is a control character that text does not have. Escape is allowed for coloured logs.
fn is_odd_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0x1b)
}

/// Decodes bytes as text. The mark is not part of the content.
pub(crate) fn decode(bytes: Vec<u8>) -> Result<Text, NotText> {
    let encoding = Encoding::sniff(&bytes).ok_or(NotText)?;
    match encoding {
        Encoding::Utf8 => match String::from_utf8(bytes) {
            Ok(content) => Ok(Text { content, encoding }),
            Err(error) => Ok(windows_1252(error.as_bytes())),
        },
        Encoding::Utf8WithMark => match std::str::from_utf8(bytes.get(3..).unwrap_or_default()) {
            Ok(content) => Ok(Text { content: content.to_owned(), encoding }),
            Err(_) => Ok(windows_1252(&bytes)),
        },
        Encoding::Utf16Le => {
            Ok(Text { content: UTF_16LE.decode_with_bom_removal(&bytes).0.into_owned(), encoding })
        }
        Encoding::Utf16Be => {
            Ok(Text { content: UTF_16BE.decode_with_bom_removal(&bytes).0.into_owned(), encoding })
        }
        Encoding::Windows1252 => Ok(windows_1252(&bytes)),
    }
}

fn windows_1252(bytes: &[u8]) -> Text {
    Text {
        content: WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned(),
        encoding: Encoding::Windows1252,
    }
}

/// The lines of a text without their ends; a last line end does not begin another line.
pub(crate) fn lines(content: &str) -> impl Iterator<Item = &str> {
    content.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

pub(crate) fn line_count(content: &str) -> usize {
    content.split_terminator('\n').count()
}

/// Whether every line of the text ends with CR LF.
pub(crate) fn is_crlf(content: &str) -> bool {
    let ends = content.matches('\n').count();
    ends > 0 && ends == content.matches("\r\n").count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn marks_decide_the_encoding_and_are_not_content() {
        let text = decode(b"\xef\xbb\xbfa\n".to_vec()).unwrap();
        assert_eq!((text.content.as_str(), text.encoding), ("a\n", Encoding::Utf8WithMark));
        let text = decode(b"\xff\xfea\0\xe9\0".to_vec()).unwrap();
        assert_eq!((text.content.as_str(), text.encoding), ("aé", Encoding::Utf16Le));
        let text = decode(b"\xfe\xff\0a".to_vec()).unwrap();
        assert_eq!((text.content.as_str(), text.encoding), ("a", Encoding::Utf16Be));
    }

    #[test]
    fn bytes_that_are_no_utf8_are_latin_and_zero_bytes_are_no_text() {
        let text = decode(b"caf\xe9 \x80".to_vec()).unwrap();
        assert_eq!((text.content.as_str(), text.encoding), ("café €", Encoding::Windows1252));
        assert_eq!(decode(b"a\0b".to_vec()), Err(NotText));
        assert_eq!(decode(vec![0x80, 1, 2, 3, 4]), Err(NotText));
    }

    #[test]
    fn a_character_cut_by_the_probe_is_still_utf8() {
        let mut content = "a".repeat(PROBE - 1);
        content.push('é');
        assert_eq!(decode(content.into_bytes()).unwrap().encoding, Encoding::Utf8);
    }

    #[test]
    fn what_an_encoding_lacks_is_named() {
        let error = Encoding::Windows1252.encode("é→").unwrap_err();
        assert!(error.to_string().contains('→'), "{error}");
    }

    #[test]
    fn line_ends_of_both_kinds_are_not_shown() {
        assert_eq!(lines("a\r\nb\nc").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(line_count("a\n\n"), 2);
        assert!(is_crlf("a\r\nb\r\n") && !is_crlf("a\r\nb\n") && !is_crlf("a"));
    }

    proptest! {
        #[test]
        fn latin_bytes_survive_a_round_trip(bytes in proptest::collection::vec(0x09_u8.., 0..200)) {
            if let Ok(text) = decode(bytes.clone())
                && !matches!(text.encoding, Encoding::Utf16Le | Encoding::Utf16Be)
            {
                prop_assert_eq!(text.encoding.encode(&text.content).unwrap(), bytes);
            }
        }

        #[test]
        fn text_survives_a_round_trip(content in "[^\u{feff}\0]*") {
            for encoding in [Encoding::Utf8WithMark, Encoding::Utf16Le, Encoding::Utf16Be] {
                let bytes = encoding.encode(&content).unwrap();
                prop_assert_eq!(decode(bytes).unwrap(), Text { content: content.clone(), encoding });
            }
        }
    }
}
