//! The content of a response, made readable.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use reqwest::StatusCode;
use url::Url;

use super::fetch::Response;
use super::html;

pub(super) struct WebPage {
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) content: Content,
    /// The number of bytes that were loaded.
    pub(super) size: usize,
    /// Whether there were more.
    pub(super) cut: bool,
}

pub(super) enum Content {
    Text(String),
    Image {
        media_type: String,
        bytes: Vec<u8>,
    },
    /// Content that is neither.
    Other {
        media_type: String,
    },
}

/// The types and the size of images that models accept.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const LARGEST_IMAGE: usize = 3_750_000;

impl WebPage {
    pub(super) async fn read(response: Response) -> Self {
        let Response { url, status, content_type, body, cut } = response;
        let size = body.len();
        let base = url.clone();
        // A large page takes a while to convert.
        let reading = tokio::task::spawn_blocking(move || read(content_type, body, cut, &base));
        let content = reading.await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a page could not be converted");
            Content::Other { media_type: "a page that cannot be converted".to_owned() }
        });
        Self { url, status, content, size, cut }
    }

    /// The memory that the page takes.
    pub(super) fn kept_size(&self) -> usize {
        match &self.content {
            Content::Text(text) => text.len(),
            Content::Image { bytes, .. } => bytes.len(),
            Content::Other { .. } => 0,
        }
    }
}

fn read(content_type: Option<String>, body: Vec<u8>, cut: bool, base: &Url) -> Content {
    let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
    let media_type = match content_type.split(';').next().unwrap_or_default().trim() {
        "" => guess(&body),
        named => named,
    };
    if IMAGES.contains(&media_type) && body.len() <= LARGEST_IMAGE && !cut {
        return Content::Image { media_type: media_type.to_owned(), bytes: body };
    }
    if !is_text(media_type) {
        return Content::Other { media_type: media_type.to_owned() };
    }
    let is_html = matches!(media_type, "text/html" | "application/xhtml+xml");
    let text = decode(&body, charset(&content_type), is_html);
    Content::Text(if is_html { html::to_markdown(&text, base) } else { text })
}

fn guess(body: &[u8]) -> &'static str {
    let start = body.get(..512).unwrap_or(body);
    if start.contains(&0) {
        "application/octet-stream"
    } else if start.trim_ascii_start().starts_with(b"<") {
        "text/html"
    } else {
        "text/plain"
    }
}

fn is_text(media_type: &str) -> bool {
    let (kind, name) = media_type.split_once('/').unwrap_or((media_type, ""));
    let suffix = name.rsplit('+').next().unwrap_or_default();
    kind == "text"
        || matches!(suffix, "json" | "xml" | "yaml" | "toml")
        || (kind == "application"
            && matches!(
                name.trim_start_matches("x-"),
                "javascript"
                    | "ecmascript"
                    | "typescript"
                    | "ndjson"
                    | "jsonl"
                    | "sh"
                    | "sql"
                    | "yaml"
                    | "toml"
                    | "httpd-php"
                    | "www-form-urlencoded"
                    | "graphql"
            ))
}

fn charset(content_type: &str) -> Option<&'static Encoding> {
    let (_, label) = content_type.split_once("charset=")?;
    let label = label.split(';').next()?.trim().trim_matches(['"', '\'']);
    Encoding::for_label(label.as_bytes())
}

/// Decodes text by the server's header, a byte order mark, the page's own declaration, and the bytes themselves, in
/// this order.
fn decode(bytes: &[u8], named: Option<&'static Encoding>, is_html: bool) -> String {
    let marked = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let declared = || is_html.then(|| declared(bytes)).flatten();
    let encoding = marked.or(named).or_else(declared).unwrap_or_else(|| {
        if is_html && str::from_utf8(bytes).is_err_and(|error| error.error_len().is_some()) {
            WINDOWS_1252
        } else {
            UTF_8
        }
    });
    encoding.decode(bytes).0.into_owned()
}

/// The charset in a page's `meta` element.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(bytes.get(..2_048).unwrap_or(bytes)).to_ascii_lowercase();
    head.match_indices("<meta").find_map(|(start, _)| {
        let (_, element) = head.split_at(start);
        let (_, label) = element.split_once('>')?.0.split_once("charset=")?;
        let label = label.trim_start_matches(['"', '\'', ' ']);
        let label = label.split(['"', '\'', ' ', ';', '/']).next()?;
        Encoding::for_label(label.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Url {
        "https://example.com/".parse().unwrap()
    }

    fn text(content_type: &str, body: &[u8]) -> String {
        match read(Some(content_type.to_owned()), body.to_vec(), false, &base()) {
            Content::Text(text) => text,
            _ => panic!("{content_type} is not text"),
        }
    }

    #[test]
    fn the_charset_is_found_wherever_it_is_said() {
        assert_eq!(text("text/plain; charset=ISO-8859-1", b"caf\xe9"), "café");
        assert_eq!(text("text/plain; charset=\"utf-8\"; x=y", "café".as_bytes()), "café");
        assert_eq!(text("text/html", b"<meta charset='iso-8859-1'>caf\xe9"), "café");
        let old = b"<META http-equiv=x content=\"text/html; charset=Shift_JIS\">\x83\x65";
        assert_eq!(text("text/html", old), "テ");
        assert_eq!(text("text/html", b"<p>caf\xe9</p>"), "café");
        assert_eq!(text("text/html", b"\xff\xfe<\0p\0>\0h\0i\0"), "hi");
        assert_eq!(text("text/plain", b"caf\xe9"), "caf\u{fffd}");
    }

    #[test]
    fn what_is_not_text_is_named() {
        let kind = |content_type: Option<&str>, body: &[u8]| match read(
            content_type.map(ToOwned::to_owned),
            body.to_vec(),
            false,
            &base(),
        ) {
            Content::Text(_) => "text".to_owned(),
            Content::Image { media_type, .. } | Content::Other { media_type } => media_type,
        };
        assert_eq!(kind(Some("application/pdf"), b"%PDF"), "application/pdf");
        assert_eq!(kind(Some("Image/PNG; x"), b""), "image/png");
        assert_eq!(kind(Some("application/vnd.api+json"), b"{}"), "text");
        assert_eq!(kind(Some("application/x-yaml"), b"a: 1"), "text");
        assert_eq!(kind(None, b"a\0b"), "application/octet-stream");
        assert_eq!(kind(None, b"plain"), "text");
        let large = read(Some("image/png".into()), vec![0; LARGEST_IMAGE + 1], false, &base());
        assert!(matches!(large, Content::Other { .. }));
    }
}
