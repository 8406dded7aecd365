//! Questions that the terminal was asked and has yet to answer. An answer that comes when we are gone would be typed into the
//! shell.

use std::time::{Duration, Instant};

use crate::input::{Input, TerminalReply};

/// The longest wait for answers. A terminal that has said nothing for that long answers no more.
const PATIENCE: Duration = Duration::from_millis(500);

/// Asks for the place of the cursor.
const PLACE: &[u8] = b"\x1b[6n";

/// The moments at which what is unanswered was asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Questions {
    /// The terminal's attributes: the last of the questions at the start.
    attributes: Option<Instant>,
    place: Option<Instant>,
}

impl Questions {
    /// Takes note of the questions at the start.
    pub(super) fn asked_at_start(&mut self) {
        self.attributes = Some(Instant::now());
    }

    /// Takes note of a question in what is written.
    pub(super) fn look_for(&mut self, bytes: &[u8]) {
        if bytes.windows(PLACE.len()).any(|it| it == PLACE) {
            self.place = Some(Instant::now());
        }
    }

    /// Takes note of answers.
    pub(super) fn hear(&mut self, inputs: &[Input]) {
        for input in inputs {
            match input {
                Input::Reply(TerminalReply::Attributes) => self.attributes = None,
                Input::Reply(TerminalReply::Cursor(_)) => self.place = None,
                _ => {}
            }
        }
    }

    /// The time for which an answer is still waited for; `None` if none is missed.
    pub(super) fn patience(&self) -> Option<Duration> {
        let asked = [self.attributes, self.place].into_iter().flatten().max()?;
        PATIENCE.checked_sub(asked.elapsed())
    }
}
