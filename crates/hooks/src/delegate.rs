//! Hooks that are not carried out here: a model, an agent, a tool of a server or a function of the host
//! answers. The caller hands the [`Delegate`] in.

use std::error::Error;
use std::pin::Pin;

use centurion_protocol::ToolUseId;
use serde_json::{Map, Value};

use crate::event::Event;
use crate::input::Common;

/// How many turns an agent of a hook has at most.
pub const AGENT_HOOK_TURNS: u32 = 50;

/// Why there is no answer.
pub type DelegateError = Box<dyn Error + Send + Sync>;

pub type DelegateFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, DelegateError>> + Send + 'a>>;

/// What a model or an agent is asked.
#[derive(Clone, Debug)]
pub struct ModelRequest<'a> {
    /// With the input of the hook in it. The answer is to be `{"ok": …, "reason": …}`.
    pub prompt: String,
    /// The model that the hook names; else a fast one.
    pub model: Option<&'a str>,
    pub event: Event,
    pub common: &'a Common,
}

/// Answers for models, agents, servers and the host. Dropping a future gives up on its answer.
pub trait Delegate: Send + Sync {
    /// Asks a model once; gives the text of its answer.
    fn prompt<'a>(&'a self, request: ModelRequest<'a>) -> DelegateFuture<'a, String>;

    /// Runs an agent that can look around; gives the text of its last answer.
    fn agent<'a>(&'a self, request: ModelRequest<'a>) -> DelegateFuture<'a, String>;

    /// Calls a tool of an MCP server; gives the text of its result.
    fn mcp_tool<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Map<String, Value>,
    ) -> DelegateFuture<'a, String>;

    /// Calls a function of the host; gives the JSON that a command would print.
    fn callback<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value>;
}
