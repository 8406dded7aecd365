//! Explains why no exchange matches a request: the nearest one, and the first difference.

use std::path::Path;

use serde_json::Value;

use super::canonical::{Canonical, CanonicalPart};
use super::replay::Exchange;

/// The characters of each side that are shown before and after the difference.
const BEFORE: usize = 40;
const AFTER: usize = 80;

/// The position of the first difference between two requests, and the text of each there.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    place: String,
    recorded: String,
    asked: String,
}

/// The message of a refused request.
pub(super) fn describe(
    path: &Path,
    asked: &Canonical<CanonicalPart>,
    exchanges: &[Exchange],
    used: &[bool],
) -> String {
    let path = path.display();
    let is_used = |number: usize| used.get(number) == Some(&true);
    let nearest = exchanges.iter().enumerate().max_by_key(|(number, exchange)| {
        (likeness(asked, &exchange.request), !is_used(*number), std::cmp::Reverse(*number))
    });
    let Some((_, exchange)) = nearest else {
        return format!("the cassette `{path}` holds no exchange");
    };
    let line = exchange.line;
    let found = match difference(&exchange.request, asked) {
        Some(Difference { place, recorded, asked }) => format!(
            "the nearest, on line {line}, differs in {place}:\n  recorded: {recorded}\n  asked:    \
             {asked}"
        ),
        None => format!("the exchange on line {line} would, but has been replayed already"),
    };
    let total = exchanges.len();
    let left = used.iter().filter(|used| !**used).count();
    format!(
        "no exchange of `{path}` fits this request ({left} of {total} are unused); {found}\nhelp: to \
         record anew, delete the file and use `cassette:{path}=MODEL`"
    )
}

/// The similarity of two requests: first by their common history, then by the parts before it.
fn likeness(
    asked: &Canonical<CanonicalPart>,
    recorded: &Canonical<CanonicalPart>,
) -> (usize, usize, bool) {
    let common = |one: &[CanonicalPart], two: &[CanonicalPart]| {
        one.iter().zip(two).take_while(|(one, two)| one.hash == two.hash).count()
    };
    (
        common(&asked.messages, &recorded.messages),
        common(&asked.system, &recorded.system) + common(&asked.tools, &recorded.tools),
        asked.messages.len() == recorded.messages.len(),
    )
}

fn difference(
    recorded: &Canonical<CanonicalPart>,
    asked: &Canonical<CanonicalPart>,
) -> Option<Difference> {
    let effort = |request: &Canonical<CanonicalPart>| {
        request.effort.map_or_else(|| "none".to_owned(), |effort| effort.to_string())
    };
    let plain = [
        ("max_tokens", recorded.max_tokens.to_string(), asked.max_tokens.to_string()),
        ("thinking", recorded.thinking.clone(), asked.thinking.clone()),
        ("effort", effort(recorded), effort(asked)),
    ];
    if !asked.may_use(recorded) {
        let (recorded, asked) = (recorded.model.clone(), asked.model.clone());
        return Some(Difference { place: "model".to_owned(), recorded, asked });
    }
    for (place, recorded, asked) in plain {
        if recorded != asked {
            return Some(Difference { place: place.to_owned(), recorded, asked });
        }
    }
    [
        ("system", &recorded.system, &asked.system),
        ("tools", &recorded.tools, &asked.tools),
        ("messages", &recorded.messages, &asked.messages),
    ]
    .into_iter()
    .find_map(|(place, recorded, asked)| in_parts(place, recorded, asked))
}

fn in_parts(
    place: &str,
    recorded: &[CanonicalPart],
    asked: &[CanonicalPart],
) -> Option<Difference> {
    let part =
        |parts: &[CanonicalPart], number: usize| parts.get(number).map(|part| part.value.clone());
    (0..recorded.len().max(asked.len())).find_map(|number| {
        let (recorded, asked) = (part(recorded, number), part(asked, number));
        between(&format!("{place}[{number}]"), recorded.as_deref(), asked.as_deref())
    })
}

/// The first difference between two values.
fn between(place: &str, recorded: Option<&Value>, asked: Option<&Value>) -> Option<Difference> {
    match (recorded, asked) {
        (one, two) if one == two => None,
        (Some(Value::String(one)), Some(Value::String(two))) => {
            let same = one.chars().zip(two.chars()).take_while(|(one, two)| one == two).count();
            Some(Difference {
                place: place.to_owned(),
                recorded: excerpt(one, same),
                asked: excerpt(two, same),
            })
        }
        (Some(Value::Array(one)), Some(Value::Array(two))) => (0..one.len().max(two.len()))
            .find_map(|number| {
                between(&format!("{place}[{number}]"), one.get(number), two.get(number))
            }),
        (Some(Value::Object(one)), Some(Value::Object(two))) => {
            let only_asked = two.keys().filter(|key| !one.contains_key(*key));
            one.keys()
                .chain(only_asked)
                .find_map(|key| between(&format!("{place}.{key}"), one.get(key), two.get(key)))
        }
        (one, two) => {
            let text = |value: Option<&Value>| {
                value.map_or_else(|| "nothing".to_owned(), |value| shorten(&value.to_string()))
            };
            Some(Difference { place: place.to_owned(), recorded: text(one), asked: text(two) })
        }
    }
}

/// The beginning of a text that is JSON and needs no quotes.
fn shorten(text: &str) -> String {
    let mut rest = text.chars();
    let piece: String = rest.by_ref().take(BEFORE + AFTER).collect();
    if rest.next().is_some() { piece + "…" } else { piece }
}

/// A quoted piece of `text` around its character number `at`.
fn excerpt(text: &str, at: usize) -> String {
    let start = at.saturating_sub(BEFORE);
    let mut rest = text.chars().skip(start);
    let piece: String = rest.by_ref().take(at - start + AFTER).collect();
    let (head, tail) =
        (if start > 0 { "…" } else { "" }, if rest.next().is_some() { "…" } else { "" });
    format!("{head}{piece:?}{tail}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn between(one: &Value, two: &Value) -> Option<Difference> {
        super::between("x", Some(one), Some(two))
    }

    #[test]
    fn the_first_difference_is_found_at_any_depth() {
        let one = json!({"role": "user", "content": [{"text": "same"}, {"text": "abc def"}]});
        let two = json!({"role": "user", "content": [{"text": "same"}, {"text": "abc xyz"}]});
        let found = between(&one, &two).unwrap();
        assert_eq!(found.place, "x.content[1].text");
        assert_eq!((&*found.recorded, &*found.asked), ("\"abc def\"", "\"abc xyz\""));
        assert_eq!(between(&one, &one), None);
        let found = between(&json!({"a": 1}), &json!({"a": 1, "b": 2})).unwrap();
        assert_eq!((&*found.place, &*found.recorded, &*found.asked), ("x.b", "nothing", "2"));
        let found = between(&json!([1, 2]), &json!([1])).unwrap();
        assert_eq!((&*found.place, &*found.recorded, &*found.asked), ("x[1]", "2", "nothing"));
    }

    #[test]
    fn both_sides_are_bounded() {
        let one = format!("{}ä{}", "a".repeat(5000), "b".repeat(5000));
        let two = format!("{}ö{}", "a".repeat(5000), "b".repeat(5000));
        let found = between(&json!(one), &json!(two)).unwrap();
        assert!(found.recorded.contains('ä') && found.asked.contains('ö'));
        assert!(found.recorded.chars().count() < BEFORE + AFTER + 10);
    }
}
