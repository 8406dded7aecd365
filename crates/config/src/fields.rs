//! Takes the fields of a definition out of its author's text, one by one. A field that cannot be used is
//! reported with its line and what to write instead; a field that no reader takes is unknown.

use std::ops::Deref;

use serde_json::Value as Json;
use thiserror::Error;

use crate::frontmatter::{self, Member, Shape, Value};
use crate::settings::{closest, printable};

/// So many unknown keys are told one by one.
const MOST_UNKNOWN: usize = 20;

/// The words that a field has, for a person who wrote another one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WordError {
    #[error("use {0}")]
    Unknown(&'static str),
    #[error("use one of {}", .0.join(", "))]
    NotAmong(Vec<&'static str>),
    #[error("there are no remote agents here; use worktree")]
    NoRemoteAgents,
}

/// A value and the line that says it, counted from one. What was never written in a file has line one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located<T> {
    pub value: T,
    pub line: usize,
}

impl<T> Located<T> {
    pub fn new(value: T, line: usize) -> Self {
        Self { value, line }
    }
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The weight of a remark about a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It is in force, though its author may have meant something else.
    Advice,
    /// It cannot be used.
    Invalid,
}

/// Something to know about one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) field: String,
    pub(crate) line: usize,
    pub(crate) message: String,
    pub(crate) weight: Weight,
}

/// The fields of one definition that no reader has taken yet.
pub(crate) struct Fields {
    members: Vec<Member>,
    pub(crate) remarks: Vec<Remark>,
}

impl Fields {
    pub(crate) fn new(members: Vec<Member>) -> Self {
        Self { members, remarks: Vec::new() }
    }

    pub(crate) fn remark(&mut self, field: &str, line: usize, weight: Weight, message: &str) {
        let message = printable(message);
        self.remarks.push(Remark { field: printable(field), line, message, weight });
    }

    fn invalid(&mut self, member: &Member, wanted: &str) {
        let message = format!("`{}` must be {wanted}; it is ignored", member.key);
        self.remark(&member.key, member.line, Weight::Invalid, &message);
    }

    /// The field of a name. Nothing after the colon is no field.
    pub(crate) fn take(&mut self, key: &str) -> Option<Member> {
        let index = self.members.iter().position(|member| member.key == key)?;
        let member = self.members.remove(index);
        if member.value.is_null() {
            let message = format!("`{key}` says nothing and counts as not there");
            self.remark(key, member.line, Weight::Advice, &message);
            return None;
        }
        Some(member)
    }

    /// A text that is not empty. In text without quotes a `\n` is meant to be the end of a line.
    pub(crate) fn text(&mut self, key: &str) -> Option<Located<String>> {
        let member = self.take(key)?;
        let Shape::Text(text) = &member.value.shape else {
            self.invalid(&member, "text");
            return None;
        };
        let text = match &text.text {
            plain if !text.is_quoted => &plain.replace("\\n", "\n").replace("\\t", "\t"),
            quoted => quoted,
        };
        let text = text.trim();
        (!text.is_empty()).then(|| Located::new(text.to_owned(), member.line))
    }

    /// One word or number, exactly as it was written.
    pub(crate) fn word(&mut self, key: &str) -> Option<Located<String>> {
        let member = self.take(key)?;
        match member.value.as_text().map(str::trim) {
            Some("") => None,
            Some(word) => Some(Located::new(word.to_owned(), member.line)),
            None => {
                self.invalid(&member, "one word");
                None
            }
        }
    }

    /// A list of names; an empty one is a list, too.
    pub(crate) fn names(&mut self, key: &str) -> Option<Located<Vec<String>>> {
        let member = self.take(key)?;
        let names = frontmatter::names(&member.value);
        if names.is_none() {
            self.invalid(&member, "a list of names, or names with commas between them");
        }
        names.map(|(names, _)| Located::new(names, member.line))
    }

    /// True or false, in any of the words for them.
    pub(crate) fn flag(&mut self, key: &str) -> Option<Located<bool>> {
        let member = self.take(key)?;
        let value = member.value.as_bool();
        if value.is_none() {
            self.invalid(&member, "true or false");
        }
        value.map(|value| Located::new(value, member.line))
    }

    /// A word that must be one of a few. The error says which.
    pub(crate) fn one_of<T>(
        &mut self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, WordError>,
    ) -> Option<Located<T>> {
        let word = self.word(key)?;
        match parse(&word) {
            Ok(value) => Some(Located::new(value, word.line)),
            Err(wanted) => {
                let message = format!("`{key}: {}` is ignored: {wanted}", word.value);
                self.remark(key, word.line, Weight::Invalid, &message);
                None
            }
        }
    }

    /// A list or map whose meaning others know.
    pub(crate) fn json(
        &mut self,
        key: &str,
        wanted: &str,
        fits: fn(&Value) -> bool,
    ) -> Option<Located<Json>> {
        let member = self.take(key)?;
        if !fits(&member.value) {
            self.invalid(&member, wanted);
            return None;
        }
        Some(Located::new(member.value.to_json(), member.line))
    }

    /// Reports all fields that no reader took. `synonyms` are names from elsewhere with what to do about
    /// them.
    pub(crate) fn finish(mut self, known: &[&str], synonyms: &[(&str, &str)]) -> Vec<Remark> {
        let unknown = std::mem::take(&mut self.members);
        for member in unknown.iter().take(MOST_UNKNOWN) {
            let key = member.key.as_str();
            let message = if let Some((_, advice)) = synonyms.iter().find(|(name, _)| *name == key)
            {
                format!("`{key}` is ignored: {advice}")
            } else if let Some(meant) = known.iter().find(|it| bare(it) == bare(key)) {
                format!("`{key}` is ignored: write `{meant}`")
            } else if let Some(meant) = closest(key, known) {
                format!("`{key}` is unknown and ignored; did you mean `{meant}`?")
            } else {
                format!("`{key}` is unknown and ignored")
            };
            self.remark(key, member.line, Weight::Advice, &message);
        }
        if let Some(member) = unknown.get(MOST_UNKNOWN) {
            let more = unknown.len() - MOST_UNKNOWN;
            let message = format!("{more} more keys are unknown and ignored");
            self.remark(&member.key, member.line, Weight::Advice, &message);
        }
        self.remarks
    }
}

/// A key without what people write differently: case, dashes, underscores.
fn bare(key: &str) -> String {
    key.chars().filter(|it| !matches!(it, '-' | '_')).flat_map(char::to_lowercase).collect()
}
