//! Calls of tools: before, instead of a question, after, and all of one answer together.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Block;
use crate::event::Event;
use crate::input::{Common, EventInput, ToolCall};
use crate::output::{DecisionWord, RequestDecision, ToolDecision};
use crate::reply::{self, Reply};

/// A call is about to run; its input is good.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PreToolUse<'a> {
    #[serde(flatten)]
    pub call: ToolCall<'a>,
}

/// What hooks say about a call before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreToolVerdict {
    /// The strictest word of all hooks: deny, defer, ask, allow.
    pub decision: Option<ToolDecision>,
    /// Why, from every hook that said so.
    pub reason: Option<String>,
    /// What the call is to run with instead. Of several, the one declared last.
    pub updated_input: Option<Map<String, Value>>,
}

impl PreToolVerdict {
    /// What the model reads for a call that is denied.
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
        let words: Vec<_> = replies.iter().filter_map(word).collect();
        let decision = words.iter().map(|(decision, _)| *decision).max();
        let winners = words.into_iter().filter(|(word, _)| Some(*word) == decision);
        let reasons: Vec<String> = winners.filter_map(|(_, reason)| reason).collect();
        PreToolVerdict {
            decision,
            reason: (!reasons.is_empty()).then(|| reasons.join("\n")),
            updated_input: reply::last(replies, |it| it.updated_input.clone()),
        }
    }
}

/// What one hook says about the call.
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

/// A person would have to be asked about a call.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PermissionRequest<'a> {
    #[serde(flatten)]
    pub call: ToolCall<'a>,
    /// What an answer could mean for later calls.
    pub permission_suggestions: &'a [Value],
}

impl EventInput for PermissionRequest<'_> {
    const EVENT: Event = Event::PermissionRequest;
    /// A no of any hook wins; else the first yes.
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

/// A call was not allowed, and no person was asked.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PermissionDenied<'a> {
    #[serde(flatten)]
    pub call: ToolCall<'a>,
    pub reason: &'a str,
}

impl EventInput for PermissionDenied<'_> {
    const EVENT: Event = Event::PermissionDenied;
    /// Whether the model is told that it may try again.
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

/// What hooks make of a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PostToolVerdict {
    /// What the model reads beside the result.
    pub block: Block,
    /// What stands for the result instead. Of several, the one declared last.
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
    /// What the model reads beside the error.
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
    /// As the model reads it.
    pub tool_response: &'a str,
}

impl EventInput for PostToolBatch<'_> {
    const EVENT: Event = Event::PostToolBatch;
    /// Why the run ends before the model is asked again.
    type Verdict = Block;

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        Block::of(replies)
    }
}
