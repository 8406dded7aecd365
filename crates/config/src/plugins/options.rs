//! Options of a plugin: those that it declares, and the values that its user configured.
//!
//! Values come from `pluginConfigs` of settings that are the user's own. Those that a plugin calls
//! sensitive are not taken from there: a file of settings is no place for secrets.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::manifest::text_of;
use crate::Problem;
use crate::settings::document::{Json, JsonMember, Node};
use crate::settings::{closest, printable};

const KINDS: [(&str, OptionKind); 5] = [
    ("string", OptionKind::Text),
    ("number", OptionKind::Number),
    ("boolean", OptionKind::Switch),
    ("directory", OptionKind::Text),
    ("file", OptionKind::Text),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionKind {
    Text,
    Number,
    Switch,
}

/// Something that can be configured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UserOption {
    key: String,
    kind: OptionKind,
    is_sensitive: bool,
    is_required: bool,
    /// Whether it is a list of such values.
    is_multiple: bool,
    default: Option<Value>,
    line: usize,
}

/// Reads `userConfig`; gives what is wrong with it, too.
pub(super) fn read_options(node: &Node, path: &Path) -> (Vec<UserOption>, Vec<Problem>) {
    let Json::Object(members) = &node.json else { return (Vec::new(), Vec::new()) };
    let mut errors = Vec::new();
    let mut options = Vec::new();
    for JsonMember { name, node } in members {
        match read_option(name, node) {
            Ok(option) => options.push(option),
            Err((line, message)) => {
                let message = format!("`userConfig.{}` {message}", printable(name));
                errors.push(Problem { path: path.to_owned(), line: Some(line), message });
            }
        }
    }
    (options, errors)
}

fn read_option(key: &str, node: &Node) -> Result<UserOption, (usize, String)> {
    let is_good = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    if key.is_empty() || !key.chars().all(is_good) {
        return Err((node.line, "may hold only letters, digits, `_` and `-`".to_owned()));
    }
    if !matches!(node.json, Json::Object(_)) {
        return Err((node.line, format!("must be an object, and is {}", node.kind())));
    }
    let kind = match node.get("type") {
        None => OptionKind::Text,
        Some(kind) => {
            let name = text_of(kind).unwrap_or_default();
            let known = KINDS.iter().find(|(it, _)| *it == name).map(|(_, kind)| *kind);
            known.ok_or_else(|| {
                let names = KINDS.map(|(name, _)| name).join(", ");
                (kind.line, format!("has a `type` that is none of {names}"))
            })?
        }
    };
    let switch = |name: &str| match node.get(name) {
        None => Ok(false),
        Some(Node { json: Json::Bool(value), .. }) => Ok(*value),
        Some(other) => Err((other.line, format!("has a `{name}` that is {}", other.kind()))),
    };
    let option = UserOption {
        key: key.to_owned(),
        kind,
        is_sensitive: switch("sensitive")?,
        is_required: switch("required")?,
        is_multiple: switch("multiple")?,
        default: node.get("default").map(Node::to_value),
        line: node.line,
    };
    if let (Some(default), Some(value)) = (node.get("default"), &option.default)
        && option.text_of(value).is_none()
    {
        return Err((default.line, format!("has a `default` that is {}", default.kind())));
    }
    Ok(option)
}

impl UserOption {
    /// A value of the right kind, as text.
    fn text_of(&self, value: &Value) -> Option<String> {
        if let (true, Value::Array(items)) = (self.is_multiple, value) {
            let items = items.iter().map(|item| self.one(item));
            return items.collect::<Option<Vec<_>>>().map(|items| items.join(","));
        }
        self.one(value)
    }

    fn one(&self, value: &Value) -> Option<String> {
        match (self.kind, value) {
            (OptionKind::Text, Value::String(text)) if !text.contains('\0') => Some(text.clone()),
            (OptionKind::Number, Value::Number(number)) => Some(number.to_string()),
            (OptionKind::Switch, Value::Bool(value)) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// The value of each option: the configured one, or else its default.
pub(super) fn configured(
    options: &[UserOption],
    config: Option<&Value>,
    manifest: &Path,
) -> (BTreeMap<String, String>, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut values = BTreeMap::new();
    let given = config.and_then(|config| config.get("options"));
    for option in options {
        let UserOption { key, line, .. } = option;
        let mut tell = |message: String| {
            let problem = Problem { path: manifest.to_owned(), line: Some(*line), message };
            problems.push(problem);
        };
        let value = given.and_then(|given| given.get(key));
        if option.is_sensitive {
            if option.is_required || value.is_some() {
                tell(format!(
                    "the option `{key}` is a secret, which settings do not hold; \
                     `${{user_config.{key}}}` stays as it is written"
                ));
            }
            continue;
        }
        let configured = value.and_then(|value| {
            let text = option.text_of(value);
            if text.is_none() {
                tell(format!("`{key}` in `pluginConfigs` is of the wrong type and is ignored"));
            }
            text
        });
        let default = || option.default.as_ref().and_then(|value| option.text_of(value));
        match configured.or_else(default) {
            Some(text) => _ = values.insert(key.clone(), text),
            None if option.is_required => tell(format!(
                "the option `{key}` is required and not set; \
                 help: set `pluginConfigs.<plugin@marketplace>.options.{key}` in your settings"
            )),
            None => {}
        }
    }
    let keys: Vec<&str> = options.iter().map(|option| option.key.as_str()).collect();
    let given = given.and_then(Value::as_object).into_iter().flat_map(|given| given.keys());
    for unknown in given.filter(|key| !keys.contains(&key.as_str())) {
        let meant = closest(unknown, &keys).map(|it| format!("; did you mean `{it}`?"));
        let message = format!(
            "`{}` in `pluginConfigs` is no option of this plugin{}",
            printable(unknown),
            meant.unwrap_or_default()
        );
        problems.push(Problem { path: manifest.to_owned(), line: None, message });
    }
    (values, problems)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> (Vec<UserOption>, Vec<Problem>) {
        read_options(&Node::of_value(value, 3), Path::new("/p.json"))
    }

    #[test]
    fn options_have_values_defaults_and_types() {
        let (options, errors) = read(&json!({
            "url": {"type": "string", "required": true}, "level": {"type": "number", "default": 2},
            "tags": {"type": "string", "multiple": true}, "on": {"type": "boolean"},
            "token": {"type": "string", "sensitive": true, "required": true},
            "missing": {"type": "file", "required": true},
        }));
        assert_eq!(errors, []);
        let config = json!({"options": {"url": "https://h", "tags": ["a", "b"], "on": "yes",
                                        "token": "s3cret", "urll": 1}});
        let (values, problems) = configured(&options, Some(&config), Path::new("/p.json"));
        let expected = [("level", "2"), ("tags", "a,b"), ("url", "https://h")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(values, BTreeMap::from(expected));
        let said: Vec<_> = problems.iter().map(ToString::to_string).collect();
        for part in [
            "`on` in `pluginConfigs`",
            "`token` is a secret",
            "`missing` is required",
            "did you mean `url`?",
        ] {
            assert!(said.iter().any(|it| it.contains(part)), "{part}: {said:?}");
        }
        assert!(said.iter().all(|it| !it.contains("s3cret")));
    }

    #[test]
    fn an_option_that_is_none_is_an_error_with_its_line() {
        for (option, part) in [
            (json!({"type": "colour"}), "none of string, number"),
            (json!({"required": 1}), "has a `required` that is a number"),
            (json!({"type": "number", "default": "x"}), "has a `default` that is text"),
            (json!(1), "must be an object"),
        ] {
            let (_, errors) = read(&json!({ "k": option }));
            assert!(errors[0].to_string().starts_with("/p.json:3: `userConfig.k` "), "{errors:?}");
            assert!(errors[0].message.contains(part), "{errors:?}");
        }
        assert!(read(&json!({"../k": {}})).1[0].message.contains("only letters"));
    }
}
