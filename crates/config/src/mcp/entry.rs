//! One server as its author wrote it, checked: what is wrong with it is reported with its line, and a
//! server that would not be what its author asked for is left out.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use url::Url;

use super::expand::McpVariables;
use super::show::{shown_command, shown_url};
use super::{McpOAuth, McpOrigin, McpRemote, McpScope, McpServer, McpTransport};
use crate::Problem;
use crate::settings::document::{Json, Node};
use crate::settings::{closest, printable};

/// Longer names leave no room for those of tools.
const LONGEST_NAME: usize = 64;

/// Names that stand for something else.
const RESERVED: [&str; 3] = ["workspace", "claude-in-chrome", "computer-use"];

const COMMON: [&str; 3] = ["type", "timeout", "alwaysLoad"];
const OF_STDIO: [&str; 3] = ["command", "args", "env"];
const OF_REMOTE: [&str; 4] = ["url", "headers", "headersHelper", "oauth"];
const OF_SDK: [&str; 1] = ["name"];
const OF_OAUTH: [&str; 4] = ["clientId", "callbackPort", "scopes", "authServerMetadataUrl"];
const TYPES: [&str; 6] = ["stdio", "http", "streamable-http", "sse", "ws", "sdk"];

/// The shortest time that a call can be given.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The result of parsing one entry.
#[derive(Clone, Debug, Default)]
pub struct ParsedServer {
    /// `None` if it cannot be used; the problems say why.
    pub server: Option<McpServer>,
    /// The command or address as it was written, variables and all, without secrets.
    pub endpoint: String,
    pub problems: Vec<Problem>,
}

/// Reads one server. Its `origin` says how far it is believed: only a host may offer servers of its own,
/// and one of a plugin gets the plugin's name before its own.
pub fn parse_server(
    name: &str,
    value: &Value,
    origin: &McpOrigin,
    variables: &McpVariables<'_>,
) -> ParsedServer {
    let line = origin.line.unwrap_or_default();
    read_server(name, &Node::of_value(value, line), origin.clone(), variables)
}

/// The fault of a name; `None` if it has none.
pub fn name_problem(name: &str) -> Option<String> {
    let is_good = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if name.is_empty() || !name.chars().all(is_good) {
        return Some("its name may hold only letters, digits, `_` and `-`".to_owned());
    }
    if name.len() > LONGEST_NAME {
        return Some(format!("its name is longer than {LONGEST_NAME} letters"));
    }
    let reserved = RESERVED.iter().any(|it| it.eq_ignore_ascii_case(name));
    reserved.then(|| "its name is reserved".to_owned())
}

pub(super) fn read_server(
    name: &str,
    node: &Node,
    origin: McpOrigin,
    variables: &McpVariables<'_>,
) -> ParsedServer {
    let mut reader = EntryReader {
        name: printable(name),
        origin,
        variables,
        problems: Vec::new(),
        endpoint: String::new(),
        is_broken: false,
    };
    let server = reader.server(name, node);
    let EntryReader { problems, endpoint, is_broken, .. } = reader;
    ParsedServer { server: server.filter(|_| !is_broken), endpoint, problems }
}

struct EntryReader<'r> {
    name: String,
    origin: McpOrigin,
    variables: &'r McpVariables<'r>,
    problems: Vec<Problem>,
    endpoint: String,
    /// Something is wrong that leaves no server.
    is_broken: bool,
}

impl EntryReader<'_> {
    fn server(&mut self, name: &str, node: &Node) -> Option<McpServer> {
        if let Some(problem) = name_problem(name) {
            self.refuse(node.line, &problem);
            return None;
        }
        let Json::Object(members) = &node.json else {
            self.refuse(node.line, &format!("it must be an object, and is {}", node.kind()));
            return None;
        };
        let transport = self.transport(node)?;
        let own: &[&str] = match &transport {
            McpTransport::Stdio { .. } => &OF_STDIO,
            McpTransport::Http(_) | McpTransport::Sse(_) => &OF_REMOTE,
            McpTransport::Sdk { .. } => &OF_SDK,
        };
        for member in members {
            self.look_at_key(&member.name, member.node.line, own, transport.kind());
        }
        let timeout = self.timeout(node);
        let always_load = self.switch(node, "alwaysLoad");
        let name = match &self.origin.scope {
            McpScope::Plugin(plugin) => format!("plugin:{plugin}:{name}"),
            _ => name.to_owned(),
        };
        let origin = self.origin.clone();
        Some(McpServer { name, transport, timeout, always_load, origin, accepted: None })
    }

    fn transport(&mut self, node: &Node) -> Option<McpTransport> {
        let kind = match member(node, "type") {
            Some(kind) => self.text(kind, "type")?,
            None if member(node, "command").is_some() => "stdio".to_owned(),
            None if member(node, "url").is_some() => {
                self.refuse(
                    node.line,
                    "it has a `url` and no `type`; add `\"type\": \"http\"`, or `\"sse\"` for an older server",
                );
                return None;
            }
            None => {
                self.refuse(node.line, "it has neither a `command` nor a `url`");
                return None;
            }
        };
        match kind.as_str() {
            "stdio" => self.stdio(node),
            "http" | "streamable-http" => self.remote(node).map(McpTransport::Http),
            "sse" => self.remote(node).map(McpTransport::Sse),
            "ws" => {
                self.refuse(
                    node.line,
                    "servers on WebSockets are not supported; use `\"type\": \"http\"` if the server offers it",
                );
                None
            }
            "sdk" => self.sdk(node),
            other => {
                let meant = closest(other, &TYPES).map(|it| format!("; perhaps `{it}` is meant"));
                let meant = meant.unwrap_or_else(|| "; use stdio, http or sse".to_owned());
                let kind = printable(other);
                self.refuse(node.line, &format!("`{kind}` is no type of server{meant}"));
                None
            }
        }
    }

    fn stdio(&mut self, node: &Node) -> Option<McpTransport> {
        let Some(command) = member(node, "command") else {
            self.refuse(node.line, "it has no `command`");
            return None;
        };
        let written = self.text(command, "command")?;
        let args =
            member(node, "args").map_or(Some(Vec::new()), |args| self.texts(args, "args"))?;
        self.endpoint =
            shown_command(std::iter::once(written.as_str()).chain(args.iter().map(String::as_str)));
        let program = self.expand(&written, command.line, "command");
        if program.trim().is_empty() {
            self.refuse(command.line, "its `command` is empty");
        }
        let line = member(node, "args").map_or(node.line, |args| args.line);
        let args: Vec<String> =
            args.iter().map(|argument| self.expand(argument, line, "args")).collect();
        let env = self.text_map(node, "env", |name| !name.is_empty() && !name.contains('='))?;
        let texts = args.iter().chain(env.iter().flat_map(|(name, value)| [name, value]));
        if texts.chain([&program]).any(|text| text.contains('\0')) {
            self.refuse(node.line, "it holds a NUL, which no program can be given");
        }
        Some(McpTransport::Stdio { command: program, args, env })
    }

    fn remote(&mut self, node: &Node) -> Option<McpRemote> {
        let Some(url_node) = member(node, "url") else {
            self.refuse(node.line, "it has no `url`");
            return None;
        };
        let written = self.text(url_node, "url")?;
        self.endpoint = shown_url(&written);
        let url = self.expand(&written, url_node.line, "url");
        self.check_url(&url, url_node.line, "url", &["http", "https"]);
        let headers = self.text_map(node, "headers", is_header_name)?;
        if headers.values().any(|value| value.contains(['\r', '\n', '\0'])) {
            self.refuse(node.line, "a header of it holds the end of a line");
        }
        let helper = member(node, "headersHelper").map(|helper| self.text(helper, "headersHelper"));
        let headers_helper = match helper {
            Some(text) => Some(self.variables.expand_known(&text?)),
            None => None,
        };
        let oauth = member(node, "oauth").map(|oauth| self.oauth(oauth));
        let oauth = oauth.flatten().filter(|oauth| !oauth.is_empty());
        Some(McpRemote { url, headers, headers_helper, oauth })
    }

    fn sdk(&mut self, node: &Node) -> Option<McpTransport> {
        if !matches!(self.origin.scope, McpScope::Flag | McpScope::Host) {
            self.refuse(
                node.line,
                "only the host that starts this program can offer servers of type `sdk`",
            );
            return None;
        }
        // A host also sends what the server calls itself, but looks it up by the name of its definition.
        let name = self.name.clone();
        self.endpoint.clone_from(&name);
        Some(McpTransport::Sdk { name })
    }

    fn oauth(&mut self, node: &Node) -> Option<McpOAuth> {
        let Json::Object(members) = &node.json else {
            self.wrong("oauth", node, "an object");
            return None;
        };
        for it in members.iter().filter(|it| !OF_OAUTH.contains(&it.name.as_str())) {
            self.unknown_key(&it.name, it.node.line, &OF_OAUTH);
        }
        let client_id = member(node, "clientId").map(|it| self.text(it, "oauth.clientId"));
        let port = member(node, "callbackPort").map(|it| {
            let port = whole_number(it).and_then(|port| u16::try_from(port).ok());
            let port = port.filter(|port| *port > 0);
            if port.is_none() {
                self.wrong("oauth.callbackPort", it, "a port from 1 to 65535");
            }
            port
        });
        let scopes = match member(node, "scopes") {
            None => Vec::new(),
            Some(Node { json: Json::Text(text), .. }) => {
                text.split_whitespace().map(str::to_owned).collect()
            }
            Some(list) => self.texts(list, "oauth.scopes")?,
        };
        let metadata = member(node, "authServerMetadataUrl").map(|it| {
            let url = self.text(it, "oauth.authServerMetadataUrl")?;
            self.check_url(&url, it.line, "oauth.authServerMetadataUrl", &["https"]);
            Some(url)
        });
        Some(McpOAuth {
            client_id: client_id.flatten(),
            callback_port: port.flatten(),
            scopes,
            auth_server_metadata_url: metadata.flatten(),
        })
    }

    fn timeout(&mut self, node: &Node) -> Option<Duration> {
        let node = member(node, "timeout")?;
        let Some(millis) = whole_number(node) else {
            self.wrong("timeout", node, "a whole number of milliseconds");
            return None;
        };
        let timeout = Duration::from_millis(millis);
        if timeout < SHORTEST_TIMEOUT {
            let least = SHORTEST_TIMEOUT.as_millis();
            self.warn(
                node.line,
                &format!("its `timeout` is less than {least} ms, and does not count"),
            );
            return None;
        }
        Some(timeout)
    }

    fn switch(&mut self, node: &Node, key: &str) -> bool {
        match member(node, key) {
            None => false,
            Some(Node { json: Json::Bool(is_on), .. }) => *is_on,
            Some(other) => {
                self.wrong(key, other, "true or false");
                false
            }
        }
    }

    fn text(&mut self, node: &Node, key: &str) -> Option<String> {
        if let Json::Text(text) = &node.json {
            return Some(text.clone());
        }
        self.wrong(key, node, "text in quotes");
        None
    }

    fn texts(&mut self, node: &Node, key: &str) -> Option<Vec<String>> {
        let Json::List(items) = &node.json else {
            self.wrong(key, node, "a list of texts");
            return None;
        };
        let items = items.iter().enumerate();
        items.map(|(index, item)| self.text(item, &format!("{key}[{index}]"))).collect()
    }

    /// Names and texts, which are expanded.
    fn text_map(
        &mut self,
        node: &Node,
        key: &str,
        is_name: fn(&str) -> bool,
    ) -> Option<BTreeMap<String, String>> {
        let Some(node) = member(node, key) else { return Some(BTreeMap::new()) };
        let Json::Object(members) = &node.json else {
            self.wrong(key, node, "an object of names and texts");
            return None;
        };
        let mut map = BTreeMap::new();
        for member in members {
            let path = format!("{key}.{}", printable(&member.name));
            if !is_name(&member.name) {
                self.refuse(member.node.line, &format!("`{path}` has a name that cannot be used"));
                return None;
            }
            let text = self.text(&member.node, &path)?;
            map.insert(member.name.clone(), self.expand(&text, member.node.line, &path));
        }
        Some(map)
    }

    fn expand(&mut self, text: &str, line: usize, key: &str) -> String {
        let mut missing = Vec::new();
        let expanded = self.variables.expand(text, &mut missing);
        for name in missing {
            let name = printable(&name);
            self.warn(line, &format!("`{key}` needs the variable {name}, which is not set"));
        }
        expanded
    }

    fn check_url(&mut self, url: &str, line: usize, key: &str, schemes: &[&str]) {
        let is_good = Url::parse(url)
            .is_ok_and(|url| schemes.contains(&url.scheme()) && url.host().is_some());
        if !is_good {
            // The written text may hold a secret.
            let schemes = schemes.join(":// or ");
            self.refuse(line, &format!("its `{key}` is no {schemes}:// address"));
        }
    }

    fn look_at_key(&mut self, key: &str, line: usize, own: &[&str], kind: &str) {
        if COMMON.contains(&key) || own.contains(&key) {
            return;
        }
        if OF_STDIO.contains(&key) || OF_REMOTE.contains(&key) {
            self.warn(line, &format!("`{key}` means nothing for a server of type `{kind}`"));
            return;
        }
        self.unknown_key(key, line, &[&COMMON[..], own].concat());
    }

    fn unknown_key(&mut self, key: &str, line: usize, known: &[&str]) {
        let meant = closest(key, known).map(|it| format!("; perhaps `{it}` is meant"));
        let key = printable(key);
        self.warn(line, &format!("`{key}` is no known key{}", meant.unwrap_or_default()));
    }

    fn wrong(&mut self, key: &str, node: &Node, expected: &str) {
        self.refuse(node.line, &format!("`{key}` must be {expected}, and is {}", node.kind()));
    }

    /// Something is wrong, and the server is left out for it.
    fn refuse(&mut self, line: usize, message: &str) {
        self.is_broken = true;
        self.problem(line, format!("server `{}` is left out: {message}", self.name));
    }

    fn warn(&mut self, line: usize, message: &str) {
        self.problem(line, format!("server `{}`: {message}", self.name));
    }

    fn problem(&mut self, line: usize, message: String) {
        let (path, line) = (self.origin.place(), Some(line).filter(|line| *line > 0));
        self.problems.push(Problem { path, line, message });
    }
}

/// A member that says something: `null` says nothing.
fn member<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|node| node.json != Json::Null)
}

fn whole_number(node: &Node) -> Option<u64> {
    match &node.json {
        Json::Number(number) => number.as_u64(),
        _ => None,
    }
}

fn is_header_name(name: &str) -> bool {
    let is_token = |it: char| it.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(it);
    !name.is_empty() && name.chars().all(is_token)
}
