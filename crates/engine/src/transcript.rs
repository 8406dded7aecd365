//! Reading a transcript back into a conversation that a provider accepts.
//!
//! Files come from us, from other programs that write the same layout, and from processes that were
//! killed in the middle of anything: torn and broken lines are passed over, calls without results get an
//! `interrupted` result, results without calls are dropped. Whatever the bytes, the outcome is a valid
//! history. The last message may have calls that wait for results: those are the caller's to answer, so
//! that the answers get into the file as well.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use centurion_protocol::transcript::{LineView, MessageView};
use centurion_protocol::{
    Block, Conversation, Message, RecordId, Role, ToolResult, ToolUseId, Usage,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a model reads for a call whose program ended before the result was recorded.
pub const INTERRUPTED: &str = "The program ended before this call's result was recorded. It may have \
     taken effect in part, in full or not at all: check before you repeat it.";

/// What a transcript says.
#[derive(Debug, Default)]
pub struct Loaded {
    pub conversation: Conversation,
    /// The record that the next one follows.
    pub last: Option<RecordId>,
    /// The model of the last answer.
    pub model: Option<String>,
    /// What the provider counted for the last answer.
    pub last_usage: Option<Usage>,
    /// Results that tell which content of a file the agent has seen, oldest first.
    pub seen_files: Vec<Value>,
    /// Lines that could not be read.
    pub broken_lines: usize,
}

/// Reads a whole transcript. Never fails: what cannot be read is left out and counted.
pub fn load(text: &[u8]) -> Loaded {
    let mut loaded = Loaded::default();
    let mut records = Vec::with_capacity(text.len() / 700);
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // Bytes that are no UTF-8 can only stand in a line that is damaged.
        let Some(view) = std::str::from_utf8(line)
            .ok()
            .and_then(|line| serde_json::from_str::<LineView<'_>>(line).ok())
        else {
            loaded.broken_lines += 1;
            continue;
        };
        match &*view.kind {
            "user" | "assistant" | "attachment" if !view.is_sidechain => records.push(view),
            _ if view.uuid.is_some() && !view.is_sidechain => records.push(view),
            _ => {}
        }
    }
    let chain = chain(&records);
    loaded.last = chain.last().and_then(|view| view.uuid);
    let mut history = History::default();
    for view in chain {
        if history.add(view, &mut loaded).is_none() {
            loaded.broken_lines += 1;
        }
    }
    loaded.conversation = history.finish();
    loaded
}

fn is_conversation(view: &LineView<'_>) -> bool {
    matches!(&*view.kind, "user" | "assistant" | "attachment")
}

/// The branch that ends in the last conversation record, oldest first.
fn chain<'v, 'a>(records: &'v [LineView<'a>]) -> Vec<&'v LineView<'a>> {
    let conversation: Vec<&LineView<'_>> =
        records.iter().filter(|view| is_conversation(view)).collect();
    let is_straight = conversation.windows(2).all(|pair| pair[1].parent_uuid == pair[0].uuid);
    if is_straight {
        return conversation;
    }
    let by_id: HashMap<RecordId, &LineView<'_>> =
        records.iter().filter_map(|view| Some((view.uuid?, view))).collect();
    let mut branch = Vec::new();
    let mut seen = HashSet::new();
    let mut next = conversation.last().copied();
    while let Some(view) = next {
        if view.uuid.is_some_and(|id| !seen.insert(id)) {
            break;
        }
        if is_conversation(view) {
            branch.push(view);
        }
        next = view.parent_uuid.and_then(|parent| by_id.get(&parent).copied());
    }
    branch.reverse();
    branch
}

/// Gathers records into messages: consecutive records of one speaker are one message, as they were when
/// they were sent.
#[derive(Default)]
struct History<'a> {
    conversation: Conversation,
    pending: Option<Pending<'a>>,
}

struct Pending<'a> {
    role: Role,
    /// The answer that an assistant's blocks belong to.
    id: Option<Cow<'a, str>>,
    blocks: Vec<Cow<'a, RawValue>>,
}

impl<'a> History<'a> {
    /// Adds a record; `None` when it cannot be understood.
    fn add(&mut self, view: &LineView<'a>, loaded: &mut Loaded) -> Option<()> {
        if view.kind == "attachment" {
            if view.rendered_role.as_deref() == Some("user") {
                #[derive(Deserialize)]
                struct Part {
                    content: String,
                }
                let parts: Vec<Part> = serde_json::from_str(view.rendered?.get()).ok()?;
                for part in parts {
                    let block = serde_json::value::to_raw_value(&Block::Text(part.content)).ok()?;
                    self.push(Role::User, None, Cow::Owned(block));
                }
            }
            return Some(());
        }
        if let Some(data) =
            view.tool_use_result.filter(|data| data.get().contains("\"contentHash\""))
        {
            loaded.seen_files.extend(serde_json::from_str::<Value>(data.get()));
        }
        let message: MessageView<'a> = serde_json::from_str(view.message?.get()).ok()?;
        let role = if view.kind == "assistant" { Role::Assistant } else { Role::User };
        if role == Role::Assistant {
            if message.model.as_deref() == Some("<synthetic>") {
                return Some(());
            }
            loaded.model = message.model.as_ref().map(ToString::to_string).or(loaded.model.take());
            loaded.last_usage = message.usage.or(loaded.last_usage);
        }
        if message.content.get().starts_with('"') {
            let text: String = serde_json::from_str(message.content.get()).ok()?;
            if !text.is_empty() {
                let block = serde_json::value::to_raw_value(&Block::Text(text)).ok()?;
                self.push(role, message.id, Cow::Owned(block));
            }
        } else {
            let blocks: Vec<&'a RawValue> = serde_json::from_str(message.content.get()).ok()?;
            for block in blocks {
                self.push(role, message.id.clone(), Cow::Borrowed(block));
            }
        }
        Some(())
    }

    fn push(&mut self, role: Role, id: Option<Cow<'a, str>>, block: Cow<'a, RawValue>) {
        if is_empty_text(&block) || is_misplaced(role, &block) {
            return;
        }
        match &mut self.pending {
            Some(pending) if pending.role == role && (role == Role::User || pending.id == id) => {
                pending.blocks.push(block);
            }
            _ => {
                self.flush();
                self.pending = Some(Pending { role, id, blocks: vec![block] });
            }
        }
    }

    fn flush(&mut self) {
        let Some(mut pending) = self.pending.take() else { return };
        // An answer that was cut off after its thinking has said nothing yet, and providers refuse it.
        while pending.role == Role::Assistant
            && pending.blocks.last().is_some_and(|last| is_thinking(last))
        {
            pending.blocks.pop();
        }
        let raw: Vec<&RawValue> = pending.blocks.iter().map(AsRef::as_ref).collect();
        // The fast path keeps the bytes as they are; only a history with a gap is taken apart.
        let Ok(message) = Message::from_raw(pending.role, &raw) else { return };
        let calls_in_order = message.calls() == self.conversation.open_calls();
        if (pending.role == Role::Assistant || calls_in_order)
            && self.conversation.push(message.clone()).is_ok()
        {
            return;
        }
        match pending.role {
            Role::Assistant => self.push_answer(&message),
            Role::User => self.push_results(&message),
        }
    }

    /// Pushes an answer that cannot follow directly: open calls are closed first, calls made twice are
    /// dropped, and an answer at the very start is left out.
    fn push_answer(&mut self, message: &Message) {
        self.close_open_calls();
        let mut seen = HashSet::new();
        let blocks: Vec<Block> = message
            .blocks()
            .into_iter()
            .filter(|block| !matches!(block, Block::ToolUse(call) if !seen.insert(call.id.clone())))
            .collect();
        drop(self.conversation.push(Message::new(Role::Assistant, &blocks)));
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
        let mut blocks: Vec<Block> = self
            .conversation
            .open_calls()
            .iter()
            .map(|id| results.remove(id).unwrap_or_else(|| interrupted(id)))
            .collect();
        blocks.extend(rest);
        drop(self.conversation.push(Message::new(Role::User, &blocks)));
    }

    fn close_open_calls(&mut self) {
        let blocks: Vec<Block> = self.conversation.open_calls().iter().map(interrupted).collect();
        if !blocks.is_empty() {
            drop(self.conversation.push(Message::new(Role::User, &blocks)));
        }
    }

    fn finish(mut self) -> Conversation {
        self.flush();
        self.conversation
    }
}

/// Providers refuse empty texts. The quick look spares nearly all blocks the reading.
fn is_empty_text(block: &RawValue) -> bool {
    block.get().contains(r#""text":"""#)
        && matches!(Block::parse(block), Ok(Block::Text(text)) if text.is_empty())
}

/// Only a model makes calls, and only a user message answers them.
fn is_misplaced(role: Role, block: &RawValue) -> bool {
    match role {
        Role::User => {
            block.get().contains(r#""tool_use""#)
                && matches!(Block::parse(block), Ok(Block::ToolUse(_)))
                || is_thinking(block)
        }
        Role::Assistant => {
            block.get().contains(r#""tool_result""#)
                && matches!(Block::parse(block), Ok(Block::ToolResult(_)))
        }
    }
}

fn is_thinking(block: &RawValue) -> bool {
    block.get().contains("thinking\"")
        && matches!(
            Block::parse(block),
            Ok(Block::Thinking { .. } | Block::RedactedThinking { .. })
        )
}

/// The result of a call that nobody saw end.
pub fn interrupted(id: &ToolUseId) -> Block {
    Block::ToolResult(ToolResult::error(id.clone(), INTERRUPTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transcript of `(type, message)` pairs, chained in order.
    fn transcript(records: &[(&str, &str)]) -> String {
        let id = |n: usize| format!("\"00000000-0000-4000-8000-{n:012}\"");
        let line = |(n, (kind, message)): (usize, &(&str, &str))| {
            let parent = if n == 0 { "null".into() } else { id(n - 1) };
            let uuid = id(n);
            let head = format!(r#"{{"type":"{kind}","uuid":{uuid},"parentUuid":{parent}"#);
            format!(r#"{head},"isSidechain":false,"message":{message}}}"#) + "\n"
        };
        records.iter().enumerate().map(line).collect::<Vec<_>>().concat()
    }

    const PROMPT: (&str, &str) = ("user", r#"{"role":"user","content":"do it"}"#);
    const THOUGHT: (&str, &str) = (
        "assistant",
        r#"{"id":"m1","model":"m","content":[{"type":"thinking","thinking":"x","signature":"s"}]}"#,
    );
    const CALL_A: (&str, &str) = (
        "assistant",
        r#"{"id":"m1","model":"m","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}"#,
    );
    const CALL_B: (&str, &str) = (
        "assistant",
        r#"{"id":"m1","model":"m","content":[{"type":"tool_use","id":"b","name":"Bash","input":{}}]}"#,
    );
    const RESULT_A: (&str, &str) = (
        "user",
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"A"}]}"#,
    );
    const RESULT_B: (&str, &str) = (
        "user",
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"B"}]}"#,
    );
    const DONE: (&str, &str) =
        ("assistant", r#"{"id":"m2","model":"m","content":[{"type":"text","text":"done"}]}"#);

    fn wire(loaded: &Loaded) -> Vec<String> {
        let text = |message: &Message| String::from_utf8(message.wire()[1..].to_vec()).unwrap();
        loaded.conversation.iter().map(text).collect()
    }

    #[test]
    fn blocks_of_one_answer_and_results_of_one_round_are_one_message() {
        let loaded =
            load(transcript(&[PROMPT, CALL_A, CALL_B, RESULT_B, RESULT_A, DONE]).as_bytes());
        let wire = wire(&loaded);
        assert_eq!(wire.len(), 4);
        assert!(wire[1].contains(r#""id":"a""#) && wire[1].contains(r#""id":"b""#));
        let (a, b) = (wire[2].find("\"A\"").unwrap(), wire[2].find("\"B\"").unwrap());
        assert!(a < b, "results stand in the order of the calls");
        assert_eq!(loaded.broken_lines, 0);
    }

    #[test]
    fn calls_that_nobody_answered_get_an_interrupted_result() {
        let middle = load(transcript(&[PROMPT, CALL_A, CALL_B, RESULT_A, DONE]).as_bytes());
        assert!(wire(&middle)[2].contains("check before you repeat it"));
        assert!(middle.conversation.open_calls().is_empty());
        let end = load(transcript(&[PROMPT, CALL_A]).as_bytes());
        assert_eq!(end.conversation.open_calls(), [ToolUseId::new("a")]);
    }

    #[test]
    fn stray_results_and_answers_without_words_are_dropped() {
        let stray = load(transcript(&[PROMPT, RESULT_A, DONE]).as_bytes());
        assert_eq!(wire(&stray).len(), 2);
        assert!(!wire(&stray)[0].contains("tool_result"));
        let cut_off = load(transcript(&[PROMPT, THOUGHT]).as_bytes());
        assert_eq!(wire(&cut_off).len(), 1);
        let starts_wrong = load(transcript(&[DONE, PROMPT]).as_bytes());
        assert_eq!(wire(&starts_wrong).len(), 1);
    }

    #[test]
    fn only_models_call_and_only_users_answer() {
        let wrong_call = ("user", CALL_A.1);
        let wrong_answer = ("assistant", RESULT_A.1);
        let loaded = load(transcript(&[PROMPT, wrong_call, DONE, wrong_answer]).as_bytes());
        assert_eq!(wire(&loaded).len(), 2);
        assert!(!wire(&loaded).concat().contains("tool_"));
    }

    #[test]
    fn torn_and_foreign_lines_are_passed_over() {
        let mut text = transcript(&[PROMPT, CALL_A, RESULT_A]);
        text.insert_str(0, "{\"type\":\"api-request-blob\",\"hash\":\"x\"}\nnot json\n");
        text.push_str("{\"type\":\"assistant\",\"mess");
        let loaded = load(text.as_bytes());
        assert_eq!((wire(&loaded).len(), loaded.broken_lines), (3, 2));
    }

    #[test]
    fn only_the_branch_of_the_last_record_counts() {
        let mut text = transcript(&[PROMPT, DONE]);
        text.push_str(
            r#"{"type":"user","uuid":"00000000-0000-4000-8000-0000000000ff","parentUuid":null,"message":{"role":"user","content":"other"}}"#,
        );
        let loaded = load(text.as_bytes());
        assert_eq!(wire(&loaded).len(), 1);
        assert!(wire(&loaded)[0].contains("other"));
    }

    proptest::proptest! {
        #[test]
        fn any_order_of_records_gives_a_history_a_provider_accepts(
            picks in proptest::collection::vec(0_usize..7, 0..24),
            cut in 0_usize..4000,
        ) {
            let records = [PROMPT, THOUGHT, CALL_A, CALL_B, RESULT_A, RESULT_B, DONE];
            let picked: Vec<_> = picks.into_iter().map(|n| records[n]).collect();
            let text = transcript(&picked);
            let text = &text.as_bytes()[..cut.min(text.len())];
            let loaded = load(text);
            let mut again = Conversation::default();
            for message in loaded.conversation.iter() {
                again.push(message.clone()).unwrap();
            }
        }
    }
}
