//! A call of a tool, in words for people.

use centurion_protocol::{ToolResult, ToolResultContent, ToolUse, ToolUseId};
use serde_json::Value;

use super::Moment;

/// The most bytes of an input that are looked at for its subject.
const MOST_INPUT: usize = 1 << 20;
/// The most characters of a subject.
const SUBJECT: usize = 400;

/// A call that runs, or has run.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) id: ToolUseId,
    pub(crate) tool: String,
    /// Its subject: a command, a path, a pattern.
    pub(crate) subject: String,
    pub(crate) began: Moment,
    pub(crate) input: Value,
}

impl Call {
    pub(crate) fn new(call: &ToolUse, began: Moment) -> Self {
        let raw = call.input.get();
        let input = if raw.len() <= MOST_INPUT {
            serde_json::from_str(raw).unwrap_or_default()
        } else {
            Value::Null
        };
        Self {
            id: call.id.clone(),
            tool: call.name.clone(),
            subject: subject(&call.name, &input),
            began,
            input,
        }
    }
}

/// The field of a call's input that tells most, with its text.
pub(crate) fn telling<'a>(tool: &str, input: &'a Value) -> Option<(&'static str, &'a str)> {
    const TELLING: [&str; 14] = [
        "command",
        "file_path",
        "notebook_path",
        "pattern",
        "path",
        "url",
        "query",
        "skill",
        "to",
        "subject",
        "name",
        "description",
        "task_id",
        "plan",
    ];
    let field = |name: &'static str| Some((name, input.get(name)?.as_str()?));
    match tool {
        "Agent" | "Task" => field("description"),
        _ => TELLING.into_iter().find_map(field),
    }
}

/// The subject of a call, in one line.
pub(crate) fn subject(tool: &str, input: &Value) -> String {
    let question = || input["questions"][0]["question"].as_str();
    let text = telling(tool, input).map(|(_, text)| text).or_else(question);
    let mut lines = text.unwrap_or_default().trim().lines();
    let mut said: String = lines.next().unwrap_or_default().chars().take(SUBJECT).collect();
    if lines.next().is_some() {
        said.push_str(" …");
    }
    said
}

/// The text of a result.
pub(crate) fn text_of(result: &ToolResult) -> String {
    let part = |part: &ToolResultContent| match part {
        ToolResultContent::Text(text) => text.clone(),
        ToolResultContent::Image { media_type, .. }
        | ToolResultContent::Document { media_type, .. } => format!("[{media_type}]"),
    };
    result.content.iter().map(part).collect::<Vec<_>>().join("\n")
}
