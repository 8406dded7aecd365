//! The servers that an agent's definition asks for: names of those there are, or servers of its own.

use serde_json::{Map, Value};

use super::entry::{ParsedServer, parse_server};
use super::expand::McpVariables;
use super::{McpOrigin, McpServer};
use crate::Problem;
use crate::settings::printable;

/// One server that an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpReference {
    /// One that is configured: it is shared.
    Named(String),
    /// One that the agent brings, and that ends with it.
    Inline(Box<McpServer>),
}

/// Reads the `mcpServers` of a definition: a list of names and of `{name: server}`, or one such object.
/// Also read is a server that holds its own `name`, with `transport` for its `type`.
pub fn parse_references(
    value: &Value,
    origin: &McpOrigin,
    variables: &McpVariables<'_>,
) -> (Vec<McpReference>, Vec<Problem>) {
    let mut reading =
        ReferenceReader { origin, variables, found: Vec::new(), problems: Vec::new() };
    match value {
        Value::Null => {}
        Value::String(name) => reading.named(name),
        Value::Array(items) => items.iter().for_each(|item| reading.item(item)),
        Value::Object(servers) => reading.servers(servers),
        _ => reading.refuse("`mcpServers` must be a list of names and servers"),
    }
    (reading.found, reading.problems)
}

struct ReferenceReader<'r> {
    origin: &'r McpOrigin,
    variables: &'r McpVariables<'r>,
    found: Vec<McpReference>,
    problems: Vec<Problem>,
}

impl ReferenceReader<'_> {
    fn item(&mut self, item: &Value) {
        match item {
            Value::String(name) => self.named(name),
            Value::Object(server) if is_flat(server) => {
                let mut server = server.clone();
                let name = server.shift_remove("name");
                if let Some(transport) = server.shift_remove("transport") {
                    server.entry("type").or_insert(transport);
                }
                let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
                self.inline(name, &Value::Object(server));
            }
            Value::Object(servers) => self.servers(servers),
            _ => self.refuse("an item of `mcpServers` must be a name, or a name with its server"),
        }
    }

    fn servers(&mut self, servers: &Map<String, Value>) {
        for (name, server) in servers {
            match server {
                // `name:` with nothing after it is a name.
                Value::Null => self.named(name),
                _ => self.inline(name, server),
            }
        }
    }

    fn named(&mut self, name: &str) {
        let name = name.trim();
        if name.is_empty() {
            self.refuse("an item of `mcpServers` is empty");
            return;
        }
        self.found.push(McpReference::Named(name.to_owned()));
    }

    fn inline(&mut self, name: &str, server: &Value) {
        let ParsedServer { server, mut problems, .. } =
            parse_server(name, server, self.origin, self.variables);
        self.problems.append(&mut problems);
        self.found.extend(server.map(|server| McpReference::Inline(Box::new(server))));
    }

    fn refuse(&mut self, message: &str) {
        let (path, line) = (self.origin.place(), self.origin.line);
        self.problems.push(Problem { path, line, message: printable(message) });
    }
}

/// Whether an object is a server that holds its own name.
fn is_flat(object: &Map<String, Value>) -> bool {
    let says = |key: &str| object.get(key).is_some_and(Value::is_string);
    says("name") && ["command", "url", "type", "transport"].iter().any(|key| says(key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use centurion_protocol::Env;
    use serde_json::json;

    use super::super::{McpScope, McpTransport};
    use super::*;

    fn read(value: &Value) -> (Vec<String>, Vec<String>) {
        let (env, known) = (Env::default(), BTreeMap::new());
        let scope = McpScope::Agent("scout".to_owned());
        let origin = McpOrigin { scope, file: Some("/a/scout.md".into()), line: Some(4) };
        let variables = McpVariables { env: &env, known: &known };
        let (found, problems) = parse_references(value, &origin, &variables);
        let found = found.into_iter().map(|it| match it {
            McpReference::Named(name) => name,
            McpReference::Inline(server) => match server.transport {
                McpTransport::Stdio { command, .. } => format!("{} = {command}", server.name),
                other => format!("{} at {}", server.name, other.kind()),
            },
        });
        (found.collect(), problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn all_forms_are_read() {
        // S-017, S-018
        let list = json!([
            "github",
            {"own": {"command": "x"}},
            {"name": "flat", "transport": "http", "url": "https://h/"},
            {"command": {"command": "odd"}},
        ]);
        assert_eq!(
            read(&list),
            (
                vec![
                    "github".into(),
                    "own = x".into(),
                    "flat at http".into(),
                    "command = odd".into()
                ],
                vec![]
            )
        );
        let map = json!({"github": null, "own": {"command": "x"}});
        assert_eq!(read(&map).0, ["github", "own = x"]);
        assert_eq!(read(&json!("one")).0, ["one"]);
        assert_eq!(read(&Value::Null), (vec![], vec![]));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        let (found, problems) = read(&json!([7, "", {"../x": {"command": "x"}}, "good"]));
        assert_eq!(found, ["good"]);
        assert_eq!(problems.len(), 3);
        assert!(
            problems.iter().all(|problem| problem.starts_with("/a/scout.md:4: ")),
            "{problems:?}"
        );
        assert_eq!(read(&json!(true)).1.len(), 1);
    }
}
