//! All skills and commands: where they are looked for, and which one a name means.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::World;

use super::definition::{
    SkillDefinition, SkillFileError, SkillKind, SkillOrigin, SkillSource, read_skill,
};
use crate::Problem;
use crate::agents::{PROJECT_DIRS, ProjectFolders};
use crate::plugins::{PluginVariables, Power, adapt_skill};
use crate::scan::{Memo, Pick, Place};
use crate::settings::LevelChoice;
use crate::trust::{ContentTrust, PowerItem, Reach};

/// Everything that may hold skills and commands. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSources {
    /// What the administrator of the machine manages.
    pub managed_dir: Option<PathBuf>,
    pub folders: ProjectFolders,
    /// The user's directories, such as `~/.claude`; the later one wins.
    pub config_dirs: Vec<PathBuf>,
    pub levels: LevelChoice,
    /// Whether only managed skills and those of plugins count; see
    /// [`PluginOnly`](crate::settings::PluginOnly).
    pub plugin_only: bool,
    pub plugins: Vec<PluginSkills>,
    /// Says which skills of projects were accepted with all that they bring.
    pub content: ContentTrust,
}

/// The skills and commands of one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSkills {
    pub plugin: String,
    /// The plugin's own directory, which links must not lead out of. Its own `SKILL.md` is a skill.
    pub root: PathBuf,
    /// Directories of skills, and directories that are one.
    pub skills: Vec<PathBuf>,
    /// Directories of commands, and single files.
    pub commands: Vec<PathBuf>,
    /// What the texts of its skills may name.
    pub variables: PluginVariables,
    /// Whether all that its skills say counts.
    pub power: Power,
}

/// All skills and commands, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillCatalog {
    /// One for each name.
    pub active: Vec<Arc<SkillDefinition>>,
    /// Those whose name a stronger one has.
    pub shadowed: Vec<ShadowedSkill>,
    /// Files that cannot be used, with the reason.
    pub failed: Vec<Problem>,
    /// What their authors should know.
    pub problems: Vec<Problem>,
}

/// A skill that cannot be invoked, because another has its name.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowedSkill {
    pub definition: Arc<SkillDefinition>,
    pub by: SkillOrigin,
}

/// What a file turned out to be.
type ReadFile = Result<(Arc<SkillDefinition>, Vec<Problem>), SkillFileError>;

/// Loads skills and commands, and remembers what it has read.
#[derive(Default)]
pub struct SkillLoader {
    memo: Memo<ReadFile>,
    last: Option<(SkillSources, Arc<SkillCatalog>)>,
}

/// A place with whose it is.
struct SkillPlace {
    place: Place,
    source: SkillSource,
    kind: SkillKind,
    plugin: Option<String>,
}

impl SkillLoader {
    pub fn new() -> Self {
        Self::default()
    }

    /// All skills as they are now. Where nothing has changed the same catalog is returned, at the price
    /// of a look at each file.
    pub fn load(&mut self, sources: &SkillSources, world: &dyn World) -> Arc<SkillCatalog> {
        let mut is_unchanged = self.last.as_ref().is_some_and(|(last, _)| last == sources);
        // What a plugin's skills say depends on the plugin, and a project's on what was accepted.
        let is_other = |last: &SkillSources| {
            last.plugins != sources.plugins || last.content != sources.content
        };
        if self.last.as_ref().is_some_and(|(last, _)| is_other(last)) {
            self.memo = Memo::default();
        }
        let mut places = HashSet::new();
        let mut taken = HashSet::new();
        let mut catalog = SkillCatalog::default();
        let mut candidates = Vec::new();
        for place in sources.places() {
            if !places.insert(place.place.clone()) {
                continue;
            }
            let plugin =
                sources.plugins.iter().find(|it| Some(&it.plugin) == place.plugin.as_ref());
            let visit = self.memo.visit(&place.place, world, |path, text| {
                let (mut definition, mut problems) = read_skill(text, place.origin(path))?;
                if let Some(plugin) = plugin {
                    definition = adapt_skill(plugin, definition, &mut problems);
                }
                if place.source == SkillSource::Project
                    && let Some(item) = definition.power_item(text)
                    && let Err(reason) = sources.content.judge(&item, Reach::Folder)
                {
                    let message = format!("what acts for the user in it is off: {reason}");
                    problems.push(Problem { path: item.file, line: item.line, message });
                    definition.withheld = Some(reason);
                }
                Ok((Arc::new(definition), problems))
            });
            is_unchanged &= visit.is_unchanged;
            catalog.failed.extend(visit.refused.into_iter().map(|refused| Problem {
                path: refused.path,
                line: None,
                message: refused.reason,
            }));
            for found in visit.found {
                if !taken.insert((place.plugin.clone(), found.identity)) {
                    continue;
                }
                match &*found.value {
                    Ok((definition, problems)) => {
                        catalog.problems.extend(problems.iter().cloned());
                        candidates.push(Arc::clone(definition));
                    }
                    Err(error) => catalog.failed.push(Problem {
                        path: found.path,
                        line: Some(1),
                        message: error.to_string(),
                    }),
                }
            }
        }
        self.memo.keep_only(&places);
        if let (true, Some((_, catalog))) = (is_unchanged, &self.last) {
            return Arc::clone(catalog);
        }
        let catalog = Arc::new(merge(catalog, candidates));
        self.last = Some((sources.clone(), Arc::clone(&catalog)));
        catalog
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
            let (definition, _) = read_skill(text, place.origin(path)).ok()?;
            definition.power_item(text)
        });
        items.extend(visit.found.iter().filter_map(|found| Option::clone(&found.value)));
    }
    items
}

/// The first of each name counts.
fn merge(mut catalog: SkillCatalog, candidates: Vec<Arc<SkillDefinition>>) -> SkillCatalog {
    let mut winners: HashMap<String, SkillOrigin> = HashMap::new();
    for definition in candidates {
        if let Some(by) = winners.get(&definition.name) {
            catalog.shadowed.push(ShadowedSkill { definition, by: by.clone() });
            continue;
        }
        winners.insert(definition.name.clone(), definition.origin.clone());
        catalog.active.push(definition);
    }
    catalog.active.sort_by(|one, other| one.name.cmp(&other.name));
    catalog.shadowed.sort_by(|one, other| one.definition.name.cmp(&other.definition.name));
    catalog
}

impl SkillPlace {
    fn origin(&self, path: &Path) -> SkillOrigin {
        SkillOrigin {
            source: self.source,
            kind: self.kind,
            path: path.to_owned(),
            plugin: self.plugin.clone(),
        }
    }
}

impl SkillSources {
    /// All places, the strongest first: a skill goes before a command of the same name.
    fn places(&self) -> Vec<SkillPlace> {
        let mut places = Vec::new();
        for kind in [SkillKind::Skill, SkillKind::Command] {
            self.managed(kind, &mut places);
            if !self.plugin_only {
                self.user(kind, &mut places);
                self.project(kind, &mut places);
            }
        }
        for plugin in &self.plugins {
            plugin.places(&mut places);
        }
        places
    }

    fn managed(&self, kind: SkillKind, places: &mut Vec<SkillPlace>) {
        if let Some(managed) = &self.managed_dir {
            for name in PROJECT_DIRS.iter().rev() {
                let base = managed.join(name);
                places.push(SkillPlace::new(&base, None, SkillSource::Managed, kind));
            }
        }
    }

    fn user(&self, kind: SkillKind, places: &mut Vec<SkillPlace>) {
        if self.levels.user {
            for directory in self.config_dirs.iter().rev() {
                // People keep their own files elsewhere and link to them.
                let home = self.folders.home.as_ref().filter(|home| directory.starts_with(home));
                let within = home.unwrap_or(directory);
                places.push(SkillPlace::new(directory, Some(within), SkillSource::User, kind));
            }
        }
    }

    fn project(&self, kind: SkillKind, places: &mut Vec<SkillPlace>) {
        if self.levels.project {
            for folder in self.folders.chain() {
                for name in PROJECT_DIRS.iter().rev() {
                    let base = folder.path.join(name);
                    let within = Some(&folder.within);
                    places.push(SkillPlace::new(&base, within, SkillSource::Project, kind));
                }
            }
        }
    }
}

impl SkillPlace {
    /// The skills or commands in a directory of definitions.
    fn new(base: &Path, within: Option<&PathBuf>, source: SkillSource, kind: SkillKind) -> Self {
        let (name, pick) = match kind {
            SkillKind::Skill => ("skills", Pick::Skills),
            SkillKind::Command => ("commands", Pick::Markdown),
        };
        let owner = source.as_str().to_owned();
        let place = Place { root: base.join(name), within: within.cloned(), pick, owner };
        Self { place, source, kind, plugin: None }
    }
}

impl PluginSkills {
    fn places(&self, places: &mut Vec<SkillPlace>) {
        let mut add = |root: &Path, pick, kind| {
            let within = Some(self.root.clone());
            let place = Place { root: root.to_owned(), within, pick, owner: self.plugin.clone() };
            let plugin = Some(self.plugin.clone());
            places.push(SkillPlace { place, source: SkillSource::Plugin, kind, plugin });
        };
        add(&self.root, Pick::Skill, SkillKind::Skill);
        for directory in &self.skills {
            add(directory, Pick::Skill, SkillKind::Skill);
            add(directory, Pick::Skills, SkillKind::Skill);
        }
        for path in &self.commands {
            add(path, Pick::Markdown, SkillKind::Command);
        }
    }
}
