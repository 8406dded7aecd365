//! The messages of a conversation, made of the records of a transcript: results without calls, calls without results and
//! blocks that a provider would refuse become a valid history here.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use bytes::BytesMut;
use centurion_protocol::transcript::{BoundaryData, LineKind, LineView, PreservedMessages};
use centurion_protocol::{
    Block, BlockOutline, Conversation, Message, MessageWriter, RecordId, Role, ToolUseId,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::round::Round;
use super::standing::StandingView;
use super::{
    InheritedConversation, Loaded, PLAN, PlanView, TODOS, agent, boundary, has_field, interrupted,
    plan, seen_file, todos,
};

/// Gathers records into messages: consecutive records of one speaker are one message, as they were when
/// they were sent.
pub(super) struct History<'a> {
    /// The whole transcript, and what stands in it before the last boundary.
    text: &'a [u8],
    before: &'a [u8],
    pub(super) loaded: Loaded,
    standing: StandingView<'a>,
    /// Results that may hold lists of things to do, oldest first.
    lists: Vec<&'a RawValue>,
    /// The record that is being read.
    record: Option<RecordId>,
    /// The earlier records that come behind a record which is still to come.
    preserved: Option<PreservedMessages>,
    pending: Option<Pending<'a>>,
    /// The number of blocks of the next message that other agents share.
    shared_blocks: usize,
    /// All messages are written into one buffer, which they then share.
    buffer: BytesMut,
}

struct Pending<'a> {
    role: Role,
    /// The answer that an assistant's blocks belong to.
    id: Option<Cow<'a, str>>,
    pieces: Vec<Piece<'a>>,
    /// The records that they come from.
    records: Vec<RecordId>,
    /// The provider's count for the answer.
    counted: Option<u64>,
}

/// A part of a message, with its bytes as they stand in the file where possible.
enum Piece<'a> {
    /// A JSON string.
    Text(&'a RawValue),
    Block(&'a RawValue, BlockOutline<'a>),
    Owned(Block),
}

impl<'a> History<'a> {
    pub(super) fn behind(inherited: &InheritedConversation, text: &'a [u8]) -> Self {
        // Messages are about a fifth of a transcript; the buffer grows where they are more.
        let buffer = BytesMut::with_capacity(text.len() / 4);
        let conversation = inherited.conversation.clone();
        Self {
            text,
            before: &[],
            loaded: Loaded { conversation, ..Loaded::default() },
            standing: StandingView::default(),
            lists: Vec::new(),
            record: None,
            preserved: None,
            pending: None,
            shared_blocks: inherited.shared_blocks,
            buffer,
        }
    }

    /// Takes a line that is no part of the conversation.
    pub(super) fn take_note(&mut self, view: &LineView<'a>) {
        if let Some(title) = view.title() {
            self.loaded.title = Some(title.to_owned());
        } else if let Some(agent) = agent(view) {
            self.loaded.agent = Some(agent);
        }
    }

    /// Takes a record of the chain.
    pub(super) fn take(&mut self, view: &LineView<'a>) {
        self.loaded.last = view.uuid.or(self.loaded.last);
        self.lists.extend(view.tool_use_result.filter(|result| has_field(result, TODOS)));
        if let Some(plan) = view.tool_use_result.filter(|it| has_field(it, PLAN)).and_then(plan) {
            let loaded = &mut self.loaded;
            match plan {
                PlanView::Proposed(plan) => loaded.proposed_plans.push(plan),
                PlanView::Approved(plan) => {
                    (loaded.plan, loaded.proposed_plans) = (Some(plan), Vec::new());
                }
            }
        }
        match view.boundary() {
            Some(data) => self.begin_anew(view, data),
            None => self.take_record(view),
        }
        let is_anchor = |it: &mut PreservedMessages| Some(it.anchor_uuid) == view.uuid;
        for record in self.preserved.take_if(is_anchor).map(|it| it.uuids).unwrap_or_default() {
            if let Some(mut view) = boundary::find(self.before, record) {
                // The provider's count included everything that is left out now.
                if let Some(message) = &mut view.message {
                    message.usage = None;
                }
                self.take_record(&view);
            }
        }
    }

    /// Drops the history before a boundary: it is not sent any more.
    fn begin_anew(&mut self, view: &LineView<'a>, data: BoundaryData) {
        let id = view.uuid.and_then(|id| boundary::place(self.text, id));
        self.before = &self.text[..id.unwrap_or(self.text.len())];
        self.loaded.conversation = Conversation::default();
        self.loaded.counted = None;
        self.loaded.interrupted.clear();
        self.loaded.round = Round::default();
        self.loaded.dropped_tokens = data.cumulative_dropped_tokens;
        self.loaded.todos = data.todos;
        self.loaded.plan = data.plan;
        self.lists.clear();
        self.standing = StandingView::default();
        self.preserved = data.preserved_messages;
        self.pending = None;
        self.shared_blocks = 0;
    }

    /// Takes a record of the conversation; one that cannot be understood is counted as broken.
    fn take_record(&mut self, view: &LineView<'a>) {
        self.standing.take(view);
        self.record = view.uuid;
        let understood = match view.kind {
            LineKind::Attachment => self.attachment(view),
            LineKind::User => self.message(Role::User, view),
            LineKind::Assistant => self.message(Role::Assistant, view),
            LineKind::Other => Some(()),
        };
        if understood.is_none() {
            self.loaded.broken_lines += 1;
        }
    }

    fn attachment(&mut self, view: &LineView<'a>) -> Option<()> {
        #[derive(Deserialize)]
        struct Part<'a> {
            #[serde(borrow)]
            content: &'a RawValue,
        }
        if view.rendered_role.as_deref() != Some("user") {
            return Some(());
        }
        let parts: Vec<Part<'a>> = serde_json::from_str(view.rendered?.get()).ok()?;
        for part in parts {
            self.content(Role::User, None, part.content)?;
        }
        Some(())
    }

    fn message(&mut self, role: Role, view: &LineView<'a>) -> Option<()> {
        let message = view.message.as_ref()?;
        if role == Role::Assistant && message.model.as_deref() == Some("<synthetic>") {
            return Some(());
        }
        self.loaded.seen_files.extend(seen_file(view));
        self.content(role, message.id.clone(), message.content)?;
        if role == Role::Assistant {
            if let Some(model) = message.model.as_deref()
                && self.loaded.model.as_deref() != Some(model)
            {
                self.loaded.model = Some(model.to_owned());
            }
            if let Some(pending) = &mut self.pending {
                let total = message.usage.map(|usage| usage.total()).filter(|total| *total > 0);
                pending.counted = total.or(pending.counted);
            }
        }
        Some(())
    }

    /// Takes the content of a message: a JSON string, or a list of blocks.
    fn content(
        &mut self,
        role: Role,
        id: Option<Cow<'a, str>>,
        content: &'a RawValue,
    ) -> Option<()> {
        if is_text(content) {
            if !is_blank(content) {
                self.push(role, id, Piece::Text(content));
            }
            return Some(());
        }
        let blocks: Vec<&'a RawValue> = serde_json::from_str(content.get()).ok()?;
        for block in blocks {
            if let Some(outline) = BlockOutline::read(block)
                && !is_unfit(role, block, &outline)
            {
                self.push(role, id.clone(), Piece::Block(block, outline));
            }
        }
        Some(())
    }

    fn push(&mut self, role: Role, id: Option<Cow<'a, str>>, piece: Piece<'a>) {
        match &mut self.pending {
            Some(pending) if pending.role == role && (role == Role::User || pending.id == id) => {
                pending.pieces.push(piece);
                pending.records.extend(self.record.filter(|it| pending.records.last() != Some(it)));
            }
            _ => {
                self.flush();
                let records = self.record.into_iter().collect();
                let pieces = vec![piece];
                self.pending = Some(Pending { role, id, pieces, records, counted: None });
            }
        }
    }

    fn flush(&mut self) {
        let Some(mut pending) = self.pending.take() else { return };
        self.loaded.interrupted.clear();
        // An answer that was cut off after its thinking has said nothing yet, and providers refuse it.
        while pending.role == Role::Assistant
            && pending.pieces.last().is_some_and(Piece::is_thinking)
        {
            pending.pieces.pop();
        }
        match pending.role {
            Role::User => self.loaded.round.extend(&pending.records),
            Role::Assistant if pending.pieces.is_empty() => {}
            Role::Assistant => {
                let answer = pending.id.as_deref().unwrap_or_default();
                self.loaded.round.begin(answer, &pending.records);
            }
        }
        // The fast path keeps the bytes as they are; only a history with a gap is taken apart.
        let message = self.write(pending.role, &pending.pieces);
        let follows = pending.role == Role::Assistant
            || message.calls() == self.loaded.conversation.open_calls();
        if !follows || self.loaded.conversation.push(message.clone()).is_err() {
            match pending.role {
                Role::Assistant => self.push_answer(&message),
                Role::User => self.push_results(&message),
            }
        }
        if let Some(total) = pending.counted {
            self.loaded.counted = Some((total, self.loaded.conversation.tokens()));
        }
    }

    fn write(&mut self, role: Role, pieces: &[Piece<'a>]) -> Message {
        let shared = std::mem::take(&mut self.shared_blocks);
        let mut writer = MessageWriter::new(role, &mut self.buffer);
        for (n, piece) in pieces.iter().enumerate() {
            if n > 0 && n == shared {
                writer.mark_shared();
            }
            match piece {
                Piece::Text(text) => writer.raw_text(text),
                Piece::Block(block, outline) => writer.raw_block(block, outline),
                Piece::Owned(block) => writer.block(block),
            }
        }
        if pieces.len() == shared {
            writer.mark_shared();
        }
        writer.finish()
    }

    fn write_blocks(&mut self, role: Role, blocks: Vec<Block>) {
        let pieces: Vec<Piece<'a>> = blocks.into_iter().map(Piece::Owned).collect();
        let message = self.write(role, &pieces);
        // A message that still does not fit has nothing that could be kept.
        let _ = self.loaded.conversation.push(message);
    }

    /// Pushes an answer that cannot follow directly: open calls are closed first, calls made twice are
    /// dropped, and an answer at the very start is left out.
    fn push_answer(&mut self, message: &Message) {
        let open: Vec<Block> =
            self.loaded.conversation.open_calls().iter().map(interrupted).collect();
        if !open.is_empty() {
            self.write_blocks(Role::User, open);
        }
        let mut seen = HashSet::new();
        let mut blocks = message.blocks();
        blocks.retain(
            |block| !matches!(block, Block::ToolUse(call) if !seen.insert(call.id.clone())),
        );
        self.write_blocks(Role::Assistant, blocks);
    }

    /// Pushes results and texts so that exactly the open calls are answered, in the order of the calls.
    fn push_results(&mut self, message: &Message) {
        let mut results: HashMap<ToolUseId, Block> = HashMap::new();
        let mut rest = Vec::new();
        for block in message.blocks() {
            match block {
                Block::ToolResult(result) => {
                    results.entry(result.id.clone()).or_insert(Block::ToolResult(result));
                }
                other => rest.push(other),
            }
        }
        let open = self.loaded.conversation.open_calls().to_vec();
        if rest.is_empty() {
            let missing = open.iter().filter(|id| !results.contains_key(id));
            self.loaded.interrupted = missing.cloned().collect();
        }
        let answer = |id: &ToolUseId| results.remove(id).unwrap_or_else(|| interrupted(id));
        let blocks: Vec<Block> = open.iter().map(answer).chain(rest).collect();
        self.write_blocks(Role::User, blocks);
    }

    pub(super) fn finish(mut self) -> Loaded {
        self.flush();
        self.loaded.standing = self.standing.read();
        let listed = self.lists.into_iter().rev().find_map(todos);
        self.loaded.todos = listed.or(self.loaded.todos);
        self.loaded
    }
}

impl Piece<'_> {
    fn is_thinking(&self) -> bool {
        match self {
            Self::Block(_, outline) => outline.is_thinking(),
            Self::Text(_) | Self::Owned(_) => false,
        }
    }
}

/// Whether a JSON string has nothing to read in it.
fn is_blank(text: &RawValue) -> bool {
    may_be_blank(text.get())
        && serde_json::from_str::<String>(text.get()).is_ok_and(|text| text.trim().is_empty())
}

/// A look at the first character of a JSON string spares nearly all strings the reading.
fn may_be_blank(json: &str) -> bool {
    matches!(json.as_bytes().get(1), None | Some(b'"' | b' ' | b'\\' | 0x80..))
}

/// Whether a provider would refuse a block from this speaker: only a model makes calls and thinks, only a user
/// message answers calls, no text is blank, and a block must be what it says it is.
fn is_unfit(role: Role, block: &RawValue, outline: &BlockOutline<'_>) -> bool {
    let is_fit = match (&*outline.kind, role) {
        ("text", _) => outline.text.is_some_and(|text| is_text(text) && !is_blank(text)),
        ("tool_use", Role::Assistant) => matches!(Block::parse(block), Ok(Block::ToolUse(_))),
        ("tool_result", Role::User) => matches!(Block::parse(block), Ok(Block::ToolResult(_))),
        ("thinking", Role::Assistant) => {
            matches!(Block::parse(block), Ok(Block::Thinking { .. }))
        }
        ("redacted_thinking", Role::Assistant) => {
            matches!(Block::parse(block), Ok(Block::RedactedThinking { .. }))
        }
        ("tool_use" | "tool_result" | "thinking" | "redacted_thinking", _) => false,
        _ => true,
    };
    !is_fit
}

pub(super) fn is_text(json: &RawValue) -> bool {
    json.get().starts_with('"')
}
