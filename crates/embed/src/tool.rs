//! Tools of the embedding program.

use std::fmt;
use std::sync::Arc;

use centurion_permissions::Access;
use centurion_tools::{
    DynTool, Tool as EngineTool, ToolContext, ToolError as EngineError, ToolOutput as EngineOutput,
    erase,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A tool that the model can call: a struct with the fields of its input. `#[derive(Tool)]` makes it.
///
/// The derive writes the schema from the fields and their doc comments, refuses fields that there are not, and calls
/// the struct's own `async fn run`, which returns `Result<T, ToolError>` for a `T` that becomes a [`ToolOutput`].
/// A type of a field implements `serde::Deserialize` and `schemars::JsonSchema`; attributes of both on fields count.
///
/// | attribute | means |
/// |---|---|
/// | `#[tool(name = "Add")]` | the name of the tool; that of the struct otherwise |
/// | `#[tool(read_only)]` | it changes nothing: calls may run side by side, and in plan mode |
/// | `#[tool(state = Type)]` | `run` gets a second argument, `&Type`: see [`SessionBuilder::tool_with`](crate::SessionBuilder::tool_with) |
pub trait Tool: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The value that all calls of the tool share.
    type State: Send + Sync + 'static;

    /// The name that the model, rules and hooks know the tool by.
    const NAME: &'static str;

    /// True if no call changes anything.
    const READ_ONLY: bool = false;

    /// Carries out one call. Dropping the future cancels it.
    fn call(
        self,
        state: &Self::State,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    text: String,
    data: Option<Value>,
}

impl ToolOutput {
    /// A text for the model.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), data: None }
    }

    /// Keeps data beside the text: in the transcript, and for hooks.
    pub fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// A failed call. The model reads the message: what failed, why, and what to do instead.
///
/// Every error becomes one with `?`, so it is no error itself.
pub struct ToolError(String);

impl ToolError {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ToolError").field(&self.0).finish()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The tool as the engine knows it.
pub(crate) fn engine_tool<T: Tool>(state: T::State) -> Arc<dyn DynTool> {
    erase(Adapter::<T> { state })
}

struct Adapter<T: Tool> {
    state: T::State,
}

impl<T: Tool> EngineTool for Adapter<T> {
    type Input = T;

    const NAME: &'static str = T::NAME;

    fn is_read_only(&self, _: &T) -> bool {
        T::READ_ONLY
    }

    fn access(&self, _: &T, _: &ToolContext) -> Access {
        Access::External { only_reads: T::READ_ONLY }
    }

    async fn run(&self, input: T, context: &ToolContext) -> Result<EngineOutput, EngineError> {
        let called = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(EngineError::Cancelled { partial: None }),
            called = input.call(&self.state) => called,
        };
        let ToolOutput { text, data } = called.map_err(|error| EngineError::Failed(error.0))?;
        let output = EngineOutput::text(text);
        Ok(match data {
            Some(data) => output.with_data(data),
            None => output,
        })
    }
}
