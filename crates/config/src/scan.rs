//! Looking for definitions in directories, again and again: what has not changed costs one look.
//!
//! Nothing outside of the scope that a directory belongs to is read, by whatever link it is reached,
//! and no tree is so wide, deep or tangled that looking through it does not end.

mod kept;

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_files::{Directory, Kind, Listed};
use centurion_protocol::World;
use foldhash::fast::RandomState;

use crate::ReadRules;
use crate::files::{self, FileError, Stamp, is_absence};
use crate::frontmatter::decode;

pub(crate) use kept::{Keep, KeptIndex, KeptReader, Writer};

/// A definition that is larger than this is something else.
const LARGEST: u64 = 1024 * 1024;

/// Most folders in each other.
const DEEPEST: usize = 12;

/// Most files and folders of one place.
const MOST_ENTRIES: usize = 50_000;

/// The seconds after which a stamp that is still the same proves that nothing changed.
const SETTLED_AFTER: i64 = 2;

/// Bytes that are read of a file for its head, unless that is longer.
const HEAD: usize = 4096;

/// Name of the file of a skill. Other spellings are found more slowly.
const SKILL_FILE: &str = "SKILL.md";

/// Name of a folder among skills that is none: programs of others keep in it what they fetch.
pub(crate) const SYNCED: &str = "synced";

/// Choice of the files of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FileChoice {
    /// All Markdown below it.
    Markdown,
    /// The `SKILL.md` of each folder in it.
    Skills,
    /// Its own `SKILL.md`.
    Skill,
}

impl FileChoice {
    fn wants_file(self, depth: usize, name: &OsStr) -> bool {
        let is_skill = || name.eq_ignore_ascii_case(SKILL_FILE);
        match self {
            Self::Markdown => {
                Path::new(name).extension().is_some_and(|it| it.eq_ignore_ascii_case("md"))
            }
            Self::Skills => depth == 1 && is_skill(),
            Self::Skill => depth == 0 && is_skill(),
        }
    }

    fn wants_folder(self, depth: usize, name: &OsStr) -> bool {
        match self {
            Self::Markdown => true,
            Self::Skills => depth == 0 && name != SYNCED,
            Self::Skill => false,
        }
    }
}

/// Part of each file that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Portion {
    Whole,
    /// The frontmatter and some text behind it.
    Head,
}

/// Bounds of a visit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitBounds {
    pub(crate) portion: Portion,
    /// The most files that are read; the others are counted.
    pub(crate) most: usize,
}

impl Default for VisitBounds {
    fn default() -> Self {
        Self { portion: Portion::Whole, most: usize::MAX }
    }
}

/// A directory of definitions, or a single file of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScanPlace {
    pub(crate) root: PathBuf,
    /// Directory that links must not lead out of; `None` where all of the machine may be read.
    pub(crate) within: Option<PathBuf>,
    pub(crate) pick: FileChoice,
    /// Its owner, for the same file may mean something else to another.
    pub(crate) owner: String,
}

/// Findings in a place.
pub(crate) struct Visit<T> {
    /// In the order of their paths.
    pub(crate) found: Vec<FoundFile<T>>,
    pub(crate) refused: Vec<RefusedPath>,
    /// Number of files and folders that were left unread, because there are too many.
    pub(crate) unread: usize,
    /// Set where all is as it was at the last visit.
    pub(crate) is_unchanged: bool,
}

pub(crate) struct FoundFile<T> {
    pub(crate) path: PathBuf,
    /// The version of the file that was looked at, which also tells what it is under whatever names it can be reached.
    pub(crate) stamp: Stamp,
    pub(crate) value: Arc<T>,
}

/// Something that could not be read or must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedPath {
    pub(crate) path: PathBuf,
    pub(crate) reason: String,
}

/// Memory of earlier visits.
pub(crate) struct Memo<T> {
    places: HashMap<ScanPlace, KnownPlace<T>>,
    read_rules: ReadRules,
}

/// Values by path. The key is text, whose hash is cheaper than a path's.
type ByPath<T> = HashMap<OsString, T, RandomState>;

/// Listings and files of a place.
struct KnownPlace<T> {
    listings: ByPath<Listing>,
    files: ByPath<CachedFile<T>>,
    refused: Vec<RefusedPath>,
}

/// Entries of a directory.
struct Listing {
    stamp: Stamp,
    is_settled: bool,
    entries: Arc<[Listed]>,
    /// Number of entries that were looked at until enough was found.
    needed: usize,
    /// Number of further entries, which are not kept.
    more: usize,
}

struct CachedFile<T> {
    stamp: Stamp,
    is_settled: bool,
    value: Arc<T>,
    /// Set when the visit under way finds the file again.
    is_found: bool,
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self { places: HashMap::new(), read_rules: ReadRules::default() }
    }
}

impl<T> Memo<T> {
    /// A memory of nothing, whose visits leave out what these rules deny.
    pub(crate) fn under(read_rules: &ReadRules) -> Self {
        Self { read_rules: read_rules.clone(), ..Self::default() }
    }

    /// Leaves out of all further visits what these rules deny.
    pub(crate) fn bind(&mut self, read_rules: &ReadRules) {
        self.read_rules = read_rules.clone();
    }

    /// Looks through a place. `read` is asked for files that are new or have changed.
    pub(crate) fn visit(
        &mut self,
        place: &ScanPlace,
        world: &dyn World,
        read: impl FnMut(&Path, &str) -> T,
    ) -> Visit<T> {
        self.visit_part(place, VisitBounds::default(), world, read)
    }

    /// The same for a part of its files, or of each file.
    pub(crate) fn visit_part(
        &mut self,
        place: &ScanPlace,
        extent: VisitBounds,
        world: &dyn World,
        read: impl FnMut(&Path, &str) -> T,
    ) -> Visit<T> {
        let before = self.places.remove(place);
        let is_first = before.is_none();
        let before = before.unwrap_or_else(|| KnownPlace {
            listings: ByPath::default(),
            files: ByPath::default(),
            refused: Vec::new(),
        });
        let KnownPlace { listings: listed_before, files, refused: refused_before } = before;
        let known_files = files.len();
        let mut walk = Walk {
            pick: place.pick,
            extent,
            root: None,
            within: place.within.as_deref().and_then(|it| it.canonicalize().ok()),
            is_bounded: place.within.is_some(),
            settled_until: world.now().as_second() - SETTLED_AFTER,
            listed_before,
            listings: ByPath::default(),
            files,
            found: Vec::with_capacity(known_files),
            refused: Vec::new(),
            linked: HashSet::new(),
            entries: 0,
            unread: 0,
            has_changed: is_first,
            head: Vec::new(),
            path: OsString::new(),
            rules: Some(&self.read_rules).filter(|rules| !rules.is_unbound()),
            real_root: PathBuf::new(),
            read,
        };
        walk.start(&place.root);
        let Walk { listings, mut files, found, refused, unread, has_changed, .. } = walk;
        files.retain(|_, known| std::mem::take(&mut known.is_found));
        let is_unchanged = !has_changed && files.len() == known_files && refused_before == refused;
        let known_place = KnownPlace { listings, files, refused: refused.clone() };
        self.places.insert(place.clone(), known_place);
        Visit { found, refused, unread, is_unchanged }
    }

    /// Forgets the places that no source asks for any more.
    pub(crate) fn keep_only(&mut self, places: &HashSet<ScanPlace>) {
        self.places.retain(|place, _| places.contains(place));
    }
}

/// One way through a place.
struct Walk<'r, T, R> {
    pick: FileChoice,
    extent: VisitBounds,
    /// The given path of the place, and the directory that was opened there.
    root: Option<(PathBuf, Directory)>,
    within: Option<PathBuf>,
    is_bounded: bool,
    /// Stamps from before this second are sure.
    settled_until: i64,
    /// The listings of the last visit that this one has not asked for yet.
    listed_before: ByPath<Listing>,
    listings: ByPath<Listing>,
    /// The files of the last visit, and those that this one finds.
    files: ByPath<CachedFile<T>>,
    found: Vec<FoundFile<T>>,
    refused: Vec<RefusedPath>,
    /// The real paths of folders that links led to: each is looked through once.
    linked: HashSet<PathBuf>,
    entries: usize,
    unread: usize,
    has_changed: bool,
    /// Buffer for the beginning of a file.
    head: Vec<u8>,
    /// Buffer for the path of a file: most of hundreds are known, and need none of their own.
    path: OsString,
    /// Deny rules for reading, where there are any.
    rules: Option<&'r ReadRules>,
    /// The path of the place with links resolved, where there are rules.
    real_root: PathBuf,
    read: R,
}

impl<T, R: FnMut(&Path, &str) -> T> Walk<'_, T, R> {
    fn start(&mut self, root: &Path) {
        let Ok(metadata) = fs::metadata(root) else { return };
        // Any directory above may be a link, too.
        if !self.is_inside(root) {
            return;
        }
        if metadata.is_dir() {
            if let Ok(real) = root.canonicalize() {
                let opened = Directory::open(&real).ok();
                self.root = opened.map(|directory| (root.to_owned(), directory));
                self.real_root = real;
            }
            self.folder(root, Stamp::from(&metadata), 0);
        } else {
            self.file(root, &metadata);
        }
    }

    /// Checks that the real path stays within the scope.
    fn is_inside(&mut self, path: &Path) -> bool {
        if !self.is_bounded {
            return true;
        }
        let real = path.canonicalize();
        let is_inside = match (&self.within, &real) {
            (Some(within), Ok(real)) => real.starts_with(within),
            _ => false,
        };
        if !is_inside {
            self.refuse(path, "is a link that leads elsewhere, and is not followed".to_owned());
        }
        is_inside
    }

    fn refuse(&mut self, path: &Path, reason: String) {
        self.refused.push(RefusedPath { path: path.to_owned(), reason });
    }

    fn folder(&mut self, folder: &Path, stamp: Stamp, depth: usize) {
        if depth > DEEPEST {
            self.refuse(folder, format!("lies more than {DEEPEST} folders deep"));
            return;
        }
        let listed = self.list(folder, stamp).and_then(|(entries, more)| {
            let seen = self.entries_of(folder, &entries, depth);
            if more == 0 || self.found.len() >= self.extent.most {
                return Ok((seen, more));
            }
            // Some of the first are no skills any more: the others are needed.
            let all = self.list_anew(folder, stamp)?;
            let others = all.get(entries.len()..).unwrap_or_default();
            Ok((entries.len() + self.entries_of(folder, others, depth), 0))
        });
        match listed {
            Ok((seen, more)) => {
                self.unread += more;
                if let Some(listing) = self.listings.get_mut(folder.as_os_str()) {
                    listing.needed = seen;
                }
            }
            Err(error) => self.refuse(folder, FileError::Unreadable(error).to_string()),
        }
    }

    /// Looks at the entries of a folder until enough was found; how many those are.
    fn entries_of(&mut self, folder: &Path, entries: &[Listed], depth: usize) -> usize {
        for (index, entry) in entries.iter().enumerate() {
            let is_enough = self.found.len() >= self.extent.most;
            self.entries += if is_enough { entries.len() - index } else { 1 };
            if self.entries > MOST_ENTRIES {
                self.refuse(folder, format!("more than {MOST_ENTRIES} files are not looked at"));
            }
            if is_enough {
                self.unread += entries.len() - index;
            }
            if is_enough || self.entries > MOST_ENTRIES {
                return index;
            }
            self.entry(folder, entry, depth);
        }
        entries.len()
    }

    /// The entries of a folder, from memory where nothing changed in it, and how many more there are.
    fn list(&mut self, folder: &Path, stamp: Stamp) -> io::Result<(Arc<[Listed]>, usize)> {
        if let Some(listing) = self.listed_before.remove(folder.as_os_str())
            && listing.is_settled
            && listing.stamp == stamp
        {
            let listed = (Arc::clone(&listing.entries), listing.more);
            self.listings.insert(folder.as_os_str().to_owned(), listing);
            return Ok(listed);
        }
        Ok((self.list_anew(folder, stamp)?, 0))
    }

    /// The entries of a folder, from disk.
    fn list_anew(&mut self, folder: &Path, stamp: Stamp) -> io::Result<Arc<[Listed]>> {
        self.has_changed = true;
        let mut entries = match &self.root {
            Some((root, directory)) if root == folder => directory.list(MOST_ENTRIES + 1)?,
            _ => Directory::open(&folder.canonicalize()?)?.list(MOST_ENTRIES + 1)?,
        };
        entries.retain(|entry| !entry.name.as_encoded_bytes().starts_with(b"."));
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let entries: Arc<[Listed]> = entries.into();
        let is_settled = stamp.changed_at() < self.settled_until;
        let (needed, kept) = (entries.len(), Arc::clone(&entries));
        let listing = Listing { stamp, is_settled, entries: kept, needed, more: 0 };
        self.listings.insert(folder.as_os_str().to_owned(), listing);
        Ok(entries)
    }

    fn entry(&mut self, folder: &Path, entry: &Listed, depth: usize) {
        let is_wanted = self.pick.wants_file(depth, &entry.name);
        let may_be_wanted = match entry.kind {
            Kind::File | Kind::Other => is_wanted,
            Kind::Directory => self.pick.wants_folder(depth, &entry.name),
            Kind::Link => is_wanted || self.pick.wants_folder(depth, &entry.name),
        };
        if !may_be_wanted {
            return;
        }
        let below = match (entry.kind, self.pick) {
            (Kind::File, _) => Some(None),
            (Kind::Directory, FileChoice::Skills) if depth == 0 => Some(Some(SKILL_FILE)),
            _ => None,
        };
        if let Some(below) = below {
            let mut path = std::mem::take(&mut self.path);
            join_into(&mut path, folder, &entry.name, below);
            let is_usual = self.plain_file(&path);
            self.path = path;
            if is_usual {
                return;
            }
        }
        let path = &folder.join(&entry.name);
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            // Gone since the folder was looked at, or a link to nothing.
            Err(error) if is_absence(&error) => {
                if entry.kind == Kind::Link && is_wanted {
                    self.refuse(path, "is a link that leads nowhere".to_owned());
                }
                return;
            }
            Err(error) => {
                self.refuse(path, FileError::Unreadable(error).to_string());
                return;
            }
        };
        let is_folder = metadata.is_dir();
        if (is_folder && !self.pick.wants_folder(depth, &entry.name)) || (!is_folder && !is_wanted)
        {
            return;
        }
        if entry.kind == Kind::Link {
            if !self.is_inside(path) {
                return;
            }
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            if is_folder && !self.linked.insert(real) {
                return;
            }
        }
        if is_folder {
            self.folder(path, Stamp::from(&metadata), depth + 1);
        } else {
            self.file(path, &metadata);
        }
    }

    /// Takes a regular file with no link on the way to it from the root. Most files are: a known one costs one look,
    /// another one an open. Returns `false` where it is something else.
    fn plain_file(&mut self, path: &OsStr) -> bool {
        let Some((root, directory)) = &self.root else { return false };
        let path = Path::new(path);
        let Some(below) = below(path, root) else { return false };
        if let Some(rules) = self.rules
            && let Some(denial) = rules.denial_of_definition(path, &self.real_root.join(below))
        {
            self.refuse(path, denial);
            return true;
        }
        if let Some(known) = self.files.get_mut(path.as_os_str())
            && known.is_settled
            && directory.stat(below.as_os_str()).is_ok_and(|it| known.stamp == Stamp::from(&it))
        {
            known.is_found = true;
            let (stamp, value) = (known.stamp, Arc::clone(&known.value));
            self.found.push(FoundFile { path: path.to_owned(), stamp, value });
            return true;
        }
        let Ok((file, metadata)) = directory.regular_file(below) else { return false };
        let stamp = Stamp::from(&metadata);
        self.has_changed = true;
        match self.extent.portion {
            Portion::Whole => self.take(path, stamp, files::bytes_in((file, metadata), LARGEST)),
            Portion::Head => {
                let mut head = std::mem::take(&mut self.head);
                let read = read_head(file, &metadata, &mut head);
                self.take(path, stamp, read.map(|()| head.as_slice()));
                self.head = head;
            }
        }
        true
    }

    fn file(&mut self, path: &Path, metadata: &Metadata) {
        if let Some(rules) = self.rules
            && let Ok(real) = path.canonicalize()
            && let Some(denial) = rules.denial_of_definition(path, &real)
        {
            self.refuse(path, denial);
            return;
        }
        let stamp = Stamp::from(metadata);
        if let Some(known) = self.files.get_mut(path.as_os_str())
            && known.is_settled
            && known.stamp == stamp
        {
            known.is_found = true;
            let value = Arc::clone(&known.value);
            self.found.push(FoundFile { path: path.to_owned(), stamp, value });
            return;
        }
        self.has_changed = true;
        let bytes = if self.is_bounded {
            self.bytes_inside(path)
        } else {
            files::bytes_of(path, metadata, LARGEST)
        };
        self.take(path, stamp, bytes);
    }

    fn take<B: AsRef<[u8]>>(&mut self, path: &Path, stamp: Stamp, bytes: Result<B, FileError>) {
        match bytes {
            Ok(bytes) => {
                let value = Arc::new((self.read)(path, &decode(bytes.as_ref())));
                let is_settled = stamp.changed_at() < self.settled_until;
                self.found.push(FoundFile {
                    path: path.to_owned(),
                    stamp,
                    value: Arc::clone(&value),
                });
                let known = CachedFile { stamp, is_settled, value, is_found: true };
                self.files.insert(path.as_os_str().to_owned(), known);
            }
            Err(error) => self.refuse(path, error.to_string()),
        }
    }

    /// The content of a file of a bounded place. What is found to be inside is what is opened, wherever links
    /// lead by then.
    fn bytes_inside(&self, path: &Path) -> Result<Vec<u8>, FileError> {
        let real = path.canonicalize().map_err(FileError::Unreadable)?;
        match &self.within {
            Some(within) if real.starts_with(within) => files::bytes_at(&real, LARGEST),
            _ => Err(FileError::Unreadable(io::ErrorKind::NotFound.into())),
        }
    }
}

/// Puts the path of an entry of a folder, or of a name below it, into a buffer: the same as `join`, without a path of
/// its own.
fn join_into(path: &mut OsString, folder: &Path, name: &OsStr, below: Option<&str>) {
    path.clear();
    path.push(folder);
    let parts = std::iter::once(name).chain(below.map(OsStr::new));
    for part in parts {
        if !path.as_bytes().ends_with(b"/") {
            path.push("/");
        }
        path.push(part);
    }
}

/// The way from a root to what was joined to it: the same as `strip_prefix`, without taking both apart.
fn below<'p>(path: &'p Path, root: &Path) -> Option<&'p Path> {
    let rest = path.as_os_str().as_bytes().strip_prefix(root.as_os_str().as_bytes())?;
    Some(Path::new(OsStr::from_bytes(rest.strip_prefix(b"/")?)))
}

/// The first bytes of a file: its frontmatter and some text behind it, or all of it where the frontmatter is
/// longer than usual.
fn read_head(mut file: File, metadata: &Metadata, bytes: &mut Vec<u8>) -> Result<(), FileError> {
    if metadata.len() > LARGEST {
        return Err(FileError::TooLarge { limit: LARGEST });
    }
    bytes.resize(HEAD, 0);
    let read = file.read(bytes).map_err(FileError::Unreadable)?;
    bytes.truncate(read);
    let is_all = read < HEAD;
    if is_all || is_head(bytes) {
        if !is_all {
            // The last line may end in the middle of a letter.
            let lines = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            bytes.truncate(lines);
        }
        return Ok(());
    }
    file.take(LARGEST).read_to_end(bytes).map_err(FileError::Unreadable)?;
    Ok(())
}

/// Checks that the beginning of a file is UTF-8 text that begins with frontmatter and has its end.
fn is_head(bytes: &[u8]) -> bool {
    let end = memchr::memmem::find(bytes, b"\n---\n");
    bytes.starts_with(b"---\n") && end.is_some()
}
