//! The prompts that a person has sent: listed until the journal has it.

use super::Addressee;

/// A prompt, by the order in which it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PromptNumber(pub u64);

/// The moment at which a prompt is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once: the turn is stopped for it.
    Now,
    /// Between two calls.
    Next,
    /// After the turn.
    Later,
}

/// The place of a prompt on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Held here until the turn is over.
    Held,
    /// With the session, which has not read it.
    Sent,
}

#[derive(Clone, Debug)]
pub(crate) struct WaitingPrompt {
    pub(crate) number: PromptNumber,
    pub(crate) to: Addressee,
    pub(crate) text: String,
    pub(crate) when: When,
    pub(crate) stage: Stage,
}

/// The prompts on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompts {
    last: u64,
    pub(crate) waiting: Vec<WaitingPrompt>,
    /// The prompt of the turn under way, as long as nothing has answered it.
    pub(crate) unanswered: Option<String>,
}

impl Prompts {
    pub(crate) fn add(
        &mut self,
        to: Addressee,
        text: String,
        when: When,
        stage: Stage,
    ) -> PromptNumber {
        self.last += 1;
        let number = PromptNumber(self.last);
        self.waiting.push(WaitingPrompt { number, to, text, when, stage });
        number
    }

    /// The last prompt that can be taken back.
    pub(crate) fn last_for(&self, to: &Addressee) -> Option<&WaitingPrompt> {
        self.waiting.iter().rev().find(|waiting| waiting.to == *to)
    }

    pub(crate) fn take(&mut self, number: PromptNumber) -> Option<WaitingPrompt> {
        let at = self.waiting.iter().position(|waiting| waiting.number == number)?;
        Some(self.waiting.remove(at))
    }

    /// Takes out what the session has read: what it no longer holds.
    pub(crate) fn delivered(&mut self, held: &[PromptNumber]) -> Vec<WaitingPrompt> {
        let is_left = |it: &WaitingPrompt| it.stage == Stage::Held || held.contains(&it.number);
        let (left, read) = std::mem::take(&mut self.waiting).into_iter().partition(is_left);
        self.waiting = left;
        read
    }
}
