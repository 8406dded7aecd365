//! `--output-format json`: the last result, as one object, when all is done.

use std::sync::{Arc, Mutex, PoisonError};

use centurion_engine::View;
use centurion_protocol::sdk::{Event, EventBody};

use super::Output;

pub(crate) struct JsonView {
    output: Arc<Output>,
    last: Mutex<Option<Event>>,
}

impl JsonView {
    pub(crate) fn new(output: Arc<Output>) -> Self {
        Self { output, last: Mutex::new(None) }
    }
}

impl View for JsonView {
    fn show(&self, event: &Event) {
        if matches!(event.body, EventBody::Result(_)) {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(event.clone());
        }
    }
}

impl Drop for JsonView {
    fn drop(&mut self) {
        if let Some(event) = self.last.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.output.json_line(&event);
        }
    }
}
