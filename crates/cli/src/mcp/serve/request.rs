//! Requests of a client for an agent of this server: never more than the server itself may do.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use centurion_permissions::Mode;
use centurion_protocol::SessionId;
use rmcp::model::{JsonObject, Tool};
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

/// The tool that runs an agent.
pub(super) const TOOL: &str = "centurion";

const DESCRIPTION: &str = "Runs a coding agent on a task until it is done, and returns what it says at the \
    end. The agent works on its own with the tools of this server: it reads, searches and, where that is \
    allowed, edits files and runs commands. It knows nothing of your conversation, so put everything it \
    needs into the prompt. The result names a session_id; pass it with the next prompt to continue where \
    the agent ended.";

/// The tool as others see it.
pub(super) fn tool() -> Tool {
    let input = json!({
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "The task, with everything the agent needs to know"},
            "session_id": {"type": "string", "description": "Continue this session instead of starting a new one"},
            "cwd": {"type": "string", "description": "The directory to work in, inside those of the server; the server's own if left out"},
            "model": {"type": "string", "description": "The model to use instead of the server's own"},
            "permission_mode": {
                "type": "string",
                "enum": ["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"],
                "description": "The permission mode, which decides on what runs without asking; never more than the server allows",
            },
        },
        "required": ["prompt"],
        "additionalProperties": false,
    });
    let output = json!({
        "type": "object",
        "properties": {
            "session_id": {"type": "string"},
            "outcome": {"type": "string", "description": "`completed`, or how else the run ended"},
            "num_turns": {"type": "integer"},
            "total_cost_usd": {"type": "number"},
            "usage": {"type": "object"},
            "permission_denials": {"type": "array", "items": {"type": "object"}},
            "unfinished_agents": {
                "type": "array", "items": {"type": "object"},
                "description": "agents in the background that the end of the run cut short",
            },
        },
        "required": ["session_id", "outcome", "num_turns", "total_cost_usd", "usage", "permission_denials", "unfinished_agents"],
    });
    Tool::new(TOOL, DESCRIPTION, object(input)).with_raw_output_schema(Arc::new(object(output)))
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// The reason that a request is refused.
#[derive(Debug, Error)]
pub(super) enum RequestError {
    #[error("The input does not fit the tool: {0}.")]
    Input(serde_json::Error),
    #[error("The prompt is empty: say what the agent is to do.")]
    NoPrompt,
    #[error("This server works in no directory.")]
    NoRoot,
    #[error("The cwd {} cannot be used", cwd.display())]
    Unusable { cwd: PathBuf, source: io::Error },
    #[error("The cwd {} is not a directory.", cwd.display())]
    NoDirectory { cwd: PathBuf },
    #[error("The cwd {} is outside the directories of this server: {}.", cwd.display(), listed(roots))]
    Outside { cwd: PathBuf, roots: Vec<PathBuf> },
    #[error(
        "This server runs in the permission mode {own}, and {asked} would allow more. Leave permission_mode out, or \
         ask the user to start the server with --permission-mode {asked}."
    )]
    Mode { own: Mode, asked: Mode },
    #[error("`{0}` is no model that can be asked for here.")]
    Model(String),
}

fn listed(roots: &[PathBuf]) -> String {
    let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    roots.join(", ")
}

/// The task of an agent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) prompt: String,
    #[serde(default)]
    pub(super) session_id: Option<SessionId>,
    #[serde(default)]
    pub(super) cwd: Option<PathBuf>,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) permission_mode: Option<Mode>,
}

impl Request {
    /// Reads the input of the tool.
    pub(super) fn parse(input: JsonObject) -> Result<Self, RequestError> {
        let request: Self =
            serde_json::from_value(Value::Object(input)).map_err(RequestError::Input)?;
        if request.prompt.trim().is_empty() {
            return Err(RequestError::NoPrompt);
        }
        Ok(request)
    }

    /// The directory to work in: the first of the roots, or what was asked for, if it is in one of them.
    pub(super) fn directory(&self, roots: &[PathBuf]) -> Result<PathBuf, RequestError> {
        let first = roots.first().ok_or(RequestError::NoRoot)?;
        let Some(asked) = &self.cwd else { return Ok(first.clone()) };
        let cwd = asked.clone();
        let found = match first.join(asked).canonicalize() {
            Ok(found) => found,
            Err(source) => return Err(RequestError::Unusable { cwd, source }),
        };
        if !found.is_dir() {
            return Err(RequestError::NoDirectory { cwd });
        }
        if !roots.iter().any(|root| found.starts_with(root)) {
            return Err(RequestError::Outside { cwd, roots: roots.to_vec() });
        }
        Ok(found)
    }

    /// The mode to run in: the server's own, or what was asked for, if it allows no more.
    pub(super) fn mode(&self, own: Mode) -> Result<Mode, RequestError> {
        match self.permission_mode {
            None => Ok(own),
            Some(asked) if is_within(own, asked) => Ok(asked),
            Some(asked) => Err(RequestError::Mode { own, asked }),
        }
    }

    /// The model that was asked for. Only the user who started the server may use models that are files: they can
    /// be written to.
    pub(super) fn model(&self) -> Result<Option<&str>, RequestError> {
        let Some(name) = self.model.as_deref().map(str::trim) else { return Ok(None) };
        if name.is_empty() || name.starts_with("script:") || name.starts_with("cassette:") {
            return Err(RequestError::Model(name.to_owned()));
        }
        Ok(Some(name))
    }
}

/// Whether a mode lets nothing run that the server's own would not.
fn is_within(own: Mode, asked: Mode) -> bool {
    match own {
        _ if asked == own || asked == Mode::Plan => true,
        Mode::BypassPermissions => true,
        Mode::AcceptEdits => asked != Mode::BypassPermissions,
        Mode::Default => matches!(asked, Mode::Auto | Mode::DontAsk),
        Mode::Plan | Mode::DontAsk | Mode::Auto | Mode::Bubble => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(input: Value) -> Request {
        Request::parse(object(input)).unwrap()
    }

    #[test]
    fn the_schema_and_the_reading_name_the_same_fields() {
        let schema = tool().input_schema;
        let fields = schema["properties"].as_object().unwrap();
        for (field, of) in fields {
            let value = match (field.as_str(), of.get("enum")) {
                ("session_id", _) => json!("7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11"),
                (_, Some(values)) => values[0].clone(),
                _ => json!("x"),
            };
            let mut input = object(json!({"prompt": "do"}));
            input.insert(field.clone(), value);
            assert!(Request::parse(input).is_ok(), "{field}");
        }
        assert!(Request::parse(object(json!({"prompt": "do", "extra": 1}))).is_err());
    }

    #[test]
    fn a_mode_is_never_wider_than_the_servers_own() {
        let of = |mode: &str| request(json!({"prompt": "do", "permission_mode": mode}));
        assert_eq!(request(json!({"prompt": "do"})).mode(Mode::DontAsk).unwrap(), Mode::DontAsk);
        for (own, asked) in [
            (Mode::Default, "acceptEdits"),
            (Mode::Default, "bypassPermissions"),
            (Mode::AcceptEdits, "bypassPermissions"),
            (Mode::Plan, "default"),
            (Mode::DontAsk, "default"),
            (Mode::Auto, "dontAsk"),
        ] {
            let message = of(asked).mode(own).unwrap_err().to_string();
            assert!(message.contains(own.name()) && message.contains(asked), "{message}");
        }
        for (own, asked) in [
            (Mode::BypassPermissions, "acceptEdits"),
            (Mode::AcceptEdits, "default"),
            (Mode::Default, "dontAsk"),
            (Mode::Default, "plan"),
            (Mode::Plan, "plan"),
        ] {
            assert_eq!(of(asked).mode(own).unwrap(), asked.parse().unwrap(), "{own} {asked}");
        }
    }

    #[test]
    fn a_directory_lies_inside_the_roots_wherever_links_lead() {
        let scratch = tempfile::tempdir().unwrap();
        let base = scratch.path().canonicalize().unwrap();
        let (root, other) = (base.join("root"), base.join("other"));
        for directory in [root.join("sub"), other.clone()] {
            std::fs::create_dir_all(directory).unwrap();
        }
        std::os::unix::fs::symlink(&other, root.join("link")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let roots = [root.clone()];
        let of = |cwd: &str| request(json!({"prompt": "do", "cwd": cwd})).directory(&roots);
        assert_eq!(of("sub").unwrap(), root.join("sub"));
        assert_eq!(of(root.to_str().unwrap()).unwrap(), root);
        assert_eq!(request(json!({"prompt": "do"})).directory(&roots).unwrap(), root);
        for outside in ["..", "link", "../other", "/", "file", "missing"] {
            assert!(of(outside).is_err(), "{outside}");
        }
    }

    #[test]
    fn models_that_are_files_cannot_be_asked_for() {
        let of = |model: &str| request(json!({"prompt": "do", "model": model}));
        assert_eq!(of(" haiku ").model().unwrap(), Some("haiku"));
        for file in ["script:x.yaml", " cassette:x=opus", ""] {
            assert!(of(file).model().is_err(), "{file}");
        }
    }
}
