//! What an agent is told before it starts: its system prompt and the context of its first message.

use centurion_model::SystemPrompt;

use crate::environment::Environment;

const MAIN: &str = include_str!("prompts/main.md");

/// How the user changes the system prompt of a run.
#[derive(Clone, Debug, Default)]
pub struct PromptOptions {
    /// Stands in the place of the default prompt. An empty text removes it.
    pub replace: Option<String>,
    /// Comes after the prompt.
    pub append: Option<String>,
}

/// The system prompt: what to do, then where.
pub(crate) fn system_prompt(options: &PromptOptions, environment: &Environment) -> SystemPrompt {
    let body = options.replace.as_deref().unwrap_or(MAIN).trim();
    let append = options.append.as_deref().unwrap_or("").trim();
    let sections = [body, append, &environment.render()];
    SystemPrompt::new(
        sections.into_iter().filter(|text| !text.is_empty()).map(str::to_owned).collect(),
    )
}

/// The instructions that people keep in files, as a model reads them beside the user's words.
pub(crate) fn instructions(memory: &str) -> String {
    format!(
        "<system-reminder>\nInstructions that the user and the project keep in files. Follow them where they \
         bear on the task; the user's own words in this conversation go first.\n\n{memory}\n</system-reminder>"
    )
}
