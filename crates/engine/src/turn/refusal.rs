//! The part of a conversation that a provider refuses, and the conversation without it.
//!
//! A request that is refused for one of its blocks is refused for ever: the block is in every later request, too. A note
//! takes the block's place. A call never stands without its result, nor a result without its call. Known here are
//! conversations and the words of refusals, not requests or records.

use centurion_protocol::markup::contain;
use centurion_protocol::{
    Block, Conversation, Message, Role, ToolResult, ToolResultContent, ToolUseId,
};

/// A part of a conversation that a provider refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedPart {
    /// Thinking. That of all answers goes: providers want the thinking of a turn whole or not at all, and where one
    /// signature is not theirs, the others seldom are.
    Thinking,
    /// The pictures and documents of a block.
    Media(BlockPlace),
    /// A call. Its result goes with it.
    Call(BlockPlace),
    /// The result of a call.
    Result(BlockPlace),
    /// Any other block.
    Block(BlockPlace),
    /// All pictures and documents.
    AllMedia,
    /// All calls and their results.
    AllCalls,
    /// The content of all results.
    AllResults,
}

/// A block of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub(crate) message: usize,
    pub(crate) block: usize,
}

/// The names of request fields that are not the conversation.
const OTHER_FIELDS: [&str; 10] = [
    "tools",
    "tool_choice",
    "system",
    "max_tokens",
    "thinking.",
    "model",
    "temperature",
    "output_config",
    "context_management",
    "metadata",
];

/// Tells whether a refusal can be about the conversation: it names no other field of the request.
pub(crate) fn is_about_conversation(reason: &str) -> bool {
    let reason = reason.trim_start();
    !OTHER_FIELDS.iter().any(|field| reason.starts_with(field))
}

impl RefusedPart {
    /// Reads a refusal: the block that it names, or the newest that it can mean. `None` if it means none.
    pub(crate) fn read(conversation: &Conversation, reason: &str) -> Option<Self> {
        if !is_about_conversation(reason) {
            return None;
        }
        let said = reason.to_ascii_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let Some(place) = named_place(reason) else {
            if says(&["signature", "thinking block"]) && has_thinking(conversation) {
                return Some(Self::Thinking);
            }
            let speaks_of_media = says(&["image", "pdf", "document", "media"]);
            return newest_media(conversation).filter(|_| speaks_of_media).map(Self::Media);
        };
        let message = conversation.iter().nth(place.message)?;
        let block = message.blocks().into_iter().nth(place.block)?;
        if says(&["thinking"]) && has_thinking(conversation) {
            return Some(Self::Thinking);
        }
        Some(match block {
            Block::Thinking { .. } | Block::RedactedThinking { .. } => Self::Thinking,
            block if holds_media(&block) => Self::Media(place),
            Block::ToolUse(_) => Self::Call(place),
            Block::ToolResult(result) if is_note(&result) => Self::Call(place),
            Block::ToolResult(_) => Self::Result(place),
            _ => Self::Block(place),
        })
    }

    /// All of the same kind, where one after another is refused. What people and models said is not thrown away like that.
    pub(crate) fn widened(self) -> Self {
        match self {
            Self::Media(_) => Self::AllMedia,
            Self::Call(_) => Self::AllCalls,
            Self::Result(_) => Self::AllResults,
            other => other,
        }
    }

    /// The block that is replaced, if it is a single one that is not part of a call.
    pub(crate) fn place(self) -> Option<BlockPlace> {
        match self {
            Self::Media(place) | Self::Block(place) => Some(place),
            _ => None,
        }
    }

    /// The name of the refused part, for people.
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Thinking => "the thinking of earlier answers",
            Self::Media(_) | Self::AllMedia => "a picture or document",
            Self::Call(_) | Self::AllCalls => "a call with its result",
            Self::Result(_) | Self::AllResults => "the result of a call",
            Self::Block(_) => "a part of the conversation",
        }
    }

    /// The conversation with a note in the place of what is refused; `None` if that changes nothing.
    pub(crate) fn replaced(self, conversation: &Conversation, note: &str) -> Option<Conversation> {
        // The replacement of each block of some messages.
        let each = |is_worth_it: fn(&Message) -> bool, take: Take| {
            rewritten(
                conversation,
                |_, message| is_worth_it(message),
                |blocks| blocks.iter_mut().fold(false, |any, block| take(block, note) | any),
            )
        };
        let at = |place: BlockPlace, take: Take| {
            rewritten(
                conversation,
                |n, _| n == place.message,
                |blocks| blocks.get_mut(place.block).is_some_and(|block| take(block, note)),
            )
        };
        match self {
            Self::Thinking => rewritten(
                conversation,
                |_, message| mentions_thinking(message),
                |blocks| {
                    let before = blocks.len();
                    blocks.retain(|block| !is_thinking(block));
                    let is_changed = blocks.len() < before;
                    if is_changed && blocks.is_empty() {
                        blocks.push(Block::text(note));
                    }
                    is_changed
                },
            ),
            Self::Media(place) => at(place, take_media),
            Self::AllMedia => each(mentions_media, take_media),
            Self::Result(place) => at(place, take_result),
            Self::AllResults => each(has_calls, take_result),
            Self::Block(place) => at(place, take_block),
            Self::Call(place) => {
                let message = conversation.iter().nth(place.message)?;
                let id = match message.blocks().into_iter().nth(place.block)? {
                    Block::ToolUse(call) => call.id,
                    Block::ToolResult(result) => result.id,
                    _ => return None,
                };
                // Ids are unique in an answer, and may come again in a later one.
                let answer =
                    place.message.checked_sub(usize::from(message.role() == Role::User))?;
                let is_of_call = |n: usize| n == answer || n == answer + 1;
                rewritten(
                    conversation,
                    |n, _| is_of_call(n),
                    |blocks| as_texts(blocks, |it| *it == id, note),
                )
            }
            Self::AllCalls => rewritten(
                conversation,
                |_, message| has_calls(message),
                |blocks| as_texts(blocks, |_| true, note),
            ),
        }
    }
}

/// Puts a note in the place of a block, or of a part of it; whether that changed anything.
type Take = fn(&mut Block, &str) -> bool;

/// The place that a refusal names: `messages.4.content.1.image.source: …`.
fn named_place(reason: &str) -> Option<BlockPlace> {
    let (_, rest) = reason.split_once("messages.")?;
    let (message, rest) = rest.split_once(".content.")?;
    let block: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(BlockPlace { message: message.parse().ok()?, block: block.parse().ok()? })
}

/// The conversation with some messages written anew; `None` if none was changed. Reading blocks takes time, so that only
/// messages are read that are worth it.
fn rewritten(
    conversation: &Conversation,
    is_worth_it: impl Fn(usize, &Message) -> bool,
    change: impl Fn(&mut Vec<Block>) -> bool,
) -> Option<Conversation> {
    let mut written = Conversation::default();
    let mut is_changed = false;
    for (n, message) in conversation.iter().enumerate() {
        let mut blocks = if is_worth_it(n, message) { message.blocks() } else { Vec::new() };
        if change(&mut blocks) {
            is_changed = true;
            written.push(Message::new(message.role(), &blocks)).ok()?;
        } else {
            written.push(message.clone()).ok()?;
        }
    }
    is_changed.then_some(written)
}

/// The conversation with notes in the place of all pictures and documents; `None` if it has none.
pub(crate) fn without_media(conversation: &Conversation) -> Option<Conversation> {
    if !conversation.iter().any(mentions_media) {
        return None;
    }
    RefusedPart::AllMedia.replaced(conversation, MEDIA_LEFT_OUT)
}

/// The note in the place of a picture or document that would take too much room.
pub(crate) const MEDIA_LEFT_OUT: &str =
    "[A picture or document is left out here, to make room. Read it again where you need it.]";

/// The beginning of a note in the place of a refused part.
pub(crate) const NOTE: &str = "[What stood here is left out: the provider refused it.";

fn newest_media(conversation: &Conversation) -> Option<BlockPlace> {
    let places = conversation.iter().enumerate().flat_map(|(message, it)| {
        let blocks = if mentions_media(it) { it.blocks() } else { Vec::new() };
        let places = blocks.into_iter().enumerate().filter(|(_, block)| holds_media(block));
        places.map(move |(block, _)| BlockPlace { message, block })
    });
    places.last()
}

fn mentions_media(message: &Message) -> bool {
    memchr::memmem::find(message.wire(), b"\"source\"").is_some()
}

fn mentions_thinking(message: &Message) -> bool {
    message.role() == Role::Assistant
        && memchr::memmem::find(message.wire(), b"thinking\"").is_some()
}

fn has_calls(message: &Message) -> bool {
    !message.calls().is_empty()
}

fn has_thinking(conversation: &Conversation) -> bool {
    let messages = conversation.iter().filter(|it| mentions_thinking(it));
    messages.flat_map(Message::blocks).any(|block| is_thinking(&block))
}

fn is_thinking(block: &Block) -> bool {
    matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. })
}

fn holds_media(block: &Block) -> bool {
    match block {
        Block::Image { .. } | Block::Document { .. } => true,
        Block::ToolResult(result) => result.content.iter().any(is_media),
        _ => false,
    }
}

fn is_media(part: &ToolResultContent) -> bool {
    matches!(part, ToolResultContent::Image { .. } | ToolResultContent::Document { .. })
}

/// Tells whether a result is nothing but a note of ours.
fn is_note(result: &ToolResult) -> bool {
    matches!(&result.content[..], [ToolResultContent::Text(text)] if text.starts_with(NOTE))
}

/// Puts a note in the place of the pictures and documents of a block; whether there were any.
pub(crate) fn take_media(block: &mut Block, note: &str) -> bool {
    match block {
        Block::ToolResult(result) => {
            let mut any = false;
            for part in result.content.iter_mut().filter(|part| is_media(part)) {
                *part = ToolResultContent::Text(note.to_owned());
                any = true;
            }
            any
        }
        Block::Image { .. } | Block::Document { .. } => {
            *block = Block::text(note);
            true
        }
        _ => false,
    }
}

/// Puts a note in the place of a block that is no part of a call; whether it was something else before.
fn take_block(block: &mut Block, note: &str) -> bool {
    match block {
        Block::ToolUse(_) | Block::ToolResult(_) => false,
        Block::Text(text) if text.starts_with(NOTE) => false,
        _ => {
            *block = Block::text(note);
            true
        }
    }
}

/// Puts a note in the place of what a result says; whether it said something else before.
fn take_result(block: &mut Block, note: &str) -> bool {
    match block {
        Block::ToolResult(result) if !is_note(result) => {
            result.content = vec![ToolResultContent::Text(note.to_owned())];
            true
        }
        _ => false,
    }
}

/// Makes calls, or results, to texts; whether there were any. Results that stay come first, as providers want them.
fn as_texts(blocks: &mut Vec<Block>, goes: impl Fn(&ToolUseId) -> bool, note: &str) -> bool {
    let mut any = false;
    let mut results = Vec::new();
    let mut others = Vec::new();
    for block in blocks.drain(..) {
        match block {
            Block::ToolUse(call) if goes(&call.id) => {
                others.push(Block::text(format!(
                    "{note} It was a call of {}.",
                    one_word(&call.name)
                )));
                any = true;
            }
            Block::ToolResult(result) if goes(&result.id) => {
                let texts = result.content.iter().filter_map(|part| match part {
                    ToolResultContent::Text(text) => Some(contain(text)),
                    _ => None,
                });
                let said = texts.collect::<Vec<_>>().join("\n");
                others.push(Block::text(format!("The call that is left out gave:\n{said}")));
                any = true;
            }
            Block::ToolResult(result) => results.push(Block::ToolResult(result)),
            other => others.push(other),
        }
    }
    blocks.append(&mut results);
    blocks.append(&mut others);
    any
}

/// A name as a model gave it, which may be anything.
fn one_word(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric() || matches!(it, '_' | '-')).take(64).collect()
}

#[cfg(test)]
mod tests {
    use centurion_protocol::ToolUse;
    use serde_json::{Value, json};

    use super::*;

    fn image() -> Block {
        Block::Image { media_type: "image/png".into(), data: "AAAA".into() }
    }

    fn call(id: &str) -> Block {
        let input = serde_json::value::to_raw_value(&json!({"secret": id})).unwrap();
        Block::ToolUse(ToolUse { id: ToolUseId::new(id), name: "Read".into(), input })
    }

    fn result(id: &str) -> Block {
        Block::ToolResult(ToolResult::text(ToolUseId::new(id), format!("said {id}")))
    }

    fn conversation() -> Conversation {
        let thinking = Block::Thinking { thinking: "hm".into(), signature: "s".into() };
        let mut conversation = Conversation::default();
        for (role, blocks) in [
            (Role::User, vec![Block::text("look"), image()]),
            (Role::Assistant, vec![thinking.clone(), call("a"), call("b")]),
            (Role::User, vec![result("a"), result("b"), Block::text("and this")]),
            (Role::Assistant, vec![thinking, Block::text("ok")]),
            (Role::User, vec![image(), Block::text("and that")]),
        ] {
            conversation.push(Message::new(role, &blocks)).unwrap();
        }
        conversation
    }

    fn values(conversation: &Conversation) -> Vec<Value> {
        let value = |it: &Message| serde_json::from_slice(&it.wire()[1..]).unwrap();
        conversation.iter().map(value).collect()
    }

    #[test]
    fn what_is_refused_is_what_is_named_or_the_newest_that_can_be_meant() {
        let at = |message, block| BlockPlace { message, block };
        for (reason, expected) in [
            (
                "messages.0.content.1.image.source.base64: Could not process image",
                Some(RefusedPart::Media(at(0, 1))),
            ),
            (
                "messages.4.content.0: image exceeds 5 MB maximum",
                Some(RefusedPart::Media(at(4, 0))),
            ),
            ("messages.4.content.1: text is odd", Some(RefusedPart::Block(at(4, 1)))),
            (
                "messages.1.content.1.tool_use.id: should match pattern",
                Some(RefusedPart::Call(at(1, 1))),
            ),
            ("messages.2.content.0: content is odd", Some(RefusedPart::Result(at(2, 0)))),
            (
                "messages.1.content.0: Invalid `signature` in `thinking` block",
                Some(RefusedPart::Thinking),
            ),
            (
                "messages.1.content.0.type: Expected `thinking`, but found `tool_use`",
                Some(RefusedPart::Thinking),
            ),
            ("Invalid signature", Some(RefusedPart::Thinking)),
            ("messages.9.content.0: image", None),
            ("messages.4.content.7: image", None),
            ("messages.99999999999999999999.content.0: image", Some(RefusedPart::Media(at(4, 0)))),
            ("Could not process image", Some(RefusedPart::Media(at(4, 0)))),
            ("thinking.budget_tokens: must be less than max_tokens", None),
            ("tools.3.custom.input_schema: invalid, see messages.4.content.1", None),
            ("max_tokens is too large", None),
        ] {
            assert_eq!(RefusedPart::read(&conversation(), reason), expected, "{reason}");
        }
    }

    #[test]
    fn all_else_stays_as_it_was() {
        let before = conversation();
        let after =
            RefusedPart::Media(BlockPlace { message: 0, block: 1 }).replaced(&before, "gone");
        let wires = |it: &Conversation| it.iter().map(|it| it.wire().clone()).collect::<Vec<_>>();
        let after = after.unwrap();
        assert_eq!(wires(&after)[1..], wires(&before)[1..]);
        assert_eq!(values(&after)[0]["content"][1], json!({"type": "text", "text": "gone"}));
    }

    #[test]
    fn a_call_goes_with_its_result_and_the_others_keep_theirs_in_front() {
        for place in [(1, 1), (2, 0)] {
            let place = BlockPlace { message: place.0, block: place.1 };
            let after = RefusedPart::Call(place).replaced(&conversation(), "gone").unwrap();
            let values = values(&after);
            assert_eq!(values[1]["content"][1]["text"], "gone It was a call of Read.");
            assert_eq!(values[1]["content"][2]["id"], "b");
            let types: Vec<&Value> = [0, 1, 2].map(|n| &values[2]["content"][n]["type"]).into();
            assert_eq!(types, ["tool_result", "text", "text"]);
            assert_eq!(values[2]["content"][0]["tool_use_id"], "b");
            assert!(values[2]["content"][1]["text"].as_str().unwrap().ends_with("said a"));
        }
    }

    #[test]
    fn whatever_is_refused_one_after_another_comes_to_an_end_with_a_valid_conversation() {
        let mut conversation = conversation();
        let mut steps = 0;
        'refusals: loop {
            for (message, it) in conversation.clone().iter().enumerate() {
                for block in 0..it.blocks().len() {
                    let reason = format!("messages.{message}.content.{block}: no");
                    let refused = RefusedPart::read(&conversation, &reason).unwrap();
                    if let Some(changed) = refused.replaced(&conversation, NOTE) {
                        conversation = changed;
                        steps += 1;
                        assert!(steps < 30);
                        continue 'refusals;
                    }
                }
            }
            break;
        }
        let left = values(&conversation).iter().map(Value::to_string).collect::<String>();
        for gone in ["look", "AAAA", "hm", "secret", "tool_use", "tool_result", "and this", "ok"] {
            assert!(!left.contains(&format!("\"{gone}")), "{gone}: {left}");
        }
    }

    #[test]
    fn all_of_a_kind_can_go_at_once() {
        let before = conversation();
        let place = BlockPlace { message: 1, block: 1 };
        let plain = RefusedPart::Call(place).widened().replaced(&before, NOTE).unwrap();
        assert!(plain.iter().all(|message| message.calls().is_empty()));
        let silent = RefusedPart::Result(place).widened().replaced(&before, NOTE).unwrap();
        assert!(!values(&silent)[2].to_string().contains("said"), "{:?}", values(&silent)[2]);
        let blind = RefusedPart::Media(place).widened().replaced(&before, NOTE).unwrap();
        assert!(!blind.iter().any(mentions_media));
        assert!(RefusedPart::AllMedia.replaced(&blind, NOTE).is_none(), "nothing is left of it");
    }
}
