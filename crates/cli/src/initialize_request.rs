//! The part of a host's `initialize` request that flags could express.
//!
//! The first line of a host is read before anything is loaded. Its wishes hold from the start, as if flags had
//! expressed them; the rest of the request is answered when the session is there.

use std::path::PathBuf;

use centurion_host::Declarations;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::args::RunArgs;

/// Divides a system prompt into a part that is the same for all users and another one. Both are sent.
const BOUNDARY: &str = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__";

/// A host's first request, if it is the one that begins a session.
#[derive(Deserialize)]
struct FirstLine {
    #[serde(rename = "type")]
    kind: String,
    request: Map<String, Value>,
}

/// The wishes that flags could express. A field of another shape than its own is left out: the answer to the request
/// names it, and the other fields count.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    /// The whole request.
    request: Map<String, Value>,
    system_prompt: Option<Texts>,
    append_system_prompt: Option<String>,
    json_schema: Option<Value>,
    prompt_suggestions: Option<bool>,
    title: Option<String>,
    exclude_dynamic_sections: Option<bool>,
    /// The main agent may be one of these.
    agents: Option<Value>,
    /// The names of servers that live in the host.
    sdk_mcp_servers: Option<Value>,
    /// Servers that this program runs or connects to, by name.
    mcp_servers: Option<Map<String, Value>>,
    plugins: Vec<Plugin>,
}

/// A plugin that the host brings.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plugin {
    path: PathBuf,
    /// True if the host owns the connections to its servers.
    #[serde(default)]
    skip_mcp_discovery: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn joined(self) -> String {
        let texts = match self {
            Self::One(text) => vec![text],
            Self::Several(texts) => texts,
        };
        let texts = texts.into_iter().filter(|text| text.trim() != BOUNDARY);
        texts.collect::<Vec<_>>().join("\n\n")
    }
}

/// The fields of a request.
struct RequestFields(Map<String, Value>);

impl RequestFields {
    /// Takes the field of this name, if it has the right shape.
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        serde_json::from_value(self.0.remove(name)?).ok()
    }
}

impl Opening {
    /// Reads the first line of a host; `None` if it does not begin a session.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let line: FirstLine = serde_json::from_slice(line).ok()?;
        let is_opening = line.kind == "control_request"
            && line.request.get("subtype").is_some_and(|it| it == "initialize");
        is_opening.then(|| Self::of(line.request))
    }

    fn of(request: Map<String, Value>) -> Self {
        let mut fields = RequestFields(request.clone());
        let plugins: Vec<Value> = fields.take("plugins").unwrap_or_default();
        let schema: Option<Map<String, Value>> = fields.take("jsonSchema");
        Self {
            system_prompt: fields.take("systemPrompt"),
            append_system_prompt: fields.take("appendSystemPrompt"),
            json_schema: schema.map(Value::Object),
            prompt_suggestions: fields.take("promptSuggestions"),
            exclude_dynamic_sections: fields.take("excludeDynamicSections"),
            title: fields.take("title"),
            agents: fields.take("agents"),
            sdk_mcp_servers: fields.take("sdkMcpServers"),
            mcp_servers: fields.take("mcpServers"),
            plugins: plugins.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect(),
            request,
        }
    }

    /// The declarations of the host that began the session so.
    pub(crate) fn declarations(&self, args: &RunArgs) -> Declarations {
        Declarations::of_opening(&self.request, self.launched_servers(args))
    }

    /// Whether the system prompt is to say nothing of the user and the place.
    fn is_the_same_for_all(&self) -> bool {
        self.exclude_dynamic_sections == Some(true)
    }

    /// The servers that the start of the session connects, if it waits for this request.
    fn launched_servers(&self, args: &RunArgs) -> Option<Map<String, Value>> {
        self.mcp_servers.clone().filter(|_| args.format.await_initialize)
    }

    /// Adds the wishes to the flags. A flag that was given counts more.
    pub(crate) fn lay_under(self, args: &mut RunArgs) {
        let is_the_same_for_all = self.is_the_same_for_all();
        if let Some(servers) = self.launched_servers(args) {
            args.mcp.mcp_config.push(json!({"mcpServers": servers}).to_string());
        }
        let resumes = args.session.continue_last || args.session.resume.is_some();
        let title = self.title.filter(|title| !title.trim().is_empty() && !resumes);
        args.session.name = args.session.name.take().or(title);
        let model = &mut args.model;
        if model.system_prompt_file.is_none() && model.system_prompt.is_none() {
            let prompt = self.system_prompt.map(Texts::joined);
            // A host that says nothing leaves an agent its own prompt.
            let has_own = args.delegation.agent.is_some();
            model.system_prompt = prompt.filter(|prompt| !(has_own && prompt.is_empty()));
        }
        if model.append_system_prompt_file.is_none() && model.append_system_prompt.is_none() {
            model.append_system_prompt = self.append_system_prompt;
        }
        if args.json_schema.is_none() {
            args.json_schema = self.json_schema.map(|schema| schema.to_string());
        }
        for plugin in self.plugins.into_iter().filter(|plugin| plugin.path.is_absolute()) {
            let known = &mut args.delegation;
            let known = if plugin.skip_mcp_discovery {
                &mut known.plugin_dir_no_mcp
            } else {
                &mut known.plugin_dir
            };
            known.push(plugin.path);
        }
        args.format.prompt_suggestions |= self.prompt_suggestions.unwrap_or(false);
        args.model.exclude_dynamic_system_prompt_sections |= is_the_same_for_all;
        bring_what_begins(args, self.agents, self.sdk_mcp_servers.as_ref());
    }
}

/// Adds what a session cannot begin without: its main agent, and the server that answers questions. The rest of the
/// request brings all agents and servers.
fn bring_what_begins(args: &mut RunArgs, agents: Option<Value>, servers: Option<&Value>) {
    let delegation = &mut args.delegation;
    if delegation.agent.is_some() && delegation.definitions.agents.is_none() {
        let agents = agents.filter(Value::is_object);
        delegation.definitions.agents = agents.map(|agents| agents.to_string());
    }
    let Some(asked) = &args.permissions.permission_prompt_tool else { return };
    let names = servers.and_then(Value::as_array).into_iter().flatten();
    if let Some(name) = names.filter_map(Value::as_str).find(|name| asked.is_of_server(name)) {
        let servers = json!({name: {"type": "sdk", "name": name}});
        args.mcp.mcp_config.push(json!({"mcpServers": servers}).to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &Value) -> Option<Opening> {
        Opening::read(line.to_string().as_bytes())
    }

    #[test]
    fn only_a_request_that_begins_a_session_is_an_opening() {
        let request = |request: Value| json!({"type": "control_request", "request_id": "1", "request": request});
        assert!(read(&request(json!({"subtype": "initialize", "hooks": null}))).is_some());
        for other in [
            request(json!({"subtype": "interrupt"})),
            request(json!(null)),
            json!({"type": "user", "request": {"subtype": "initialize"}}),
            json!([]),
        ] {
            assert!(read(&other).is_none(), "{other}");
        }
        assert!(Opening::read(b"{\"type\": \"control_req").is_none());
    }

    #[test]
    fn a_field_of_the_wrong_shape_takes_no_other_along() {
        let whole = json!({
            "subtype": "initialize", "systemPrompt": ["a"], "appendSystemPrompt": "b", "title": "c",
            "jsonSchema": {"type": "object"}, "promptSuggestions": true,
            "mcpServers": {"s": {"command": "x"}}, "plugins": [{"path": "/p"}],
        });
        let names = whole.as_object().unwrap().keys().filter(|name| *name != "subtype");
        let found = |opening: &Opening| {
            [
                opening.system_prompt.is_some(),
                opening.append_system_prompt.is_some(),
                opening.title.is_some(),
                opening.json_schema.is_some(),
                opening.prompt_suggestions.is_some(),
                opening.mcp_servers.is_some(),
                opening.plugins.len() == 1,
            ]
            .into_iter()
            .filter(|is_there| *is_there)
            .count()
        };
        for name in names {
            let mut broken = whole.clone();
            broken[name] = json!(7);
            let line = json!({"type": "control_request", "request_id": "1", "request": broken});
            let opening = read(&line).unwrap();
            assert_eq!(found(&opening), 6, "{name}: {opening:?}");
        }
        let mut mixed = whole;
        mixed["plugins"] = json!([7, {"path": "/p"}, {"path": 7}]);
        let line = json!({"type": "control_request", "request_id": "1", "request": mixed});
        assert_eq!(found(&read(&line).unwrap()), 7);
    }

    #[test]
    fn a_system_prompt_is_one_text_without_its_boundary() {
        let texts = Texts::Several(vec!["a".into(), BOUNDARY.into(), "b".into()]);
        assert_eq!(texts.joined(), "a\n\nb");
        assert_eq!(Texts::One("a".into()).joined(), "a");
    }
}
