//! A message, serialised once and shared by every request that carries it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Block, ToolUseId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    User,
    Assistant,
}

/// One immutable message. Cloning it copies a pointer.
#[derive(Clone, Debug)]
pub struct Message(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    role: Role,
    /// `,{"role":…,"content":[…]}`. The comma is part of it, so that a request is a plain
    /// concatenation of shared chunks.
    wire: Bytes,
    /// Where in `wire` a cache breakpoint can be put into the last block, if that block may have one.
    breakpoint_at: Option<usize>,
    /// An assistant's calls, or the calls that a user message answers.
    calls: Box<[ToolUseId]>,
    /// The same message in another provider's wire format, made when first needed.
    foreign: OnceLock<Bytes>,
}

/// What a message must know of a block to be sent, found without reading the whole block.
#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    id: Option<ToolUseId>,
    tool_use_id: Option<ToolUseId>,
}

impl Message {
    /// A message of the given blocks.
    pub fn new(role: Role, blocks: &[Block]) -> Self {
        let mut writer = Writer::new(role);
        for block in blocks {
            let (kind, call) = match block {
                Block::ToolUse(call) => ("tool_use", Some(call.id.clone())),
                Block::ToolResult(result) => ("tool_result", Some(result.id.clone())),
                Block::Thinking { .. } | Block::RedactedThinking { .. } => ("thinking", None),
                _ => ("other", None),
            };
            writer.block(kind, call, |wire| {
                // Writing blocks to memory cannot fail: their keys are strings.
                drop(serde_json::to_writer(wire, block));
            });
        }
        writer.finish()
    }

    /// A message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, &[Block::text(text)])
    }

    /// A message of blocks that are JSON already; their bytes are kept.
    pub fn from_raw(role: Role, blocks: &[&RawValue]) -> Result<Self, serde_json::Error> {
        let mut writer = Writer::new(role);
        for raw in blocks {
            let outline: Outline<'_> = serde_json::from_str(raw.get())?;
            let call = match &*outline.kind {
                "tool_use" => outline.id,
                "tool_result" => outline.tool_use_id,
                _ => None,
            };
            let kind = if outline.kind.ends_with("thinking") { "thinking" } else { &outline.kind };
            writer.block(kind, call, |wire| wire.extend_from_slice(raw.get().as_bytes()));
        }
        Ok(writer.finish())
    }

    pub fn role(&self) -> Role {
        self.0.role
    }

    /// The calls an assistant message makes, or those a user message answers.
    pub fn calls(&self) -> &[ToolUseId] {
        &self.0.calls
    }

    /// The message in the Messages API's form, with a leading comma.
    pub fn wire(&self) -> &Bytes {
        &self.0.wire
    }

    /// Where a cache breakpoint goes: just before the closing brace of the last block.
    pub fn breakpoint_at(&self) -> Option<usize> {
        self.0.breakpoint_at
    }

    /// The message in another wire format, rendered at the first request and then shared.
    pub fn foreign(&self, render: impl FnOnce(&Self) -> Bytes) -> &Bytes {
        self.0.foreign.get_or_init(|| render(self))
    }

    /// The blocks, read back from the wire form.
    pub fn blocks(&self) -> Vec<Block> {
        #[derive(Deserialize)]
        struct Content<'a> {
            #[serde(borrow)]
            content: Vec<&'a RawValue>,
        }
        serde_json::from_slice::<Content<'_>>(&self.0.wire[1..])
            .map(|message| message.content)
            .unwrap_or_default()
            .into_iter()
            .filter_map(|raw| Block::parse(raw).ok())
            .collect()
    }
}

/// Builds the wire form block by block.
struct Writer {
    role: Role,
    wire: Vec<u8>,
    breakpoint_at: Option<usize>,
    calls: Vec<ToolUseId>,
}

impl Writer {
    fn new(role: Role) -> Self {
        let head = match role {
            Role::User => &br#",{"role":"user","content":["#[..],
            Role::Assistant => br#",{"role":"assistant","content":["#,
        };
        Self { role, wire: head.to_vec(), breakpoint_at: None, calls: Vec::new() }
    }

    fn block(&mut self, kind: &str, call: Option<ToolUseId>, write: impl FnOnce(&mut Vec<u8>)) {
        if self.wire.last() != Some(&b'[') {
            self.wire.push(b',');
        }
        write(&mut self.wire);
        // Providers refuse breakpoints on thinking.
        self.breakpoint_at = (kind != "thinking").then(|| self.wire.len() - 1);
        self.calls.extend(call);
    }

    fn finish(mut self) -> Message {
        self.wire.extend_from_slice(b"]}");
        Message(Arc::new(Inner {
            role: self.role,
            wire: self.wire.into(),
            breakpoint_at: self.breakpoint_at,
            calls: self.calls.into(),
            foreign: OnceLock::new(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_can_be_spliced_into_the_last_block() {
        let message = Message::new(Role::User, &[Block::text("one"), Block::text("two")]);
        let at = message.breakpoint_at().unwrap();
        let mut spliced = message.wire()[1..at].to_vec();
        spliced.extend_from_slice(br#","cache_control":{"type":"ephemeral"}"#);
        spliced.extend_from_slice(&message.wire()[at..]);
        let value: serde_json::Value = serde_json::from_slice(&spliced).unwrap();
        assert_eq!(value["content"][1]["cache_control"]["type"], "ephemeral");
        assert!(value["content"][0].get("cache_control").is_none());
    }

    #[test]
    fn thinking_takes_no_breakpoint() {
        let thinking = Block::Thinking { thinking: "x".into(), signature: "y".into() };
        assert!(Message::new(Role::Assistant, &[thinking]).breakpoint_at().is_none());
    }

    #[test]
    fn raw_blocks_keep_their_bytes_and_their_calls() {
        let raw = r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"n":1e2}}"#;
        let raw: Box<RawValue> = serde_json::from_str(raw).unwrap();
        let message = Message::from_raw(Role::Assistant, &[&raw]).unwrap();
        assert!(std::str::from_utf8(message.wire()).unwrap().contains("1e2"));
        assert_eq!(message.calls(), [ToolUseId::new("t1")]);
        assert_eq!(message.blocks().len(), 1);
    }
}
