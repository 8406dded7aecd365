//! The definition of a tool.
//!
//! The doc comment of the input type is the description that a model reads, and the schema comes from the type itself:
//! a tool cannot say one thing and accept another.

mod lenient;
mod schema;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use centurion_permissions::Access;
use centurion_protocol::{ToolResultContent, ToolSpec};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

use crate::ToolContext;

/// A built-in tool with a typed input.
pub trait Tool: Send + Sync + 'static {
    /// The doc comment of this type is the tool's description.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    const NAME: &'static str;

    /// Fields that the tool accepts but does not offer to the model; `list.field` is one of the objects in a list.
    fn withheld(&self) -> &[&'static str] {
        &[]
    }

    /// Returns the description, given the doc comment.
    fn describe(&self, usual: String) -> String {
        usual
    }

    /// Whether this call changes nothing, so that it may run in parallel with others.
    fn is_read_only(&self, input: &Self::Input) -> bool;

    /// The access that the call needs.
    fn access(&self, input: &Self::Input, context: &ToolContext) -> Access;

    fn run(
        &self,
        input: Self::Input,
        context: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// The result of a call: content for the model, and the same as data for hosts and transcripts.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    pub content: Vec<ToolResultContent>,
    /// `toolUseResult` in transcripts, `tool_use_result` on the wire to hosts.
    pub data: Value,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { data: Value::String(text.clone()), content: vec![ToolResultContent::Text(text)] }
    }

    /// Its texts, joined.
    pub fn as_text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            ToolResultContent::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    pub fn with_data(self, data: Value) -> Self {
        Self { data, ..self }
    }
}

/// A failed call. The message is for the model: what failed, why, and what to do instead.
#[derive(Debug, Error)]
pub enum ToolError {
    /// The input does not fit the tool.
    #[error("{0}")]
    Input(String),
    /// The tool ran and failed.
    #[error("{0}")]
    Failed(String),
    /// The same, with the structured form that hosts read.
    #[error("{message}")]
    FailedWith { message: String, data: Value },
    /// The call was cancelled while it ran. `partial` is its result until then.
    #[error("the call was cancelled before it finished")]
    Cancelled { partial: Option<String> },
}

impl ToolError {
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

pub type RunFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// A tool without its input type, so that tools fit in one list.
pub trait DynTool: Send + Sync {
    fn name(&self) -> &str;

    /// The tool as it is offered to a model.
    fn spec(&self) -> ToolSpec;

    /// Parses the input once; the prepared call answers everything else.
    fn prepare(&self, input: &RawValue) -> Result<Box<dyn PreparedCall>, ToolError>;
}

/// A call with a parsed and valid input.
pub trait PreparedCall: Send + Sync {
    /// Whether the call changes nothing, so that it may run in parallel with others.
    fn is_read_only(&self) -> bool;

    /// The access that the call needs.
    fn access(&self, context: &ToolContext) -> Access;

    fn run(self: Box<Self>, context: &ToolContext) -> RunFuture<'_>;
}

/// Makes a [`DynTool`] of a typed one.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn DynTool> {
    Arc::new(Erased(Arc::new(tool)))
}

struct Erased<T>(Arc<T>);

struct Call<T: Tool> {
    tool: Arc<T>,
    input: T::Input,
}

impl<T: Tool> DynTool for Erased<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn spec(&self) -> ToolSpec {
        let mut schema = schema_of::<T::Input>();
        let description = match schema.remove("description") {
            Some(Value::String(text)) => schema::flow(&text),
            _ => String::new(),
        };
        let mut schema = schema.to_value();
        schema::make_lean(&mut schema);
        for path in self.0.withheld() {
            schema::withhold(&mut schema, path);
        }
        let input_schema = serde_json::value::to_raw_value(&schema).unwrap_or_default();
        let description = self.0.describe(description);
        ToolSpec { name: T::NAME.to_owned(), description, input_schema }
    }

    fn prepare(&self, input: &RawValue) -> Result<Box<dyn PreparedCall>, ToolError> {
        let read = serde_json::from_str(input.get());
        let input = read.or_else(|error| match lenient::unquote::<T::Input>(input) {
            // Read from text again: a second way of reading would stand in the program for each type.
            Some(input) => serde_json::from_str(&input.to_string()),
            None => Err(error),
        });
        let input = input.map_err(|error| {
            ToolError::Input(format!("{} was called with input it cannot read: {error}", T::NAME))
        })?;
        Ok(Box::new(Call { tool: Arc::clone(&self.0), input }))
    }
}

/// The schema of a type, with all definitions inlined.
fn schema_of<T: JsonSchema>() -> schemars::Schema {
    T::json_schema(&mut inlining_generator())
}

fn inlining_generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    settings.into_generator()
}

impl<T: Tool> PreparedCall for Call<T> {
    fn is_read_only(&self) -> bool {
        self.tool.is_read_only(&self.input)
    }

    fn access(&self, context: &ToolContext) -> Access {
        self.tool.access(&self.input, context)
    }

    fn run(self: Box<Self>, context: &ToolContext) -> RunFuture<'_> {
        Box::pin(async move { self.tool.run(self.input, context).await })
    }
}
