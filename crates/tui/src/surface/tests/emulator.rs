//! A terminal that answers, around two emulators.

use std::num::NonZeroU16;

use crate::frame::{Frame, Place, Size};
use crate::input::TerminalReply;
use crate::look::Look;
use crate::surface::{Capabilities, InlineSurface, Surface as _};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Cuts rows that are too long for a narrower window.
    Cuts,
    /// Breaks them.
    Breaks,
}

pub(crate) enum Emulator {
    Cuts(Box<vt100::Parser>),
    Breaks(Box<avt::Terminal>),
}

impl Emulator {
    pub(crate) fn new(kind: Kind, size: Size) -> Self {
        let (columns, rows) = (usize::from(size.columns), usize::from(size.rows));
        match kind {
            Kind::Cuts => {
                let (rows, columns) = cells(size);
                Self::Cuts(Box::new(vt100::Parser::new(rows, columns, 100_000)))
            }
            Kind::Breaks => {
                Self::Breaks(Box::new(avt::Terminal::with_scrollback(columns, rows, None).unwrap()))
            }
        }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        match self {
            Self::Cuts(parser) => parser.process(bytes),
            Self::Breaks(terminal) => terminal.feed(std::str::from_utf8(bytes).unwrap()),
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        match self {
            Self::Cuts(parser) => {
                let (rows, columns) = cells(size);
                parser.screen_mut().set_size(rows, columns);
            }
            Self::Breaks(terminal) => terminal.resize(size.columns.into(), size.rows.into()),
        }
    }

    pub(crate) fn cursor(&self) -> Place {
        match self {
            Self::Cuts(parser) => {
                let (row, column) = parser.screen().cursor_position();
                let (_, columns) = parser.screen().size();
                Place { row, column: column.min(columns.get() - 1) }
            }
            Self::Breaks(terminal) => {
                let at = terminal.cursor_position();
                let (columns, _) = terminal.size();
                let short = |number: usize| u16::try_from(number).unwrap();
                Place {
                    row: u16::try_from(at.row).unwrap(),
                    column: short(at.col.min(columns - 1)),
                }
            }
        }
    }

    /// The rows of the screen.
    pub(crate) fn screen(&self) -> Vec<String> {
        match self {
            Self::Cuts(parser) => {
                let (_, columns) = parser.screen().size();
                let rows = parser.screen().rows(0, columns.get());
                rows.map(|row| row.trim_end().to_owned()).collect()
            }
            Self::Breaks(terminal) => {
                let lines = terminal.screen().visible_lines();
                lines.map(|line| line.text().trim_end().to_owned()).collect()
            }
        }
    }

    /// Everything that can be seen by scrolling back: rows of the scrollback, then those of the screen.
    pub(crate) fn everything(&mut self) -> Vec<String> {
        match self {
            Self::Cuts(parser) => {
                let mut rows = Vec::new();
                let screen = parser.screen_mut();
                let (_, columns) = screen.size();
                screen.set_scrollback(usize::MAX);
                for offset in (1..=screen.scrollback()).rev() {
                    screen.set_scrollback(offset);
                    rows.extend(screen.rows(0, columns.get()).next());
                }
                screen.set_scrollback(0);
                rows.extend(self.screen());
                rows
            }
            Self::Breaks(terminal) => {
                terminal.primary_screen().all_lines().map(avt::Line::text).collect()
            }
        }
    }
}

/// Rows and columns of a size.
fn cells(size: Size) -> (NonZeroU16, NonZeroU16) {
    (NonZeroU16::new(size.rows).unwrap(), NonZeroU16::new(size.columns).unwrap())
}

/// An inline surface with its terminal.
pub(crate) struct Pair {
    pub(crate) emulator: Emulator,
    pub(crate) surface: InlineSurface,
    pub(crate) size: Size,
    /// Answers that are on their way.
    replies: Vec<TerminalReply>,
    /// The size of the terminal, which the surface may not know yet.
    real: Size,
}

impl Pair {
    pub(crate) fn new(kind: Kind, region: bool, size: Size) -> Self {
        let can = Capabilities {
            synchronized: true,
            region_feeds_scrollback: region,
            rewraps: kind == Kind::Breaks,
        };
        let emulator = Emulator::new(kind, size);
        let surface = InlineSurface::new(size, Look::default(), can);
        Self { emulator, surface, size, replies: Vec::new(), real: size }
    }

    /// Draws a frame; returns the bytes.
    pub(crate) fn draw(&mut self, frame: &Frame) -> Vec<u8> {
        let mut out = Vec::new();
        self.surface.draw(frame, self.size, &mut out);
        self.send(&out);
        out
    }

    /// The terminal has another size, and the surface hears of it some time later.
    pub(crate) fn resize_unheard(&mut self, size: Size) {
        self.real = size;
        self.emulator.resize(size);
    }

    /// The surface hears of a size.
    pub(crate) fn hear(&mut self, size: Size) {
        self.size = size;
        let mut out = Vec::new();
        self.surface.resized(size, &mut out);
        self.send(&out);
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.size = size;
        self.resize_unheard(size);
        let mut out = Vec::new();
        self.surface.resized(size, &mut out);
        self.send(&out);
    }

    /// Brings all answers of the terminal.
    pub(crate) fn answer(&mut self) {
        for reply in std::mem::take(&mut self.replies) {
            let mut out = Vec::new();
            self.surface.reply(Some(&reply), &mut out);
            self.send(&out);
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        const QUESTION: &[u8] = b"\x1b[6n";
        assert!(!bytes.windows(4).any(|it| it == b"\x1b[2J" || it == b"\x1b[3J"));
        let mut rest = bytes;
        while let Some(at) = rest.windows(QUESTION.len()).position(|it| it == QUESTION) {
            self.pass(&rest[..at]);
            if rest[..at].ends_with(b"\x1b[18t") {
                self.replies.push(TerminalReply::Size(self.real));
            }
            self.replies.push(TerminalReply::Cursor(self.emulator.cursor()));
            rest = &rest[at + QUESTION.len()..];
        }
        self.pass(rest);
    }

    /// Feeds bytes that ask nothing. No screen is erased from its first cell on: tmux would move it into the scrollback.
    fn pass(&mut self, bytes: &[u8]) {
        const ERASE: &[u8] = b"\x1b[J";
        let mut rest = bytes;
        while let Some(at) = rest.windows(ERASE.len()).position(|it| it == ERASE) {
            self.emulator.feed(&rest[..at]);
            let screen = self.emulator.screen();
            assert_ne!(self.emulator.cursor(), Place::default(), "the whole screen: {screen:#?}");
            self.emulator.feed(ERASE);
            rest = &rest[at + ERASE.len()..];
        }
        self.emulator.feed(rest);
    }
}
