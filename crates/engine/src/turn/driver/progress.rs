//! The progress of one request of the main agent, for observers: it is sent, the model thinks, the provider has limits.

use centurion_model::{Answer, BlockStart, Delta, StreamEvent};
use centurion_protocol::Outcome;
use centurion_protocol::sdk::{
    EventBody, ModelRefusalNoFallback, RateLimitEvent, Status, System, ThinkingTokens,
};

use super::{Driver, Run};

/// The estimated tokens of thinking between two events about it.
const STEP: u64 = 50;

/// The bytes of a token, about.
const BYTES: u64 = 4;

/// The thinking of one answer, as it comes.
#[derive(Debug, Default)]
pub(super) struct ThinkingCount {
    bytes: u64,
    told: u64,
}

impl ThinkingCount {
    /// Takes note of an event; the estimated tokens of the present block, and those since the last time, if there is
    /// something to tell.
    fn count(&mut self, event: &StreamEvent) -> Option<(u64, u64)> {
        match event {
            StreamEvent::BlockStart { block: BlockStart::Thinking, .. } => *self = Self::default(),
            StreamEvent::Delta { delta: Delta::Thinking(text), .. } => {
                self.bytes += text.len() as u64;
            }
            _ => return None,
        }
        let tokens = self.bytes / BYTES / STEP * STEP;
        let news = tokens - self.told;
        self.told = tokens;
        (news > 0).then_some((tokens, news))
    }
}

impl Driver {
    /// Tells that a request is on its way.
    pub(super) fn tell_request(&self, run: &mut Run) {
        run.times.request.get_or_insert(run.started.elapsed());
        if self.identity().is_main() {
            let status = Status { status: Some("requesting"), ..Status::default() };
            self.shared.show(EventBody::System(System::Status(status)));
        }
    }

    /// Tells that the model declined, if it did. No other model is asked in its place. Returns the outcome.
    pub(super) fn tell_refusal(&self, answer: &Answer, outcome: Outcome) -> Outcome {
        if outcome != Outcome::Refusal || !self.identity().is_main() {
            return outcome;
        }
        let refusal = ModelRefusalNoFallback {
            original_model: answer.model.clone(),
            request_id: answer.request_id.clone(),
            refused_user_message_uuid: self.early.prompts().last().copied(),
            content: "The model declined to answer.",
        };
        self.shared.show(EventBody::System(System::ModelRefusalNoFallback(Box::new(refusal))));
        outcome
    }

    /// Tells how far the model has thought.
    pub(super) fn tell_thinking(&self, thinking: &mut ThinkingCount, event: &StreamEvent) {
        if !self.identity().is_main() {
            return;
        }
        if let Some((estimated_tokens, estimated_tokens_delta)) = thinking.count(event) {
            let user_message_uuid = self.early.prompts().last().copied();
            let event =
                ThinkingTokens { estimated_tokens, estimated_tokens_delta, user_message_uuid };
            self.shared.show(EventBody::System(System::ThinkingTokens(event)));
        }
    }

    /// Tells what has changed about the limits of the provider, whichever agent met them.
    pub(super) fn tell_limit(&self) {
        let Some(limit) = self.shared.model.rate_limit() else { return };
        let mut told = self.shared.usage.told_limit.lock();
        if limit.differs_from(told.as_ref()) {
            *told = Some(limit.clone());
            let event = RateLimitEvent { rate_limit_info: limit };
            self.shared.show(EventBody::RateLimitEvent(event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_counted_in_steps_and_anew_for_each_block() {
        let begins = StreamEvent::BlockStart { index: 0, block: BlockStart::Thinking };
        let thought = |bytes: usize| {
            let delta = Delta::Thinking("x".repeat(bytes));
            StreamEvent::Delta { index: 0, delta }
        };
        let mut count = ThinkingCount::default();
        assert_eq!(count.count(&begins), None);
        assert_eq!(count.count(&thought(199)), None);
        assert_eq!(count.count(&thought(1)), Some((50, 50)));
        assert_eq!(count.count(&thought(100)), None);
        assert_eq!(count.count(&thought(900)), Some((300, 250)));
        let said = StreamEvent::Delta { index: 1, delta: Delta::Text("y".repeat(4_000)) };
        assert_eq!(count.count(&said), None);
        assert_eq!(count.count(&begins), None);
        assert_eq!(count.count(&thought(200)), Some((50, 50)));
    }
}
