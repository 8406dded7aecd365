//! The definition of a tool as models read it.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json_line;

/// One tool: its name, what it is for, and the JSON Schema of its input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub input_schema: Box<RawValue>,
}

/// The tools of one agent, rendered once and shared by all its requests.
#[derive(Clone, Debug)]
pub struct ToolSpecs {
    specs: Arc<[ToolSpec]>,
    wire: Bytes,
}

impl ToolSpecs {
    pub fn new(specs: Vec<ToolSpec>) -> Self {
        let wire = serde_json::to_vec(&specs).unwrap_or_else(|_| b"[]".to_vec());
        // As a transcript has them: a fork of a later process sends the same bytes.
        let wire = json_line::escape(&wire).into_owned();
        Self { specs: specs.into(), wire: wire.into() }
    }

    /// Tools that the provider carries out itself, in the words of its own interface.
    pub fn of_provider(definitions: &[Value]) -> Self {
        let wire = serde_json::to_vec(definitions).unwrap_or_else(|_| b"[]".to_vec());
        Self { specs: Arc::default(), wire: json_line::escape(&wire).into_owned().into() }
    }

    /// Tools that were rendered before, with the same bytes.
    pub fn from_wire(wire: &str) -> Result<Self, serde_json::Error> {
        let specs: Vec<ToolSpec> = serde_json::from_str(wire)?;
        Ok(Self { specs: specs.into(), wire: Bytes::copy_from_slice(wire.as_bytes()) })
    }

    pub fn iter(&self) -> impl Iterator<Item = &ToolSpec> {
        self.specs.iter()
    }

    /// Whether nothing is offered, not even by the provider.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty() && *self.wire == *b"[]"
    }

    /// The JSON array in the Messages API's form.
    pub fn wire(&self) -> &Bytes {
        &self.wire
    }
}
