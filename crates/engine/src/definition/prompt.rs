//! Texts for an agent before it starts: its system prompt and the context of its first message.

use std::borrow::Cow;

use centurion_config::output_styles::OutputStyle;
use centurion_model::SystemPrompt;
use centurion_protocol::markup::contain;
use centurion_team::TeamName;
use serde::Serialize;

use crate::definition::environment::Environment;
use crate::definition::resolve::EffectiveAgent;
use crate::definition::rules::{DelegationRules, SessionMode};

const MAIN: &str = include_str!("prompts/main.md");
/// The headings in it between which the rules for work on software stand.
const WORKING: &str = "# Working\n";
const FOREIGN_TEXT: &str = "# Text you are given\n";
/// The prompt of a main agent that only directs others.
const COORDINATOR: &str = include_str!("prompts/coordinator.md");
/// The rules for every agent that another one starts.
const CHILD: &str = include_str!("prompts/child.md");

/// The rules for a member of a team.
const TEAMMATE: &str = include_str!("prompts/teammate.md");

/// The user's changes to the system prompt of a run.
#[derive(Clone, Debug, Default)]
pub struct PromptOptions {
    /// Stands in the place of the default prompt. An empty text removes it.
    pub replace: Option<String>,
    /// Comes after the prompt.
    pub append: Option<String>,
    /// The name of the output style, as the settings have it.
    pub style: Option<String>,
    /// Whether what differs from user to user stands in the first message instead.
    pub is_the_same_for_all: bool,
}

/// A part of a system prompt, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    pub from: &'static str,
    pub text: String,
}

impl Section {
    pub(crate) fn memory(text: &str) -> Self {
        Self { from: "the agent's memory", text: text.trim().to_owned() }
    }
}

/// The parts that say something.
fn sections<const N: usize>(parts: [(&'static str, &str); N]) -> Vec<Section> {
    let parts = parts.into_iter().map(|(from, text)| (from, text.trim()));
    let parts = parts.filter(|(_, text)| !text.is_empty());
    parts.map(|(from, text)| Section { from, text: text.to_owned() }).collect()
}

/// The system prompt of a main agent: what to do, then where, and what the agent remembers.
pub(crate) fn main_sections(
    options: &PromptOptions,
    environment: &Environment,
    mode: SessionMode,
    style: Option<&OutputStyle>,
    memory: Option<&str>,
) -> Vec<Section> {
    let usual = match mode {
        SessionMode::Coordinator => Cow::Borrowed(COORDINATOR),
        _ if style.is_some_and(|style| !style.keeps_coding) => Cow::Owned(without_working()),
        _ => Cow::Borrowed(MAIN),
    };
    let styled = style.map(|style| contain(&style.text)).unwrap_or_default();
    let of_place = if options.is_the_same_for_all { String::new() } else { environment.render() };
    let mut sections = sections([
        ("the prompt", options.replace.as_deref().unwrap_or(&usual)),
        ("the output style", &styled),
        ("what the user adds", options.append.as_deref().unwrap_or("")),
        ("the environment", &of_place),
    ]);
    if !options.is_the_same_for_all {
        sections.extend(memory.map(Section::memory));
    }
    sections
}

/// The parts that a prompt leaves out which is the same for all users, for the first message.
pub(crate) fn left_out(
    options: &PromptOptions,
    environment: &Environment,
    memory: Option<&str>,
) -> Option<String> {
    options.is_the_same_for_all.then(|| match memory {
        Some(memory) => format!("{}\n\n{}", environment.render().trim_end(), memory.trim()),
        None => environment.render(),
    })
}

/// The usual prompt without the rules for work on software. Those about foreign text stay.
fn without_working() -> String {
    let (before, working) = MAIN.split_once(WORKING).unwrap_or((MAIN, ""));
    let behind = working.split_once(FOREIGN_TEXT).map_or("", |(_, behind)| behind);
    format!("{before}{FOREIGN_TEXT}{behind}")
}

/// The parts as requests have them.
pub(crate) fn system_prompt(sections: Vec<Section>) -> SystemPrompt {
    SystemPrompt::new(sections.into_iter().map(|section| section.text).collect())
}

/// The sections of the system prompt of an agent that another one starts: its definition's, what it means
/// to be one, and where it is.
pub(crate) fn agent_sections(
    effective: &EffectiveAgent,
    environment: &Environment,
    rules: &DelegationRules,
) -> Vec<Section> {
    let with_git = effective.instructions.value;
    let environment = environment.of_agent(&effective.cwd.value, &effective.model.value, with_git);
    sections([
        ("the definition", &effective.prompt.value),
        ("what every started agent is told", CHILD),
        ("what the user adds", rules.append_prompt.as_deref().unwrap_or("")),
        ("the environment", &environment.render()),
    ])
}

/// The sections of a member of a team: it is told about that in the place of what other started agents are told. Names
/// are plain words.
pub(crate) fn teammate_sections(sections: Vec<String>, name: &str, team: &TeamName) -> Vec<String> {
    let about = TEAMMATE.replace("{name}", name).replace("{team}", team.as_str());
    let replace = |section: String| match section.as_str() {
        text if text == CHILD.trim() => about.trim().to_owned(),
        _ => section,
    };
    sections.into_iter().map(replace).collect()
}

/// The beginning of the text that holds instruction files.
pub(crate) const INSTRUCTIONS_BEGIN: &str =
    "<system-reminder>\nInstructions that the user and the project keep in files.";

/// The instructions that people keep in files, as a model reads them beside the user's words.
pub(crate) fn instructions(memory: &str) -> String {
    format!(
        "{INSTRUCTIONS_BEGIN} Follow them where they bear on the task; the user's own words in this conversation go \
         first.\n\n{}\n</system-reminder>",
        contain(memory)
    )
}
