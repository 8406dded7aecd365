//! `--json-schema`: the answer as data of a given shape, enforced.
//!
//! The model hands its answer over through a tool whose input schema is the one asked for. What does not
//! fit comes back to it as an error; what fits is the run's structured output.

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_protocol::ToolSpec;
use centurion_tools::{DynTool, PreparedCall, RunFuture, ToolContext, ToolError, ToolOutput};
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

/// The name under which the model hands its answer over.
pub(crate) const STRUCTURED_OUTPUT: &str = "StructuredOutput";

/// The reminder for a model that ends without handing over its output.
pub(crate) const REMINDER: &str = "The answer must be handed over as data: call StructuredOutput with an input \
     that fits its schema. Do that now.";

#[derive(Debug, Error)]
pub enum SchemaError {
    #[error("the schema is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the schema must be a JSON object with \"type\": \"object\"")]
    NotAnObject,
    #[error("the schema is not valid: {0}")]
    Invalid(#[source] Box<jsonschema::ValidationError<'static>>),
}

/// The required shape, and the output once it is there.
#[derive(Clone)]
pub struct StructuredOutput(Arc<Inner>);

struct Inner {
    schema: Box<RawValue>,
    validator: jsonschema::Validator,
    output: Mutex<Option<Value>>,
}

impl StructuredOutput {
    /// Reads a JSON Schema. An invalid one is an error now, not at the end of the run.
    pub fn parse(schema: &str) -> Result<Self, SchemaError> {
        let value: Value = serde_json::from_str(schema)?;
        if value.get("type").and_then(Value::as_str) != Some("object") {
            return Err(SchemaError::NotAnObject);
        }
        let validator = jsonschema::validator_for(&value)
            .map_err(|error| SchemaError::Invalid(Box::new(error.to_owned())))?;
        let schema = serde_json::value::to_raw_value(&value)?;
        Ok(Self(Arc::new(Inner { schema, validator, output: Mutex::new(None) })))
    }

    /// The output of the run, taken out.
    pub fn take(&self) -> Option<Value> {
        self.0.output.lock().take()
    }

    pub fn is_there(&self) -> bool {
        self.0.output.lock().is_some()
    }

    fn check(&self, value: &Value) -> Result<(), ToolError> {
        let faults: Vec<String> = self
            .0
            .validator
            .iter_errors(value)
            .take(10)
            .map(|error| format!("- at `{}`: {error}", error.instance_path()))
            .collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(ToolError::Input(format!(
            "the input does not fit the schema; correct it and call {STRUCTURED_OUTPUT} again:\n{}",
            faults.join("\n")
        )))
    }
}

impl DynTool for StructuredOutput {
    fn name(&self) -> &'static str {
        STRUCTURED_OUTPUT
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: STRUCTURED_OUTPUT.to_owned(),
            description:
                "Hands over the final answer. Call it exactly once, when the work is done."
                    .to_owned(),
            input_schema: self.0.schema.clone(),
        }
    }

    fn prepare(&self, input: &RawValue) -> Result<Box<dyn PreparedCall>, ToolError> {
        let value = serde_json::from_str(input.get())
            .map_err(|error| ToolError::Input(error.to_string()))?;
        self.check(&value)?;
        Ok(Box::new(HandOver { target: self.clone(), value }))
    }
}

struct HandOver {
    target: StructuredOutput,
    value: Value,
}

impl PreparedCall for HandOver {
    fn is_read_only(&self) -> bool {
        false
    }

    fn access(&self, _: &ToolContext) -> Access {
        Access::Session
    }

    fn run(self: Box<Self>, _: &ToolContext) -> RunFuture<'_> {
        *self.target.0.output.lock() = Some(self.value);
        Box::pin(std::future::ready(Ok(ToolOutput::text("The answer has been handed over."))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str =
        r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_bad_schema_is_refused_before_the_run() {
        assert!(matches!(StructuredOutput::parse("{"), Err(SchemaError::Json(_))));
        assert!(matches!(
            StructuredOutput::parse(r#"{"type":"array"}"#),
            Err(SchemaError::NotAnObject)
        ));
        let bad = r#"{"type":"object","properties":{"n":{"type":"wat"}}}"#;
        assert!(matches!(StructuredOutput::parse(bad), Err(SchemaError::Invalid(_))));
    }

    #[test]
    fn what_does_not_fit_goes_back_with_the_place_and_the_reason() {
        let output = StructuredOutput::parse(SCHEMA).unwrap();
        let Err(ToolError::Input(message)) = output.prepare(&raw(r#"{"n":"x"}"#)) else { panic!() };
        assert!(message.contains("/n"), "{message}");
        assert!(output.prepare(&raw(r#"{"n":3}"#)).is_ok());
    }
}
