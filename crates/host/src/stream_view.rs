//! Every event as one JSON object on a line, as it comes.

use std::sync::Arc;

use centurion_engine::{RoomFuture, View};
use centurion_protocol::sdk::{Event, EventBody, System};

use crate::{FinishFuture, Front, OutputQueue};

pub struct StreamView {
    output: Arc<OutputQueue>,
    shows_waits: bool,
}

impl StreamView {
    /// Shows what every host of the protocol knows.
    pub fn new(output: Arc<OutputQueue>) -> Self {
        Self { output, shows_waits: false }
    }

    /// Also shows when agents wait, for hosts that ask for that.
    pub fn with_waits(output: Arc<OutputQueue>) -> Self {
        Self { output, shows_waits: true }
    }
}

/// Whether it tells of a wait of an agent. Hosts that do not ask for these see events in the order that they know.
pub(crate) fn is_wait(event: &Event) -> bool {
    matches!(event.body, EventBody::System(System::AgentWaiting(_)))
}

impl View for StreamView {
    fn show(&self, event: &Event) {
        if self.shows_waits || !is_wait(event) {
            self.output.json_line(event);
        }
    }

    fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        self.output.wait_for_room()
    }
}

impl Front for StreamView {
    fn finish(&self) -> FinishFuture<'_> {
        Box::pin(self.output.finish())
    }
}
