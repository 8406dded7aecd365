//! The answer of a search: lines, files or counts, within bounds.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::matches::{FileMatches, Kind, MatchLine};
use super::{ContentSearch, OutputMode};
use crate::ToolOutput;
use crate::change::answer;
use crate::paths::shown;

/// The bytes of one answer.
pub(super) const MAX_BYTES: usize = 20_000;

/// An answer under construction.
pub(super) struct GrepReport<'a> {
    search: &'a ContentSearch,
    /// Files with their matches, in the modes that list files.
    files: Vec<(Option<SystemTime>, PathBuf, usize)>,
    text: String,
    /// The entries found, shown or not.
    seen: usize,
    /// The entries shown.
    shown: usize,
    names: Vec<String>,
    is_full: bool,
}

impl<'a> GrepReport<'a> {
    pub(super) fn new(search: &'a ContentSearch) -> Self {
        Self {
            search,
            files: Vec::new(),
            text: String::new(),
            seen: 0,
            shown: 0,
            names: Vec::new(),
            is_full: false,
        }
    }

    /// Adds the matches of one file; `false` when the answer is full.
    pub(super) fn add(&mut self, found: FileMatches) -> bool {
        if self.search.mode != OutputMode::Content {
            self.files.push((found.modified, found.path, found.count));
            return true;
        }
        let name = shown(&found.path, &self.search.base);
        let mut is_first = true;
        for line in &found.lines {
            let gap = is_first || matches!(line.kind, Kind::MatchAfterGap | Kind::ContextAfterGap);
            is_first = false;
            let text = self.line(&name, line);
            let has_context = self.search.before + self.search.after > 0;
            if !self.entry(&text, has_context && gap) {
                return false;
            }
            if self.shown > 0 && self.names.last() != Some(&name) {
                self.names.push(name.clone());
            }
        }
        true
    }

    fn line(&self, name: &str, line: &MatchLine) -> String {
        let sign = match line.kind {
            Kind::Match | Kind::MatchAfterGap => ':',
            Kind::Context | Kind::ContextAfterGap => '-',
        };
        let mut text = String::new();
        if !self.search.candidates.is_single_file() {
            let _ = write!(text, "{name}{sign}");
        }
        if self.search.line_numbers {
            let _ = write!(text, "{}{sign}", line.number);
        }
        text.push_str(&line.text);
        text
    }

    /// Adds one entry unless it is skipped; `false` when the answer is full.
    fn entry(&mut self, text: &str, after_gap: bool) -> bool {
        self.seen += 1;
        if self.seen <= self.search.offset {
            return true;
        }
        let too_long = self.shown > 0 && self.text.len() + text.len() > MAX_BYTES;
        if self.shown >= self.search.head || too_long {
            self.is_full = true;
            return false;
        }
        if self.shown > 0 {
            self.text.push_str(if after_gap { "\n--\n" } else { "\n" });
        }
        self.text.push_str(text);
        self.shown += 1;
        true
    }

    pub(super) fn finish(mut self, unreadable: usize) -> ToolOutput {
        let total: usize = self.files.iter().map(|(.., count)| count).sum();
        let num_files = self.files.len();
        match self.search.mode {
            OutputMode::Content => {}
            OutputMode::FilesWithMatches => self.list_by_time(),
            OutputMode::Count => self.list_counts(),
        }
        let mut data = json!({
            "mode": self.search.mode, "numFiles": self.names.len(), "filenames": self.names,
        });
        if self.search.mode != OutputMode::FilesWithMatches {
            set(&mut data, "content", json!(self.text));
            set(&mut data, "numLines", json!(self.shown));
        }
        if self.search.mode == OutputMode::Count {
            set(&mut data, "numMatches", json!(total));
        }
        let notes = self.notes(num_files, total, unreadable);
        let mut text = self.text;
        for note in notes {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&note);
        }
        answer(text, data)
    }

    fn list_by_time(&mut self) {
        let mut files = std::mem::take(&mut self.files);
        files.sort_unstable_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.cmp(&two.1)));
        for (_, path, _) in files {
            let name = shown(&path, &self.search.base);
            if !self.entry(&name, false) {
                break;
            }
            if self.shown > self.names.len() {
                self.names.push(name);
            }
        }
    }

    fn list_counts(&mut self) {
        for (_, path, count) in std::mem::take(&mut self.files) {
            let name = shown(&path, &self.search.base);
            if !self.entry(&format!("{name}:{count}"), false) {
                break;
            }
            if self.shown > self.names.len() {
                self.names.push(name);
            }
        }
    }

    fn notes(&self, num_files: usize, total: usize, unreadable: usize) -> Vec<String> {
        let mut notes = Vec::new();
        if self.seen == 0 {
            notes.push("No matches.".to_owned());
        } else if self.shown == 0 {
            notes.push(format!("No more matches: offset {} is past the end.", self.search.offset));
        }
        if self.search.mode == OutputMode::Count && total > 0 {
            notes.push(format!("({total} matching lines in {num_files} files)"));
        }
        if self.is_full {
            let next = self.search.offset + self.shown;
            let of = match self.search.mode {
                OutputMode::Content => String::new(),
                _ => format!(" of {num_files}"),
            };
            notes.push(format!(
                "({}{of} shown, there are more: continue with offset {next}, or narrow the search)",
                self.shown
            ));
        }
        if unreadable > 0 {
            notes.push(format!("({unreadable} files could not be read)"));
        }
        notes
    }
}

fn set(data: &mut Value, name: &str, value: Value) {
    if let Some(data) = data.as_object_mut() {
        data.insert(name.to_owned(), value);
    }
}
