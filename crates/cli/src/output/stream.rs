//! `--output-format stream-json`: every event, one JSON object a line.

use std::sync::Arc;

use centurion_engine::View;
use centurion_protocol::sdk::Event;

use super::Output;

pub(crate) struct StreamView(pub(crate) Arc<Output>);

impl View for StreamView {
    fn show(&self, event: &Event) {
        self.0.json_line(event);
    }
}
