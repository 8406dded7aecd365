//! Settings as one document, for a host that shows them, and the changes that a host makes to what `--settings` says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::document;
use super::keys::KEYS;
use super::level::Level;
use super::sources::{FlagError, FlagSettings};
use super::{LARGEST_SETTINGS, Settings, files};

/// The contents of one file, as they stand there.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingsDocument {
    pub level: Level,
    pub file: PathBuf,
    pub values: Map<String, Value>,
}

impl Settings {
    /// All values that count, as one document.
    pub fn effective(&self) -> Map<String, Value> {
        let first = |path: &'static str| path.split('.').next().unwrap_or(path);
        let names: BTreeSet<&str> = KEYS.iter().map(|key| first(key.path)).collect();
        let values = names.into_iter().filter_map(|name| {
            let value = self.merged.value(name)?;
            Some((name.to_owned(), value))
        });
        values.collect()
    }

    /// The contents of each file that could be read, the weakest first.
    pub fn documents(&self) -> Vec<SettingsDocument> {
        let documents = self.layers.iter().rev().filter(|layer| !layer.is_unread);
        let documents = documents.filter_map(|layer| {
            let values = self.document(layer.level, &layer.file)?;
            Some(SettingsDocument { level: layer.level, file: layer.file.to_path_buf(), values })
        });
        documents.collect()
    }

    fn document(&self, level: Level, file: &Path) -> Option<Map<String, Value>> {
        let text = match (&self.sources.flag, level) {
            (Some(FlagSettings::Json(text)), Level::Flag) => text.clone(),
            _ => files::read(file, LARGEST_SETTINGS).1.ok()??,
        };
        match document::parse(&text).ok()?.to_value() {
            Value::Object(values) => Some(values),
            _ => None,
        }
    }

    /// Lays values over what `--settings` says, key by key; null takes a key away. Nothing changes where the whole
    /// would not be read.
    pub fn change_flag(&mut self, change: &Map<String, Value>) -> Result<(), FlagError> {
        let mut values = match &self.sources.flag {
            None => Map::new(),
            Some(FlagSettings::Json(_)) => {
                self.document(Level::Flag, Path::new("")).unwrap_or_default()
            }
            Some(FlagSettings::File(path)) => return Err(FlagError::IsFile(path.clone())),
        };
        for (name, value) in change {
            if value.is_null() {
                values.remove(name);
            } else {
                values.insert(name.clone(), value.clone());
            }
        }
        let text = Value::Object(values).to_string();
        self.sources.flag = Some(FlagSettings::parse(&text, &self.sources.start_dir)?);
        self.reload();
        Ok(())
    }
}
