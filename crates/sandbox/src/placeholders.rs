//! Placeholders for files that a command must not create.
//!
//! A missing file cannot be made read-only. So while commands run, a placeholder is there that no program can use: a
//! socket without permissions, which git and other programs skip, or, where git would not, a file with the content of
//! git's default. It is removed when the last command has ended. Concurrent commands share it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use rustix::io::Errno;

use crate::Sandbox;
use crate::resolve::{Resolved, resolve};

/// The mode of directories that only hold placeholders. It is unusual enough to mark them, and gives the same access as
/// an ordinary mode.
const OURS: u32 = 0o1755;

/// The mode of placeholder files.
const OUR_FILE: u32 = 0o1444;

/// Files of git that must not be sockets, with the content that equals a missing file.
const NEUTRAL: [(&str, &[u8]); 6] = [
    (".gitconfig", b""),
    ("attributes", b""),
    ("commondir", b".\n"),
    ("config.worktree", b""),
    // The user's, in `.config`.
    ("git/config", b""),
    ("gitconfig", b""),
];

/// The longest placeholder: git gives the files that it writes the mode of the previous ones.
const LONGEST_NEUTRAL: u64 = 2;

/// The placeholders of one command. Dropping it releases them.
#[derive(Debug, Default)]
pub(crate) struct Placeholders {
    /// Directories that every process with placeholders below them locks.
    locks: BTreeMap<PathBuf, File>,
    places: Vec<PathBuf>,
}

impl Placeholders {
    /// Makes a placeholder for every path that is denied, missing, and in a writable directory.
    pub(crate) fn create(sandbox: &Sandbox) -> io::Result<Self> {
        let mut held = Self::default();
        if sandbox.deny_write.is_empty() {
            return Ok(held);
        }
        let border = Border::of(sandbox);
        let missing = held.lock_all(&border, sandbox)?;
        for (path, found) in missing {
            match stand_in(&found, is_for_directory(path)) {
                Ok(place) => held.places.push(place),
                // The view keeps such a directory unchanged.
                Err(error) if is_closed(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(held)
    }

    /// Locks what must be locked for every missing path, and returns these paths. They are looked for again after each
    /// lock, because other processes remove placeholders until it is taken: those returned were found under all locks.
    fn lock_all<'a>(
        &mut self,
        border: &Border,
        sandbox: &'a Sandbox,
    ) -> io::Result<Vec<(&'a PathBuf, Resolved)>> {
        loop {
            let missing = border.missing(sandbox);
            let needed = missing.iter().flat_map(|(_, found)| border.locked_for(&found.path));
            let unlocked: BTreeSet<PathBuf> =
                needed.filter(|directory| !self.locks.contains_key(directory)).collect();
            if unlocked.is_empty() {
                return Ok(missing);
            }
            for directory in unlocked {
                let lock = lock(&directory)?;
                self.locks.insert(directory, lock);
            }
        }
    }
}

impl Drop for Placeholders {
    /// The last process with placeholders below a directory removes them. Of several that end at once, each releases
    /// its lock before it tries an exclusive one, so that one of them succeeds.
    fn drop(&mut self) {
        let is_alone = |lock: &File| {
            let _ = flock(lock, FlockOperation::Unlock);
            flock(lock, FlockOperation::NonBlockingLockExclusive).is_ok()
        };
        let alone: BTreeSet<&Path> = self
            .locks
            .iter()
            .filter(|(_, lock)| is_alone(lock))
            .map(|(directory, _)| directory.as_path())
            .collect();
        let is_free = |place: &&PathBuf| {
            // Of several locks the nearest decides: commands of other projects also use a directory above.
            let nearest = place.ancestors().find(|above| self.locks.contains_key(*above));
            nearest.is_some_and(|nearest| alone.contains(nearest))
        };
        let free: Vec<&PathBuf> = self.places.iter().filter(is_free).collect();
        for place in &free {
            take_away(place);
        }
        // A directory may have held several of them.
        for place in &free {
            take_away_directories(place);
        }
    }
}

/// The directories in which a sandbox lets files be created, as far as they exist.
struct Border {
    write: Vec<PathBuf>,
    write_within: Vec<PathBuf>,
    denied: Vec<PathBuf>,
}

impl Border {
    fn of(sandbox: &Sandbox) -> Self {
        let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().filter_map(|path| path.canonicalize().ok()).collect()
        };
        let directories = |paths: &[PathBuf]| -> Vec<PathBuf> {
            real(paths).into_iter().filter(|path| path.is_dir()).collect()
        };
        Self {
            write: directories(&sandbox.write),
            write_within: directories(&sandbox.write_within),
            denied: real(&sandbox.deny_write),
        }
    }

    /// The denied paths with a missing part in a writable directory.
    fn missing<'a>(&self, sandbox: &'a Sandbox) -> Vec<(&'a PathBuf, Resolved)> {
        let denied = sandbox.deny_write.iter();
        denied.filter_map(|path| Some((path, self.find_missing(path)?))).collect()
    }

    /// Returns the place of a denied path, if it is missing or only a placeholder, in a writable directory.
    fn find_missing(&self, path: &Path) -> Option<Resolved> {
        loop {
            let found = resolve(path).ok()?;
            if !found.exists() {
                return self.is_open(&found.path).then_some(found);
            }
            match fs::symlink_metadata(&found.path) {
                Ok(metadata) => {
                    let is_open = || found.path.parent().is_some_and(|it| self.is_open(it));
                    return (marks_placeholder(&metadata) && is_open()).then_some(found);
                }
                // Another process has just removed it: it is missing again.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
        }
    }

    /// Whether files can be created in this directory. The nearest listed path decides.
    fn is_open(&self, directory: &Path) -> bool {
        let nearest = |places: &[PathBuf]| {
            let above = places.iter().filter(|place| directory.starts_with(place));
            above.map(|place| place.components().count()).max()
        };
        let is_written = nearest(&self.write).is_some();
        is_written
            && match (nearest(&self.denied), nearest(&self.write_within)) {
                (Some(denied), Some(within)) => within > denied,
                (denied, _) => denied.is_none(),
            }
    }

    /// The directories to lock for a missing path. The root is none of them: unrelated commands share it.
    fn locked_for(&self, place: &Path) -> Vec<PathBuf> {
        let roots = self.write.iter().chain(&self.write_within);
        let above = |root: &&PathBuf| place.starts_with(root) && *root != Path::new("/");
        let roots: Vec<PathBuf> = roots.filter(above).cloned().collect();
        if !roots.is_empty() {
            return roots;
        }
        place.ancestors().find(|it| !is_placeholder(it)).map(Path::to_owned).into_iter().collect()
    }
}

fn is_for_directory(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Makes a placeholder at a missing path; returns its path.
fn stand_in(found: &Resolved, as_directory: bool) -> io::Result<PathBuf> {
    let mut place = found.path.clone();
    let Some((last, directories)) = found.missing.split_last() else { return Ok(place) };
    for name in directories {
        place.push(name);
        create_directory(&place)?;
    }
    place.push(last);
    let neutral = NEUTRAL.iter().find(|(name, _)| place.ends_with(name));
    if as_directory {
        create_directory(&place)?;
    } else if let Some((_, content)) = neutral {
        create_file(&place, content)?;
    } else {
        match mknodat(CWD, &place, FileType::Socket, Mode::empty(), 0) {
            // Another command needs it at the same time.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(place)
}

fn create_directory(place: &Path) -> io::Result<()> {
    // The mode marks it from its first moment on, whatever the umask leaves of it: others may look at any time.
    match DirBuilder::new().mode(OURS).create(place) {
        Ok(()) => fs::set_permissions(place, Permissions::from_mode(OURS)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn create_file(place: &Path, content: &[u8]) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(OUR_FILE).open(place) {
        Ok(mut file) => {
            file.write_all(content)?;
            file.set_permissions(Permissions::from_mode(OUR_FILE))
        }
        // Another process needs it at the same time.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

/// Whether a path is only a placeholder, while a command runs.
pub fn is_placeholder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| marks_placeholder(&metadata))
}

fn marks_placeholder(metadata: &fs::Metadata) -> bool {
    let mode = metadata.permissions().mode() & 0o7777;
    (metadata.file_type().is_socket() && mode == 0)
        || (metadata.is_dir() && is_under_a_umask(mode, OURS, 0o700))
        || (metadata.is_file()
            && is_under_a_umask(mode, OUR_FILE, 0o400)
            && metadata.len() <= LONGEST_NEUTRAL)
}

/// Whether a mode is what a umask leaves of ours, which is the case until it is set. No usual umask takes the rights of
/// the owner.
fn is_under_a_umask(mode: u32, ours: u32, least: u32) -> bool {
    const STICKY: u32 = 0o1000;
    mode & !ours == 0 && mode & (STICKY | least) == STICKY | least
}

fn take_away(place: &Path) {
    if !is_placeholder(place) {
        return make_ordinary(place, OUR_FILE, 0o644);
    }
    let removed = if place.is_dir() { fs::remove_dir(place) } else { fs::remove_file(place) };
    if let Err(error) = removed {
        tracing::debug!(path = %place.display(), %error, "cannot take a placeholder away");
        make_ordinary(place, OURS, 0o755);
    }
}

/// Restores the usual mode: another program has replaced the placeholder, and its file must not keep our mode.
fn make_ordinary(place: &Path, ours: u32, usual: u32) {
    let mode = fs::symlink_metadata(place).map(|metadata| metadata.permissions().mode() & 0o7777);
    if mode.is_ok_and(|mode| mode == ours) {
        let _ = fs::set_permissions(place, Permissions::from_mode(usual));
    }
}

/// Removes the directories that only held placeholders.
fn take_away_directories(place: &Path) {
    for directory in place.ancestors().skip(1).take_while(|directory| is_placeholder(directory)) {
        if fs::remove_dir(directory).is_err() {
            // A program has put a file into it meanwhile: now it is an ordinary directory.
            let _ = fs::set_permissions(directory, Permissions::from_mode(0o755));
        }
    }
}

/// Takes a shared lock on a directory. Only a process that cleans up holds an exclusive one, and not for long.
fn lock(directory: &Path) -> io::Result<File> {
    const TRIES: usize = 400;
    let file = File::open(directory)?;
    for _ in 0..TRIES {
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => sleep(Duration::from_millis(5)),
            result => return result.map(|()| file).map_err(Into::into),
        }
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "another program has locked the directory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn sandbox(root: &Path, denied: &[&str]) -> Sandbox {
        Sandbox {
            write: vec![root.to_owned()],
            deny_write: denied.iter().map(|name| root.join(name)).collect(),
            ..Sandbox::default()
        }
    }

    #[test]
    fn the_last_to_leave_clears_up() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        fs::write(root.join("there"), "kept").unwrap();
        let sandbox = sandbox(root, &["file", "deep/er/file", "dir/", "there"]);
        let first = Placeholders::create(&sandbox).unwrap();
        assert_eq!(names(root), ["deep", "dir", "file", "there"]);
        assert!(is_placeholder(&root.join("deep/er/file")));
        let second = Placeholders::create(&sandbox).unwrap();
        drop(first);
        assert_eq!(names(root), ["deep", "dir", "file", "there"]);
        drop(second);
        assert_eq!(names(root), ["there"]);
        assert_eq!(fs::read_to_string(root.join("there")).unwrap(), "kept");
    }

    #[test]
    fn what_git_would_trip_over_says_what_git_does_without_it() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        fs::create_dir_all(root.join(".git/info")).unwrap();
        let sandbox = sandbox(root, &[".git/commondir", ".git/info/attributes"]);
        let held = Placeholders::create(&sandbox).unwrap();
        assert_eq!(fs::read_to_string(root.join(".git/commondir")).unwrap(), ".\n");
        assert_eq!(fs::read_to_string(root.join(".git/info/attributes")).unwrap(), "");
        let second = Placeholders::create(&sandbox).unwrap();
        drop(held);
        assert_eq!(names(&root.join(".git")), ["commondir", "info"]);
        drop(second);
        assert_eq!(names(&root.join(".git")), ["info"]);
        assert_eq!(names(&root.join(".git/info")), Vec::<String>::new());
        // Every git of the user's reads these, in the sandbox or not.
        let users = [".gitconfig", ".config/git/config"];
        let held = Placeholders::create(&self::sandbox(root, &users)).unwrap();
        for name in users {
            assert_eq!(fs::read_to_string(root.join(name)).unwrap(), "", "{name}");
        }
        drop(held);
        assert_eq!(names(root), [".git"]);
    }

    #[test]
    fn a_file_of_another_program_at_a_placeholder_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        let held = Placeholders::create(&sandbox(root, &["file", "deep/file"])).unwrap();
        fs::remove_file(root.join("file")).unwrap();
        fs::write(root.join("file"), "new").unwrap();
        fs::write(root.join("deep/other"), "new").unwrap();
        drop(held);
        assert_eq!(names(root), ["deep", "file"]);
        assert_eq!(names(&root.join("deep")), ["other"]);
        let mode = fs::metadata(root.join("deep")).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o755);
    }

    #[test]
    fn what_another_program_writes_over_a_placeholder_stays_and_loses_our_mode() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        let sandbox = Sandbox {
            deny_write: vec![root.join(".gitconfig"), root.join("git/")],
            ..sandbox(root, &[])
        };
        let held = Placeholders::create(&sandbox).unwrap();
        // As git writes its configuration: a new file with the mode of the old one.
        let mode = fs::metadata(root.join(".gitconfig")).unwrap().permissions();
        fs::write(root.join("lock"), "[user]").unwrap();
        fs::set_permissions(root.join("lock"), mode).unwrap();
        fs::rename(root.join("lock"), root.join(".gitconfig")).unwrap();
        fs::write(root.join("git/ignore"), "x").unwrap();
        drop(held);
        assert_eq!(fs::read_to_string(root.join(".gitconfig")).unwrap(), "[user]");
        assert_eq!(names(&root.join("git")), ["ignore"]);
        for (name, usual) in [(".gitconfig", 0o644), ("git", 0o755)] {
            let mode = fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, usual, "{name}");
        }
    }

    #[test]
    fn read_only_places_are_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        fs::create_dir(scratch.path().join("w")).unwrap();
        let sandbox = Sandbox {
            write: vec![scratch.path().join("w")],
            deny_write: vec![scratch.path().join("outside")],
            ..Sandbox::default()
        };
        let held = Placeholders::create(&sandbox).unwrap();
        assert!(held.places.is_empty() && held.locks.is_empty());
        assert_eq!(names(scratch.path()), ["w"]);
    }

    #[test]
    fn only_places_where_something_can_be_created_are_held() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("top/own/kept")).unwrap();
        let at = |name: &str| root.join(name);
        for write in [root.clone(), "/".into()] {
            let sandbox = Sandbox {
                write: vec![write, at("top")],
                deny_write: vec![
                    at("top"),
                    at("top/missing"),
                    at("top/own/missing"),
                    at("top/own/kept"),
                    at("top/own/kept/missing"),
                ],
                write_within: vec![at("top/own"), at("top/own")],
                ..Sandbox::default()
            };
            let held = Placeholders::create(&sandbox).unwrap();
            let other = Placeholders::create(&sandbox).unwrap();
            assert_eq!(names(&at("top")), ["own"]);
            assert_eq!(names(&at("top/own")), ["kept", "missing"]);
            assert_eq!(names(&at("top/own/kept")), Vec::<String>::new());
            assert!(!held.locks.contains_key(Path::new("/")));
            drop(held);
            assert_eq!(names(&at("top/own")), ["kept", "missing"]);
            drop(other);
            assert_eq!(names(&at("top/own")), ["kept"]);
        }
    }

    #[test]
    fn commands_of_other_projects_keep_no_place_from_being_given_back() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for project in ["one", "two"] {
            fs::create_dir(root.join(project)).unwrap();
        }
        for shared in [root.as_path(), Path::new("/")] {
            let project = |name: &str| Sandbox {
                write: vec![root.join(name), shared.to_owned()],
                deny_write: vec![root.join(name).join("file")],
                ..Sandbox::default()
            };
            let one = Placeholders::create(&project("one")).unwrap();
            let two = Placeholders::create(&project("two")).unwrap();
            drop(one);
            assert_eq!(names(&root.join("one")), Vec::<String>::new());
            assert_eq!(names(&root.join("two")), ["file"]);
            drop(two);
            let open = Sandbox { write: vec!["/".into()], ..project("one") };
            let one = Placeholders::create(&open).unwrap();
            let two = Placeholders::create(&Sandbox { write: vec!["/".into()], ..project("two") });
            drop(one);
            assert_eq!(names(&root.join("one")), Vec::<String>::new());
            drop(two);
            assert_eq!(names(&root.join("two")), Vec::<String>::new());
        }
    }

    #[test]
    fn many_that_start_and_end_at_once_do_not_get_in_each_others_way() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        let mut sandbox = sandbox(&root, &["deep/one", "deep/two", "file", "a/file", "a/b/file"]);
        sandbox.write.extend([root.join("a"), root.join("a/b")]);
        for _ in 0..20 {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..5 {
                            let held = Placeholders::create(&sandbox).unwrap();
                            for place in &sandbox.deny_write {
                                assert!(is_placeholder(place), "{}", place.display());
                            }
                            drop(held);
                        }
                    });
                }
            });
            assert_eq!(names(&root), ["a"]);
            assert_eq!(names(&root.join("a")), ["b"]);
            assert_eq!(names(&root.join("a/b")), Vec::<String>::new());
        }
    }

    #[test]
    fn a_placeholder_that_another_removes_at_the_same_time_is_there_nevertheless() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let directories: Vec<PathBuf> =
            (0..20).map(|number| root.join(number.to_string())).collect();
        for directory in &directories {
            fs::create_dir(directory).unwrap();
        }
        let sandbox = Sandbox {
            deny_write: directories.iter().map(|directory| directory.join("file")).collect(),
            write: [vec![root], directories].concat(),
            ..Sandbox::default()
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..400 {
                        let held = Placeholders::create(&sandbox).unwrap();
                        let missing =
                            sandbox.deny_write.iter().find(|place| !is_placeholder(place));
                        assert_eq!(missing, None);
                        drop(held);
                    }
                });
            }
        });
    }

    #[test]
    fn what_a_dead_guard_left_is_taken_over() {
        let scratch = tempfile::tempdir().unwrap();
        let sandbox = sandbox(scratch.path(), &["deep/file"]);
        let mut dead = Placeholders::create(&sandbox).unwrap();
        dead.places.clear();
        drop(dead);
        assert_eq!(names(scratch.path()), ["deep"]);
        drop(Placeholders::create(&sandbox).unwrap());
        assert_eq!(names(scratch.path()), Vec::<String>::new());
    }
}
