//! Questions about calls of other programs: each goes to who made the call.

use std::sync::Arc;

use centurion_mcp::Elicitation;
use centurion_protocol::ToolUseId;
use parking_lot::Mutex;

use crate::policy::broker::{Answerer, Ask, ElicitFuture, ReplyFuture, Unanswered};

/// The callers of the calls under way that can be asked, in the order of the calls.
#[derive(Default)]
pub(super) struct Callers(Mutex<Vec<(ToolUseId, Arc<dyn Answerer>)>>);

impl Callers {
    /// Has questions about a call go to this caller until the result is dropped.
    pub(super) fn enter(
        self: &Arc<Self>,
        call: &ToolUseId,
        caller: Option<Arc<dyn Answerer>>,
    ) -> Option<CallerEntry> {
        self.0.lock().push((call.clone(), caller?));
        Some(CallerEntry { callers: Arc::clone(self), call: call.clone() })
    }

    fn of(&self, call: &ToolUseId) -> Option<Arc<dyn Answerer>> {
        let callers = self.0.lock();
        callers.iter().find(|(id, _)| id == call).map(|(_, caller)| Arc::clone(caller))
    }
}

/// A call whose caller can be asked.
pub(super) struct CallerEntry {
    callers: Arc<Callers>,
    call: ToolUseId,
}

impl Drop for CallerEntry {
    fn drop(&mut self) {
        self.callers.0.lock().retain(|(id, _)| *id != self.call);
    }
}

impl Answerer for Callers {
    fn is_there(&self) -> bool {
        !self.0.lock().is_empty()
    }

    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let Some(caller) = self.of(&ask.call) else {
                let why = "and the program that calls has no person to ask";
                return Err(Unanswered::because(format!("{} {why}", ask.reason.text)));
            };
            caller.answer(ask).await
        })
    }

    /// A server's question names no call. Only servers of hooks are here: the latest caller is as good as any.
    fn elicit(&self, question: Elicitation) -> ElicitFuture<'_> {
        Box::pin(async move {
            let latest = self.0.lock().last().map(|(_, caller)| Arc::clone(caller));
            let Some(caller) = latest else {
                return Err(Unanswered::because("no call is under way whose caller can be asked"));
            };
            caller.elicit(question).await
        })
    }
}
