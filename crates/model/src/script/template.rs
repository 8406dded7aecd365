//! Placeholders in a step: `${re:PATTERN}`, `${arg}` and `${n}`, found once when the scenario is parsed and filled for
//! every answer.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};
use thiserror::Error;

/// The reason that a text of a scenario cannot be used.
#[derive(Debug, Error)]
pub(super) enum TemplateError {
    #[error("`{pattern}` is no regular expression: {}", syntax_problem(.source))]
    NoPattern { pattern: String, source: Box<regex::Error> },
    #[error("`{text}` has no closing `}}` after its pattern")]
    Unclosed { text: String },
}

/// The last line of the library's message: the lines before it show the pattern.
fn syntax_problem(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

/// A JSON value whose strings may contain placeholders.
#[derive(Clone, Debug)]
pub(super) enum Template {
    Text(Vec<TemplatePiece>),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
    Fixed(Value),
}

#[derive(Clone, Debug)]
pub(super) enum TemplatePiece {
    Plain(String),
    /// The first group (or all) of the newest match in the conversation.
    Found(Regex),
    /// The text after the colon of `@@name:arg`.
    Argument,
    /// The number of the request.
    Number,
}

/// The values for placeholders.
pub(super) trait Source {
    /// User texts and tool results, oldest first.
    fn history(&self) -> &str;
    fn argument(&self) -> &str;
    fn number(&self) -> u64;
}

/// A pattern as scenarios write them: `.` matches line ends too.
pub(super) fn compile_pattern(pattern: &str) -> Result<Regex, TemplateError> {
    let built = RegexBuilder::new(pattern).dot_matches_new_line(true).build();
    built.map_err(|error| TemplateError::NoPattern {
        pattern: pattern.to_owned(),
        source: Box::new(error),
    })
}

impl Template {
    pub(super) fn compile(value: Value) -> Result<Self, TemplateError> {
        Ok(match value {
            Value::String(text) if text.contains("${") => Self::Text(pieces(&text)?),
            Value::Array(items) => {
                Self::List(items.into_iter().map(Self::compile).collect::<Result<_, _>>()?)
            }
            Value::Object(entries) => Self::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| Ok((key, Self::compile(value)?)))
                    .collect::<Result<_, TemplateError>>()?,
            ),
            fixed => Self::Fixed(fixed),
        })
    }

    pub(super) fn fill(&self, source: &impl Source) -> Value {
        match self {
            Self::Text(pieces) => {
                Value::String(pieces.iter().map(|piece| piece.fill(source)).collect())
            }
            Self::List(items) => items.iter().map(|item| item.fill(source)).collect(),
            Self::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(key, value)| (key.clone(), value.fill(source)))
                    .collect::<Map<_, _>>(),
            ),
            Self::Fixed(value) => value.clone(),
        }
    }
}

impl TemplatePiece {
    fn fill(&self, source: &impl Source) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Found(pattern) => pattern
                .captures_iter(source.history())
                .last()
                .and_then(|found| found.get(1).or_else(|| found.get(0)))
                .map(|found| found.as_str().to_owned())
                .unwrap_or_default(),
            Self::Argument => source.argument().to_owned(),
            Self::Number => source.number().to_string(),
        }
    }
}

fn pieces(text: &str) -> Result<Vec<TemplatePiece>, TemplateError> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.find("${").map(|at| rest.split_at(at)) {
        plain.push_str(before);
        let (piece, after) = if let Some(after) = from.strip_prefix("${arg}") {
            (TemplatePiece::Argument, after)
        } else if let Some(after) = from.strip_prefix("${n}") {
            (TemplatePiece::Number, after)
        } else if let Some(body) = from.strip_prefix("${re:") {
            let (pattern, after) = split_pattern(body)
                .ok_or_else(|| TemplateError::Unclosed { text: from.to_owned() })?;
            (TemplatePiece::Found(compile_pattern(pattern)?), after)
        } else {
            // Not ours: shell text such as `${HOME}` stays as it is.
            plain.push_str("${");
            rest = from.strip_prefix("${").unwrap_or_default();
            continue;
        };
        if !plain.is_empty() {
            pieces.push(TemplatePiece::Plain(std::mem::take(&mut plain)));
        }
        pieces.push(piece);
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(TemplatePiece::Plain(plain));
    }
    Ok(pieces)
}

/// Splits at the brace that ends a pattern: the first one that no other brace follows, so that a pattern may end in
/// `{2}`.
fn split_pattern(body: &str) -> Option<(&str, &str)> {
    body.match_indices('}').find_map(|(at, _)| {
        let after = body.get(at + 1..)?;
        (at > 0 && !after.starts_with('}')).then(|| Some((body.get(..at)?, after)))?
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Fixture;

    impl Source for Fixture {
        fn history(&self) -> &'static str {
            "id: 17\nid: 42\nxx"
        }
        fn argument(&self) -> &'static str {
            "left"
        }
        fn number(&self) -> u64 {
            9
        }
    }

    fn fill(value: Value) -> Value {
        Template::compile(value).unwrap().fill(&Fixture)
    }

    #[test]
    fn placeholders_are_filled_wherever_a_string_is() {
        assert_eq!(
            fill(json!({"a": ["${arg}-${n}", 1], "b": {"c": "<${re:id: (\\d+)}>"}})),
            json!({"a": ["left-9", 1], "b": {"c": "<42>"}})
        );
    }

    #[test]
    fn a_pattern_without_a_group_gives_its_whole_match_and_no_match_gives_nothing() {
        assert_eq!(fill(json!("${re:x{2}}")), json!("xx"));
        assert_eq!(fill(json!("[${re:nowhere}]")), json!("[]"));
    }

    #[test]
    fn what_is_no_placeholder_stays() {
        assert_eq!(fill(json!("echo ${HOME} $n ${")), json!("echo ${HOME} $n ${"));
    }

    #[test]
    fn a_broken_pattern_is_refused() {
        let error = Template::compile(json!("${re:(}")).unwrap_err().to_string();
        assert!(error.contains("`(` is no regular expression: unclosed group"), "{error}");
        assert!(Template::compile(json!("${re:abc")).is_err());
    }
}
