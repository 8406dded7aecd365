//! Requests of a host, as they stand on the wire: read once, into types.

use std::path::PathBuf;

use centurion_protocol::{RecordId, ToolUseId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::files::Encoding;
use super::refusal::Refusal;
use super::rules::ServerMode;
use super::settings::Source;

/// A request of a host, by what it is about.
#[derive(Debug)]
pub(super) enum Request {
    Session(SessionRequest),
    Server(ServerRequest),
    Desk(DeskRequest),
}

/// A request about the conversation and its agents.
#[derive(Debug, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum SessionRequest {
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
    SetColor {
        color: String,
    },
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
    ReloadPlugins(ReloadPlugins),
    ReloadOutputStyles,
    ListModels,
    GetBinaryVersion,
    GetContextUsage,
    GetSessionCost,
    GetUsage,
    StopTask {
        task_id: String,
    },
    StopAllTasks,
    BackgroundTasks {
        tool_use_id: Option<ToolUseId>,
    },
    GetTaskOutput {
        task_id: String,
    },
}

/// A host's wishes for plugins that are read again.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReloadPlugins {
    /// Whether a session that is at work is left as it is.
    pub(super) refuse_if_busy: bool,
    /// Plugins to load as well.
    pub(super) add_plugins: Vec<AddedPlugin>,
    /// Whether plugins stay as they are if the session's tools would be others and the conversation is under way.
    pub(super) hold_on_cache_impact: bool,
}

/// A plugin of the host.
#[derive(Debug, Deserialize)]
pub(super) struct AddedPlugin {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) path: PathBuf,
}

/// A directory that becomes a working directory, and what is read again because of it.
#[derive(Debug, Deserialize)]
pub(super) struct RepoRoot {
    pub(super) directory: String,
    #[serde(default)]
    pub(super) reload_claude_md: bool,
    #[serde(default)]
    pub(super) reload_plugins: bool,
    #[serde(default)]
    pub(super) reload_skills: bool,
}

/// A request about MCP servers.
#[derive(Debug, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum ServerRequest {
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
    McpCall(McpCall),
    /// A message of a server that lives in the host, which answers nothing.
    McpMessage {
        server_name: String,
        message: Value,
    },
    #[serde(rename_all = "camelCase")]
    SetMcpPermissionModeOverride {
        server_name: String,
        mode: Option<ServerMode>,
    },
}

/// A call of a server's tool, beside the conversation.
#[derive(Debug, Deserialize)]
pub(super) struct McpCall {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    pub(super) timeout_ms: Option<u64>,
    /// The time after which the call is not to run any more.
    pub(super) expires_at: Option<String>,
    /// Whether the call is another program's, and has to be decided about.
    #[serde(default)]
    pub(super) check_permissions: bool,
    /// Files that other ways of running the program bring along.
    #[serde(default)]
    pub(super) input_files: Vec<Value>,
    #[serde(default)]
    pub(super) output_files: Vec<Value>,
}

/// A request about files, settings and rules.
#[derive(Debug, Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum DeskRequest {
    ReadFile {
        path: String,
        max_bytes: Option<u64>,
        #[serde(default)]
        encoding: Encoding,
    },
    FileSuggestions {
        query: String,
    },
    SeedReadState {
        path: String,
        /// In milliseconds.
        mtime: u64,
    },
    RegisterRepoRoot(RepoRoot),
    GetSettings,
    ApplyFlagSettings {
        settings: Map<String, Value>,
    },
    UpdateSettings {
        source: Source,
        settings: Map<String, Value>,
    },
    ListPermissionRules,
    GetHooksListing,
}

impl Request {
    pub(super) fn read(request: &Value) -> Result<Self, Refusal> {
        let Some(name) = request.get("subtype").and_then(Value::as_str) else {
            return Err(Refusal::invalid("a request needs a subtype"));
        };
        None.or_else(|| read_group(request, name).map(|it| it.map(Self::Session)))
            .or_else(|| read_group(request, name).map(|it| it.map(Self::Server)))
            .or_else(|| read_group(request, name).map(|it| it.map(Self::Desk)))
            .unwrap_or_else(|| Err(Refusal::Unsupported(name.to_owned())))
    }
}

/// Reads a request of one group; `None` if the group has none of this name.
fn read_group<T: DeserializeOwned>(request: &Value, name: &str) -> Option<Result<T, Refusal>> {
    let error = match T::deserialize(request) {
        Ok(request) => return Some(Ok(request)),
        Err(error) => error,
    };
    // Only a subtype that is known can have wrong fields.
    let probe = Value::from_iter([("subtype", name)]);
    let is_unknown = T::deserialize(&probe)
        .is_err_and(|error: serde_json::Error| error.to_string().starts_with("unknown variant"));
    let refusal = || Refusal::invalid(format!("`{name}` was not understood: {error}"));
    (!is_unknown).then(|| Err(refusal()))
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
            (json!({"subtype": "read_file", "path": 7}), "invalid_request"),
            (json!({"subtype": "read_file", "path": "a", "encoding": "rot13"}), "invalid_request"),
            (
                json!({"subtype": "update_settings", "source": "policySettings", "settings": {}}),
                "invalid_request",
            ),
            (
                json!({"subtype": "set_mcp_permission_mode_override", "serverName": "a", "mode": "bypassPermissions"}),
                "invalid_request",
            ),
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
            json!({"subtype": "reload_plugins"}),
            json!({"subtype": "reload_plugins", "refuse_if_busy": true, "more": 1}),
            json!({"subtype": "set_mcp_permission_mode_override", "serverName": "a", "mode": null}),
            json!({"subtype": "read_file", "path": "a", "max_bytes": 3, "encoding": "base64"}),
        ] {
            assert!(Request::read(&request).is_ok(), "{request}");
        }
    }
}
