//! JSON that knows where it was written: every value has its place in the text and its line.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::files::FileError;

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Byte offsets in the text.
    pub(crate) span: Range<usize>,
    /// Counted from one.
    pub(crate) line: usize,
    pub(crate) json: Json,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Vec<JsonMember>),
}

/// One key of an object and its value. A key that was written twice is there twice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonMember {
    pub(crate) name: String,
    pub(crate) node: Node,
}

impl Node {
    /// The member of an object with this name: the last one, as JSON readers have it.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        let Json::Object(members) = &self.json else { return None };
        members.iter().rev().find(|member| member.name == name).map(|member| &member.node)
    }

    /// The value without its place.
    pub(crate) fn to_value(&self) -> Value {
        match &self.json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => Value::Number(number.clone()),
            Json::Text(text) => Value::String(text.clone()),
            Json::List(items) => items.iter().map(Node::to_value).collect(),
            Json::Object(members) => {
                let pairs = members.iter().map(|it| (it.name.clone(), it.node.to_value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// A value that came without a text of its own: all of it is on one line.
    pub(crate) fn of_value(value: &Value, line: usize) -> Self {
        let json = match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => Json::Number(number.clone()),
            Value::String(text) => Json::Text(text.clone()),
            Value::Array(items) => {
                Json::List(items.iter().map(|item| Self::of_value(item, line)).collect())
            }
            Value::Object(members) => {
                let members = members.iter();
                Json::Object(
                    members
                        .map(|(name, value)| JsonMember {
                            name: name.clone(),
                            node: Self::of_value(value, line),
                        })
                        .collect(),
                )
            }
        };
        Self { span: 0..0, line, json }
    }

    /// The kind of value, for a message.
    pub(crate) fn kind(&self) -> &'static str {
        match self.json {
            Json::Null => "null",
            Json::Bool(_) => "true or false",
            Json::Number(_) => "a number",
            Json::Text(_) => "text",
            Json::List(_) => "a list",
            Json::Object(_) => "an object",
        }
    }
}

/// Reads only what stands at a path of names, and passes over the rest: such a file may hold much that
/// other programs wrote. `None` where nothing is there.
pub(crate) fn parse_at(text: &str, path: &[&str]) -> Result<Option<Node>, FileError> {
    let mut part = text.strip_prefix('\u{feff}').unwrap_or(text);
    if part.trim().is_empty() {
        return Ok(None);
    }
    // A part of a text is found in it by where it begins.
    let start_of = |part: &str| part.as_ptr().addr() - text.as_ptr().addr();
    let lines_before = |part: &str| {
        text.as_bytes().iter().take(start_of(part)).filter(|byte| **byte == b'\n').count()
    };
    let failed = |error: &serde_json::Error, part: &str| match broken(error) {
        FileError::Broken { line, column, reason } => {
            FileError::Broken { line: line + lines_before(part), column, reason }
        }
        other => other,
    };
    for name in path {
        let members: HashMap<Cow<'_, str>, &RawValue> = match serde_json::from_str(part) {
            Ok(members) => members,
            // It is JSON, though no object: nothing is below it.
            Err(error) if error.is_data() => return Ok(None),
            Err(error) => return Err(failed(&error, part)),
        };
        let Some(found) = members.get(*name) else { return Ok(None) };
        part = found.get();
    }
    // As in `parse`: this bounds how deep it goes.
    serde_json::from_str::<Value>(part).map_err(|error| failed(&error, part))?;
    let mut scanner = PositionScanner { text, at: start_of(part), line: 1 + lines_before(part) };
    Ok(scanner.node())
}

/// Reads a text. Nothing at all counts as an empty object, and a byte order mark as nothing.
pub(crate) fn parse(text: &str) -> Result<Node, FileError> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if body.trim().is_empty() {
        let end = text.len();
        return Ok(Node { span: end..end, line: 1, json: Json::Object(Vec::new()) });
    }
    // Reading it as a whole first finds what is wrong with it, and bounds how deep it goes.
    serde_json::from_str::<Value>(body).map_err(|error| broken(&error))?;
    let mut scanner = PositionScanner { text, at: text.len() - body.len(), line: 1 };
    scanner.node().ok_or_else(|| FileError::Broken {
        line: scanner.line,
        column: 0,
        reason: "its parts cannot be told apart".to_owned(),
    })
}

fn broken(error: &serde_json::Error) -> FileError {
    let whole = error.to_string();
    let reason = whole.split(" at line ").next().unwrap_or(&whole).to_owned();
    FileError::Broken { line: error.line().max(1), column: error.column(), reason }
}

/// Finds the places in a text that is known to be JSON. `None` would mean that it is not.
struct PositionScanner<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> PositionScanner<'t> {
    fn node(&mut self) -> Option<Node> {
        let first = self.next_byte()?;
        let (start, line) = (self.at, self.line);
        let json = match first {
            b'{' => Json::Object(self.members()?),
            b'[' => Json::List(self.items()?),
            b'"' => Json::Text(self.string()?),
            _ => match serde_json::from_str(self.word()).ok()? {
                Value::Bool(value) => Json::Bool(value),
                Value::Number(number) => Json::Number(number),
                _ => Json::Null,
            },
        };
        Some(Node { span: start..self.at, line, json })
    }

    fn members(&mut self) -> Option<Vec<JsonMember>> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            match self.next_byte()? {
                b'"' => {
                    let name = self.string()?;
                    self.next_byte().filter(|byte| *byte == b':')?;
                    self.at += 1;
                    members.push(JsonMember { name, node: self.node()? });
                }
                byte => {
                    self.at += 1;
                    if byte == b'}' {
                        return Some(members);
                    }
                }
            }
        }
    }

    fn items(&mut self) -> Option<Vec<Node>> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            match self.next_byte()? {
                byte @ (b',' | b']') => {
                    self.at += 1;
                    if byte == b']' {
                        return Some(items);
                    }
                }
                _ => items.push(self.node()?),
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut escaped = false;
        let is_end = |byte: u8| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        };
        let length =
            2 + self.text.as_bytes().get(self.at + 1..)?.iter().copied().position(is_end)?;
        serde_json::from_str(self.take(length)).ok()
    }

    /// `true`, `null`, a number.
    fn word(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_end = |it: char| it.is_ascii_whitespace() || matches!(it, ',' | ']' | '}');
        self.take(rest.find(is_end).unwrap_or(rest.len()))
    }

    fn take(&mut self, length: usize) -> &'t str {
        let taken = self.text.get(self.at..self.at + length).unwrap_or_default();
        self.at += length;
        taken
    }

    /// The next byte that is no white space, which is passed over.
    fn next_byte(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b'\n' => self.line += 1,
                b' ' | b'\t' | b'\r' => {}
                byte => return Some(byte),
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn every_value_knows_its_place() {
        let text = "\u{feff}{\n  \"a\": [1,\n    {\"b\": null}],\n  \"c\": \"\\u00e4\", \"a\": -2.5e3\n}\n";
        let node = parse(text).unwrap();
        let Json::Object(members) = &node.json else { panic!("{node:?}") };
        let seen: Vec<_> = members
            .iter()
            .map(|it| (it.name.as_str(), it.node.line, &text[it.node.span.clone()]))
            .collect();
        assert_eq!(
            seen,
            [("a", 2, "[1,\n    {\"b\": null}]"), ("c", 4, "\"\\u00e4\""), ("a", 4, "-2.5e3")]
        );
        let Json::List(items) = &members[0].node.json else { panic!() };
        assert_eq!((items[0].line, items[1].line), (2, 3));
        assert_eq!(node.get("a").unwrap().kind(), "a number");
        assert_eq!(node.to_value(), serde_json::json!({"a": -2500.0, "c": "ä"}));
    }

    proptest! {
        /// Whatever serde_json reads is read the same here.
        #[test]
        fn values_are_those_of_any_other_reader(
            texts in prop::collection::vec("[\"\\\\a,:{}\\[\\] \n\u{e4}\u{1f600}]{0,6}", 1..6),
            numbers in prop::collection::vec(any::<f64>(), 0..3),
            is_pretty: bool,
        ) {
            let mut value = json!({"numbers": numbers, "none": null, "yes": true, "no": [false, {}, []]});
            for text in &texts {
                value = json!({text: [text, value], "end": text});
            }
            let text = if is_pretty { format!(" {value:#}\n") } else { value.to_string() };
            let node = parse(&text).unwrap();
            prop_assert_eq!(&node.to_value(), &serde_json::from_str::<Value>(&text).unwrap());
            prop_assert_eq!(&text[node.span.clone()], text.trim());
        }
    }

    #[test]
    fn a_part_is_read_without_the_rest() {
        let text = "\u{feff}{\n \"a\": {\n  \"b/c\": [\n   1], \"b\": 2},\n \"a\\u0062\": {}, \"n\": [{\"b\": 1}]}";
        let node = parse_at(text, &["a", "b/c"]).unwrap().unwrap();
        assert_eq!((node.line, &text[node.span.clone()]), (3, "[\n   1]"));
        let Json::List(items) = &node.json else { panic!("{node:?}") };
        assert_eq!(items[0].line, 4);
        assert_eq!(parse_at(text, &["ab"]).unwrap().unwrap().kind(), "an object");
        for nothing in [&["x"][..], &["a", "b", "c"], &["n", "b"]] {
            assert_eq!(parse_at(text, nothing).unwrap(), None, "{nothing:?}");
        }
        assert_eq!(parse_at(" \n", &["a"]).unwrap(), None);
        assert_eq!(parse_at("{\n\"a\": {},\n}", &["a"]).unwrap_err().line(), Some(3));
        let deep = format!("{{\n\"a\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(parse_at(&deep, &["a"]).unwrap_err().line(), Some(2));
        assert_eq!(parse_at(&deep, &["b"]).unwrap(), None);
        assert_eq!(
            Node::of_value(&json!({"a": [1, null, true]}), 7).to_value(),
            json!({"a": [1, null, true]})
        );
    }

    #[test]
    fn a_large_and_deep_file_is_read_in_one_pass() {
        let text = "[".repeat(120) + &vec!["1"; 500_000].join(",\n") + &"]".repeat(120);
        let mut node = &parse(&text).unwrap();
        while let Json::List(items) = &node.json {
            node = items.last().unwrap();
        }
        assert_eq!((node.line, &node.json), (500_000, &Json::Number(1.into())));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        let place = |text: &str| match parse(text).unwrap_err() {
            FileError::Broken { line, column, reason } => (line, column, reason),
            other => panic!("{other}"),
        };
        assert_eq!(place("{\n  \"a\": 1,\n}"), (3, 1, "trailing comma".to_owned()));
        assert_eq!(place("{} // no").0, 1);
        assert_eq!(place("{\"a\": \"\\ud800\"}").0, 1);
        assert_eq!(place(&"[".repeat(100_000)), (1, 128, "recursion limit exceeded".to_owned()));
        assert_eq!(parse(" \n").unwrap().json, Json::Object(Vec::new()));
    }
}
