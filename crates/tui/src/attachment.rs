//! Images that go along with a prompt.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use centurion_protocol::Block;

/// The most bytes of an image, as providers take it.
const MOST_BYTES: usize = 3_750_000;

/// An image, ready to be sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Attachment {
    media_type: &'static str,
    data: String,
}

impl Attachment {
    /// The image that bytes are; the reason if they are none.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, NoImage> {
        let media_type = match bytes {
            [0x89, b'P', b'N', b'G', ..] => "image/png",
            [0xff, 0xd8, 0xff, ..] => "image/jpeg",
            [b'G', b'I', b'F', b'8', ..] => "image/gif",
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
            _ => return Err(NoImage::Unknown),
        };
        if bytes.len() > MOST_BYTES {
            return Err(NoImage::TooLarge(bytes.len()));
        }
        Ok(Self { media_type, data: BASE64_STANDARD.encode(bytes) })
    }

    pub(crate) fn block(&self) -> Block {
        Block::Image { media_type: self.media_type.to_owned(), data: self.data.clone() }
    }
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} of {} bytes", self.media_type, self.data.len())
    }
}

/// The reason why bytes are no image that can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoImage {
    #[error("no PNG, JPEG, GIF or WebP image")]
    Unknown,
    #[error("an image of {0} bytes is larger than 3.75 MB")]
    TooLarge(usize),
}

/// The path of an image that a terminal writes when a file is dragged onto it; `None` for any other text.
pub(crate) fn dragged_image(pasted: &str) -> Option<String> {
    const ENDS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];
    // A longer text is no path.
    let text = pasted.trim();
    if text.len() >= 4096 {
        return None;
    }
    let quoted = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    let path = match quoted('\'').or_else(|| quoted('"')) {
        Some(path) => path.to_owned(),
        None => text.strip_prefix("file://").unwrap_or(text).replace("\\ ", " "),
    };
    let is_path = path.starts_with('/') || path.starts_with("~/") || path.starts_with("./");
    let lower = path.to_lowercase();
    let is_image = ENDS.iter().any(|end| lower.ends_with(end));
    (is_path && is_image && !path.contains('\n')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dragged_path_is_an_image_and_a_text_is_none() {
        for (text, path) in [
            ("/tmp/a.png", Some("/tmp/a.png")),
            ("'/tmp/my shot.PNG' ", Some("/tmp/my shot.PNG")),
            ("/tmp/my\\ shot.jpeg", Some("/tmp/my shot.jpeg")),
            ("file:///tmp/a.webp", Some("/tmp/a.webp")),
            ("see /tmp/a.png", None),
            ("/tmp/a.rs", None),
            ("/tmp/a.png\nand more", None),
        ] {
            assert_eq!(dragged_image(text).as_deref(), path, "{text}");
        }
    }

    #[test]
    fn bytes_tell_what_they_are() {
        assert_eq!(Attachment::of_bytes(b"hello"), Err(NoImage::Unknown));
        let image = Attachment::of_bytes(b"\x89PNG\r\n\x1a\n").unwrap();
        assert!(
            matches!(image.block(), Block::Image { media_type, .. } if media_type == "image/png")
        );
        let large = [b"\x89PNG".as_slice(), &vec![0; MOST_BYTES]].concat();
        assert_eq!(Attachment::of_bytes(&large), Err(NoImage::TooLarge(large.len())));
    }
}
