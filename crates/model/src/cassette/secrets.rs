//! Removes credentials of known shapes from recordings.

use std::borrow::Cow;
use std::collections::HashSet;

use centurion_redact::redact_text;
use serde_json::Value;

use super::line::{End, RecordedEvent};

/// Removes the credentials from every string of a part.
pub(super) fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = redact_text(text) {
                *text = redacted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(entries) => entries.values_mut().for_each(redact_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Removes the credentials from a provider's error.
pub(super) fn redact_end(mut end: End) -> End {
    if let End::Failed(_, failure) = &mut end
        && let Cow::Owned(redacted) = redact_text(&failure.message)
    {
        failure.message = redacted;
    }
    end
}

/// The events of an answer without credentials. A text with a credential that came in several pieces is replaced by one
/// piece, at the position of the first.
pub(super) fn redact_events(events: Vec<(u64, RecordedEvent)>) -> Vec<(u64, RecordedEvent)> {
    let redacted: Vec<(PieceOwner, String)> = wholes(&events)
        .into_iter()
        .filter_map(|(piece, whole)| match redact_text(&whole) {
            Cow::Owned(text) => Some((piece, text)),
            Cow::Borrowed(_) => None,
        })
        .collect();
    if redacted.is_empty() {
        return events;
    }
    let mut told = HashSet::new();
    let change = |(at, mut event): (u64, RecordedEvent)| {
        let Some((piece, text)) = piece_of(&mut event) else { return Some((at, event)) };
        if let Some((_, whole)) = redacted.iter().find(|(changed, _)| *changed == piece) {
            if !told.insert(piece) {
                return None;
            }
            text.clone_from(whole);
        }
        Some((at, event))
    };
    events.into_iter().filter_map(change).collect()
}

/// The text that a piece belongs to: the index of its block, and the part of the block.
type PieceOwner = (usize, &'static str);

/// The texts of an answer, each joined from its pieces.
fn wholes(events: &[(u64, RecordedEvent)]) -> Vec<(PieceOwner, String)> {
    let mut wholes: Vec<(PieceOwner, String)> = Vec::new();
    for (_, event) in events {
        let (piece, text) = match event {
            RecordedEvent::TextDelta(index, text) => ((*index, "text"), text),
            RecordedEvent::ThinkingDelta(index, text) => ((*index, "thinking"), text),
            RecordedEvent::InputDelta(index, text) => ((*index, "input"), text),
            RecordedEvent::Other { index, json } => ((*index, "other"), json),
            _ => continue,
        };
        match wholes.iter_mut().find(|(known, _)| *known == piece) {
            Some((_, whole)) => whole.push_str(text),
            None => wholes.push((piece, text.clone())),
        }
    }
    wholes
}

fn piece_of(event: &mut RecordedEvent) -> Option<(PieceOwner, &mut String)> {
    match event {
        RecordedEvent::TextDelta(index, text) => Some(((*index, "text"), text)),
        RecordedEvent::ThinkingDelta(index, text) => Some(((*index, "thinking"), text)),
        RecordedEvent::InputDelta(index, text) => Some(((*index, "input"), text)),
        RecordedEvent::Other { index, json } => Some(((*index, "other"), json)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_in_pieces_is_taken_out() {
        let secret = format!("ghp_{}", "a1".repeat(18));
        let (first, second) = secret.split_at(10);
        let events = vec![
            (0, RecordedEvent::Text { index: 0 }),
            (1, RecordedEvent::TextDelta(0, format!("key {first}"))),
            (2, RecordedEvent::InputDelta(1, "{}".to_owned())),
            (3, RecordedEvent::TextDelta(0, format!("{second} end"))),
            (4, RecordedEvent::Stop { index: 0 }),
        ];
        let redacted = redact_events(events);
        let line = serde_json::to_string(&redacted).unwrap();
        assert!(line.contains("key [redacted: github_token] end"), "{line}");
        assert!(line.contains("{}") && !line.contains(first) && redacted.len() == 4, "{line}");
    }
}
