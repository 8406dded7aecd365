//! Asking the model for a summary, and reading what it says.

use std::sync::Arc;

use centurion_model::{ErrorKind, ModelError, Patience, Prefix};
use centurion_protocol::{Block, Conversation, Message, Role};
use parking_lot::Mutex;

use super::shorter::SplitConversation;
use super::{CompactError, Driver};
use crate::turn::driver::refused::note;
use crate::turn::internal_fork::{COMPACT_PURPOSE, InternalFork, InternalForkError};
use crate::turn::refusal::{RefusedPart, without_media};

/// The question to the model.
const QUESTION: &str = include_str!("../../../definition/prompts/compact.md");

/// The most times that a part is dropped because the provider finds the request too long or refuses it.
const MOST_DROPS: usize = 5;

/// The longest answer that is waited for, in summaries of the largest size: with what the model thinks and analyses before.
const LONGEST_ANSWER: u64 = 4;

/// The note in the place of a part that cannot be summarised.
const LEFT_OUT: &str =
    "[A part of this conversation is left out here: it was too long to be summarised.]";

/// A summary of the earlier part of a conversation.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    pub(super) text: String,
    /// The part that it leaves out.
    pub(super) gap: Option<Gap>,
}

/// A part of a conversation that its summary does not tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// It was too long.
    TooLong,
    /// It is the newest part, and the provider refuses to read it.
    Refused,
}

impl Summary {
    pub(super) fn by_rule(text: String) -> Self {
        Self { text, gap: None }
    }
}

impl Driver {
    /// The model's summary of the earlier part. The request is the conversation's own with one text behind it, so that
    /// the provider reads what it has cached. Where that is refused, the refused part goes; where it is too long, first
    /// pictures and documents go, then older parts.
    pub(super) async fn summarise(
        &self,
        drawn: &SplitConversation,
        instructions: &str,
        receipt: &Arc<Mutex<f64>>,
    ) -> Result<Summary, CompactError> {
        if !drawn.has_exchange() {
            return Err(CompactError::Nothing);
        }
        let question = question(instructions);
        let info = self.shared.model.info(&self.settings.model);
        let most = self.context_rules().largest_summary(&info);
        let mut conversation = drawn.earlier.clone();
        let mut gap = drawn.gap();
        let mut refused_before = false;
        for _ in 0..=MOST_DROPS {
            let asked = self.ask_summary(conversation.clone(), &question, Arc::clone(receipt));
            let refusal = match asked.await {
                Ok(answer) => return read(&answer, most).map(|text| Summary { text, gap }),
                Err(InternalForkError::Model(error)) if may_be_cured(&error) => error,
                Err(error) => return Err(error.into()),
            };
            conversation = if refusal.kind == ErrorKind::InvalidRequest {
                let reason = &refusal.message;
                match without_refused(&conversation, reason, &mut refused_before) {
                    Some(accepted) => accepted,
                    None => return Err(InternalForkError::Model(refusal).into()),
                }
            } else if let Some(plain) = without_media(&conversation) {
                plain
            } else {
                gap = gap.or(Some(Gap::TooLong));
                let Some(newer) = newer_half(&conversation) else { break };
                newer
            };
        }
        let words = "it does not fit beside its own summary";
        Err(InternalForkError::Model(ModelError::new(ErrorKind::ContextOverflow, words)).into())
    }

    async fn ask_summary(
        &self,
        conversation: Conversation,
        question: &str,
        receipt: Arc<Mutex<f64>>,
    ) -> Result<String, InternalForkError> {
        let info = self.shared.model.info(&self.settings.model);
        // The provider's count is more exact than an estimate. An answer needs some room in any case.
        let guess = self.fixed_tokens() + (conversation.tokens() + question.len() / 4) as u64;
        let input = self.counted.map_or(guess, |(counted, _)| guess.min(counted));
        let room = self.context_rules().window(&info).saturating_sub(input);
        let most = self.context_rules().largest_summary(&info);
        let room = room.max(most);
        let fork = InternalFork {
            purpose: COMPACT_PURPOSE,
            model: self.settings.model.clone(),
            effort: self.settings.effort,
            thinking: self.settings.thinking,
            prefix: Prefix { conversation, ..self.prefix() },
            question: question.to_owned(),
            max_tokens: u32::try_from(room).unwrap_or(u32::MAX),
            agent: self.identity().id.clone(),
            parent_agent: self.identity().parent.clone(),
            journal: Some(Arc::clone(&self.journal)),
            cached_tokens: self.counted.map_or(0, |(counted, _)| counted),
            receipt: Some(receipt),
            budget: Arc::clone(&self.dispatch.agent.budget),
            ceiling: None,
            longest: Some(LONGEST_ANSWER * most),
            // The work cannot continue without it.
            patience: Patience::Full,
        };
        fork.ask(&self.shared).await
    }
}

/// Tells whether a request may be taken if there is less in it.
fn may_be_cured(error: &ModelError) -> bool {
    matches!(error.kind, ErrorKind::ContextOverflow | ErrorKind::InvalidRequest)
}

/// The conversation without what a provider refuses of it, or without pictures and documents where it does not say what
/// that is. Where it refused something else before, all of the kind goes.
fn without_refused(
    conversation: &Conversation,
    reason: &str,
    refused_before: &mut bool,
) -> Option<Conversation> {
    match RefusedPart::read(conversation, reason) {
        None | Some(RefusedPart::Media(_)) => without_media(conversation),
        Some(refused) => {
            let refused = if *refused_before { refused.widened() } else { refused };
            *refused_before = true;
            refused.replaced(conversation, &note(reason))
        }
    }
}

fn question(instructions: &str) -> String {
    match instructions.trim() {
        "" => QUESTION.to_owned(),
        text => format!("{QUESTION}\nHeed this in the summary:\n{text}"),
    }
}

/// The summary in an answer. One that was begun and not ended is no summary.
fn read(answer: &str, most: u64) -> Result<String, CompactError> {
    let cut_off = || CompactError::from(InternalForkError::CutOff);
    // The analysis may speak of the tags of the summary.
    let analysis = answer.trim_start().strip_prefix("<analysis>");
    let answer = analysis.and_then(|it| it.split_once("</analysis>")).map_or(answer, |it| it.1);
    let text = match answer.split_once("<summary>") {
        Some((_, rest)) => rest.rsplit_once("</summary>").ok_or_else(cut_off)?.0,
        None if answer.contains("<analysis>") => {
            answer.rsplit_once("</analysis>").ok_or_else(cut_off)?.1
        }
        None => answer,
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(InternalForkError::Empty.into());
    }
    let size = text.len() as u64 / 4;
    if size > most {
        return Err(CompactError::TooLong { size, most });
    }
    Ok(text.to_owned())
}

/// About half of a conversation: its beginning, where an earlier summary stands, and its newer part. `None` if there is
/// no half.
fn newer_half(conversation: &Conversation) -> Option<Conversation> {
    let messages: Vec<&Message> = conversation.iter().collect();
    let first = messages.first()?;
    let mut left = conversation.tokens();
    let half = left / 2;
    let from = messages.iter().enumerate().position(|(n, message)| {
        let is_begin = left <= half && n > 1 && message.role() == Role::Assistant;
        left -= message.tokens();
        is_begin
    })?;
    let mut newer = Conversation::default();
    if first.tokens() <= half / 2 {
        newer.push((*first).clone()).ok()?;
    }
    let note = Message::new(Role::User, &[Block::text(LEFT_OUT)]);
    newer.push(note).ok()?;
    for message in &messages[from..] {
        newer.push((*message).clone()).ok()?;
    }
    (newer.tokens() < conversation.tokens()).then_some(newer)
}

#[cfg(test)]
mod tests {
    use centurion_protocol::{ToolResult, ToolUse, ToolUseId};

    use super::*;

    #[test]
    fn the_summary_is_what_stands_between_its_tags() {
        for (answer, summary) in [
            ("<analysis>hm</analysis>\n<summary>\nS\n</summary>", "S"),
            (
                "<summary>S </summary> in </summary> it</summary> bye",
                "S </summary> in </summary> it",
            ),
            ("<analysis>hm</analysis> plain", "plain"),
            ("<analysis>no <summary> yet</analysis><summary>S</summary>", "S"),
            ("<summary>of </analysis> tags</summary>", "of </analysis> tags"),
            ("<analysis>not ended <summary>S</summary>", "S"),
            ("plain", "plain"),
        ] {
            assert_eq!(read(answer, 100).unwrap(), summary, "{answer}");
        }
        for cut in [
            "<summary>cut",
            "<analysis>cut",
            "hm <analysis> a <summary> b",
            "<analysis>a</analysis><summary>cut",
        ] {
            let error = read(cut, 100).unwrap_err();
            assert!(matches!(error, CompactError::NoSummary(InternalForkError::CutOff)), "{cut}");
        }
        assert!(matches!(
            read("<summary> </summary>", 100),
            Err(CompactError::NoSummary(InternalForkError::Empty))
        ));
        assert!(matches!(read(&"x".repeat(500), 100), Err(CompactError::TooLong { .. })));
    }

    #[test]
    fn halves_are_conversations_that_begin_as_the_whole_does() {
        let mut conversation = Conversation::default();
        conversation.push(Message::user("an earlier summary")).unwrap();
        for n in 0..20 {
            let id = ToolUseId::new(format!("t{n}"));
            let input = serde_json::value::to_raw_value(&serde_json::json!({})).unwrap();
            let call = ToolUse { id: id.clone(), name: "Read".into(), input };
            conversation.push(Message::new(Role::Assistant, &[Block::ToolUse(call)])).unwrap();
            let result = ToolResult::text(id, "x".repeat(500));
            conversation.push(Message::new(Role::User, &[Block::ToolResult(result)])).unwrap();
        }
        let mut sizes = vec![conversation.tokens()];
        while let Some(newer) = newer_half(&conversation) {
            sizes.push(newer.tokens());
            let first = String::from_utf8_lossy(newer.iter().next().unwrap().wire()).into_owned();
            assert!(sizes.len() > 3 || first.contains("an earlier summary"), "{first}");
            conversation = newer;
        }
        assert!(sizes.len() > 3 && sizes.windows(2).all(|pair| pair[1] < pair[0]), "{sizes:?}");
    }
}
