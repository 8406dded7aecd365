//! Agents that the program defines.

use std::path::Path;

use centurion_config::agents::{ReadAgent, Vocabulary, read_agents_flag};
use serde_json::{Map, Value, json};

use crate::{Error, ErrorKind};

/// An agent that others can start, as a definition file would describe it.
#[derive(Clone, Debug)]
pub struct Agent {
    name: String,
    fields: Map<String, Value>,
}

impl Agent {
    /// An agent with a name, a description by which others choose it, and its system prompt.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        prompt: impl Into<String>,
    ) -> Self {
        let mut fields = Map::new();
        fields.insert("description".to_owned(), json!(description.into()));
        fields.insert("prompt".to_owned(), json!(prompt.into()));
        Self { name: name.into(), fields }
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.fields.insert(field.to_owned(), value);
        self
    }

    /// The tools that it may use, and no others; without this it has those of the agent that starts it.
    pub fn tools(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.with("tools", json!(names))
    }

    /// The name of its model; without this it has that of the agent that starts it.
    pub fn model(self, name: impl Into<String>) -> Self {
        self.with("model", json!(name.into()))
    }

    /// The most requests of one run.
    pub fn max_turns(self, turns: u32) -> Self {
        self.with("maxTurns", json!(turns))
    }

    /// Has it run in the background: the agent that starts it continues, and is told when it has ended.
    pub fn in_background(self) -> Self {
        self.with("background", json!(true))
    }
}

/// The definitions of agents, checked.
pub(crate) fn definitions(agents: &[Agent], cwd: &Path) -> Result<Vec<ReadAgent>, Error> {
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = Map::new();
    for Agent { name, fields } in agents {
        if all.contains_key(name) {
            let message = format!("there are two agents named `{name}`");
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        all.insert(name.clone(), Value::Object(fields.clone()));
    }
    let text = Value::Object(all).to_string();
    read_agents_flag(&text, cwd, &Vocabulary::default())
        .map_err(|error| Error::caused(ErrorKind::Configuration, "the agents", error))
}
