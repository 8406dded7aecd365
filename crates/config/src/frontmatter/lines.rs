//! Frontmatter that is no YAML, read line by line as its author meant it.
//!
//! The block is cut where lines begin with a key, and each piece is read alone: one that YAML cannot
//! read becomes the text that it is, and costs no other key anything.

use super::value::{Member, Shape, Value};
use super::{Grammar, LineNote, yaml};

/// Words that people put before the lines of a conversation.
const SPEAKERS: [&str; 18] = [
    "agent",
    "answer",
    "assistant",
    "commentary",
    "context",
    "example",
    "examples",
    "human",
    "input",
    "note",
    "notes",
    "output",
    "question",
    "response",
    "result",
    "system",
    "user",
    "when",
];

/// The lines of a block.
#[derive(Debug, Default)]
pub(super) struct BlockLines {
    pub(super) members: Vec<Member>,
    pub(super) notes: Vec<LineNote>,
    /// The end of the block if no fence closed it: the place in it and the line.
    pub(super) end: Option<(usize, usize)>,
}

/// A key with the lines of its value.
struct KeyLines<'t> {
    key: &'t str,
    line: usize,
    /// The text on the line of the key, after its colon.
    head: &'t str,
    /// The lines after that one.
    following: &'t str,
    /// The place in the block at which the key and the lines after it begin.
    starts: (usize, usize),
    /// The number of examples that have begun in it and not ended.
    open_examples: usize,
}

/// The key with which a line begins, and what stands after its colon.
pub(super) fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let key = key.trim_end();
    let mut letters = key.chars();
    let is_key = letters.next().is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
        && letters.all(|it| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.'));
    let is_apart = rest.is_empty() || rest.starts_with([' ', '\t']);
    (is_key && is_apart).then_some((key, rest))
}

/// Reads a block. Every line is looked at a fixed number of times.
pub(super) fn read(block: &str, first_line: usize, grammar: &Grammar<'_>) -> BlockLines {
    let mut found = BlockLines::default();
    let members = cut(block, first_line, grammar, &mut found).into_iter().map(|piece| {
        let value = read_piece(&piece, block, grammar);
        Member { key: piece.key.to_owned(), line: piece.line, value }
    });
    let (members, repeated) = yaml::last_of_each(members.collect());
    found.members = members;
    found.notes.extend(repeated.iter().map(|(key, line)| super::repeated(key, *line)));
    found
}

/// Cuts a block into pieces, and finds where it ends.
fn cut<'t>(
    block: &'t str,
    first_line: usize,
    grammar: &Grammar<'_>,
    found: &mut BlockLines,
) -> Vec<KeyLines<'t>> {
    let mut pieces: Vec<KeyLines<'t>> = Vec::new();
    let mut lines = (first_line..).zip(block.split_inclusive('\n')).peekable();
    let mut at = 0;
    while let Some((number, line)) = lines.next() {
        let start = at;
        at += line.len();
        let text = line.strip_suffix('\n').unwrap_or(line);
        if let Some((key, rest)) = key_of(text)
            && begins_piece(key, pieces.last(), grammar)
        {
            pieces.push(KeyLines {
                key,
                line: number,
                head: rest.trim(),
                following: "",
                starts: (start, at),
                open_examples: examples(rest, 0),
            });
            continue;
        }
        if is_heading_or_fence(text) {
            let next = lines.peek().and_then(|(_, next)| key_of(next.trim_end_matches('\n')));
            if next.is_none_or(|(key, _)| !grammar.is_known(key)) {
                found.end = Some((start, number));
                let message = "the frontmatter has no closing `---` before the text begins";
                found.notes.push(LineNote { line: number, message: message.to_owned() });
                break;
            }
            continue;
        }
        if let Some(piece) = pieces.last_mut() {
            piece.following = block.get(piece.starts.1..at).unwrap_or_default();
            piece.open_examples = examples(text, piece.open_examples);
        }
    }
    pieces
}

/// Whether a key begins something new, or is a line of the value before it.
fn begins_piece(key: &str, current: Option<&KeyLines<'_>>, grammar: &Grammar<'_>) -> bool {
    let Some(current) = current else { return true };
    if grammar.is_known(key) {
        return true;
    }
    if current.open_examples > 0 {
        return false;
    }
    let is_speech = key.starts_with(|it: char| it.is_ascii_uppercase())
        || SPEAKERS.contains(&key.to_ascii_lowercase().as_str());
    !(is_speech && current.is_prose())
}

impl KeyLines<'_> {
    /// The key and all of its lines.
    fn whole<'t>(&self, block: &'t str) -> &'t str {
        block.get(self.starts.0..self.starts.1 + self.following.len()).unwrap_or_default()
    }

    /// Whether the value is made of sentences.
    fn is_prose(&self) -> bool {
        let head = self.head;
        head.contains(' ') && !head.starts_with(['[', '{'])
            || matches!(self.key, "description" | "when_to_use" | "when-to-use")
    }
}

fn examples(line: &str, open: usize) -> usize {
    if !line.contains("example>") {
        return open;
    }
    (open + line.matches("<example>").count()).saturating_sub(line.matches("</example>").count())
}

fn is_heading_or_fence(line: &str) -> bool {
    let level = line.bytes().take_while(|it| *it == b'#').count();
    (1..=6).contains(&level) && line.as_bytes().get(level) == Some(&b' ')
        || line.starts_with("```")
        || line.starts_with("~~~")
}

/// The value of a piece: what YAML makes of it, or else what a person does.
fn read_piece(piece: &KeyLines<'_>, block: &str, grammar: &Grammar<'_>) -> Value {
    if let Ok(read) = yaml::parse(piece.whole(block), piece.line)
        && let [member] = read.members.as_slice()
        && member.key == piece.key
        && (!grammar.is_raw(piece.key)
            || matches!(member.value.shape, Shape::Text(_) | Shape::Null))
    {
        return member.value.clone();
    }
    by_hand(piece, grammar)
}

fn by_hand(piece: &KeyLines<'_>, grammar: &Grammar<'_>) -> Value {
    let (head, following) = (piece.head, piece.following);
    let line = piece.line;
    if grammar.is_raw(piece.key) {
        return Value::plain(line, unquote(head));
    }
    if is_block_header(head) {
        return Value::quoted(line, block_scalar(head, following));
    }
    let whole = joined(head, following);
    if let Some(inside) = whole.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        let items = flow_items(inside).into_iter().map(|item| Value::plain(line, item));
        return Value::new(line, Shape::List(items.collect()));
    }
    if let Some(items) = dash_items(head, following, line) {
        return Value::new(line, Shape::List(items));
    }
    if whole.is_empty() {
        return Value::new(line, Shape::Null);
    }
    let plain = unquote(&whole);
    if plain.len() < whole.len() { Value::quoted(line, plain) } else { Value::plain(line, plain) }
}

/// The lines of a value, each without its indent and the blanks at its end.
fn joined(head: &str, following: &str) -> String {
    let mut text = head.to_owned();
    for line in following.lines() {
        text.push('\n');
        text.push_str(line.trim());
    }
    text.trim().to_owned()
}

/// `|` or `>`, with what may stand beside it.
fn is_block_header(head: &str) -> bool {
    let mut letters = head.chars();
    letters.next().is_some_and(|it| matches!(it, '|' | '>'))
        && letters.all(|it| matches!(it, '+' | '-') || it.is_ascii_digit())
}

fn block_scalar(header: &str, following: &str) -> String {
    let filled = following.lines().filter(|line| !line.trim().is_empty());
    let indent = filled.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let lines = following.lines().map(|line| line.get(indent..).unwrap_or_default().trim_end());
    if header.starts_with('|') {
        let mut text = lines.collect::<Vec<_>>().join("\n");
        text.truncate(text.trim_end().len());
        return text;
    }
    let mut text = String::new();
    for line in lines {
        match (line.is_empty(), text.ends_with('\n') || text.is_empty()) {
            (true, _) => text.push('\n'),
            (false, true) => text.push_str(line),
            (false, false) => {
                text.push(' ');
                text.push_str(line);
            }
        }
    }
    text.trim_end().to_owned()
}

/// The items of a list in brackets: commas inside quotes and brackets keep nothing apart.
fn flow_items(inside: &str) -> Vec<String> {
    let mut quote = None;
    let mut depth = 0_usize;
    let parts = inside.split(|it: char| {
        match (quote, it) {
            (Some(open), _) if open == it => quote = None,
            (None, '"' | '\'') => quote = Some(it),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        it == ',' && quote.is_none() && depth == 0
    });
    parts.map(|item| unquote(item.trim()).to_owned()).filter(|item| !item.is_empty()).collect()
}

/// The items of a list of `- ` lines; `None` where there are other lines too.
fn dash_items(head: &str, following: &str, line: usize) -> Option<Vec<Value>> {
    let numbered = std::iter::once((line, head)).chain((line + 1..).zip(following.lines()));
    let mut items = Vec::new();
    for (number, text) in numbered.filter(|(_, text)| !text.trim().is_empty()) {
        let item = text.trim().strip_prefix('-')?;
        if !item.is_empty() && !item.starts_with([' ', '\t']) {
            return None;
        }
        items.push(Value::plain(number, unquote(item.trim())));
    }
    (!items.is_empty()).then_some(items)
}

/// A text without the quotes around it.
fn unquote(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inside) = text.strip_prefix(quote).and_then(|it| it.strip_suffix(quote)) {
            return inside;
        }
    }
    text
}
