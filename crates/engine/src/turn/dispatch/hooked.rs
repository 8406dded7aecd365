//! Hooks around a call: before it, in a person's place, and after it.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use centurion_hooks::events::{
    CwdChanged, Notification, PermissionDenied, PermissionRequest, PostToolUse, PostToolUseFailure,
    PreToolUse,
};
use centurion_hooks::{Effects, Event, McpServer, RequestDecision, ToolCall, ToolDecision};
use centurion_permissions::{Access, Mode};
use centurion_protocol::{ToolResult, ToolResultContent, ToolUse};
use centurion_tools::ToolContext;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio_util::sync::CancellationToken;

use super::{CallResult, Dispatch, ReadyCall};
use crate::agent::member_frames::CallDenied;
use crate::policy::broker::Reply;
use crate::policy::permissions::Remember;
use centurion_protocol::markup::contain;

/// The output of hooks beside the result of a call.
#[derive(Debug, Default)]
pub(crate) struct HookOutput {
    /// Texts for the model.
    pub(crate) context: Vec<String>,
    /// The run ends, and why.
    pub(crate) stop: Option<String>,
    pub(super) company: CallGrouping,
}

/// True if a call is the only one of its answer. Only then may a hook put it off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallGrouping {
    Alone,
    #[default]
    WithOthers,
}

impl HookOutput {
    pub(crate) fn take(&mut self, context: Vec<String>, effects: &Effects) {
        self.context.extend(context);
        if let Some(stop) = &effects.stop {
            let reason = stop.reason.clone().unwrap_or_else(|| "a hook ended the run".to_owned());
            self.stop.get_or_insert(reason);
        }
    }
}

/// The decision of hooks about a call, before the rules decide.
pub(super) enum Leave {
    /// Nothing.
    Usual,
    /// It needs no question. What rules deny or ask about is not theirs to give.
    Granted,
    /// A person decides, for this reason.
    MustAsk(String),
}

impl Dispatch {
    /// Lets hooks see a call before anything else does. They may change it, refuse it, or speak for it.
    pub(super) async fn before<'a>(
        &self,
        ready: ReadyCall<'a>,
        context: &ToolContext,
        aside: &mut HookOutput,
    ) -> Result<(ReadyCall<'a>, Leave), Box<CallResult>> {
        if !self.agent.has_hooks(Event::PreToolUse) {
            return Ok((ready, Leave::Usual));
        }
        let shown = self.shown(&ready.call, &ready.access);
        let fired = self.agent.fire(&PreToolUse { call: shown.call() }, &context.cancel).await;
        aside.take(fired.context_for_model(), &fired.effects);
        let verdict = fired.verdict;
        if let Some(message) = verdict.denial(&ready.call.name) {
            let reason = verdict.reason.unwrap_or_else(|| "a hook denied it".to_owned());
            let error = CallResult::error(&ready.call.id, contain(&message).into_owned());
            let kind = Some("hook".to_owned());
            let is_told = fired.is_denied_by_host;
            let denied = CallDenied { reason, kind, interrupt: false, is_told };
            return Err(Box::new(CallResult { denied: Some(denied), ..error }));
        }
        // A hook that was cut off might have said no.
        if aside.stop.is_some() || context.cancel.is_cancelled() {
            return Err(Box::new(CallResult::not_begun(&ready.call.id)));
        }
        if verdict.decision == Some(ToolDecision::Defer) && aside.company == CallGrouping::Alone {
            let not_yet = CallResult::not_begun(&ready.call.id);
            return Err(Box::new(CallResult { is_deferred: true, ..not_yet }));
        }
        let leave = match verdict.decision {
            Some(ToolDecision::Allow) => Leave::Granted,
            Some(ToolDecision::Ask | ToolDecision::Defer) => {
                let why = verdict.reason.unwrap_or_else(|| "no reason was given".to_owned());
                Leave::MustAsk(format!("a hook wants a person to decide: {why}"))
            }
            Some(ToolDecision::Deny) | None => Leave::Usual,
        };
        let ready = match verdict.updated_input.and_then(|input| to_raw_value(&input).ok()) {
            Some(input) => self.rewritten(ready, input, context)?,
            None => ready,
        };
        Ok((ready, leave))
    }

    /// The answer of a hook to a question that a person would be asked.
    pub(super) async fn answered_by_hook(
        &self,
        ready: &ReadyCall<'_>,
        suggestions: &[Value],
        cancel: &CancellationToken,
        aside: &mut HookOutput,
    ) -> Option<Reply> {
        if !self.agent.has_hooks(Event::PermissionRequest) {
            return None;
        }
        let shown = self.shown(&ready.call, &ready.access);
        let request = PermissionRequest { call: shown.call(), permission_suggestions: suggestions };
        let fired = self.agent.fire(&request, cancel).await;
        aside.take(fired.context_for_model(), &fired.effects);
        Some(match fired.verdict? {
            RequestDecision::Allow { updated_input, updated_permissions } => Reply::Allowed {
                input: updated_input.and_then(|input| to_raw_value(&input).ok()),
                remember: updated_permissions
                    .into_iter()
                    .filter_map(Remember::from_update)
                    .collect(),
            },
            RequestDecision::Deny { message, interrupt } => {
                let reason = message.unwrap_or_else(|| "a hook said no".to_owned());
                if fired.is_denied_by_host {
                    Reply::HostDenied { reason, interrupt }
                } else {
                    Reply::Denied { reason, interrupt }
                }
            }
        })
    }

    /// Lets hooks call a person who is about to be asked.
    pub(super) async fn call_for_attention(
        &self,
        tool: &str,
        cancel: &CancellationToken,
        aside: &mut HookOutput,
    ) {
        if !self.agent.has_hooks(Event::Notification) || !self.broker.has_answerer() {
            return;
        }
        let message = format!("{tool} needs your permission");
        let notification =
            Notification { message: &message, title: None, notification_type: "permission_prompt" };
        let fired = self.agent.fire(&notification, cancel).await;
        aside.take(Vec::new(), &fired.effects);
    }

    /// Tells hooks of a call that auto mode denied; whether the model may try again.
    pub(super) async fn told_denied(
        &self,
        ready: &ReadyCall<'_>,
        reason: &str,
        cancel: &CancellationToken,
        aside: &mut HookOutput,
    ) -> bool {
        if !self.agent.has_hooks(Event::PermissionDenied)
            || self.agent.permissions.mode() != Mode::Auto
        {
            return false;
        }
        let shown = self.shown(&ready.call, &ready.access);
        let fired = self.agent.fire(&PermissionDenied { call: shown.call(), reason }, cancel).await;
        aside.take(fired.context_for_model(), &fired.effects);
        fired.verdict
    }

    /// Lets hooks see the result of a call. They may add to it, or put something in its place.
    pub(super) async fn after(
        &self,
        call: &ToolUse,
        access: &Access,
        mut dispatched: CallResult,
        took: Duration,
        aside: &mut HookOutput,
    ) -> CallResult {
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let failed = dispatched.result.is_error;
        let event = if failed { Event::PostToolUseFailure } else { Event::PostToolUse };
        if !self.agent.has_hooks(event) {
            return dispatched;
        }
        let shown = self.shown(call, access);
        let name = format!("{event}:{}", call.name);
        if failed {
            let error = text_of(&dispatched.result);
            let is_interrupt = dispatched.is_cut_short.then_some(true);
            let failure =
                PostToolUseFailure { call: shown.call(), error: &error, is_interrupt, duration_ms };
            let fired = self.agent.fire(&failure, &CancellationToken::new()).await;
            aside.take(fired.context_for_model(), &fired.effects);
            aside.context.extend(feedback(&name, fired.verdict.reason()));
            return dispatched;
        }
        let tool_response = &dispatched.data;
        let done = PostToolUse { call: shown.call(), tool_response, duration_ms };
        let fired = self.agent.fire(&done, &CancellationToken::new()).await;
        aside.take(fired.context_for_model(), &fired.effects);
        aside.context.extend(feedback(&name, fired.verdict.block.reason()));
        let for_servers = fired.verdict.updated_mcp_output.filter(|_| shown.server.is_some());
        if let Some(output) = for_servers.or(fired.verdict.updated_output) {
            let text = match &output {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            dispatched.result.content = vec![ToolResultContent::Text(text)];
            dispatched.data = output;
        }
        dispatched
    }

    /// Tells hooks that the shell stands elsewhere than before a call.
    pub(in crate::turn) async fn moved(&self, stood: &Path, aside: &mut HookOutput) {
        if !self.agent.has_hooks(Event::CwdChanged) {
            return;
        }
        let stands = self.agent.workspace.cwd();
        if stands != stood {
            let moved = CwdChanged { old_cwd: stood, new_cwd: &stands };
            let fired = self.agent.fire(&moved, &CancellationToken::new()).await;
            aside.take(fired.context_for_model(), &fired.effects);
        }
    }

    /// A call as hooks are shown it.
    fn shown<'a>(&self, call: &'a ToolUse, access: &'a Access) -> ShownCall<'a> {
        let named = self.named(call);
        let input = named.as_deref().and_then(|path| with_path(&call.input, path));
        let input = input.map_or(Cow::Borrowed(&*call.input), Cow::Owned);
        ShownCall { call, access, input, named, server: self.agent.servers.owner(&call.name) }
    }
}

/// A call as hooks are shown it, with what that borrows from.
struct ShownCall<'a> {
    call: &'a ToolUse,
    access: &'a Access,
    input: Cow<'a, RawValue>,
    named: Option<std::path::PathBuf>,
    server: Option<(String, &'static str)>,
}

impl ShownCall<'_> {
    fn call(&self) -> ToolCall<'_> {
        let server = self.server.as_ref();
        ToolCall {
            tool: &self.call.name,
            input: &self.input,
            id: &self.call.id,
            mcp_server: server.map(|(name, source)| McpServer { name, source }),
            access: self.access,
            named: self.named.as_deref(),
        }
    }
}

/// The input with its path made absolute; `None` where it is already.
fn with_path(input: &RawValue, path: &Path) -> Option<Box<RawValue>> {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(input.get()).ok()?;
    let name = ["file_path", "notebook_path", "path"]
        .into_iter()
        .find(|name| fields.contains_key(*name))?;
    let absolute = Value::String(path.to_str()?.to_owned());
    let before = fields.insert(name.to_owned(), absolute.clone());
    (before != Some(absolute)).then(|| to_raw_value(&fields).ok()).flatten()
}

/// The objection of a hook, as the model reads it.
fn feedback(name: &str, reason: Option<&str>) -> Option<String> {
    reason.map(|reason| format!("{name} hook feedback: {reason}"))
}

/// The text of a result.
pub(crate) fn text_of(result: &ToolResult) -> String {
    let text = |part: &ToolResultContent| match part {
        ToolResultContent::Text(text) => Some(text.clone()),
        _ => None,
    };
    result.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
