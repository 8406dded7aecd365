//! The places of skills and commands, the strongest first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::catalog::SkillEntry;
use super::definition::{SkillKind, SkillOrigin, SkillSource};
use crate::ReadRules;
use crate::agents::{PROJECT_DIRS, ProjectFolders, check_skill_name};
use crate::plugins::{PluginVariables, Power};
use crate::scan::{FileChoice, SYNCED, ScanPlace};
use crate::settings::{LevelChoice, SkillOverride};
use crate::trust::ContentTrust;

/// Everything that may hold skills and commands. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct SkillSources {
    /// Directory that the administrator of the machine manages.
    pub managed_dir: Option<PathBuf>,
    pub folders: ProjectFolders,
    /// Directories below the working directory in which a file was read or changed, the nearest to it first.
    pub nested: Vec<PathBuf>,
    /// The user's directories, such as `~/.claude`; the later one wins.
    pub config_dirs: Vec<PathBuf>,
    pub levels: LevelChoice,
    /// Set where directories that a flag adds count although those of the project do not.
    pub takes_added: bool,
    /// Set where only managed skills and those of plugins count; see
    /// [`PluginOnly`](crate::settings::PluginOnly).
    pub plugin_only: bool,
    pub plugins: Vec<PluginSkills>,
    /// Set where the program's own skills count.
    pub bundled: bool,
    /// Set where the session has no skills and no commands at all, whatever there is on disk.
    pub is_off: bool,
    /// Folders among skills that are plugins, and so are no skills.
    pub plugin_folders: Vec<PathBuf>,
    /// Settings of the user for single skills that are no plugin's.
    pub overrides: BTreeMap<String, SkillOverride>,
    /// The skills that a host lets models invoke, by name, with a plugin's name before it or without; `None` is all.
    pub chosen: Option<BTreeSet<String>>,
    /// Says which skills of projects were accepted with all that they bring.
    pub content: ContentTrust,
    /// Set where a skill can be used only as it was when the catalog was made: hooks are asked about changes first.
    pub only_as_seen: bool,
    /// Directory of the index that keeps many skills for the next process.
    pub index_dir: Option<PathBuf>,
    /// Deny rules for reading, which bind the files of skills and commands.
    pub read_rules: ReadRules,
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
    /// Variables that the texts of its skills may name.
    pub variables: PluginVariables,
    /// The trust in what its skills say.
    pub power: Power,
}

/// A place with whose it is.
pub(super) struct SkillPlace {
    pub(super) place: ScanPlace,
    pub(super) source: SkillSource,
    pub(super) kind: SkillKind,
    pub(super) plugin: Option<String>,
    /// Prefix of a name that a stronger skill has: the way from the working directory.
    pub(super) prefix: Option<String>,
}

impl SkillSources {
    /// Checks that a host lets models invoke the skill of this name.
    pub(super) fn is_chosen(&self, name: &str) -> bool {
        let bare = || name.rsplit(':').next().unwrap_or(name);
        self.chosen.as_ref().is_none_or(|chosen| chosen.contains(name) || chosen.contains(bare()))
    }

    /// A skill as the settings of the user want it; the skill itself where they switch it off.
    pub(super) fn as_set(&self, mut entry: SkillEntry) -> Result<SkillEntry, Box<SkillEntry>> {
        let said = self.overrides.get(&entry.name);
        match said.filter(|_| entry.origin.plugin.is_none()) {
            Some(SkillOverride::Off) => return Err(Box::new(entry)),
            Some(SkillOverride::NameOnly) => Arc::make_mut(&mut entry.card).name_only = true,
            Some(SkillOverride::UserInvocableOnly) => {
                Arc::make_mut(&mut entry.card).for_models = false;
            }
            Some(SkillOverride::On) | None => {}
        }
        Ok(entry)
    }

    /// A skill that models may invoke only where the host lets them.
    pub(super) fn as_chosen(&self, mut entry: SkillEntry) -> SkillEntry {
        if entry.card.for_models && !self.is_chosen(&entry.name) {
            Arc::make_mut(&mut entry.card).for_models = false;
        }
        entry
    }

    /// All places, the strongest first: a skill goes before a command of the same name.
    pub(super) fn places(&self) -> Vec<SkillPlace> {
        let mut places = Vec::new();
        if self.is_off {
            return places;
        }
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

    /// The places of skills that programs of others fetch for the user: weaker than all other places.
    pub(super) fn synced(&self) -> Vec<SkillPlace> {
        let mut places = Vec::new();
        if !(self.plugin_only || self.is_off) {
            self.user(SkillKind::Skill, &mut places);
        }
        for place in &mut places {
            place.place.root.push(SYNCED);
        }
        places
    }

    /// Checks that the file of a skill lies in a folder that is a plugin.
    pub(super) fn is_of_plugin(&self, file: &Path) -> bool {
        if self.plugin_folders.is_empty() {
            return false;
        }
        let folder = file.parent();
        self.plugin_folders.iter().any(|plugin| Some(plugin.as_path()) == folder)
    }

    /// Checks that a directory's name can stand before those of its skills: it is none of a plugin, whose skills a
    /// repository would take the place of.
    pub(super) fn is_prefix(&self, directory: &str) -> bool {
        let is_plugin = |it: &PluginSkills| it.plugin.to_lowercase() == directory.to_lowercase();
        check_skill_name(directory).is_ok() && !self.plugins.iter().any(is_plugin)
    }

    /// The plugin that a skill belongs to.
    pub(super) fn plugin(&self, origin: &SkillOrigin) -> Option<&PluginSkills> {
        let name = origin.plugin.as_ref()?;
        self.plugins.iter().find(|plugin| plugin.plugin == *name)
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
        let (is_whole, added) = (self.levels.project, &self.folders.additional);
        let counts = |path: &PathBuf| is_whole || (self.takes_added && added.contains(path));
        for folder in self.folders.chain().into_iter().filter(|it| counts(&it.path)) {
            for name in PROJECT_DIRS.iter().rev() {
                let base = folder.path.join(name);
                let within = Some(&folder.within);
                places.push(SkillPlace::new(&base, within, SkillSource::Project, kind));
            }
        }
        let top = self.folders.repository.as_ref().unwrap_or(&self.folders.cwd);
        for folder in self.nested.iter().filter(|_| is_whole) {
            let below = folder.strip_prefix(&self.folders.cwd).ok();
            for name in PROJECT_DIRS.iter().rev() {
                let base = folder.join(name);
                let place = SkillPlace::new(&base, Some(top), SkillSource::Project, kind);
                let prefix = below.map(|below| below.display().to_string());
                places.push(SkillPlace { prefix, ..place });
            }
        }
    }
}

impl SkillPlace {
    /// Checks that a skill was found in this place.
    pub(super) fn holds(&self, origin: &SkillOrigin) -> bool {
        let below = origin.path.strip_prefix(&self.place.root);
        self.source == origin.source
            && self.kind == origin.kind
            && self.plugin == origin.plugin
            && below.is_ok_and(|below| !below.starts_with(SYNCED))
    }

    /// The file of the skill of this name, if a file of this place can be it.
    pub(super) fn file_of(&self, name: &str) -> Option<PathBuf> {
        let name = match &self.plugin {
            Some(plugin) => name.strip_prefix(plugin)?.strip_prefix(':')?,
            None => name,
        };
        check_skill_name(name).ok()?;
        Some(match self.kind {
            SkillKind::Skill => self.place.root.join(name).join("SKILL.md"),
            SkillKind::Command => self.place.root.join(format!("{name}.md")),
        })
    }

    /// The skills or commands in a directory of definitions.
    pub(super) fn new(
        base: &Path,
        within: Option<&PathBuf>,
        source: SkillSource,
        kind: SkillKind,
    ) -> Self {
        let (name, pick) = match kind {
            SkillKind::Skill => ("skills", FileChoice::Skills),
            SkillKind::Command => ("commands", FileChoice::Markdown),
        };
        let owner = source.as_str().to_owned();
        let place = ScanPlace { root: base.join(name), within: within.cloned(), pick, owner };
        Self { place, source, kind, plugin: None, prefix: None }
    }

    pub(super) fn origin(&self, path: PathBuf) -> SkillOrigin {
        SkillOrigin { source: self.source, kind: self.kind, path, plugin: self.plugin.clone() }
    }
}

impl PluginSkills {
    fn places(&self, places: &mut Vec<SkillPlace>) {
        let mut add = |root: &Path, pick, kind| {
            let within = Some(self.root.clone());
            let place =
                ScanPlace { root: root.to_owned(), within, pick, owner: self.plugin.clone() };
            let plugin = Some(self.plugin.clone());
            places.push(SkillPlace {
                place,
                source: SkillSource::Plugin,
                kind,
                plugin,
                prefix: None,
            });
        };
        add(&self.root, FileChoice::Skill, SkillKind::Skill);
        for directory in &self.skills {
            add(directory, FileChoice::Skill, SkillKind::Skill);
            add(directory, FileChoice::Skills, SkillKind::Skill);
        }
        for path in &self.commands {
            add(path, FileChoice::Markdown, SkillKind::Command);
        }
    }
}
