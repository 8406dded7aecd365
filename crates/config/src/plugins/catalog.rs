//! All plugins: where they are looked for, which are on, and which of those with the same name counts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::World;

use super::accepted::AcceptedTree;
use super::bundle::Bundle;
use super::decision::{
    Decision, DisabledPlugin, PluginDefaults, WhyDisabled, decide, managed_block,
};
use super::looks::Looks;
use super::name::{INLINE, PluginId, PluginNameError, SKILLS_DIR};
use super::options::configured;
use super::plugin::{EnabledBy, Plugin, PluginPlace, Power};
use super::policy::MarketplacePolicy;
use super::skills_dir::{Keeper, SkillsDir, skills_dirs};
use super::store::{InstalledPlugin, PluginStores, StoreContents};
use super::variables::PluginVariables;
use crate::Problem;
use crate::paths::Dirs;
use crate::settings::{PluginSettings, Settings};
use crate::trust::ContentTrust;

/// Everything that decides which plugins there are. All paths are absolute.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginSources {
    /// The directories of `--plugin-dir`, in order.
    pub plugin_dirs: Vec<PathBuf>,
    pub stores: PluginStores,
    /// The directory of the session; `${CLAUDE_PROJECT_DIR}` stands for it.
    pub project_dir: PathBuf,
    /// The plugin settings, as far as the folder is trusted.
    pub settings: PluginSettings,
    /// Directories of skills, in which plugins may lie, too.
    skills_dirs: Vec<SkillsDir>,
    /// The reason why those do not count, if the administrator of the machine says so.
    skills_dirs_denied: Option<String>,
    /// Says which plugins of the repository were accepted.
    content: ContentTrust,
}

impl PluginSources {
    /// The sources for a program that was started in this directory.
    pub fn new(
        dirs: &Dirs,
        settings: &Settings,
        project_dir: &Path,
        plugin_dirs: &[PathBuf],
    ) -> Self {
        Self {
            plugin_dirs: plugin_dirs.iter().map(|path| project_dir.join(path)).collect(),
            stores: PluginStores::new(dirs),
            project_dir: project_dir.to_owned(),
            settings: settings.plugins(),
            skills_dirs: skills_dirs(dirs, settings, project_dir),
            skills_dirs_denied: denial_of_skills_dirs(settings),
            content: settings.content_trust().clone(),
        }
    }
}

/// All plugins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginCatalog {
    /// Plugins of `--plugin-dir` first, then by their ids. No two have the same name.
    pub enabled: Vec<Arc<Plugin>>,
    pub disabled: Vec<DisabledPlugin>,
    pub problems: Vec<Problem>,
    /// The folders among skills that are plugins, on or off, and so are no skills.
    pub skill_folders: Vec<PathBuf>,
}

impl PluginCatalog {
    /// The plugin that is on under a name.
    pub fn find(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.enabled.iter().find(|plugin| plugin.name() == name)
    }
}

/// Loads plugins, and remembers what it has read.
#[derive(Default)]
pub struct PluginLoader {
    last: Option<Last>,
}

struct Last {
    sources: PluginSources,
    catalog: Arc<PluginCatalog>,
    looks: Looks,
    is_settled: bool,
}

impl PluginLoader {
    pub fn new() -> Self {
        Self::default()
    }

    /// All plugins as they are now. Where nothing has changed the same catalog is returned, at the price
    /// of a look at each file.
    pub fn load(&mut self, sources: &PluginSources, world: &dyn World) -> Arc<PluginCatalog> {
        if let Some(last) = &self.last
            && last.sources == *sources
            && last.is_settled
            && last.looks.are_current()
        {
            return Arc::clone(&last.catalog);
        }
        let mut gathering = PluginGathering::new(sources);
        gathering.flagged();
        gathering.installed();
        gathering.among_skills();
        gathering.missing();
        let (catalog, looks) = gathering.finish();
        let before = self.last.take().map(|last| last.catalog);
        let catalog = match before.filter(|before| **before == catalog) {
            Some(same) => same,
            None => Arc::new(catalog),
        };
        tracing::debug!(
            found = catalog.enabled.len() + catalog.disabled.len(),
            enabled = catalog.enabled.len(),
            disabled = catalog.disabled.len(),
            problems = catalog.problems.len(),
            "plugins loaded"
        );
        let is_settled = looks.are_settled(world.now().as_second());
        let (sources, catalog_kept) = (sources.clone(), Arc::clone(&catalog));
        self.last = Some(Last { sources, catalog: catalog_kept, looks, is_settled });
        catalog
    }
}

/// A plugin on its way into a catalog.
struct PluginCandidate {
    id: PluginId,
    place: PluginPlace,
    bundle: Bundle,
    enabled_by: EnabledBy,
    power: Power,
}

struct PluginGathering<'s> {
    sources: &'s PluginSources,
    contents: StoreContents,
    policy: MarketplacePolicy,
    looks: Looks,
    candidates: Vec<PluginCandidate>,
    catalog: PluginCatalog,
}

impl<'s> PluginGathering<'s> {
    fn new(sources: &'s PluginSources) -> Self {
        let mut looks = Looks::default();
        let mut contents = sources.stores.look(&mut looks);
        let mut policy = MarketplacePolicy::new(&sources.settings);
        let mut problems = std::mem::take(&mut contents.problems);
        problems.append(&mut policy.problems);
        let catalog = PluginCatalog { problems, ..PluginCatalog::default() };
        Self { sources, contents, policy, looks, candidates: Vec::new(), catalog }
    }

    /// Adds the plugins of `--plugin-dir`: they are on for this run, unless managed settings say otherwise.
    fn flagged(&mut self) {
        for root in &self.sources.plugin_dirs {
            let usual_name = root.file_name().unwrap_or_default().to_string_lossy();
            let bundle = match Bundle::look(root, &usual_name, &mut self.looks) {
                Ok(bundle) => bundle,
                Err(mut problems) => {
                    self.catalog.problems.append(&mut problems);
                    continue;
                }
            };
            let id = match PluginId::new(&bundle.manifest.name, INLINE) {
                Ok(id) => id,
                Err(error) => {
                    self.refuse(root, &error);
                    continue;
                }
            };
            if let Some(origin) = managed_block(&self.sources.settings.switches, &id) {
                self.disable(id, &bundle, WhyDisabled::Settings(origin));
                continue;
            }
            self.candidates.push(PluginCandidate {
                id,
                place: PluginPlace::Flag,
                bundle,
                enabled_by: EnabledBy::Flag,
                power: Power::Full,
            });
        }
    }

    fn installed(&mut self) {
        let mut ids: Vec<PluginId> =
            self.contents.plugins.iter().map(|plugin| plugin.id.clone()).collect();
        ids.sort();
        ids.dedup();
        for id in &ids {
            let found = self.contents.installed(id, &self.sources.project_dir).cloned();
            if let Some(installed) = found {
                self.install(&installed);
            }
        }
    }

    fn install(&mut self, installed: &InstalledPlugin) {
        let InstalledPlugin { id, root, version, store, .. } = installed;
        let off = |why| DisabledPlugin {
            id: id.clone(),
            version: Some(version.clone()),
            root: Some(root.clone()),
            why,
        };
        let marketplace = self.contents.marketplace(id.marketplace()).map(|known| &known.source);
        if let Some(reason) = self.policy.denial(marketplace) {
            self.catalog.disabled.push(off(WhyDisabled::Denied(reason)));
            return;
        }
        let bundle = match Bundle::look(root, id.name(), &mut self.looks) {
            Ok(bundle) => bundle,
            Err(mut problems) => {
                self.catalog.problems.append(&mut problems);
                self.catalog.disabled.push(off(WhyDisabled::Broken));
                return;
            }
        };
        let unsaid = PluginDefaults {
            is_for_user: installed.is_for(&self.sources.project_dir),
            default_enabled: bundle.manifest.default_enabled,
        };
        match decide(&self.sources.settings.switches, id, unsaid) {
            Decision::Off(why) => self.disable(id.clone(), &bundle, why),
            Decision::On(enabled_by, power) => {
                let place = PluginPlace::Store(store.clone());
                self.candidates.push(PluginCandidate {
                    id: id.clone(),
                    place,
                    bundle,
                    enabled_by,
                    power,
                });
            }
        }
    }

    /// Adds the plugins among skills. The user's own count as a whole; a repository's have to be accepted.
    fn among_skills(&mut self) {
        for place in &self.sources.skills_dirs {
            for root in place.plugins(&mut self.looks, &mut self.catalog.problems) {
                self.among_skill(&root, place.keeper);
                self.catalog.skill_folders.push(root);
            }
        }
    }

    fn among_skill(&mut self, root: &Path, keeper: Keeper) {
        let usual_name = root.file_name().unwrap_or_default().to_string_lossy();
        let bundle = match Bundle::look(root, &usual_name, &mut self.looks) {
            Ok(bundle) => bundle,
            Err(mut problems) => return self.catalog.problems.append(&mut problems),
        };
        let id = match PluginId::new(&bundle.manifest.name, SKILLS_DIR) {
            Ok(id) => id,
            Err(error) => return self.refuse(root, &error),
        };
        let denial = self.sources.skills_dirs_denied.clone();
        if let Some(reason) = denial.or_else(|| self.policy.denial(None)) {
            return self.disable(id, &bundle, WhyDisabled::Denied(reason));
        }
        let unsaid =
            PluginDefaults { is_for_user: true, default_enabled: bundle.manifest.default_enabled };
        let (enabled_by, power) = match decide(&self.sources.settings.switches, &id, unsaid) {
            Decision::Off(why) => return self.disable(id, &bundle, why),
            Decision::On(by, Power::Full) if keeper == Keeper::Project => {
                let content = self.sources.content.clone();
                (by, Power::Repository(AcceptedTree { root: bundle.root.clone(), content }))
            }
            // The repository's own settings, not accepted, switch on what is off by default.
            Decision::On(..) if keeper == Keeper::Project => {
                return self.disable(id, &bundle, WhyDisabled::Default);
            }
            Decision::On(by, power) => (by, power),
        };
        let place = PluginPlace::SkillsDir(root.parent().unwrap_or(root).to_owned());
        self.candidates.push(PluginCandidate { id, place, bundle, enabled_by, power });
    }

    fn refuse(&mut self, root: &Path, error: &PluginNameError) {
        let (path, message) = (root.to_owned(), error.to_string());
        self.catalog.problems.push(Problem { path, line: None, message });
    }

    /// Plugins that settings switch on and that are not there.
    fn missing(&mut self) {
        let found = self.candidates.iter().map(|it| &it.id);
        let known: Vec<PluginId> =
            found.chain(self.catalog.disabled.iter().map(|it| &it.id)).cloned().collect();
        for switch in self.sources.settings.switches.iter().filter(|it| it.off.is_none()) {
            let origin = &switch.origin;
            let mut tell = |message: String| {
                let path = origin.file.to_path_buf();
                self.catalog.problems.push(Problem { path, line: Some(origin.line), message });
            };
            let id: PluginId = match switch.id.parse() {
                Ok(id) => id,
                Err(error) => {
                    tell(format!("`enabledPlugins` holds something that is left out: {error}"));
                    continue;
                }
            };
            if switch.is_on && !known.contains(&id) && id.marketplace() != INLINE {
                tell(if id.marketplace() == SKILLS_DIR {
                    format!("plugin `{id}` is switched on, and no directory of skills has it")
                } else {
                    format!(
                        "plugin `{id}` is switched on and not installed; help: `centurion plugin add {id}`"
                    )
                });
                let why = WhyDisabled::NotInstalled(origin.clone());
                self.catalog.disabled.push(DisabledPlugin { id, version: None, root: None, why });
            }
        }
    }

    fn disable(&mut self, id: PluginId, bundle: &Bundle, why: WhyDisabled) {
        let version = bundle.manifest.version.clone();
        let root = Some(bundle.root.clone());
        self.catalog.disabled.push(DisabledPlugin { id, version, root, why });
    }

    /// One plugin of each name: what managed settings force first, then what the command line names.
    fn finish(mut self) -> (PluginCatalog, Looks) {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.sort_by_key(|it| !it.is_forced());
        let mut taken: HashMap<String, PluginId> = HashMap::new();
        let mut kept = Vec::new();
        for candidate in candidates {
            let name = candidate.bundle.manifest.name.clone();
            if let Some(by) = taken.get(&name) {
                let why = WhyDisabled::Shadowed(by.clone());
                self.disable(candidate.id, &candidate.bundle, why);
                continue;
            }
            taken.insert(name, candidate.id.clone());
            kept.push(candidate);
        }
        kept.sort_by_key(|it| (it.place != PluginPlace::Flag, it.id.clone()));
        for candidate in kept {
            let plugin = self.plugin(candidate);
            self.catalog.enabled.push(Arc::new(plugin));
        }
        self.catalog.disabled.sort_by(|one, other| one.id.cmp(&other.id));
        (self.catalog, self.looks)
    }

    fn plugin(&mut self, candidate: PluginCandidate) -> Plugin {
        let PluginCandidate { id, place, bundle, enabled_by, power } = candidate;
        let config = self.sources.settings.configs.get(id.to_string());
        let config = config.filter(|config| config.is_object());
        let (options, mut problems) =
            configured(&bundle.manifest.options, config, &bundle.manifest_file);
        let told = &mut self.catalog.problems;
        told.extend(bundle.errors.iter().chain(&bundle.remarks).cloned());
        told.append(&mut problems);
        if let Some(reason) = power.limit() {
            let message = format!(
                "what acts for the user in this plugin is off (its hooks, its servers, the agent and the output \
                 style that it puts in force; hooks, servers, permission modes and memory of its agents; hooks, \
                 commands and allowed tools of its skills): {reason}"
            );
            told.push(Problem { path: bundle.root.clone(), line: None, message });
        }
        let data = self.sources.stores.data_dir(&id);
        let variables =
            PluginVariables::new(&bundle.root, &data, &self.sources.project_dir, &options);
        tracing::debug!(
            plugin = %id,
            root = %bundle.root.display(),
            agent_paths = bundle.agents.len(),
            hooks = bundle.hooks.len(),
            servers = bundle.servers.len(),
            "plugin enabled"
        );
        let bundle = Arc::new(bundle);
        Plugin { id, place, enabled_by, power, data, options, bundle, variables }
    }
}

/// The reason why plugins in directories of skills do not count: if only plugins of marketplaces may bring something,
/// a manifest beside a skill must not be the way around.
fn denial_of_skills_dirs(settings: &Settings) -> Option<String> {
    let only = settings.plugin_only();
    let origin = [only.skills, only.agents, only.hooks, only.mcp].into_iter().flatten().next()?;
    Some(format!("{origin} lets no plugin of a directory of skills count"))
}

impl PluginCandidate {
    /// Whether managed settings switch it on, against which the command line cannot prevail.
    fn is_forced(&self) -> bool {
        matches!(
            &self.enabled_by,
            EnabledBy::Settings(origin) if origin.level == crate::settings::Level::Managed
        )
    }
}
