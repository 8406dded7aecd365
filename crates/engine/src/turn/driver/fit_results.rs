//! Reports of agents and results of tools are cut to fit into their reader's conversation, however many come at once.
//!
//! All reports that come together, and all results of one turn, take at most half of what the window still has: the rest
//! is reserved for later turns. What is left out of a report stands in its agent's output file, what is left out of a result in a file
//! of its own, and both are named.

use std::borrow::Cow;

use centurion_permissions::canonical_tool_name;
use centurion_protocol::{Block, ToolResultContent, ToolUse};

use super::Driver;
use crate::agent::builder::AGENT_TOOL;
use crate::agent::result_room::ResultRoom;
use crate::message::queue::Item;

/// About how many bytes a token has.
const TOKEN_BYTES: u64 = 4;
/// The least bytes of every report, so that its reader knows its subject.
const LEAST: usize = 500;

impl Driver {
    /// The most bytes of reports that may enter the conversation now.
    fn report_room(&self) -> usize {
        let info = self.shared.model.info(&self.settings.model);
        let left = self.context_rules().window(&info).saturating_sub(self.estimate());
        usize::try_from(left.saturating_mul(TOKEN_BYTES) / 2).unwrap_or(usize::MAX)
    }

    /// The most bytes of the newest round that a compaction keeps: a third of what its window has
    /// beside what every request begins with.
    pub(super) fn round_room(&self) -> usize {
        let info = self.shared.model.info(&self.settings.model);
        let left = self.context_rules().window(&info).saturating_sub(self.fixed_tokens());
        usize::try_from(left.saturating_mul(TOKEN_BYTES) / 3).unwrap_or(usize::MAX)
    }

    /// Sets how much the results of these calls may bring, and the report limit of each agent that they wait for.
    pub(super) fn share_room(&self, calls: &[ToolUse]) {
        let room = ResultRoom::new(self.report_room(), calls.len());
        *self.dispatch.agent.result_room.lock() = room;
        let agents = calls.iter().filter(|call| canonical_tool_name(&call.name) == AGENT_TOOL);
        let share = self.report_room() / agents.count().max(1);
        self.dispatch.agent.set_report_room(share.max(LEAST));
    }

    /// The items, with their reports shortened until all of them fit beside these blocks.
    pub(super) fn fit<'i>(&self, items: &'i [Item], blocks: &[Block]) -> Cow<'i, [Item]> {
        if !items.iter().any(|item| item.origin.is_of_agents()) {
            return Cow::Borrowed(items);
        }
        let beside: usize = blocks.iter().map(size).sum();
        fit(items, self.report_room().saturating_sub(beside))
    }
}

/// The bytes of text in a block.
fn size(block: &Block) -> usize {
    match block {
        Block::Text(text) => text.len(),
        Block::ToolResult(result) => {
            result.content.iter().map(ToolResultContent::text_length).sum()
        }
        _ => 0,
    }
}

fn fit(items: &[Item], room: usize) -> Cow<'_, [Item]> {
    let news = || items.iter().filter(|item| item.origin.is_of_agents());
    let total: usize = news().flat_map(|item| &item.content).map(size).sum();
    if total <= room {
        return Cow::Borrowed(items);
    }
    let share = (room / news().count().max(1)).max(LEAST);
    let shorten = |item: &Item| {
        let mut item = item.clone();
        if item.origin.is_of_agents() {
            for block in &mut item.content {
                if let Block::Text(text) = block
                    && let Some(short) = shortened(text, share)
                {
                    *text = short;
                }
            }
        }
        item
    };
    Cow::Owned(items.iter().map(shorten).collect())
}

/// A notification with less of its report; `None` if it is short enough or has no report.
fn shortened(text: &str, share: usize) -> Option<String> {
    let over = text.len().checked_sub(share).filter(|over| *over > 0)?;
    let (before, rest) = text.split_once("<result>")?;
    let (report, after) = rest.split_once("</result>")?;
    let kept =
        whole_characters(report, report.len().saturating_sub(over).max(LEAST.min(report.len())));
    let more = report.len() - kept.len();
    if more == 0 {
        return None;
    }
    Some(format!(
        "{before}<result>{kept}\n[{more} more bytes: the whole report is in the output file]</result>{after}"
    ))
}

/// The beginning of an escaped text, cut neither in a character nor in an escape.
fn whole_characters(text: &str, length: usize) -> &str {
    let kept = &text[..text.floor_char_boundary(length)];
    match kept.rsplit_once('&') {
        Some((before, escape)) if !escape.contains(';') => before,
        _ => kept,
    }
}

#[cfg(test)]
mod tests {
    use centurion_protocol::{RecordId, SeededWorld, World};

    use super::*;
    use crate::message::manner::Manner;
    use crate::message::queue::{Origin, Priority};

    fn item(id: RecordId, origin: Origin, text: String) -> Item {
        let content = vec![Block::Text(text)];
        Item {
            id,
            priority: Priority::Later,
            addressee: None,
            content,
            origin,
            manner: Manner::default(),
        }
    }

    fn news(id: RecordId, report: &str) -> Item {
        let text = format!(
            "<task-notification>\n<output-file>/o</output-file>\n<result>{report}</result>\n</task-notification>"
        );
        item(id, Origin::TaskNotification { run: Some("r".to_owned()) }, text)
    }

    fn text(item: &Item) -> &str {
        match &item.content[..] {
            [Block::Text(text)] => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reports_share_what_there_is_and_the_rest_is_left_alone() {
        // scenario 21
        let world = SeededWorld::new(1);
        let long = "0123456789".repeat(4_000);
        let mut items: Vec<Item> = (0..7).map(|_| news(world.record_id(), &long)).collect();
        items.push(news(world.record_id(), "short"));
        items.push(item(world.record_id(), Origin::Person, long.clone()));
        assert!(matches!(fit(&items, 1_000_000), Cow::Borrowed(_)));
        let fitted = fit(&items, 80_000);
        let total: usize = fitted[..8].iter().map(|item| text(item).len()).sum();
        assert!(total < 80_000, "{total}");
        for item in &fitted[..7] {
            let more = text(item).contains("more bytes: the whole report is in the output file]</result>\n</task-notification>");
            assert!(more && text(item).len() > 9_000, "{}", text(item).len());
        }
        assert_eq!(text(&fitted[7]), text(&items[7]), "what is short stays whole");
        assert_eq!(text(&fitted[8]), long, "people are not cut");
        let ids = |items: &[Item]| items.iter().map(|item| item.id).collect::<Vec<_>>();
        assert_eq!(ids(&fitted), ids(&items), "each is told once, in its order");
    }

    #[test]
    fn with_no_room_at_all_something_of_each_is_left() {
        let world = SeededWorld::new(1);
        let items: Vec<Item> =
            (0..3).map(|_| news(world.record_id(), &"x".repeat(9_000))).collect();
        assert!(fit(&items, 0).iter().all(|item| text(item).matches('x').count() == LEAST));
    }

    #[test]
    fn a_report_is_cut_neither_in_a_character_nor_in_an_escape() {
        assert_eq!(whole_characters("ab&lt;cd", 5), "ab");
        assert_eq!(whole_characters("ab&lt;cd", 6), "ab&lt;");
        assert_eq!(whole_characters("aé", 2), "a");
        assert_eq!(whole_characters("&amp; b", 7), "&amp; b");
    }
}
