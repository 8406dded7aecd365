//! Rules as people and hosts write them. One that takes away takes the whole tool where it cannot be read: nothing of what
//! was meant may run meanwhile.

use centurion_permissions::{Rule, RuleError, RuleKind, RuleOrigin, all_tool_names};
use serde_json::Value;
use thiserror::Error;

/// A rule that cannot be read.
#[derive(Clone, Debug, Error)]
#[error("{source}")]
pub struct UnreadRule {
    pub source: RuleTextError,
    /// The tools that it may mean, with all their calls, and all files where their rules are about paths. Empty where no
    /// tool can be told.
    pub tools: Vec<Rule>,
}

/// The reason why a rule cannot be read.
#[derive(Clone, Debug, Error)]
pub enum RuleTextError {
    #[error("permission rule `{0}` is more than one rule: write each by itself")]
    MoreThanOne(Value),
    #[error("permission rule `{0}` has a control character in it")]
    ControlCharacter(Value),
    #[error(transparent)]
    Rule(#[from] RuleError),
}

/// Reads a rule: a text, or an object with `tool` and `args`.
pub fn read_rule(value: &Value, origin: &RuleOrigin) -> Result<Rule, UnreadRule> {
    let mut texts = Vec::new();
    collect(value, &mut texts);
    let rule = match Rule::from_value(value, origin.clone()) {
        Ok(_) if texts.iter().any(|text| is_list(text)) => {
            Err(RuleTextError::MoreThanOne(value.clone()))
        }
        Ok(_) if texts.iter().any(|text| text.contains(is_control)) => {
            Err(RuleTextError::ControlCharacter(value.clone()))
        }
        rule => rule.map_err(RuleTextError::from),
    };
    rule.map_err(|source| {
        let tools = texts.iter().flat_map(|text| whole_tools(text, origin)).collect();
        UnreadRule { source, tools }
    })
}

/// A line may end in a command that a rule is about.
fn is_control(letter: char) -> bool {
    letter.is_control() && !"\n\r\t".contains(letter)
}

/// Tells whether another rule follows the first: `Read(a), Bash(b)`.
fn is_list(text: &str) -> bool {
    text.match_indices(')').any(|(at, _)| {
        let rest = text.get(at + 1..).unwrap_or_default();
        let next = rest.trim_start_matches([',', ' ', '\t']);
        let name = next.split('(').next().unwrap_or_default();
        next.len() < rest.len() && next != name && all_tool_names().any(|known| known == name)
    })
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.values().for_each(|item| collect(item, texts)),
        _ => {}
    }
}

/// The tools that a text may mean, each with all its calls: what stands before a parenthesis, and every name of a tool
/// behind it.
fn whole_tools(text: &str, origin: &RuleOrigin) -> Vec<Rule> {
    let text = text.replace(is_control, "");
    let (head, rest) = text.split_once('(').unwrap_or((&text, ""));
    let heads = head.split([',', ' ', ')', '\n', '\r', '\t']);
    let is_border = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let others = rest.split(is_border).filter(|word| all_tool_names().any(|name| name == *word));
    let rules = heads.chain(others).filter_map(|name| Rule::parse(name, origin.clone()).ok());
    let known = rules.filter(|rule| rule.unknown_tool(RuleKind::Deny).is_none());
    known.flat_map(|rule| std::iter::once(rule.clone()).chain(rule.about_all_files())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(value: &Value) -> Vec<String> {
        let unread = read_rule(value, &RuleOrigin::Session).unwrap_err();
        unread.tools.iter().map(|rule| rule.source().text.clone()).collect()
    }

    #[test]
    fn a_rule_that_cannot_be_read_takes_every_tool_that_it_may_mean() {
        for (value, expected) in [
            (json!("Read(f.txt"), &["Read", "Read(//**)"][..]),
            (json!("Read([)"), &["Read", "Read(//**)"]),
            (json!("Read({a)"), &["Read", "Read(//**)"]),
            (json!("Read (f.txt)"), &["Read", "Read(//**)"]),
            (json!("Bash(cat f.txt)x"), &["Bash"]),
            (json!("Read,Bash"), &["Read", "Read(//**)", "Bash"]),
            (json!("Read(a), Bash(b)"), &["Read", "Read(//**)", "Bash"]),
            (json!([["Read(f.txt)"]]), &["Read", "Read(//**)"]),
            (json!("Read(f\0.txt)"), &["Read", "Read(//**)"]),
            (json!("Re\0ad"), &["Read", "Read(//**)"]),
            (json!({"tool": "Read", "args": 3}), &["Read", "Read(//**)"]),
            (json!({"tool": "Read", "args": "\u{1b}"}), &["Read", "Read(//**)"]),
            (json!("mcp__s__t("), &["mcp__s__t"]),
            (json!("Raed(f.txt"), &[]),
            (json!("(f.txt)"), &[]),
            (json!(" "), &[]),
            (json!(7), &[]),
        ] {
            assert_eq!(tools(&value), expected, "{value}");
        }
        for value in [json!("Read(f.txt)"), json!({"tool": "Read"}), json!("Bash(a\nb)")] {
            assert!(read_rule(&value, &RuleOrigin::Session).is_ok(), "{value}");
        }
    }
}
