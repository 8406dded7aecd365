//! From the bytes of a file to a text with plain line ends.

use std::borrow::Cow;

use encoding_rs::{Encoding, WINDOWS_1252};

/// Decodes what editors write: UTF-8, UTF-16 that says so in its first bytes, or else the one byte
/// encoding of older Windows editors. Marks at the beginning go, and every line ends with `\n`.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let text = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => {
            encoding.decode_without_bom_handling(bytes.get(length..).unwrap_or_default()).0
        }
        None => match str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => WINDOWS_1252.decode_without_bom_handling(bytes).0,
        },
    };
    if memchr::memchr(b'\r', text.as_bytes()).is_some() {
        return Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_editors_are_read() {
        let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2], mark: [u8; 2]| -> Vec<u8> {
            mark.into_iter().chain(text.encode_utf16().flat_map(bytes)).collect()
        };
        assert_eq!(decode(b"a\nb"), "a\nb");
        assert_eq!(decode(b"\xef\xbb\xbfa\r\nb\rc"), "a\nb\nc");
        assert_eq!(decode("ä😀".as_bytes()), "ä😀");
        assert_eq!(decode(&utf16("ä\n😀", u16::to_le_bytes, [0xff, 0xfe])), "ä\n😀");
        assert_eq!(decode(&utf16("ä\n😀", u16::to_be_bytes, [0xfe, 0xff])), "ä\n😀");
        assert_eq!(decode(b"caf\xe9 \x93x\x94"), "caf\u{e9} \u{201c}x\u{201d}");
        assert_eq!(decode(b""), "");
        assert!(matches!(decode(b"plain"), Cow::Borrowed(_)));
    }
}
