//! Numbered lines, within bounds.

use std::fmt::Write as _;

use super::Request;

/// The lines shown by default.
const DEFAULT_LINES: usize = 2_000;

/// Characters shown of a line.
const MAX_COLUMNS: usize = 2_000;

/// Bytes shown in one answer.
const MAX_BYTES: usize = 256 * 1024;

/// The same for a call that allows a large answer.
const MAX_LARGE_BYTES: usize = 1024 * 1024;

/// The cut lines that the notes name.
const MAX_NAMED: usize = 5;

/// A part of a text, under construction.
pub(super) struct TextPage {
    /// The text for the model.
    pub(super) numbered: String,
    /// The same lines without numbers, for hosts.
    pub(super) plain: String,
    pub(super) first: usize,
    pub(super) count: usize,
    lines: usize,
    columns: usize,
    bytes: usize,
    /// Lines that are cut, with their lengths.
    cut: Vec<(usize, usize)>,
}

impl TextPage {
    pub(super) fn new(request: &Request) -> Self {
        let (lines, columns, bytes) = if request.allow_large {
            (usize::MAX, MAX_LARGE_BYTES, MAX_LARGE_BYTES)
        } else {
            (DEFAULT_LINES, MAX_COLUMNS, MAX_BYTES)
        };
        Self {
            numbered: String::new(),
            plain: String::new(),
            first: request.first_line(),
            count: 0,
            lines: request.limit.unwrap_or(lines),
            columns,
            bytes,
            cut: Vec::new(),
        }
    }

    /// The most characters of a line that are shown.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn is_full(&self) -> bool {
        self.count >= self.lines || self.numbered.len() >= self.bytes
    }

    /// Adds the next line, which has `unseen` more characters. `false` when the page was full already.
    pub(super) fn push(&mut self, line: &str, unseen: usize) -> bool {
        if self.is_full() {
            return false;
        }
        let mut shown = line;
        if line.len() > self.columns
            && let Some((end, _)) = line.char_indices().nth(self.columns)
        {
            shown = line.get(..end).unwrap_or(line);
        }
        if self.numbered.len() + shown.len() > self.bytes {
            if self.count > 0 {
                return false;
            }
            shown = line.get(..line.floor_char_boundary(self.bytes)).unwrap_or(line);
        }
        let number = self.first + self.count;
        if shown.len() < line.len() || unseen > 0 {
            self.cut.push((number, line.chars().count() + unseen));
        }
        if self.count > 0 {
            self.numbered.push('\n');
            self.plain.push('\n');
        }
        let _ = write!(self.numbered, "{number}");
        self.numbered.push('\t');
        self.numbered.push_str(shown);
        self.plain.push_str(shown);
        self.count += 1;
        true
    }

    pub(super) fn last(&self) -> usize {
        (self.first + self.count).saturating_sub(1)
    }

    /// Notes about the lines. `total` is the number of lines in the file, if known.
    pub(super) fn notes(&self, total: Option<usize>) -> Vec<String> {
        let mut notes = Vec::new();
        let (first, last) = (self.first, self.last());
        match total {
            Some(total) if last < total => notes.push(format!(
                "lines {first}-{last} of {total}; continue with offset {}",
                last + 1
            )),
            None => notes.push(format!(
                "lines {first}-{last}, and the file may be longer; continue with offset {}",
                last + 1
            )),
            Some(_) => {}
        }
        for (line, length) in self.cut.iter().take(MAX_NAMED) {
            notes.push(format!(
                "line {line} has {length} characters and is cut; see all of it with allow_large, or \
                 search in it with Grep and -o"
            ));
        }
        if self.cut.len() > MAX_NAMED {
            notes.push(format!("{} more lines are cut", self.cut.len() - MAX_NAMED));
        }
        notes
    }
}

/// Joins the lines and, separately, the notes: a line of a file has a number, a note has none.
pub(super) fn with_notes(mut text: String, notes: &[String]) -> String {
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        let _ = write!(text, "\n({note})");
    }
    text
}
