//! Notes that the program itself writes at the end of a session: each a file with front matter, and a line in the index.
//!
//! Nothing that is there gets lost. A note that exists is added to; what a consolidation replaces or removes is copied to
//! `.earlier` first. All writing is done by one process at a time, and below the memory's directory alone.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use centurion_protocol::SessionId;
use thiserror::Error;

use super::confine::is_straight;
use super::text::INDEX;
use super::tree::{Tree, TreeError};
use super::{AgentMemory, MemoryError};
use crate::files::{self, FileError, Readers};

/// The folder of the notes on single sessions.
pub(super) const SESSIONS: &str = "sessions";
/// The folder of what consolidations replaced or removed, by time.
const EARLIER: &str = ".earlier";
/// How many of these are kept.
const MOST_EARLIER: usize = 5;
/// The file that says when notes were consolidated last.
const STAMP: &str = ".consolidated";
/// The longest name of a note, without its ending.
const LONGEST_NAME: usize = 64;
/// The longest description of a note, in bytes.
const LONGEST_DESCRIPTION: usize = 200;

/// Why notes cannot be written.
#[derive(Debug, Error)]
pub enum NoteError {
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error("the notes in {source}")]
    Tree {
        #[from]
        source: TreeError,
    },
    #[error("the note {} {source}", .path.display())]
    File { path: PathBuf, source: FileError },
    #[error("the note {} was changed meanwhile", .0.display())]
    Changed(PathBuf),
    #[error("{} cannot be removed: {source}", .path.display())]
    Unremovable { path: PathBuf, source: io::Error },
}

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    User,
    Feedback,
    Project,
    Reference,
}

impl NoteKind {
    /// The kind of this name; what is not known is about the project.
    pub fn named(name: &str) -> Self {
        match name {
            "user" => Self::User,
            "feedback" => Self::Feedback,
            "reference" => Self::Reference,
            _ => Self::Project,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }
}

/// The name of a note's file: lowercase letters, digits and hyphens, and `.md`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoteName(String);

impl NoteName {
    /// A name as a model wrote it; `None` for one that is not to become a path.
    pub fn new(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".md").unwrap_or(name);
        let is_letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
        let is_name = !stem.is_empty()
            && stem.len() <= LONGEST_NAME
            && !stem.starts_with('-')
            && stem.bytes().all(is_letter);
        is_name.then(|| Self(format!("{stem}.md")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A note that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub kind: NoteKind,
    /// What it says, in one line.
    pub description: String,
    pub text: String,
}

impl Note {
    /// The note as a file.
    fn render(&self, date: &str) -> String {
        let (description, kind) = (line(&self.description), self.kind.name());
        let quoted = serde_json::Value::from(description);
        let text = self.text.trim();
        format!("---\ndescription: {quoted}\ntype: {kind}\nmodified: {date}\n---\n\n{text}\n")
    }
}

/// The notes of a memory at one moment, by their relative paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    pub index: String,
    pub files: BTreeMap<PathBuf, String>,
}

impl Notes {
    /// Whether a note is one on a single session.
    pub fn is_of_session(path: &Path) -> bool {
        path.starts_with(SESSIONS)
    }
}

/// What a consolidation makes of notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rearrangement {
    /// Notes that are new, or stand in the place of others.
    pub written: BTreeMap<PathBuf, Note>,
    pub removed: Vec<PathBuf>,
}

impl AgentMemory {
    /// All notes. Links and what is no text are left out.
    pub fn notes(&self) -> Result<Notes, NoteError> {
        self.check()?;
        let mut files = Tree::read(self.directory())?.files;
        let index = files.remove(Path::new(INDEX)).unwrap_or_default();
        files.retain(|path, _| path.extension().is_some_and(|it| it == "md"));
        Ok(Notes { index, files })
    }

    /// Writes a note down, at the end of the one of that name where there is one.
    pub fn add_note(&self, name: &NoteName, note: &Note, date: &str) -> Result<(), NoteError> {
        let _guard = self.lock()?;
        let mut notes = self.notes()?;
        let path = PathBuf::from(name.as_str());
        let text = match notes.files.get(&path) {
            Some(before) => format!("{}\n\n## {date}\n\n{}\n", before.trim_end(), note.text.trim()),
            None => note.render(date),
        };
        self.write(&path, &text)?;
        notes.list(&path, &note.description);
        self.write(Path::new(INDEX), &notes.index)
    }

    /// Writes down the note on a session, in the place of an earlier one on the same.
    pub fn put_session_note(
        &self,
        session: SessionId,
        note: &Note,
        date: &str,
    ) -> Result<(), NoteError> {
        let _guard = self.lock()?;
        self.write(&Path::new(SESSIONS).join(format!("{session}.md")), &note.render(date))
    }

    /// When notes were consolidated last, as the caller said it then.
    pub fn consolidated_at(&self) -> Option<String> {
        let text = files::read(&self.directory().join(STAMP), 1_024).1.ok()??;
        Some(text.trim().to_owned())
    }

    /// Replaces and removes notes, if those are still as they were seen. What they were is kept. `now` is a time that
    /// can be part of a name.
    pub fn rearrange(
        &self,
        seen: &Notes,
        wanted: &Rearrangement,
        now: &str,
        date: &str,
    ) -> Result<(), NoteError> {
        let _guard = self.lock()?;
        let mut notes = self.notes()?;
        let touched: Vec<&PathBuf> = wanted.written.keys().chain(&wanted.removed).collect();
        for path in &touched {
            if notes.files.get(*path) != seen.files.get(*path) {
                return Err(NoteError::Changed((*path).clone()));
            }
        }
        let earlier = Path::new(EARLIER).join(now);
        for path in touched {
            if let Some(before) = notes.files.get(path) {
                self.write(&earlier.join(path), before)?;
            }
        }
        self.write(&earlier.join(INDEX), &notes.index)?;
        for (path, note) in &wanted.written {
            self.write(path, &note.render(date))?;
            notes.unlist(path);
            notes.list(path, &note.description);
        }
        for path in &wanted.removed {
            notes.unlist(path);
        }
        // The index names no file that is gone: a process that dies here leaves one that is not named.
        self.write(Path::new(INDEX), &notes.index)?;
        for path in wanted.removed.iter().filter(|path| !wanted.written.contains_key(*path)) {
            let path = self.directory().join(path);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(NoteError::Unremovable { path, source });
                }
                _ => {}
            }
        }
        self.write(Path::new(STAMP), &format!("{now}\n"))?;
        self.drop_oldest();
        Ok(())
    }

    /// Keeps other processes from writing notes until the guard is dropped.
    fn lock(&self) -> Result<File, NoteError> {
        self.check()?;
        let directory = self.directory().to_owned();
        let locked = files::lock_directory(&directory);
        Ok(locked.map_err(|source| MemoryError::Lock { directory, source })?)
    }

    /// Writes a file of the memory, whose relative path is known to be good.
    fn write(&self, relative: &Path, text: &str) -> Result<(), NoteError> {
        let path = self.directory().join(relative);
        let failed = |source| NoteError::File { path: path.clone(), source };
        let folder = path.parent().unwrap_or(self.directory());
        if folder != self.directory() {
            if !is_straight(folder, self.directory()) {
                let (directory, anchor) = (folder.to_owned(), self.directory().to_owned());
                return Err(MemoryError::Linked { directory, anchor }.into());
            }
            let made = super::tree::folder_builder(Readers::Owner).recursive(true).create(folder);
            made.map_err(|error| failed(FileError::Unwritable(error)))?;
        }
        files::replace_for(&path, text, Readers::Owner).map_err(failed)
    }

    /// Removes what was replaced long ago. What cannot be removed stays.
    fn drop_oldest(&self) {
        let directory = self.directory().join(EARLIER);
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let is_folder = |it: &fs::DirEntry| it.file_type().is_ok_and(|it| it.is_dir());
        let mut times: Vec<PathBuf> = entries.filter(is_folder).map(|it| it.path()).collect();
        times.sort();
        let surplus = times.len().saturating_sub(MOST_EARLIER);
        for old in times.iter().take(surplus) {
            if let Err(error) = fs::remove_dir_all(old) {
                tracing::debug!(%error, "earlier notes could not be removed");
            }
        }
    }
}

impl Notes {
    /// Gives a note a line in the index, unless one names it.
    fn list(&mut self, path: &Path, description: &str) {
        let name = path.display().to_string();
        if self.index.contains(&format!("({name})")) || Self::is_of_session(path) {
            return;
        }
        let title = name.trim_end_matches(".md");
        let index = self.index.trim_end();
        let separator = if index.is_empty() { "" } else { "\n" };
        self.index = format!("{index}{separator}- [{title}]({name}): {}\n", line(description));
    }

    /// Removes the line that names a note, if it says nothing of others.
    fn unlist(&mut self, path: &Path) {
        let link = format!("({})", path.display());
        let is_its = |line: &str| line.contains(&link) && line.matches("](").count() == 1;
        let kept: Vec<&str> = self.index.lines().filter(|line| !is_its(line)).collect();
        self.index = kept.join("\n");
    }
}

/// A description as one short line.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace(char::is_control, "");
    text[..text.floor_char_boundary(LONGEST_DESCRIPTION)].to_owned()
}
