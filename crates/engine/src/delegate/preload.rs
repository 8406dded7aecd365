//! The knowledge of an agent at its start, beside its task: its memory, its skills, and texts of the program for
//! its own agents about the user's things.

use std::path::{Path, PathBuf};

use centurion_config::agent_memory::{AgentMemory, MemoryError, SnapshotStanding};
use centurion_config::agents::{AgentDefinition, AgentEffort, AgentSource};
use centurion_config::skills::{Preload, SkillText};
use centurion_hooks::{Frontmatter, HookOrigin, HookSet, HookSource};
use centurion_permissions::{Rule, RuleOrigin};
use centurion_protocol::AgentId;
use centurion_protocol::markup::contain;

use crate::agent::delegation::Delegation;
use crate::agent::shared::Shared;
use crate::definition::builtin::{self, PromptFacts};
use crate::definition::resolve::EffectiveAgent;
use crate::definition::spec::BroughtHooks;

/// The purpose of reading a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The agent begins: its directory is made.
    Run,
    /// The agent is only explained: nothing is written.
    Explain,
}

/// The preloaded texts of an agent.
pub(crate) struct PreloadedTexts {
    pub(crate) memory: Option<PreloadedMemory>,
    pub(crate) skills: Skills,
    /// Parts of its definition that are not in force, with the reasons.
    pub(crate) problems: Vec<String>,
}

/// Gets ready what an agent begins with, and its prompt as it is now.
pub(crate) fn preload(
    shared: &Shared,
    definition: &AgentDefinition,
    effective: &mut EffectiveAgent,
    purpose: Purpose,
) -> PreloadedTexts {
    let delegation = &shared.delegation;
    let mut problems = std::mem::take(&mut effective.problems);
    let memory = PreloadedMemory::of(delegation, definition, effective, &mut problems, purpose);
    effective.prompt.value = prompt(shared, delegation, definition);
    if definition.withheld.is_some() && definition.initial_command().is_some() {
        effective.initial_prompt = None;
        problems
            .push("`initialPrompt` is not in force until its definition is accepted".to_owned());
    }
    let skills = skills(shared, definition, &effective.cwd.value, &mut problems);
    PreloadedTexts { memory, skills, problems }
}

/// The memory of an agent, ready to be used.
pub(crate) struct PreloadedMemory {
    /// With links resolved.
    pub(crate) directory: PathBuf,
    /// The last section of its system prompt.
    pub(crate) section: String,
}

impl PreloadedMemory {
    /// The memory that the definition asks for. Tools that the agent has for it alone are confined to its
    /// directory. One that cannot be used is a problem, and the agent goes without.
    fn of(
        delegation: &Delegation,
        definition: &AgentDefinition,
        effective: &mut EffectiveAgent,
        problems: &mut Vec<String>,
        purpose: Purpose,
    ) -> Option<Self> {
        let scope = effective.memory.as_ref()?.value;
        let places = delegation.builder.files.memories.as_ref()?;
        if purpose == Purpose::Run && definition.withheld.is_some() {
            problems.push("`memory` is not in force until its definition is accepted".to_owned());
            return None;
        }
        let memory = AgentMemory::locate(scope, &definition.name, places)?;
        let directory = match purpose {
            Purpose::Explain => Ok(memory.directory().to_owned()),
            Purpose::Run => prepare(&memory, problems),
        };
        let directory = match directory {
            Ok(directory) => directory,
            Err(reason) => {
                problems.push(format!("`memory` is not in force: {reason}"));
                return None;
            }
        };
        let text = memory.load();
        problems.extend(text.problem.as_ref().map(ToString::to_string));
        for tool in &effective.for_memory {
            let rule = format!("{tool}(/{}/**)", directory.display());
            match Rule::parse(&rule, RuleOrigin::Session) {
                Ok(rule) => effective.only.extend([rule]),
                Err(error) => {
                    problems.push(format!("{tool} cannot be kept to the memory: {error}"));
                }
            }
        }
        Some(Self { directory, section: memory.render(&text) })
    }
}

/// Makes the directory of a memory, and begins it with the project's snapshot where it is empty. The path that is
/// returned has its links resolved.
fn prepare(memory: &AgentMemory, problems: &mut Vec<String>) -> Result<PathBuf, MemoryError> {
    if let Some(snapshot) = memory.snapshot() {
        match snapshot.at_load() {
            Ok(look) => {
                problems.extend(look.problems.iter().map(ToString::to_string));
                if let SnapshotStanding::Update { made_at } = look.standing {
                    problems.push(format!(
                        "the project's snapshot of its memory is newer ({made_at}): `centurion agents \
                         memory import` imports it"
                    ));
                }
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    let told = memory.prepare()?;
    problems.extend(told.iter().map(ToString::to_string));
    let unusable =
        |source| MemoryError::Unmakable { directory: memory.directory().to_owned(), source };
    memory.directory().canonicalize().map_err(unusable)
}

/// The skills that an agent knows from the start.
#[derive(Default)]
pub(crate) struct Skills {
    /// The texts about skills.
    pub(crate) texts: Vec<String>,
    /// The hooks that they bring.
    pub(crate) hooks: Vec<BroughtHooks>,
}

/// The skills that a definition names, for an agent that works in this directory.
pub(crate) fn skills(
    shared: &Shared,
    definition: &AgentDefinition,
    project_dir: &Path,
    problems: &mut Vec<String>,
) -> Skills {
    let delegation = &shared.delegation;
    let project_dir = delegation.builder.project_of(project_dir);
    if definition.skills.is_none() {
        return Skills::default();
    }
    let catalog = delegation.definitions.skills_now();
    let effort = delegation.builder.settings.effort.map(AgentEffort::Level);
    let preload = Preload { catalog: &catalog, project_dir, session: shared.id(), effort };
    let loaded = preload.for_agent(definition);
    problems.extend(loaded.problems.iter().map(ToString::to_string));
    let mut hooks = Vec::new();
    for skill in &loaded.definitions {
        let Some(brought) = &skill.hooks else { continue };
        match delegation.builder.sources.skill_hooks_refusal(skill) {
            Some(reason) => problems.push(format!("hooks of skill `{}`: {reason}", skill.name)),
            None => hooks.push(BroughtHooks {
                value: brought.value.clone(),
                path: skill.origin.path.clone(),
                skill: Some(skill.name.clone()),
            }),
        }
    }
    let texts = loaded.skills.iter().flat_map(SkillText::blocks).collect();
    Skills { texts, hooks }
}

/// A set of hooks as an agent brings it; what is wrong with it is told.
pub(crate) fn hook_set(
    shared: &Shared,
    id: Option<&AgentId>,
    agent: &str,
    brought: &BroughtHooks,
) -> HookSet {
    let (source, of) = match &brought.skill {
        Some(skill) => (HookSource::Skill(skill.as_str().into()), Frontmatter::Skill),
        None => (HookSource::Agent(agent.into()), Frontmatter::Agent),
    };
    let origin = HookOrigin::in_file(source, brought.path.clone(), None);
    let set = HookSet::from_frontmatter(&brought.value, &origin, of);
    for problem in set.problems() {
        shared.inform(id, "warning", format!("agent {agent}: {problem}"));
    }
    set
}

/// The prompt of a definition as it is now: what is built in learns what the user has, and in what is not, nothing
/// passes for our markup.
fn prompt(shared: &Shared, delegation: &Delegation, definition: &AgentDefinition) -> String {
    if definition.origin.source != AgentSource::BuiltIn {
        return contain(&definition.prompt.value).into_owned();
    }
    if !definition.prompt.contains("{{") {
        return definition.prompt.value.clone();
    }
    let agents = delegation.definitions.agents();
    let own = agents.active.iter().filter(|it| it.definition.origin.directory().is_some());
    let skills = delegation.definitions.skills();
    let servers = shared.servers.all();
    let facts = PromptFacts {
        agents: own.map(|agent| agent.definition.name.value.clone()).collect(),
        skills: skills.active.iter().map(|skill| skill.name.clone()).collect(),
        servers: servers.iter().map(|(connection, _)| connection.name().to_owned()).collect(),
        settings_files: delegation.builder.sources.settings_files.clone(),
    };
    builtin::prompt(definition, &facts).into_owned()
}
