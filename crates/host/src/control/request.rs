//! What a host can ask for, as it stands on the wire: read once, into types.

use centurion_protocol::{RecordId, ToolUseId};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::refusal::Refusal;

/// A request of a host.
#[derive(Debug, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum Request {
    Initialize(Map<String, Value>),
    Interrupt {
        /// Whether what waits is dropped, too.
        #[serde(default)]
        cancel_queued: bool,
    },
    CancelAsyncMessage {
        message_uuid: RecordId,
    },
    SetPermissionMode {
        mode: String,
    },
    SetModel {
        model: Option<String>,
    },
    SetMaxThinkingTokens(Map<String, Value>),
    SetHasSubscribers,
    RenameSession {
        title: String,
        session_id: Option<String>,
    },
    GenerateSessionTitle {
        description: String,
    },
    SideQuestion {
        question: String,
    },
    RewindFiles {
        user_message_id: String,
        #[serde(default)]
        dry_run: bool,
    },
    SupportedCommands,
    ReloadSkills,
    ReloadPlugins,
    ReloadOutputStyles,
    ListModels,
    GetBinaryVersion,
    GetContextUsage,
    GetSessionCost,
    GetUsage,
    McpStatus,
    #[serde(rename_all = "camelCase")]
    McpReconnect {
        server_name: String,
    },
    #[serde(rename_all = "camelCase")]
    McpToggle {
        server_name: String,
        enabled: bool,
    },
    McpSetServers {
        servers: Map<String, Value>,
    },
    #[serde(rename_all = "camelCase")]
    McpReadResource {
        server_name: String,
        uri: String,
    },
    StopTask {
        task_id: String,
    },
    StopAllTasks,
    BackgroundTasks {
        tool_use_id: Option<ToolUseId>,
    },
}

impl Request {
    pub(super) fn read(request: &Value) -> Result<Self, Refusal> {
        Self::deserialize(request).map_err(|error| {
            let name = request.get("subtype").and_then(Value::as_str);
            match name {
                None => Refusal::invalid("a request needs a subtype"),
                // Only a subtype that is known can have wrong fields.
                Some(name) if !is_known(name) => Refusal::Unsupported(name.to_owned()),
                Some(name) => Refusal::invalid(format!("`{name}` was not understood: {error}")),
            }
        })
    }
}

/// Whether there is a request of this name.
fn is_known(name: &str) -> bool {
    let probe = Value::from_iter([("subtype", name)]);
    match Request::deserialize(&probe) {
        Ok(_) => true,
        Err(error) => !error.to_string().starts_with("unknown variant"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_read_or_refused_with_the_right_code() {
        for (request, code) in [
            (json!({"subtype": "dance"}), "unsupported_request"),
            (json!({"subtype": "dance", "with": {"a": [1, 2]}}), "unsupported_request"),
            (json!({"subtype": "unknown variant"}), "unsupported_request"),
            (json!({}), "invalid_request"),
            (json!({"subtype": 7}), "invalid_request"),
            (json!([]), "invalid_request"),
            (json!(null), "invalid_request"),
            (json!({"subtype": "set_permission_mode"}), "invalid_request"),
            (
                json!({"subtype": "mcp_toggle", "serverName": "a", "enabled": "yes"}),
                "invalid_request",
            ),
            (json!({"subtype": "cancel_async_message", "message_uuid": "x"}), "invalid_request"),
            (json!({"subtype": "mcp_set_servers", "servers": []}), "invalid_request"),
        ] {
            assert_eq!(Request::read(&request).unwrap_err().code(), code, "{request}");
        }
        for request in [
            json!({"subtype": "initialize"}),
            json!({"subtype": "initialize", "hooks": null, "later": [1]}),
            json!({"subtype": "interrupt"}),
            json!({"subtype": "set_model"}),
            json!({"subtype": "set_model", "model": null}),
            json!({"subtype": "set_has_subscribers", "has_subscribers": true}),
            json!({"subtype": "mcp_reconnect", "serverName": "a", "more": 1}),
            json!({"subtype": "background_tasks"}),
        ] {
            assert!(Request::read(&request).is_ok(), "{request}");
        }
    }
}
