//! What a host asks about MCP servers while the session runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use centurion_config::mcp::{
    McpOrigin, McpScope, McpServer, McpTransport, McpVariables, parse_server,
};
use centurion_engine::{Handle, WithheldServer};
use centurion_mcp::{Connection, Pool, State};
use centurion_protocol::Env;
use serde_json::{Map, Value, json};

/// What a request gives: an answer, or a reason and its code.
type Answer = Result<Value, (String, &'static str)>;

/// Every server with how it is and what it offers.
pub(super) fn status(handle: &Handle) -> Vec<Value> {
    let status = |(connection, is_on): (Connection, bool)| {
        let state = connection.state();
        let tools: Vec<Value> = connection
            .tool_infos()
            .into_iter()
            .map(|tool| json!({"name": tool.tool, "annotations": tool.annotations}))
            .collect();
        let info = connection.server_info();
        json!({
            "name": connection.name(),
            "status": if is_on { state.to_string() } else { "disabled".to_owned() },
            "error": state.reason(),
            "serverInfo": info.map(|it| json!({"name": it.name, "version": it.version})),
            "transport": transport(&connection.server().transport),
            "scope": connection.server().origin.scope.to_string(),
            "tools": tools,
        })
    };
    let withheld = |server: WithheldServer| {
        json!({
            "name": server.name,
            "status": server.status,
            "error": server.reason,
            "scope": server.scope.to_string(),
            "tools": [],
        })
    };
    let running = handle.servers().into_iter().map(status);
    running.chain(handle.withheld_servers().into_iter().map(withheld)).collect()
}

fn transport(transport: &McpTransport) -> &'static str {
    match transport {
        McpTransport::Stdio { .. } => "stdio",
        McpTransport::Http(_) => "http",
        McpTransport::Sse(_) => "sse",
        McpTransport::Sdk { .. } => "sdk",
    }
}

pub(super) async fn reconnect(handle: &Handle, name: &str) -> Answer {
    let found = handle.servers().into_iter().find(|(connection, _)| connection.name() == name);
    let (connection, _) = found.ok_or_else(|| unknown(name))?;
    match connection.reconnect().await {
        State::Connected => Ok(json!({})),
        state => {
            let reason = state.reason().unwrap_or("no reason is known");
            Err((format!("the server {name} is {state}: {reason}"), "invalid_request"))
        }
    }
}

pub(super) fn switch(handle: &Handle, name: &str, is_on: bool) -> Answer {
    if handle.switch_server(name, is_on) { Ok(json!({})) } else { Err(unknown(name)) }
}

fn unknown(name: &str) -> (String, &'static str) {
    (format!("there is no server `{name}`"), "invalid_request")
}

/// How many servers a host may have.
const MOST_SERVERS: usize = 256;

/// Makes the host's servers be exactly these. Others stay as they are.
pub(super) fn set(handle: &Handle, pool: Option<&Arc<Pool>>, servers: Option<&Value>) -> Answer {
    let (Some(pool), Some(Value::Object(wanted))) = (pool, servers) else {
        return Err(("`servers` is no object".to_owned(), "invalid_request"));
    };
    if wanted.len() > MOST_SERVERS {
        let why = format!(
            "{} servers are more than the {MOST_SERVERS} that a host may have",
            wanted.len()
        );
        return Err((why, "invalid_request"));
    }
    let (mut added, mut removed, mut errors) = (Vec::new(), Vec::new(), Map::new());
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
        if let Some(server) = parsed.server {
            handle.add_server(pool.share(server));
            added.push(name.clone());
        } else {
            let problems: Vec<String> = parsed.problems.iter().map(ToString::to_string).collect();
            errors.insert(name.clone(), Value::String(problems.join("; ")));
        }
    }
    Ok(json!({"added": added, "removed": removed, "errors": errors}))
}

/// Adds a server that lives in the host.
pub(super) fn add_host_server(handle: &Handle, pool: Option<&Arc<Pool>>, name: &str) {
    if let Some(pool) = pool {
        handle.add_server(pool.share(McpServer {
            name: name.to_owned(),
            transport: McpTransport::Sdk { name: name.to_owned() },
            timeout: None,
            always_load: false,
            origin: origin(),
            accepted: None,
        }));
    }
}

fn origin() -> McpOrigin {
    McpOrigin { scope: McpScope::Host, file: None, line: None }
}
