//! The control channel between us and a host: requests and responses in both directions.
//!
//! With `--permission-prompt-tool stdio` the host is who answers questions: each is a `can_use_tool`
//! request that ends with the host's response, or is withdrawn when its call ends first.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use centurion_engine::{
    Answerer, Ask, Destination, Handle, Remember, Remembered, Reply, ReplyFuture,
};
use centurion_permissions::{Mode, RuleKind};
use centurion_protocol::{Thinking, World};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::output::Output;

pub(crate) struct Control {
    output: Arc<Output>,
    world: Arc<dyn World>,
    /// Our own requests that wait for the host's response; `None` once the host has gone.
    waiting: Mutex<Option<HashMap<String, oneshot::Sender<Value>>>>,
}

impl Control {
    pub(crate) fn new(output: Arc<Output>, world: Arc<dyn World>) -> Self {
        Self { output, world, waiting: Mutex::new(Some(HashMap::new())) }
    }

    /// Answers a request of the host.
    pub(crate) fn request(&self, handle: &Handle, id: &str, request: &Value) {
        let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
        let answer = match text("subtype") {
            "initialize" => Ok(initialization(handle)),
            "set_max_thinking_tokens" => {
                let tokens = request.get("max_thinking_tokens").and_then(Value::as_u64);
                handle.set_thinking(match tokens.map(u32::try_from) {
                    None => Thinking::Auto,
                    Some(Ok(0)) => Thinking::Disabled,
                    Some(tokens) => Thinking::Budget(tokens.unwrap_or(u32::MAX)),
                });
                Ok(json!({}))
            }
            "mcp_status" => Ok(json!({"mcpServers": []})),
            "interrupt" => Ok(json!({"still_queued": handle.interrupt()})),
            "set_permission_mode" => text("mode")
                .parse::<Mode>()
                .map_err(|error| error.to_string())
                .and_then(|mode| {
                    handle.set_mode(mode)?;
                    Ok(json!({"mode": mode.name()}))
                })
                .map_err(|error| (error, "invalid_request")),
            "set_model" => {
                let name =
                    request.get("model").and_then(Value::as_str).filter(|name| !name.is_empty());
                Ok(json!({"model": handle.set_model(name)}))
            }
            other => {
                Err((format!("the request `{other}` is not supported"), "unsupported_request"))
            }
        };
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err((error, code)) => {
                json!({"subtype": "error", "request_id": id, "error": error, "error_code": code})
            }
        };
        self.output.json_line(&json!({"type": "control_response", "response": response}));
    }

    /// Takes the host's response to one of our requests.
    pub(crate) fn response(&self, response: Value) {
        let id = response.get("request_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let waiting = self.forget(&id);
        // The call may have ended in this very moment; then nobody waits any more.
        let is_late = waiting.is_none_or(|sender| sender.send(response).is_err());
        if is_late {
            tracing::debug!(id, "a response came for no open request");
        }
    }

    /// The end of input: whoever waits for the host, now or later, will not hear from it.
    pub(crate) fn disconnect(&self) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Takes a request out of those that wait.
    fn forget(&self, id: &str) -> Option<oneshot::Sender<Value>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.remove(id)
    }

    /// Puts a request among those that wait, unless the host has gone.
    fn expect(&self, id: &str) -> Option<oneshot::Receiver<Value>> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut()?.insert(id.to_owned(), sender);
        Some(receiver)
    }
}

fn initialization(handle: &Handle) -> Value {
    let models: Vec<Value> = ["default", "opus", "sonnet", "haiku", "fable"]
        .map(|name| {
            json!({"value": name, "resolvedModel": handle.resolve_model(name), "displayName": name, "description": ""})
        })
        .into();
    json!({
        "commands": [],
        "agents": [],
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": models,
        "account": {},
        "claude_code_version": centurion_engine::PROTOCOL_VERSION,
        "current_permission_mode": handle.mode().name(),
        "pid": std::process::id(),
    })
}

impl Answerer for Control {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let id = self.world.uuid().to_string();
            let Some(receiver) = self.expect(&id) else {
                return denied("the host went away and cannot be asked");
            };
            let mut question = OpenQuestion { control: self, id: &id, is_answered: false };
            self.output.json_line(&json!({
                "type": "control_request",
                "request_id": id,
                "request": {
                    "subtype": "can_use_tool",
                    "tool_name": ask.tool,
                    "display_name": ask.tool,
                    "input": ask.input,
                    "tool_use_id": ask.call,
                    "decision_reason": ask.reason,
                    "permission_suggestions": ask.suggestions,
                },
            }));
            let response = receiver.await;
            question.is_answered = true;
            match response {
                Ok(response) => reply(&response),
                Err(_) => denied("the host went away without an answer"),
            }
        })
    }
}

/// Withdraws a question that is dropped before it is answered.
struct OpenQuestion<'a> {
    control: &'a Control,
    id: &'a str,
    is_answered: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.control.forget(self.id);
        if !self.is_answered {
            let cancel = json!({"type": "control_cancel_request", "request_id": self.id});
            self.control.output.json_line(&cancel);
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionResponse {
    behavior: String,
    updated_input: Option<Box<RawValue>>,
    #[serde(default)]
    updated_permissions: Vec<PermissionUpdate>,
    message: Option<String>,
    #[serde(default)]
    interrupt: bool,
}

/// A change to the permissions as hosts send it.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum PermissionUpdate {
    #[serde(rename_all = "camelCase")]
    AddRules { rules: Vec<RuleUpdate>, behavior: Behavior, destination: Destination },
    #[serde(rename_all = "camelCase")]
    AddDirectories { directories: Vec<PathBuf>, destination: Destination },
    #[serde(rename_all = "camelCase")]
    SetMode { mode: Mode, destination: Destination },
    /// A kind this program does not know; it changes nothing.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleUpdate {
    tool_name: String,
    rule_content: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Behavior {
    Allow,
    Ask,
    Deny,
}

impl PermissionUpdate {
    fn into_remember(self) -> Option<Remember> {
        let (what, destination) = match self {
            Self::AddRules { rules, behavior, destination } => {
                let kind = match behavior {
                    Behavior::Allow => RuleKind::Allow,
                    Behavior::Ask => RuleKind::Ask,
                    Behavior::Deny => RuleKind::Deny,
                };
                let text = |rule: RuleUpdate| match rule.rule_content {
                    Some(content) => format!("{}({content})", rule.tool_name),
                    None => rule.tool_name,
                };
                (
                    Remembered::Rules { kind, texts: rules.into_iter().map(text).collect() },
                    destination,
                )
            }
            Self::AddDirectories { directories, destination } => {
                (Remembered::Directories(directories), destination)
            }
            Self::SetMode { mode, destination } => (Remembered::Mode(mode), destination),
            Self::Other => return None,
        };
        Some(Remember { what, destination })
    }
}

fn reply(response: &Value) -> Reply {
    if response.get("subtype").and_then(Value::as_str) != Some("success") {
        let error = response.get("error").and_then(Value::as_str).unwrap_or("no reason given");
        return denied(&format!("the host failed to answer: {error}"));
    }
    let body = response.get("response").cloned().unwrap_or_default();
    // By way of text, because a `Value` cannot be read into raw JSON.
    let parsed = to_raw_value(&body)
        .ok()
        .and_then(|raw| serde_json::from_str::<PermissionResponse>(raw.get()).ok());
    match parsed {
        Some(PermissionResponse { behavior, updated_input, updated_permissions, .. })
            if behavior == "allow" =>
        {
            let remember =
                updated_permissions.into_iter().filter_map(PermissionUpdate::into_remember);
            Reply::Allowed { input: updated_input, remember: remember.collect() }
        }
        Some(PermissionResponse { message, interrupt, .. }) => {
            let reason = message.unwrap_or_else(|| "the user said no".to_owned());
            Reply::Denied { reason, interrupt }
        }
        None => denied("the host's answer was not understood"),
    }
}

fn denied(reason: &str) -> Reply {
    Reply::Denied { reason: reason.to_owned(), interrupt: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let yes = json!({"subtype": "success", "response": {"behavior": "allow", "updatedInput": {"a": 1}}});
        assert!(matches!(reply(&yes), Reply::Allowed { input: Some(_), .. }));
        for no in [
            json!({"subtype": "success", "response": {"behavior": "deny", "message": "no"}}),
            json!({"subtype": "success", "response": {"behavior": "perhaps"}}),
            json!({"subtype": "success"}),
            json!({"subtype": "error", "error": "x"}),
            json!({}),
        ] {
            assert!(matches!(reply(&no), Reply::Denied { .. }), "{no}");
        }
    }
}
