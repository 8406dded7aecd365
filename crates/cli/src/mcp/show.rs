//! Servers in words and in JSON. Values of variables, headers and arguments are shown only when asked for.

use std::collections::BTreeMap;

use centurion_config::mcp::{Declared, McpStanding, McpTransport};
use centurion_mcp::State;
use serde_json::{Value, json};

use super::probe::{Contact, ProbedServer};
use crate::output::{Output, printable};

/// All servers, one a line.
pub(crate) fn list(seen: &[ProbedServer], is_json: bool) {
    let output = Output::default();
    if is_json {
        let servers: Vec<Value> = seen.iter().map(as_json).collect();
        output.json_line(&servers);
        return;
    }
    if seen.is_empty() {
        output.write(b"there are no servers; `centurion mcp add` adds one\n");
    }
    for ProbedServer { declared, contact } in seen {
        let Declared { server, standing, endpoint, .. } = declared;
        let state = contact.as_ref().map_or_else(|| standing.to_string(), in_words);
        let line = format!(
            "{}: {endpoint} ({}, {}): {state}",
            server.name,
            server.transport.kind(),
            server.origin.scope
        );
        output.write(format!("{}\n", one_line(&line)).as_bytes());
    }
}

fn as_json(seen: &ProbedServer) -> Value {
    let ProbedServer { declared, contact } = seen;
    let Declared { server, standing, endpoint, .. } = declared;
    let why = standing.to_string();
    json!({
        "name": server.name,
        "scope": server.origin.scope.to_string(),
        "transport": server.transport.kind(),
        "endpoint": endpoint,
        "file": server.origin.file,
        "line": server.origin.line,
        "standing": standing.word(),
        "standingReason": why.split_once(": ").map(|(_, reason)| reason),
        "state": contact.as_ref().map(|it| it.state.to_string()),
        "stateReason": contact.as_ref().and_then(|it| it.state.reason()),
        "tools": contact.as_ref().map(|it| &it.tools),
    })
}

/// The state of a server that was reached for.
fn in_words(contact: &Contact) -> String {
    match &contact.state {
        State::Connected => match contact.tools.len() {
            1 => "connected, 1 tool".to_owned(),
            count => format!("connected, {count} tools"),
        },
        State::NeedsAuth { reason } => format!("needs authentication: {reason}"),
        State::Failed { reason } => format!("failed: {reason}"),
        State::Pending => "pending: it has not answered in time".to_owned(),
        State::Closed => "closed".to_owned(),
    }
}

/// All that is known of the servers of one name: the one that counts first.
pub(crate) fn details(seen: &[ProbedServer], shows_values: bool) {
    let runs = |it: &&ProbedServer| it.declared.standing.is_active();
    let Some(first) = seen.iter().find(runs).or(seen.first()) else { return };
    let mut lines = vec![first.declared.server.name.clone()];
    lines.extend(described(&first.declared, shows_values));
    if let Some(contact) = &first.contact {
        lines.extend(contacted(contact));
    }
    let others = seen.iter().filter(|it| !std::ptr::eq(*it, first));
    lines.extend(others.map(|it| {
        format!("  also declared: {}, {}", it.declared.server.origin, it.declared.standing)
    }));
    let lines: Vec<String> = lines.iter().map(|line| one_line(line)).collect();
    Output::default().write(format!("{}\n", lines.join("\n")).as_bytes());
}

fn described(declared: &Declared, shows_values: bool) -> Vec<String> {
    let Declared { server, standing, endpoint, .. } = declared;
    let mut lines = vec![
        format!("  declared: {}", server.origin),
        format!("  transport: {}", server.transport.kind()),
    ];
    match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            lines.push(format!("  command: {endpoint}"));
            if shows_values {
                lines.push(format!("  started as: {command} {}", args.join(" ")));
            }
            lines.extend(named_values("env", env, shows_values));
        }
        McpTransport::Http(remote) | McpTransport::Sse(remote) => {
            lines.push(format!("  url: {}", if shows_values { &remote.url } else { endpoint }));
            lines.extend(named_values("headers", &remote.headers, shows_values));
            lines.extend(remote.headers_helper.iter().map(|it| format!("  headers helper: {it}")));
            if let Some(oauth) = &remote.oauth {
                lines.push(format!("  oauth: {}", json!(oauth)));
            }
        }
        McpTransport::Sdk { name } => lines.push(format!("  in the host as: {name}")),
    }
    lines.extend(server.timeout.map(|it| format!("  timeout: {} ms", it.as_millis())));
    if server.always_load {
        lines.push("  always loaded: yes".to_owned());
    }
    if *standing != McpStanding::Active {
        lines.push(format!("  state: {standing}"));
    }
    lines
}

/// Names, and their values where those are wanted.
fn named_values(
    title: &str,
    values: &BTreeMap<String, String>,
    shows_values: bool,
) -> Option<String> {
    let shown: Vec<String> = values
        .iter()
        .map(|(name, value)| if shows_values { format!("{name}={value}") } else { name.clone() })
        .collect();
    (!shown.is_empty()).then(|| format!("  {title}: {}", shown.join(", ")))
}

fn contacted(contact: &Contact) -> Vec<String> {
    let mut lines = vec![format!("  state: {}", in_words(contact))];
    lines.extend(contact.about.iter().map(|about| format!("  server: {about}")));
    for (title, names) in [
        ("tools", &contact.tools),
        ("prompts", &contact.prompts),
        ("resources", &contact.resources),
    ] {
        if !names.is_empty() {
            lines.push(format!("  {title}:"));
            lines.extend(names.iter().map(|name| format!("    {name}")));
        }
    }
    lines.extend(contact.problems.iter().map(|problem| format!("  problem: {problem}")));
    lines
}

/// A text on one line: what a server says may have several.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    printable(&lines.join(" "))
}
