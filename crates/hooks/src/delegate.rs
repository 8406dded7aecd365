//! Delegated hooks: a model, an agent, a tool of a server or a function of the host answers. The caller passes the
//! [`Delegate`].

use std::error::Error;
use std::pin::Pin;

use centurion_protocol::ToolUseId;
use serde_json::{Map, Value};

use crate::event::Event;
use crate::input::Common;

/// The most turns of a hook's agent.
pub const AGENT_HOOK_TURNS: u32 = 50;

/// The reason that there is no answer.
pub type DelegateError = Box<dyn Error + Send + Sync>;

pub type DelegateFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, DelegateError>> + Send + 'a>>;

/// A request to a model or an agent.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    /// The prompt with the input of the hook in it. The answer should be `{"ok": …, "reason": …}`.
    pub prompt: String,
    /// The model that the hook names; otherwise a fast one.
    pub model: Option<&'a str>,
    pub event: Event,
    pub common: &'a Common,
}

/// Answers for models, agents, servers and the host. Dropping a future cancels its answer.
pub trait Delegate: Send + Sync {
    /// Asks a model once; returns the text of its answer.
    fn prompt<'a>(&'a self, request: ModelRequest<'a>) -> DelegateFuture<'a, String>;

    /// Runs an agent that can read; returns the text of its last answer.
    fn agent<'a>(&'a self, request: ModelRequest<'a>) -> DelegateFuture<'a, String>;

    /// Calls a tool of an MCP server; returns the text of its result.
    fn mcp_tool<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Map<String, Value>,
    ) -> DelegateFuture<'a, String>;

    /// Calls a function of the host; returns the JSON that a command would print.
    fn callback<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value>;
}
