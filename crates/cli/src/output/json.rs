//! `--output-format json`: the last result, as one object, when all is done; with `--verbose` all events, as
//! one array.

use std::sync::Arc;

use centurion_engine::View;
use centurion_protocol::sdk::{Event, EventBody};
use parking_lot::Mutex;

use super::Output;

pub(crate) struct JsonView {
    output: Arc<Output>,
    keeps_all: bool,
    events: Mutex<Vec<Event>>,
}

impl JsonView {
    pub(crate) fn new(output: Arc<Output>, keeps_all: bool) -> Self {
        Self { output, keeps_all, events: Mutex::default() }
    }
}

impl View for JsonView {
    fn show(&self, event: &Event) {
        self.output.look_for_reader();
        let mut events = self.events.lock();
        if self.keeps_all {
            events.push(event.clone());
        } else if matches!(event.body, EventBody::Result(_)) {
            *events = vec![event.clone()];
        }
    }
}

impl Drop for JsonView {
    fn drop(&mut self) {
        let events = self.events.get_mut();
        match events.as_slice() {
            all if self.keeps_all => self.output.json_line(&all),
            [.., last] => self.output.json_line(last),
            [] => {}
        }
    }
}
