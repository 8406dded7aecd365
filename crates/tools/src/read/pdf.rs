//! PDF files: whole when short, else the requested pages.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use centurion_protocol::ToolResultContent;
use lopdf::{Dictionary, Document, LoadOptions, Object, ObjectId, dictionary};
use serde_json::json;

use super::Request;
use crate::disk::human_size;
use crate::read_state::View;
use crate::{ToolError, ToolOutput};

/// The largest file that is opened.
pub(super) const MAX_FILE: u64 = 32 * 1024 * 1024;

/// The largest document that is sent: 32 MB in base64.
const MAX_SENT: usize = 24 * 1024 * 1024;

/// The most pages that are sent without a request for pages.
const MAX_WHOLE: usize = 10;

/// The most pages of one call.
const MAX_PAGES: usize = 20;

/// The largest unpacked size of a stream: a page tree never needs more, a decompression bomb does.
const MAX_UNPACKED: usize = 64 * 1024 * 1024;

/// The largest depth of a page tree.
const MAX_DEPTH: usize = 64;

/// Pages, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageRange {
    first: usize,
    /// `None` is the end of the file.
    last: Option<usize>,
}

impl PageRange {
    pub(super) fn parse(text: &str) -> Result<Self, ToolError> {
        let wrong = || {
            ToolError::Input(format!("pages is \"{text}\": write it like \"3\", \"1-5\" or \"7-\""))
        };
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let range = match text.split_once('-') {
            None => {
                let page = number(text)?;
                Self { first: page, last: Some(page) }
            }
            Some((first, last)) if last.trim().is_empty() => {
                Self { first: number(first)?, last: None }
            }
            Some((first, last)) => Self { first: number(first)?, last: Some(number(last)?) },
        };
        if range.first == 0 || range.last.is_some_and(|last| last < range.first) {
            return Err(wrong());
        }
        Ok(range)
    }

    /// The first and the last page in a file of `count` pages.
    fn within(self, count: usize) -> Result<(usize, usize), ToolError> {
        if self.first > count {
            return Err(ToolError::failed(format!(
                "there is no page {}: the file has {count}",
                self.first
            )));
        }
        let last = self.last.unwrap_or(count).min(count);
        if last + 1 - self.first > MAX_PAGES {
            return Err(ToolError::failed(format!(
                "these are {} pages, and one call gives at most {MAX_PAGES} (the file has {count})",
                last + 1 - self.first
            )));
        }
        Ok((self.first, last))
    }
}

pub(super) fn read(request: &Request, bytes: Vec<u8>) -> Result<ToolOutput, ToolError> {
    let path = request.named().display();
    let document = load(request, &bytes)?;
    let pages: Vec<ObjectId> = document.page_iter().collect();
    let count = pages.len();
    if count == 0 {
        return Err(ToolError::failed(format!("{path} is damaged: no page can be found in it")));
    }
    let (first, last) = match request.pages {
        Some(range) => range.within(count)?,
        None if count <= MAX_WHOLE => (1, count),
        None => {
            return Err(ToolError::failed(format!(
                "{path} has {count} pages: choose some with pages, at most {MAX_PAGES} at a time"
            )));
        }
    };
    let hash = request.remember(&bytes, View::Whole);
    let original_size = bytes.len();
    let sent = if (first, last) == (1, count) {
        bytes
    } else {
        let chosen = pages.get(first - 1..last).unwrap_or_default();
        extract(&document, chosen, &pages).map_err(|error| broken(request, &error))?
    };
    if sent.len() > MAX_SENT {
        return Err(ToolError::failed(format!(
            "pages {first}-{last} of {path} have {}, more than {}: choose fewer pages",
            human_size(sent.len() as u64),
            human_size(MAX_SENT as u64),
        )));
    }
    Ok(ToolOutput {
        content: vec![
            ToolResultContent::Text(format!("Pages {first}-{last} of {count} of {path}:")),
            ToolResultContent::Document {
                media_type: "application/pdf".to_owned(),
                data: STANDARD.encode(sent),
            },
        ],
        data: json!({
            "type": "pdf",
            "file": {
                "filePath": request.named().to_string_lossy(), "originalSize": original_size,
                "firstPage": first, "lastPage": last, "totalPages": count,
                "contentHash": hash,
            },
        }),
    })
}

fn load(request: &Request, bytes: &[u8]) -> Result<Document, ToolError> {
    let options = LoadOptions::with_max_decompressed_size(MAX_UNPACKED);
    match Document::load_mem_with_options(bytes, options) {
        Ok(document) if document.was_encrypted() || document.trailer.has(b"Encrypt") => {
            Err(encrypted(request))
        }
        Err(lopdf::Error::Decryption(_) | lopdf::Error::InvalidPassword) => Err(encrypted(request)),
        loaded => loaded.map_err(|error| broken(request, &error)),
    }
}

fn broken(request: &Request, error: &lopdf::Error) -> ToolError {
    ToolError::failed(format!(
        "{} cannot be read as a PDF file: {error}",
        request.named().display()
    ))
}

fn encrypted(request: &Request) -> ToolError {
    ToolError::failed(format!(
        "{} is encrypted: decrypt it first, as with `qpdf --decrypt`",
        request.named().display()
    ))
}

/// A document of the chosen pages alone, with everything that they use.
fn extract(
    document: &Document,
    chosen: &[ObjectId],
    all_pages: &[ObjectId],
) -> Result<Vec<u8>, lopdf::Error> {
    let all_pages: HashSet<ObjectId> = all_pages.iter().copied().collect();
    let tree = (document.max_id + 1, 0);
    let catalog = (document.max_id + 2, 0);
    let mut extract = Document::with_version(document.version.clone());
    let mut wanted = Vec::new();
    for page in chosen {
        let mut page_dictionary = inherited(document, *page)?;
        page_dictionary.set("Parent", tree);
        let object = Object::Dictionary(page_dictionary);
        references(&object, &mut wanted);
        extract.objects.insert(*page, object);
    }
    while let Some(id) = wanted.pop() {
        if all_pages.contains(&id) || extract.objects.contains_key(&id) {
            continue;
        }
        let Ok(object) = document.get_object(id) else { continue };
        // A reference back into the page tree would bring the other pages with it.
        let kind = object.as_dict().and_then(Dictionary::get_type).unwrap_or_default();
        if matches!(kind, b"Pages" | b"Catalog") {
            continue;
        }
        references(object, &mut wanted);
        extract.objects.insert(id, object.clone());
    }
    let kids: Vec<Object> = chosen.iter().map(|page| Object::Reference(*page)).collect();
    let count = i64::try_from(kids.len()).unwrap_or_default();
    let pages = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count };
    extract.objects.insert(tree, Object::Dictionary(pages));
    let root = dictionary! { "Type" => "Catalog", "Pages" => tree };
    extract.objects.insert(catalog, Object::Dictionary(root));
    extract.trailer.set("Root", catalog);
    extract.max_id = catalog.0;
    let mut bytes = Vec::new();
    extract.save_to(&mut bytes)?;
    Ok(bytes)
}

/// A page with the attributes that it inherits from the nodes above it.
fn inherited(document: &Document, page: ObjectId) -> Result<Dictionary, lopdf::Error> {
    let mut dictionary = document.get_dictionary(page)?.clone();
    let mut parent = dictionary.get(b"Parent").and_then(Object::as_reference);
    for _ in 0..MAX_DEPTH {
        let Ok(node) = parent.and_then(|id| document.get_dictionary(id)) else { break };
        for key in ["Resources", "MediaBox", "CropBox", "Rotate"] {
            if !dictionary.has(key.as_bytes())
                && let Ok(value) = node.get(key.as_bytes())
            {
                dictionary.set(key, value.clone());
            }
        }
        parent = node.get(b"Parent").and_then(Object::as_reference);
    }
    Ok(dictionary)
}

/// Adds every object that this one refers to.
fn references(object: &Object, found: &mut Vec<ObjectId>) {
    let mut open = vec![object];
    while let Some(object) = open.pop() {
        match object {
            Object::Reference(id) => found.push(*id),
            Object::Array(items) => open.extend(items),
            Object::Dictionary(dictionary) => {
                open.extend(dictionary.iter().map(|(_, value)| value));
            }
            Object::Stream(stream) => open.extend(stream.dict.iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_ranges_are_read() {
        let range = |first, last| PageRange { first, last };
        assert_eq!(PageRange::parse("3").unwrap(), range(3, Some(3)));
        assert_eq!(PageRange::parse(" 1 - 5 ").unwrap(), range(1, Some(5)));
        assert_eq!(PageRange::parse("7-").unwrap(), range(7, None));
        for wrong in ["", "0", "5-1", "-3", "a", "1-b", "1,2"] {
            assert!(PageRange::parse(wrong).is_err(), "{wrong}");
        }
        assert!(range(1, None).within(20).is_ok());
        assert!(range(1, None).within(21).is_err());
        assert!(range(5, None).within(4).is_err());
        assert_eq!(range(3, Some(99)).within(4).unwrap(), (3, 4));
    }
}
