//! Requests of a host about MCP servers while the session runs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::{
    McpOrigin, McpScope, McpServer, McpTransport, McpVariables, parse_server,
};
use centurion_engine::{Handle, ServerCallError, WithheldServer, public_source};
use centurion_mcp::{CallOptions, Connection, Pool, ResourceContent, State, ToolInfo};
use centurion_protocol::{Env, Timestamp, ToolResultContent};
use futures_util::future::join_all;
use serde_json::{Map, Value, json};

use super::refusal::Refusal;
use super::request::{McpCall, ServerRequest};
use super::restrictions::ServerWishes;
use super::{Answer, Control, rules};
use crate::without_nulls;

/// Answers a request about servers.
pub(super) async fn answer(control: &Control, request: ServerRequest) -> Answer {
    let handle = &control.handle;
    match request {
        ServerRequest::McpStatus => Ok(json!({"mcpServers": status(handle)})),
        ServerRequest::McpReconnect { server_name } => reconnect(handle, &server_name).await,
        ServerRequest::McpToggle { server_name, enabled } => switch(handle, &server_name, enabled),
        ServerRequest::McpSetServers { servers } => set(handle, &control.pool, &servers).await,
        ServerRequest::McpReadResource { server_name, uri } => {
            read_resource(handle, &server_name, &uri).await
        }
        ServerRequest::McpCall(wanted) => {
            expire(wanted.expires_at.as_deref(), control.channel.now())?;
            call(handle, wanted).await
        }
        ServerRequest::McpMessage { server_name, message } => {
            control.channel.pass_on(&server_name, message).map_err(Refusal::invalid)?;
            Ok(json!({}))
        }
        ServerRequest::SetMcpPermissionModeOverride { server_name, mode } => {
            Ok(rules::set_server_mode(handle, &server_name, mode))
        }
    }
}

/// The time for a call of a tool, in milliseconds, if the host does not say.
const CALL_TIMEOUT: u64 = 120_000;

/// The most time that a host may give a call.
const LONGEST_CALL: u64 = 600_000;

/// Refuses a call that came too late. A time that cannot be read is over.
fn expire(until: Option<&str>, now: Timestamp) -> Result<(), Refusal> {
    let Some(until) = until else { return Ok(()) };
    match until.parse::<Timestamp>() {
        Ok(time) if now < time => Ok(()),
        _ => Err(Refusal::invalid(format!("The tool did not run: its time was over at {until}"))),
    }
}

/// Calls a tool of a server without a turn of the model.
async fn call(handle: &Handle, wanted: McpCall) -> Answer {
    if !(wanted.input_files.is_empty() && wanted.output_files.is_empty()) {
        return Err(Refusal::invalid("no files are brought along here"));
    }
    let limit = wanted.timeout_ms.unwrap_or(CALL_TIMEOUT).clamp(1_000, LONGEST_CALL);
    let McpCall { tool, arguments, check_permissions, .. } = wanted;
    let calling = async {
        if check_permissions {
            let reply = handle.call_server_tool_if_permitted(&tool, arguments).await?;
            return Ok((reply.content, None, reply.is_error));
        }
        let output = handle.call_server_tool(&tool, arguments).await?;
        Ok::<_, ServerCallError>((output.content(), output.structured, output.is_error))
    };
    let done = tokio::time::timeout(Duration::from_millis(limit), calling).await;
    let done =
        done.map_err(|_| Refusal::invalid(format!("`{tool}` did not answer within {limit} ms")))?;
    let (content, structured, is_error) = done.map_err(Refusal::invalid)?;
    Ok(json!({
        "content": content.into_iter().map(part).collect::<Vec<_>>(),
        "structuredContent": structured,
        "isError": is_error,
    }))
}

/// A part of a result in the words of the protocol of servers.
fn part(part: ToolResultContent) -> Value {
    match part {
        ToolResultContent::Text(text) => json!({"type": "text", "text": text}),
        ToolResultContent::Image { media_type, data } => {
            json!({"type": "image", "mimeType": media_type, "data": data})
        }
        ToolResultContent::Document { media_type, data } => json!({
            "type": "resource", "resource": {"mimeType": media_type, "blob": data},
        }),
    }
}

/// Every server with how it is and what it offers.
pub(super) fn status(handle: &Handle) -> Vec<Value> {
    let status = |(connection, is_on): (Connection, bool)| {
        let state = connection.state();
        let tools: Vec<Value> =
            connection.tool_infos().into_iter().map(|tool| tool_status(&tool)).collect();
        let info = connection.server_info();
        without_nulls(json!({
            "name": connection.name(),
            "status": if is_on { state.to_string() } else { "disabled".to_owned() },
            "error": state.reason(),
            "serverInfo": info.map(|it| json!({"name": it.name, "version": it.version})),
            "transport": transport(&connection.server().transport),
            "config": config(&connection.server().transport),
            "scope": connection.server().origin.scope.to_string(),
            "source": public_source(connection.server()),
            "tools": tools,
        }))
    };
    let withheld = |server: WithheldServer| {
        without_nulls(json!({
            "name": server.name,
            "status": server.status,
            "error": server.reason,
            "scope": server.scope.to_string(),
            "tools": [],
        }))
    };
    let running = handle.servers().into_iter().map(status);
    running.chain(handle.withheld_servers().into_iter().map(withheld)).collect()
}

/// A tool of a server, as hosts list it. What it does not say is not there.
fn tool_status(tool: &ToolInfo) -> Value {
    let hint = |name: &str| tool.annotations.get(name)?.as_bool();
    let hints = [
        ("readOnly", hint("readOnlyHint")),
        ("destructive", hint("destructiveHint")),
        ("openWorld", hint("openWorldHint")),
    ];
    let hints =
        hints.into_iter().filter_map(|(name, is_on)| Some((name.to_owned(), json!(is_on?))));
    json!({
        "name": tool.tool,
        "annotations": hints.collect::<Map<_, _>>(),
    })
}

fn transport(transport: &McpTransport) -> &'static str {
    match transport {
        McpTransport::Stdio { .. } => "stdio",
        McpTransport::Http(_) => "http",
        McpTransport::Sse(_) => "sse",
        McpTransport::Sdk { .. } => "sdk",
    }
}

/// The way to a server, without parts that may hold a credential (variables, headers).
fn config(transport: &McpTransport) -> Value {
    match transport {
        McpTransport::Stdio { command, args, .. } => {
            json!({"type": "stdio", "command": command, "args": args})
        }
        McpTransport::Http(remote) => json!({"type": "http", "url": remote.url}),
        McpTransport::Sse(remote) => json!({"type": "sse", "url": remote.url}),
        McpTransport::Sdk { name } => json!({"type": "sdk", "name": name}),
    }
}

/// Reads what a server has for a host to show. Other resources are the model's business, by its tools.
async fn read_resource(handle: &Handle, name: &str, uri: &str) -> Answer {
    if !uri.starts_with("ui://") {
        return Err(Refusal::invalid(format!("`{uri}` does not begin with ui://")));
    }
    let found = handle.servers().into_iter().find(|(connection, _)| connection.name() == name);
    let (connection, is_on) = found.ok_or_else(|| unknown(name))?;
    if !is_on {
        return Err(Refusal::invalid(format!("the server {name} is switched off")));
    }
    let contents = connection.read_resource(uri, &CallOptions::default()).await;
    let contents = contents.map_err(Refusal::invalid)?.into_iter().map(|content| match content {
        ResourceContent::Text { uri, mime_type, text } => {
            json!({"uri": uri, "mimeType": mime_type, "text": text})
        }
        ResourceContent::Blob { uri, mime_type, data } => {
            json!({"uri": uri, "mimeType": mime_type, "blob": data})
        }
    });
    Ok(json!({"contents": contents.collect::<Vec<_>>()}))
}

async fn reconnect(handle: &Handle, name: &str) -> Answer {
    let found = handle.servers().into_iter().find(|(connection, _)| connection.name() == name);
    let (connection, _) = found.ok_or_else(|| unknown(name))?;
    match connection.reconnect().await {
        State::Connected => Ok(json!({})),
        state => {
            let reason = state.reason().unwrap_or("no reason is known");
            Err(Refusal::invalid(format!("the server {name} is {state}: {reason}")))
        }
    }
}

fn switch(handle: &Handle, name: &str, is_on: bool) -> Answer {
    if handle.switch_server(name, is_on) { Ok(json!({})) } else { Err(unknown(name)) }
}

fn unknown(name: &str) -> Refusal {
    Refusal::invalid(format!("there is no server `{name}`"))
}

/// The most servers that a host may have.
const MOST_SERVERS: usize = 256;

/// The longest time that an answer waits for servers that a host adds, to tell which of them failed at once. The next
/// run waits longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes the host's servers be exactly these, and waits for the new ones. Others stay as they are.
async fn set(handle: &Handle, pool: &Arc<Pool>, wanted: &Map<String, Value>) -> Answer {
    if wanted.len() > MOST_SERVERS {
        let why = format!(
            "{} servers are more than the {MOST_SERVERS} that a host may have",
            wanted.len()
        );
        return Err(Refusal::invalid(why));
    }
    let (mut added, mut removed, mut errors) = (Vec::new(), Vec::new(), Map::new());
    let mut new = Vec::new();
    let is_hosts = |connection: &Connection| connection.server().origin.scope == McpScope::Host;
    for (connection, _) in handle.servers() {
        let name = connection.name();
        if is_hosts(&connection) && !wanted.contains_key(name) && handle.remove_server(name) {
            removed.push(name.to_owned());
        }
    }
    let (env, known) = (Env::default(), BTreeMap::new());
    // The host fills its variables in itself.
    let variables = McpVariables { env: &env, known: &known };
    for (name, value) in wanted {
        let parsed = parse_server(name, value, &origin(), &variables);
        // The rules count before the server does.
        ServerWishes::read(value).replace_rules(handle, name);
        if let Some(server) = parsed.server {
            let connection = pool.share(server);
            handle.add_server(connection.clone());
            new.push(connection);
            added.push(name.clone());
        } else {
            let problems: Vec<String> = parsed.problems.iter().map(ToString::to_string).collect();
            errors.insert(name.clone(), Value::String(problems.join("; ")));
        }
    }
    for (connection, state) in
        new.iter().zip(join_all(new.iter().map(|it| it.ready(PATIENCE))).await)
    {
        if let Some(reason) = state.reason() {
            errors.insert(connection.name().to_owned(), Value::from(reason));
        }
    }
    Ok(json!({"added": added, "removed": removed, "errors": errors}))
}

/// Adds a server that lives in the host.
pub(super) fn add_host_server(
    handle: &Handle,
    pool: &Arc<Pool>,
    name: &str,
    timeout: Option<Duration>,
) {
    handle.add_server(pool.share(McpServer {
        name: name.to_owned(),
        transport: McpTransport::Sdk { name: name.to_owned() },
        timeout,
        always_load: false,
        origin: origin(),
        accepted: None,
    }));
}

fn origin() -> McpOrigin {
    McpOrigin { scope: McpScope::Host, file: None, line: None }
}
