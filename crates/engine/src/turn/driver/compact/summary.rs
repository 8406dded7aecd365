//! Asking the model for a summary, and reading what it says.

use centurion_model::{ErrorKind, ModelError, Patience, Prefix};
use centurion_protocol::{Conversation, Message, Role};

use super::shorter::Drawn;
use super::{CompactError, Driver};
use crate::turn::internal_fork::{InternalFork, InternalForkError};

/// What the model is asked.
const QUESTION: &str = include_str!("../../../definition/prompts/compact.md");

/// How often the older half is left out of what is summarised, because a provider finds it too long.
const MOST_DROPS: usize = 4;

/// What stands in the place of a part that no summary can be made of.
const LEFT_OUT: &str =
    "[The earlier part of this conversation is left out here: it was too long to be summarised.]";

impl Driver {
    /// The model's summary of the earlier part. The request is the conversation's own with one text behind it, so that
    /// the provider reads what it has cached.
    pub(super) async fn summarise(
        &self,
        drawn: &Drawn,
        instructions: &str,
    ) -> Result<String, CompactError> {
        if !drawn.has_exchange() {
            return Err(CompactError::Nothing);
        }
        let question = question(instructions);
        let info = self.shared.model.info(&self.settings.model);
        let (window, most) =
            (self.context_rules().window(&info), self.context_rules().largest_summary(&info));
        let mut conversation = drawn.earlier.clone();
        let mut refusal = None;
        for _ in 0..=MOST_DROPS {
            let tokens = conversation.tokens() + question.len() / 4;
            let room = window.saturating_sub(self.fixed_tokens() + tokens as u64);
            if room >= most {
                match self.ask_summary(conversation.clone(), &question, room).await {
                    Ok(answer) => return read(&answer, most),
                    Err(InternalForkError::Model(error))
                        if error.kind == ErrorKind::ContextOverflow =>
                    {
                        refusal = Some(error);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            let Some(newer) = newer_half(&conversation) else { break };
            conversation = newer;
        }
        let refusal = refusal.unwrap_or_else(|| {
            ModelError::new(ErrorKind::ContextOverflow, "it does not fit beside its own summary")
        });
        Err(InternalForkError::Model(refusal).into())
    }

    async fn ask_summary(
        &self,
        conversation: Conversation,
        question: &str,
        room: u64,
    ) -> Result<String, InternalForkError> {
        let fork = InternalFork {
            purpose: "compact",
            model: self.settings.model.clone(),
            effort: self.settings.effort,
            thinking: self.settings.thinking,
            prefix: Prefix { conversation, ..self.prefix() },
            question: question.to_owned(),
            max_tokens: u32::try_from(room).unwrap_or(u32::MAX),
            agent: self.identity().id.clone(),
            parent_agent: self.identity().parent.clone(),
            journal: Some(std::sync::Arc::clone(&self.journal)),
            budget: std::sync::Arc::clone(&self.budget),
            // The work cannot go on without it.
            patience: Patience::Full,
        };
        fork.ask(&self.shared).await
    }
}

fn question(instructions: &str) -> String {
    match instructions.trim() {
        "" => QUESTION.to_owned(),
        text => format!("{QUESTION}\nHeed this in the summary:\n{text}"),
    }
}

/// The summary in an answer.
fn read(answer: &str, most: u64) -> Result<String, CompactError> {
    let text = match answer.split_once("<summary>") {
        Some((_, rest)) => rest.rsplit_once("</summary>").map_or(rest, |(summary, _)| summary),
        None => match (answer.find("<analysis>"), answer.rfind("</analysis>")) {
            (Some(_), Some(end)) => &answer[end + "</analysis>".len()..],
            _ => answer,
        },
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

/// The newer half of a conversation; `None` if there is no half.
fn newer_half(conversation: &Conversation) -> Option<Conversation> {
    let messages: Vec<&Message> = conversation.iter().collect();
    let mut left = conversation.tokens();
    let half = left / 2;
    let from = messages.iter().enumerate().position(|(n, message)| {
        let is_begin = left <= half && n > 1 && message.role() == Role::Assistant;
        left -= message.tokens();
        is_begin
    })?;
    let mut newer = Conversation::default();
    newer.push(Message::user(LEFT_OUT)).ok()?;
    for message in &messages[from..] {
        newer.push((*message).clone()).ok()?;
    }
    Some(newer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use centurion_protocol::{Block, ToolResult, ToolUse, ToolUseId};

    #[test]
    fn the_summary_is_what_stands_between_its_tags() {
        for (answer, summary) in [
            ("<analysis>hm</analysis>\n<summary>\nS\n</summary>", "S"),
            (
                "<summary>S </summary> in </summary> it</summary> bye",
                "S </summary> in </summary> it",
            ),
            ("<analysis>hm</analysis> plain", "plain"),
            ("plain", "plain"),
            ("<summary>cut", "cut"),
        ] {
            assert_eq!(read(answer, 100).unwrap(), summary, "{answer}");
        }
        assert!(matches!(
            read("<summary> </summary>", 100),
            Err(CompactError::NoSummary(InternalForkError::Empty))
        ));
        assert!(matches!(read(&"x".repeat(500), 100), Err(CompactError::TooLong { .. })));
    }

    #[test]
    fn halves_are_conversations() {
        let mut conversation = Conversation::default();
        conversation.push(Message::user("begin ".repeat(50))).unwrap();
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
            conversation = newer;
        }
        assert!(sizes.len() > 3 && sizes.windows(2).all(|pair| pair[1] < pair[0]), "{sizes:?}");
    }
}
