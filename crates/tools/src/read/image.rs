//! Detects images and other binary files by their first bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use centurion_protocol::ToolResultContent;
use serde_json::json;

use super::Request;
use crate::ToolOutput;
use crate::read_state::View;

/// The largest image that providers accept: five megabytes in base64.
pub(super) const MAX_FILE: u64 = 5 * 1024 * 1024 / 4 * 3;

/// The media type of an image that a model can see.
pub(super) fn media_type(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if head.starts_with(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a") {
        Some("image/gif")
    } else if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

pub(super) fn read(request: &Request, media_type: &str, bytes: &[u8]) -> ToolOutput {
    let hash = request.remember(bytes, View::Whole);
    let encoded = STANDARD.encode(bytes);
    ToolOutput {
        data: json!({
            "type": "image",
            "file": {
                "base64": encoded,
                "filePath": request.named().to_string_lossy(), "type": media_type, "originalSize": bytes.len(),
                "contentHash": hash,
            },
        }),
        content: vec![ToolResultContent::Image {
            media_type: media_type.to_owned(),
            data: encoded,
        }],
    }
}

/// A name for a binary file.
pub(super) fn kind_of(head: &[u8]) -> &'static str {
    const KINDS: [(&[u8], &str); 16] = [
        (b"\x7fELF", "an ELF program or library"),
        (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
        (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
        (b"MZ", "a Windows program or library"),
        (b"\0asm", "a WebAssembly module"),
        (b"PK\x03\x04", "a ZIP archive (or an office document, a JAR, a wheel)"),
        (b"\x1f\x8b", "gzip data"),
        (b"BZh", "bzip2 data"),
        (b"\xfd7zXZ\0", "xz data"),
        (b"\x28\xb5\x2f\xfd", "Zstandard data"),
        (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"!<arch>\n", "a static library"),
        (b"BM", "a BMP image"),
        (b"II*\0", "a TIFF image"),
        (b"MM\0*", "a TIFF image"),
    ];
    KINDS.iter().find(|(magic, _)| head.starts_with(magic)).map_or("binary data", |(_, kind)| kind)
}
