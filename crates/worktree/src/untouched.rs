//! Proving by files alone that nothing was done in a worktree.
//!
//! The index that was kept when it was made says of each file when it was last changed, by the clock of the kernel, which
//! no command can set. If that is so still, and nothing else is there, nothing was done, and git need not be asked. Any
//! doubt is no answer: then git is asked.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, openat, statat};

use crate::contents;
use crate::files::{LONG, SHORT, read, read_text};
use crate::index::{self, IndexEntry};
use crate::operation::Operation;
use crate::record::{Kept, Record};
use crate::state;

/// Number of threads that look at once.
const THREADS: usize = 4;

/// Checks that surely nothing was done in a worktree; `false` in doubt.
pub(crate) async fn is_sure(kept: &Kept, record: &Record) -> bool {
    let (kept, record) = (kept.clone(), record.clone());
    let look =
        move || is_repository_untouched(&kept, &record) && are_files_untouched(&kept, &record);
    tokio::task::spawn_blocking(look).await.unwrap_or(false)
}

fn is_repository_untouched(kept: &Kept, record: &Record) -> bool {
    let private = kept.private_repository();
    let on_branch = format!("ref: refs/heads/{}\n", record.branch);
    state::is_out(kept, record)
        && record.submodules.is_empty()
        && read_text(&private.join("HEAD"), SHORT).is_ok_and(|head| head == on_branch)
        && Operation::in_progress(&private).is_none()
        && !state::has_history(kept)
}

/// A file as an index knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    changed: (u32, u32),
    written: (u32, u32),
    inode: u32,
    size: u32,
    is_link: bool,
}

impl FileState {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index keeps the lower half of numbers"
    )]
    fn of(stat: &Stat) -> Self {
        Self {
            changed: (stat.st_ctime as u32, stat.st_ctime_nsec as u32),
            written: (stat.st_mtime as u32, stat.st_mtime_nsec as u32),
            inode: stat.st_ino as u32,
            size: stat.st_size as u32,
            is_link: FileType::from_raw_mode(stat.st_mode) == FileType::Symlink,
        }
    }
}

/// Entries of an index in one directory.
#[derive(Default)]
struct Listed<'a> {
    files: Vec<(&'a [u8], FileState)>,
    directories: Vec<&'a [u8]>,
}

impl Listed<'_> {
    fn has(&self, name: &[u8]) -> bool {
        self.directories.contains(&name) || self.files.iter().any(|(file, _)| *file == name)
    }
}

fn are_files_untouched(kept: &Kept, record: &Record) -> bool {
    let Ok(index) = read(&kept.index(), LONG) else { return false };
    // Longer ids have another form.
    let is_usual = record.base.len() == 40;
    let Some(listed) = is_usual.then(|| directories(&index)).flatten() else { return false };
    let directories: Vec<_> = listed.iter().collect();
    let (next, is_touched) = (AtomicUsize::new(0), AtomicBool::new(false));
    let look = || {
        while !is_touched.load(Ordering::Relaxed) {
            let Some((path, listed)) = directories.get(next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            if !is_as_listed(record, path, listed) {
                is_touched.store(true, Ordering::Relaxed);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get().min(THREADS));
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(look);
        }
        look();
    });
    !is_touched.into_inner()
}

/// Checks that a directory has what is listed, as it was, and nothing else. All directories that are listed are looked at, and
/// none of them through a link.
fn is_as_listed(record: &Record, path: &[u8], listed: &Listed<'_>) -> bool {
    let below = Path::new(OsStr::from_bytes(path));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = openat(CWD, record.path.join(below), flags, Mode::empty()) else {
        return false;
    };
    let is_as_known = |(name, known): &(&[u8], FileState)| {
        let stat = statat(&directory, *name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileState::of(&stat) == *known)
    };
    if !listed.files.iter().all(is_as_known) {
        return false;
    }
    // All that is listed is there: what is more than that is something else.
    let usual = listed.files.len() + listed.directories.len();
    let mut names = 0;
    if each_name(&directory, |_| names += 1).is_none() {
        return false;
    }
    if names == usual {
        return true;
    }
    let mut is_ours = true;
    let looked = each_name(&directory, |name| {
        let is_git = path.is_empty() && name == b".git";
        is_ours = is_ours
            && (is_git || listed.has(name) || is_put(record, &below.join(OsStr::from_bytes(name))));
    });
    names >= usual && looked.is_some() && is_ours
}

/// Tells the names in a directory, from the first one on. Nothing if it cannot be read.
fn each_name(directory: &OwnedFd, mut tell: impl FnMut(&[u8])) -> Option<()> {
    rustix::fs::seek(directory, rustix::fs::SeekFrom::Start(0)).ok()?;
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut entries = RawDir::new(directory, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            tell(name);
        }
    }
    Some(())
}

/// Checks that a path is an untouched link or copy of ours.
fn is_put(record: &Record, path: &Path) -> bool {
    contents::is_untouched(&record.path, path, &record.links, &record.copies)
}

/// The directories of an index, with what is in each. Nothing if it is of a form that is not known here, or says of files
/// that git need not look at them.
fn directories(index: &[u8]) -> Option<HashMap<&[u8], Listed<'_>>> {
    let mut all: HashMap<&[u8], Listed<'_>> = HashMap::new();
    all.entry(b"").or_default();
    // Most files are in the same directory as the one before.
    let (mut directory, mut files): (&[u8], Vec<_>) = (b"", Vec::new());
    for entry in index::entries(index)? {
        let (above, name) = split(entry.path);
        if above != directory {
            note(&mut all, directory, &mut files);
            directory = above;
        }
        files.push((name, state(&entry)?));
    }
    note(&mut all, directory, &mut files);
    Some(all)
}

/// Adds files of a directory, and the directory to those above it.
fn note<'a>(
    all: &mut HashMap<&'a [u8], Listed<'a>>,
    directory: &'a [u8],
    files: &mut Vec<(&'a [u8], FileState)>,
) {
    let mut below = directory;
    let mut is_new = !all.contains_key(below);
    all.entry(directory).or_default().files.append(files);
    while is_new {
        let (above, name) = split(below);
        is_new = !all.contains_key(above);
        all.entry(above).or_default().directories.push(name);
        below = above;
    }
}

/// The directory of a path, and the name in it.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (b"", path),
    }
}

/// The state of a file as an index has it. Nothing for one in conflict, one that is not checked out, a repository in this one,
/// or one whose times cannot tell of a change.
fn state(entry: &IndexEntry<'_>) -> Option<FileState> {
    let IndexEntry { changed, written, inode, size, flags, .. } = *entry;
    let (kind, stage) = (entry.kind(), (flags >> 12) & 3);
    // A file system that knows whole seconds only: a file that is changed within the second of its checkout looks the same.
    if changed.1 == 0 && written.1 == 0 {
        return None;
    }
    // `assume-valid`, or what only the third form has.
    if flags & 0xC000 != 0 || stage != 0 || !matches!(kind, 0o10 | 0o12) {
        return None;
    }
    Some(FileState { changed, written, inode, size, is_link: kind == 0o12 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index with one file, with these fractions of the seconds of its times.
    fn index(changed: u32, written: u32) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        let numbers =
            [2, 1, 1_700_000_000, changed, 1_700_000_000, written, 1, 2, 0o100_644, 0, 0, 3];
        bytes.extend(numbers.into_iter().flat_map(u32::to_be_bytes));
        bytes.extend([0; 20]);
        // With its name it has 63 bytes, and is filled up to eight times eight.
        bytes.extend([0, 1, b'a', 0]);
        bytes.extend([0; 20]);
        bytes
    }

    #[test]
    fn times_of_whole_seconds_tell_nothing() {
        assert!(directories(&index(0, 0)).is_none());
        for (changed, written) in [(1, 0), (0, 1), (7, 7)] {
            let index = index(changed, written);
            let found = directories(&index).expect("times that tell of a change");
            assert_eq!(found.get(&b""[..]).map(|it| it.files.len()), Some(1));
        }
    }
}
