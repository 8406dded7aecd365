//! What an agent is told before it starts: its system prompt and the context of its first message.

use centurion_model::SystemPrompt;

use crate::delegation::{DelegationRules, SessionMode};
use crate::environment::Environment;
use crate::resolve::EffectiveAgent;

const MAIN: &str = include_str!("prompts/main.md");
/// What a main agent is told that only directs others.
const COORDINATOR: &str = include_str!("prompts/coordinator.md");
/// What every agent is told that another one starts.
const CHILD: &str = include_str!("prompts/child.md");

/// How the user changes the system prompt of a run.
#[derive(Clone, Debug, Default)]
pub struct PromptOptions {
    /// Stands in the place of the default prompt. An empty text removes it.
    pub replace: Option<String>,
    /// Comes after the prompt.
    pub append: Option<String>,
}

/// The system prompt: what to do, then where, and what the agent remembers.
pub(crate) fn system_prompt(
    options: &PromptOptions,
    environment: &Environment,
    mode: SessionMode,
    memory: Option<&str>,
) -> SystemPrompt {
    let usual = match mode {
        SessionMode::Coordinator => COORDINATOR,
        _ => MAIN,
    };
    let body = options.replace.as_deref().unwrap_or(usual).trim();
    let append = options.append.as_deref().unwrap_or("").trim();
    let sections = [body, append, &environment.render(), memory.unwrap_or("")];
    SystemPrompt::new(
        sections.into_iter().filter(|text| !text.is_empty()).map(str::to_owned).collect(),
    )
}

/// The sections of the system prompt of an agent that another one starts: its definition's, what it means
/// to be one, and where it is.
pub(crate) fn agent_sections(
    effective: &EffectiveAgent,
    environment: &Environment,
    rules: &DelegationRules,
) -> Vec<String> {
    let append = rules.append_prompt.as_deref().unwrap_or("");
    let with_git = effective.instructions.value;
    let environment = environment.of_agent(&effective.cwd.value, &effective.model.value, with_git);
    let sections = [effective.prompt.value.as_str(), CHILD, append, &environment.render()];
    let sections = sections.into_iter().map(str::trim).filter(|text| !text.is_empty());
    sections.map(str::to_owned).collect()
}

/// The instructions that people keep in files, as a model reads them beside the user's words.
pub(crate) fn instructions(memory: &str) -> String {
    format!(
        "<system-reminder>\nInstructions that the user and the project keep in files. Follow them where they \
         bear on the task; the user's own words in this conversation go first.\n\n{memory}\n</system-reminder>"
    )
}
