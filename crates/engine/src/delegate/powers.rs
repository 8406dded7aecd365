//! What acts for the user in an agent: a mode of its own, hooks, servers, a memory that it writes without asking.
//!
//! Decided whenever an agent begins, by what its definition says and what is accepted of that at this moment. The
//! record of an earlier beginning gives none of it but a mode that gives less.

use std::path::PathBuf;

use centurion_config::agent_memory::AgentMemory;
use centurion_config::agents::AgentDefinition;
use centurion_permissions::{Mode, OwnMode};

use crate::agent::delegation::Delegation;
use crate::agent::shared::Shared;
use crate::definition::resolve::{brings_hooks, own_mode};
use crate::definition::spec::{AgentSpec, Brought, BroughtHooks};
use crate::delegate::preload::skills;

/// The powers of one agent in one of its runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Powers {
    pub(crate) own_mode: OwnMode,
    /// The hooks of its definition and of the skills that it knows from the start.
    pub(crate) hooks: Vec<BroughtHooks>,
    pub(crate) mcp_servers: Option<Brought>,
    /// The directory of its memory.
    pub(crate) memory: Option<PathBuf>,
}

impl Powers {
    /// The powers of an agent that is resumed by one in the mode `above`: those of its definition as it is now.
    pub(crate) fn on_resume(
        shared: &Shared,
        delegation: &Delegation,
        spec: &AgentSpec,
        above: Mode,
    ) -> Self {
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
        let skill_hooks = skills(shared, delegation, definition, &mut Vec::new()).hooks;
        if definition.withheld.is_some() {
            return Self { own_mode, hooks: skill_hooks, ..Self::default() };
        }
        let path = &definition.origin.path;
        let may_hook =
            !delegation.builder.sources.only_plugin_hooks || brings_hooks(definition.origin.source);
        let own_hooks = definition.hooks.as_ref().filter(|_| may_hook);
        let own_hooks = own_hooks.map(|hooks| BroughtHooks {
            value: hooks.value.clone(),
            path: path.clone(),
            skill: None,
        });
        let servers = definition.mcp_servers.as_ref();
        Self {
            own_mode,
            hooks: own_hooks.into_iter().chain(skill_hooks).collect(),
            mcp_servers: servers.map(|it| Brought { value: it.value.clone(), path: path.clone() }),
            memory: memory(delegation, definition),
        }
    }
}

/// The directory of an agent's memory, if it is there.
fn memory(delegation: &Delegation, definition: &AgentDefinition) -> Option<PathBuf> {
    let places = delegation.builder.files.memories.as_ref()?;
    let scope = definition.memory.as_ref().filter(|_| places.auto_memory)?.value;
    AgentMemory::locate(scope, &definition.name, places)?.directory().canonicalize().ok()
}
