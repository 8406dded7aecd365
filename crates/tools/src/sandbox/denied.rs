//! Finds the files that deny rules keep from being read or changed: a sandbox hides files, not patterns.
//!
//! Follows links to directories: a rule means a file by every name that leads to it.
//!
//! Remembers the results for a directory until the directory changes, so that a second search costs one check for each
//! directory and not for each file.

mod progress;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use centurion_permissions::{CheckoutCopy, DeniedPlaces, Policy, WORKTREES};

use rustix::io::Errno;
use rustix::process::geteuid;

use progress::{Patterns, Progress};

/// A search ends after this many entries or this long, and is then incomplete.
const MOST_ENTRIES: usize = 500_000;
const LONGEST: Duration = Duration::from_secs(3);
/// The most of them behind links: those may lead to far larger trees than the agent works in.
const MOST_LINKED: usize = 100_000;
/// The most paths that a sandbox hides.
const MOST_FOUND: usize = 4_000;
/// A directory that changed so shortly before it was read may have changed again without a trace.
const UNSETTLED: Duration = Duration::from_millis(50);

/// The files that a sandbox must keep from commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeniedFiles {
    /// Neither readable nor writable.
    pub read: Vec<PathBuf>,
    /// Not writable.
    pub write: Vec<PathBuf>,
    /// Whether the search found everything that the rules mean.
    pub is_complete: bool,
}

impl DeniedFiles {
    /// The result where no rule is about files.
    pub fn nothing() -> Self {
        Self { is_complete: true, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}

/// Finds denied files, and caches the results.
#[derive(Debug, Default)]
pub struct DeniedSearch {
    /// The version of the rules that `seen` belongs to.
    version: u64,
    seen: HashMap<PathBuf, SeenDirectory>,
}

/// A directory at the time of the search.
#[derive(Clone, Debug)]
struct SeenDirectory {
    /// `None` if it may have changed again without a trace.
    state: Option<State>,
    directories: Vec<PathBuf>,
    /// Links in the directory. Their targets may change while the directory does not.
    links: Vec<PathBuf>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
}

/// Values that change with the entries of a directory. The kernel sets the time, and no command can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    file: (u64, u64),
    changed: Duration,
}

impl State {
    fn of(metadata: &Metadata) -> Option<Self> {
        let seconds = u64::try_from(metadata.ctime()).ok()?;
        let nanoseconds = u32::try_from(metadata.ctime_nsec()).ok()?;
        let file = (metadata.dev(), metadata.ino());
        metadata.is_dir().then(|| Self { file, changed: Duration::new(seconds, nanoseconds) })
    }

    /// Whether a later change would have another time.
    fn is_settled(self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.checked_sub(self.changed).is_some_and(|age| age >= UNSETTLED)
    }
}

impl DeniedSearch {
    /// Finds the files that the rules of a policy deny. `version` changes with the rules.
    pub fn find(&mut self, policy: &Policy, version: u64) -> DeniedFiles {
        let places = in_copies(policy.denied_places(), policy);
        let DeniedPlaces { read, write, search, patterns, all_reading } = places;
        let mut found = DeniedFiles { read, write, is_complete: !all_reading };
        if search.is_empty() {
            return found;
        }
        if self.version != version {
            self.version = version;
            self.seen.clear();
        }
        let roots = roots(policy, search, &mut found.is_complete);
        let mut walk = RuleWalk::new(policy, Patterns::new(patterns), SystemTime::now());
        let mut fresh = HashMap::new();
        let mut waiting: Vec<(PathBuf, SearchPath)> =
            roots.into_iter().map(|root| (root, SearchPath::Link)).collect();
        while let Some((directory, way)) = waiting.pop() {
            let known = self.seen.remove(&directory);
            let Some((seen, way)) = walk.look(&directory, way, known) else { continue };
            found.read.extend_from_slice(&seen.read);
            found.write.extend_from_slice(&seen.write);
            waiting.extend(seen.directories.iter().map(|path| (path.clone(), way)));
            waiting.extend(seen.links.iter().map(|path| (path.clone(), SearchPath::Link)));
            fresh.insert(directory, seen);
            if walk.is_over() || found.read.len() + found.write.len() > MOST_FOUND {
                found.is_complete = false;
                break;
            }
        }
        self.seen = fresh;
        found.is_complete &= walk.is_whole;
        found
    }
}

/// The places, and the same places in each present copy of the checkouts around them.
fn in_copies(mut places: DeniedPlaces, policy: &Policy) -> DeniedPlaces {
    let own = policy.directories.iter().chain([&policy.project_root]);
    let checkouts: BTreeSet<&Path> = own.flat_map(|own| own.ancestors()).collect();
    let mut copies: BTreeSet<CheckoutCopy> = policy.own_copies().collect();
    for checkout in checkouts {
        let Ok(worktrees) = fs::read_dir(checkout.join(WORKTREES)) else { continue };
        let roots = worktrees.flatten().map(|entry| entry.path());
        copies.extend(roots.map(|root| CheckoutCopy { checkout: checkout.to_owned(), root }));
    }
    for paths in [&mut places.read, &mut places.write, &mut places.search] {
        let own: Vec<PathBuf> = std::mem::take(paths);
        let others = own.iter().flat_map(|path| copies.iter().filter_map(|it| it.place(path)));
        paths.extend(others);
        paths.extend(own);
    }
    let patterns = places
        .patterns
        .iter()
        .flat_map(|(base, glob)| copies.iter().filter_map(move |copy| copy.pattern(base, glob)));
    let patterns: Vec<_> = patterns.collect();
    places.patterns.extend(patterns);
    places
}

/// The directories to search, none within another. A directory above the working directories, or the
/// home, is too large to search: then only the working directories are searched, and the search is incomplete.
fn roots(policy: &Policy, search: Vec<PathBuf>, is_complete: &mut bool) -> BTreeSet<PathBuf> {
    let own = || policy.directories.iter().chain([&policy.project_root]);
    let mut roots = BTreeSet::new();
    for directory in search {
        let is_above = own().any(|own| own.starts_with(&directory) && *own != directory);
        let is_home = policy.home.as_ref().is_some_and(|home| home.starts_with(&directory));
        if is_above || (is_home && directory != policy.project_root) {
            *is_complete = false;
            roots.extend(own().filter(|own| own.starts_with(&directory)).cloned());
        } else {
            roots.insert(directory);
        }
    }
    let all = roots.clone();
    roots.retain(|root| !root.ancestors().skip(1).any(|above| all.contains(above)));
    roots
}

/// The way by which the search reached a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchPath {
    /// By directory names alone.
    Straight,
    /// By a name that may be a link.
    Link,
    /// Behind a link.
    Linked,
}

struct RuleWalk<'a> {
    policy: &'a Policy,
    patterns: Patterns,
    /// The directories behind links that were searched, with the progress of their names in the patterns.
    linked: HashSet<((u64, u64), Vec<Progress>)>,
    /// The entries seen behind links.
    linked_entries: usize,
    started: SystemTime,
    deadline: Instant,
    /// The entries seen so far.
    entries: usize,
    /// Whether every directory could be read.
    is_whole: bool,
}

impl<'a> RuleWalk<'a> {
    fn new(policy: &'a Policy, patterns: Patterns, started: SystemTime) -> Self {
        Self {
            policy,
            patterns,
            linked: HashSet::new(),
            linked_entries: 0,
            started,
            deadline: Instant::now() + LONGEST,
            entries: 0,
            is_whole: true,
        }
    }

    fn is_over(&self) -> bool {
        self.entries > MOST_ENTRIES
            || self.linked_entries > MOST_LINKED
            || Instant::now() > self.deadline
    }

    /// Reads a directory: its denied paths, the directories to continue in, and the way that leads to them. `None` if
    /// it is no directory, or was searched before.
    fn look(
        &mut self,
        directory: &Path,
        way: SearchPath,
        known: Option<SeenDirectory>,
    ) -> Option<(SeenDirectory, SearchPath)> {
        let way = match way {
            SearchPath::Link if is_link(directory) => SearchPath::Linked,
            SearchPath::Link => SearchPath::Straight,
            way => way,
        };
        let metadata = match fs::metadata(directory) {
            Ok(metadata) => metadata,
            Err(error) => {
                // A command that may change the mode of the directory above can reach it.
                self.is_whole &= leads_nowhere(&error);
                return None;
            }
        };
        let state = State::of(&metadata)?;
        if way == SearchPath::Linked {
            if !self.linked.insert((state.file, self.patterns.progress(directory))) {
                return None;
            }
            if self.patterns.is_lost(directory) || self.leads_above(directory) {
                self.is_whole = false;
                return None;
            }
        }
        let before = self.entries;
        let seen = self.entries_of(directory, &metadata, state, known)?;
        if way == SearchPath::Linked {
            self.linked_entries += self.entries - before;
        }
        Some((seen, way))
    }

    /// Whether a directory is that of the whole system or of the user, or above: too large to search. The agent's
    /// working directories are searched by their own names, but not by this one.
    fn leads_above(&self, directory: &Path) -> bool {
        let Ok(real) = directory.canonicalize() else { return true };
        let home = self.policy.home.iter();
        let mut own = self.policy.directories.iter().chain([&self.policy.project_root]);
        own.any(|own| own.starts_with(&real) && *own != real)
            || home.chain([&PathBuf::from("/usr")]).any(|home| home.starts_with(&real))
    }

    fn entries_of(
        &mut self,
        directory: &Path,
        metadata: &Metadata,
        state: State,
        known: Option<SeenDirectory>,
    ) -> Option<SeenDirectory> {
        self.entries += 1;
        if let Some(known) = known.filter(|known| known.state == Some(state)) {
            return Some(known);
        }
        let mut seen = SeenDirectory {
            state: Some(state).filter(|state| state.is_settled(self.started)),
            directories: Vec::new(),
            links: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
        };
        let Ok(entries) = fs::read_dir(directory) else {
            // A command that may change its mode can read it.
            self.is_whole &= metadata.uid() != geteuid().as_raw();
            return None;
        };
        for entry in entries {
            let Ok(entry) = entry else {
                self.is_whole = false;
                return None;
            };
            self.entries += 1;
            let path = entry.path();
            if self.policy.denies_reading(&path) {
                seen.read.push(path);
                continue;
            }
            let kind = entry.file_type().ok();
            if self.policy.denies_writing(&path) {
                seen.write.push(path.clone());
            }
            if kind.is_some_and(|kind| kind.is_dir()) {
                seen.directories.push(path);
            } else if kind.is_some_and(|kind| kind.is_symlink()) {
                seen.links.push(path);
            }
        }
        Some(seen)
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

/// Whether no command can reach anything there.
fn leads_nowhere(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
        || Errno::from_io_error(error) == Some(Errno::LOOP)
}

#[cfg(test)]
mod tests {
    use centurion_permissions::{Rule, RuleOrigin};

    use super::*;

    fn policy(root: &Path, deny: &[&str]) -> Policy {
        let rule = |text: &&str| Rule::parse(text, RuleOrigin::Session).unwrap();
        Policy {
            deny: deny.iter().map(rule).collect(),
            project_root: root.to_owned(),
            directories: vec![root.to_owned()],
            home: Some("/nowhere".into()),
            ..Policy::default()
        }
    }

    fn names(root: &Path, paths: &[PathBuf]) -> Vec<String> {
        let mut names: Vec<_> = paths
            .iter()
            .map(|path| path.strip_prefix(root).unwrap_or(path).display().to_string())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn patterns_become_files_and_new_files_are_found() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for directory in ["a/b", "keys", "c/keys"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in [".env", "a/b/.env", "a/x.pem", "keys/k", "c/keys/k", "plain"] {
            fs::write(root.join(file), "x").unwrap();
        }
        let policy = policy(
            &root,
            &["Read(.env)", "Read(*.pem)", "Read(keys/**)", "Edit(plain)", "Read(/c)"],
        );
        let mut search = DeniedSearch::default();
        let found = search.find(&policy, 1);
        assert!(found.is_complete);
        let read = names(&root, &found.read);
        for expected in [".env", "a/b/.env", "a/x.pem", "c", "keys"] {
            assert!(read.iter().any(|name| name == expected), "{expected}: {read:?}");
        }
        assert_eq!(names(&root, &found.write), ["plain"]);
        assert_eq!(search.find(&policy, 1).read.len(), found.read.len());
        fs::write(root.join("a/new.pem"), "x").unwrap();
        fs::remove_file(root.join("a/b/.env")).unwrap();
        let read = names(&root, &search.find(&policy, 1).read);
        assert!(
            read.contains(&"a/new.pem".to_owned()) && !read.contains(&"a/b/.env".to_owned()),
            "{read:?}"
        );
    }

    #[test]
    fn what_rules_hide_in_a_checkout_they_hide_in_its_worktrees() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for copy in ["", ".claude/worktrees/one/", ".claude/worktrees/two/"] {
            fs::create_dir_all(root.join(copy).join("conf")).unwrap();
            for file in ["conf/key", "conf/a.pem"] {
                fs::write(root.join(copy).join(file), "x").unwrap();
            }
        }
        let absolute = format!("Edit(/{}/conf)", root.display());
        let policy = policy(&root, &["Read(/conf/key)", "Read(/conf/*.pem)", &absolute]);
        let found = DeniedSearch::default().find(&policy, 1);
        assert!(found.is_complete);
        for copy in ["", ".claude/worktrees/one/", ".claude/worktrees/two/"] {
            let place = |file: &str| root.join(copy).join(file);
            assert!(found.read.contains(&place("conf/key")), "{copy}: {:?}", found.read);
            assert!(found.read.contains(&place("conf/a.pem")), "{copy}: {:?}", found.read);
            assert!(found.write.contains(&place("conf")), "{copy}: {:?}", found.write);
        }
    }

    #[test]
    fn what_cannot_be_looked_at_whole_is_said() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::write(root.join(".env"), "x").unwrap();
        let found = DeniedSearch::default().find(&policy(&root, &["Read(//**/.env)"]), 1);
        assert!(!found.is_complete);
        assert_eq!(names(&root, &found.read), [".env"]);
        let found = DeniedSearch::default().find(&policy(&root, &["Read(//etc/shadow)"]), 1);
        assert_eq!(
            (found.is_complete, names(&root, &found.read)),
            (true, vec!["/etc/shadow".to_owned()])
        );
        assert_eq!(DeniedSearch::default().find(&policy(&root, &[]), 1), DeniedFiles::nothing());
    }

    /// Pseudo-random numbers from a seed.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(self.0 >> 33).unwrap() % end
        }

        fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
            from[self.below(from.len())]
        }
    }

    /// Directories, files and links to any of them, in and beside the project.
    fn random_tree(root: &Path, numbers: &mut Numbers) {
        const NAMES: [&str; 5] = ["a", "b", "c", "keys", "lib"];
        const FILES: [&str; 4] = ["k.pem", ".env", "x.key", "plain"];
        let mut directories = vec![root.join("project"), root.join("out")];
        for _ in 0..6 {
            let above = &directories[numbers.below(directories.len())];
            directories.push(above.join(numbers.pick(&NAMES)));
        }
        for directory in &directories {
            fs::create_dir_all(directory).unwrap();
        }
        for _ in 0..8 {
            let place = directories[numbers.below(directories.len())].join(numbers.pick(&FILES));
            let _ = fs::write(place, "");
        }
        for _ in 0..4 {
            let target = directories[numbers.below(directories.len())].clone();
            let target = match numbers.below(3) {
                0 => target.join(numbers.pick(&FILES)),
                _ => target,
            };
            let place = &directories[numbers.below(directories.len())];
            let _ =
                std::os::unix::fs::symlink(target, place.join(numbers.pick(&["l", "m", "keys"])));
        }
    }

    /// Every name of a file up to this depth, through every link.
    fn every_name(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                if depth > 0 {
                    every_name(&path, depth - 1, found);
                }
            } else if path.exists() {
                found.push(path);
            }
        }
    }

    #[test]
    fn whatever_name_the_rules_deny_its_file_is_found() {
        const PATTERNS: [&str; 12] = [
            "Read(**/*.pem)",
            "Read(.env)",
            "Read(l/*.pem)",
            "Read(l/*)",
            "Read(*/l/**)",
            "Read(keys/*.key)",
            "Read(**/keys/*.pem)",
            "Read(a/**/x.key)",
            "Read(l/l/*)",
            "Read(*/*/*/.env)",
            "Read(m/**/*.{pem,key})",
            "Read({l/a,m}/*)",
        ];
        let (mut denied, mut complete) = (0, 0);
        for seed in 0..150 {
            let scratch = tempfile::tempdir().unwrap();
            let root = scratch.path().canonicalize().unwrap();
            let mut numbers = Numbers(seed);
            random_tree(&root, &mut numbers);
            let project = root.join("project");
            let rules = [numbers.pick(&PATTERNS), numbers.pick(&PATTERNS)];
            let policy = policy(&project, &rules);
            let found = DeniedSearch::default().find(&policy, 1);
            let hidden: Vec<_> =
                found.read.iter().filter_map(|path| path.canonicalize().ok()).collect();
            complete += usize::from(found.is_complete);
            let mut names = Vec::new();
            every_name(&project, 5, &mut names);
            for name in names {
                let real = name.canonicalize().unwrap();
                if policy.denies_reading(&name) || policy.denies_reading(&real) {
                    denied += 1;
                    let is_hidden = hidden.iter().any(|hidden| real.starts_with(hidden));
                    assert!(
                        is_hidden || !found.is_complete,
                        "seed {seed}: {} with {rules:?}: {found:?}",
                        name.display()
                    );
                }
            }
        }
        assert!(denied > 150 && complete > 120, "{denied} names, {complete} complete searches");
    }

    #[test]
    fn looking_again_looks_at_directories_only_and_cannot_be_deceived() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for file in 0..50 {
            fs::write(root.join(format!("f{file}")), "").unwrap();
        }
        let policy = policy(&root, &["Read(.env)"]);
        let later = SystemTime::now() + Duration::from_secs(1);
        let mut walk = RuleWalk::new(&policy, Patterns::default(), later);
        let mut look = |known| {
            walk.look(&root, SearchPath::Straight, known).map(|(seen, _)| (seen, walk.entries))
        };
        let (seen, entries) = look(None).unwrap();
        assert_eq!(entries, 51);
        let (seen, entries) = look(Some(seen)).unwrap();
        assert_eq!(entries, 52, "the files were not looked at again");

        let modified = fs::metadata(&root).unwrap().modified().unwrap();
        fs::write(root.join(".env"), "").unwrap();
        fs::File::open(&root).unwrap().set_modified(modified).unwrap();
        assert_eq!(look(Some(seen)).unwrap().0.read, [root.join(".env")]);
    }
}
