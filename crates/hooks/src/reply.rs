//! The reply of one hook: its exit code, its output and its errors, interpreted for the event.

use centurion_protocol::JsonShape;
use serde::Deserialize;

use crate::event::{Event, ExitTwo};
use crate::handler::PromptAction;
use crate::output::{DecisionWord, HookOutput, RequestDecision, Specific, ToolDecision};

/// The deepest JSON that is parsed.
const DEEPEST_OUTPUT: usize = 120;

/// The end of one run of a handler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandlerEnd {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) end: End,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Finished,
    /// The caller has stopped waiting.
    Cancelled,
    /// It could not run, or not to its end.
    Failed(String),
    /// It ran, and printed more than is read: its decision is not known.
    SaidTooMuch(String),
}

impl HandlerEnd {
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self { end: End::Failed(why.into()), ..Self::default() }
    }

    /// The end of a handler without an exit code, with its text.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self { stdout: text.into(), exit_code: Some(0), ..Self::default() }
    }
}

/// The reply of one hook, ready to be combined with others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The hook's name for people and models.
    pub(crate) label: String,
    pub(crate) output: HookOutput,
    /// Output that is not JSON.
    pub(crate) plain: Option<String>,
    /// The error output of exit code 2.
    pub(crate) exit_two: Option<String>,
    /// A model's refusal.
    pub(crate) refusal: Option<Refusal>,
    /// The reason that the hook had no effect.
    pub(crate) error: Option<String>,
    /// True if the hook is a function of the host.
    pub(crate) is_hosts: bool,
}

/// A model's refusal, and its effect at the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) blocks: bool,
    pub(crate) ends_turn: bool,
}

impl Reply {
    /// Interprets the end of a command or a similar handler.
    pub(crate) fn read(event: Event, label: String, ended: &HandlerEnd) -> Self {
        let mut reply = Self { label, ..Self::default() };
        match &ended.end {
            End::Finished => {}
            End::Cancelled => return reply,
            End::Failed(why) => {
                reply.error = Some(why.clone());
                return reply;
            }
            // Plain text decides nothing, however long it is.
            End::SaidTooMuch(_) if is_plain(&ended.stdout) => {}
            End::SaidTooMuch(why) => {
                reply.exit_two =
                    (ended.exit_code == Some(2)).then(|| ended.stderr.trim().to_owned());
                reply.fail_closed(event, why);
                return reply;
            }
        }
        let text = ended.stdout.trim();
        let is_json = text.starts_with('{');
        let output = is_json.then(|| HookOutput::parse(event, text));
        let has_output = matches!(output, Some(Ok(_)));
        match output {
            Some(Ok(output)) => reply.output = output,
            Some(Err(why)) if JsonShape::of(text.as_bytes()).depth > DEEPEST_OUTPUT => {
                reply.fail_closed(event, &format!("its output {why}"));
            }
            Some(Err(why)) => reply.error = Some(format!("its output {why}")),
            None => {}
        }
        match ended.exit_code {
            Some(0) if !is_json && !text.is_empty() => reply.plain = Some(text.to_owned()),
            Some(0) => {}
            Some(2) => reply.exit_two = Some(ended.stderr.trim().to_owned()),
            // Output counts with any exit code; but a failed worktree is none, whatever the output.
            _ if has_output && event != Event::WorktreeCreate => {}
            code => reply.error = Some(failure(code, &ended.stderr)),
        }
        // Such an exit code is not reported, and neither is its text.
        if event.exit_two() == ExitTwo::Ignored && reply.exit_two.take().is_some() {
            tracing::debug!(%event, label = reply.label, "exit code 2 has no effect");
        }
        reply
    }

    /// Treats an answer that is too long or too deep as a refusal, where a hook can refuse. A hook often quotes the
    /// model's own words: they must not be able to remove its refusal.
    fn fail_closed(&mut self, event: Event, why: &str) {
        self.error = Some(why.to_owned());
        self.refuse(event, &format!("{why}; what cannot be read counts as a denial"));
    }

    /// Has what the event guards not happen where the hook failed, or said what is no output of a function. The end of
    /// work is never guarded: an agent that may not stop would not end.
    pub(crate) fn block_on_failure(&mut self, event: Event) {
        use Event::{Stop, SubagentStop, TaskCompleted, TeammateIdle};
        if self.plain.take().is_some() {
            self.error = Some("its output is no object".to_owned());
        }
        let Some(why) = self.error.clone() else { return };
        if !matches!(event, Stop | SubagentStop | TaskCompleted | TeammateIdle) {
            self.refuse(event, &format!("{why}; this hook has to succeed"));
        }
    }

    /// Refuses what the event is about, where a hook can refuse it.
    fn refuse(&mut self, event: Event, why: &str) {
        let reason = self.with_label(why);
        if event.exit_two() == ExitTwo::Blocks {
            self.refusal = Some(Refusal { reason, blocks: true, ends_turn: false });
        } else if event == Event::PermissionRequest {
            let denial = RequestDecision::Deny { message: Some(reason), interrupt: false };
            self.output.specific.get_or_insert_default().decision = Some(denial);
        }
    }

    /// Interprets a model's answer to a prompt.
    pub(crate) fn judged(event: Event, label: String, action: &PromptAction, answer: &str) -> Self {
        let mut reply = Self { label, ..Self::default() };
        match Judgement::parse(answer) {
            Ok(judgement) => reply.refusal = judgement.refusal(event, action.continue_on_block),
            Err(error) => reply.error = Some(error.to_string()),
        }
        reply
    }

    /// Whether the hook denies a call.
    pub(crate) fn denies(&self) -> bool {
        let specific = self.specific();
        let says_no = specific.is_some_and(|it| {
            it.permission_decision == Some(ToolDecision::Deny)
                || matches!(it.decision, Some(RequestDecision::Deny { .. }))
        });
        says_no || self.block().is_some()
    }

    pub(crate) fn specific(&self) -> Option<&Specific> {
        self.output.specific.as_ref()
    }

    /// The hook's reason to block, as the model reads it.
    pub(crate) fn block(&self) -> Option<String> {
        if let Some(errors) = &self.exit_two {
            return Some(match (errors.as_str(), &self.output.reason) {
                ("", Some(reason)) => reason.clone(),
                _ => self.with_label(errors),
            });
        }
        if self.output.decision == Some(DecisionWord::Block) {
            let reason = self.output.reason.clone();
            return Some(reason.unwrap_or_else(|| self.with_label("")));
        }
        self.refusal.as_ref().filter(|it| it.blocks).map(|it| it.reason.clone())
    }

    /// `[command]: text`, so that a reader knows the source.
    pub(crate) fn with_label(&self, text: &str) -> String {
        let text = if text.is_empty() { "no reason was given" } else { text };
        format!("[{}]: {text}", self.label)
    }

    /// All texts that may enter a conversation or reach a person.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let HookOutput { stop_reason, system_message, reason, specific, .. } = &mut self.output;
        let specific = specific.iter_mut().flat_map(|it| {
            [
                &mut it.additional_context,
                &mut it.permission_decision_reason,
                &mut it.initial_user_message,
            ]
        });
        let refusal = self.refusal.iter_mut().map(|it| &mut it.reason);
        [stop_reason, system_message, reason, &mut self.plain, &mut self.exit_two]
            .into_iter()
            .chain(specific)
            .flatten()
            .chain(refusal)
    }
}

/// Whether output is text and no JSON, as far as it was read.
fn is_plain(output: &str) -> bool {
    !matches!(output.trim_start().chars().next(), None | Some('{'))
}

fn failure(code: Option<i32>, errors: &str) -> String {
    let how = match code {
        Some(127) => "was not found (exit code 127)".to_owned(),
        Some(code) => format!("failed with exit code {code}"),
        None => "was ended by a signal".to_owned(),
    };
    match errors.trim() {
        "" => how,
        errors => format!("{how}: {errors}"),
    }
}

/// An answer of a model that is no [`Judgement`].
#[derive(Debug, thiserror::Error)]
#[error("the model was to answer {{\"ok\": true or false}}, and said: {shown}")]
struct NoJudgement {
    shown: String,
}

/// A model's answer to a prompt of a hook.
#[derive(Debug, Deserialize)]
struct Judgement {
    ok: bool,
    #[serde(default)]
    reason: Option<String>,
    /// The request cannot be met, so continuing would be useless.
    #[serde(default)]
    impossible: bool,
}

impl Judgement {
    /// Finds the JSON object in an answer: models often put words or a fence around it.
    fn parse(answer: &str) -> Result<Self, NoJudgement> {
        let object = answer.find('{').zip(answer.rfind('}'));
        let object = object.and_then(|(start, end)| answer.get(start..=end));
        object
            .and_then(|object| serde_json::from_str(object).ok())
            .ok_or_else(|| NoJudgement { shown: answer.chars().take(200).collect() })
    }

    fn refusal(self, event: Event, continue_on_block: bool) -> Option<Refusal> {
        use Event as E;
        let (blocks, ends_turn) = match event {
            _ if self.ok => return None,
            E::Stop | E::SubagentStop => (!self.impossible, false),
            E::PreToolUse => (true, !continue_on_block),
            E::PostToolUse | E::TeammateIdle => (continue_on_block, !continue_on_block),
            E::PostToolBatch | E::UserPromptSubmit | E::UserPromptExpansion => (false, true),
            E::PostToolUseFailure | E::TaskCreated | E::TaskCompleted => (true, false),
            _ => return None,
        };
        let reason = self.reason.filter(|reason| !reason.trim().is_empty());
        let reason = reason.unwrap_or_else(|| "no reason was given".to_owned());
        Some(Refusal { reason, blocks, ends_turn })
    }
}

/// The reasons of all blocking hooks, in order.
pub(crate) fn blocks(replies: &[Reply]) -> Option<String> {
    let reasons: Vec<String> = replies.iter().filter_map(Reply::block).collect();
    (!reasons.is_empty()).then(|| reasons.join("\n"))
}

/// The last value from a hook, in the order of declaration.
pub(crate) fn last<T>(replies: &[Reply], value: impl Fn(&Specific) -> Option<T>) -> Option<T> {
    replies.iter().rev().find_map(|reply| value(reply.specific()?))
}

#[cfg(test)]
mod tests;
