//! Setting one key to a value that a person wrote, and taking a key out.

use serde_json::Value;
use thiserror::Error;

use super::{Change, EditError, InTheWay, Json, SettingsFile, change};
use crate::settings::keys::{self, ValueKind};
use crate::settings::layer::{expectation, fits, item_kind};

/// A key that settings may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownSetting {
    /// With dots: `sandbox.network.allowedDomains`.
    pub key: &'static str,
    /// The values that it may have, in words.
    pub expected: String,
    /// The reason why this program does nothing with it, where there is more to say than that.
    pub unused: Option<&'static str>,
}

/// The reason why a text is no value of a key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ValueError {
    #[error("there is no setting `{key}`{}", nearest.map(|it| format!("; help: `{it}`")).unwrap_or_default())]
    Unknown { key: String, nearest: Option<&'static str> },
    #[error("`{key}` must be {expected}")]
    Unfit { key: String, expected: String },
}

/// Every key that is known, in the order of its topic.
pub fn known_settings() -> impl Iterator<Item = KnownSetting> {
    keys::KEYS.iter().map(|key| KnownSetting {
        key: key.path,
        expected: expectation(key.kind),
        unused: key.reason(),
    })
}

/// The value of a key that a text means: as JSON, or as people write it where that is clear.
pub fn read_setting(key: &str, text: &str) -> Result<Value, ValueError> {
    let known = keys::find(key)
        .ok_or_else(|| ValueError::Unknown { key: key.to_owned(), nearest: keys::nearest(key) })?;
    let text = text.trim();
    let as_json = serde_json::from_str::<Value>(text).ok();
    let is_word = matches!(known.kind, ValueKind::Text | ValueKind::Choice(_));
    let value = match (as_json, known.kind) {
        (Some(value @ Value::String(_)), _) => value,
        _ if is_word => Value::from(text),
        (Some(value), _) => value,
        (None, ValueKind::Texts(_) | ValueKind::Rules | ValueKind::Switches(_)) => {
            text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(Value::from).collect()
        }
        (None, _) => Value::from(text),
    };
    let is_list_of_words = matches!(known.kind, ValueKind::Switches(_)) && value.is_array();
    let kind = item_kind(known.kind);
    let is_fit = |item: &Value| kind == known.kind || fits(kind, item);
    let has_fit_items = match &value {
        Value::Array(items) => items.iter().all(is_fit),
        Value::Object(members) => members.values().all(is_fit),
        _ => true,
    };
    if has_fit_items && (is_list_of_words || fits(known.kind, &value)) {
        return Ok(value);
    }
    Err(ValueError::Unfit { key: key.to_owned(), expected: expectation(known.kind) })
}

/// Sets the value at a path of names.
pub fn set_value(file: &SettingsFile, path: &[&str], value: &Value) -> Result<Change, EditError> {
    change(file, |draft| {
        let mut node = Some(&draft.root);
        for name in path {
            node = node.and_then(|node| node.get(name));
        }
        if node.is_some_and(|node| node.to_value() == *value) {
            return Ok(None);
        }
        let changed = draft.with_value_at(path, value);
        changed.map(Some).map_err(|InTheWay { line, key }| file.shape(line, &key, "object"))
    })
}

/// Takes what is at a path of names out of a file. A file that is not there is not made.
pub fn unset(file: &SettingsFile, path: &[&str]) -> Result<Change, EditError> {
    if !file.path().exists() {
        return Ok(Change::AlreadyThere);
    }
    change(file, |draft| {
        let Some((last, above)) = path.split_last() else { return Ok(None) };
        let mut object = &draft.root;
        for name in above {
            match object.get(name) {
                Some(next) if matches!(next.json, Json::Object(_)) => object = next,
                _ => return Ok(None),
            }
        }
        Ok(draft.without_member(object, last))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_read_as_the_key_wants_it() {
        for (key, text, expected) in [
            ("model", "opus", json!("opus")),
            ("model", "\"opus\"", json!("opus")),
            ("model", "4", json!("4")),
            ("sandbox.enabled", "true", json!(true)),
            ("cleanupPeriodDays", "12", json!(12)),
            ("permissions.allow", "Bash(ls *), Read", json!(["Bash(ls *)", "Read"])),
            ("permissions.allow", "[\"Bash(a, b)\"]", json!(["Bash(a, b)"])),
            ("env", "{\"A\": \"b\"}", json!({"A": "b"})),
            ("effortLevel", "high", json!("high")),
        ] {
            assert_eq!(read_setting(key, text), Ok(expected), "{key} {text}");
        }
    }

    #[test]
    fn what_a_key_cannot_have_is_refused_with_what_it_can() {
        for (key, text) in [
            ("sandbox.enabled", "yes"),
            ("cleanupPeriodDays", "0"),
            ("effortLevel", "enormous"),
            ("env", "{\"A\": 1}"),
            ("permissions.allow", "[1]"),
        ] {
            let refused = read_setting(key, text).unwrap_err();
            assert!(matches!(refused, ValueError::Unfit { .. }), "{key} {text}: {refused}");
        }
        let unknown = read_setting("modle", "x").unwrap_err();
        assert_eq!(unknown.to_string(), "there is no setting `modle`; help: `model`");
    }

    #[test]
    fn a_key_is_set_and_taken_out_and_all_else_stays_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("settings.json");
        let before = "{\n\t\"model\": \"opus\",\n  \"sandbox\": { \"enabled\": false }\n}\n";
        std::fs::write(&path, before).unwrap();
        let file = SettingsFile::of_user(path.clone());
        set_value(&file, &["sandbox", "network", "allowLocalBinding"], &json!(true)).unwrap();
        set_value(&file, &["model"], &json!("haiku")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("{\n\t\"model\": \"haiku\",\n"), "{text}");
        assert!(text.contains("\"enabled\": false"), "{text}");
        unset(&file, &["sandbox", "network", "allowLocalBinding"]).unwrap();
        unset(&file, &["effortLevel"]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            !text.contains("allowLocalBinding") && text.contains("\"enabled\": false"),
            "{text}"
        );
        let missing = SettingsFile::of_user(place.path().join("none.json"));
        unset(&missing, &["model"]).unwrap();
        assert!(!missing.path().exists(), "what is not there is not made to say nothing");
    }
}
