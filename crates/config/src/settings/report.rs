//! Every key of every file and what became of it, for a person who asks.

use std::path::Path;
use std::sync::Arc;

use super::Settings;
use super::keys;
use super::level::Level;
use super::merge::Off;

/// The most keys of one file for which a near key is suggested.
const MOST_GUESSES: usize = 100;

/// One key of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReport {
    pub key: String,
    pub level: Level,
    pub file: Arc<Path>,
    /// The line of its value, or of the first one in its list.
    pub line: usize,
    pub state: KeyState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyState {
    InForce,
    /// Known, but this program does nothing with it yet, for this reason if there is more to say.
    NotYet {
        reason: Option<&'static str>,
    },
    Off(Off),
    /// Means nothing to this program; perhaps another key was meant.
    Unknown {
        nearest: Option<&'static str>,
    },
}

impl KeyReport {
    pub fn in_force(&self) -> bool {
        self.state == KeyState::InForce
    }

    /// The reason why it is not in force; empty if it is.
    pub fn why(&self) -> String {
        match &self.state {
            KeyState::InForce => String::new(),
            KeyState::NotYet { reason: None } => {
                "is known, but does nothing in this version".to_owned()
            }
            KeyState::NotYet { reason: Some(reason) } => {
                format!("does nothing in this version: {reason}")
            }
            KeyState::Unknown { nearest: None } => "is no known key".to_owned(),
            KeyState::Unknown { nearest: Some(key) } => {
                format!("is no known key; perhaps `{key}` is meant")
            }
            KeyState::Off(off) => match off {
                Off::Untrusted => {
                    "comes from the repository, and this folder is not trusted".to_owned()
                }
                Off::Unaccepted(reason) => format!("is off: {reason}"),
                Off::OnlyManaged => "counts only in managed settings".to_owned(),
                Off::NotInProject => "does not count in the settings of a project".to_owned(),
                Off::ManagedRulesOnly => {
                    "managed settings let only their own allow rules count".to_owned()
                }
                Off::PluginOnly(by) => {
                    format!("{by} leaves this to plugins and managed settings")
                }
                Off::Overridden(by) => format!("{by} says otherwise"),
            },
        }
    }
}

impl Settings {
    /// All keys of all files, the strongest file first. A list is one key, whatever its length.
    pub fn keys(&self) -> Vec<KeyReport> {
        let mut reports: Vec<KeyReport> = Vec::new();
        for judged in &self.merged.values {
            let key = judged.entry.key;
            let state = match &judged.off {
                // The order of two files means nothing if neither does anything.
                None | Some(Off::Overridden(_)) if !key.is_used(&judged.entry.value) => {
                    KeyState::NotYet { reason: key.reason() }
                }
                None => KeyState::InForce,
                Some(off) => KeyState::Off(off.clone()),
            };
            let origin = &judged.origin;
            let key = judged.entry.path();
            // The items of a list follow each other.
            let is_next_item = reports.last().is_some_and(|last| {
                last.key == key && last.file == origin.file && last.state == state
            });
            if !is_next_item {
                let (level, file, line) = (origin.level, Arc::clone(&origin.file), origin.line);
                reports.push(KeyReport { key, level, file, line, state });
            }
        }
        for layer in &self.layers {
            let unknown = layer.unknown.iter().enumerate();
            reports.extend(unknown.map(|(index, (key, line))| KeyReport {
                key: key.clone(),
                level: layer.level,
                file: Arc::clone(&layer.file),
                line: *line,
                state: KeyState::Unknown {
                    nearest: if index < MOST_GUESSES { keys::nearest(key) } else { None },
                },
            }));
        }
        reports
    }
}
