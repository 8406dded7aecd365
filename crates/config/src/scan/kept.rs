//! Indexes of places, kept for the next process: with hundreds of files, a look at each is all that a start costs.
//!
//! Only what is sure is kept: a stamp that proves that a file is the one that was read. What cannot be understood counts
//! as nothing kept, and whatever is written into a file or renamed over it has another stamp. Lost or stale, an index
//! costs time and nothing else.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use centurion_files::{Kind, Listed, open_followed, private};

use super::{ByPath, CachedFile, KnownPlace, Listing, Memo, ScanPlace};
use crate::files::{Stamp, bytes_in};

/// Another number for every other way to write it, or to read the files that it is about.
const FORMAT: u64 = 4;

/// A smaller number of files is read as fast.
const LEAST: usize = 32;

/// An index that is larger than this is something else.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Most places that have an index; of more, those that changed last.
const MOST_PLACES: usize = 64;

/// A directory with an index for each place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptIndex<'i> {
    pub(crate) directory: &'i Path,
}

/// A value that can be kept.
pub(crate) trait Keep: Sized {
    /// `false` where it is not to be kept.
    fn write(&self, to: &mut Writer) -> bool;

    fn read(from: &mut KeptReader<'_>) -> Option<Self>;
}

/// Writes numbers and texts one after the other.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }

    fn stamp(&mut self, stamp: &Stamp) {
        for number in stamp.numbers() {
            self.number(number);
        }
    }
}

/// Reads what a writer wrote; `None` where something else stands there.
pub(crate) struct KeptReader<'b>(&'b [u8]);

impl<'b> KeptReader<'b> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    pub(crate) fn text(&mut self) -> Option<&'b str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }

    fn stamp(&mut self) -> Option<Stamp> {
        let mut numbers = [0; 7];
        for number in &mut numbers {
            *number = self.number()?;
        }
        Some(Stamp::from_numbers(numbers))
    }
}

impl<T: Keep> Memo<T> {
    /// Remembers what an earlier process kept of a place, where this one has not looked yet.
    pub(crate) fn recall(&mut self, place: &ScanPlace, index: KeptIndex<'_>) {
        if !self.places.contains_key(place)
            && let Some(bytes) = index.bytes(place)
            && let Some(known_place) = read_place(&mut KeptReader(&bytes), place)
        {
            self.places.insert(place.clone(), known_place);
        }
    }

    /// Keeps what is known of a place for later processes. That it cannot be kept costs them some time.
    pub(crate) fn keep(&self, place: &ScanPlace, index: KeptIndex<'_>) {
        let Some(known_place) = self.places.get(place).filter(|it| it.files.len() >= LEAST) else {
            return;
        };
        let mut writer = Writer::default();
        write_place(&mut writer, place, known_place);
        let (file, kept) = (index.file(place), index.bytes(place));
        if kept.as_ref() == Some(&writer.0) {
            return;
        }
        let is_there = kept.is_some();
        let kept = private::create_directory(index.directory)
            .and_then(|()| private::replace(&file, &writer.0));
        match kept {
            Err(error) => tracing::debug!(%error, path = %file.display(), "no index was kept"),
            Ok(()) if !is_there => index.forget_oldest(),
            Ok(()) => {}
        }
    }
}

impl KeptIndex<'_> {
    fn file(&self, place: &ScanPlace) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        hasher.update(place.root.as_os_str().as_encoded_bytes());
        hasher.update(b"\0");
        hasher.update(place.owner.as_bytes());
        let mut name = hasher.finalize().to_hex().to_string();
        name.truncate(32);
        self.directory.join(name)
    }

    fn bytes(&self, place: &ScanPlace) -> Option<Vec<u8>> {
        bytes_in(open_followed(&self.file(place)).ok()?, LARGEST).ok()
    }

    fn forget_oldest(self) {
        let entries = fs::read_dir(self.directory).into_iter().flatten().flatten();
        let changed = |entry: &fs::DirEntry| entry.metadata().and_then(|it| it.modified()).ok();
        let mut files: Vec<(SystemTime, PathBuf)> =
            entries.filter_map(|entry| Some((changed(&entry)?, entry.path()))).collect();
        files.sort_unstable();
        let surplus = files.len().saturating_sub(MOST_PLACES);
        for (_, file) in files.iter().take(surplus) {
            // Another process may have been faster.
            let _ = fs::remove_file(file);
        }
    }
}

fn write_head(to: &mut Writer, place: &ScanPlace) {
    to.number(FORMAT);
    to.text(env!("CARGO_PKG_VERSION"));
    to.text(&format!("{:?}", (&place.root, &place.within, place.pick, &place.owner)));
}

fn write_place<T: Keep>(to: &mut Writer, place: &ScanPlace, known_place: &KnownPlace<T>) {
    write_head(to, place);
    let mut listings: Vec<_> = known_place.listings.iter().filter(|it| it.1.is_settled).collect();
    listings.sort_unstable_by_key(|(folder, _)| *folder);
    for (folder, listing) in listings {
        // Of entries beyond what a visit needs, the number is enough.
        let (kept, others) = listing.entries.split_at(listing.needed.min(listing.entries.len()));
        let names: Option<Vec<_>> =
            kept.iter().map(|it| Some((it.name.to_str()?, it.kind))).collect();
        let (Some(folder), Some(names)) = (folder.to_str(), names) else { continue };
        to.number(1);
        to.text(folder);
        to.stamp(&listing.stamp);
        to.number((others.len() + listing.more) as u64);
        to.number(names.len() as u64);
        for (name, kind) in names {
            to.number(kind as u64);
            to.text(name);
        }
    }
    to.number(0);
    let mut files: Vec<_> = known_place.files.iter().filter(|it| it.1.is_settled).collect();
    files.sort_unstable_by_key(|(path, _)| *path);
    for (path, known) in files {
        let Some(path) = path.to_str() else { continue };
        let before = to.0.len();
        to.number(1);
        to.text(path);
        to.stamp(&known.stamp);
        if !known.value.write(to) {
            to.0.truncate(before);
        }
    }
    to.number(0);
}

fn read_place<T: Keep>(from: &mut KeptReader<'_>, place: &ScanPlace) -> Option<KnownPlace<T>> {
    let mut head = Writer::default();
    write_head(&mut head, place);
    from.0 = from.0.strip_prefix(head.0.as_slice())?;
    let mut listings = ByPath::default();
    let mut entry_count = 0;
    while from.number()? == 1 {
        let (folder, stamp) = (OsString::from(from.text()?), from.stamp()?);
        let more = usize::try_from(from.number()?).ok()?;
        let count = from.number()?;
        let mut entries = Vec::with_capacity(usize::try_from(count).unwrap_or_default().min(1024));
        for _ in 0..count {
            let kind = kind_of(from.number()?)?;
            let name = Some(from.text()?).filter(|name| is_entry(name))?;
            entries.push(Listed { name: name.into(), kind });
        }
        entry_count += entries.len();
        let (needed, entries) = (entries.len(), entries.into());
        listings.insert(folder, Listing { stamp, is_settled: true, entries, needed, more });
    }
    // A place has about as many files as entries; both are bounded by the size of the index.
    let mut files = ByPath::default();
    files.reserve(entry_count);
    while from.number()? == 1 {
        let (path, stamp) = (OsString::from(from.text()?), from.stamp()?);
        let value = Arc::new(T::read(from)?);
        files.insert(path, CachedFile { stamp, is_settled: true, value, is_found: false });
    }
    Some(KnownPlace { listings, files, refused: Vec::new() })
}

/// Checks that a name is one that a look at a folder finds: nothing in an index leads elsewhere.
fn is_entry(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

fn kind_of(number: u64) -> Option<Kind> {
    [Kind::File, Kind::Directory, Kind::Link, Kind::Other]
        .into_iter()
        .find(|kind| *kind as u64 == number)
}

#[cfg(test)]
mod tests;
