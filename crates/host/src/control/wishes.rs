//! The fields of `initialize`, each with its shape: one that is wrong is named, and the others count.

use serde_json::{Map, Value};

/// The shape of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Text,
    Switch,
    /// A text, or a list of texts.
    Texts,
    /// A list of texts, each of which counts by itself.
    Names,
    /// A list of texts, or the word `all`.
    NamesOrAll,
    /// An object, which its own reader looks at.
    Object,
    /// A list of objects with the absolute `path` of a plugin.
    Plugins,
}

/// The fields that mean something here.
const FIELDS: [(&str, Shape); 20] = [
    ("agentProgressSummaries", Shape::Switch),
    ("agents", Shape::Object),
    ("appendSystemPrompt", Shape::Text),
    ("excludeDynamicSections", Shape::Switch),
    ("forwardSubagentText", Shape::Switch),
    ("hooks", Shape::Object),
    ("jsonSchema", Shape::Object),
    ("mcpServers", Shape::Object),
    ("perTaskStopAffordance", Shape::Switch),
    ("planModeInstructions", Shape::Text),
    ("plugins", Shape::Plugins),
    ("promptSuggestions", Shape::Switch),
    ("sdkMcpServerConfigs", Shape::Object),
    ("sdkMcpServerManifests", Shape::Object),
    ("sdkMcpServers", Shape::Names),
    ("skills", Shape::NamesOrAll),
    ("supportedDialogKinds", Shape::Names),
    ("systemPrompt", Shape::Texts),
    ("title", Shape::Text),
    ("toolAliases", Shape::Object),
];

/// The fields that only the start of a session can put in force.
pub(super) const AT_START: [&str; 7] = [
    "appendSystemPrompt",
    "excludeDynamicSections",
    "jsonSchema",
    "plugins",
    "promptSuggestions",
    "systemPrompt",
    "title",
];

/// The problems of a request that came after the start, one for each wish that the session did not begin with.
pub(super) fn too_late(
    request: &Map<String, Value>,
    begun_with: &Map<String, Value>,
) -> Vec<String> {
    let says_nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    let is_late = |name: &&str| {
        let wish = request.get(*name).filter(|wish| !says_nothing(wish));
        wish.is_some() && wish != begun_with.get(*name)
    };
    let late = AT_START.into_iter().filter(is_late);
    late.map(|name| format!("`{name}` came after the session had begun, and is ignored")).collect()
}

/// The problems of a request, one a field. A field that is missing or null has none.
pub(super) fn problems(request: &Map<String, Value>) -> Vec<String> {
    let given = |name: &str| request.get(name).filter(|value| !value.is_null());
    let found =
        FIELDS.iter().filter_map(|(name, shape)| Some((name, shape.problem(given(name)?)?)));
    found.map(|(name, problem)| format!("`{name}` {problem}")).collect()
}

impl Shape {
    fn problem(self, value: &Value) -> Option<String> {
        const UNHEARD: &str = "and is ignored";
        let unless =
            |is_right: bool, what: &str| (!is_right).then(|| format!("is {what}, {UNHEARD}"));
        let are_texts = || value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
        match self {
            Self::Text => unless(value.is_string(), "no text"),
            Self::Switch => unless(value.is_boolean(), "neither true nor false"),
            Self::Texts => {
                unless(value.is_string() || are_texts(), "neither a text nor a list of texts")
            }
            Self::Names => entries(value, "a list of texts", Value::is_string),
            Self::NamesOrAll => {
                unless(value == "all" || are_texts(), "neither a list of names nor `all`")
            }
            Self::Object => unless(value.is_object(), "no object"),
            Self::Plugins => entries(value, "a list of plugins with an absolute `path`", |it| {
                it["path"].as_str().is_some_and(|path| path.starts_with('/'))
            }),
        }
    }
}

/// The problem of a list whose entries count one by one.
fn entries(value: &Value, what: &str, is_right: impl Fn(&Value) -> bool) -> Option<String> {
    let Some(list) = value.as_array() else {
        return Some(format!("is not {what}, and is ignored"));
    };
    let wrong = list.iter().position(|entry| !is_right(entry))?;
    Some(format!("is not {what}: entry {} and others like it are ignored", wrong + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_wrong_field_is_named_and_no_right_one() {
        let right = json!({
            "subtype": "initialize", "hooks": null, "agents": {}, "systemPrompt": ["a"], "skills": "all",
            "toolAliases": {"a": "b"}, "plugins": [{"type": "local", "path": "/p"}], "later": [7],
            "sdkMcpServers": ["a"], "promptSuggestions": false, "title": "",
        });
        assert_eq!(problems(right.as_object().unwrap()), Vec::<String>::new());
        for (name, shape) in FIELDS {
            let mut broken = right.clone();
            broken[name] = json!(7);
            let found = problems(broken.as_object().unwrap());
            assert_eq!(found.len(), 1, "{shape:?} {found:?}");
            assert!(found[0].starts_with(&format!("`{name}` ")), "{found:?}");
        }
        for name in AT_START {
            assert!(FIELDS.iter().any(|(it, _)| *it == name), "{name}");
        }
        for (name, value) in [
            ("sdkMcpServers", json!(["a", 7])),
            ("plugins", json!([{"path": "p"}])),
            ("systemPrompt", json!([["a"]])),
        ] {
            let request = Map::from_iter([(name.to_owned(), value)]);
            assert_eq!(problems(&request).len(), 1, "{name}");
        }
    }

    #[test]
    fn a_wish_counts_as_late_unless_the_session_began_with_it() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let wishes = object(json!({
            "systemPrompt": "a", "title": "b", "promptSuggestions": false, "plugins": [],
            "appendSystemPrompt": "", "excludeDynamicSections": null, "agents": {"x": {}},
        }));
        let late = |begun_with: Value| too_late(&wishes, &object(begun_with));
        assert_eq!(late(json!({"systemPrompt": "a", "title": "b"})), Vec::<String>::new());
        assert_eq!(late(json!({})).len(), 2);
        let [changed] = &late(json!({"systemPrompt": "a", "title": "c"}))[..] else { panic!() };
        assert!(changed.starts_with("`title` "), "{changed}");
    }
}
