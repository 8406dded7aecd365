//! Pictures and documents that a provider refuses: a note takes their place, and the request is sent again.
//!
//! One picture that cannot be read would otherwise make every later request fail, too. The transcript keeps what was
//! read: only what is sent changes.

use centurion_journal::JournalError;
use centurion_model::{ErrorKind, ModelError};
use centurion_protocol::markup::contain;
use centurion_protocol::{Block, Conversation, Message, ToolResultContent};
use serde_json::json;

use super::Driver;

/// How much of a provider's reason a model reads.
const LONGEST_REASON: usize = 500;

impl Driver {
    /// Takes the part out that the provider refuses, if the refusal is about one; whether to send the request again.
    pub(super) fn replace_refused(&mut self, error: &ModelError) -> Result<bool, JournalError> {
        if error.kind != ErrorKind::InvalidRequest {
            return Ok(false);
        }
        let Some(place) = refused(&self.conversation, &error.message) else { return Ok(false) };
        // A provider may repeat what a server or a file said.
        let said = contain(&error.message).into_owned();
        let reason = &said[..said.floor_char_boundary(LONGEST_REASON)];
        let note = format!("[What stood here is left out: the provider refused it. {reason}]");
        let Some(conversation) = without(&self.conversation, place, &note) else {
            return Ok(false);
        };
        self.conversation = conversation;
        // What stays in the conversation must not bring it back.
        for block in self.standing.all_mut().flat_map(|it| &mut it.blocks) {
            take_media(block, &note);
        }
        let data = json!({"message": place.message, "block": place.block, "reason": error.message});
        self.journal.note("refused_part", &data)?;
        let text = format!("a picture or document is left out, the provider refused it: {error}");
        self.dispatch.agent.inform("warning", text);
        Ok(true)
    }
}

/// A block of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockPlace {
    message: usize,
    block: usize,
}

/// The block with a picture or document that a refusal means: the one that it names, or the newest if it speaks of
/// such things without a place.
fn refused(conversation: &Conversation, reason: &str) -> Option<BlockPlace> {
    let media = || {
        conversation.iter().enumerate().flat_map(|(message, it)| {
            let holds = |block: &Block| match block {
                Block::Image { .. } | Block::Document { .. } => true,
                Block::ToolResult(result) => result.content.iter().any(is_media),
                _ => false,
            };
            // Reading blocks takes time, and most messages have only text.
            let blocks = if is_worth_a_look(it) { it.blocks() } else { Vec::new() };
            let places = blocks.into_iter().enumerate().filter(move |(_, block)| holds(block));
            places.map(move |(block, _)| BlockPlace { message, block })
        })
    };
    if let Some(named) = named_place(reason) {
        return media().find(|place| *place == named);
    }
    let reason = reason.to_ascii_lowercase();
    let is_about_media = ["image", "pdf", "document", "media"].iter().any(|it| reason.contains(it));
    media().last().filter(|_| is_about_media)
}

fn is_worth_a_look(message: &Message) -> bool {
    memchr::memmem::find(message.wire(), b"\"source\"").is_some()
}

fn is_media(part: &ToolResultContent) -> bool {
    matches!(part, ToolResultContent::Image { .. } | ToolResultContent::Document { .. })
}

/// The place that a refusal begins with: `messages.4.content.1.image.source: …`.
fn named_place(reason: &str) -> Option<BlockPlace> {
    let (_, rest) = reason.split_once("messages.")?;
    let (message, rest) = rest.split_once(".content.")?;
    let block: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(BlockPlace { message: message.parse().ok()?, block: block.parse().ok()? })
}

/// The conversation with notes in the place of all pictures and documents; `None` if it has none.
pub(super) fn without_media(conversation: &Conversation) -> Option<Conversation> {
    if !conversation.iter().any(is_worth_a_look) {
        return None;
    }
    let mut changed = Conversation::default();
    let mut has_media = false;
    for message in conversation.iter() {
        let mut blocks = if is_worth_a_look(message) { message.blocks() } else { Vec::new() };
        if blocks.iter_mut().fold(false, |any, block| take_media(block, MEDIA_LEFT_OUT) | any) {
            has_media = true;
            changed.push(Message::new(message.role(), &blocks)).ok()?;
        } else {
            changed.push(message.clone()).ok()?;
        }
    }
    has_media.then_some(changed)
}

/// What stands for a picture or document that would take too much room.
pub(super) const MEDIA_LEFT_OUT: &str =
    "[A picture or document is left out here, to make room. Read it again where you need it.]";

/// Puts a note in the place of the pictures and documents of a block; whether there were any.
pub(super) fn take_media(block: &mut Block, note: &str) -> bool {
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

/// The conversation with a note in the place of the pictures and documents of one block.
fn without(conversation: &Conversation, place: BlockPlace, note: &str) -> Option<Conversation> {
    let mut changed = Conversation::default();
    for (n, message) in conversation.iter().enumerate() {
        if n != place.message {
            changed.push(message.clone()).ok()?;
            continue;
        }
        let mut blocks = message.blocks();
        take_media(blocks.get_mut(place.block)?, note);
        changed.push(Message::new(message.role(), &blocks)).ok()?;
    }
    Some(changed)
}

#[cfg(test)]
mod tests {
    use centurion_protocol::Role;

    use super::*;

    fn image() -> Block {
        Block::Image { media_type: "image/png".into(), data: "AAAA".into() }
    }

    fn conversation() -> Conversation {
        let mut conversation = Conversation::default();
        for (role, blocks) in [
            (Role::User, vec![Block::text("look"), image()]),
            (Role::Assistant, vec![Block::text("ok")]),
            (Role::User, vec![image(), Block::text("and this")]),
        ] {
            conversation.push(Message::new(role, &blocks)).unwrap();
        }
        conversation
    }

    #[test]
    fn the_part_is_the_named_one_or_the_newest_that_can_be_meant() {
        let at = |message, block| Some(BlockPlace { message, block });
        for (reason, expected) in [
            ("messages.0.content.1.image.source.base64: Could not process image", at(0, 1)),
            ("messages.2.content.0: image exceeds 5 MB maximum", at(2, 0)),
            ("messages.2.content.1: text is empty", None),
            ("messages.9.content.0: image", None),
            ("Could not process image", at(2, 0)),
            ("max_tokens is too large", None),
        ] {
            assert_eq!(refused(&conversation(), reason), expected, "{reason}");
        }
    }

    #[test]
    fn all_else_stays_as_it_was() {
        let before = conversation();
        let after = without(&before, BlockPlace { message: 0, block: 1 }, "gone").unwrap();
        let wires = |it: &Conversation| it.iter().map(|it| it.wire().clone()).collect::<Vec<_>>();
        assert_eq!(wires(&after)[1..], wires(&before)[1..]);
        let first = after.iter().next().unwrap().blocks();
        assert!(matches!(&first[..], [Block::Text(_), Block::Text(note)] if note == "gone"));
    }
}
