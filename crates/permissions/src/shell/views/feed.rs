//! The standard input of a command.

use std::rc::Rc;

/// The standard input of a command.
#[derive(Clone, Copy)]
pub(super) struct Feed<'a> {
    pub(super) is_fed: bool,
    pub(super) text: Option<&'a str>,
}

impl Feed<'_> {
    pub(super) const NONE: Self = Self { is_fed: false, text: None };

    pub(super) fn owned(self) -> OwnFeed {
        OwnFeed { is_fed: self.is_fed, text: self.text.map(Rc::from) }
    }
}

#[derive(Clone, Default)]
pub(super) struct OwnFeed {
    pub(super) is_fed: bool,
    pub(super) text: Option<Rc<str>>,
}

impl OwnFeed {
    pub(super) fn borrowed(&self) -> Feed<'_> {
        Feed { is_fed: self.is_fed, text: self.text.as_deref() }
    }
}
