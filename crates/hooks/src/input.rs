//! The input of a hook: the fields of every event, and the event's own, as one JSON object.

use std::path::{Path, PathBuf};

use centurion_permissions::{Access, Call};
use centurion_protocol::{AgentId, Effort, SessionId, ToolUseId};
use centurion_tools::DiskLinks;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::event::Event;
use crate::reply::Reply;

/// The fields in the input of every hook.
#[derive(Clone, Debug, Serialize)]
pub struct Common {
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_id: Option<String>,
    /// The main agent's transcript, for every agent.
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
    /// The number of agents above this one.
    pub depth: u32,
    /// The agent's name in its team; `None` for agents in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teammate_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_name: Option<String>,
}

/// The effort that the model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EffortLevel {
    pub level: Effort,
}

/// A call of a tool in the form that hooks see.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ToolCall<'a> {
    #[serde(rename = "tool_name")]
    pub tool: &'a str,
    /// The input with absolute paths.
    #[serde(rename = "tool_input")]
    pub input: &'a RawValue,
    #[serde(rename = "tool_use_id")]
    pub id: &'a ToolUseId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_server: Option<McpServer<'a>>,
    /// The access of the call.
    #[serde(skip)]
    pub access: &'a Access,
    /// The path as the model named it, with its links.
    #[serde(skip)]
    pub named: Option<&'a Path>,
}

/// The MCP server of a tool.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct McpServer<'a> {
    pub name: &'a str,
    /// Its source: `user`, `project`, `agent`, …
    pub source: &'a str,
}

impl<'a> ToolCall<'a> {
    pub(crate) fn as_call(&self) -> Call<'a> {
        Call {
            tool: self.tool,
            access: self.access,
            named: self.named,
            input: Some(self.input),
            meant: &[],
            links: &DiskLinks,
        }
    }
}

/// An event with its input for hooks and its verdict.
pub trait EventInput: Serialize + Send + Sync {
    const EVENT: Event;

    /// The combined verdict of all hooks; the default holds without any hook.
    type Verdict: Default + Send;

    /// The subject of matchers.
    fn subject(&self) -> Option<&str> {
        None
    }

    /// The call that the event is about.
    fn call(&self) -> Option<ToolCall<'_>> {
        None
    }

    /// Combines the replies of hooks into one verdict. `replies` are in the order of the hooks' declaration, not of
    /// their ends.
    fn fold(&self, common: &Common, replies: &[Reply]) -> Self::Verdict;

    /// The files to watch from now on; `None` leaves the present list.
    fn watches(_: &Self::Verdict) -> Option<&[PathBuf]> {
        None
    }
}

/// Composes the JSON object for hooks.
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

/// The name of a hook run: the event, and the subject of its matcher.
pub(crate) fn hook_name<E: EventInput>(input: &E) -> String {
    match input.subject() {
        Some(subject) => format!("{}:{subject}", E::EVENT),
        None => E::EVENT.name().to_owned(),
    }
}
