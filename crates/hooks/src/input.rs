//! What a hook is told: what holds for every event, and the event's own fields, as one JSON object.

use std::path::{Path, PathBuf};

use centurion_permissions::{Access, Call};
use centurion_protocol::{AgentId, Effort, SessionId, ToolUseId};
use centurion_tools::DiskLinks;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::Event;
use crate::reply::Reply;

/// What every hook is told.
#[derive(Clone, Debug, Serialize)]
pub struct Common {
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// The main agent's, whichever agent this is.
    pub transcript_path: PathBuf,
    pub cwd: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<EffortLevel>,
    /// The agent in which the event happens; `None` for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The agent that started this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<AgentId>,
    /// How many agents are above this one.
    pub depth: u32,
}

/// How hard the model is asked to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EffortLevel {
    pub level: Effort,
}

/// A call of a tool, as hooks see it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ToolCall<'a> {
    #[serde(rename = "tool_name")]
    pub tool: &'a str,
    /// With absolute paths.
    #[serde(rename = "tool_input")]
    pub input: &'a RawValue,
    #[serde(rename = "tool_use_id")]
    pub id: &'a ToolUseId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServer<'a>>,
    /// What the call would touch.
    #[serde(skip)]
    pub access: &'a Access,
    /// The path that it names, with its links.
    #[serde(skip)]
    pub named: Option<&'a Path>,
}

/// The MCP server that a tool belongs to.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct McpServer<'a> {
    pub name: &'a str,
    /// Who brought it: `user`, `project`, `agent`, …
    pub source: &'a str,
}

impl<'a> ToolCall<'a> {
    pub(crate) fn as_call(&self) -> Call<'a> {
        Call {
            tool: self.tool,
            access: self.access,
            named: self.named,
            input: Some(self.input),
            agent: &[],
            links: &DiskLinks,
        }
    }
}

/// Something that happens, with what hooks are told about it and what they can make of it.
pub trait EventInput: Serialize + Send + Sync {
    const EVENT: Event;

    /// What all hooks together say; the default is what holds without any hook.
    type Verdict: Default + Send;

    /// What matchers are tried on.
    fn subject(&self) -> Option<&str> {
        None
    }

    /// The call that it is about.
    fn call(&self) -> Option<ToolCall<'_>> {
        None
    }

    /// Makes one verdict of what hooks said. `replies` are in the order of the hooks' declaration,
    /// whichever was first.
    fn fold(&self, common: &Common, replies: &[Reply]) -> Self::Verdict;

    /// The files that are to be watched from now on; `None` leaves those that are.
    fn watches(_: &Self::Verdict) -> Option<&[PathBuf]> {
        None
    }
}

/// The JSON object that hooks are told.
pub(crate) fn compose<E: EventInput>(common: &Common, input: &E) -> serde_json::Result<Value> {
    let mut fields = object(serde_json::to_value(common)?);
    fields.insert("hook_event_name".to_owned(), Value::from(E::EVENT.name()));
    fields.extend(object(serde_json::to_value(input)?));
    Ok(Value::Object(fields))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The name of a hook run: the event, and what its matcher was tried on.
pub(crate) fn hook_name<E: EventInput>(input: &E) -> String {
    match input.subject() {
        Some(subject) => format!("{}:{subject}", E::EVENT),
        None => E::EVENT.name().to_owned(),
    }
}
