//! Makes generated schemas fit for models: removes parts that cost tokens and tell nothing.

use serde_json::{Map, Value};

/// Removes that an optional property may be null, the width of a number in memory, and the line breaks of source code.
pub(super) fn make_lean(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    unwrap_optional(object);
    object.retain(|keyword, value| match keyword.as_str() {
        "format" => !value.as_str().is_some_and(is_number_width),
        "minimum" => value.as_f64() != Some(0.0),
        "default" => !value.is_null(),
        _ => true,
    });
    for (keyword, value) in object.iter_mut() {
        match (keyword.as_str(), value) {
            ("description", Value::String(text)) => *text = flow(text),
            ("enum", Value::Array(values)) => values.retain(|value| !value.is_null()),
            ("type", value) => drop_null_type(value),
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(make_lean);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(make_lean);
            }
            ("items" | "additionalProperties", schema) => make_lean(schema),
            _ => {}
        }
    }
}

/// Removes a property; `list.field` is a property of the objects in a list.
pub(super) fn withhold(schema: &mut Value, path: &str) {
    let (name, inner) = match path.split_once('.') {
        Some((name, inner)) => (name, Some(inner)),
        None => (path, None),
    };
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    match inner {
        None => drop(properties.remove(name)),
        Some(inner) => {
            if let Some(items) = properties.get_mut(name).and_then(|list| list.get_mut("items")) {
                withhold(items, inner);
            }
        }
    }
}

/// Source text as one flow: a single line break becomes a space, an empty line or a list stays.
pub(super) fn flow(text: &str) -> String {
    let mut flowed = String::with_capacity(text.len());
    for line in text.lines().map(str::trim_end) {
        let joins = !(line.is_empty() || line.starts_with("- ") || flowed.ends_with('\n'));
        if !flowed.is_empty() {
            flowed.push(if joins { ' ' } else { '\n' });
        }
        flowed.push_str(line);
    }
    flowed
}

/// Replaces `anyOf: [X, null]` by X with the description beside it.
fn unwrap_optional(object: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = object.get_mut("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    if let [Value::Object(only)] = choices.as_mut_slice() {
        let only = std::mem::take(only);
        object.shift_remove("anyOf");
        for (keyword, value) in only {
            object.entry(keyword).or_insert(value);
        }
    }
}

fn drop_null_type(kind: &mut Value) {
    if let Value::Array(kinds) = kind {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_mut_slice() {
            *kind = only.take();
        }
    }
}

fn is_number_width(format: &str) -> bool {
    let digits = format.trim_start_matches('u').trim_start_matches("int");
    matches!(format, "float" | "double")
        || (digits.len() < format.len() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;
    use crate::{DynTool, erase};

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Kind {
        One,
        Two,
    }

    /// What it is for,
    /// in two lines.
    ///
    /// - a list
    /// - stays
    #[derive(JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Input {
        /// How
        /// many.
        count: Option<u32>,
        /// Which.
        kind: Option<Kind>,
        format: String,
        #[serde(default)]
        deep: Vec<Option<i64>>,
    }

    #[test]
    fn a_schema_says_what_a_model_needs_and_no_more() {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<Input>().to_value();
        make_lean(&mut schema);
        assert_eq!(
            schema,
            json!({
                "title": "Input",
                "description": "What it is for, in two lines.\n\n- a list\n- stays",
                "type": "object",
                "properties": {
                    "count": {"description": "How many.", "type": "integer"},
                    "kind": {"description": "Which.", "type": "string", "enum": ["One", "Two"]},
                    "format": {"type": "string"},
                    "deep": {"type": "array", "items": {"type": "integer"}, "default": []},
                },
                "additionalProperties": false,
                "required": ["format"],
            })
        );
    }

    /// The properties of a tool, optional ones with a question mark, as in `name?`.
    fn properties(tool: &dyn DynTool) -> String {
        let schema: Value = serde_json::from_str(tool.spec().input_schema.get()).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        let required: Vec<&str> =
            schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let names = schema["properties"].as_object().unwrap().keys().map(|name| {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            format!("{name}{mark}")
        });
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn file_tools_take_the_properties_that_clients_send() {
        for (tool, expected) in [
            (erase(crate::Read), "file_path offset? limit? pages? allow_large?"),
            (erase(crate::Write), "file_path content"),
            (erase(crate::Edit), "file_path old_string new_string replace_all?"),
            (erase(crate::NotebookEdit), "notebook_path cell_id? new_source cell_type? edit_mode?"),
            (erase(crate::Glob), "pattern path?"),
            (
                erase(crate::Grep),
                "pattern path? glob? output_mode? -B? -A? -C? context? -n? -i? -o? type? head_limit? \
                 offset? multiline?",
            ),
        ] {
            assert_eq!(properties(&*tool), expected);
            let spec = tool.spec();
            assert!(spec.description.len() <= 600, "{}", spec.description);
            assert!(!spec.input_schema.get().contains("null"), "{}", spec.input_schema);
        }
    }
}
