//! Notes that the program itself writes at the end of a session: each a file with front matter, and a line in the index.
//!
//! Nothing that is there gets lost. A note that exists is added to; what a consolidation replaces or removes stays in
//! `.earlier`. Of the notes on single sessions the newest are kept. All writing is done by one process at a time, and below the memory's directory alone.

use std::collections::BTreeMap;
use std::fs;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use centurion_files::private;
use centurion_protocol::SessionId;
use thiserror::Error;

use super::confine::straight;
use super::text::INDEX;
use super::tree::{MemoryTree, MemoryTreeError};
use super::{AgentMemory, MemoryError};
use crate::files::{self, FileError, Readers};

/// The folder of the notes on single sessions.
pub(super) const SESSIONS: &str = "sessions";
/// The folder of what consolidations replaced or removed, by time.
const EARLIER: &str = ".earlier";
/// The most earlier versions of a note that are kept.
const MOST_EARLIER: usize = 5;
/// The most notes on sessions that are kept.
const MOST_SESSIONS: usize = 100;
/// The file that says when notes were consolidated last.
const STAMP: &str = ".consolidated";
/// The longest name of a note, without its ending.
const LONGEST_NAME: usize = 64;
/// The longest description of a note, in bytes.
const LONGEST_DESCRIPTION: usize = 200;

/// The reason why notes cannot be written.
#[derive(Debug, Error)]
pub enum NoteError {
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error("the notes in {source}")]
    Tree {
        #[from]
        source: MemoryTreeError,
    },
    #[error("the note {} {source}", .path.display())]
    File { path: PathBuf, source: FileError },
    #[error("the note {} was changed meanwhile", .0.display())]
    Changed(PathBuf),
    #[error("the note {} cannot be read, so that it is left alone", .0.display())]
    Unreadable(PathBuf),
    #[error("{} cannot be moved: {source}", .path.display())]
    Unmovable { path: PathBuf, source: io::Error },
}

/// The subject of a note.
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

/// The name of a note's file: that of one that exists, or lowercase letters, digits and hyphens, and `.md`.
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

    /// The note that a model means: one that exists and is not on a single session, or a new one.
    pub fn meant(name: &str, notes: &Notes) -> Option<Self> {
        let path = Path::new(name);
        let known = notes.files.get_key_value(path).filter(|_| !Notes::is_of_session(path));
        known
            .and_then(|(path, _)| Some(Self(path.to_str()?.to_owned())))
            .or_else(|| Self::new(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A note that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNote {
    pub kind: NoteKind,
    /// Its content in one line.
    pub description: String,
    pub text: String,
}

impl NewNote {
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
    /// Entries that are no text, or too large, or links.
    pub unreadable: Vec<PathBuf>,
}

impl Notes {
    /// Whether a note is one on a single session.
    pub fn is_of_session(path: &Path) -> bool {
        path.starts_with(SESSIONS)
    }
}

/// The result of a consolidation of notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rearrangement {
    /// Notes that are new, or stand in the place of others.
    pub written: BTreeMap<PathBuf, NewNote>,
    pub removed: Vec<PathBuf>,
}

impl AgentMemory {
    /// All notes. Links and what is no text are left out.
    pub fn notes(&self) -> Result<Notes, NoteError> {
        self.check()?;
        let MemoryTree { mut files, problems } = MemoryTree::read(self.directory())?;
        let index = files.remove(Path::new(INDEX)).unwrap_or_default();
        files.retain(|path, _| path.extension().is_some_and(|it| it == "md"));
        let relative = |path: &Path| path.strip_prefix(self.directory()).map(Path::to_owned).ok();
        let unreadable = problems.iter().filter_map(|it| relative(&it.path)).collect();
        Ok(Notes { index, files, unreadable })
    }

    /// Writes a note down, at the end of the one of that name where there is one.
    pub fn add_note(&self, name: &NoteName, note: &NewNote, date: &str) -> Result<(), NoteError> {
        let _guard = self.lock()?;
        let mut notes = self.notes()?;
        let path = PathBuf::from(name.as_str());
        notes.check([path.as_path(), Path::new(INDEX)])?;
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
        note: &NewNote,
        date: &str,
    ) -> Result<(), NoteError> {
        let _guard = self.lock()?;
        self.write(&Path::new(SESSIONS).join(format!("{session}.md")), &note.render(date))?;
        self.drop_oldest(SESSIONS, MOST_SESSIONS);
        Ok(())
    }

    /// All notes, if it is time to consolidate them: that is asked with them and with the time of the last attempt.
    /// Another process is not told so at the same time, nor is the next one if this attempt fails. `now` is a time that
    /// can be part of a name.
    pub fn claim_consolidation(
        &self,
        now: &str,
        is_due: impl FnOnce(&Notes, Option<&str>) -> bool,
    ) -> Result<Option<Notes>, NoteError> {
        let _guard = self.lock()?;
        let notes = self.notes()?;
        let last = files::read(&self.directory().join(STAMP), 1_024).1.ok().flatten();
        if !is_due(&notes, last.as_deref().map(str::trim)) {
            return Ok(None);
        }
        self.write(Path::new(STAMP), &format!("{now}\n"))?;
        Ok(Some(notes))
    }

    /// Replaces and removes notes, if those are still as they were seen. What they were is kept.
    pub fn rearrange(
        &self,
        seen: &Notes,
        wanted: &Rearrangement,
        now: &str,
        date: &str,
    ) -> Result<(), NoteError> {
        let _guard = self.lock()?;
        let notes = self.notes()?;
        let touched: Vec<&Path> =
            wanted.written.keys().chain(&wanted.removed).map(PathBuf::as_path).collect();
        notes.check(touched.iter().copied().chain([Path::new(INDEX)]))?;
        for path in touched {
            if notes.files.get(path) != seen.files.get(path) {
                return Err(NoteError::Changed(path.to_owned()));
            }
        }
        let earlier = Path::new(EARLIER).join(now);
        self.write(&earlier.join(INDEX), &notes.index)?;
        for (path, note) in &wanted.written {
            if let Some(before) = notes.files.get(path) {
                self.write(&earlier.join(path), before)?;
            }
            self.write(path, &note.render(date))?;
        }
        // An agent may have changed the index meanwhile.
        let mut notes = self.notes()?;
        for path in &wanted.removed {
            notes.unlist(path);
        }
        for (path, note) in &wanted.written {
            notes.unlist(path);
            notes.list(path, &note.description);
        }
        // The index names no file that is gone: a process that dies here leaves one that is not named.
        self.write(Path::new(INDEX), &notes.index)?;
        for path in &wanted.removed {
            self.put_away(path, &earlier)?;
        }
        self.drop_oldest(EARLIER, MOST_EARLIER);
        Ok(())
    }

    /// Moves a note, as it is by now, to what was earlier.
    fn put_away(&self, path: &Path, earlier: &Path) -> Result<(), NoteError> {
        let (from, to) = (self.directory().join(path), self.directory().join(earlier).join(path));
        let folder = to.parent().unwrap_or(self.directory());
        let made = private::create_directory(folder);
        match made.and_then(|()| fs::rename(&from, &to)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(NoteError::Unmovable { path: from, source })
            }
            _ => Ok(()),
        }
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
            if straight(folder, self.directory()).is_none() {
                let (directory, anchor) = (folder.to_owned(), self.directory().to_owned());
                return Err(MemoryError::Linked { directory, anchor }.into());
            }
            let made = private::create_directory(folder);
            made.map_err(|error| failed(FileError::Unwritable(error)))?;
        }
        files::replace_for(&path, text, Readers::Owner).map_err(failed)
    }

    /// Removes the oldest entries of a folder. What cannot be removed stays.
    fn drop_oldest(&self, folder: &str, most: usize) {
        let entries = fs::read_dir(self.directory().join(folder)).into_iter().flatten().flatten();
        let dated = |it: fs::DirEntry| {
            let metadata = it.metadata().ok()?;
            Some((metadata.modified().ok()?, it.path(), metadata.is_dir()))
        };
        let mut all: Vec<_> = entries.filter_map(dated).collect();
        all.sort();
        let surplus = all.len().saturating_sub(most);
        for (_, path, is_folder) in all.iter().take(surplus) {
            let removed = if *is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            if let Err(error) = removed {
                tracing::debug!(%error, "an old note could not be removed");
            }
        }
    }
}

impl Notes {
    /// Whether all that is there of these notes could be read.
    fn check<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Result<(), NoteError> {
        let mut paths = paths.into_iter();
        let unreadable = paths.find(|path| self.unreadable.iter().any(|it| it == path));
        unreadable.map_or(Ok(()), |path| Err(NoteError::Unreadable(path.to_owned())))
    }

    /// Gives a note a line in the index, unless one names it.
    fn list(&mut self, path: &Path, description: &str) {
        let name = path.display().to_string();
        if self.index.lines().any(|line| names(line, &name) > 0) || Self::is_of_session(path) {
            return;
        }
        let title = name.trim_end_matches(".md");
        let index = self.index.trim_end();
        let separator = if index.is_empty() { "" } else { "\n" };
        self.index = format!("{index}{separator}- [{title}]({name}): {}\n", line(description));
    }

    /// Removes the lines that name a note and no other.
    fn unlist(&mut self, path: &Path) {
        let name = path.display().to_string();
        let is_its = |line: &&str| {
            let count = names(line, &name);
            count > 0 && line.matches(".md").count() == count
        };
        let kept: Vec<&str> = self.index.lines().filter(|line| !is_its(line)).collect();
        self.index = kept.join("\n");
    }
}

/// The number of times that a line names a file.
fn names(line: &str, name: &str) -> usize {
    let is_part = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_' | '/' | '.');
    let places = line.match_indices(name).filter(|(at, _)| {
        let before = line[..*at].chars().next_back();
        let after = line[at + name.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(char::is_alphanumeric)
    });
    places.count()
}

/// A description as one short line.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace(char::is_control, "");
    text[..text.floor_char_boundary(LONGEST_DESCRIPTION)].to_owned()
}
