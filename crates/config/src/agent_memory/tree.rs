//! Small trees of texts: read whole and within bounds, and laid over another without losing anything
//! that is there.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use centurion_files::private;
use thiserror::Error;

use crate::Problem;
use crate::files::{self, FileError, Readers, is_absence};

/// Limits on the notes of one agent: a larger directory is not a memory of an agent.
const MOST_ENTRIES: usize = 1_000;
const MOST_BYTES: usize = 8 * 1024 * 1024;
const LARGEST_FILE: u64 = 1024 * 1024;

/// The deepest nesting of folders.
const DEEPEST: usize = 4;

/// Names longer than this leave no room for a number.
const LONGEST_NAME: usize = 200;

/// The most earlier versions of a file that are kept beside it.
const MOST_KEPT: u32 = 999;

/// The reason why a tree cannot be read or written.
#[derive(Debug, Error)]
pub enum MemoryTreeError {
    #[error("{} has more than {MOST_ENTRIES} files", .0.display())]
    TooMany(PathBuf),
    #[error("{} is larger than {} MiB", .0.display(), MOST_BYTES / 1024 / 1024)]
    TooLarge(PathBuf),
    #[error("{} cannot be read: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} cannot be written: {source}", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("{} {source}", .path.display())]
    File { path: PathBuf, source: FileError },
    #[error("{} has {MOST_KEPT} earlier versions beside it; help: delete those that are no longer needed", .0.display())]
    NoName(PathBuf),
}

/// The texts of a directory, by their relative paths.
#[derive(Debug, Default)]
pub(super) struct MemoryTree {
    pub(super) files: BTreeMap<PathBuf, String>,
    /// Files that were left out, with the reasons.
    pub(super) problems: Vec<Problem>,
}

/// The result of laying a tree over another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Laid {
    /// The files that were written.
    pub written: Vec<PathBuf>,
    /// Files that stood in their places, each with its path now.
    pub kept: Vec<(PathBuf, PathBuf)>,
    /// Files that were left out, with the reasons.
    pub problems: Vec<Problem>,
}

impl Laid {
    /// The same with what was left out before.
    pub(super) fn with(mut self, mut problems: Vec<Problem>) -> Self {
        problems.append(&mut self.problems);
        Self { problems, ..self }
    }
}

impl MemoryTree {
    /// Reads a directory; one that is not there is empty. Links and what is no text are left out, and
    /// so is what is hidden.
    pub(super) fn read(directory: &Path) -> Result<Self, MemoryTreeError> {
        let mut tree = Self::default();
        let mut folders = VecDeque::from([(PathBuf::new(), 0)]);
        let (mut entries, mut bytes) = (0, 0);
        while let Some((folder, depth)) = folders.pop_front() {
            let path = directory.join(&folder);
            let unreadable = |source| MemoryTreeError::Unreadable { path: path.clone(), source };
            let listing = match fs::read_dir(&path) {
                Err(error) if is_absence(&error) && depth == 0 => return Ok(tree),
                listing => listing.map_err(unreadable)?,
            };
            for entry in listing {
                let entry = entry.map_err(unreadable)?;
                entries += 1;
                if entries > MOST_ENTRIES {
                    return Err(MemoryTreeError::TooMany(directory.to_owned()));
                }
                let kind = entry.file_type().map_err(unreadable)?;
                let Some(name) = tree.name(&entry) else { continue };
                let relative = folder.join(name);
                if kind.is_symlink() {
                    tree.leave_out(entry.path(), "is a link, and is left out");
                } else if !kind.is_dir() {
                    bytes += tree.file(entry.path(), relative);
                } else if depth < DEEPEST {
                    folders.push_back((relative, depth + 1));
                } else {
                    tree.leave_out(entry.path(), "lies too deep, and is left out");
                }
                if bytes > MOST_BYTES {
                    return Err(MemoryTreeError::TooLarge(directory.to_owned()));
                }
            }
        }
        Ok(tree)
    }

    /// The name of an entry, if it may have one elsewhere.
    fn name(&mut self, entry: &fs::DirEntry) -> Option<String> {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            return None;
        }
        let good = name.to_str().filter(|it| {
            it.len() <= LONGEST_NAME && !it.chars().any(|it| it.is_control() || it == '\\')
        });
        if good.is_none() {
            self.leave_out(entry.path(), "has a name that cannot be used, and is left out");
        }
        good.map(str::to_owned)
    }

    fn file(&mut self, path: PathBuf, relative: PathBuf) -> usize {
        match files::read(&path, LARGEST_FILE).1 {
            Ok(Some(text)) => {
                let size = text.len();
                self.files.insert(relative, text);
                size
            }
            // Gone since the folder was looked at.
            Ok(None) => 0,
            Err(error) => {
                self.leave_out(path, &format!("{error}, and is left out"));
                0
            }
        }
    }

    pub(super) fn leave_out(&mut self, path: PathBuf, message: &str) {
        self.problems.push(Problem { path, line: None, message: message.to_owned() });
    }

    /// Writes all files into a directory. What says something else is kept under a numbered name.
    pub(super) fn lay(self, directory: &Path, readers: Readers) -> Result<Laid, MemoryTreeError> {
        let mut laid = Laid { problems: self.problems, ..Laid::default() };
        for (relative, text) in &self.files {
            let mut folder = directory.to_owned();
            for part in relative.parent().into_iter().flat_map(Path::components) {
                folder.push(part);
                make_folder(&folder, readers, &mut laid)?;
            }
            let path = directory.join(relative);
            if is_file(&path)
                && matches!(files::read(&path, LARGEST_FILE).1, Ok(Some(it)) if it == *text)
            {
                continue;
            }
            move_aside(&path, &mut laid)?;
            files::replace_for(&path, text, readers)
                .map_err(|source| MemoryTreeError::File { path: path.clone(), source })?;
            laid.written.push(path);
        }
        Ok(laid)
    }
}

/// Whether a file lies there itself, and no link to one.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_file())
}

/// Makes a folder, whatever else has its name.
fn make_folder(path: &Path, readers: Readers, laid: &mut Laid) -> Result<(), MemoryTreeError> {
    if path.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        return Ok(());
    }
    move_aside(path, laid)?;
    create_folder(path, readers)
        .map_err(|source| MemoryTreeError::Unwritable { path: path.to_owned(), source })
}

/// Makes a folder that does not exist yet, with the access of its files.
pub(super) fn create_folder(path: &Path, readers: Readers) -> io::Result<()> {
    match readers {
        Readers::Owner => private::create_new_directory(path),
        Readers::Usual => fs::create_dir(path),
    }
}

/// Makes a folder with those above it, unless it exists, with the access of its files.
pub(super) fn create_folders(path: &Path, readers: Readers) -> io::Result<()> {
    match readers {
        Readers::Owner => private::create_directory(path),
        Readers::Usual => fs::create_dir_all(path),
    }
}

/// Gives what is at a path the next free numbered name beside it.
fn move_aside(path: &Path, laid: &mut Laid) -> Result<(), MemoryTreeError> {
    let unwritable = |source| MemoryTreeError::Unwritable { path: path.to_owned(), source };
    match path.symlink_metadata() {
        Err(error) if is_absence(&error) => return Ok(()),
        Err(error) => return Err(unwritable(error)),
        Ok(_) => {}
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|it| format!(".{}", it.to_string_lossy()));
    let extension = extension.unwrap_or_default();
    let names = (1..=MOST_KEPT).map(|it| path.with_file_name(format!("{stem}.{it}{extension}")));
    let is_free = |it: &PathBuf| it.symlink_metadata().is_err_and(|error| is_absence(&error));
    let free =
        names.into_iter().find(is_free).ok_or_else(|| MemoryTreeError::NoName(path.to_owned()))?;
    fs::rename(path, &free).map_err(unwritable)?;
    laid.kept.push((path.to_owned(), free));
    Ok(())
}
