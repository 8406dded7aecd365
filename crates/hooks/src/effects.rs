//! The effects of hooks at any event: they end the run, add context, tell the user something, fail.

use std::fmt;

use crate::event::{Event, ExitTwo};
use crate::reply::Reply;
use crate::terminal;

/// The effects of all hooks of an event beside their verdict. Texts are as the hooks wrote them: a caller that puts
/// them into a conversation must keep them from forming markup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Ends the run.
    pub stop: Option<StopRun>,
    /// Context for the model, in the order of declaration.
    pub context: Vec<String>,
    /// Messages for the user.
    pub user_messages: Vec<String>,
    /// Sequences for the terminal: titles, notifications, a bell.
    pub terminal_sequences: Vec<String>,
    /// Hooks that had no effect, and the reasons. They stop nothing.
    pub errors: Vec<HookError>,
}

/// A hook ended the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopRun {
    /// For the user.
    pub reason: Option<String>,
}

/// A hook that had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookError {
    /// Such as `PreToolUse:Bash`.
    pub hook_name: String,
    /// The command, the URL or another name of its action.
    pub label: String,
    pub message: String,
}

impl fmt::Display for HookError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} hook error: [{}]: {}", self.hook_name, self.label, self.message)
    }
}

/// The verdict and the effects of the hooks of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookResult<V> {
    pub verdict: V,
    pub effects: Effects,
    /// True if a function of the host denied what the event is about: it needs no telling.
    pub is_denied_by_host: bool,
    /// The number of hooks that ran.
    pub runs: usize,
    /// Such as `PreToolUse:Bash`.
    pub hook_name: String,
}

impl<V> HookResult<V> {
    /// The context in the form that the model reads.
    pub fn context_for_model(&self) -> Vec<String> {
        let name = &self.hook_name;
        let context = self.effects.context.iter();
        context.map(|text| format!("{name} hook additional context: {text}")).collect()
    }
}

impl Effects {
    pub(crate) fn gather(event: Event, hook_name: &str, replies: &[Reply]) -> Self {
        let mut effects = Self::default();
        for reply in replies {
            effects.add(event, hook_name, reply);
        }
        effects
    }

    fn add(&mut self, event: Event, hook_name: &str, reply: &Reply) {
        let output = &reply.output;
        if output.should_continue == Some(false) && self.stop.is_none() {
            self.stop = Some(StopRun { reason: output.stop_reason.clone() });
        }
        if let Some(refusal) = reply.refusal.as_ref().filter(|it| it.ends_turn)
            && self.stop.is_none()
        {
            self.stop = Some(StopRun { reason: Some(refusal.reason.clone()) });
        }
        self.context.extend(reply.specific().and_then(|it| it.additional_context.clone()));
        if event.takes_plain_context() {
            self.context.extend(reply.plain.clone());
        }
        match &output.system_message {
            Some(message) if event == Event::DirectoryAdded => self.context.push(message.clone()),
            message => self.user_messages.extend(message.clone()),
        }
        if event.exit_two() == ExitTwo::TellsUser
            && let Some(errors) = &reply.exit_two
        {
            self.user_messages.push(reply.with_label(errors));
        }
        let mut fail = |message: String| {
            let (hook_name, label) = (hook_name.to_owned(), reply.label.clone());
            self.errors.push(HookError { hook_name, label, message });
        };
        if let Some(error) = &reply.error {
            fail(error.clone());
        }
        for (field, why) in output.without_effect(event) {
            fail(format!("its {field} has no effect {why}"));
        }
        match &output.terminal_sequence {
            Some(sequence) if terminal::is_harmless(sequence) => {
                self.terminal_sequences.push(sequence.clone());
            }
            Some(_) => fail(
                "its terminalSequence is left out: only titles, notifications and the bell may be sent"
                    .to_owned(),
            ),
            None => {}
        }
    }
}
