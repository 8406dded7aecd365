//! Notices that the reader of standard output has gone, for fronts that write only at the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use centurion_engine::View;
use centurion_host::{Front, OutputQueue};
use centurion_protocol::sdk::Event;

use super::stdout::has_lost_reader;

/// The time between two looks at the reader if nothing is written.
const INTERVAL: Duration = Duration::from_millis(250);

/// Waits until the reader has gone.
pub(crate) async fn lost_reader() {
    while !has_lost_reader() {
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Looks at every event whether the reader is still there.
pub(crate) struct ReaderWatch(pub(crate) Arc<OutputQueue>);

impl View for ReaderWatch {
    fn show(&self, _: &Event) {
        if has_lost_reader() {
            self.0.fail(&io::ErrorKind::BrokenPipe.into());
        }
    }
}

impl Front for ReaderWatch {}
