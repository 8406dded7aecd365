//! The content blocks of a message.
//!
//! Content from a provider goes back unchanged: the input of a call is kept as its JSON text,
//! thinking with its signature, and a block of an unknown kind as a whole.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::ToolUseId;

#[derive(Clone, Debug)]
pub enum Block {
    Text(String),
    Thinking { thinking: String, signature: String },
    RedactedThinking { data: String },
    ToolUse(ToolUse),
    ToolResult(ToolResult),
    Image { media_type: String, data: String },
    Document { media_type: String, data: String },
    Other(Box<RawValue>),
}

/// A call that the model asks for.
#[derive(Clone, Debug)]
pub struct ToolUse {
    pub id: ToolUseId,
    pub name: String,
    pub input: Box<RawValue>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct ToolResult {
    pub id: ToolUseId,
    pub content: Vec<ToolResultContent>,
    pub is_error: bool,
}

/// One part of a tool's result; `data` is base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolResultContent {
    Text(String),
    Image { media_type: String, data: String },
    Document { media_type: String, data: String },
}

impl ToolResultContent {
    /// The bytes of text in the block.
    pub fn text_length(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Image { .. } | Self::Document { .. } => 0,
        }
    }
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Reads one block from its JSON.
    pub fn parse(raw: &RawValue) -> Result<Self, serde_json::Error> {
        let mut fields: Fields<'_> = serde_json::from_str(raw.get())?;
        let kind = std::mem::take(&mut fields.kind);
        Ok(match (&*kind, fields) {
            ("text", Fields { text: Some(text), .. }) => Self::Text(text),
            ("thinking", Fields { thinking: Some(thinking), signature, .. }) => {
                Self::Thinking { thinking, signature: signature.unwrap_or_default() }
            }
            ("redacted_thinking", Fields { data: Some(data), .. }) => {
                Self::RedactedThinking { data }
            }
            ("tool_use", Fields { id: Some(id), name: Some(name), input: Some(input), .. }) => {
                Self::ToolUse(ToolUse { id, name, input: input.to_owned() })
            }
            ("tool_result", Fields { tool_use_id: Some(id), content, is_error, .. }) => {
                Self::ToolResult(ToolResult {
                    id,
                    content: content.map_or_else(|| Ok(Vec::new()), ToolResultContent::parse)?,
                    is_error: is_error.unwrap_or(false),
                })
            }
            (
                kind @ ("image" | "document"),
                Fields {
                    source: Some(Source { media_type: Some(media_type), data: Some(data) }),
                    ..
                },
            ) => {
                if kind == "image" {
                    Self::Image { media_type, data }
                } else {
                    Self::Document { media_type, data }
                }
            }
            _ => Self::Other(raw.to_owned()),
        })
    }
}

impl ToolResultContent {
    fn parse(raw: &RawValue) -> Result<Vec<Self>, serde_json::Error> {
        if let Ok(text) = serde_json::from_str::<String>(raw.get()) {
            return Ok(vec![Self::Text(text)]);
        }
        let parts: Vec<&RawValue> = serde_json::from_str(raw.get())?;
        parts
            .into_iter()
            .map(|part| {
                Ok(match Block::parse(part)? {
                    Block::Text(text) => Self::Text(text),
                    Block::Image { media_type, data } => Self::Image { media_type, data },
                    Block::Document { media_type, data } => Self::Document { media_type, data },
                    _ => Self::Text(part.get().to_owned()),
                })
            })
            .collect()
    }
}

impl ToolResult {
    pub fn text(id: ToolUseId, text: impl Into<String>) -> Self {
        Self { id, content: vec![ToolResultContent::Text(text.into())], is_error: false }
    }

    pub fn error(id: ToolUseId, text: impl Into<String>) -> Self {
        Self { id, content: vec![ToolResultContent::Text(text.into())], is_error: true }
    }
}

impl From<ToolResultContent> for Block {
    fn from(content: ToolResultContent) -> Self {
        match content {
            ToolResultContent::Text(text) => Self::Text(text),
            ToolResultContent::Image { media_type, data } => Self::Image { media_type, data },
            ToolResultContent::Document { media_type, data } => Self::Document { media_type, data },
        }
    }
}

/// Every field any known block has. A tagged enum cannot hold raw JSON, a plain struct can.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<ToolUseId>,
    tool_use_id: Option<ToolUseId>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
    source: Option<Source>,
}

#[derive(Deserialize)]
struct Source {
    media_type: Option<String>,
    data: Option<String>,
}

#[derive(Serialize)]
struct Base64<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl<'a> Base64<'a> {
    fn new(media_type: &'a str, data: &'a str) -> Self {
        Self { r#type: "base64", media_type, data }
    }
}

impl Serialize for Block {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Other(raw) = self {
            return raw.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Self::Thinking { thinking, signature } => {
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("thinking", thinking)?;
                map.serialize_entry("signature", signature)?;
            }
            Self::RedactedThinking { data } => {
                map.serialize_entry("type", "redacted_thinking")?;
                map.serialize_entry("data", data)?;
            }
            Self::ToolUse(call) => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", &call.id)?;
                map.serialize_entry("name", &call.name)?;
                map.serialize_entry("input", &call.input)?;
            }
            Self::ToolResult(result) => {
                map.serialize_entry("tool_use_id", &result.id)?;
                map.serialize_entry("type", "tool_result")?;
                match result.content.as_slice() {
                    [ToolResultContent::Text(text)] => map.serialize_entry("content", text)?,
                    parts => map.serialize_entry("content", parts)?,
                }
                if result.is_error {
                    map.serialize_entry("is_error", &true)?;
                }
            }
            Self::Image { media_type, data } => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("source", &Base64::new(media_type, data))?;
            }
            Self::Document { media_type, data } => {
                map.serialize_entry("type", "document")?;
                map.serialize_entry("source", &Base64::new(media_type, data))?;
            }
            Self::Other(_) => {}
        }
        map.end()
    }
}

impl Serialize for ToolResultContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Block::from(self.clone()).serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(json: &str) -> String {
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        serde_json::to_string(&Block::parse(&raw).unwrap()).unwrap()
    }

    #[test]
    fn what_a_provider_sent_goes_back_byte_for_byte() {
        for json in [
            r#"{"type":"text","text":"a\nb"}"#,
            r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#,
            r#"{"type":"redacted_thinking","data":"xyz"}"#,
            r#"{"type":"tool_use","id":"toolu_1","name":"Read","input":{"n":1e2, "big":12345678901234567890123,"s":"\/"}}"#,
            r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#,
            r#"{"tool_use_id":"t","type":"tool_result","content":"ok"}"#,
            r#"{"tool_use_id":"t","type":"tool_result","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}],"is_error":true}"#,
        ] {
            assert_eq!(round_trip(json), json);
        }
    }
}
