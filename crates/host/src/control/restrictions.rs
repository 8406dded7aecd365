//! Restrictions that a host lays down when it begins: tools that mean others, rules for tools of its own servers, and which
//! of its own controls it offers to people.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use centurion_engine::{Handle, ServerRules};
use centurion_permissions::RuleKind;
use serde_json::{Map, Value, json};

use super::{Control, wishes};

/// The shortest time that a call can be given.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// Declarations of the session's first host about itself. Later ones change nothing.
#[derive(Debug, Default)]
pub struct Declarations {
    /// True if people can end one task by itself, so that an interrupt may spare the others.
    stops_single_tasks: OnceLock<bool>,
    /// The servers that the start of the session took from the request, by name.
    launched_servers: Option<Map<String, Value>>,
    /// The wishes that the session began with.
    begun_with: Map<String, Value>,
}

impl Declarations {
    /// The declarations of a host whose request the start of the session took, with these of its servers.
    pub fn of_opening(
        request: &Map<String, Value>,
        launched_servers: Option<Map<String, Value>>,
    ) -> Self {
        let wish = |name: &str| Some((name.to_owned(), request.get(name)?.clone()));
        let begun_with = wishes::AT_START.into_iter().filter_map(wish).collect();
        Self { launched_servers, begun_with, ..Self::default() }
    }

    /// The problems of wishes that come too late.
    pub(super) fn too_late(&self, request: &Map<String, Value>) -> Vec<String> {
        wishes::too_late(request, &self.begun_with)
    }

    /// Tells whether an interrupt leaves agents in the background alone. A person who cannot end them one by one ends
    /// them all.
    pub(super) fn spares_agents(&self) -> bool {
        self.stops_single_tasks.get().is_some_and(|stops| *stops)
    }
}

impl Control {
    /// Adds what became of the parts of a request that only the start of a session can take.
    pub(super) fn tell_applied(&self, request: &Map<String, Value>, answer: &mut Value) {
        let plugins = request.get("plugins").and_then(Value::as_array);
        if let Some(plugins) = plugins.filter(|plugins| !plugins.is_empty()) {
            let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let enabled = self.handle.plugins().enabled;
            let loaded: Vec<PathBuf> = enabled.iter().map(|it| real(Path::new(&it.path))).collect();
            let is_loaded = |plugin: &Value| {
                let path = plugin.get("path").and_then(Value::as_str);
                path.is_some_and(|path| loaded.contains(&real(Path::new(path))))
            };
            answer["plugins_applied"] = json!(plugins.iter().all(is_loaded));
        }
        if let Some(servers) = request.get("mcpServers").and_then(Value::as_object) {
            let is_taken = self.declarations.launched_servers.as_ref() == Some(servers);
            answer["mcp_servers_applied"] = json!(is_taken);
        }
        let names = request.get("sdkMcpServers").and_then(Value::as_array);
        if let (Some(manifests), Some(names)) = (request.get("sdkMcpServerManifests"), names) {
            let names = names.iter().filter_map(Value::as_str);
            let parked =
                names.filter_map(|name| Some((name.to_owned(), json!(parked(manifests, name)?))));
            answer["sdk_mcp_manifests_parked"] = Value::Object(parked.collect());
        }
    }

    /// Puts what a host's `initialize` restricts in force. Returns what is wrong with it.
    pub(super) fn restrict(&self, request: &Map<String, Value>) -> Vec<String> {
        let stops = request.get("perTaskStopAffordance").and_then(Value::as_bool);
        // The first request decides.
        self.declarations.stops_single_tasks.get_or_init(|| stops.unwrap_or(false));
        let plan = request.get("planModeInstructions").and_then(Value::as_str);
        if let Some(text) = plan.filter(|text| !text.trim().is_empty()) {
            self.handle.instruct_planning(text.to_owned());
        }
        let aliases = request.get("toolAliases").filter(|it| !it.is_null());
        aliases.map(|aliases| self.redirect_tools(aliases)).unwrap_or_default()
    }

    fn redirect_tools(&self, aliases: &Value) -> Vec<String> {
        let pairs = aliases.as_object().into_iter().flatten();
        // A tool that is to be another one does not run as itself, even if the other one has no name.
        let pairs =
            pairs.map(|(name, to)| (name.clone(), to.as_str().unwrap_or_default().to_owned()));
        let aliases: HashMap<String, String> = pairs.collect();
        let nowhere = aliases.iter().filter(|(_, target)| target.is_empty());
        let problem = |(name, _): (&String, _)| {
            format!("`toolAliases` names no tool for `{name}`, which cannot be called")
        };
        let problems = nowhere.map(problem).collect();
        self.handle.redirect_tools(aliases);
        problems
    }
}

/// The word for what became of the handshake that a host brings for one of its servers; `None` where it brings none.
/// Servers are always asked themselves.
fn parked(manifests: &Value, name: &str) -> Option<&'static str> {
    let Some(manifests) = manifests.as_object() else { return Some("malformed") };
    let manifest = manifests.get(name)?;
    let is_object = |name: &str| manifest.get(name).map(Value::is_object);
    let is_whole =
        is_object("initializeResult") == Some(true) && is_object("toolsListResult") != Some(false);
    Some(if is_whole { "not_honoured" } else { "malformed" })
}

/// The settings of a server that lives in the host.
#[derive(Debug, Default)]
pub(super) struct ServerWishes {
    /// The time for one call.
    pub(super) timeout: Option<Duration>,
    /// Rules for its tools; `None` says nothing about them.
    rules: Option<Vec<(RuleKind, String)>>,
}

impl ServerWishes {
    /// Reads the settings of one server. What is not understood is left out, but for the policy of a tool with a name:
    /// that tool asks.
    pub(super) fn read(value: &Value) -> Self {
        let timeout = value.get("timeout").and_then(Value::as_u64).map(Duration::from_millis);
        let tools = value.get("tools").and_then(Value::as_array);
        // Rules of a server in another process or elsewhere may also free its tools.
        let is_hosts = value.get("type").is_none_or(|kind| kind == "sdk");
        let rule = |tool: &Value| {
            let name = tool.get("name")?.as_str()?.to_owned();
            let kind = match tool.get("permission_policy").and_then(Value::as_str) {
                Some("always_deny") => RuleKind::Deny,
                Some("always_allow") if is_hosts => return None,
                Some("always_allow") => RuleKind::Allow,
                _ => RuleKind::Ask,
            };
            Some((kind, name))
        };
        Self {
            timeout: timeout.filter(|timeout| *timeout >= SHORTEST_TIMEOUT),
            rules: tools.map(|tools| tools.iter().filter_map(rule).collect()),
        }
    }

    /// Adds the rules to earlier ones, as the beginning of a session does.
    pub(super) fn add_rules(&self, handle: &Handle, server: &str) {
        if let Some(rules) = &self.rules {
            handle.restrict_server(server, rules, ServerRules::Add);
        }
    }

    /// Puts the rules in the place of earlier ones; a server without rules loses those that it had.
    pub(super) fn replace_rules(&self, handle: &Handle, server: &str) {
        let rules = self.rules.as_deref().unwrap_or_default();
        handle.restrict_server(server, rules, ServerRules::Replace);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_that_is_not_understood_asks() {
        let read = |value: Value| ServerWishes::read(&value).rules;
        let rule = |kind, name: &str| (kind, name.to_owned());
        let tools = json!([
            {"name": "a", "permission_policy": "always_deny"},
            {"name": "b", "permission_policy": "always_ask"},
            {"name": "c", "permission_policy": "sometimes"},
            {"name": "d"},
            {"name": "e", "permission_policy": "always_allow"},
            {"permission_policy": "always_deny"},
            7,
        ]);
        let asked = ["b", "c", "d"].map(|name| rule(RuleKind::Ask, name));
        let mut expected = vec![rule(RuleKind::Deny, "a")];
        expected.extend(asked);
        assert_eq!(read(json!({"tools": tools})), Some(expected.clone()));
        expected.push(rule(RuleKind::Allow, "e"));
        assert_eq!(read(json!({"type": "http", "tools": tools})), Some(expected));
        assert_eq!(read(json!({"tools": "all"})), None);
        assert_eq!(read(json!({})), None);
        assert_eq!(ServerWishes::read(&json!({"timeout": 999})).timeout, None);
        let timeout = ServerWishes::read(&json!({"timeout": 1_500})).timeout;
        assert_eq!(timeout, Some(Duration::from_millis(1_500)));
    }
}
