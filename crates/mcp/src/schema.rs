//! Converts the input schema of a foreign tool into the form that models accept: one object at the root.

use serde_json::{Map, Value, json};
use thiserror::Error;

type Object = Map<String, Value>;

/// The reason that a schema cannot be converted.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum SchemaError {
    #[error("its `{0}` is no list")]
    NoList(String),
    #[error("its `{key}` cannot be made one object: {source}")]
    Union { key: String, source: BranchError },
    #[error("its input is {0} and not an object")]
    NoObject(String),
}

/// The reason that a branch of a union is no object.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum BranchError {
    #[error("it refers to itself")]
    Circle,
    #[error("a branch is no schema")]
    NoSchema,
    #[error("{0} is not defined in it")]
    Undefined(String),
    #[error("a branch is not an object")]
    NoObject,
}

/// Converts a schema.
pub(crate) fn to_object_schema(mut schema: Object) -> Result<Value, SchemaError> {
    let unions: Vec<(String, Value)> = ["$ref", "allOf", "anyOf", "oneOf"]
        .iter()
        .filter_map(|key| schema.shift_remove(*key).map(|union| ((*key).to_owned(), union)))
        .collect();
    let definitions = definitions(&schema);
    for (key, union) in unions {
        let branches = match union {
            Value::Array(branches) => branches,
            // A reference at the root is a union of one.
            Value::String(_) => vec![json!({ key.as_str(): union })],
            _ => return Err(SchemaError::NoList(key)),
        };
        let branches: Vec<Object> = branches
            .iter()
            .map(|branch| object_branch(branch, &definitions, 0))
            .collect::<Result<_, _>>()
            .map_err(|source| SchemaError::Union { key: key.clone(), source })?;
        let is_choice = key == "anyOf" || key == "oneOf";
        merge(&mut schema, &branches, is_choice);
    }
    match schema.get("type") {
        None => {
            schema.insert("type".to_owned(), json!("object"));
        }
        Some(kind) if kind == "object" => {}
        Some(other) => return Err(SchemaError::NoObject(other.to_string())),
    }
    if !schema.contains_key("properties") {
        schema.insert("properties".to_owned(), json!({}));
    }
    Ok(Value::Object(schema))
}

/// The parts that references may name.
fn definitions(schema: &Object) -> Object {
    let parts = ["$defs", "definitions"]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), schema.get(key)?.clone())));
    parts.collect()
}

/// One branch of a union as an object schema, with its own unions resolved.
fn object_branch(
    branch: &Value,
    definitions: &Object,
    depth: usize,
) -> Result<Object, BranchError> {
    // Definitions may name each other in a circle.
    const DEEPEST: usize = 16;
    if depth > DEEPEST {
        return Err(BranchError::Circle);
    }
    let Some(mut branch) = branch.as_object().cloned() else {
        return Err(BranchError::NoSchema);
    };
    if let Some(Value::String(reference)) = branch.shift_remove("$ref") {
        let target = reference
            .strip_prefix("#/")
            .and_then(|path| {
                path.split('/').try_fold(None, |found: Option<&Value>, part| {
                    let next = match found {
                        None => definitions.get(part),
                        Some(value) => value.get(part),
                    };
                    next.map(Some)
                })
            })
            .flatten()
            .ok_or(BranchError::Undefined(reference))?;
        let target = object_branch(target, definitions, depth + 1)?;
        merge(&mut branch, &[target], false);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(Value::Array(inner)) = branch.shift_remove(key) {
            let inner: Vec<Object> = inner
                .iter()
                .map(|inner| object_branch(inner, definitions, depth + 1))
                .collect::<Result<_, _>>()?;
            merge(&mut branch, &inner, key != "allOf");
        }
    }
    let is_object = match branch.get("type") {
        Some(kind) => kind == "object",
        None => branch.contains_key("properties") || branch.contains_key("required"),
    };
    if is_object { Ok(branch) } else { Err(BranchError::NoObject) }
}

/// Adds the properties of all branches. A property stays required only if every branch requires it.
fn merge(schema: &mut Object, branches: &[Object], is_choice: bool) {
    let mut properties = take_object(schema, "properties");
    for (name, property) in branches.iter().flat_map(branch_properties) {
        match properties.get_mut(name) {
            None => {
                properties.insert(name.clone(), property.clone());
            }
            Some(known) if known == property => {}
            Some(known) => *known = either(known, property),
        }
    }
    let mut required: Vec<Value> = match schema.shift_remove("required") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    for name in branches.iter().flat_map(required_names) {
        let always = !is_choice
            || branches.iter().all(|branch| required_names(branch).any(|own| own == name));
        if always && !required.contains(name) {
            required.push(name.clone());
        }
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
}

/// A property that may match one branch or the other.
fn either(known: &Value, other: &Value) -> Value {
    let mut choices = match known.get("anyOf") {
        Some(Value::Array(choices)) if known.as_object().is_some_and(|known| known.len() == 1) => {
            choices.clone()
        }
        _ => vec![known.clone()],
    };
    if !choices.contains(other) {
        choices.push(other.clone());
    }
    json!({ "anyOf": choices })
}

fn take_object(schema: &mut Object, key: &str) -> Object {
    match schema.shift_remove(key) {
        Some(Value::Object(object)) => object,
        _ => Object::new(),
    }
}

fn branch_properties(branch: &Object) -> impl Iterator<Item = (&String, &Value)> {
    branch.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn required_names(branch: &Object) -> impl Iterator<Item = &Value> {
    branch.get("required").and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(schema: Value) -> Result<Value, SchemaError> {
        let Value::Object(schema) = schema else { panic!("a schema is an object") };
        to_object_schema(schema)
    }

    #[test]
    fn a_plain_schema_stays_as_it_is() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": { "a": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/n" }] } },
            "$defs": { "n": { "type": "number" } },
            "additionalProperties": false,
        });
        assert_eq!(flat(schema.clone()).unwrap().to_string(), schema.to_string());
    }

    #[test]
    fn a_choice_requires_what_every_branch_requires() {
        let schema = json!({
            "type": "object",
            "required": ["id"],
            "properties": { "id": { "type": "string" } },
            "oneOf": [
                { "properties": { "kind": { "const": "a" }, "x": { "type": "number" } }, "required": ["kind", "x"] },
                { "properties": { "kind": { "const": "b" } }, "required": ["kind"] },
            ],
        });
        assert_eq!(
            flat(schema).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "id": { "type": "string" },
                    "kind": { "anyOf": [{ "const": "a" }, { "const": "b" }] },
                    "x": { "type": "number" },
                },
                "required": ["id", "kind"],
            })
        );
    }

    #[test]
    fn all_of_is_everything_together_and_references_are_followed() {
        let schema = json!({
            "allOf": [
                { "$ref": "#/$defs/base" },
                { "type": "object", "properties": { "b": { "type": "string" } }, "required": ["b"] },
            ],
            "$defs": { "base": { "type": "object", "properties": { "a": {} }, "required": ["a"] } },
        });
        let flat = flat(schema).unwrap();
        assert_eq!(flat["required"], json!(["a", "b"]));
        assert_eq!(flat["type"], "object");
        assert_eq!(flat["properties"], json!({ "a": {}, "b": { "type": "string" } }));
    }

    #[test]
    fn what_is_no_object_is_refused_with_a_reason() {
        for (schema, reason) in [
            (json!({ "anyOf": [{ "type": "string" }] }), "not an object"),
            (json!({ "type": "array" }), "\"array\""),
            (json!({ "$ref": "#/$defs/none" }), "not defined"),
            (json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/a" } } }), "itself"),
        ] {
            let error = flat(schema).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
