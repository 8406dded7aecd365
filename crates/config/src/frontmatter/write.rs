//! Writing frontmatter that every reader of YAML reads the same.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::value::{Member, Shape, Value};

/// The `key: value` lines of a frontmatter, without fences. Text is written plainly where that is safe
/// and as a quoted JSON text elsewhere, which is YAML too.
pub fn write(members: &[Member]) -> String {
    let mut text = String::new();
    for member in members {
        let key = scalar(&member.key, true);
        match &member.value.shape {
            Shape::Null => _ = writeln!(text, "{key}:"),
            _ => _ = writeln!(text, "{key}: {}", flow(&member.value)),
        }
    }
    text
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match &value.shape {
        Shape::Null => "null".to_owned(),
        Shape::Text(text) => scalar(&text.text, text.is_quoted),
        Shape::List(items) => {
            let items: Vec<_> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Shape::Map(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|member| format!("{}: {}", scalar(&member.key, true), flow(&member.value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// Text plainly, if it then stays the text that it is.
fn scalar(text: &str, is_text: bool) -> String {
    let is_word =
        |it: char| it.is_alphanumeric() || matches!(it, '_' | '-' | '.' | '/' | '(' | ')');
    let first = text.chars().next().unwrap_or(' ');
    let is_safe = (first.is_alphanumeric() || first == '_')
        && text.chars().all(|it| is_word(it) || it == ' ')
        && !text.ends_with(' ')
        && !matches!(text, "null" | "Null" | "NULL");
    let looks_otherwise =
        matches!(Value::plain(1, text).to_json(), Json::Bool(_) | Json::Number(_));
    // A number or a truth value stays one, and text must not become one.
    let is_plain = if looks_otherwise { !is_text } else { is_safe };
    if is_plain { text.to_owned() } else { quoted(text) }
}

/// Text in double quotes, with everything escaped that is not safe on one line of YAML.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\u{feff}' | '\u{85}' | '\u{2028}' | '\u{2029}' => {
                _ = write!(out, "\\u{:04X}", u32::from(letter));
            }
            letter if letter.is_control() => _ = write!(out, "\\u{:04X}", u32::from(letter)),
            // No YAML text may hold these two.
            '\u{fffe}' | '\u{ffff}' => _ = write!(out, "\\u{:04X}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::yaml;
    use super::*;

    #[test]
    fn plain_text_stays_plain() {
        let member = |key: &str, value| Member { key: key.to_owned(), line: 1, value };
        let members = [
            member("name", Value::quoted(1, "code-reviewer")),
            member("version", Value::quoted(1, "1.0")),
            member("turns", Value::plain(1, "10")),
            member("text", Value::quoted(1, "a: b # c\nd")),
            member("none", Value::new(1, Shape::Null)),
            member("list", Value::new(1, Shape::List(vec![Value::quoted(1, "Bash(git *)")]))),
        ];
        let expected = "name: code-reviewer\nversion: \"1.0\"\nturns: 10\ntext: \"a: b # c\\nd\"\n\
                        none:\nlist: [\"Bash(git *)\"]\n";
        assert_eq!(write(&members), expected);
    }

    fn values() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<String>().prop_map(Json::from),
            "[a-z:#\\-\\[\\]{}\"' \n\t|>*&!%@`~]{0,12}".prop_map(Json::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::btree_map("[a-z: #\"\n]{0,6}", inner, 0..4)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(map in prop::collection::btree_map("[a-z]{1,8}", values(), 0..6)) {
            let json = Json::Object(map.into_iter().collect());
            let Shape::Map(members) = Value::of_json(&json, 1).shape else { unreachable!() };
            let text = write(&members);
            let read = yaml::parse(&text, 1).map_err(|error| {
                TestCaseError::fail(format!("{error:?} in {text}"))
            })?;
            let read = Value::new(1, Shape::Map(read.members)).to_json();
            prop_assert_eq!(read, json, "{}", text);
        }
    }
}
