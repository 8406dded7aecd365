//! Detection of changes below some directories since the last look.
//!
//! The kernel takes note; no task wakes up. A look reads the notes that came meanwhile, so a change is seen by
//! the first look after it, and what happens elsewhere in a busy directory costs nothing but a glance at its
//! name.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::{self, Errno};

/// The number of levels above a directory at which its creation and removal are watched: `project/.claude/agents`.
const ABOVE: usize = 2;

/// Events that may change the content of a directory.
const CONTENT: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// Events that may make a name mean another directory.
const NAMES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// Watches directories.
pub(super) struct DirectoryWatch {
    notes: OwnedFd,
    places: HashMap<i32, Concern>,
}

/// The events that count at a watched place.
enum Concern {
    All,
    Names(Vec<OsString>),
}

impl DirectoryWatch {
    /// Begins to watch; `None` where that is not possible, and then every look is a real one.
    pub(super) fn new(directories: &[PathBuf]) -> Option<Self> {
        let begun = Self::begin(directories);
        if let Err(error) = &begun {
            tracing::debug!(%error, "files cannot be watched");
        }
        begun.ok()
    }

    fn begin(directories: &[PathBuf]) -> io::Result<Self> {
        let notes = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut watch = Self { notes, places: HashMap::new() };
        for directory in directories {
            watch.add(directory)?;
        }
        Ok(watch)
    }

    fn add(&mut self, directory: &Path) -> io::Result<()> {
        // A directory that is not there yet is noticed when it appears in one that is.
        let mut ancestors = directory.ancestors().skip_while(|path| !path.is_dir()).peekable();
        if ancestors.peek() == Some(&directory) {
            self.add_tree(directory)?;
            ancestors.next();
        }
        for ancestor in ancestors.take(ABOVE) {
            self.add_name(ancestor, directory)?;
        }
        Ok(())
    }

    /// Everything below a directory, links included.
    fn add_tree(&mut self, directory: &Path) -> io::Result<()> {
        let place = inotify::add_watch(&self.notes, directory, CONTENT | WatchFlags::MASK_ADD)?;
        if let Some(Concern::All) = self.places.insert(place, Concern::All) {
            return Ok(());
        }
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                self.add_tree(&path)?;
            } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) && path.exists() {
                // The target of a link changes without a trace in the directory of the link.
                let file = inotify::add_watch(&self.notes, &path, CONTENT | WatchFlags::MASK_ADD)?;
                self.places.insert(file, Concern::All);
            }
        }
        Ok(())
    }

    /// The one entry of `ancestor` that leads to `directory`.
    fn add_name(&mut self, ancestor: &Path, directory: &Path) -> io::Result<()> {
        let below = directory.strip_prefix(ancestor).ok().and_then(|rest| rest.iter().next());
        let Some(name) = below else { return Ok(()) };
        let place = inotify::add_watch(&self.notes, ancestor, NAMES | WatchFlags::MASK_ADD)?;
        match self.places.entry(place).or_insert_with(|| Concern::Names(Vec::new())) {
            Concern::Names(names) if !names.iter().any(|known| known == name) => {
                names.push(name.to_owned());
            }
            Concern::All | Concern::Names(_) => {}
        }
        Ok(())
    }

    /// Tells whether there was a change since this was last asked.
    pub(super) fn has_changed(&self) -> bool {
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut notes = Reader::new(&self.notes, &mut space);
        let mut has_changed = false;
        loop {
            match notes.next() {
                Ok(note) => has_changed |= self.concerns(&note),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return has_changed,
                // Unknown counts as changed: the caller looks again.
                Err(_) => return true,
            }
        }
    }

    fn concerns(&self, note: &inotify::Event<'_>) -> bool {
        let lost = ReadFlags::QUEUE_OVERFLOW | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
        if note.events().intersects(lost) {
            return true;
        }
        match (self.places.get(&note.wd()), note.file_name()) {
            (Some(Concern::Names(names)), Some(name)) => {
                names.iter().any(|known| known.as_bytes() == name.to_bytes())
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(scratch: &Path, names: &[&str]) -> DirectoryWatch {
        let directories: Vec<PathBuf> = names.iter().map(|name| scratch.join(name)).collect();
        let watch = DirectoryWatch::new(&directories).unwrap();
        assert!(!watch.has_changed());
        watch
    }

    #[test]
    fn a_change_below_is_noticed_and_so_is_a_new_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let (there, absent) = (scratch.path().join("there"), scratch.path().join("absent/agents"));
        fs::create_dir_all(there.join("deep")).unwrap();
        let watch = watched(scratch.path(), &["there", "absent/agents"]);
        fs::write(there.join("deep/a.md"), "x").unwrap();
        assert!(watch.has_changed() && !watch.has_changed());
        fs::create_dir_all(&absent).unwrap();
        assert!(watch.has_changed());
    }

    #[test]
    fn a_directory_that_goes_or_is_exchanged_is_noticed() {
        let scratch = tempfile::tempdir().unwrap();
        let agents = scratch.path().join(".claude/agents");
        fs::create_dir_all(&agents).unwrap();
        let watch = watched(scratch.path(), &[".claude/agents"]);
        fs::rename(scratch.path().join(".claude"), scratch.path().join("away")).unwrap();
        assert!(watch.has_changed());
        fs::create_dir_all(&agents).unwrap();
        let watch = watched(scratch.path(), &[".claude/agents"]);
        fs::remove_dir(&agents).unwrap();
        assert!(watch.has_changed());
    }

    #[test]
    fn what_a_link_leads_to_is_watched_too() {
        let scratch = tempfile::tempdir().unwrap();
        let (agents, elsewhere) = (scratch.path().join("agents"), scratch.path().join("elsewhere"));
        fs::create_dir_all(&agents).unwrap();
        fs::create_dir_all(&elsewhere).unwrap();
        fs::write(scratch.path().join("one.md"), "x").unwrap();
        std::os::unix::fs::symlink("../one.md", agents.join("one.md")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", agents.join("more")).unwrap();
        std::os::unix::fs::symlink("../agents", elsewhere.join("round")).unwrap();
        let watch = watched(scratch.path(), &["agents"]);
        fs::write(scratch.path().join("one.md"), "y").unwrap();
        assert!(watch.has_changed());
        fs::write(elsewhere.join("two.md"), "y").unwrap();
        assert!(watch.has_changed());
    }

    #[test]
    fn work_beside_it_is_no_change_and_neither_is_reading() {
        let scratch = tempfile::tempdir().unwrap();
        let agents = scratch.path().join(".claude/agents");
        fs::create_dir_all(&agents).unwrap();
        fs::write(agents.join("a.md"), "x").unwrap();
        let watch = watched(scratch.path(), &[".claude/agents", ".claude/skills"]);
        for n in 0..1_000 {
            fs::write(scratch.path().join(format!("{n}.rs")), "x").unwrap();
        }
        fs::write(scratch.path().join(".claude/settings.json"), "{}").unwrap();
        fs::read(agents.join("a.md")).unwrap();
        assert!(!watch.has_changed());
    }

    #[test]
    fn notes_that_were_lost_mean_a_change() {
        let limit: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let watch = watched(scratch.path(), &[".claude/agents"]);
        // A name that differs each time, for equal notes in a row are one.
        for n in 0..=limit / 2 {
            let file = scratch.path().join(n.to_string());
            fs::write(&file, "").unwrap();
            fs::remove_file(&file).unwrap();
        }
        assert!(watch.has_changed());
    }
}
