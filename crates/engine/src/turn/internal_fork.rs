//! Internal forks: one request beside a conversation, which the conversation never sees.
//!
//! Given are what the request begins with, what is asked, and a bound on the answer; what comes out is text. The tools are
//! sent as they are, so that the provider reads what it has cached, and no call is carried out. Dropping the future
//! cancels the request. However it ends, what it consumed is paid for, and the journal says what it was for.

use std::sync::Arc;

use centurion_journal::Journal;
use centurion_model::{
    Answer, AnswerBuilder, ModelError, ModelEvent, Patience, Prefix, ProviderKind, Request,
    SystemPrompt,
};
use centurion_protocol::{
    AgentId, Conversation, Effort, InvalidHistory, Message, ReportedUsage, StopReason, Thinking,
    ToolSpecs, Usage,
};
use futures_util::StreamExt;
use parking_lot::Mutex;
use serde_json::json;
use thiserror::Error;

use crate::agent::fork_point::ForkPoint;
use crate::agent::shared::Shared;
use crate::money::budget::{Amount, Budget, OverBudget, Reservation};

/// The subtype of the note that says what a request beside a conversation was for.
pub(crate) const NOTE: &str = "internal_fork";

/// The purpose of a compaction there.
pub(crate) const COMPACT_PURPOSE: &str = "compact";

/// The tokens of an answer for which money is reserved.
const LIKELY_ANSWER: u32 = 1_024;

/// A request beside a conversation.
pub(crate) struct InternalFork {
    /// The purpose, as the journal calls it.
    pub(crate) purpose: &'static str,
    pub(crate) model: String,
    pub(crate) effort: Option<Effort>,
    pub(crate) thinking: Thinking,
    /// The prefix: a conversation without open calls.
    pub(crate) prefix: Prefix,
    /// The question behind the prefix.
    pub(crate) question: String,
    pub(crate) max_tokens: u32,
    /// The agent beside which it runs, and its parent.
    pub(crate) agent: Option<AgentId>,
    pub(crate) parent_agent: Option<AgentId>,
    /// The journal that records it.
    pub(crate) journal: Option<Arc<Journal>>,
    /// The tokens of the input that the provider is likely to have in its cache.
    pub(crate) cached_tokens: u64,
    /// A sum to which its cost is added.
    pub(crate) receipt: Option<Arc<Mutex<f64>>>,
    /// The budget that pays for it.
    pub(crate) budget: Arc<Budget>,
    /// An answer that comes to cost more than this, in dollars, is given up.
    pub(crate) ceiling: Option<f64>,
    /// An answer that becomes longer than about so many tokens is given up.
    pub(crate) longest: Option<u64>,
    pub(crate) patience: Patience,
}

/// The reason why there is no answer.
#[derive(Debug, Error)]
pub enum InternalForkError {
    #[error(transparent)]
    Budget(#[from] OverBudget),
    #[error(transparent)]
    History(#[from] InvalidHistory),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the model called a tool instead of answering")]
    Called,
    #[error("the model did not finish its answer")]
    CutOff,
    #[error("the model said nothing")]
    Empty,
    #[error("the answer comes to cost more than its budget of ${0}")]
    Ceiling(f64),
    #[error("the answer became longer than about {0} tokens")]
    Endless(u64),
}

impl InternalFork {
    /// A question behind what an agent has sent.
    pub(crate) fn after_conversation(
        shared: &Shared,
        point: &ForkPoint,
        purpose: &'static str,
        question: String,
    ) -> Self {
        Self {
            purpose,
            model: point.settings.model.clone(),
            effort: point.settings.effort,
            thinking: point.settings.thinking,
            prefix: point.prefix.clone(),
            question,
            // As the conversation's own requests: with another bound on thinking, a provider reads nothing from its cache.
            max_tokens: u32::MAX,
            agent: None,
            parent_agent: None,
            journal: point.journal.clone(),
            cached_tokens: point.cached.map_or(0, |cached| cached.tokens),
            receipt: None,
            budget: Arc::clone(&shared.budget),
            ceiling: None,
            longest: None,
            // An answer that comes late is worth little.
            patience: Patience::Brief,
        }
    }

    /// A small question to a small model, which knows nothing of any conversation: the small model where there is one
    /// that may be used, else the asking agent's own.
    pub(crate) fn with_small_model(
        shared: &Shared,
        own: &str,
        purpose: &'static str,
        system: &str,
        question: String,
    ) -> Self {
        let refuses = |name: &str| (shared.delegation.builder.check_model)(name).is_err();
        let model = match shared.model.provider_kind() {
            ProviderKind::Anthropic if !refuses("haiku") => shared.model.resolve("haiku"),
            _ if own.is_empty() => shared.model.name().to_owned(),
            _ => own.to_owned(),
        };
        Self {
            purpose,
            model,
            effort: None,
            thinking: Thinking::Disabled,
            prefix: Prefix {
                system: SystemPrompt::new(vec![system.to_owned()]),
                tools: ToolSpecs::new(Vec::new()),
                conversation: Conversation::default(),
            },
            question,
            max_tokens: u32::MAX,
            agent: None,
            parent_agent: None,
            journal: None,
            cached_tokens: 0,
            receipt: None,
            budget: Arc::clone(&shared.budget),
            ceiling: None,
            longest: None,
            // An answer that comes late is worth little.
            patience: Patience::Brief,
        }
    }

    /// Asks, and gives the text of the answer.
    pub(crate) async fn ask(self, shared: &Shared) -> Result<String, InternalForkError> {
        let answer = self.ask_whole(shared).await?;
        if !matches!(answer.stop_reason, StopReason::EndTurn | StopReason::StopSequence) {
            return Err(InternalForkError::CutOff);
        }
        let text = answer.text();
        if text.trim().is_empty() { Err(InternalForkError::Empty) } else { Ok(text) }
    }

    /// Asks, and gives all that the answer has, however it ended.
    pub(crate) async fn ask_whole(self, shared: &Shared) -> Result<Answer, InternalForkError> {
        let Self {
            purpose,
            model,
            mut prefix,
            question,
            max_tokens,
            journal,
            budget,
            patience,
            cached_tokens,
            receipt,
            ceiling,
            longest,
            ..
        } = self;
        let info = shared.model.info(&model);
        prefix.conversation.push(Message::user(question))?;
        let input = prefix.tokens() as u64;
        let cached = cached_tokens.min(input);
        let least = Usage {
            input_tokens: input - cached,
            cache_read_input_tokens: cached,
            output_tokens: max_tokens.min(LIKELY_ANSWER).into(),
            ..Usage::default()
        };
        let amount = Amount { dollars: info.cost(&least), tokens: least.total() };
        let reservation = budget.set_aside(amount).await?;
        let request = Request {
            model: model.clone(),
            prefix,
            max_tokens: max_tokens.min(info.max_output),
            thinking: self.thinking,
            effort: self.effort,
            session: shared.id(),
            agent: self.agent,
            parent_agent: self.parent_agent,
        };
        let payment = Payment {
            shared,
            purpose,
            model,
            journal,
            receipt,
            reservation: Some(reservation),
            builder: AnswerBuilder::default(),
            used: ReportedUsage::default(),
        };
        let answer = payment.finish(request, patience, ceiling, longest).await?;
        if answer.calls().next().is_some() {
            return Err(InternalForkError::Called);
        }
        Ok(answer)
    }
}

/// A request under way. However it ends, what it consumed is counted and recorded.
struct Payment<'a> {
    shared: &'a Shared,
    purpose: &'static str,
    model: String,
    journal: Option<Arc<Journal>>,
    receipt: Option<Arc<Mutex<f64>>>,
    reservation: Option<Reservation>,
    builder: AnswerBuilder,
    used: ReportedUsage,
}

impl Payment<'_> {
    async fn finish(
        mut self,
        request: Request,
        patience: Patience,
        ceiling: Option<f64>,
        longest: Option<u64>,
    ) -> Result<Answer, InternalForkError> {
        let info = self.shared.model.info(&self.model);
        // The length of the answer, and of those that broke off before it.
        let (mut said, mut lost) = (0_u64, 0_u64);
        let mut events = self.shared.model.stream(request, patience);
        while let Some(event) = events.next().await {
            match event? {
                ModelEvent::Stream(event) => {
                    said += event.text_length();
                    self.builder.push(&event);
                    let mut used = self.used.clone();
                    used += self.builder.usage();
                    // The provider counts what it says only at the end.
                    used.counts.output_tokens = used.counts.output_tokens.max((lost + said) / 4);
                    if let Some(ceiling) = ceiling.filter(|most| info.cost_of(&used) > *most) {
                        return Err(InternalForkError::Ceiling(ceiling));
                    }
                    if let Some(longest) = longest.filter(|most| said / 4 > *most) {
                        return Err(InternalForkError::Endless(longest));
                    }
                }
                ModelEvent::Retry(_) => {
                    self.used += std::mem::take(&mut self.builder).usage();
                    lost += std::mem::take(&mut said);
                }
                // Its turn comes.
                ModelEvent::Held => {}
            }
        }
        Ok(self.builder.clone().finish()?)
    }
}

impl Drop for Payment<'_> {
    fn drop(&mut self) {
        let mut used = std::mem::take(&mut self.used);
        used += self.builder.usage();
        if used.counts.total() == 0 {
            return;
        }
        let dollars = self.shared.add_usage(&self.model, &used);
        if let Some(receipt) = &self.receipt {
            *receipt.lock() += dollars;
        }
        if let Some(reservation) = self.reservation.take() {
            reservation.settle(Amount { dollars, tokens: used.counts.total() });
        }
        let note = json!({"purpose": self.purpose, "model": self.model, "usage": used});
        if let Some(journal) = &self.journal
            && let Err(error) = journal.note(NOTE, &note)
        {
            tracing::error!(%error, "a request beside a conversation could not be recorded");
        }
    }
}

/// The most characters of a line that is shown.
const LINE: usize = 120;

/// The first line of an answer, without what would command a terminal and without quotes around it.
pub(crate) fn first_line(answer: &str) -> String {
    let line = answer.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let plain: String = line.chars().filter(|letter| !letter.is_control()).collect();
    let plain = plain.trim_matches(['"', '`', '*', ' ']);
    let shown: String = plain.chars().take(LINE).collect();
    if shown.len() < plain.len() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_becomes_one_plain_line() {
        assert_eq!(first_line("\n  \"Reading the tests\"\nand more"), "Reading the tests");
        assert_eq!(first_line("a\x1b[31mb"), "a[31mb");
        assert_eq!(first_line(&"é".repeat(LINE + 1)), format!("{}…", "é".repeat(LINE)));
        assert_eq!(first_line(" \n"), "");
    }
}
