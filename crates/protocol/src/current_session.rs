//! The id of a session that can change: a conversation that begins anew is another session.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::SessionId;

/// The present id of a session. All copies of this value are one.
#[derive(Clone, Debug)]
pub struct CurrentSession(Arc<Mutex<SessionId>>);

impl From<SessionId> for CurrentSession {
    fn from(id: SessionId) -> Self {
        Self::new(id)
    }
}

impl CurrentSession {
    pub fn new(id: SessionId) -> Self {
        Self(Arc::new(Mutex::new(id)))
    }

    pub fn id(&self) -> SessionId {
        *self.0.lock()
    }

    /// The session has this id from now on.
    pub fn become_session(&self, id: SessionId) {
        *self.0.lock() = id;
    }
}
