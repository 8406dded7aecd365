//! From the fields that an author wrote to a definition. Markdown and JSON meet here.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use centurion_protocol::Effort;

use super::definition::{AgentDefinition, AgentEffort, AgentModel, AgentOrigin, PERMISSION_MODES};
use crate::Problem;
use crate::fields::{Fields, Located, Remark, Weight, WordError};
use crate::frontmatter::Shape;

/// The keys at which a value begins, whatever the text before it looks like: those that a definition may
/// have, and at the end [`FOREIGN`] ones, which authors of near-YAML take for them.
pub(super) const PIECE_KEYS: [&str; 24] = [
    "name",
    "description",
    "tools",
    "disallowedTools",
    "model",
    "effort",
    "permissionMode",
    "mcpServers",
    "requiredMcpServers",
    "hooks",
    "skills",
    "maxTurns",
    "background",
    "isolation",
    "memory",
    "color",
    "initialPrompt",
    "forkContext",
    "omitClaudeMd",
    "criticalSystemReminder_EXPERIMENTAL",
    "when-to-use",
    "prompt",
    "allowed-tools",
    "allowedTools",
];

/// The number of [`PIECE_KEYS`] that no definition has.
const FOREIGN: usize = 4;

/// The keys that a definition may have.
pub const AGENT_KEYS: &[&str] = PIECE_KEYS.split_at(PIECE_KEYS.len() - FOREIGN).0;

/// Keys from elsewhere, and what to do about them.
const SYNONYMS: [(&str, &str); 10] = [
    ("allowed-tools", "agents have `tools`; without it this one has all of them"),
    ("allowedTools", "agents have `tools`; without it this one has all of them"),
    ("allowed_tools", "agents have `tools`; without it this one has all of them"),
    ("disallowed-tools", "write `disallowedTools`"),
    ("prompt", "the text below the frontmatter is the prompt"),
    ("system_prompt", "the text below the frontmatter is the prompt"),
    ("systemPrompt", "the text below the frontmatter is the prompt"),
    ("instructions", "the text below the frontmatter is the prompt"),
    ("when-to-use", "write `description`"),
    ("colour", "write `color`"),
];

/// The short names of models.
const ALIASES: [&str; 5] = ["sonnet", "opus", "haiku", "fable", "inherit"];

/// The names that the rest of the program knows, for hints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// The names of all tools, with those that they once had; empty where nothing shall be said about
    /// them.
    pub tools: Vec<String>,
}

/// A definition and what its author should know.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadAgent {
    pub definition: Arc<AgentDefinition>,
    pub problems: Vec<Problem>,
}

/// Reads all fields but those that Markdown and JSON have in different places.
pub(super) fn read_fields(
    fields: &mut Fields,
    definition: &mut AgentDefinition,
    vocabulary: &Vocabulary,
) {
    definition.tools = tools(fields, "tools", vocabulary);
    definition.disallowed_tools = tools(fields, "disallowedTools", vocabulary);
    definition.model = model(fields);
    definition.effort = effort(fields);
    definition.permission_mode = fields.one_of("permissionMode", permission_mode);
    definition.mcp_servers = fields.json("mcpServers", "a list of names and servers", |value| {
        matches!(value.shape, Shape::List(_) | Shape::Map(_) | Shape::Text(_))
    });
    definition.required_mcp_servers = fields.names("requiredMcpServers");
    definition.hooks =
        fields.json("hooks", "a map of events", |value| matches!(value.shape, Shape::Map(_)));
    definition.skills = fields.names("skills");
    definition.max_turns = fields.one_of("maxTurns", |text| {
        text.parse::<NonZeroU32>().map_err(|_| WordError::Unknown("a whole number above zero"))
    });
    definition.background = fields.flag("background");
    definition.isolation = fields.one_of("isolation", str::parse);
    definition.memory = fields.one_of("memory", str::parse);
    definition.color = color(fields);
    definition.initial_prompt = fields.text("initialPrompt");
    definition.fork_context = fields.flag("forkContext");
    definition.omit_claude_md = fields.flag("omitClaudeMd");
    definition.critical_reminder = fields.text("criticalSystemReminder_EXPERIMENTAL");
}

/// The remarks that remain once all fields are taken.
pub(super) fn finish(fields: Fields) -> Vec<Remark> {
    fields.finish(AGENT_KEYS, &SYNONYMS)
}

/// Remarks as problems of a file.
pub(super) fn problems(remarks: Vec<Remark>, origin: &AgentOrigin) -> Vec<Problem> {
    let path: &PathBuf = &origin.path;
    let problem =
        |it: Remark| Problem { path: path.clone(), line: Some(it.line), message: it.message };
    remarks.into_iter().map(problem).collect()
}

fn tools(fields: &mut Fields, key: &str, vocabulary: &Vocabulary) -> Option<Located<Vec<String>>> {
    let mut tools = fields.names(key)?;
    let line = tools.line;
    let said = tools.join(" ").to_ascii_lowercase();
    if key == "tools" && matches!(said.as_str(), "all" | "all tools") {
        let message =
            format!("`tools: {}` is read as all tools; leave the key out", tools.join(" "));
        fields.remark(key, line, Weight::Advice, &message);
        tools.value = vec!["*".to_owned()];
    }
    if vocabulary.tools.is_empty() {
        return Some(tools);
    }
    for entry in tools.iter() {
        let name = entry.split('(').next().unwrap_or(entry).trim();
        let is_known = name == "*" || name.starts_with("mcp__");
        if is_known || vocabulary.tools.iter().any(|tool| tool == name) {
            continue;
        }
        let meant = vocabulary.tools.iter().find(|tool| tool.eq_ignore_ascii_case(name));
        let message = match meant {
            Some(meant) => format!("there is no tool `{name}` in `{key}`; write `{meant}`"),
            None => format!("there is no tool `{name}`, which `{key}` names"),
        };
        fields.remark(key, line, Weight::Advice, &message);
    }
    Some(tools)
}

fn model(fields: &mut Fields) -> Option<Located<AgentModel>> {
    let word = fields.word("model")?;
    let lower = word.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|alias| **alias == lower);
    let name = if let Some(alias) = alias {
        if *alias != word.value {
            let message = format!("`model: {}` is read as `{alias}`", word.value);
            fields.remark("model", word.line, Weight::Advice, &message);
        }
        (*alias).to_owned()
    } else {
        // Every full id has a number or a vendor in it.
        if word.chars().all(|it| it.is_ascii_alphabetic() || it == ' ') {
            let message = format!(
                "`{}` is no short name of a model ({}) and is taken for a full id",
                word.value,
                ALIASES.join(", ")
            );
            fields.remark("model", word.line, Weight::Advice, &message);
        }
        word.value
    };
    let model = if name == "inherit" { AgentModel::Inherit } else { AgentModel::Named(name) };
    Some(Located::new(model, word.line))
}

pub(crate) fn effort(fields: &mut Fields) -> Option<Located<AgentEffort>> {
    let mut is_normal = false;
    let effort = fields.one_of("effort", |text| {
        if let Ok(amount) = text.parse::<u32>() {
            return Ok(AgentEffort::Amount(amount));
        }
        is_normal = text == "normal";
        let text = if is_normal { "medium" } else { text };
        let level = text.to_ascii_lowercase().parse::<Effort>();
        let wanted = "low, medium, high, xhigh, max or a whole number";
        level.map(AgentEffort::Level).map_err(|_| WordError::Unknown(wanted))
    })?;
    if is_normal {
        let message = "`effort: normal` is read as `medium`".to_owned();
        fields.remark("effort", effort.line, Weight::Advice, &message);
    }
    Some(effort)
}

fn permission_mode(text: &str) -> Result<String, WordError> {
    let found = PERMISSION_MODES.iter().find(|mode| mode.eq_ignore_ascii_case(text));
    let found = found.map(|mode| (*mode).to_owned());
    found.ok_or_else(|| WordError::NotAmong(PERMISSION_MODES.to_vec()))
}

/// An unknown colour is no reason to refuse a definition.
fn color(fields: &mut Fields) -> Option<Located<super::Color>> {
    let word = fields.word("color")?;
    match word.parse() {
        Ok(color) => Some(Located::new(color, word.line)),
        Err(wanted) => {
            let message = format!("`color: {}` is ignored: {wanted}", word.value);
            fields.remark("color", word.line, Weight::Advice, &message);
            None
        }
    }
}
