//! Indexes of places, kept for the next process: with hundreds of files, a look at each is all that a start costs.
//!
//! Only what is sure is kept: a stamp that proves that a file is the one that was read. What cannot be understood counts
//! as nothing kept, and whatever is written into a file or renamed over it has another stamp. Lost or stale, an index
//! costs time and nothing else.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use centurion_files::{Kind, Listed, open_followed, private};

use super::{Known, Listing, Memo, Place, Remembered};
use crate::files::{Stamp, bytes_in};

/// Another number for every other way to write it, or to read the files that it is about.
const FORMAT: u64 = 3;

/// A smaller number of files is read as fast.
const LEAST: usize = 32;

/// An index that is larger than this is something else.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Most places that have an index; of more, those that changed last.
const MOST_PLACES: usize = 64;

/// A directory with an index for each place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index<'i> {
    pub(crate) directory: &'i Path,
}

/// A value that can be kept.
pub(crate) trait Keep: Sized {
    /// `false` where it is not to be kept.
    fn write(&self, to: &mut Writer) -> bool;

    fn read(from: &mut Reader<'_>) -> Option<Self>;
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
pub(crate) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
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
    pub(crate) fn recall(&mut self, place: &Place, index: Index<'_>) {
        if !self.places.contains_key(place)
            && let Some(bytes) = index.bytes(place)
            && let Some(remembered) = read_place(&mut Reader(&bytes), place)
        {
            self.places.insert(place.clone(), remembered);
        }
    }

    /// Keeps what is remembered of a place for later processes. That it cannot be kept costs them some time.
    pub(crate) fn keep(&self, place: &Place, index: Index<'_>) {
        let Some(remembered) = self.places.get(place).filter(|it| it.files.len() >= LEAST) else {
            return;
        };
        let mut writer = Writer::default();
        write_place(&mut writer, place, remembered);
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

impl Index<'_> {
    fn file(&self, place: &Place) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        hasher.update(place.root.as_os_str().as_encoded_bytes());
        hasher.update(b"\0");
        hasher.update(place.owner.as_bytes());
        let mut name = hasher.finalize().to_hex().to_string();
        name.truncate(32);
        self.directory.join(name)
    }

    fn bytes(&self, place: &Place) -> Option<Vec<u8>> {
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

fn write_head(to: &mut Writer, place: &Place) {
    to.number(FORMAT);
    to.text(env!("CARGO_PKG_VERSION"));
    to.text(&format!("{:?}", (&place.root, &place.within, place.pick, &place.owner)));
}

fn write_place<T: Keep>(to: &mut Writer, place: &Place, remembered: &Remembered<T>) {
    write_head(to, place);
    let mut listings: Vec<_> = remembered.listings.iter().filter(|it| it.1.is_settled).collect();
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
    let mut files: Vec<_> = remembered.files.iter().filter(|it| it.1.is_settled).collect();
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

fn read_place<T: Keep>(from: &mut Reader<'_>, place: &Place) -> Option<Remembered<T>> {
    let mut head = Writer::default();
    write_head(&mut head, place);
    from.0 = from.0.strip_prefix(head.0.as_slice())?;
    let mut listings = HashMap::new();
    let mut entry_count = 0;
    while from.number()? == 1 {
        let (folder, stamp) = (OsString::from(from.text()?), from.stamp()?);
        let more = usize::try_from(from.number()?).ok()?;
        let count = from.number()?;
        let mut entries = Vec::with_capacity(usize::try_from(count).unwrap_or_default().min(1024));
        for _ in 0..count {
            let kind = kind_of(from.number()?)?;
            entries.push(Listed { name: from.text()?.into(), kind });
        }
        entry_count += entries.len();
        let (needed, entries) = (entries.len(), entries.into());
        listings.insert(folder, Listing { stamp, is_settled: true, entries, needed, more });
    }
    // A place has about as many files as entries; both are bounded by the size of the index.
    let mut files = HashMap::with_capacity(entry_count);
    while from.number()? == 1 {
        let (path, stamp) = (OsString::from(from.text()?), from.stamp()?);
        let value = Arc::new(T::read(from)?);
        files.insert(path, Known { stamp, is_settled: true, value, is_found: false });
    }
    Some(Remembered { listings, files, refused: Vec::new() })
}

fn kind_of(number: u64) -> Option<Kind> {
    [Kind::File, Kind::Directory, Kind::Link, Kind::Other]
        .into_iter()
        .find(|kind| *kind as u64 == number)
}

#[cfg(test)]
mod tests {
    use std::path::Component;

    use centurion_protocol::World;
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::scan::{Extent, Pick};

    /// A world in which all that was written just now was written long ago.
    struct Later;

    impl World for Later {
        fn now(&self) -> Timestamp {
            Timestamp::now() + SignedDuration::from_hours(1)
        }

        fn random(&self) -> u64 {
            4
        }
    }

    impl Keep for String {
        fn write(&self, to: &mut Writer) -> bool {
            to.text(self);
            !self.contains("never kept")
        }

        fn read(from: &mut Reader<'_>) -> Option<Self> {
            from.text().map(str::to_owned)
        }
    }

    struct Bench {
        scratch: tempfile::TempDir,
        place: Place,
    }

    impl Bench {
        fn new(count: usize) -> Self {
            let scratch = tempfile::tempdir().unwrap();
            let root = scratch.path().join("skills");
            for n in 0..count {
                fs::create_dir_all(root.join(format!("s{n}"))).unwrap();
                fs::write(root.join(format!("s{n}/SKILL.md")), format!("text {n}")).unwrap();
            }
            let place = Place { root, within: None, pick: Pick::Skills, owner: "o".to_owned() };
            Self { scratch, place }
        }

        fn index(&self) -> PathBuf {
            self.scratch.path().join("index")
        }

        fn file(&self) -> PathBuf {
            Index { directory: &self.index() }.file(&self.place)
        }

        /// The findings of a new process, and how many files it reads for that.
        fn look(&self) -> (Vec<String>, usize) {
            let (found, count, _) = self.look_at_most(usize::MAX);
            (found, count)
        }

        /// The same where no more than so many are wanted, with how many were left unread.
        fn look_at_most(&self, most: usize) -> (Vec<String>, usize, usize) {
            let (directory, mut count) = (self.index(), 0);
            let index = Index { directory: &directory };
            let mut memo = Memo::default();
            memo.recall(&self.place, index);
            let extent = Extent { most, ..Extent::default() };
            let visit = memo.visit_part(&self.place, extent, &Later, |path, text| {
                assert!(path.components().all(|it| it != Component::ParentDir));
                count += 1;
                text.to_owned()
            });
            if !visit.is_unchanged {
                memo.keep(&self.place, index);
            }
            let found = visit.found.iter().map(|found| String::clone(&found.value)).collect();
            (found, count, visit.unread)
        }
    }

    #[test]
    fn a_later_process_reads_what_changed_and_nothing_else() {
        let bench = Bench::new(40);
        let (first, count) = bench.look();
        assert_eq!((first.len(), count), (40, 40));
        assert_eq!(bench.look(), (first.clone(), 0));
        fs::write(bench.place.root.join("s7/SKILL.md"), "another text").unwrap();
        fs::remove_dir_all(bench.place.root.join("s8")).unwrap();
        let (second, count) = bench.look();
        assert_eq!((second.len(), count), (39, 1));
        assert!(second.contains(&"another text".to_owned()));
        assert_eq!(bench.look(), (second, 0));
    }

    #[test]
    fn of_more_files_than_are_wanted_the_number_is_kept_and_the_others_come_when_they_are_needed() {
        let bench = Bench::new(100);
        let (first, count, unread) = bench.look_at_most(40);
        assert_eq!((first.len(), count, unread), (40, 40, 60));
        let kept = fs::read(bench.file()).unwrap();
        assert!(memchr::memmem::find(&kept, b"s99").is_none());
        assert_eq!(bench.look_at_most(40), (first.clone(), 0, 60));
        // One of the first is no skill any more, which its parent does not tell.
        fs::remove_file(bench.place.root.join("s10/SKILL.md")).unwrap();
        let (second, count, unread) = bench.look_at_most(40);
        assert_eq!((second.len(), count, unread), (40, 1, 59));
        assert!(!second.contains(&"text 10".to_owned()));
        assert_eq!(bench.look_at_most(40), (second, 0, 59));
        // Who wants all of them has all.
        let (all, count, unread) = bench.look_at_most(usize::MAX);
        assert_eq!((all.len(), count, unread), (99, 59, 0));
        assert_eq!(bench.look_at_most(usize::MAX), (all, 0, 0));
    }

    #[test]
    fn what_is_not_to_be_kept_is_read_each_time_and_the_index_stays() {
        let bench = Bench::new(40);
        fs::write(bench.place.root.join("s7/SKILL.md"), "never kept").unwrap();
        bench.look();
        let before = fs::metadata(bench.file()).unwrap();
        assert_eq!(bench.look().1, 1);
        assert_eq!(Stamp::from(&before), Stamp::of(&bench.file()).unwrap());
    }

    #[test]
    fn an_index_that_is_broken_or_anothers_counts_as_none() {
        let bench = Bench::new(33);
        let (all, _) = bench.look();
        let good = fs::read(bench.file()).unwrap();
        for length in [0, 7, 40, good.len() / 2, good.len() - 1] {
            fs::write(bench.file(), &good[..length]).unwrap();
            assert_eq!(bench.look(), (all.clone(), 33), "{length}");
        }
        let mut other = good.clone();
        other[0] += 1;
        fs::write(bench.file(), other).unwrap();
        assert_eq!(bench.look(), (all.clone(), 33));
        let huge: Vec<u8> = good.iter().map(|_| 0xff).collect();
        fs::write(bench.file(), huge).unwrap();
        assert_eq!(bench.look(), (all, 33));
    }

    #[test]
    fn few_files_need_no_index_and_there_are_not_many() {
        let bench = Bench::new(LEAST - 1);
        bench.look();
        assert!(!bench.index().exists());
        let bench = Bench::new(LEAST);
        fs::create_dir(bench.index()).unwrap();
        for n in 0..MOST_PLACES + 5 {
            fs::write(bench.index().join(n.to_string()), "").unwrap();
        }
        bench.look();
        assert_eq!(fs::read_dir(bench.index()).unwrap().count(), MOST_PLACES);
        assert!(bench.file().exists());
    }
}
