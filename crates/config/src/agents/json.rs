//! Definitions in JSON: what `--agents` and hosts give, and `agents` in settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use thiserror::Error;

use super::definition::{AgentDefinition, AgentOrigin, AgentSource};
use super::name::check_name;
use super::reading::{self, ReadAgent, Vocabulary};
use crate::fields::{Fields, Located, Weight};
use crate::files::{self, FileError, LARGEST_SETTINGS};
use crate::frontmatter::{self, Member, Shape, Value};
use crate::settings::document::{self, Json as Written, Node};
use crate::settings::printable;

/// The name that stands for a file where `--agents` held the JSON itself.
const FLAG: &str = "--agents";

/// One thing that is wrong with an agent in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{agent}{}{field}: {reason}", if field.is_empty() { "" } else { "." })]
pub struct JsonAgentError {
    pub agent: String,
    /// Empty where the agent as a whole is meant.
    pub field: String,
    pub reason: String,
    pub line: usize,
}

/// The agents of a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonAgents {
    pub agents: Vec<ReadAgent>,
    /// The reasons why others were left out. Each names its agent.
    pub errors: Vec<JsonAgentError>,
}

/// The reason why `--agents` cannot be used.
#[derive(Debug, Error)]
pub enum AgentsFlagError {
    #[error("--agents: there is no file `{}`", .0.display())]
    NoFile(PathBuf),
    #[error("--agents: {place} {error}")]
    Unusable { place: String, error: FileError },
    #[error("--agents: must be an object of agents by their names")]
    NotAnObject,
    /// All that is wrong, for a person who wrote it on a command line wants to see it at once.
    #[error("--agents: {}", listed(.0))]
    Invalid(Vec<JsonAgentError>),
}

fn listed(errors: &[JsonAgentError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Reads what `--agents` says: JSON if it begins with a brace, or else a file of it. It was asked for by
/// name, so that anything wrong with it is an error.
pub fn read_agents_flag(
    argument: &str,
    cwd: &Path,
    vocabulary: &Vocabulary,
) -> Result<Vec<ReadAgent>, AgentsFlagError> {
    let is_json = argument.trim_start().starts_with('{');
    let (path, text) = if is_json {
        (PathBuf::from(FLAG), argument.to_owned())
    } else {
        let path = cwd.join(argument);
        let unusable =
            |error| AgentsFlagError::Unusable { place: path.display().to_string(), error };
        let (_, text) = files::read(&path, LARGEST_SETTINGS);
        match text.map_err(unusable)? {
            Some(text) => (path, text),
            None => return Err(AgentsFlagError::NoFile(path)),
        }
    };
    let place = if is_json { "the JSON".to_owned() } else { path.display().to_string() };
    let unusable = |error| AgentsFlagError::Unusable { place, error };
    let node = document::parse(&text).map_err(unusable)?;
    let Written::Object(members) = &node.json else { return Err(AgentsFlagError::NotAnObject) };
    let mut read = JsonAgents::default();
    for member in members {
        let origin = AgentOrigin { source: AgentSource::Flag, path: path.clone(), plugin: None };
        read.add(&member.name, value_of(&member.node), origin, vocabulary);
    }
    if read.errors.is_empty() {
        Ok(read.agents)
    } else {
        Err(AgentsFlagError::Invalid(read.errors))
    }
}

/// Reads one agent of settings or of a host, whose JSON is all on one line.
pub fn read_json_agent(
    name: &str,
    value: &Json,
    origin: AgentOrigin,
    line: usize,
    vocabulary: &Vocabulary,
) -> Result<ReadAgent, Vec<JsonAgentError>> {
    let mut read = JsonAgents::default();
    read.add(name, Value::of_json(value, line), origin, vocabulary);
    read.agents.pop().ok_or(read.errors)
}

impl JsonAgents {
    fn add(&mut self, name: &str, value: Value, origin: AgentOrigin, vocabulary: &Vocabulary) {
        match read_agent(name, value, origin, vocabulary) {
            Ok(read) => self.agents.push(read),
            Err(mut errors) => self.errors.append(&mut errors),
        }
    }
}

fn read_agent(
    name: &str,
    value: Value,
    origin: AgentOrigin,
    vocabulary: &Vocabulary,
) -> Result<ReadAgent, Vec<JsonAgentError>> {
    let at = value.line;
    let error = |field: &str, line, reason: String| JsonAgentError {
        agent: printable(name),
        field: field.to_owned(),
        reason,
        line,
    };
    if let Err(reason) = check_name(name) {
        return Err(vec![error("", at, format!("the name {reason}"))]);
    }
    let Shape::Map(members) = value.shape else {
        return Err(vec![error("", at, "must be an object".to_owned())]);
    };
    let mut fields = Fields::new(members);
    let mut errors = Vec::new();
    let mut required = |fields: &mut Fields, key: &str| {
        let text = fields.take(key).map(|member| (member.line, member.value.shape));
        match text {
            Some((line, Shape::Text(text))) if text.is_quoted && !text.text.trim().is_empty() => {
                Located::new(text.text.trim().to_owned(), line)
            }
            other => {
                let line = other.map_or(at, |(line, _)| line);
                errors.push(error(key, line, "must be text that is not empty".to_owned()));
                Located::default()
            }
        }
    };
    let description = required(&mut fields, "description");
    let prompt = required(&mut fields, "prompt");
    let name = Located::new(name.to_owned(), at);
    let mut definition = AgentDefinition::new(name, description, prompt, origin);
    reading::read_fields(&mut fields, &mut definition, vocabulary);
    let remarks = reading::finish(fields);
    let (invalid, advice): (Vec<_>, Vec<_>) =
        remarks.into_iter().partition(|remark| remark.weight == Weight::Invalid);
    let invalid = invalid.into_iter().map(|it| error(&it.field, it.line, it.message));
    errors.extend(invalid);
    if !errors.is_empty() {
        return Err(errors);
    }
    let problems = reading::problems(advice, &definition.origin);
    Ok(ReadAgent { definition: Arc::new(definition), problems })
}

/// JSON with its lines as the values that definitions are read from.
fn value_of(node: &Node) -> Value {
    let line = node.line;
    match &node.json {
        Written::Null => Value::new(line, Shape::Null),
        Written::Bool(value) => Value::plain(line, value.to_string()),
        Written::Number(number) => Value::plain(line, number.to_string()),
        Written::Text(text) => Value::quoted(line, text),
        Written::List(items) => Value::new(line, Shape::List(items.iter().map(value_of).collect())),
        Written::Object(members) => {
            let read = members.iter().map(|member| Member {
                key: member.name.clone(),
                line: member.node.line,
                value: value_of(&member.node),
            });
            // As in all JSON, the last of the same names counts.
            let (read, _) = frontmatter::last_of_each(read.collect());
            Value::new(line, Shape::Map(read))
        }
    }
}
