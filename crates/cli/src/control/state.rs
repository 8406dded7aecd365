//! Telling a host that the session waits for its answer, where the host wants to know.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_protocol::SessionId;
use centurion_protocol::sdk::{Event, EventBody, System};

use super::Control;

/// Whether the session waits for an answer of the host.
#[derive(Default)]
pub(super) struct State {
    /// Empty where the host does not want to know.
    session: OnceLock<SessionId>,
    /// How many questions wait.
    questions: AtomicUsize,
}

/// A question that the host has to answer, until it is dropped.
pub(super) struct RequiredAction<'a>(&'a Control);

impl Control {
    /// From now on the host is told when the session waits for it.
    pub(crate) fn report_state(&self, session: SessionId) {
        // One session has one control channel, and says this once.
        let _ = self.state.session.set(session);
    }

    pub(super) fn require_action(&self) -> RequiredAction<'_> {
        if self.state.questions.fetch_add(1, Ordering::Relaxed) == 0 {
            self.tell_state("requires_action");
        }
        RequiredAction(self)
    }

    fn tell_state(&self, state: &'static str) {
        if let Some(session) = self.state.session.get() {
            let body = EventBody::System(System::SessionStateChanged { state });
            let uuid = self.world.record_id();
            self.output.json_line(&Event { body, session_id: *session, uuid });
        }
    }
}

impl Drop for RequiredAction<'_> {
    fn drop(&mut self) {
        if self.0.state.questions.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.tell_state("running");
        }
    }
}
