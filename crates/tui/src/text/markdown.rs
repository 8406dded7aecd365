//! Markdown that comes in pieces: a block is printed when it is complete, the open one is shown in the live region.

mod render;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::frame::Line;

/// The longest block that stays open: more is printed in parts.
const LONGEST_OPEN: usize = 64 * 1024;

/// The most bytes of an open block that are made to lines for a frame: more than a window shows of it.
const MOST_SHOWN: usize = 8 * 1024;

/// A text of Markdown that is still being written.
#[derive(Clone, Debug, Default)]
pub struct MarkdownStream {
    open: String,
    has_printed: bool,
}

impl MarkdownStream {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn feed(&mut self, text: &str) {
        self.open.push_str(text);
    }

    /// Takes the blocks that are complete.
    pub fn finished_blocks(&mut self) -> Vec<Line> {
        let mut end = finished(&self.open);
        if self.open.len() - end > LONGEST_OPEN {
            end = self.open.rfind('\n').map_or(self.open.len(), |at| at + 1);
        }
        let rest = self.open.split_off(end);
        let blocks = std::mem::replace(&mut self.open, rest);
        self.print(&blocks)
    }

    /// The block that is still being written; of a long one its end.
    pub fn open_block(&self) -> Vec<Line> {
        let mut lines = render::lines(&end_of(&self.open));
        // As it will be printed: then it need not be written again.
        if self.has_printed && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines
    }

    /// Takes all that is left: the text has ended.
    pub fn finish(&mut self) -> Vec<Line> {
        let rest = std::mem::take(&mut self.open);
        let lines = self.print(&rest);
        self.has_printed = false;
        lines
    }

    fn print(&mut self, text: &str) -> Vec<Line> {
        let mut lines = render::lines(text);
        if !lines.is_empty() {
            if self.has_printed {
                lines.insert(0, Line::default());
            }
            self.has_printed = true;
        }
        lines
    }
}

/// The end of a block that is too long to be made to lines for each frame, with the fence that it stands in.
fn end_of(open: &str) -> Cow<'_, str> {
    if open.len() <= MOST_SHOWN {
        return Cow::Borrowed(open);
    }
    let cut = open.ceil_char_boundary(open.len() - MOST_SHOWN);
    let start = open[cut..].find('\n').map_or(cut, |at| cut + at + 1);
    let mut fence: Option<(&str, &str)> = None;
    for line in open[..start].split_inclusive('\n') {
        let words = line.trim();
        fence = match fence {
            Some((mark, _)) if closes(words, mark) => None,
            Some(fence) => Some(fence),
            None => opening_fence(words).map(|mark| (mark, line)),
        };
    }
    match fence {
        Some((_, opening)) => Cow::Owned(format!("{}\n{}", opening.trim_end(), &open[start..])),
        None => Cow::Borrowed(&open[start..]),
    }
}

/// Whether a line closes the fence of a mark.
fn closes(words: &str, mark: &str) -> bool {
    words.starts_with(mark) && words.trim_start_matches(&mark[..1]).is_empty()
}

/// The bytes of the blocks that nothing can change any more.
fn finished(text: &str) -> usize {
    let mut end = 0;
    let mut fence: Option<&str> = None;
    let (mut is_list, mut is_after_blank, mut at) = (false, false, 0);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let is_whole = line.ends_with('\n');
        let words = line.trim();
        if let Some(mark) = fence {
            if closes(words, mark) && is_whole {
                fence = None;
                if !is_list {
                    end = at;
                }
            }
            continue;
        }
        if words.is_empty() {
            is_after_blank = true;
            continue;
        }
        let continues = line.starts_with([' ', '\t']) || (is_list && is_item(words));
        if is_after_blank && !continues && could_begin(line, is_list) {
            end = start;
            is_list = false;
        }
        is_after_blank = false;
        is_list |= is_item(words) && !line.starts_with([' ', '\t']);
        fence = opening_fence(words);
        if is_whole && words.starts_with('#') && !line.starts_with(' ') && !is_list {
            end = at;
        }
    }
    end
}

/// Whether the beginning of a line is enough to know that no list continues with it.
fn could_begin(line: &str, is_list: bool) -> bool {
    !is_list || line.ends_with('\n') || line.trim().chars().count() > 4
}

/// Whether a line begins an item of a list.
fn is_item(words: &str) -> bool {
    let rest = words.trim_start_matches(|char: char| char.is_ascii_digit());
    let digits = words.len() - rest.len();
    let is_marked = if digits == 0 {
        rest.starts_with(['-', '*', '+'])
    } else {
        digits < 10 && rest.starts_with(['.', ')'])
    };
    is_marked && rest[1..].chars().next().is_none_or(char::is_whitespace)
}

/// The mark that closes the fence which a line opens, if it opens one.
fn opening_fence(words: &str) -> Option<&str> {
    let mark = words.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = words.len() - words.trim_start_matches(mark).len();
    let is_open = length >= 3 && !(mark == '`' && words[length..].contains('`'));
    is_open.then(|| &words[..length])
}
