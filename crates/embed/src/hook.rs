//! Hooks as closures.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use centurion_engine::HookHost;
use centurion_hooks::{DelegateFuture, Event as EngineEvent, HookSet};
use centurion_protocol::ToolUseId;
use serde_json::{Map, Value, json};
use thiserror::Error;

/// The events that hooks can be added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HookEvent {
    /// A call is about to be judged. The matcher names tools.
    PreToolUse,
    /// A call has succeeded. The matcher names tools.
    PostToolUse,
    /// A call has failed. The matcher names tools.
    PostToolUseFailure,
    /// A prompt was sent.
    UserPromptSubmit,
    /// An agent begins that another one started. The matcher names types of agents.
    SubagentStart,
    /// An agent that another one started wants to end. The matcher names types of agents.
    SubagentStop,
    /// The main agent wants to end its turn.
    Stop,
}

impl HookEvent {
    fn engine(self) -> EngineEvent {
        match self {
            Self::PreToolUse => EngineEvent::PreToolUse,
            Self::PostToolUse => EngineEvent::PostToolUse,
            Self::PostToolUseFailure => EngineEvent::PostToolUseFailure,
            Self::UserPromptSubmit => EngineEvent::UserPromptSubmit,
            Self::SubagentStart => EngineEvent::SubagentStart,
            Self::SubagentStop => EngineEvent::SubagentStop,
            Self::Stop => EngineEvent::Stop,
        }
    }
}

/// The occasion that a hook is called for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookCall {
    pub event: HookEvent,
    /// The name of the tool, at events about a call.
    pub tool: Option<String>,
    /// The input of the call, at events about a call.
    pub input: Option<Value>,
    /// Everything that a hook in a settings file would read.
    pub details: Value,
}

impl HookCall {
    fn new(event: HookEvent, details: &Value) -> Self {
        let tool = details.get("tool_name").and_then(Value::as_str).map(str::to_owned);
        let input = details.get("tool_input").cloned();
        Self { event, tool, input, details: details.clone() }
    }
}

/// The answer of a hook. [`HookReply::proceed`] changes nothing.
#[derive(Clone, Debug, Default)]
pub struct HookReply {
    decision: Option<Decision>,
    context: Option<String>,
    input: Option<Value>,
}

#[derive(Clone, Debug)]
enum Decision {
    Allow,
    Block(String),
    End(String),
}

impl HookReply {
    /// The agent continues as if there were no hook.
    pub fn proceed() -> Self {
        Self::default()
    }

    /// The call runs without a question, unless a rule denies it or asks about it.
    pub fn allow() -> Self {
        Self { decision: Some(Decision::Allow), ..Self::default() }
    }

    /// Denies a call, keeps a prompt from the model, or has an agent continue that wants to end. The model reads the reason.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { decision: Some(Decision::Block(reason.into())), ..Self::default() }
    }

    /// Ends the run.
    pub fn end_run(reason: impl Into<String>) -> Self {
        Self { decision: Some(Decision::End(reason.into())), ..Self::default() }
    }

    /// Adds something that the model reads.
    pub fn with_context(self, text: impl Into<String>) -> Self {
        Self { context: Some(text.into()), ..self }
    }

    /// Changes the input of a call that is about to be judged.
    pub fn with_input(self, input: Value) -> Self {
        Self { input: Some(input), ..self }
    }

    /// The JSON that a hook in a settings file would print.
    fn into_value(self, event: HookEvent) -> Value {
        let mut answer = Map::new();
        let mut specific = Map::new();
        match (self.decision, event) {
            (Some(Decision::Allow), HookEvent::PreToolUse) => {
                specific.insert("permissionDecision".to_owned(), json!("allow"));
            }
            (Some(Decision::Block(reason)), HookEvent::PreToolUse) => {
                specific.insert("permissionDecision".to_owned(), json!("deny"));
                specific.insert("permissionDecisionReason".to_owned(), json!(reason));
            }
            (Some(Decision::Block(reason)), _) => {
                answer.insert("decision".to_owned(), json!("block"));
                answer.insert("reason".to_owned(), json!(reason));
            }
            (Some(Decision::End(reason)), _) => {
                answer.insert("continue".to_owned(), json!(false));
                answer.insert("stopReason".to_owned(), json!(reason));
            }
            (Some(Decision::Allow) | None, _) => {}
        }
        if let Some(context) = self.context {
            specific.insert("additionalContext".to_owned(), json!(context));
        }
        if let Some(input) = self.input {
            specific.insert("updatedInput".to_owned(), input);
        }
        if !specific.is_empty() {
            specific.insert("hookEventName".to_owned(), json!(event.engine().name()));
            answer.insert("hookSpecificOutput".to_owned(), Value::Object(specific));
        }
        Value::Object(answer)
    }
}

type HookFuture = Pin<Box<dyn Future<Output = HookReply> + Send>>;

type Callback = Box<dyn Fn(HookCall) -> HookFuture + Send + Sync>;

/// A hook whose event does not exist: the engine and this list of hooks disagree.
#[derive(Debug, Error)]
#[error("there is no hook {0}")]
struct NoSuchHook(String);

/// The hooks of a program.
#[derive(Default)]
pub(crate) struct Closures {
    entries: Vec<Entry>,
}

struct Entry {
    event: HookEvent,
    matcher: String,
    callback: Callback,
}

impl Closures {
    pub(crate) fn add<F, A>(&mut self, event: HookEvent, matcher: String, callback: F)
    where
        F: Fn(HookCall) -> A + Send + Sync + 'static,
        A: Future<Output = HookReply> + Send + 'static,
    {
        let callback: Callback = Box::new(move |call| Box::pin(callback(call)));
        self.entries.push(Entry { event, matcher, callback });
    }

    /// The declaration of the hooks, and the way to call them.
    pub(crate) fn into_parts(self) -> (HookSet, Arc<dyn HookHost>) {
        let mut events: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for (index, entry) in self.entries.iter().enumerate() {
            let id = index.to_string();
            let group = json!({"matcher": entry.matcher, "hookCallbackIds": [id]});
            events.entry(entry.event.engine().name()).or_default().push(group);
        }
        (HookSet::from_host(&json!(events)), Arc::new(self))
    }
}

impl HookHost for Closures {
    fn call<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        _: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        Box::pin(async move {
            let index: Option<usize> = id.parse().ok();
            let entry = index.and_then(|index| self.entries.get(index));
            let entry = entry.ok_or_else(|| NoSuchHook(id.to_owned()))?;
            let reply = (entry.callback)(HookCall::new(entry.event, input)).await;
            Ok(reply.into_value(entry.event))
        })
    }
}
