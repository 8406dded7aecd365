//! Indexes that a later process takes over: it sees what a fresh look sees, and reads less.

use std::io;
use std::os::unix::fs::symlink;
use std::path::Component;

use centurion_protocol::World;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::scan::{FileChoice, FoundFile, RefusedPath, VisitBounds};

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

    fn read(from: &mut KeptReader<'_>) -> Option<Self> {
        from.text().map(str::to_owned)
    }
}

struct Bench {
    scratch: tempfile::TempDir,
    place: ScanPlace,
}

impl Bench {
    fn new(count: usize) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("skills");
        for n in 0..count {
            fs::create_dir_all(root.join(format!("s{n}"))).unwrap();
            fs::write(root.join(format!("s{n}/SKILL.md")), format!("text {n}")).unwrap();
        }
        let place =
            ScanPlace { root, within: None, pick: FileChoice::Skills, owner: "o".to_owned() };
        Self { scratch, place }
    }

    fn index(&self) -> PathBuf {
        self.scratch.path().join("index")
    }

    fn file(&self) -> PathBuf {
        KeptIndex { directory: &self.index() }.file(&self.place)
    }

    /// The findings of a new process, and how many files it reads for that.
    fn look(&self) -> (Vec<String>, usize) {
        let (found, count, _) = self.look_at_most(usize::MAX);
        (found, count)
    }

    /// The same where no more than so many are wanted, with how many were left unread.
    fn look_at_most(&self, most: usize) -> (Vec<String>, usize, usize) {
        let (directory, mut count) = (self.index(), 0);
        let index = KeptIndex { directory: &directory };
        let mut memo = Memo::default();
        memo.recall(&self.place, index);
        let extent = VisitBounds { most, ..VisitBounds::default() };
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
    // A caller that wants all of them has all.
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
fn a_changed_index_leads_out_of_no_place() {
    let bench = Bench::new(33);
    let (all, _) = bench.look();
    fs::create_dir_all(bench.scratch.path().join("x")).unwrap();
    fs::write(bench.scratch.path().join("x/SKILL.md"), "out of the place").unwrap();
    let good = fs::read(bench.file()).unwrap();
    let at = memchr::memmem::find(&good, b"\x03\0\0\0\0\0\0\0s10").unwrap() + 8;
    for name in [*b"../", *b"..x", *b"x/x", *b".xx"] {
        let mut forged = good.clone();
        forged[at..at + 3].copy_from_slice(&name);
        fs::write(bench.file(), forged).unwrap();
        assert_eq!(bench.look(), (all.clone(), 33), "{name:?}");
    }
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

/// A change between two starts, of one or two of the skills.
#[derive(Clone, Copy, Debug)]
enum Change {
    Add,
    Remove,
    /// Writes as much as there was, and sets the time of modification back.
    Rewrite,
    /// The same by a file that is renamed over the skill's.
    Replace,
    /// Moves one folder to the name of another.
    Move,
    Respell,
    RemoveFile,
    LinkInside,
    LinkOutside,
}

fn changes() -> impl Strategy<Value = Vec<(Change, usize, usize)>> {
    use Change::{
        Add, LinkInside, LinkOutside, Move, Remove, RemoveFile, Replace, Respell, Rewrite,
    };
    let all = [Add, Remove, Rewrite, Replace, Move, Respell, RemoveFile, LinkInside, LinkOutside];
    prop::collection::vec((prop::sample::select(all.to_vec()), 0..50_usize, 0..50_usize), 1..6)
}

impl Bench {
    fn make(&self, change: Change, one: usize, other: usize) {
        let folder = |n: usize| self.place.root.join(format!("s{n}"));
        let (folder, other, file) = (folder(one), folder(other), folder(one).join("SKILL.md"));
        // A change that does not fit the files changes nothing.
        let _ = match change {
            Change::Add => fs::create_dir_all(&folder).and_then(|()| fs::write(&file, "added")),
            Change::Remove => remove(&folder),
            Change::Rewrite => rewritten(&file, &file),
            Change::Replace => {
                let new = self.scratch.path().join("new");
                rewritten(&file, &new).and_then(|()| fs::rename(new, &file))
            }
            Change::Move => remove(&other).and_then(|()| fs::rename(&folder, &other)),
            Change::Respell => fs::rename(&file, folder.join("skill.md")),
            Change::RemoveFile => fs::remove_file(&file),
            Change::LinkInside => remove(&folder).and_then(|()| symlink(&other, &folder)),
            Change::LinkOutside => remove(&folder).and_then(|()| symlink("/etc", &folder)),
        };
    }

    /// Waits until the coarse clock of the file system has gone on. What changed less than two seconds ago is never kept,
    /// so that no change falls into the tick of what is kept.
    fn tick(&self) {
        let probe = self.scratch.path().join("probe");
        let written = || {
            fs::write(&probe, "").unwrap();
            Stamp::of(&probe).unwrap()
        };
        let first = written();
        while written() == first {}
    }

    /// The findings and refusals of a look, with an index or without.
    fn findings(
        &self,
        most: usize,
        index: Option<KeptIndex<'_>>,
    ) -> (Vec<String>, Vec<RefusedPath>, usize) {
        let mut memo = Memo::default();
        if let Some(index) = index {
            memo.recall(&self.place, index);
        }
        let extent = VisitBounds { most, ..VisitBounds::default() };
        let visit = memo.visit_part(&self.place, extent, &Later, |_, text| text.to_owned());
        if let Some(index) = index.filter(|_| !visit.is_unchanged) {
            memo.keep(&self.place, index);
        }
        let shown =
            |found: &FoundFile<String>| format!("{}: {}", found.path.display(), found.value);
        (visit.found.iter().map(shown).collect(), visit.refused, visit.unread)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}

/// Writes another text of the same length, as old as the file is.
fn rewritten(file: &Path, to: &Path) -> io::Result<()> {
    let before = fs::metadata(file)?.modified()?;
    let text: String = fs::read_to_string(file)?.chars().rev().collect();
    fs::write(to, &text)?;
    fs::File::options().write(true).open(to)?.set_modified(before)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn an_index_shows_what_a_fresh_look_shows_whatever_changed_since(
        starts in prop::collection::vec(changes(), 1..5),
        most in prop::sample::select(vec![35_usize, 60]),
        is_bounded in any::<bool>(),
    ) {
        let mut bench = Bench::new(40);
        bench.place.within = is_bounded.then(|| bench.scratch.path().to_owned());
        let directory = bench.index();
        let index = KeptIndex { directory: &directory };
        bench.findings(most, Some(index));
        for changes in starts {
            bench.tick();
            for (change, one, other) in changes {
                bench.make(change, one, other);
            }
            prop_assert_eq!(bench.findings(most, Some(index)), bench.findings(most, None));
        }
    }
}
