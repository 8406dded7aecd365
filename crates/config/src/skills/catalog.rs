//! All skills and commands: which one a name means. What they say is read when they are used.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::World;
use foldhash::fast::RandomState;

use super::bundled;
use super::card::{SkillCard, read_card};
use super::definition::{SkillDefinition, SkillFileError, SkillKind, SkillOrigin, SkillSource};
use super::reading::{ReadSkill, SkillReadError};
use super::sources::{SkillPlace, SkillSources};
use crate::Problem;
use crate::files::Stamp;
use crate::plugins::manifest_of;
use crate::scan::{FoundFile, KeptIndex, Memo, Portion, ScanPlace, VisitBounds};
use crate::trust::PowerItem;

/// The most skills that are looked at for one source. Of a larger number, the first by name are listed; the others
/// can still be invoked by name.
pub const MOST_LISTED: usize = 500;

/// A skill or command that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillEntry {
    /// By which it is invoked; that of a plugin's begins with the plugin's name.
    pub name: String,
    /// Shared with what earlier looks have read.
    pub card: Arc<SkillCard>,
    pub origin: SkillOrigin,
    /// Directory that links on the way to it must not lead out of.
    pub(super) within: Option<Arc<Path>>,
    /// The version of its file that was looked at; `None` for what is part of the program.
    pub(super) stamp: Option<Stamp>,
}

/// All skills and commands, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillCatalog {
    /// One for each name.
    pub active: Vec<Arc<SkillEntry>>,
    /// Skills whose name a stronger one has.
    pub shadowed: Vec<ShadowedSkill>,
    /// Skills that a setting switches off.
    pub off: Vec<OffSkill>,
    /// Files that cannot be used, with the reason.
    pub failed: Vec<Problem>,
    /// Directories with more skills than are looked at, and how many those are.
    pub unlisted: Vec<(PathBuf, usize)>,
    pub(super) sources: Arc<SkillSources>,
}

/// A skill that cannot be invoked, because another has its name.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowedSkill {
    pub entry: Arc<SkillEntry>,
    pub by: SkillOrigin,
}

/// A skill that cannot be invoked, because a setting says so.
#[derive(Clone, Debug, PartialEq)]
pub struct OffSkill {
    pub entry: Arc<SkillEntry>,
    pub by: OffSwitch,
}

/// The setting that switches a skill off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffSwitch {
    Overrides,
    BundledSkills,
}

impl OffSwitch {
    /// The key of the setting.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overrides => "skillOverrides",
            Self::BundledSkills => "disableBundledSkills",
        }
    }
}

/// Findings of reading all of a catalog.
#[derive(Debug, Default)]
pub struct CheckedSkills {
    /// The skills that can be invoked.
    pub active: Vec<ReadSkill>,
    /// Skills whose name a stronger one has.
    pub shadowed: Vec<ReadSkill>,
    /// Files that cannot be used, with the reason.
    pub failed: Vec<Problem>,
    /// Problems for their authors.
    pub problems: Vec<Problem>,
}

/// Name and card from the head of a file.
type ReadHead = Result<(String, Arc<SkillCard>), SkillFileError>;

/// Finds skills and commands, and remembers what it has read.
#[derive(Default)]
pub struct SkillLoader {
    memo: Memo<ReadHead>,
    last: Option<Arc<SkillCatalog>>,
}

/// Finds skills one place after the other, the strongest first.
struct Search {
    /// The most that are looked at for one source, and how many are left.
    most: usize,
    left: HashMap<SkillSource, usize>,
    visited: HashSet<ScanPlace>,
    catalog: SkillCatalog,
    /// The active ones by name.
    winners: HashSet<ByName, RandomState>,
    /// Files that were found, under whatever name.
    taken: HashSet<(Option<String>, (u64, u64)), RandomState>,
    is_unchanged: bool,
}

/// A skill as its name alone.
struct ByName(Arc<SkillEntry>);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl SkillLoader {
    pub fn new() -> Self {
        Self::default()
    }

    /// All skills as they are now, but for those of sources that have more than [`MOST_LISTED`]. Where nothing has
    /// changed the same catalog is returned, at the price of a look at each file.
    pub fn load(&mut self, sources: &SkillSources, world: &dyn World) -> Arc<SkillCatalog> {
        self.load_most(sources, MOST_LISTED, world)
    }

    /// All skills, however many there are.
    pub fn load_all(&mut self, sources: &SkillSources, world: &dyn World) -> Arc<SkillCatalog> {
        self.load_most(sources, usize::MAX, world)
    }

    fn load_most(
        &mut self,
        sources: &SkillSources,
        most: usize,
        world: &dyn World,
    ) -> Arc<SkillCatalog> {
        let is_same = self.last.as_ref().is_some_and(|last| *last.sources == *sources);
        self.memo.bind(&sources.read_rules);
        let mut search = Search::new(is_same, most);
        for place in sources.places() {
            self.look(&place, sources, &mut search, world);
        }
        search.add_bundled(sources);
        for place in sources.synced() {
            self.look(&place, sources, &mut search, world);
        }
        self.memo.keep_only(&search.visited);
        if let (true, Some(catalog)) = (search.is_unchanged, &self.last) {
            return Arc::clone(catalog);
        }
        let catalog = Arc::new(search.finish(sources));
        self.last = Some(Arc::clone(&catalog));
        catalog
    }

    /// Looks through one place.
    fn look(
        &mut self,
        place: &SkillPlace,
        sources: &SkillSources,
        search: &mut Search,
        world: &dyn World,
    ) {
        if !search.visited.insert(place.place.clone()) {
            return;
        }
        let index = sources.index_dir.as_deref().map(|directory| KeptIndex { directory });
        if let Some(index) = index {
            self.memo.recall(&place.place, index);
        }
        let left = search.left.entry(place.source).or_insert(search.most);
        let extent = VisitBounds { portion: Portion::Head, most: *left };
        let visit = self.memo.visit_part(&place.place, extent, world, |path, head| {
            let (name, card) = read_card(head, &place.origin(path.to_owned()))?;
            Ok((name, Arc::new(card)))
        });
        *left = left.saturating_sub(visit.found.len());
        search.is_unchanged &= visit.is_unchanged;
        if let Some(index) = index.filter(|_| !visit.is_unchanged) {
            self.memo.keep(&place.place, index);
        }
        if visit.unread > 0 {
            search.catalog.unlisted.push((place.place.root.clone(), visit.unread));
        }
        search.catalog.failed.extend(visit.refused.into_iter().map(|refused| Problem {
            path: refused.path,
            line: None,
            message: refused.reason,
        }));
        let within: Option<Arc<Path>> = place.place.within.as_deref().map(Arc::from);
        search.expect(visit.found.len());
        for found in visit.found {
            if place.plugin.is_none() && sources.is_of_plugin(&found.path) {
                continue;
            }
            if search.taken.insert((place.plugin.clone(), found.stamp.identity())) {
                search.add(sources, place, within.clone(), found);
            }
        }
    }
}

impl Search {
    fn new(is_unchanged: bool, most: usize) -> Self {
        Self {
            most,
            left: HashMap::new(),
            visited: HashSet::new(),
            catalog: SkillCatalog::default(),
            winners: HashSet::default(),
            taken: HashSet::default(),
            is_unchanged,
        }
    }

    /// Makes room for so many more.
    fn expect(&mut self, count: usize) {
        self.catalog.active.reserve(count);
        self.winners.reserve(count);
        self.taken.reserve(count);
    }

    fn add(
        &mut self,
        sources: &SkillSources,
        place: &SkillPlace,
        within: Option<Arc<Path>>,
        found: FoundFile<ReadHead>,
    ) {
        let FoundFile { path, stamp, value } = found;
        match &*value {
            Ok((name, card)) => {
                let (name, card) = (name.clone(), Arc::clone(card));
                let origin = place.origin(path);
                let entry = SkillEntry { name, card, origin, within, stamp: Some(stamp) };
                self.enter_as_set(sources, entry, place.prefix.as_deref());
            }
            Err(error) => {
                let (line, message) = (Some(1), error.to_string());
                self.catalog.failed.push(Problem { path, line, message });
            }
        }
    }

    /// Enters a skill as the settings want it.
    fn enter_as_set(&mut self, sources: &SkillSources, entry: SkillEntry, prefix: Option<&str>) {
        match sources.as_set(entry) {
            Ok(entry) => self.enter(sources, entry, prefix),
            Err(entry) => self.switch_off(*entry, OffSwitch::Overrides),
        }
    }

    fn switch_off(&mut self, entry: SkillEntry, by: OffSwitch) {
        self.catalog.off.push(OffSkill { entry: Arc::new(entry), by });
    }

    /// The first of each name counts. One from below the working directory goes by its directory then.
    fn enter(&mut self, sources: &SkillSources, mut entry: SkillEntry, prefix: Option<&str>) {
        if let Some(prefix) = prefix
            && self.winners.contains(entry.name.as_str())
            && sources.is_prefix(prefix)
        {
            entry.name = format!("{prefix}:{}", entry.name);
        }
        if let Some(winner) = self.winners.get(entry.name.as_str()) {
            let by = winner.0.origin.clone();
            self.catalog.shadowed.push(ShadowedSkill { entry: Arc::new(entry), by });
            return;
        }
        let entry = Arc::new(sources.as_chosen(entry));
        self.winners.insert(ByName(Arc::clone(&entry)));
        self.catalog.active.push(entry);
    }

    fn add_bundled(&mut self, sources: &SkillSources) {
        if sources.is_off {
            return;
        }
        for entry in bundled::entries() {
            if sources.bundled {
                self.enter_as_set(sources, entry, None);
            } else {
                self.switch_off(entry, OffSwitch::BundledSkills);
            }
        }
    }

    fn finish(self, sources: &SkillSources) -> SkillCatalog {
        let mut catalog = self.catalog;
        catalog.active.sort_by(|one, other| one.name.cmp(&other.name));
        catalog.shadowed.sort_by(|one, other| one.entry.name.cmp(&other.entry.name));
        catalog.off.sort_by(|one, other| one.entry.name.cmp(&other.entry.name));
        catalog.sources = Arc::new(sources.clone());
        catalog
    }
}

impl SkillCatalog {
    /// Reads the whole file of a skill as it is now.
    pub fn read(&self, entry: &SkillEntry) -> Result<ReadSkill, SkillReadError> {
        super::reading::read(entry, &self.sources)
    }

    /// The files that are new, gone or different in a later catalog, in order.
    pub fn changed_files(&self, later: &Self) -> Vec<PathBuf> {
        let (before, now) = (self.versions(), later.versions());
        let is_other = |(path, stamp): (&&Path, &Stamp)| before.get(path) != Some(stamp);
        let changed = now.iter().filter(|(path, stamp)| is_other((path, stamp)));
        let gone = before.iter().filter(|(path, _)| !now.contains_key(*path));
        let files = changed.chain(gone).map(|(path, _)| path.to_path_buf());
        files.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The files of all skills, each with the version that was looked at.
    fn versions(&self) -> HashMap<&Path, Stamp> {
        let active = self.active.iter();
        let shadowed = self.shadowed.iter().map(|it| &it.entry);
        let off = self.off.iter().map(|it| &it.entry);
        let entries = active.chain(shadowed).chain(off);
        entries.filter_map(|it| Some((it.origin.path.as_path(), it.stamp?))).collect()
    }

    /// The same catalog, of which no skill can be read that has changed since.
    #[must_use]
    pub fn as_seen(&self) -> Self {
        let sources = SkillSources { only_as_seen: true, ..(*self.sources).clone() };
        Self { sources: Arc::new(sources), ..self.clone() }
    }

    /// Reads all that there is, for those who want to know what is wrong with it.
    pub fn check(&self) -> CheckedSkills {
        let mut checked = CheckedSkills { failed: self.failed.clone(), ..CheckedSkills::default() };
        let mut take = |entry: &SkillEntry| match self.read(entry) {
            Ok(read) => {
                checked.problems.extend(read.problems.iter().cloned());
                Some(read)
            }
            Err(error) => {
                let (path, message) = (entry.origin.path.clone(), error.to_string());
                checked.failed.push(Problem { path, line: None, message });
                None
            }
        };
        let active: Vec<_> = self.active.iter().filter_map(|entry| take(entry)).collect();
        let shadowed: Vec<_> = self.shadowed.iter().filter_map(|it| take(&it.entry)).collect();
        checked.active = active;
        checked.shadowed = shadowed;
        checked
    }
}

/// The skills and commands in one directory of a project that have to be accepted.
pub(crate) fn directory_power(
    directory: &Path,
    within: &Path,
    world: &dyn World,
) -> Vec<PowerItem> {
    let mut items = Vec::new();
    for kind in [SkillKind::Skill, SkillKind::Command] {
        let within = Some(within.to_owned());
        let place = SkillPlace::new(directory, within.as_ref(), SkillSource::Project, kind);
        let visit = Memo::default().visit(&place.place, world, |path, text| {
            if path.parent().is_some_and(|folder| manifest_of(folder).exists()) {
                return None;
            }
            let (definition, _): (SkillDefinition, _) =
                super::definition::read_skill(text, place.origin(path.to_owned())).ok()?;
            definition.power_item(text)
        });
        items.extend(visit.found.iter().filter_map(|found| Option::clone(&found.value)));
    }
    items
}
