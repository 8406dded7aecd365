//! The fields of one JSON object, taken with their types; records fields of other types.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::error::HandlerError;

/// An object that is being parsed.
pub(super) struct Fields<'a> {
    object: &'a Map<String, Value>,
    /// Problems that keep the hook from running.
    wrong: Vec<String>,
    /// Ignored fields.
    ignored: Vec<String>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(object: &'a Map<String, Value>) -> Self {
        Self { object, wrong: Vec::new(), ignored: Vec::new() }
    }

    /// Whether a field has the wrong type, so that its meaning is not clear.
    pub(super) fn is_wrong(&self) -> bool {
        !self.wrong.is_empty()
    }

    /// All problems.
    pub(super) fn problems(self) -> impl Iterator<Item = String> {
        self.wrong.into_iter().chain(self.ignored)
    }

    /// Records an ignored field.
    pub(super) fn ignore(&mut self, message: impl Into<String>) {
        self.ignored.push(message.into());
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    fn typed<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(name)?;
        let read = read(value);
        if read.is_none() {
            self.wrong.push(format!("`{name}` must be {expected}"));
        }
        read
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.typed(name, "text", |value| value.as_str().map(str::to_owned))
    }

    /// A text without which the hook cannot run.
    pub(super) fn need(
        &mut self,
        name: &'static str,
        what: &'static str,
    ) -> Result<String, HandlerError> {
        let text = self.text(name).filter(|text| !text.trim().is_empty());
        text.ok_or(HandlerError::Lacks { name, what })
    }

    pub(super) fn switch(&mut self, name: &str) -> bool {
        self.typed(name, "true or false", Value::as_bool).unwrap_or(false)
    }

    pub(super) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        self.typed(name, "a list of texts", |value| {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        })
    }

    pub(super) fn object(&mut self, name: &str) -> Option<Map<String, Value>> {
        self.typed(name, "an object", |value| value.as_object().cloned())
    }

    pub(super) fn text_map(&mut self, name: &str) -> Option<BTreeMap<String, String>> {
        self.typed(name, "an object of names and texts", |value| {
            let pairs = value.as_object()?.iter();
            pairs.map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
        })
    }
}
