//! All agents that are defined anywhere: which one a name means, what it takes the place of, and what
//! cannot be used.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::World;

use super::definition::{AgentDefinition, AgentOrigin, AgentSource, Color};
use super::json::read_json_agent;
use super::markdown::{AgentScope, FailedAgent, read_markdown};
use super::name::{check_name, folded};
use super::reading::{ReadAgent, Vocabulary};
use super::sources::{AgentPlace, AgentSources};
use crate::Problem;
use crate::plugins::adapt_agent;
use crate::scan::{FileChoice, FoundFile, Memo, ScanPlace};
use crate::settings::{DeclaredAgent, Level, Off, printable};
use crate::trust::{ContentTrust, PowerItem, Reach};

/// The result of reading a file of a directory.
type ReadFile = Result<Option<ReadAgent>, FailedAgent>;

/// All agents, sorted by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentCatalog {
    /// One for each name.
    pub active: Vec<ActiveAgent>,
    /// Agents whose name a stronger one has.
    pub shadowed: Vec<ShadowedAgent>,
    pub failed: Vec<FailedAgent>,
    /// Remarks for their authors.
    pub problems: Vec<Problem>,
}

/// An agent that can be asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveAgent {
    pub definition: Arc<AgentDefinition>,
    /// The color of its definition, or else one derived from its name.
    pub color: Color,
}

/// An agent that cannot be asked for, because another has its name.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowedAgent {
    pub definition: Arc<AgentDefinition>,
    pub by: AgentOrigin,
}

impl AgentCatalog {
    /// The agent that a person or model means: the one with exactly that name, or else one whose name
    /// differs in case and in what joins its words.
    pub fn find(&self, name: &str) -> Option<&ActiveAgent> {
        let exact = self.active.iter().find(|agent| agent.definition.name.value == name);
        exact.or_else(|| {
            let wanted = folded(name);
            self.active.iter().find(|agent| folded(&agent.definition.name) == wanted)
        })
    }
}

/// Loads agents, and remembers what it has read.
#[derive(Default)]
pub struct AgentLoader {
    memo: Memo<ReadFile>,
    last: Option<(AgentSources, Arc<AgentCatalog>)>,
}

impl AgentLoader {
    pub fn new() -> Self {
        Self::default()
    }

    /// All agents as they are now. Where nothing has changed the same catalog is returned, at the
    /// price of a look at each file.
    pub fn load(&mut self, sources: &AgentSources, world: &dyn World) -> Arc<AgentCatalog> {
        let is_same = self.last.as_ref().is_some_and(|(last, _)| last == sources);
        if !is_same {
            // Names that are known decide what is said about a file, and plugins what theirs say.
            let keeps_readings = self.last.as_ref().is_some_and(|(last, _)| {
                last.vocabulary == sources.vocabulary
                    && last.plugins == sources.plugins
                    && last.content == sources.content
            });
            if !keeps_readings {
                self.memo = Memo::default();
            }
        }
        self.memo.bind(&sources.read_rules);
        let mut gathering = AgentGathering::new(sources);
        let mut places = HashSet::new();
        let mut roots = HashSet::new();
        let mut is_unchanged = is_same;
        for source in STRONGEST_FIRST.into_iter().filter(|source| sources.wants(*source)) {
            gathering.before_files(source);
            for place in sources.places(source) {
                // A directory that is reached again is the stronger one's.
                if roots.insert(place.place.root.clone()) {
                    is_unchanged &= self.visit(&place, &mut gathering, world);
                    places.insert(place.place);
                }
            }
            gathering.after_files(source);
        }
        self.memo.keep_only(&places);
        if let (true, Some((_, catalog))) = (is_unchanged, &self.last) {
            return Arc::clone(catalog);
        }
        let catalog = Arc::new(gathering.finish());
        tracing::debug!(
            active = catalog.active.len(),
            shadowed = catalog.shadowed.len(),
            failed = catalog.failed.len(),
            "agents loaded"
        );
        self.last = Some((sources.clone(), Arc::clone(&catalog)));
        catalog
    }

    fn visit(
        &mut self,
        place: &AgentPlace,
        gathering: &mut AgentGathering<'_>,
        world: &dyn World,
    ) -> bool {
        let sources = gathering.sources;
        let plugin = sources.plugins.iter().find(|it| Some(&it.plugin) == place.plugin.as_ref());
        let visit = self.memo.visit(&place.place, world, |path, text| {
            let read = read_markdown(text, path, &scope_of(place, path), &sources.vocabulary)?;
            Ok(match plugin {
                Some(plugin) => read.map(|read| adapt_agent(plugin, read)),
                None if place.source == AgentSource::Project => {
                    read.map(|read| withhold(read, text, &sources.content))
                }
                None => read,
            })
        });
        if let (Some(plugin), false) = (plugin, visit.is_unchanged) {
            let (plugin, path) = (plugin.plugin.as_str(), place.place.root.display());
            tracing::debug!(plugin, %path, files = visit.found.len(), "agents of a plugin read");
        }
        for refused in visit.refused {
            gathering.failed.push(FailedAgent {
                path: refused.path,
                line: None,
                reason: refused.reason,
                source: place.source,
            });
        }
        gathering.files(place, visit.found);
        visit.is_unchanged
    }
}

/// Notes why what acts for the user in a project's definition does not count, if so. What is judged is the
/// very text that was read.
fn withhold(read: ReadAgent, text: &str, content: &ContentTrust) -> ReadAgent {
    let Some(item) = read.definition.power_item(text) else { return read };
    let Err(reason) = content.judge(&item, Reach::Folder) else { return read };
    let ReadAgent { definition, mut problems } = read;
    let mut definition = Arc::unwrap_or_clone(definition);
    let message = format!("what acts for the user in it is off: {reason}");
    problems.push(Problem { path: item.file, line: item.line, message });
    definition.withheld = Some(reason);
    ReadAgent { definition: Arc::new(definition), problems }
}

/// The texts of an agent that may name files which run, whatever else the file is.
pub(crate) fn commands_of_text(text: &str, path: &Path) -> Vec<String> {
    let scope = AgentScope::Own(AgentSource::Project);
    let read = read_markdown(text, path, &scope, &Vocabulary::default()).ok().flatten();
    let item = read.and_then(|read| read.definition.power_item(text));
    item.map(|item| item.commands().to_vec()).unwrap_or_default()
}

/// The definitions in one directory of a project that have to be accepted.
pub(crate) fn directory_power(
    directory: &Path,
    within: &Path,
    world: &dyn World,
) -> Vec<PowerItem> {
    let place = ScanPlace {
        root: directory.join("agents"),
        within: Some(within.to_owned()),
        pick: FileChoice::Markdown,
        owner: String::new(),
    };
    let scope = AgentScope::Own(AgentSource::Project);
    let visit = Memo::default().visit(&place, world, |path, text| {
        let read = read_markdown(text, path, &scope, &Vocabulary::default());
        read.ok().flatten().and_then(|read| read.definition.power_item(text))
    });
    visit.found.iter().filter_map(|found| Option::clone(&found.value)).collect()
}

const STRONGEST_FIRST: [AgentSource; 6] = [
    AgentSource::Policy,
    AgentSource::Flag,
    AgentSource::Project,
    AgentSource::User,
    AgentSource::Plugin,
    AgentSource::BuiltIn,
];

/// The scope of a file: folders between a plugin's directory and the file are part of its name.
fn scope_of(place: &AgentPlace, path: &Path) -> AgentScope {
    let Some(plugin) = &place.plugin else { return AgentScope::Own(place.source) };
    let below = path.parent().and_then(|it| it.strip_prefix(&place.place.root).ok());
    let folders = below.into_iter().flat_map(Path::components);
    let folders = folders.map(|it| it.as_os_str().to_string_lossy().into_owned());
    let folders = folders.filter(|folder| check_name(folder).is_ok()).collect();
    AgentScope::Plugin { plugin: plugin.clone(), folders }
}

/// Agents on their way into a catalog, the strongest first.
struct AgentGathering<'s> {
    sources: &'s AgentSources,
    candidates: Vec<Arc<AgentDefinition>>,
    failed: Vec<FailedAgent>,
    problems: Vec<Problem>,
    /// Files that have been taken, by who keeps them.
    taken: HashSet<(AgentSource, Option<String>, (u64, u64))>,
}

impl<'s> AgentGathering<'s> {
    fn new(sources: &'s AgentSources) -> Self {
        Self {
            sources,
            candidates: Vec::new(),
            failed: Vec::new(),
            problems: Vec::new(),
            taken: HashSet::new(),
        }
    }

    /// Adds the agents that are stronger than the files of a source.
    fn before_files(&mut self, source: AgentSource) {
        match source {
            AgentSource::Flag => {
                let sources = self.sources;
                sources.flag.iter().for_each(|read| self.add(read));
            }
            AgentSource::Project => self.settings(Level::Local, source),
            AgentSource::BuiltIn => self.built_in(),
            _ => {}
        }
    }

    /// Adds the agents that are weaker than the files of a source.
    fn after_files(&mut self, source: AgentSource) {
        match source {
            AgentSource::Policy => self.settings(Level::Managed, source),
            AgentSource::Flag => self.settings(Level::Flag, source),
            AgentSource::Project => self.settings(Level::Project, source),
            AgentSource::User => self.settings(Level::User, source),
            AgentSource::Plugin | AgentSource::BuiltIn => {}
        }
    }

    fn add(&mut self, read: &ReadAgent) {
        self.problems.extend(read.problems.iter().cloned());
        self.candidates.push(Arc::clone(&read.definition));
    }

    fn files(&mut self, place: &AgentPlace, found: Vec<FoundFile<ReadFile>>) {
        let mut here: HashMap<String, PathBuf> = HashMap::new();
        for FoundFile { path, stamp, value } in found {
            if !self.taken.insert((place.source, place.plugin.clone(), stamp.identity())) {
                continue;
            }
            match &*value {
                Ok(None) => {}
                Ok(Some(read)) => {
                    let name = &read.definition.name;
                    match here.get(&name.value) {
                        None => _ = here.insert(name.value.clone(), path.clone()),
                        Some(first) => {
                            let first = first.display();
                            let message =
                                printable(&format!("`{}` is also in {first}", name.value));
                            self.problems.push(Problem { path, line: Some(name.line), message });
                        }
                    }
                    self.add(read);
                }
                Err(failed) => self.failed.push(failed.clone()),
            }
        }
    }

    /// The agents of one level of settings. One that is switched off for want of trust is not there.
    fn settings(&mut self, level: Level, source: AgentSource) {
        let sources = self.sources;
        for declared in sources.settings.iter().filter(|it| it.origin.level == level) {
            let counts = matches!(declared.off, None | Some(Off::Overridden(_)));
            if counts {
                self.setting(declared, source);
            }
        }
    }

    fn setting(&mut self, declared: &DeclaredAgent, source: AgentSource) {
        let DeclaredAgent { name, value, origin, .. } = declared;
        let path = origin.file.to_path_buf();
        let agent_origin = AgentOrigin { source, path: path.clone(), plugin: None };
        let vocabulary: &Vocabulary = &self.sources.vocabulary;
        match read_json_agent(name, value, agent_origin, origin.line, vocabulary) {
            Ok(read) => self.add(&read),
            Err(errors) => self.failed.extend(errors.into_iter().map(|error| FailedAgent {
                path: path.clone(),
                line: Some(error.line),
                reason: format!("agents.{error}"),
                source,
            })),
        }
    }

    fn built_in(&mut self) {
        let sources = self.sources;
        for agent in &sources.built_in {
            let scope = AgentScope::Own(AgentSource::BuiltIn);
            let path = Path::new(agent.path);
            match read_markdown(agent.text, path, &scope, &sources.vocabulary) {
                Ok(Some(read)) => self.add(&read),
                Ok(None) => {}
                Err(failed) => self.failed.push(failed),
            }
        }
    }

    /// The first of each name counts.
    fn finish(mut self) -> AgentCatalog {
        let mut catalog = AgentCatalog::default();
        let mut winners: HashMap<String, AgentOrigin> = HashMap::new();
        for definition in self.candidates {
            if let Some(by) = winners.get(&definition.name.value) {
                catalog.shadowed.push(ShadowedAgent { definition, by: by.clone() });
                continue;
            }
            winners.insert(definition.name.value.clone(), definition.origin.clone());
            let own = definition.color.as_ref().map(|color| color.value);
            let color = own.unwrap_or_else(|| Color::of_name(&definition.name));
            catalog.active.push(ActiveAgent { definition, color });
        }
        catalog.active.sort_by_cached_key(|it| sort_key(&it.definition));
        catalog.shadowed.sort_by_cached_key(|it| sort_key(&it.definition));
        self.failed.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
        catalog.failed = self.failed;
        catalog.problems = self.problems;
        catalog
    }
}

/// Without regard to case; those with the same name stay in their order.
fn sort_key(definition: &AgentDefinition) -> (String, String) {
    let name = &definition.name.value;
    (name.to_lowercase(), name.clone())
}

/// The directories that are looked at: a caller that watches files watches these.
pub fn watched_directories(sources: &AgentSources) -> Vec<PathBuf> {
    let wanted = STRONGEST_FIRST.into_iter().filter(|source| sources.wants(*source));
    let places = wanted.flat_map(|source| sources.places(source));
    let mut roots: Vec<PathBuf> = places.map(|it| it.place).map(|it: ScanPlace| it.root).collect();
    roots.sort();
    roots.dedup();
    roots
}
