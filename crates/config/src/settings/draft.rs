//! A JSON text that is about to be changed: one part goes in or out, and the rest stays byte for byte.

use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Value, json};

use super::document::{self, Json, Node};
use crate::files::FileError;

/// One step of indentation in a file that has none yet.
const UNIT: &str = "  ";

/// A text that is about to be changed.
pub(crate) struct Draft {
    text: String,
    pub(crate) root: Node,
    /// One step of indentation; `None` if all is on one line.
    unit: Option<String>,
}

/// The value that stands in the place of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InTheWay {
    pub(crate) line: usize,
    pub(crate) key: String,
}

impl Draft {
    pub(crate) fn new(text: String) -> Result<Self, FileError> {
        let text = if text.trim_start_matches('\u{feff}').trim().is_empty() {
            "{}\n".to_owned()
        } else {
            text
        };
        let root = document::parse(&text)?;
        let is_empty = matches!(&root.json, Json::Object(members) if members.is_empty());
        let gap = gap_after(&text, root.span.start);
        let unit = match gap.rsplit_once('\n') {
            Some((_, indent)) if !is_empty => Some(indent.to_owned()),
            None if !is_empty => None,
            _ => Some(UNIT.to_owned()),
        };
        Ok(Self { text, root, unit })
    }

    /// The text with another value in the place of one.
    pub(crate) fn replaced(&self, node: &Node, value: &Value) -> String {
        let indent = self.indent_of_line(node.span.start);
        self.spliced(node.span.start, node.span.end, &self.render(value, indent))
    }

    /// The text with a value at a path of names; objects that are missing on the way are made.
    pub(crate) fn with_value_at(&self, path: &[&str], value: &Value) -> Result<String, InTheWay> {
        let mut node = &self.root;
        for (index, name) in path.iter().enumerate() {
            if !matches!(node.json, Json::Object(_)) {
                let key = index.checked_sub(1).and_then(|index| path.get(index));
                return Err(InTheWay { line: node.line, key: (*key.unwrap_or(&"")).to_owned() });
            }
            let Some(next) = node.get(name) else {
                let rest = path.get(index + 1..).unwrap_or_default();
                let nested =
                    rest.iter().rev().fold(value.clone(), |value, name| json!({ *name: value }));
                return Ok(self.with_member(node, name, &nested));
            };
            node = next;
        }
        Ok(self.replaced(node, value))
    }

    /// The text with one more member at the end of an object.
    pub(crate) fn with_member(&self, object: &Node, name: &str, value: &Value) -> String {
        let last = match &object.json {
            Json::Object(members) => members.iter().map(|member| member.node.span.end).max(),
            _ => None,
        };
        self.with_part(object, last, |indent| {
            format!("{}: {}", json!(name), self.render(value, indent))
        })
    }

    /// The text with one more item at the end of a list.
    pub(crate) fn with_item(&self, list: &Node, items: &[Node], value: &Value) -> String {
        let end = items.last().map(|item| item.span.end);
        self.with_part(list, end, |indent| self.render(value, indent))
    }

    /// The text without the first member of an object that has this name; `None` where none has it.
    pub(crate) fn without_member(&self, object: &Node, name: &str) -> Option<String> {
        let Json::Object(members) = &object.json else { return None };
        let index = members.iter().position(|member| member.name == name)?;
        let end = members.get(index)?.node.span.end;
        let before = index.checked_sub(1).and_then(|index| members.get(index));
        Some(match (before, members.get(index + 1)) {
            (Some(before), _) => self.spliced(before.node.span.end, end, ""),
            (None, Some(_)) => {
                let gap = gap_after(&self.text, object.span.start);
                let start = object.span.start + 1 + gap.len();
                let comma = end + self.text.get(end..)?.find(',')?;
                let next = comma + 1 + gap_after(&self.text, comma).len();
                self.spliced(start, next, "")
            }
            (None, None) => {
                self.spliced(object.span.start + 1, object.span.end.saturating_sub(1), "")
            }
        })
    }

    /// Puts a part after the last one of a container, in the way the others are laid out; `part` is
    /// told its indentation.
    fn with_part(
        &self,
        container: &Node,
        last: Option<usize>,
        part: impl Fn(&str) -> String,
    ) -> String {
        let gap = gap_after(&self.text, container.span.start);
        if let Some(last) = last {
            let indent = gap.rsplit_once('\n').map(|(_, indent)| indent);
            let gap = if indent.is_some() { gap } else { " " };
            let part = part(indent.unwrap_or_default());
            return self.spliced(last, last, &format!(",{gap}{part}"));
        }
        let (start, end) = (container.span.start + 1, container.span.end.saturating_sub(1));
        let Some(unit) = &self.unit else { return self.spliced(start, end, &part("")) };
        let outer = self.indent_of_line(container.span.start);
        let inner = format!("{outer}{unit}");
        let line_end = self.line_end();
        let text = format!("{line_end}{inner}{}{line_end}{outer}", part(&inner));
        self.spliced(start, end, &text)
    }

    /// A value laid out like the rest of the file, for a line that is indented this far.
    fn render(&self, value: &Value, indent: &str) -> String {
        let Some(unit) = &self.unit else { return value.to_string() };
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(unit.as_bytes());
        let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
        let pretty =
            value.serialize(&mut serializer).ok().and_then(|()| String::from_utf8(bytes).ok());
        // Texts have no line ends of their own in JSON.
        pretty.map_or_else(
            || value.to_string(),
            |pretty| pretty.replace('\n', &format!("{}{indent}", self.line_end())),
        )
    }

    fn spliced(&self, start: usize, end: usize, new: &str) -> String {
        let before = self.text.get(..start).unwrap_or_default();
        let after = self.text.get(end..).unwrap_or_default();
        format!("{before}{new}{after}")
    }

    fn line_end(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn indent_of_line(&self, offset: usize) -> &str {
        let before = self.text.get(..offset).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let rest = line.trim_start_matches([' ', '\t']);
        line.strip_suffix(rest).unwrap_or_default()
    }
}

/// The white space after the bracket at an offset.
fn gap_after(text: &str, offset: usize) -> &str {
    let inside = text.get(offset + 1..).unwrap_or_default();
    let rest = inside.trim_start();
    inside.strip_suffix(rest).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_finds_its_place_and_makes_the_way_to_it() {
        for (before, after) in [
            ("{}", "{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}"),
            ("{\n \"a\": {}\n}", "{\n \"a\": {\n  \"b\": [\n   1\n  ]\n }\n}"),
            ("{\"a\":{\"c\":2}}", "{\"a\":{\"c\":2, \"b\": [1]}}"),
            (
                "{\n \"a\": {\n  \"b\": null,\n  \"c\": 2\n }\n}",
                "{\n \"a\": {\n  \"b\": [\n   1\n  ],\n  \"c\": 2\n }\n}",
            ),
        ] {
            let draft = Draft::new(before.to_owned()).unwrap();
            assert_eq!(draft.with_value_at(&["a", "b"], &json!([1])).unwrap(), after, "{before}");
        }
        let draft = Draft::new("{\n\"a\": 1}".to_owned()).unwrap();
        let in_the_way = draft.with_value_at(&["a", "b"], &json!(1)).unwrap_err();
        assert_eq!(in_the_way, InTheWay { line: 2, key: "a".to_owned() });
    }

    #[test]
    fn a_member_goes_and_its_neighbours_stay_as_they_were() {
        for (before, after) in [
            ("{\n  \"x\": 1\n}\n", "{}\n"),
            ("{\n  \"x\": {\"a\": 1},\n  \"b\" : [ 2 ]\n}\n", "{\n  \"b\" : [ 2 ]\n}\n"),
            ("{\r\n\t\"b\": \"x,y\" ,\r\n\t\"x\": 1\r\n}", "{\r\n\t\"b\": \"x,y\"\r\n}"),
            ("{\"a\":1,\"x\":2,\"c\":3}", "{\"a\":1,\"c\":3}"),
            ("{\"x\":2 , \"c\":3}", "{\"c\":3}"),
        ] {
            let draft = Draft::new(before.to_owned()).unwrap();
            assert_eq!(draft.without_member(&draft.root, "x").as_deref(), Some(after), "{before}");
            assert_eq!(draft.without_member(&draft.root, "y"), None);
        }
    }
}
