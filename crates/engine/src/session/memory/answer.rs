//! The answer of a model that is asked for notes: data, and nothing in it is trusted.

use centurion_config::agent_memory::{NewNote, NoteKind};
use serde::Deserialize;
use thiserror::Error;

use super::redacted;
use crate::agent::shared::Shared;

/// The most notes in one answer.
const MOST_NOTES: usize = 50;
/// The most bytes of one note.
const LARGEST: usize = 32 * 1024;

/// The reason why an answer cannot be used.
#[derive(Debug, Error)]
pub(super) enum AnswerError {
    #[error("it holds no JSON object")]
    NoObject,
    #[error("{0}")]
    Malformed(#[from] serde_json::Error),
    #[error("it has {0} notes, more than {MOST_NOTES}")]
    TooMany(usize),
    #[error("the note `{0}` has no text, or too much")]
    Size(String),
    #[error("`{0}` is no name for a note")]
    Name(String),
    #[error("`{0}` is there twice")]
    Twice(String),
    #[error("it would leave no note at all")]
    NothingLeft,
}

#[derive(Debug, Deserialize)]
pub(super) struct AnsweredNotes {
    pub(super) notes: Vec<AnsweredNote>,
    #[serde(default)]
    pub(super) remove: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AnsweredNote {
    pub(super) file: String,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    description: String,
    text: String,
}

impl AnsweredNotes {
    /// Reads an answer, which may have a sentence or a fence around its object.
    pub(super) fn read(answer: &str) -> Result<Self, AnswerError> {
        let start = answer.find('{').ok_or(AnswerError::NoObject)?;
        let end = answer.rfind('}').ok_or(AnswerError::NoObject)?;
        let object = answer.get(start..=end).ok_or(AnswerError::NoObject)?;
        let answered: Self = serde_json::from_str(object)?;
        if answered.notes.len() > MOST_NOTES {
            return Err(AnswerError::TooMany(answered.notes.len()));
        }
        for note in &answered.notes {
            if note.text.trim().is_empty() || note.text.len() > LARGEST {
                return Err(AnswerError::Size(note.file.clone()));
            }
        }
        Ok(answered)
    }
}

impl AnsweredNote {
    /// The note as it is written down.
    pub(super) fn to_note(&self, shared: &Shared) -> NewNote {
        NewNote {
            kind: NoteKind::named(self.kind.trim()),
            description: redacted(shared, &self.description),
            text: redacted(shared, &self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_with_what_stands_around_it() {
        let object = r#"{"notes": [{"file": "a.md", "type": "user", "text": "x {y}"}]}"#;
        for answer in [object.to_owned(), format!("Here:\n```json\n{object}\n```\n")] {
            let read = AnsweredNotes::read(&answer).unwrap();
            assert_eq!((read.notes[0].file.as_str(), read.remove.len()), ("a.md", 0));
        }
        assert!(AnsweredNotes::read(r#"{"notes": []}"#).unwrap().notes.is_empty());
    }

    #[test]
    fn an_answer_that_is_something_else_is_refused() {
        let large = serde_json::json!({"notes": [{"file": "a", "text": "x".repeat(LARGEST + 1)}]});
        let many =
            serde_json::json!({"notes": vec![serde_json::json!({"file": "a", "text": "x"}); 51]});
        for bad in [
            "",
            "nothing to note",
            "}{",
            "{}",
            "{\"notes\": {}}",
            r#"{"notes": [{"file": "a"}]}"#,
            r#"{"notes": [{"file": "a", "text": "  "}]}"#,
            &large.to_string(),
            &many.to_string(),
        ] {
            assert!(AnsweredNotes::read(bad).is_err(), "{bad}");
        }
    }
}
