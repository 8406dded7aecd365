//! An explanation in words: a line for each value, with what decided it.

use serde::Serialize;
use serde_json::Value;

use crate::output::printable;

/// Every field of an explanation that says something.
pub(crate) fn text(explained: &impl Serialize) -> anyhow::Result<String> {
    let Value::Object(fields) = serde_json::to_value(explained)? else { return Ok(String::new()) };
    let mut lines = Vec::new();
    for (name, value) in &fields {
        match value {
            Value::Null => {}
            Value::Array(items) if items.is_empty() => {}
            Value::Object(items) if items.is_empty() => {}
            Value::Object(decided) if decided.contains_key("from") => {
                let from = decided.get("from").map(plain).unwrap_or_default();
                let value = decided.get("value").map(plain).unwrap_or_default();
                lines.push(format!("{name}: {}   [{from}]", brief(&value)));
            }
            Value::Array(items) => {
                lines.push(format!("{name}:"));
                lines.extend(items.iter().map(|item| format!("  {}", item_line(item))));
            }
            Value::Object(items) => {
                lines.push(format!("{name}:"));
                let line = |(key, value): (&String, &Value)| format!("  {key}: {}", plain(value));
                lines.extend(items.iter().map(line));
            }
            other => lines.push(format!("{name}: {}", plain(other))),
        }
    }
    Ok(lines.iter().map(|line| printable(line) + "\n").collect())
}

fn item_line(item: &Value) -> String {
    match item.as_object() {
        Some(fields) if fields.contains_key("from") => {
            let rest = fields.iter().filter(|(key, _)| *key != "from");
            let parts: Vec<String> = rest.map(|(_, value)| brief(&plain(value))).collect();
            let from = fields.get("from").map(plain).unwrap_or_default();
            format!("{}   [{from}]", parts.join(", "))
        }
        _ => plain(item),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The first line of a text, and how much more there is.
fn brief(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    match lines.count() {
        0 => first.to_owned(),
        more => format!("{first} … ({more} more lines)"),
    }
}
