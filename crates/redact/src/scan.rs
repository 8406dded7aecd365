//! One text that is looked through, and how far its runs of characters of one class go.
//!
//! A run is measured once, however many hints stand in it: the work for a text grows with its length and not
//! with its square. Every reader measures here.

/// Characters that belong together. Each is one bit of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Letters and digits.
    Word,
    /// Letters, digits, `-` and `_`: names, and base64 for URLs.
    Url,
    /// Letters, digits, `-`, `_` and `.`.
    Dotted,
    /// Letters, digits, `+`, `/`, `=`, `-` and `_`: base64 of either kind.
    AnyBase64,
    /// Letters, digits, `+`, `/` and `=`.
    Base64,
    /// Capital letters and digits.
    Capital,
    /// Hexadecimal digits of either case.
    Hex,
    /// A part of a web token: letters, digits, `-`, `_` and `=`.
    TokenPart,
    /// Letters, digits, `-`, `_`, `.` and `~`.
    Tilde,
    /// A token behind `Bearer`.
    Bearer,
    /// A value of a header.
    Header,
    /// A key of Azure, which may be encoded for a URL.
    AzureKey,
    /// A value that is assigned without quotes, or between them.
    Value,
    /// Characters of a credential without a known shape.
    Opaque,
    /// Quotes, which may be escaped.
    Quote,
    /// Blanks within a line.
    Blank,
    /// A word between blanks, which may stand in JSON.
    Bare,
    /// A URL up to its path.
    Authority,
    /// A URL up to a blank or a quote.
    WholeUrl,
}

const CLASSES: usize = Class::WholeUrl as usize + 1;

impl Class {
    const fn bit(self) -> u32 {
        1 << self as u32
    }

    pub(crate) fn contains(self, byte: u8) -> bool {
        TABLE[usize::from(byte)] & self.bit() != 0
    }
}

/// For every byte the classes that it belongs to.
static TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop ends before 256")]
        let it = byte as u8;
        table[byte] = classes(it);
        byte += 1;
    }
    table
};

const fn classes(byte: u8) -> u32 {
    let is_space = byte.is_ascii_whitespace();
    let mut classes = 0;
    let members = [
        (Class::Word, false),
        (Class::Url, matches!(byte, b'-' | b'_')),
        (Class::Dotted, matches!(byte, b'-' | b'_' | b'.')),
        (Class::AnyBase64, matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')),
        (Class::Base64, matches!(byte, b'+' | b'/' | b'=')),
        (Class::TokenPart, matches!(byte, b'-' | b'_' | b'=')),
        (Class::Tilde, matches!(byte, b'-' | b'_' | b'.' | b'~')),
        (Class::Bearer, matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')),
        (Class::Header, matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b':')),
        (Class::AzureKey, matches!(byte, b'+' | b'/' | b'=' | b'%' | b'-' | b'_')),
        (
            Class::Opaque,
            matches!(
                byte,
                b'-' | b'_' | b'+' | b'/' | b'=' | b'.' | b'~' | b':' | b'%' | b'!' | b'@' | b'#'
            ),
        ),
    ];
    let mut index = 0;
    while index < members.len() {
        if members[index].1 || byte.is_ascii_alphanumeric() {
            classes |= members[index].0.bit();
        }
        index += 1;
    }
    let is_quoted = is_space || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\');
    let others = [
        (Class::Capital, byte.is_ascii_uppercase() || byte.is_ascii_digit()),
        (Class::Hex, byte.is_ascii_hexdigit()),
        (
            Class::Value,
            !is_quoted && !matches!(byte, b',' | b';' | b'&' | b'|' | b'(' | b')' | b'{' | b'}'),
        ),
        (Class::Quote, matches!(byte, b'"' | b'\'' | b'\\')),
        (Class::Blank, matches!(byte, b' ' | b'\t')),
        (Class::Bare, !is_space && !matches!(byte, b'"' | b'\\')),
        (Class::Authority, !is_quoted && !matches!(byte, b'/' | b'?' | b'#')),
        (Class::WholeUrl, !is_quoted),
    ];
    let mut index = 0;
    while index < others.len() {
        if others[index].1 {
            classes |= others[index].0.bit();
        }
        index += 1;
    }
    classes
}

/// A run that was measured.
#[derive(Clone, Copy, Default)]
struct Run {
    start: usize,
    end: usize,
    /// The index behind its last digit.
    digits_end: usize,
}

/// A shorter run is measured again: what is known of a long one is not forgotten for it.
const REMEMBERED: usize = 32;

/// A text, with what its readers know of it already.
pub(crate) struct Scan<'t> {
    pub(crate) text: &'t [u8],
    runs: [Run; CLASSES],
    /// The last range in which separators were counted, and their number.
    separators: (usize, usize, usize),
    /// The starts of values that are no credentials, for each rule that says so.
    pub(crate) rejected_values: [Option<usize>; 3],
    /// The start of a line before which no key ends.
    pub(crate) rejected_line: Option<usize>,
}

impl<'t> Scan<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            runs: [Run::default(); CLASSES],
            separators: (0, 0, 0),
            rejected_values: [None; 3],
            rejected_line: None,
        }
    }

    /// The length of the run of a class that begins at an index.
    pub(crate) fn run(&mut self, class: Class, from: usize) -> usize {
        self.measure(class, from).end - from
    }

    /// The length of the run of a class that begins at an index, and whether it has a digit.
    pub(crate) fn run_with_digit(&mut self, class: Class, from: usize) -> (usize, bool) {
        let run = self.measure(class, from);
        (run.end - from, run.digits_end > from)
    }

    fn measure(&mut self, class: Class, from: usize) -> Run {
        let known = self.runs[class as usize];
        if (known.start..known.end).contains(&from) {
            return known;
        }
        let mut run = Run { start: from, end: from, digits_end: from };
        while let Some(byte) = self.text.get(run.end).filter(|byte| class.contains(**byte)) {
            run.end += 1;
            if byte.is_ascii_digit() {
                run.digits_end = run.end;
            }
        }
        work::count(run.end - from + 1);
        if run.end - from >= REMEMBERED {
            self.runs[class as usize] = run;
        }
        run
    }

    /// The number of characters in a value that separate words.
    pub(crate) fn separators(&mut self, value: std::ops::Range<usize>) -> usize {
        let count = |range: std::ops::Range<usize>| {
            work::count(range.len());
            let bytes = self.text[range].iter();
            bytes.filter(|byte| matches!(byte, b'/' | b'.' | b'_' | b'-')).count()
        };
        let (start, end, known) = self.separators;
        let separators = if end == value.end && (start..end).contains(&value.start) {
            known - count(start..value.start)
        } else {
            count(value.clone())
        };
        self.separators = (value.start, value.end, separators);
        separators
    }
}

/// The steps that were taken, which the tests count.
pub(crate) mod work {
    #[cfg(test)]
    thread_local!(static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) });

    #[cfg(not(test))]
    #[inline]
    pub(crate) fn count(_: usize) {}

    #[cfg(test)]
    pub(crate) fn count(steps: usize) {
        STEPS.set(STEPS.get() + steps);
    }

    /// The number of steps that a closure takes.
    #[cfg(test)]
    pub(crate) fn of(something: impl FnOnce()) -> usize {
        let before = STEPS.get();
        something();
        STEPS.get() - before
    }
}

#[cfg(test)]
mod tests;
