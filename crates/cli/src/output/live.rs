//! What happens, as it happens, for a person who watches: plain lines on standard error.
//!
//! Lines are only ever added, so that they can go to a file as well. In a window each takes one row, but for
//! what agents say, which is wrapped. Colours are the named ANSI ones, always beside a glyph or a word;
//! `NO_COLOR` switches them off.

use parking_lot::Mutex;
mod fold;
mod style;
mod window;

use centurion_engine::{RoomFuture, View};
use centurion_host::{FinishFuture, Front};
use centurion_protocol::sdk::Event;

use self::fold::Fold;
use self::style::{Style, with_colours};
use self::window::fit;
use super::note_as_is;

/// Shows events on standard error and hands them on.
pub(crate) struct LiveView<V> {
    next: V,
    fold: Mutex<Fold>,
}

impl<V> LiveView<V> {
    pub(crate) fn new(next: V, paint: bool) -> Self {
        Self { next, fold: Mutex::new(Fold::new(Style { paint })) }
    }
}

impl<V: View> View for LiveView<V> {
    fn show(&self, event: &Event) {
        let mut fold = self.fold.lock();
        // Windows change their size while people watch.
        let width = window::width();
        // Written before the next event is looked at, so that the lines of two do not mix.
        for line in fold.lines(&event.body, width) {
            note_as_is(&with_colours(&fit(&line, width)));
        }
        drop(fold);
        self.next.show(event);
    }

    fn wait_for_agents(&self) {
        let fold = self.fold.lock();
        for line in fold.at_work(window::width()) {
            note_as_is(&with_colours(&line));
        }
        drop(fold);
        self.next.wait_for_agents();
    }

    fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        self.next.wait_for_room()
    }
}

impl<V: Front> Front for LiveView<V> {
    fn finish(&self) -> FinishFuture<'_> {
        self.next.finish()
    }
}
