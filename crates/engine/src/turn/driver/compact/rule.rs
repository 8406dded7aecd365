//! The summary of last resort, made without a model: who said what, cut by a rule.
//!
//! Nothing is quoted of a conversation that a provider refuses to read: any of it may be what is refused.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use centurion_journal::transcript::Standing;
use centurion_protocol::{Block, Role};

use super::shorter::{Newest, SplitConversation};

/// The most bytes of each text, and the most texts of each speaker.
const EXCERPT: usize = 400;
const MOST_TEXTS: usize = 8;

/// The texts of the earlier part, but for those that stay word for word, are told again, or are reminders of ours.
pub(super) fn summary(
    drawn: &SplitConversation,
    standing: &Standing,
    told_again: &[(&'static str, String)],
) -> String {
    if drawn.newest == Newest::Goes {
        return "The provider refused to read what stood here, and so no model could summarise it. The record has all \
                of it."
            .to_owned();
    }
    let stays = |text: &str| {
        let mut kept = standing.all().flat_map(|it| &it.blocks);
        text.starts_with("<system-reminder>")
            || kept.any(|block| matches!(block, Block::Text(kept) if kept == text))
            || told_again.iter().any(|(_, told)| told.contains(text.trim()))
    };
    let (mut people, mut answers) = (Vec::new(), Vec::new());
    let mut tools: BTreeMap<String, usize> = BTreeMap::new();
    for message in drawn.earlier.iter() {
        for block in message.blocks() {
            match (message.role(), block) {
                (Role::User, Block::Text(text)) if !stays(&text) => people.push(text),
                (Role::Assistant, Block::Text(text)) => answers.push(text),
                (_, Block::ToolUse(call)) => *tools.entry(call.name).or_default() += 1,
                _ => {}
            }
        }
    }
    let mut text = format!(
        "No model could summarise the {} messages that stood here. They are cut to their beginnings; the record has \
         all of them.",
        drawn.earlier.len()
    );
    for (title, texts) in [("What was said to you", &people), ("What you said", &answers)] {
        if texts.is_empty() {
            continue;
        }
        let skipped = texts.len().saturating_sub(MOST_TEXTS);
        let _ = write!(text, "\n\n{title}:");
        if skipped > 0 {
            let _ = write!(text, "\n- ({skipped} earlier texts are left out)");
        }
        for said in &texts[skipped..] {
            let end = said.floor_char_boundary(EXCERPT);
            let more = if end < said.len() { " […]" } else { "" };
            let _ = write!(text, "\n- {}{more}", said[..end].trim());
        }
    }
    let calls: Vec<String> = tools.iter().map(|(name, times)| format!("{name} {times}")).collect();
    if !calls.is_empty() {
        let _ = write!(text, "\n\nCalls that you made: {}", calls.join(", "));
    }
    text
}
