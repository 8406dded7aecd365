//! The agents and skills that a session knows, as they are on disk now.
//!
//! Looked at once when the session begins. From the second look on the kernel watches the directories of agents, so that
//! a look at what has not changed costs nothing. Skills may be many, and each has a directory of its own: they are looked
//! at again when a run begins, when one is invoked and when a host wants them reloaded, and in between are as they were.

mod watch;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::ReadRules;
use centurion_config::agents::{
    AgentCatalog, AgentLoader, AgentSources, PluginAgents, ReadAgent, watched_directories,
};
use centurion_config::output_styles::{DEFAULT_STYLE, OutputStyle, OutputStyles};
use centurion_config::skills::{PluginSkills, SkillCatalog, SkillLoader, SkillSources};
use centurion_protocol::World;
use parking_lot::{Mutex, MutexGuard};

use self::watch::DirectoryWatch;

/// All definitions of a session.
pub struct Definitions {
    state: Mutex<LoadState>,
    /// Held while hooks are asked about a change of skills: agents ask one after the other.
    asking: tokio::sync::Mutex<()>,
    world: Arc<dyn World>,
}

struct LoadState {
    agent_sources: AgentSources,
    skill_sources: SkillSources,
    agents: AgentLoader,
    skills: SkillLoader,
    known: Option<KnownAgents>,
    watch: Option<DirectoryWatch>,
    looks: u64,
    /// Directories below the working directory that were looked at for skills.
    touched: HashSet<PathBuf>,
    /// The skills as they were at the last look; `None` where the next one has to be a real one.
    seen_skills: Option<Arc<SkillCatalog>>,
    /// Set where hooks are asked before a change of skills counts.
    gate: Option<Gate>,
    /// The output style that is in force.
    style: Option<OutputStyle>,
    /// Set where no model may invoke a skill.
    offers_no_skills: bool,
    /// A skill that a model may invoke was seen. From then on agents have the tool, so that their tools stay the same.
    has_had_skills: bool,
}

/// The skills that count while hooks are asked about changes.
struct Gate {
    counted: Arc<SkillCatalog>,
    /// The catalog that a hook kept out.
    refused: Option<Arc<SkillCatalog>>,
}

/// A change of skills that does not count yet.
pub(crate) struct SkillChange {
    /// The files that are new, gone or different.
    pub(crate) files: Vec<PathBuf>,
    catalog: Arc<SkillCatalog>,
}

impl LoadState {
    fn seen_skills(&mut self, world: &dyn World) -> Arc<SkillCatalog> {
        match &self.seen_skills {
            Some(seen) => Arc::clone(seen),
            None => self.look_at_skills(world),
        }
    }

    fn look_at_skills(&mut self, world: &dyn World) -> Arc<SkillCatalog> {
        if let Some(gate) = &self.gate {
            return Arc::clone(&gate.counted);
        }
        let skills = self.skills.load(&self.skill_sources, world);
        self.seen_skills = Some(Arc::clone(&skills));
        skills
    }
}

/// The agents that there are.
#[derive(Clone)]
pub(crate) struct KnownAgents {
    pub(crate) agents: Arc<AgentCatalog>,
    /// Another number for everything else that was there.
    pub(crate) version: u64,
}

impl Definitions {
    /// The rules about reading of the agents' sources bind those of skills, too.
    pub fn new(agents: AgentSources, mut skills: SkillSources, world: Arc<dyn World>) -> Arc<Self> {
        skills.read_rules = agents.read_rules.clone();
        let state = LoadState {
            agent_sources: agents,
            skill_sources: skills,
            agents: AgentLoader::new(),
            skills: SkillLoader::new(),
            known: None,
            watch: None,
            looks: 0,
            touched: HashSet::new(),
            seen_skills: None,
            gate: None,
            style: None,
            offers_no_skills: false,
            has_had_skills: false,
        };
        Arc::new(Self { state: Mutex::new(state), asking: tokio::sync::Mutex::default(), world })
    }

    fn state(&self) -> MutexGuard<'_, LoadState> {
        self.state.lock()
    }

    /// The deny rules for reading that bind the files of definitions.
    pub(crate) fn read_rules(&self) -> ReadRules {
        self.state().agent_sources.read_rules.clone()
    }

    /// Decides which output style is in force for the session, by the name that the settings have.
    pub(crate) fn choose_style(&self, named: Option<&str>) -> Option<OutputStyle> {
        let style = self.output_styles().in_force(named).cloned();
        self.state().style.clone_from(&style);
        style
    }

    /// The name of the output style that is in force.
    pub(crate) fn style_name(&self) -> String {
        let state = self.state();
        state.style.as_ref().map_or(DEFAULT_STYLE, |style| &style.name).to_owned()
    }

    /// The output styles that there are now.
    pub(crate) fn output_styles(&self) -> OutputStyles {
        OutputStyles::load(&self.state().agent_sources, &*self.world)
    }

    /// Adds agents that a host brings, before those that it brought earlier.
    pub fn add(&self, agents: Vec<ReadAgent>) {
        let mut state = self.state();
        state.agent_sources.flag.splice(0..0, agents);
        state.watch = None;
    }

    /// Puts other plugins in the place of those that the session knew. Where hooks are asked about changes of skills, they
    /// are asked about this one, too.
    pub(crate) fn set_plugins(
        &self,
        agents: Vec<PluginAgents>,
        skills: Vec<PluginSkills>,
        folders: Vec<PathBuf>,
    ) {
        let mut state = self.state();
        state.agent_sources.plugins = agents;
        state.skill_sources.plugins = skills;
        state.skill_sources.plugin_folders = folders;
        (state.seen_skills, state.watch) = (None, None);
    }

    /// All agents as they are now.
    pub fn agents(&self) -> Arc<AgentCatalog> {
        self.known().agents
    }

    /// All skills as they were at the last look.
    pub fn skills(&self) -> Arc<SkillCatalog> {
        self.state().seen_skills(&*self.world)
    }

    /// All skills as they are now, for the one who is about to use one.
    pub fn skills_now(&self) -> Arc<SkillCatalog> {
        self.state().look_at_skills(&*self.world)
    }

    /// Has the next one who asks for skills look at them: time has passed.
    pub(crate) fn expire_skills(&self) {
        self.state().seen_skills = None;
    }

    /// Waits until no other agent asks hooks about a change of skills.
    pub(crate) async fn ask_alone(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.asking.lock().await
    }

    /// Lets no change of skills count from now on but those that [`take`](Self::take_skills) lets; the change since
    /// then, if there is one that was not kept out before.
    pub(crate) fn skill_change(&self) -> Option<SkillChange> {
        let mut state = self.state();
        if state.gate.is_none() {
            let counted = Arc::new(state.seen_skills(&*self.world).as_seen());
            state.skill_sources.only_as_seen = true;
            state.gate = Some(Gate { counted, refused: None });
        }
        let LoadState { skills, skill_sources, gate, .. } = &mut *state;
        let gate = gate.as_mut()?;
        let catalog = skills.load(skill_sources, &*self.world);
        let is_refused =
            gate.refused.as_ref().is_some_and(|it| it.changed_files(&catalog).is_empty());
        if is_refused || Arc::ptr_eq(&gate.counted, &catalog) {
            return None;
        }
        let files = gate.counted.changed_files(&catalog);
        if files.is_empty() {
            gate.counted = catalog;
            gate.refused = None;
            return None;
        }
        Some(SkillChange { files, catalog })
    }

    /// Lets a change of skills count.
    pub(crate) fn take_skills(&self, change: SkillChange) {
        let mut state = self.state();
        state.seen_skills = Some(Arc::clone(&change.catalog));
        state.gate = Some(Gate { counted: change.catalog, refused: None });
    }

    /// Keeps a change of skills out, until there is another one.
    pub(crate) fn keep_skills_out(&self, change: SkillChange) {
        if let Some(gate) = &mut self.state().gate {
            gate.refused = Some(change.catalog);
        }
    }

    /// Lets changes of skills count by themselves: no hook is there to be asked.
    pub(crate) fn allow_skill_changes(&self) {
        let mut state = self.state();
        if state.gate.take().is_some() {
            state.skill_sources.only_as_seen = false;
            state.seen_skills = None;
        }
    }

    /// Lets models invoke the skills of these names and no others; `None` is all.
    pub(crate) fn choose_skills(&self, chosen: Option<BTreeSet<String>>) {
        let mut state = self.state();
        if state.skill_sources.chosen == chosen {
            return;
        }
        state.skill_sources.chosen = chosen;
        // The next change that hooks are asked about is a change of these.
        state.skill_sources.only_as_seen = false;
        (state.gate, state.seen_skills) = (None, None);
    }

    /// Says that the session has commands: no flag switched them off together with all skills.
    pub(crate) fn has_commands(&self) -> bool {
        !self.state().skill_sources.is_off
    }

    /// Disables all skills for models.
    pub(crate) fn offer_no_skills(&self) {
        self.state().offers_no_skills = true;
    }

    /// Tells whether models have the tool that invokes skills: whether there is a skill for them, or was one in this
    /// session.
    pub(crate) fn has_skills_for_models(&self) -> bool {
        let mut state = self.state();
        if !state.has_had_skills && !state.offers_no_skills {
            let skills = state.seen_skills(&*self.world);
            state.has_had_skills = skills.active.iter().any(|skill| skill.card.for_models);
        }
        state.has_had_skills && !state.offers_no_skills
    }

    /// Takes note of files that agents read or changed: skills of directories below the working directory count from
    /// then on. Whether there are such directories that were not known.
    pub(crate) fn touch<'p>(&self, files: impl Iterator<Item = &'p Path>) -> bool {
        let mut state = self.state();
        if state.skill_sources.folders.is_apart {
            return false;
        }
        let cwd = state.skill_sources.folders.cwd.clone();
        let mut found = false;
        for file in files {
            let below =
                file.ancestors().skip(1).take_while(|it| it.starts_with(&cwd) && *it != cwd);
            for directory in below {
                if !state.touched.insert(directory.to_owned()) {
                    break;
                }
                let has_skills = |kind: &str| {
                    [".claude", ".centurion"]
                        .iter()
                        .any(|it| directory.join(it).join(kind).is_dir())
                };
                if has_skills("skills") || has_skills("commands") {
                    state.skill_sources.nested.push(directory.to_owned());
                    state.seen_skills = None;
                    found = true;
                }
            }
        }
        found
    }

    pub(crate) fn known(&self) -> KnownAgents {
        let mut state = self.state();
        state.looks += 1;
        let is_fresh = state.watch.as_ref().is_some_and(|watch| !watch.has_changed());
        if let (true, Some(known)) = (is_fresh, &state.known) {
            return known.clone();
        }
        // Most sessions look once; watching is for those that look again. It begins before the look, so
        // that no change falls in between, and anew after each change: directories may have come.
        if state.looks > 1 {
            state.watch = DirectoryWatch::new(&watched_directories(&state.agent_sources));
        }
        let LoadState { agent_sources, agents, known, .. } = &mut *state;
        let agents = agents.load(agent_sources, &*self.world);
        let version = match known {
            Some(known) if Arc::ptr_eq(&known.agents, &agents) => known.version,
            Some(known) => known.version + 1,
            None => 0,
        };
        let now = KnownAgents { agents, version };
        state.known = Some(now.clone());
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use centurion_config::agents::ProjectFolders;
    use centurion_protocol::SystemWorld;

    #[test]
    fn a_new_agent_is_there_at_the_next_look_and_what_has_not_changed_is_not_read_again() {
        // S-050
        let scratch = tempfile::tempdir().unwrap();
        let cwd = scratch.path().canonicalize().unwrap();
        let agents = cwd.join(".claude/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let folders = ProjectFolders { cwd, ..ProjectFolders::default() };
        let sources = AgentSources { folders: folders.clone(), ..AgentSources::default() };
        let skills = SkillSources { folders, ..SkillSources::default() };
        let definitions = Definitions::new(sources, skills, Arc::new(SystemWorld));
        assert!(definitions.agents().active.is_empty());
        let (one, two) = (definitions.known(), definitions.known());
        assert!(Arc::ptr_eq(&one.agents, &two.agents) && one.version == two.version);
        std::fs::write(agents.join("a.md"), "---\nname: a\ndescription: d\n---\nx\n").unwrap();
        assert!(definitions.agents().find("a").is_some());
        assert_ne!(definitions.known().version, one.version);
    }

    #[test]
    fn skills_are_looked_at_once_until_one_is_used_or_time_has_passed() {
        let scratch = tempfile::tempdir().unwrap();
        let cwd = scratch.path().canonicalize().unwrap();
        let skill = |name: &str| {
            let directory = cwd.join(".claude/skills").join(name);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("SKILL.md"), "---\ndescription: d\n---\nx\n").unwrap();
        };
        let folders = ProjectFolders { cwd: cwd.clone(), ..ProjectFolders::default() };
        let skills = SkillSources { folders, ..SkillSources::default() };
        let definitions = Definitions::new(AgentSources::default(), skills, Arc::new(SystemWorld));
        skill("one");
        let first = definitions.skills();
        assert!(definitions.has_skills_for_models() && first.find("one").is_some());
        skill("two");
        assert!(Arc::ptr_eq(&first, &definitions.skills()), "it is the look of the start");
        assert!(definitions.skills_now().find("two").is_some(), "a use looks again");
        assert!(definitions.skills().find("two").is_some(), "for all");
        skill("three");
        assert!(definitions.skills().find("three").is_none());
        definitions.expire_skills();
        assert!(definitions.skills().find("three").is_some());
    }
}
