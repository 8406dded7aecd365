//! Calls of tools: before, instead of a question, after, and all of one answer together.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Block;
use crate::event::Event;
use crate::input::{Common, EventInput, ToolCall};
use crate::output::{DecisionWord, RequestDecision, ToolDecision};
use crate::reply::{self, Reply};

/// A call with valid input is about to run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PreToolUse<'a> {
    #[serde(flatten)]
    pub call: ToolCall<'a>,
}

/// The verdict of hooks about a call before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreToolVerdict {
    /// The strictest decision of all hooks: deny, defer, ask, allow.
    pub decision: Option<ToolDecision>,
    /// The reasons of every hook with that decision.
    pub reason: Option<String>,
    /// The replacement for the call's input. Of several, the one declared last.
    pub updated_input: Option<Map<String, Value>>,
}

impl PreToolVerdict {
    /// The text for the model about a denied call.
    pub fn denial(&self, tool: &str) -> Option<String> {
        let reason = self.reason.as_deref().unwrap_or("no reason was given");
        (self.decision == Some(ToolDecision::Deny))
            .then(|| format!("PreToolUse:{tool} hook error: {reason}"))
    }
}

impl EventInput for PreToolUse<'_> {
    const EVENT: Event = Event::PreToolUse;
    type Verdict = PreToolVerdict;

    fn subject(&self) -> Option<&str> {
        Some(self.call.tool)
    }

    fn call(&self) -> Option<ToolCall<'_>> {
        Some(self.call)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> PreToolVerdict {
        let (decision, reason) = decide(replies);
        PreToolVerdict {
            decision,
            reason,
            updated_input: reply::last(replies, |it| it.updated_input.clone()),
        }
    }
}

/// The strongest decision of all hooks, with the reasons for it.
pub(super) fn decide(replies: &[Reply]) -> (Option<ToolDecision>, Option<String>) {
    let words: Vec<_> = replies.iter().filter_map(word).collect();
    let decision = words.iter().map(|(decision, _)| *decision).max();
    let winners = words.into_iter().filter(|(word, _)| Some(*word) == decision);
    let reasons: Vec<String> = winners.filter_map(|(_, reason)| reason).collect();
    (decision, (!reasons.is_empty()).then(|| reasons.join("\n")))
}

/// The decision of one hook.
fn word(reply: &Reply) -> Option<(ToolDecision, Option<String>)> {
    if let Some(reason) = reply.block() {
        return Some((ToolDecision::Deny, Some(reason)));
    }
    let specific = reply.specific();
    if let Some(decision) = specific.and_then(|it| it.permission_decision) {
        let reason = specific.and_then(|it| it.permission_decision_reason.clone());
        return Some((decision, reason.or_else(|| reply.output.reason.clone())));
    }
    (reply.output.decision == Some(DecisionWord::Approve))
        .then(|| (ToolDecision::Allow, reply.output.reason.clone()))
}

/// A call needs a person's permission.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PermissionRequest<'a> {
    #[serde(flatten)]
    pub call: ToolCall<'a>,
    /// The changes of permissions that an answer could include.
    pub permission_suggestions: &'a [Value],
}

impl EventInput for PermissionRequest<'_> {
    const EVENT: Event = Event::PermissionRequest;
    /// A denial by any hook wins; otherwise the first approval.
    type Verdict = Option<RequestDecision>;

    fn subject(&self) -> Option<&str> {
        Some(self.call.tool)
    }

    fn call(&self) -> Option<ToolCall<'_>> {
        Some(self.call)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> Option<RequestDecision> {
        let decisions = || replies.iter().filter_map(|reply| reply.specific()?.decision.as_ref());
        let denial = decisions().find(|it| matches!(it, RequestDecision::Deny { .. }));
        denial.or_else(|| decisions().next()).cloned()
    }
}

/// A call was denied without asking a person.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PermissionDenied<'a> {
    #[serde(flatten)]
    pub call: ToolCall<'a>,
    pub reason: &'a str,
}

impl EventInput for PermissionDenied<'_> {
    const EVENT: Event = Event::PermissionDenied;
    /// Whether the model is told that it may retry.
    type Verdict = bool;

    fn subject(&self) -> Option<&str> {
        Some(self.call.tool)
    }

    fn call(&self) -> Option<ToolCall<'_>> {
        Some(self.call)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> bool {
        reply::last(replies, |it| it.retry).unwrap_or(false)
    }
}

/// A call has run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PostToolUse<'a> {
    #[serde(flatten)]
    pub call: ToolCall<'a>,
    /// The structured result.
    pub tool_response: &'a Value,
    pub duration_ms: u64,
}

/// The verdict of hooks about a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PostToolVerdict {
    /// The text for the model beside the result.
    pub block: Block,
    /// The replacement for the result. Of several, the one declared last.
    pub updated_output: Option<Value>,
    /// The same for tools of MCP servers only.
    pub updated_mcp_output: Option<Value>,
}

impl EventInput for PostToolUse<'_> {
    const EVENT: Event = Event::PostToolUse;
    type Verdict = PostToolVerdict;

    fn subject(&self) -> Option<&str> {
        Some(self.call.tool)
    }

    fn call(&self) -> Option<ToolCall<'_>> {
        Some(self.call)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> PostToolVerdict {
        PostToolVerdict {
            block: Block::of(replies),
            updated_output: reply::last(replies, |it| it.updated_tool_output.clone()),
            updated_mcp_output: reply::last(replies, |it| it.updated_mcp_tool_output.clone()),
        }
    }
}

/// A call has failed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PostToolUseFailure<'a> {
    #[serde(flatten)]
    pub call: ToolCall<'a>,
    pub error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_interrupt: Option<bool>,
    pub duration_ms: u64,
}

impl EventInput for PostToolUseFailure<'_> {
    const EVENT: Event = Event::PostToolUseFailure;
    /// The text for the model beside the error.
    type Verdict = Block;

    fn subject(&self) -> Option<&str> {
        Some(self.call.tool)
    }

    fn call(&self) -> Option<ToolCall<'_>> {
        Some(self.call)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        Block::of(replies)
    }
}

/// All calls of one answer have ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PostToolBatch<'a> {
    pub tool_calls: &'a [BatchCall<'a>],
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct BatchCall<'a> {
    pub tool_name: &'a str,
    pub tool_input: &'a RawValue,
    pub tool_use_id: &'a str,
    /// The result as the model reads it.
    pub tool_response: &'a str,
}

impl EventInput for PostToolBatch<'_> {
    const EVENT: Event = Event::PostToolBatch;
    /// The reason that the run ends before the next request to the model.
    type Verdict = Block;

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        Block::of(replies)
    }
}
