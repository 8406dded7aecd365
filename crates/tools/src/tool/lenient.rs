//! Reads numbers and booleans that a model has put into quotes.
//!
//! Small models write `"2"` for 2 and `"true"` for true. The meaning is clear where the schema accepts no text, and
//! quotes are removed only there.

use schemars::JsonSchema;
use serde_json::Value;
use serde_json::value::RawValue;

/// The input of type `T` with quoted numbers and booleans taken out of their quotes; `None` when there are none.
pub(super) fn unquote<T: JsonSchema>(input: &RawValue) -> Option<Value> {
    let mut input = serde_json::from_str(input.get()).ok()?;
    let mut schema = super::schema_of::<T>().to_value();
    super::schema::make_lean(&mut schema);
    unquote_value(&mut input, &schema).then_some(input)
}

/// Removes the quotes in a value; returns whether there were any.
fn unquote_value(value: &mut Value, schema: &Value) -> bool {
    match value {
        Value::String(text) => match meant(text.trim(), schema) {
            Some(unquoted) => {
                *value = unquoted;
                true
            }
            None => false,
        },
        Value::Array(items) => match schema.get("items") {
            // Every item, not only up to the first that was quoted.
            Some(schema) => {
                items.iter_mut().fold(false, |any, item| unquote_value(item, schema) | any)
            }
            None => false,
        },
        Value::Object(fields) => match schema.get("properties") {
            Some(properties) => fields.iter_mut().fold(false, |any, (name, field)| {
                properties.get(name).is_some_and(|schema| unquote_value(field, schema)) | any
            }),
            None => false,
        },
        _ => false,
    }
}

/// The value of a quoted word where the schema wants a number or a boolean.
fn meant(word: &str, schema: &Value) -> Option<Value> {
    match schema.get("type")?.as_str()? {
        "integer" => word.parse().ok().map(|number: i64| number.into()),
        "number" => word.parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
        "boolean" if word.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        "boolean" if word.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::builtin;

    fn takes(tool: &str, input: &Value) -> Result<(), String> {
        let tool = builtin().into_iter().find(|known| known.name() == tool).unwrap();
        let raw = serde_json::value::to_raw_value(input).unwrap();
        tool.prepare(&raw).map(|_| ()).map_err(|error| error.to_string())
    }

    /// Every numeric and boolean property of every tool, found in the schemas themselves.
    #[test]
    fn no_tool_minds_quotes_around_numbers_and_booleans() {
        let mut tried = 0;
        for tool in builtin() {
            let schema: Value = serde_json::from_str(tool.spec().input_schema.get()).unwrap();
            let mut input = json!({});
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let required = schema["required"].as_array().into_iter().flatten();
                input[name] = match property["type"].as_str() {
                    Some("integer") => json!("2"),
                    Some("boolean") => json!("True"),
                    Some("string") if required.clone().any(|required| required == name) => {
                        json!("x")
                    }
                    _ => continue,
                };
                tried += usize::from(property["type"] != "string");
            }
            if ["AskUserQuestion", "TodoWrite"].contains(&tool.name()) {
                continue;
            }
            assert_eq!(takes(tool.name(), &input), Ok(()), "{}: {input}", tool.name());
        }
        assert!(tried >= 16, "only {tried} fields were tried");
    }

    #[test]
    fn quotes_are_taken_off_inside_lists_and_only_where_no_text_is_wanted() {
        let option = json!({ "label": "1", "description": "true" });
        let question = json!({ "question": "2", "header": "3", "options": [option, option],
                               "multiSelect": "false" });
        assert_eq!(takes("AskUserQuestion", &json!({ "questions": [question] })), Ok(()));
        for (tool, input) in [
            ("Read", json!({ "file_path": "/f", "limit": "many" })),
            ("Read", json!({ "file_path": "/f", "limit": "0" })),
            ("Read", json!({ "file_path": "/f", "offset": "-1" })),
            ("Read", json!({ "file_path": "/f", "offset": "" })),
            ("Bash", json!({ "command": "true", "run_in_background": "maybe" })),
            ("Bash", json!({ "command": true })),
        ] {
            let error = takes(tool, &input).unwrap_err();
            assert!(error.starts_with(&format!("{tool} was called with input")), "{error}");
        }
    }
}
