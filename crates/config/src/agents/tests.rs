//! Agents as people write them, and where they keep them.

mod fields;
mod loading;
mod markdown;
mod round_trip;

use std::path::Path;

use serde_json::Value as Json;

use super::*;

/// Reads a file of a project.
fn read(text: &str) -> Result<Option<ReadAgent>, FailedAgent> {
    let scope = AgentScope::Own(AgentSource::Project);
    read_markdown(text, Path::new("/p/.claude/agents/x.md"), &scope, &vocabulary())
}

fn definition(text: &str) -> AgentDefinition {
    read(text).unwrap().unwrap().definition.as_ref().clone()
}

/// A file with these lines besides its name and description.
fn with(lines: &str) -> ReadAgent {
    read(&format!("---\nname: x\ndescription: y\n{lines}\n---\nprompt\n")).unwrap().unwrap()
}

fn problems(read: &ReadAgent) -> Vec<(usize, &str)> {
    read.problems.iter().map(|it| (it.line.unwrap(), it.message.as_str())).collect()
}

fn vocabulary() -> Vocabulary {
    let tools = ["Agent", "Bash", "Edit", "Glob", "Grep", "LS", "Read", "Task", "Write"];
    Vocabulary { tools: tools.map(str::to_owned).to_vec() }
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}
