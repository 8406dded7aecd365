//! The agent or skill that a name means, and all names that rules may know it by.
//!
//! Rules about agents and skills speak of names, and each may have several: its own, and what else leads to it. A deny
//! rule for one of them holds for all.

use centurion_config::agents::{ActiveAgent, AgentCatalog};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::definition::builtin::{self, FORK, USUAL};

/// The agent that a call asks for.
pub(crate) fn find<'c>(catalog: &'c AgentCatalog, asked: &str) -> Option<&'c ActiveAgent> {
    catalog.find(asked).or_else(|| catalog.find(builtin::alias(asked)?))
}

/// All names that lead to agents of a type.
pub(crate) fn names(catalog: &AgentCatalog, kind: &str) -> Vec<String> {
    let leads_there = |other: &&str| {
        find(catalog, other).is_some_and(|agent| agent.definition.name.value == kind)
    };
    let others = builtin::other_names(kind).filter(leads_there).map(str::to_owned);
    std::iter::once(kind.to_owned()).chain(others).collect()
}

/// All names of the agent that a call of the Agent tool would start or resume; none where it would not.
pub(crate) fn names_for_call(caller: &Agent, input: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct Asked {
        #[serde(default)]
        subagent_type: Value,
        #[serde(default)]
        resume: Value,
    }
    let Some(shared) = caller.shared.upgrade() else { return Vec::new() };
    let delegation = &shared.delegation;
    let Ok(asked) = serde_json::from_str::<Asked>(input.get()) else { return Vec::new() };
    let catalog = delegation.definitions.agents();
    if let Some(id) = given(asked.resume.as_str()) {
        let task = delegation.find(id);
        return task.map(|task| names(&catalog, &task.spec.agent_type)).unwrap_or_default();
    }
    let usual = if delegation.rules.forks { FORK } else { USUAL };
    let kind = given(asked.subagent_type.as_str()).unwrap_or(usual);
    if kind == FORK {
        return vec![FORK.to_owned()];
    }
    let meant = find(&catalog, kind);
    meant.map(|agent| names(&catalog, &agent.definition.name)).unwrap_or_default()
}

/// All names of the skill that a call of the Skill tool would invoke; none where it would not.
pub(crate) fn skill_names_for_call(caller: &Agent, input: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct Asked {
        #[serde(alias = "command")]
        skill: String,
    }
    let Some(shared) = caller.shared.upgrade() else { return Vec::new() };
    let Ok(asked) = serde_json::from_str::<Asked>(input.get()) else { return Vec::new() };
    // As the tool looks it up. The tool looks once more, and asks the rules again.
    let catalog = shared.delegation.definitions.skills_now();
    let found = catalog.find(skill_name(&asked.skill));
    found.map(|skill| catalog.names_of(&skill)).unwrap_or_default()
}

/// The name of a skill in a call, without what may stand around it.
pub(crate) fn skill_name(asked: &str) -> &str {
    let name = asked.trim();
    name.strip_prefix('/').unwrap_or(name)
}

/// The value that was given; an empty text gives none.
pub(crate) fn given(wish: Option<&str>) -> Option<&str> {
    wish.map(str::trim).filter(|wish| !wish.is_empty())
}
