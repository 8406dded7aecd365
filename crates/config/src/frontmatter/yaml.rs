//! Strict YAML, as text, lists and maps with their lines.
//!
//! Scalars stay as they were written: no reader of definitions wants `1.0` to become a number or `no`
//! a truth value. What is deep, or grows by references to itself, is refused before it costs anything.

use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span};

use super::value::{Member, Shape, Text, Value};

/// The deepest nesting of lists and maps.
const DEEPEST: usize = 32;

/// The most values, with those that references repeat.
const MOST_VALUES: usize = 10_000;

/// The reason why a text is no YAML that is read here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct YamlError {
    pub(super) line: usize,
    pub(super) reason: String,
}

/// The keys of a map.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    /// Each key once: where it was written twice, the later one counts.
    pub(super) members: Vec<Member>,
    /// Keys that were written again, with the line of the later one.
    pub(super) repeated: Vec<(String, usize)>,
    /// The lines on which a comment cuts a text short.
    pub(super) cut: Vec<usize>,
}

/// Reads a map. Lines are counted from `first_line`; no text at all is an empty map.
pub(super) fn parse(text: &str, first_line: usize) -> Result<Mapping, YamlError> {
    let mut options = Options::default();
    options.flow_nesting_limit = DEEPEST;
    options.block_nesting_limit = DEEPEST;
    let mut builder = Builder::new(first_line);
    let mut parser = Parser::new_from_str_with_options(text, options);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| builder.scan_error(&error))?;
        builder.take(event, span)?;
    }
    builder.finish()
}

/// A list or map whose end has not been seen.
struct OpenCollection {
    line: usize,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Value>),
    Map { members: Vec<Member>, key: Option<(String, usize)> },
}

struct Builder {
    /// The number that is added to a line of the parser.
    offset: usize,
    open: Vec<OpenCollection>,
    root: Option<Value>,
    anchors: HashMap<usize, Value>,
    values: usize,
    /// The line on which the last plain text ended, for a comment may follow it there.
    plain_until: Option<usize>,
    mapping: Mapping,
}

impl Builder {
    fn new(first_line: usize) -> Self {
        Self {
            offset: first_line.saturating_sub(1),
            open: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            values: 0,
            plain_until: None,
            mapping: Mapping::default(),
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let line = span.start.line() + self.offset;
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_quoted = style != ScalarStyle::Plain
                    || tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                self.plain_until =
                    (style == ScalarStyle::Plain && !text.is_empty()).then(|| span.end.line());
                let is_null = !is_quoted && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let shape = if is_null {
                    Shape::Null
                } else {
                    Shape::Text(Text { text: text.into_owned(), is_quoted })
                };
                self.put(Value::new(line, shape), anchor)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin(line, anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => {
                self.begin(line, anchor, Content::Map { members: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(line),
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                let value = value.ok_or_else(|| fail(line, "a reference leads to itself"))?;
                self.count(size_of(&value), line)?;
                self.put(Value { line, ..value }, 0)
            }
            Event::Comment(..) => {
                if self.plain_until == Some(span.start.line()) {
                    self.mapping.cut.push(line);
                }
                Ok(())
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(fail(line, "a second document begins"))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, line: usize, anchor: usize, content: Content) -> Result<(), YamlError> {
        if self.open.len() >= DEEPEST {
            return Err(fail(line, "lists and maps lie too deep in each other"));
        }
        self.open.push(OpenCollection { line, anchor, content });
        Ok(())
    }

    fn end(&mut self, line: usize) -> Result<(), YamlError> {
        let Some(OpenCollection { line: begun, anchor, content }) = self.open.pop() else {
            return Err(fail(line, "a list or map ends that never began"));
        };
        let shape = match content {
            Content::List(items) => Shape::List(items),
            Content::Map { members, .. } => {
                let (members, repeated) = last_of_each(members);
                // Only the outermost map is told about: the others are for their readers.
                if self.open.is_empty() {
                    self.mapping.repeated = repeated;
                }
                Shape::Map(members)
            }
        };
        self.put(Value::new(begun, shape), anchor)
    }

    /// Puts a finished value where it belongs.
    fn put(&mut self, value: Value, anchor: usize) -> Result<(), YamlError> {
        self.count(1, value.line)?;
        if anchor != 0 {
            self.count(size_of(&value), value.line)?;
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.root = Some(value),
            Some(Content::List(items)) => items.push(value),
            Some(Content::Map { members, key }) => match key.take() {
                Some((key, line)) => members.push(Member { key, line, value }),
                None => match value.shape {
                    Shape::Text(text) => *key = Some((text.text, value.line)),
                    Shape::Null => *key = Some((String::new(), value.line)),
                    _ => return Err(fail(value.line, "a key must be text")),
                },
            },
        }
        Ok(())
    }

    fn count(&mut self, values: usize, line: usize) -> Result<(), YamlError> {
        self.values += values;
        if self.values > MOST_VALUES {
            return Err(fail(line, "there are too many values"));
        }
        Ok(())
    }

    fn finish(self) -> Result<Mapping, YamlError> {
        let members = match self.root {
            None | Some(Value { shape: Shape::Null, .. }) => Vec::new(),
            Some(Value { shape: Shape::Map(members), .. }) => members,
            Some(other) => {
                return Err(fail(other.line, "there are no `key: value` lines"));
            }
        };
        Ok(Mapping { members, ..self.mapping })
    }

    fn scan_error(&self, error: &ScanError) -> YamlError {
        YamlError { line: error.marker().line() + self.offset, reason: error.info() }
    }
}

fn fail(line: usize, reason: &str) -> YamlError {
    YamlError { line, reason: reason.to_owned() }
}

/// The number of values in a value, itself included.
fn size_of(value: &Value) -> usize {
    1 + match &value.shape {
        Shape::Null | Shape::Text(_) => 0,
        Shape::List(items) => items.iter().map(size_of).sum(),
        Shape::Map(members) => members.iter().map(|it| size_of(&it.value)).sum::<usize>(),
    }
}

/// Each key once, the last one of those that are the same, in the order of what stays. Keys that were
/// written again come with the line of the one that counts.
pub(crate) fn last_of_each(members: Vec<Member>) -> (Vec<Member>, Vec<(String, usize)>) {
    let mut last = HashMap::with_capacity(members.len());
    for (index, member) in members.iter().enumerate() {
        last.insert(member.key.clone(), (index, member.line));
    }
    if last.len() == members.len() {
        return (members, Vec::new());
    }
    let mut repeated = Vec::new();
    let mut kept = Vec::with_capacity(last.len());
    for (index, member) in members.into_iter().enumerate() {
        match last.get(&member.key) {
            Some((last, line)) if *last != index => repeated.push((member.key, *line)),
            _ => kept.push(member),
        }
    }
    (kept, repeated)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use serde_json::{Value as Json, json};

    use super::*;

    fn json(text: &str) -> Json {
        Value::new(1, Shape::Map(parse(text, 1).unwrap().members)).to_json()
    }

    fn error(text: &str) -> (usize, String) {
        let error = parse(text, 2).unwrap_err();
        (error.line, error.reason)
    }

    #[test]
    fn scalars_stay_as_they_were_written() {
        let read = parse("a: 1.0\nb: no\nc: '5'\nd: ~\ne:\nf: 2024-01-01\n", 2).unwrap();
        let seen: Vec<_> =
            read.members.iter().map(|it| (it.key.as_str(), it.value.as_text(), it.line)).collect();
        let expected = [
            ("a", Some("1.0"), 2),
            ("b", Some("no"), 3),
            ("c", Some("5"), 4),
            ("d", None, 5),
            ("e", None, 6),
            ("f", Some("2024-01-01"), 7),
        ];
        assert_eq!(seen, expected);
        assert_eq!(json("c: '5'\nd: 5"), json!({"c": "5", "d": 5}));
        assert_eq!(json("a: !!str 5"), json!({"a": "5"}));
    }

    #[test]
    fn lists_maps_and_blocks_are_read_with_their_lines() {
        let text = "a: [x, 'y z']\nb:\n  - 1\n  - k: v\nc: |\n  one\n  two\nd: >-\n  one\n  two\n";
        assert_eq!(
            json(text),
            json!({"a": ["x", "y z"], "b": [1, {"k": "v"}], "c": "one\ntwo\n", "d": "one two"})
        );
        let read = parse(text, 11).unwrap();
        let Shape::List(items) = &read.members[1].value.shape else { panic!() };
        assert_eq!((items[0].line, items[1].line, read.members[2].line), (13, 14, 15));
    }

    #[test]
    fn the_last_of_the_same_keys_counts_and_is_told() {
        let read = parse("a: 1\nb: 2\na: 3\n", 1).unwrap();
        let seen: Vec<_> =
            read.members.iter().map(|it| (it.key.as_str(), it.value.as_text())).collect();
        assert_eq!(seen, [("b", Some("2")), ("a", Some("3"))]);
        assert_eq!(read.repeated, [("a".to_owned(), 3)]);
    }

    #[test]
    fn a_comment_that_cuts_a_text_is_told() {
        assert_eq!(parse("a: fix #12 now\nb: one#two\n# c\nc: 'x' # y\n", 1).unwrap().cut, [1]);
        assert_eq!(parse("a: fix #12 #13\n", 1).unwrap().cut, [1]);
        assert_eq!(json("a: fix #12"), json!({"a": "fix"}));
    }

    #[test]
    fn what_is_no_map_is_refused_with_its_line() {
        assert_eq!(error("a: b: c\n").0, 2);
        assert_eq!(error("just text\n").1, "there are no `key: value` lines");
        assert_eq!(error("a: 1\n{x: y}: 2\n"), (3, "a key must be text".to_owned()));
        assert_eq!(parse("", 1).unwrap().members, []);
        assert_eq!(parse("# only a comment\n", 1).unwrap().members, []);
    }

    #[test]
    fn references_are_followed_within_bounds() {
        assert_eq!(json("a: &x [1, 2]\nb: *x\n"), json!({"a": [1, 2], "b": [1, 2]}));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let items = vec![format!("*a{}", level - 1); 9].join(", ");
            writeln!(bomb, "a{level}: &a{level} [{items}]").unwrap();
        }
        assert_eq!(error(&bomb).1, "there are too many values");
    }

    #[test]
    fn what_is_deep_is_refused_at_once() {
        for opening in ["[", "{a: ", "- "] {
            let text = format!("a:\n  {}", opening.repeat(15_000));
            let started = std::time::Instant::now();
            assert!(parse(&text, 1).is_err(), "{opening}");
            assert!(started.elapsed().as_secs() < 5, "{opening}");
        }
    }
}
