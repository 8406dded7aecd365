//! The tools of a session without its agent: another program calls them.
//!
//! A call passes the one dispatch, with all hooks, rules and confinement of a session. There is no
//! conversation, so nothing is recorded.

mod callers;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use centurion_permissions::Mode;
use centurion_protocol::{ToolResultContent, ToolSpec, ToolUse, ToolUseId};
use futures_util::FutureExt;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use self::callers::Callers;
use super::{OpenError, Options, Session};
use crate::definition::rules::SessionMode;
use crate::delegate::spawn::panic_words;
use crate::policy::broker::Answerer;
use crate::toolset::toolbox::ToolUnavailable;
use crate::turn::dispatch::{CallGrouping, CallResult};

/// The main agent's built-in tools, for another program to call.
pub struct ToolServer {
    session: Session,
    /// Held by a call that may change something: such calls take turns, as those of one agent do.
    turn: tokio::sync::Mutex<()>,
    calls: AtomicU64,
    callers: Arc<Callers>,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub struct ToolReply {
    pub content: Vec<ToolResultContent>,
    pub is_error: bool,
}

impl ToolServer {
    /// Makes the tools ready. Tools of the servers in `options` are not among them: those servers are there
    /// for hooks.
    pub async fn open(mut options: Options) -> Result<Self, OpenError> {
        options.storage.transcript = None;
        // No agent is here that would remember anything.
        options.agents.memory = None;
        // No agent runs here: none could be told of the end of another, or woken at its time.
        options.agents.rules.limits.depth = 0;
        options.agents.rules.mode = SessionMode::Normal;
        options.agents.main = None;
        // There is no conversation that the text of a skill would enter, and no prompt that would end it.
        options.agents.definitions.offer_no_skills();
        // Instructions are for a model that we ask.
        options.memory = None;
        let mut session = Box::pin(Session::open(options)).await?;
        session.shared.servers.settle(session.server_patience).await;
        if let Some(source) = session.begins.take() {
            // The hooks' first texts are for an agent. Their settings count for the tools.
            session.driver.begin(source, &CancellationToken::new()).await;
        }
        let callers = Arc::new(Callers::default());
        session.handle().attach(Arc::clone(&callers) as Arc<dyn Answerer>);
        let turn = tokio::sync::Mutex::default();
        Ok(Self { session, turn, calls: AtomicU64::default(), callers })
    }

    /// The tools on offer, always in the same order.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.session.driver.dispatch.toolbox.specs().iter()
    }

    /// Tells whether no deny rule takes away every call of a tool.
    pub fn is_allowed(&self, tool: &str) -> bool {
        self.session.driver.dispatch.agent.permissions.is_offered(tool)
    }

    pub fn mode(&self) -> Mode {
        self.session.driver.dispatch.agent.permissions.mode()
    }

    /// Calls a tool; questions about the call go to `caller`, if it can be asked. Whatever goes wrong with the call is
    /// in the reply, also a fault of the program: the client waits for one.
    pub async fn call(
        &self,
        tool: &str,
        input: Box<RawValue>,
        caller: Option<Arc<dyn Answerer>>,
        cancel: &CancellationToken,
    ) -> Result<ToolReply, ToolUnavailable> {
        let dispatched = self.dispatch(tool, input, caller, cancel);
        let ended = AssertUnwindSafe(dispatched).catch_unwind().await;
        ended.unwrap_or_else(|panic| {
            let reason = panic_words(&*panic);
            let text = format!("the call was ended by a fault of the program: {reason}");
            Ok(ToolReply { content: vec![ToolResultContent::Text(text)], is_error: true })
        })
    }

    async fn dispatch(
        &self,
        tool: &str,
        input: Box<RawValue>,
        caller: Option<Arc<dyn Answerer>>,
        cancel: &CancellationToken,
    ) -> Result<ToolReply, ToolUnavailable> {
        let dispatch = &self.session.driver.dispatch;
        dispatch.toolbox.get(tool)?;
        self.session.driver.refresh(cancel).await;
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let call = ToolUse {
            id: ToolUseId::new(format!("served_{number}")),
            name: tool.to_owned(),
            input,
        };
        let _asked = self.callers.enter(&call.id, caller);
        let prepared = match dispatch.prepare(&call) {
            Ok(prepared) => prepared,
            Err(refused) => return Ok(reply(*refused)),
        };
        let turn =
            async { if prepared.is_read_only() { None } else { Some(self.turn.lock().await) } };
        Ok(reply(tokio::select! {
            biased;
            () = cancel.cancelled() => CallResult::not_begun(&call.id),
            turn = turn => {
                let dispatched = dispatch.run(&call, prepared, CallGrouping::WithOthers, cancel).await;
                drop(turn);
                dispatched
            }
        }))
    }

    /// Tells hooks, and ends everything that still runs.
    pub async fn close(&self) {
        self.session.end_agents().await;
        self.session.end().await;
    }
}

/// The result, with what hooks say beside it: there is no other way to tell the caller.
fn reply(dispatched: CallResult) -> ToolReply {
    let aside = dispatched.aside;
    let stopped = aside.stop.is_some();
    let stop = aside.stop.map(|reason| format!("A hook wants the work to stop: {reason}"));
    let said = aside.context.into_iter().chain(stop).map(ToolResultContent::Text);
    ToolReply {
        content: dispatched.result.content.into_iter().chain(said).collect(),
        is_error: dispatched.result.is_error || stopped,
    }
}
