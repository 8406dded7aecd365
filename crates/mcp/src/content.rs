//! Converts the results of a server into forms that a model can read.

use std::path::Path;

use centurion_protocol::ToolResultContent;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::bytes::Bytes;

/// The largest picture that providers accept: five megabytes, as base64.
const MOST_IMAGE: usize = 5 * 1024 * 1024 * 4 / 3;

/// The parts of a call's result.
pub(crate) fn of_result(result: &CallToolResult) -> Vec<ContentPart> {
    let mut content: Vec<_> = result.content.iter().map(part_of_block).collect();
    if content.is_empty()
        && let Some(structured) = &result.structured_content
    {
        content.push(text_part(structured.to_string()));
    }
    content
}

/// A part of what a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ContentPart {
    Shown(ToolResultContent),
    /// Bytes that no model can see.
    Hidden(Bytes),
}

impl ContentPart {
    /// The part in words where it cannot be shown.
    pub(crate) fn described(self) -> ToolResultContent {
        match self {
            Self::Shown(content) => content,
            Self::Hidden(bytes) => ToolResultContent::Text(bytes.description()),
        }
    }

    /// The same, with a file for what cannot be shown.
    pub(crate) async fn kept(self, directory: &Path) -> ToolResultContent {
        match self {
            Self::Shown(content) => content,
            Self::Hidden(bytes) => ToolResultContent::Text(bytes.keep(directory).await),
        }
    }
}

fn text_part(text: String) -> ContentPart {
    ContentPart::Shown(ToolResultContent::Text(text))
}

/// A result of unknown form, as its JSON.
pub(crate) fn of_unknown(result: &Value) -> Vec<ContentPart> {
    vec![text_part(result.to_string())]
}

/// A block of a prompt.
pub(crate) fn of_block(block: &ContentBlock) -> ToolResultContent {
    part_of_block(block).described()
}

fn part_of_block(block: &ContentBlock) -> ContentPart {
    match block {
        ContentBlock::Text(text) => text_part(text.text.clone()),
        ContentBlock::Image(image) => of_bytes("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => of_bytes("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => of_resource(&resource.resource),
        ContentBlock::ResourceLink(link) => {
            let mut text = format!("[resource {}: {}", link.name, link.uri);
            if let Some(kind) = &link.mime_type {
                text = format!("{text} ({kind})");
            }
            if let Some(description) = &link.description {
                text = format!("{text}: {description}");
            }
            text_part(text + "]")
        }
        other => text_part(serde_json::to_string(other).unwrap_or_default()),
    }
}

fn of_resource(resource: &ResourceContents) -> ContentPart {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => {
            text_part(format!("[resource {uri}]\n{text}"))
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.as_deref().unwrap_or("application/octet-stream");
            of_bytes(&format!("resource {uri}"), kind, blob)
        }
        other => text_part(serde_json::to_string(other).unwrap_or_default()),
    }
}

/// Bytes as base64: an image or a document where a model can see it.
fn of_bytes(what: &str, media_type: &str, data: &str) -> ContentPart {
    let (media_type, data) = (media_type.to_owned(), data.to_owned());
    match media_type.as_str() {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" if data.len() <= MOST_IMAGE => {
            ContentPart::Shown(ToolResultContent::Image { media_type, data })
        }
        "application/pdf" => ContentPart::Shown(ToolResultContent::Document { media_type, data }),
        _ => ContentPart::Hidden(Bytes { what: what.to_owned(), media_type, data }),
    }
}

/// All text of a result.
pub(crate) fn text(content: &[ToolResultContent]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        ToolResultContent::Text(text) => Some(text.as_str()),
        ToolResultContent::Image { .. } | ToolResultContent::Document { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parts(result: Value) -> Vec<ToolResultContent> {
        let parts = of_result(&serde_json::from_value(result).unwrap());
        parts.into_iter().map(ContentPart::described).collect()
    }

    #[test]
    fn every_kind_of_content_reaches_the_model_in_some_form() {
        let parts = parts(json!({ "content": [
            { "type": "text", "text": "hello" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "image", "data": "AAAA", "mimeType": "image/tiff" },
            { "type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "a:b", "text": "body" } },
            { "type": "resource", "resource": { "uri": "a:c", "blob": "AAAA", "mimeType": "application/pdf" } },
            { "type": "resource_link", "uri": "a:d", "name": "d", "mimeType": "text/plain", "description": "why" },
        ] }));
        let text = |text: &str| ToolResultContent::Text(text.to_owned());
        assert_eq!(
            parts,
            [
                text("hello"),
                ToolResultContent::Image { media_type: "image/png".into(), data: "AAAA".into() },
                text("[image of type image/tiff, 3 bytes, which cannot be shown]"),
                text("[audio of type audio/wav, 6 bytes, which cannot be shown]"),
                text("[resource a:b]\nbody"),
                ToolResultContent::Document {
                    media_type: "application/pdf".into(),
                    data: "AAAA".into()
                },
                text("[resource d: a:d (text/plain): why]"),
            ]
        );
    }

    #[test]
    fn structured_content_is_shown_where_there_is_nothing_else() {
        assert_eq!(
            parts(json!({ "content": [], "structuredContent": { "n": 1 } })),
            [ToolResultContent::Text("{\"n\":1}".into())]
        );
        assert_eq!(
            parts(
                json!({ "content": [{ "type": "text", "text": "one" }], "structuredContent": { "n": 1 } })
            ),
            [ToolResultContent::Text("one".into())]
        );
    }
}
