//! An explanation of an agent: the same decisions as a launch, without the launch.

use centurion_config::agents::ActiveAgent;
use serde::Serialize;

use crate::agent::shared::Shared;
use crate::definition::prompt::Section;
use crate::definition::resolve::EffectiveAgent;
use crate::delegate::preload::{PreloadedTexts, Purpose, preload};

/// An agent with everything that decides about it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    #[serde(flatten)]
    pub agent: EffectiveAgent,
    pub description: String,
    pub source: String,
    /// The limits of single tools.
    pub limits: Vec<String>,
    /// The parts of its system prompt, in order.
    pub prompt_sections: Vec<Section>,
    /// The directory of its memory.
    pub memory_directory: Option<std::path::PathBuf>,
    /// The skills that it knows from the start.
    pub preloaded_skills: usize,
}

/// Explains an agent with the sections of its prompt, which `render` makes of what was decided and of its memory.
pub(crate) fn explain(
    shared: &Shared,
    agent: &ActiveAgent,
    mut effective: EffectiveAgent,
    render: impl FnOnce(&EffectiveAgent, Option<&str>) -> Vec<Section>,
) -> Explanation {
    let definition = &agent.definition;
    let PreloadedTexts { memory, skills, problems } =
        preload(shared, definition, &mut effective, Purpose::Explain);
    effective.problems = problems;
    Explanation {
        description: definition.description.value.clone(),
        source: definition.origin.source.to_string(),
        prompt_sections: render(&effective, memory.as_ref().map(|it| it.section.as_str())),
        limits: effective.only.iter().map(ToString::to_string).collect(),
        memory_directory: memory.map(|memory| memory.directory),
        // A text and what goes before it.
        preloaded_skills: skills.texts.len() / 2,
        agent: effective,
    }
}
