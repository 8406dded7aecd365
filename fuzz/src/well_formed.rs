//! What every reader of a streaming answer promises about its events.

use std::collections::BTreeSet;

use centurion_model::{AnswerBuilder, StreamEvent};

/// Watches the events of one answer and builds it, as a driver does.
#[derive(Default)]
pub struct Watched {
    started: bool,
    finished: bool,
    open: BTreeSet<usize>,
    seen: BTreeSet<usize>,
    answer: AnswerBuilder,
}

impl Watched {
    pub fn push(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Start { .. } => {
                assert!(!self.started, "an answer started twice");
                self.started = true;
            }
            StreamEvent::Ping => {}
            _ => assert!(self.started && !self.finished, "{event:?} outside of an answer"),
        }
        match event {
            StreamEvent::BlockStart { index, .. } => {
                assert!(self.seen.insert(*index), "block {index} started twice");
                self.open.insert(*index);
            }
            StreamEvent::Delta { index, .. } => {
                assert!(self.open.contains(index), "a piece of block {index}, which is not open");
            }
            StreamEvent::BlockStop { index } => {
                assert!(self.open.remove(index), "block {index} stopped, and was not open");
            }
            // A block may still be open: an answer that was cut at its limit ends so.
            StreamEvent::Finish { .. } => self.finished = true,
            StreamEvent::Start { .. } | StreamEvent::Ping => {}
        }
        self.answer.push(event);
    }

    /// Ends the answer wherever it is. An answer that finished is one; nothing else is.
    pub fn finish(self) {
        let answer = self.answer.finish();
        assert!(self.finished || answer.is_err(), "an answer that was cut off counts as whole");
    }
}
