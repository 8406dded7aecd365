//! Kept drafts: each in a file that its user alone can read, so that a crash loses none.

use std::io;
use std::path::{Path, PathBuf};

use centurion_protocol::bounded;
use serde_json::{Value, json};
use thiserror::Error;

use super::Draft;
use super::unit::{Chip, Unit, units};

/// The largest file of a draft that is read.
const LARGEST: u64 = 256 << 20;

/// A draft that was not kept or not found again.
#[derive(Debug, Error)]
pub enum DraftError {
    #[error("cannot keep the draft in {}", path.display())]
    Save { path: PathBuf, source: io::Error },
    #[error("cannot read the draft in {}", path.display())]
    Load { path: PathBuf, source: io::Error },
}

/// Writes a draft to its file, or removes the file of an empty draft.
pub fn save_draft(draft: &Draft, path: &Path) -> Result<(), DraftError> {
    let saved = if draft.is_empty() && draft.stash.is_none() {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    } else {
        centurion_files::private::replace(path, draft.to_json().to_string().as_bytes())
    };
    saved.map_err(|source| DraftError::Save { path: path.to_owned(), source })
}

/// Reads a draft from its file; without one it is empty.
pub fn load_draft(path: &Path) -> Result<Draft, DraftError> {
    let failed = |source| DraftError::Load { path: path.to_owned(), source };
    let bytes = match bounded::read_file(path, LARGEST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Draft::new()),
        read => read.map_err(failed)?,
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?;
    Ok(Draft::from_json(&value))
}

impl Draft {
    fn to_json(&self) -> Value {
        let stash = self.stash.as_deref().map(parts_of);
        json!({
            "parts": parts_of(&self.units), "cursor": self.cursor, "chips": self.chips, "stash": stash,
        })
    }

    fn from_json(value: &Value) -> Self {
        let mut draft = Self { units: units_of(&value["parts"]), ..Self::new() };
        draft.stash = value["stash"].is_array().then(|| units_of(&value["stash"]));
        let number = |name: &str| value[name].as_u64().and_then(|it| usize::try_from(it).ok());
        draft.cursor = number("cursor").unwrap_or(usize::MAX).min(draft.units.len());
        draft.chips = number("chips").unwrap_or_default();
        draft
    }
}

/// The units in parts: texts, and chips between them.
fn parts_of(units: &[Unit]) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut text = String::new();
    for unit in units {
        match unit {
            Unit::Grapheme(grapheme) => text.push_str(grapheme),
            Unit::Chip(chip) => {
                parts.push(json!(std::mem::take(&mut text)));
                let attachment = chip.attachment;
                parts.push(
                    json!({ "label": chip.label, "text": chip.text, "attachment": attachment }),
                );
            }
        }
    }
    parts.push(json!(text));
    parts
}

fn units_of(parts: &Value) -> Vec<Unit> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<Unit> = Vec::new();
    for part in parts.as_array().into_iter().flatten() {
        if let Some(typed) = part.as_str() {
            all.extend(units(typed));
        } else {
            all.push(Unit::chip(Chip {
                label: text(&part["label"]),
                text: text(&part["text"]),
                attachment: part["attachment"].as_u64(),
            }));
        }
    }
    all
}
