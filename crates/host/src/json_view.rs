//! One JSON value for a whole run: the last result, when all is done, or all events, as an array that is
//! written while they come.

use std::sync::Arc;

use centurion_engine::{RoomFuture, View};
use centurion_protocol::sdk::{Event, EventBody};
use parking_lot::Mutex;

use crate::stream_view::is_wait;
use crate::{FinishFuture, Front, OutputQueue};

pub struct JsonView {
    output: Arc<OutputQueue>,
    shown: Mutex<JsonOutput>,
}

enum JsonOutput {
    Last(Option<Box<Event>>),
    All {
        is_first: bool,
    },
    /// The value is whole: what follows would spoil it.
    Ended,
}

impl JsonView {
    /// Shows the last result.
    pub fn last(output: Arc<OutputQueue>) -> Self {
        Self { output, shown: Mutex::new(JsonOutput::Last(None)) }
    }

    /// Shows all events that every host of the protocol knows.
    pub fn all(output: Arc<OutputQueue>) -> Self {
        Self { output, shown: Mutex::new(JsonOutput::All { is_first: true }) }
    }

    fn end(&self) {
        match std::mem::replace(&mut *self.shown.lock(), JsonOutput::Ended) {
            JsonOutput::Last(Some(event)) => self.output.json_line(&event),
            JsonOutput::All { is_first: true } => self.output.write(b"[]\n"),
            JsonOutput::All { is_first: false } => self.output.write(b"]\n"),
            JsonOutput::Last(None) | JsonOutput::Ended => {}
        }
    }
}

impl View for JsonView {
    fn show(&self, event: &Event) {
        match &mut *self.shown.lock() {
            JsonOutput::Last(last) if matches!(event.body, EventBody::Result(_)) => {
                *last = Some(Box::new(event.clone()));
            }
            JsonOutput::All { is_first } if !is_wait(event) => {
                let before = if *is_first { "[" } else { "," };
                *is_first &= !self.output.json(before, event, "");
            }
            JsonOutput::Last(_) | JsonOutput::All { .. } | JsonOutput::Ended => {}
        }
    }

    fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        self.output.wait_for_room()
    }
}

impl Front for JsonView {
    fn finish(&self) -> FinishFuture<'_> {
        self.end();
        Box::pin(self.output.finish())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use centurion_protocol::sdk::System;
    use centurion_protocol::{SystemWorld, World};

    use super::*;
    use crate::Sink;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink for Written {}

    fn event() -> Event {
        let body = EventBody::System(System::SessionStateChanged { state: "a\u{2028}b" });
        Event { body, session_id: SystemWorld.session_id(), uuid: SystemWorld.record_id() }
    }

    /// What is written when all these events are shown, and one that comes too late.
    async fn shown(view: fn(Arc<OutputQueue>) -> JsonView, events: &[Event]) -> String {
        let written = Written::default();
        let queue = OutputQueue::new(written.clone(), Box::new(tempfile::tempfile));
        let view = view(Arc::new(queue));
        for event in events {
            view.show(event);
        }
        view.finish().await.unwrap();
        view.show(&event());
        view.finish().await.unwrap();
        let bytes = written.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[tokio::test]
    async fn all_events_are_one_array_on_one_line_as_if_it_were_written_at_once() {
        for count in [0, 1, 2, 5] {
            let events: Vec<Event> = std::iter::repeat_with(event).take(count).collect();
            let mut whole = serde_json::to_vec(&events).unwrap();
            centurion_protocol::end_json_line(&mut whole);
            assert_eq!(shown(JsonView::all, &events).await.as_bytes(), whole);
        }
    }

    #[tokio::test]
    async fn without_a_result_there_is_nothing_to_show() {
        assert_eq!(shown(JsonView::last, &[event()]).await, "");
    }
}
