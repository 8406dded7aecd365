//! Definitions in Markdown: frontmatter above, the prompt below.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::definition::{AgentDefinition, AgentOrigin, AgentSource};
use super::name::{NameError, check_name};
use super::reading::{self, ReadAgent, Vocabulary};
use crate::Problem;
use crate::fields::{Fields, Located, Weight};
use crate::frontmatter::{self, FrontmatterError, Grammar, Member, Shape, Value};
use crate::settings::printable;

/// The grammar by which frontmatter of agents is cut where it is no YAML.
pub const AGENT_GRAMMAR: Grammar<'static> = Grammar { known: &reading::PIECE_KEYS, raw: &[] };

/// The owner of a file, which decides on the fields that it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentScope {
    /// Needs a name and a description.
    Own(AgentSource),
    /// A plugin's: the file's name and a line about the plugin do where it says nothing. Folders below
    /// the plugin's directory of agents become part of the name.
    Plugin { plugin: String, folders: Vec<String> },
}

impl AgentScope {
    fn origin(&self, path: &Path) -> AgentOrigin {
        let path = path.to_owned();
        match self {
            Self::Own(source) => AgentOrigin { source: *source, path, plugin: None },
            Self::Plugin { plugin, .. } => {
                AgentOrigin { source: AgentSource::Plugin, path, plugin: Some(plugin.clone()) }
            }
        }
    }
}

/// The reason why a file is no agent although it means to be one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AgentFileError {
    #[error("{0}")]
    Frontmatter(#[from] FrontmatterError),
    #[error("has no `name`")]
    NoName,
    #[error("the name `{name}` {reason}")]
    BadName { name: String, reason: NameError },
    #[error("has no `description`, which says when to use the agent")]
    NoDescription,
}

/// An agent's file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedAgent {
    pub path: PathBuf,
    /// Counted from one; `None` where the file as a whole is meant.
    pub line: Option<usize>,
    pub reason: String,
    pub source: AgentSource,
}

/// Reads a file's text, whose lines end with `\n`. `None` for a file without frontmatter: it is a text
/// about something else.
pub fn read_markdown(
    text: &str,
    path: &Path,
    scope: &AgentScope,
    vocabulary: &Vocabulary,
) -> Result<Option<ReadAgent>, FailedAgent> {
    let origin = scope.origin(path);
    let failed = |line, error: &AgentFileError| FailedAgent {
        path: path.to_owned(),
        line: Some(line),
        reason: error.to_string(),
        source: origin.source,
    };
    let page = frontmatter::read(text, &AGENT_GRAMMAR).map_err(|error| failed(1, &error.into()))?;
    let Some(front) = page.frontmatter else { return Ok(None) };
    let first_line = front.first_line;
    let mut fields = Fields::new(front.members);
    let name = fields.word("name");
    let description = fields.text("description");
    let (name, description) = match scope {
        AgentScope::Own(_) => {
            let name = name.ok_or_else(|| failed(first_line, &AgentFileError::NoName))?;
            check_name(&name).map_err(|reason| {
                let error = AgentFileError::BadName { name: printable(&name), reason };
                failed(name.line, &error)
            })?;
            let line = name.line;
            let description =
                description.ok_or_else(|| failed(line, &AgentFileError::NoDescription))?;
            (name, description)
        }
        AgentScope::Plugin { plugin, folders } => {
            let name = plugin_name(&mut fields, name, path, first_line)
                .map_err(|error| failed(first_line, &error))?;
            let value = plugin_type(plugin, folders, &name);
            let description = plugin_description(&mut fields, description, plugin, first_line);
            (Located::new(value, name.line), description)
        }
    };
    let (prompt, line) = trimmed(&page.body, page.body_line);
    let prompt = Located::new(prompt, line);
    let mut definition = AgentDefinition::new(name, description, prompt, origin);
    reading::read_fields(&mut fields, &mut definition, vocabulary);
    let notes = front.notes.into_iter().map(|note| Problem {
        path: path.to_owned(),
        line: Some(note.line),
        message: note.message,
    });
    let remarks = reading::problems(reading::finish(fields), &definition.origin);
    let problems = notes.chain(remarks).collect();
    Ok(Some(ReadAgent { definition: Arc::new(definition), problems }))
}

/// The name of a plugin's agent: its own, or that of its file.
fn plugin_name(
    fields: &mut Fields,
    name: Option<Located<String>>,
    path: &Path,
    first_line: usize,
) -> Result<Located<String>, AgentFileError> {
    if let Some(name) = name {
        match check_name(&name) {
            Ok(()) => return Ok(name),
            Err(reason) => {
                let message = format!("the name `{}` {reason}; the file's is used", name.value);
                fields.remark("name", name.line, Weight::Invalid, &message);
            }
        }
    }
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    match check_name(&stem) {
        Ok(()) => Ok(Located::new(stem, first_line)),
        Err(reason) => Err(AgentFileError::BadName { name: printable(&stem), reason }),
    }
}

fn plugin_type(plugin: &str, folders: &[String], name: &str) -> String {
    let mut parts = vec![plugin];
    parts.extend(folders.iter().map(String::as_str));
    parts.push(name);
    parts.join(":")
}

fn plugin_description(
    fields: &mut Fields,
    description: Option<Located<String>>,
    plugin: &str,
    first_line: usize,
) -> Located<String> {
    description.or_else(|| fields.text("when-to-use")).unwrap_or_else(|| {
        let message = "has no `description`, which says when to use the agent".to_owned();
        fields.remark("description", first_line, Weight::Advice, &message);
        Located::new(format!("Agent from {plugin} plugin"), first_line)
    })
}

/// A body without the blanks around it, and the line on which it then begins.
pub(crate) fn trimmed(body: &str, first_line: usize) -> (String, usize) {
    let text = body.trim();
    let before = body.len() - body.trim_start().len();
    let skipped = body.bytes().take(before).filter(|byte| *byte == b'\n').count();
    let line = if text.is_empty() { first_line } else { first_line + skipped };
    (text.to_owned(), line)
}

/// Writes a definition as a file that reads as the same. The name of a plugin's agent is its last part.
pub fn write_markdown(definition: &AgentDefinition) -> String {
    let front = frontmatter::write(&members_of(definition));
    let prompt = definition.prompt.trim();
    let end = if prompt.is_empty() { "" } else { "\n" };
    format!("---\n{front}---\n{prompt}{end}")
}

fn members_of(definition: &AgentDefinition) -> Vec<Member> {
    let name = match definition.origin.plugin {
        Some(_) => definition.name.rsplit(':').next().unwrap_or_default(),
        None => &definition.name,
    };
    let mut members = Members(Vec::new());
    members.text("name", Some(name));
    members.text("description", Some(&definition.description));
    members.names("tools", definition.tools.as_ref());
    members.names("disallowedTools", definition.disallowed_tools.as_ref());
    members.text("model", definition.model.as_ref().map(|it| it.as_str()));
    members.plain("effort", definition.effort.as_ref());
    members.text("permissionMode", definition.permission_mode.as_ref().map(|it| it.as_str()));
    members.json("mcpServers", definition.mcp_servers.as_ref());
    members.names("requiredMcpServers", definition.required_mcp_servers.as_ref());
    members.json("hooks", definition.hooks.as_ref());
    members.names("skills", definition.skills.as_ref());
    members.plain("maxTurns", definition.max_turns.as_ref());
    members.plain("background", definition.background.as_ref());
    members.text("isolation", definition.isolation.as_ref().map(|it| it.as_str()));
    members.text("memory", definition.memory.as_ref().map(|it| it.as_str()));
    members.text("color", definition.color.as_ref().map(|it| it.as_str()));
    members.text("initialPrompt", definition.initial_prompt.as_ref().map(|it| it.as_str()));
    members.plain("forkContext", definition.fork_context.as_ref());
    members.plain("omitClaudeMd", definition.omit_claude_md.as_ref());
    let reminder = definition.critical_reminder.as_ref().map(|it| it.as_str());
    members.text("criticalSystemReminder_EXPERIMENTAL", reminder);
    members.0
}

/// The fields that a definition has.
struct Members(Vec<Member>);

impl Members {
    fn push(&mut self, key: &str, value: Value) {
        self.0.push(Member { key: key.to_owned(), line: 1, value });
    }

    fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.push(key, Value::quoted(1, text));
        }
    }

    fn plain<T: ToString>(&mut self, key: &str, value: Option<&Located<T>>) {
        if let Some(value) = value {
            self.push(key, Value::plain(1, value.value.to_string()));
        }
    }

    fn names(&mut self, key: &str, names: Option<&Located<Vec<String>>>) {
        if let Some(names) = names {
            let items = names.iter().map(|name| Value::quoted(1, name)).collect();
            self.push(key, Value::new(1, Shape::List(items)));
        }
    }

    fn json(&mut self, key: &str, json: Option<&Located<serde_json::Value>>) {
        if let Some(json) = json {
            self.push(key, Value::of_json(json, 1));
        }
    }
}
