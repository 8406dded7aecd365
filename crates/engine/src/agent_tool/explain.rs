//! What an agent would run with: the same decisions as a launch, without the launch.

use std::sync::Arc;

use centurion_config::agents::ActiveAgent;
use serde::Serialize;

use super::launch::effective;
use crate::caller::Caller;
use crate::delegation::Delegation;
use crate::prompt::{Section, agent_sections};
use crate::remembered::{Purpose, Remembered, prompt, skills};
use crate::resolve::{EffectiveAgent, Wishes};
use crate::session::Shared;

/// An agent with everything that decides about it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    #[serde(flatten)]
    pub agent: EffectiveAgent,
    pub description: String,
    pub source: String,
    /// What single tools are kept to.
    pub limits: Vec<String>,
    /// The parts of its system prompt, in order.
    pub prompt_sections: Vec<Section>,
    /// The directory of its memory.
    pub memory_directory: Option<std::path::PathBuf>,
    /// The skills that it knows from the start.
    pub preloaded_skills: usize,
}

/// Explains an agent that `caller` would start.
pub(crate) fn explain(
    shared: &Shared,
    delegation: &Delegation,
    caller: &Arc<Caller>,
    agent: &ActiveAgent,
    wishes: &Wishes,
) -> Result<Explanation, String> {
    let ground = &delegation.ground;
    let cwd = &ground.environment.cwd;
    let effective = effective(shared, delegation, caller, agent, wishes, cwd);
    let mut effective = effective.map_err(|error| error.to_string())?;
    let definition = &agent.definition;
    let mut problems = std::mem::take(&mut effective.problems);
    let memory =
        Remembered::of(delegation, definition, &mut effective, &mut problems, Purpose::Explain);
    let skills = skills(shared, delegation, definition, &mut problems);
    effective.prompt.value = prompt(shared, delegation, definition);
    let mut sections = agent_sections(&effective, &ground.environment, &delegation.rules);
    sections.extend(memory.as_ref().map(|memory| Section::memory(&memory.section)));
    effective.problems = problems;
    Ok(Explanation {
        description: definition.description.value.clone(),
        source: definition.origin.source.to_string(),
        prompt_sections: sections,
        limits: limits(&effective),
        memory_directory: memory.map(|memory| memory.directory),
        // A text and what goes before it.
        preloaded_skills: skills.texts.len() / 2,
        agent: effective,
    })
}

/// What the definition keeps single tools to.
pub(crate) fn limits(effective: &EffectiveAgent) -> Vec<String> {
    effective.only.iter().map(ToString::to_string).collect()
}
