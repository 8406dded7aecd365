//! A message, serialised once and shared by every request that carries it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json_line;
use crate::{Block, ToolResultContent, ToolUseId};

/// Estimated tokens of a picture, whatever its bytes.
const IMAGE_TOKENS: usize = 1_600;
/// Estimated tokens of a kilobyte of a document; pages are not counted before the request is sent.
const DOCUMENT_TOKENS_PER_KILOBYTE: usize = 20;

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
    /// The offset in `wire` for a cache breakpoint in the last block, if that block may have one.
    breakpoint_at: Option<usize>,
    /// The same place in the last block that other conversations share, in the message with which a fork begins.
    shared_at: Option<usize>,
    /// An assistant's calls, or the calls that a user message answers.
    calls: Box<[ToolUseId]>,
    /// About how many tokens it has.
    tokens: usize,
    /// Boxed: most messages of a long conversation never need it.
    derived: OnceLock<Box<Derived>>,
}

/// Values derived from a message, computed on first use.
#[derive(Debug, Default)]
struct Derived {
    /// The message in another provider's wire format.
    foreign: OnceLock<Bytes>,
    digest: OnceLock<Digest>,
}

/// A digest of bytes that were sent.
pub type Digest = [u8; 32];

impl Message {
    /// A message of the given blocks.
    pub fn new(role: Role, blocks: &[Block]) -> Self {
        Self::with_shared(role, &[], blocks)
    }

    /// A message whose first blocks other conversations share: they take a cache breakpoint of their own.
    pub fn with_shared(role: Role, shared: &[Block], rest: &[Block]) -> Self {
        let mut buffer = BytesMut::new();
        let mut writer = MessageWriter::new(role, &mut buffer);
        for block in shared {
            writer.block(block);
        }
        writer.mark_shared();
        for block in rest {
            writer.block(block);
        }
        writer.finish()
    }

    /// A message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, &[Block::text(text)])
    }

    /// This message with the blocks of another of the same speaker behind its own.
    pub fn joined(&self, other: &Self) -> Self {
        let (head, tail) = (self.wire(), other.wire());
        let content = tail.iter().position(|byte| *byte == b'[').map_or(tail.len(), |at| at + 1);
        let mut wire = BytesMut::with_capacity(head.len() + tail.len());
        wire.put_slice(&head[..head.len() - 2]);
        wire.put_u8(b',');
        let moved = wire.len();
        wire.put_slice(&tail[content..]);
        Self(Arc::new(Inner {
            role: self.role(),
            wire: wire.freeze(),
            breakpoint_at: other.0.breakpoint_at.map(|at| at - content + moved),
            shared_at: self.0.shared_at,
            calls: self.calls().iter().chain(other.calls()).cloned().collect(),
            tokens: self.tokens() + other.tokens(),
            derived: OnceLock::new(),
        }))
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

    /// About how many tokens the message has: a guess for limits, not for bills.
    pub fn tokens(&self) -> usize {
        self.0.tokens
    }

    /// The offset for a cache breakpoint: just before the closing brace of the last block.
    pub fn breakpoint_at(&self) -> Option<usize> {
        self.0.breakpoint_at
    }

    /// The offset for the cache breakpoint that other conversations read.
    pub fn shared_at(&self) -> Option<usize> {
        self.0.shared_at
    }

    /// A digest of the wire form, made when first needed.
    pub fn digest(&self) -> &Digest {
        self.derived().digest.get_or_init(|| *blake3::hash(&self.0.wire).as_bytes())
    }

    /// The message in another wire format, rendered at the first request and then shared.
    pub fn foreign(&self, render: impl FnOnce(&Self) -> Bytes) -> &Bytes {
        self.derived().foreign.get_or_init(|| render(self))
    }

    fn derived(&self) -> &Derived {
        self.0.derived.get_or_init(Box::default)
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

/// Writes a message block by block into a buffer that many messages may share.
pub struct MessageWriter<'b> {
    role: Role,
    wire: &'b mut BytesMut,
    breakpoint_at: Option<usize>,
    shared_at: Option<usize>,
    calls: Vec<ToolUseId>,
    tokens: usize,
    blocks: usize,
}

/// The parts of a block that a message needs in order to be sent, found without parsing the whole block.
#[derive(Debug, Deserialize)]
pub struct BlockOutline<'a> {
    #[serde(rename = "type", borrow)]
    pub kind: Cow<'a, str>,
    /// The text of a text block, not parsed.
    #[serde(borrow, default)]
    pub text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    signature: Option<&'a RawValue>,
    #[serde(default)]
    id: Option<ToolUseId>,
    #[serde(default)]
    tool_use_id: Option<ToolUseId>,
}

impl<'a> BlockOutline<'a> {
    /// `None` for what is no block.
    pub fn read(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    pub fn is_thinking(&self) -> bool {
        self.kind.ends_with("thinking")
    }

    fn is_unsigned_thinking(&self) -> bool {
        let is_signed = |it: &RawValue| !matches!(it.get(), "\"\"" | "null");
        self.kind == "thinking" && !self.signature.is_some_and(is_signed)
    }

    fn call(&self) -> Option<&ToolUseId> {
        match &*self.kind {
            "tool_use" => self.id.as_ref(),
            "tool_result" => self.tool_use_id.as_ref(),
            _ => None,
        }
    }

    fn may_hold_media(&self) -> bool {
        matches!(&*self.kind, "image" | "document" | "tool_result")
    }
}

impl<'b> MessageWriter<'b> {
    /// Starts a message at the end of `wire`, which must be empty.
    pub fn new(role: Role, wire: &'b mut BytesMut) -> Self {
        wire.put_slice(match role {
            Role::User => &br#",{"role":"user","content":["#[..],
            Role::Assistant => br#",{"role":"assistant","content":["#,
        });
        Self {
            role,
            wire,
            breakpoint_at: None,
            shared_at: None,
            calls: Vec::new(),
            tokens: 4,
            blocks: 0,
        }
    }

    /// Notes that other conversations share what was written so far.
    pub fn mark_shared(&mut self) {
        self.shared_at = self.breakpoint_at;
    }

    /// A block. Thinking that its provider did not sign is left out: one that checks signatures refuses the request, and
    /// the others do not take thinking back.
    pub fn block(&mut self, block: &Block) {
        if matches!(block, Block::Thinking { signature, .. } if signature.is_empty()) {
            return;
        }
        let call = match block {
            Block::ToolUse(call) => Some(call.id.clone()),
            Block::ToolResult(result) => Some(result.id.clone()),
            _ => None,
        };
        let is_thinking = matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
        self.write(is_thinking, call, |wire| {
            // Writing blocks to memory cannot fail: their keys are strings.
            let start = wire.len();
            let _ = serde_json::to_writer((&mut *wire).writer(), block);
            // A transcript escapes these; a resumed conversation has to send the same bytes.
            if let Cow::Owned(escaped) = json_line::escape(&wire[start..]) {
                wire.truncate(start);
                wire.put_slice(&escaped);
            }
        });
        self.discount(block);
    }

    /// A block that is JSON already, and its outline; its bytes are kept. Unsigned thinking is left out.
    pub fn raw_block(&mut self, raw: &RawValue, outline: &BlockOutline<'_>) {
        if outline.is_unsigned_thinking() {
            return;
        }
        self.write(outline.is_thinking(), outline.call().cloned(), |wire| {
            wire.put_slice(raw.get().as_bytes());
        });
        if outline.may_hold_media()
            && raw.get().contains(r#""base64""#)
            && let Ok(block) = Block::parse(raw)
        {
            self.discount(&block);
        }
    }

    /// A text, given as a JSON string.
    pub fn raw_text(&mut self, raw: &RawValue) {
        self.write(false, None, |wire| {
            wire.put_slice(br#"{"type":"text","text":"#);
            wire.put_slice(raw.get().as_bytes());
            wire.put_u8(b'}');
        });
    }

    /// Whether nothing has been written yet.
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    fn write(
        &mut self,
        is_thinking: bool,
        call: Option<ToolUseId>,
        write: impl FnOnce(&mut BytesMut),
    ) {
        if self.blocks > 0 {
            self.wire.put_u8(b',');
        }
        let start = self.wire.len();
        write(self.wire);
        self.tokens += (self.wire.len() - start) / 4;
        // Providers refuse breakpoints on thinking.
        self.breakpoint_at = (!is_thinking).then(|| self.wire.len() - 1);
        self.calls.extend(call);
        self.blocks += 1;
    }

    /// Takes encoded pictures and documents out of the guess, and puts in what they are likely to cost.
    fn discount(&mut self, block: &Block) {
        let parts: Vec<(bool, usize)> = match block {
            Block::Image { data, .. } => vec![(true, data.len())],
            Block::Document { data, .. } => vec![(false, data.len())],
            Block::ToolResult(result) => result.content.iter().filter_map(attached).collect(),
            _ => return,
        };
        for (is_image, length) in parts {
            let likely =
                if is_image { IMAGE_TOKENS } else { length / 1024 * DOCUMENT_TOKENS_PER_KILOBYTE };
            self.tokens = self.tokens.saturating_sub(length / 4) + likely;
        }
    }

    pub fn finish(self) -> Message {
        self.wire.put_slice(b"]}");
        Message(Arc::new(Inner {
            role: self.role,
            wire: self.wire.split().freeze(),
            breakpoint_at: self.breakpoint_at,
            shared_at: self.shared_at,
            calls: self.calls.into(),
            tokens: self.tokens,
            derived: OnceLock::new(),
        }))
    }
}

fn attached(part: &ToolResultContent) -> Option<(bool, usize)> {
    match part {
        ToolResultContent::Text(_) => None,
        ToolResultContent::Image { data, .. } => Some((true, data.len())),
        ToolResultContent::Document { data, .. } => Some((false, data.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolResult;

    fn value(message: &Message) -> serde_json::Value {
        serde_json::from_slice(&message.wire()[1..]).unwrap()
    }

    fn spliced(message: &Message) -> serde_json::Value {
        let at = message.breakpoint_at().unwrap();
        let mut spliced = message.wire()[1..at].to_vec();
        spliced.extend_from_slice(br#","cache_control":{"type":"ephemeral"}"#);
        spliced.extend_from_slice(&message.wire()[at..]);
        serde_json::from_slice(&spliced).unwrap()
    }

    #[test]
    fn a_breakpoint_can_be_spliced_into_the_last_block() {
        let message = Message::new(Role::User, &[Block::text("one"), Block::text("two")]);
        let value = spliced(&message);
        assert_eq!(value["content"][1]["cache_control"]["type"], "ephemeral");
        assert!(value["content"][0].get("cache_control").is_none());
    }

    #[test]
    fn what_is_shared_has_a_place_for_a_breakpoint_of_its_own() {
        let shared = [Block::text("one"), Block::text("two")];
        let message = Message::with_shared(Role::User, &shared, &[Block::text("three")]);
        let at = message.shared_at().unwrap();
        assert!(
            message.wire()[..at].ends_with(b"\"two\"") && at < message.breakpoint_at().unwrap()
        );
        let joined = message.joined(&Message::user("four"));
        assert_eq!(joined.shared_at(), Some(at));
        assert_eq!(joined.wire()[..at], message.wire()[..at]);
        assert_eq!(Message::user("alone").shared_at(), None);
        assert_ne!(joined.digest(), message.digest());
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
        let mut buffer = BytesMut::new();
        let mut writer = MessageWriter::new(Role::Assistant, &mut buffer);
        writer.raw_block(&raw, &BlockOutline::read(&raw).unwrap());
        writer.raw_text(&serde_json::from_str::<Box<RawValue>>(r#""a\tb""#).unwrap());
        let message = writer.finish();
        assert!(std::str::from_utf8(message.wire()).unwrap().contains("1e2"));
        assert_eq!(message.calls(), [ToolUseId::new("t1")]);
        assert_eq!(value(&message)["content"][1]["text"], "a\tb");
    }

    #[test]
    fn messages_of_one_speaker_can_be_joined() {
        let result = ToolResult::text(ToolUseId::new("t"), "ok");
        let one = Message::new(Role::User, &[Block::ToolResult(result)]);
        let joined =
            one.joined(&Message::new(Role::User, &[Block::text("a [b]"), Block::text("c")]));
        assert_eq!(value(&joined)["content"].as_array().unwrap().len(), 3);
        assert_eq!(spliced(&joined)["content"][2]["cache_control"]["type"], "ephemeral");
        assert_eq!(joined.calls(), [ToolUseId::new("t")]);
    }

    #[test]
    fn a_picture_counts_as_a_picture_not_as_its_bytes() {
        let data = "A".repeat(4_000_000);
        let image = ToolResultContent::Image { media_type: "image/png".into(), data };
        let result = ToolResult { id: ToolUseId::new("t"), content: vec![image], is_error: false };
        let message = Message::new(Role::User, &[Block::ToolResult(result)]);
        assert!(message.tokens() < 2_000, "{}", message.tokens());
        assert!(Message::user("word ".repeat(4_000)).tokens() > 4_000);
    }
}
