//! `--output-format text`: the answer of each run, with a blank line between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_engine::View;
use centurion_protocol::sdk::{Event, EventBody};

use super::{Output, note};

pub(crate) struct TextView {
    output: Arc<Output>,
    has_printed: AtomicBool,
}

impl TextView {
    pub(crate) fn new(output: Arc<Output>) -> Self {
        Self { output, has_printed: AtomicBool::new(false) }
    }
}

impl View for TextView {
    fn show(&self, event: &Event) {
        let EventBody::Result(result) = &event.body else { return };
        let gap = if self.has_printed.swap(true, Ordering::Relaxed) { "\n" } else { "" };
        self.output.write(format!("{gap}{}\n", result.result.trim_end()).as_bytes());
        if result.is_error {
            note(&format!("error: the run did not complete: {}", result.outcome));
        }
    }
}
