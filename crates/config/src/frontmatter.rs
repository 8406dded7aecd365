//! The frontmatter of Markdown files: where it is, and what it says, with line numbers.
//!
//! Real authors write near-YAML, so that reading has two stages: strict YAML, and where that fails
//! each key by itself. What the keys mean is for their readers to find out.

mod decode;
mod fences;
mod lines;
mod list;
#[cfg(test)]
mod tests;
mod value;
mod write;
mod yaml;

use thiserror::Error;

pub use decode::decode;
pub use list::{Separator, names};
pub use value::{Member, Shape, Text, Value};
pub use write::write;
pub(crate) use yaml::last_of_each;

/// Frontmatter describes a file; what is larger than this is none.
const LARGEST: usize = 64 * 1024;

/// A file in two parts. Lines are counted from one, in the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    pub frontmatter: Option<Part<'a>>,
    pub body: Part<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub text: &'a str,
    pub first_line: usize,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrontmatterError {
    #[error("the frontmatter has no closing `---`")]
    Unclosed,
    #[error("the frontmatter is larger than {} KiB", LARGEST / 1024)]
    TooLarge,
}

/// The keys of a kind of file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grammar<'g> {
    /// Keys that always begin a new value.
    pub known: &'g [&'g str],
    /// Keys whose value is the text after the colon, whatever YAML would make of it.
    pub raw: &'g [&'g str],
}

impl Grammar<'_> {
    fn is_known(&self, key: &str) -> bool {
        self.known.contains(&key)
    }

    fn is_raw(&self, key: &str) -> bool {
        self.raw.contains(&key)
    }
}

/// The frontmatter of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontmatter {
    /// In the order of the file, each key once.
    pub members: Vec<Member>,
    pub reading: Reading,
    /// Parts that had to be overlooked, and remarks for the author.
    pub notes: Vec<LineNote>,
    pub first_line: usize,
}

/// The way in which frontmatter was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As the YAML that it is.
    Strict,
    /// As YAML, once the tabs in its indents were blanks.
    Tabs,
    /// Key by key.
    Lines,
}

/// Something to know about one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineNote {
    pub line: usize,
    pub message: String,
}

/// A file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// `None` where a file has none.
    pub frontmatter: Option<Frontmatter>,
    pub body: String,
    /// The line on which the body begins.
    pub body_line: usize,
}

/// Reads a text whose lines end with `\n`, as [`decode`] makes it.
pub fn read(text: &str, grammar: &Grammar<'_>) -> Result<Page, FrontmatterError> {
    let text = fences::dedent(text);
    let whole = || Page { frontmatter: None, body: text.clone().into_owned(), body_line: 1 };
    let Some(fences) = fences::find(&text)? else { return Ok(whole()) };
    let block = text.get(fences.block.clone()).unwrap_or_default();
    let first_line = fences.first_line;
    let mut notes = fences.notes;
    let (mut body, mut body_line) = (fences.body, fences.body_line);
    let (members, reading) = match read_strictly(block, first_line, grammar, &mut notes) {
        Ok(read) => read,
        Err(error) => {
            let mut found = lines::read(block, first_line, grammar);
            if found.members.is_empty() {
                // A rule above some text: its author did not mean it to be frontmatter.
                return Ok(whole());
            }
            if let Some((offset, line)) = found.end {
                (body, body_line) = (fences.block.start + offset, line);
            }
            let reason =
                format!("the frontmatter is no YAML and was read line by line: {}", error.reason);
            notes.push(LineNote { line: error.line, message: reason });
            notes.append(&mut found.notes);
            (found.members, Reading::Lines)
        }
    };
    Ok(Page {
        frontmatter: Some(Frontmatter { members, reading, notes, first_line }),
        body: text.get(body..).unwrap_or_default().to_owned(),
        body_line,
    })
}

/// Reads a block as YAML, with its tabs if need be without them.
fn read_strictly(
    block: &str,
    first_line: usize,
    grammar: &Grammar<'_>,
    notes: &mut Vec<LineNote>,
) -> Result<(Vec<Member>, Reading), yaml::YamlError> {
    let (read, reading) = match yaml::parse(block, first_line) {
        Ok(read) => (read, Reading::Strict),
        Err(error) => {
            let Some(spaced) = without_tabs(block) else { return Err(error) };
            let Ok(read) = yaml::parse(&spaced, first_line) else { return Err(error) };
            let message = "tabs indent the frontmatter; YAML wants blanks".to_owned();
            notes.push(LineNote { line: error.line, message });
            (read, Reading::Tabs)
        }
    };
    notes.extend(read.repeated.iter().map(|(key, line)| repeated(key, *line)));
    notes.extend(read.cut.iter().map(|line| LineNote {
        line: *line,
        message: "what follows ` #` is a comment; put the text in quotes to keep it".to_owned(),
    }));
    let mut members = read.members;
    for member in &mut members {
        let is_text = matches!(member.value.shape, Shape::Text(_) | Shape::Null);
        if grammar.is_raw(&member.key) && !is_text {
            let line = block.lines().nth(member.line.saturating_sub(first_line));
            let (_, rest) = line.and_then(lines::key_of).unwrap_or_default();
            if !rest.trim().is_empty() {
                member.value = Value::plain(member.line, rest.trim());
            }
        }
    }
    Ok((members, reading))
}

fn repeated(key: &str, line: usize) -> LineNote {
    LineNote { line, message: format!("`{key}` is written twice; the last one counts") }
}

/// The same with two blanks for each tab before the first letter of a line; `None` without any.
fn without_tabs(block: &str) -> Option<String> {
    let has_tab = |line: &str| line.trim_start_matches(' ').starts_with('\t');
    if !block.lines().any(has_tab) {
        return None;
    }
    let spaced = block.split_inclusive('\n').map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        let indent = line.get(..line.len() - rest.len()).unwrap_or_default();
        indent.replace('\t', "  ") + rest
    });
    Some(spaced.collect())
}

/// Splits at the `---` lines. A file whose first line is none has no frontmatter; a byte order mark
/// before it and carriage returns after it do not matter.
pub fn split(text: &str) -> Result<Document<'_>, FrontmatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let whole = Document { frontmatter: None, body: Part { text, first_line: 1 } };
    let Some((first, rest)) = text.split_once('\n') else {
        return if is_fence(text) { Err(FrontmatterError::Unclosed) } else { Ok(whole) };
    };
    if !is_fence(first) {
        return Ok(whole);
    }
    let mut end = 0;
    for (number, line) in (2..).zip(rest.split_inclusive('\n')) {
        if is_fence(line) {
            let (inside, after) = rest.split_at(end);
            let body = after.get(line.len()..).unwrap_or_default();
            return Ok(Document {
                frontmatter: Some(Part { text: inside, first_line: 2 }),
                body: Part { text: body, first_line: number + 1 },
            });
        }
        end += line.len();
        if end > LARGEST {
            return Err(FrontmatterError::TooLarge);
        }
    }
    Err(FrontmatterError::Unclosed)
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}
