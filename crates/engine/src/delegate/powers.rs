//! The powers of an agent to act for the user: a mode of its own, hooks, servers, a memory that it writes without asking.
//!
//! Decided whenever an agent begins, by what its definition says and what is accepted of that at this moment. The
//! record of an earlier beginning gives none of it but a mode that gives less.

use std::path::PathBuf;

use centurion_config::agent_memory::AgentMemory;
use centurion_config::agents::{ActiveAgent, AgentDefinition};
use centurion_permissions::{Mode, OwnMode};

use crate::agent::delegation::Delegation;
use crate::agent::shared::Shared;
use crate::definition::resolve::{brings_hooks, own_mode};
use crate::definition::spec::{AgentSpec, BroughtHooks, BroughtPart};
use crate::delegate::preload::skills;

/// The powers of one agent in one of its runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Powers {
    pub(crate) own_mode: OwnMode,
    /// The hooks of its definition and of the skills that it knows from the start.
    pub(crate) hooks: Vec<BroughtHooks>,
    pub(crate) mcp_servers: Option<BroughtPart>,
    /// The directory of its memory.
    pub(crate) memory: Option<PathBuf>,
}

impl Powers {
    /// The powers of a fork that is resumed: it has the hooks of the agent that it was forked from, as that is defined
    /// now, and no more than the mode that that agent had.
    fn of_fork(shared: &Shared, delegation: &Delegation, spec: &AgentSpec) -> Self {
        let catalog = delegation.definitions.agents();
        let parent = spec.context.as_ref().and_then(|context| context.parent.as_ref());
        let is_its = |it: &&ActiveAgent| {
            let definition = &it.definition;
            parent.is_some_and(|parent| {
                definition.name.value == parent.name
                    && definition.origin.source.to_string() == parent.source
            })
        };
        let agent = catalog.active.iter().find(is_its);
        Self {
            own_mode: spec.own_mode.map_or(OwnMode::Inherited, OwnMode::Modest),
            hooks: agent.map(|it| hooks(shared, delegation, &it.definition)).unwrap_or_default(),
            // A fork of the main agent has its memory.
            memory: shared.permissions.role().memory.filter(|_| spec.depth == 1),
            ..Self::default()
        }
    }

    /// The powers of an agent that is resumed by one in the mode `above`: those of its definition as it is now.
    pub(crate) fn on_resume(
        shared: &Shared,
        delegation: &Delegation,
        spec: &AgentSpec,
        above: Mode,
    ) -> Self {
        if spec.is_fork() {
            return Self::of_fork(shared, delegation, spec);
        }
        let catalog = delegation.definitions.agents();
        let is_its = |it: &AgentDefinition| {
            it.name.value == spec.agent_type && it.origin.source.to_string() == spec.source
        };
        let recorded = spec.own_mode.map_or(OwnMode::Inherited, OwnMode::Modest);
        let Some(agent) = catalog.active.iter().find(|it| is_its(&it.definition)) else {
            return Self { own_mode: recorded, ..Self::default() };
        };
        let definition = &agent.definition;
        let (own, _) = own_mode(definition, above, delegation.rules.child_mode);
        let own_mode = own.map_or(recorded, |own| own.value);
        let hooks = hooks(shared, delegation, definition);
        if definition.withheld.is_some() {
            return Self { own_mode, hooks, ..Self::default() };
        }
        let path = &definition.origin.path;
        let servers = definition.mcp_servers.as_ref();
        Self {
            own_mode,
            hooks,
            mcp_servers: servers
                .map(|it| BroughtPart { value: it.value.clone(), path: path.clone() }),
            memory: memory(delegation, definition),
        }
    }
}

/// The hooks of a definition and of its skills, as far as they are accepted.
fn hooks(
    shared: &Shared,
    delegation: &Delegation,
    definition: &AgentDefinition,
) -> Vec<BroughtHooks> {
    // Of their texts, which tell the directory, nothing is needed.
    let directory = &delegation.builder.environment.cwd;
    let of_skills = skills(shared, definition, directory, &mut Vec::new()).hooks;
    let may_hook =
        !delegation.builder.sources.only_plugin_hooks || brings_hooks(definition.origin.source);
    let own = definition.hooks.as_ref().filter(|_| may_hook && definition.withheld.is_none());
    let own = own.map(|hooks| BroughtHooks {
        value: hooks.value.clone(),
        path: definition.origin.path.clone(),
        skill: None,
    });
    own.into_iter().chain(of_skills).collect()
}

/// The directory of an agent's memory, if it is there.
fn memory(delegation: &Delegation, definition: &AgentDefinition) -> Option<PathBuf> {
    let places = delegation.builder.files.memories.as_ref()?;
    let scope = definition.memory.as_ref().filter(|_| places.auto_memory)?.value;
    AgentMemory::locate(scope, &definition.name, places)?.directory().canonicalize().ok()
}
