//! Whether nothing was done in a worktree, told by its files alone.
//!
//! The index that was kept when it was made says of each file when it was last changed, by the clock of the kernel, which
//! no command can set. If that is so still, and nothing else is there, nothing was done, and git need not be asked. Any
//! doubt is no answer: then git is asked.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirEntry, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::contents;
use crate::files::{LONG, SHORT, read, read_text};
use crate::operation::Operation;
use crate::record::{Kept, Record};
use crate::state;

/// How many threads look at once.
const THREADS: usize = 4;

/// Whether it is sure that nothing was done in a worktree.
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
    fn of(metadata: &Metadata) -> Self {
        Self {
            changed: (metadata.ctime() as u32, metadata.ctime_nsec() as u32),
            written: (metadata.mtime() as u32, metadata.mtime_nsec() as u32),
            inode: metadata.ino() as u32,
            size: metadata.size() as u32,
            is_link: metadata.is_symlink(),
        }
    }
}

/// What an index has in one directory.
#[derive(Default)]
struct Listed<'a> {
    files: HashMap<&'a [u8], FileState>,
    directories: HashSet<&'a [u8]>,
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

fn is_as_listed(record: &Record, path: &[u8], listed: &Listed<'_>) -> bool {
    let below = Path::new(std::ffi::OsStr::from_bytes(path));
    let Ok(entries) = fs::read_dir(record.path.join(below)) else { return false };
    let mut seen = 0;
    for entry in entries {
        let Ok(entry) = entry else { return false };
        match is_known(&entry, listed) {
            Some(true) => seen += 1,
            None if path.is_empty() && entry.file_name() == ".git" => {}
            None if is_put(record, &below.join(entry.file_name())) => {}
            Some(false) | None => return false,
        }
    }
    seen == listed.files.len() + listed.directories.len()
}

/// Whether an entry is as it was; nothing for one that the index does not have.
fn is_known(entry: &DirEntry, listed: &Listed<'_>) -> Option<bool> {
    let name = entry.file_name();
    if listed.directories.contains(name.as_bytes()) {
        return Some(entry.file_type().is_ok_and(|kind| kind.is_dir()));
    }
    let known = listed.files.get(name.as_bytes())?;
    Some(entry.metadata().is_ok_and(|metadata| FileState::of(&metadata) == *known))
}

/// Whether it is one of the things that were put there beside what git has, as it was.
fn is_put(record: &Record, path: &Path) -> bool {
    contents::is_untouched(&record.path, path, &record.links, &record.copies)
}

/// The directories of an index, with what is in each. Nothing if it is of a form that is not known here, or says of files
/// that git need not look at them.
fn directories(index: &[u8]) -> Option<HashMap<&[u8], Listed<'_>>> {
    let mut rest = index;
    if take(&mut rest, 4)? != b"DIRC" || !matches!(number(&mut rest)?, 2 | 3) {
        return None;
    }
    let count = number(&mut rest)?;
    let mut all: HashMap<&[u8], Listed<'_>> = HashMap::new();
    all.entry(b"").or_default();
    for _ in 0..count {
        let (path, state) = entry(&mut rest)?;
        note(&mut all, path, state);
    }
    // What comes then begins with a letter that says whether it can be passed over.
    let mut rest = rest.get(..rest.len().checked_sub(20)?)?;
    while !rest.is_empty() {
        let name = take(&mut rest, 4)?;
        let length = usize::try_from(number(&mut rest)?).ok()?;
        take(&mut rest, length)?;
        if !name.first()?.is_ascii_uppercase() || name == b"FSMN" {
            return None;
        }
    }
    Some(all)
}

fn note<'a>(all: &mut HashMap<&'a [u8], Listed<'a>>, path: &'a [u8], state: FileState) {
    let (directory, name) = split(path);
    all.entry(directory).or_default().files.insert(name, state);
    let mut below = directory;
    while !below.is_empty() {
        let (above, name) = split(below);
        if !all.entry(above).or_default().directories.insert(name) {
            break;
        }
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

/// The next file of an index. Nothing for one in conflict, one that is not checked out, or a repository in this one.
fn entry<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], FileState)> {
    let start = rest.len();
    let changed = (number(rest)?, number(rest)?);
    let written = (number(rest)?, number(rest)?);
    let (_, inode, mode) = (number(rest)?, number(rest)?, number(rest)?);
    let (_, _, size) = (number(rest)?, number(rest)?, number(rest)?);
    take(rest, 20)?;
    let flags = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
    let (kind, stage) = (mode >> 12, (flags >> 12) & 3);
    // `assume-valid`, or what only the third form has.
    if flags & 0xC000 != 0 || stage != 0 || !matches!(kind, 0o10 | 0o12) {
        return None;
    }
    let end = rest.iter().position(|byte| *byte == 0)?;
    let path = take(rest, end)?;
    let padded = (start - rest.len() + 8) & !7;
    take(rest, padded - (start - rest.len()))?;
    Some((path, FileState { changed, written, inode, size, is_link: kind == 0o12 }))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}
