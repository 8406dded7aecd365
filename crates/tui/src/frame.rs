//! A frame: what a view makes of the model, and what a surface writes.
//!
//! A frame knows no terminal. Its text is safe: literals of ours, or made by [`foreign`](crate::foreign).

use crate::text::text_width;

/// The size of a terminal, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: u16,
    pub rows: u16,
}

impl Default for Size {
    /// The size of a terminal that does not know its own.
    fn default() -> Self {
        Self { columns: 80, rows: 24 }
    }
}

/// A place on the screen or in the live region, counted from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub row: u16,
    pub column: u16,
}

/// The colours of a terminal that are readable on both backgrounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colour {
    #[default]
    Default,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

/// The look of a piece of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an attribute of a terminal's cell")]
pub struct Style {
    pub colour: Colour,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub reversed: bool,
}

impl Style {
    /// The terminal's own look.
    pub const PLAIN: Self = Self {
        colour: Colour::Default,
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        reversed: false,
    };
    pub const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub const DIM: Self = Self { dim: true, ..Self::PLAIN };

    /// Plain text of a colour.
    pub const fn of(colour: Colour) -> Self {
        Self { colour, ..Self::PLAIN }
    }

    pub const fn coloured(self, colour: Colour) -> Self {
        Self { colour, ..self }
    }

    pub const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub const fn dim(self) -> Self {
        Self { dim: true, ..self }
    }

    pub const fn italic(self) -> Self {
        Self { italic: true, ..self }
    }

    pub const fn underlined(self) -> Self {
        Self { underline: true, ..self }
    }

    pub const fn reversed(self) -> Self {
        Self { reversed: true, ..self }
    }
}

/// A piece of text with one look. The text has no control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    pub style: Style,
}

impl Span {
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

/// The way in which a line that is too long is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wrap {
    /// Broken between words, at 100 columns at most.
    #[default]
    Prose,
    /// Never broken by us: the terminal's selection copies it exactly.
    Flush,
}

/// One logical line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub spans: Vec<Span>,
    pub wrap: Wrap,
    /// Cells before the second and each later row of a wrapped line.
    pub hang: u16,
}

impl Line {
    /// An empty line that is never broken.
    pub fn flush() -> Self {
        Self { wrap: Wrap::Flush, ..Self::default() }
    }

    pub fn push(&mut self, text: impl Into<String>, style: Style) {
        let text = text.into();
        if !text.is_empty() {
            self.spans.push(Span { text, style });
        }
    }

    /// The line with more text at its end.
    pub fn with(mut self, text: impl Into<String>, style: Style) -> Self {
        self.push(text, style);
        self
    }

    /// The cells that the line takes on one row.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| text_width(&span.text)).sum()
    }

    /// The text without its look.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Self {
        Self::default().with(text, Style::PLAIN)
    }
}

impl From<Vec<Span>> for Line {
    fn from(spans: Vec<Span>) -> Self {
        Self { spans, ..Self::default() }
    }
}

/// A state of the terminal that is to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Finished lines, in order. A surface prints them once, and never touches them again.
    pub print: Vec<Line>,
    /// The rows of the live region: one line is one row, and what is longer is cut. Wrap before with
    /// [`wrapped`](crate::wrapped).
    pub live: Vec<Line>,
    /// The place of the cursor in the live region; without one it is hidden.
    pub cursor: Option<Place>,
    /// True if the live region takes the whole window, for as long as frames say so.
    pub is_whole: bool,
    /// The title of the window, if it is ours to set.
    pub title: Option<String>,
}
