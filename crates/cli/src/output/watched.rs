//! A front that writes only at the end, whose reader may go away long before.

use std::io;
use std::sync::Arc;

use centurion_engine::{RoomFuture, View};
use centurion_host::{FinishFuture, Front, OutputQueue};
use centurion_protocol::sdk::Event;

use super::stdout::has_lost_reader;

/// Looks at every event whether the reader of standard output is still there, and hands the event on.
pub(crate) struct Watched<F> {
    next: F,
    output: Arc<OutputQueue>,
}

impl<F> Watched<F> {
    pub(crate) fn new(next: F, output: Arc<OutputQueue>) -> Self {
        Self { next, output }
    }
}

impl<F: View> View for Watched<F> {
    fn show(&self, event: &Event) {
        if has_lost_reader() {
            self.output.fail(&io::ErrorKind::BrokenPipe.into());
        }
        self.next.show(event);
    }

    fn wait_for_agents(&self) {
        self.next.wait_for_agents();
    }

    fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        self.next.wait_for_room()
    }
}

impl<F: Front> Front for Watched<F> {
    fn finish(&self) -> FinishFuture<'_> {
        self.next.finish()
    }
}
