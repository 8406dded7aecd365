//! Events as they happen, for a person who watches: plain lines on standard error.
//!
//! Lines are only ever added, so that they can go to a file as well. In a window each takes one row, but for
//! what agents say, which is wrapped. Colours are the named ANSI ones, always beside a glyph or a word;
//! `NO_COLOR` switches them off.

mod fold;
mod style;
mod window;

use centurion_engine::View;
use centurion_host::Front;
use centurion_protocol::sdk::Event;
use parking_lot::Mutex;

use self::fold::Fold;
use self::style::{Style, with_colours};
use self::window::fit;
use super::note_as_is;

/// Takes a line that is ready to be shown.
type Out = Box<dyn Fn(&str) + Send + Sync>;

/// Shows events on standard error, or where else lines go.
pub(crate) struct LiveView {
    fold: Mutex<Fold>,
    out: Out,
}

impl LiveView {
    pub(crate) fn new(paint: bool) -> Self {
        Self::to(paint, note_as_is)
    }

    /// The same for a place that takes lines.
    pub(crate) fn to(paint: bool, out: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { fold: Mutex::new(Fold::new(Style { paint })), out: Box::new(out) }
    }
}

impl View for LiveView {
    fn show(&self, event: &Event) {
        let mut fold = self.fold.lock();
        // Windows change their size while people watch.
        let width = window::width();
        // Written before the next event is looked at, so that the lines of two do not mix.
        for line in fold.lines(&event.body, width) {
            (self.out)(&with_colours(&fit(&line, width)));
        }
    }

    fn wait_for_agents(&self) {
        for line in self.fold.lock().at_work(window::width()) {
            (self.out)(&with_colours(&line));
        }
    }
}

impl Front for LiveView {}
