//! `--permission-prompt-tool mcp__server__tool`: a tool of a server answers questions in a person's place.

use std::time::Duration;

use anyhow::Context;
use centurion_engine::{Answerer, Ask, ElicitFuture, Extensions, ReplyFuture, Unanswered};
use centurion_host::reply;
use centurion_mcp::{CallError, CallOptions, Connection, Elicitation, State, tool_name};
use serde_json::{Map, Value, json};
use thiserror::Error;

/// The reason that the tool gave no answer.
#[derive(Debug, Error)]
enum PromptToolError {
    #[error("the server of {tool} is {state}: {}", state.reason().unwrap_or("it did not answer in time"))]
    Server { tool: String, state: State },
    #[error("there is no tool {0}")]
    Missing(String),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("{tool} failed: {output}")]
    Failed { tool: String, output: String },
    #[error("the answer of {tool} is no JSON: {source}")]
    NoJson { tool: String, source: serde_json::Error },
}

pub(crate) struct ToolAnswerer {
    connection: Connection,
    /// As the model knows it.
    name: String,
    patience: Duration,
}

impl ToolAnswerer {
    /// Finds the server whose tool it is. Whether it has such a tool is known once it is connected.
    pub(crate) fn find(name: &str, extensions: &Extensions) -> anyhow::Result<Self> {
        let is_its = |connection: &&Connection| name.starts_with(&tool_name(connection.name(), ""));
        let connection = extensions.servers.iter().find(is_its).cloned().with_context(|| {
            format!(
                "--permission-prompt-tool {name}: there is no server with this tool\n\
                     help: `centurion mcp list` shows the servers"
            )
        })?;
        let patience = extensions.server_patience.asked_for.max(Duration::from_secs(5));
        Ok(Self { connection, name: name.to_owned(), patience })
    }

    async fn ask(&self, ask: Ask) -> Result<Value, PromptToolError> {
        let state = self.connection.ready(self.patience).await;
        if state != State::Connected {
            return Err(PromptToolError::Server { tool: self.name.clone(), state });
        }
        let tool = self.connection.tool_infos().into_iter().find(|tool| tool.name == self.name);
        let tool = tool.ok_or_else(|| PromptToolError::Missing(self.name.clone()))?.tool;
        let input: Value = serde_json::from_str(ask.input.get()).unwrap_or_default();
        let arguments = json!({"tool_name": ask.tool, "input": input, "tool_use_id": ask.call});
        let arguments = arguments.as_object().cloned().unwrap_or_else(Map::new);
        let output = self.connection.call(&tool, arguments, &CallOptions::default()).await?;
        let (tool, output_text) = (self.name.clone(), output.text());
        if output.is_error {
            return Err(PromptToolError::Failed { tool, output: output_text });
        }
        serde_json::from_str(&output_text)
            .map_err(|source| PromptToolError::NoJson { tool, source })
    }
}

impl Answerer for ToolAnswerer {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let answer = self.ask(ask).await;
            answer
                .map(|answer| reply(&answer))
                .map_err(|error| Unanswered::by_host(error.to_string()))
        })
    }

    /// Such a tool answers about calls, and about nothing else.
    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        Box::pin(std::future::ready(Err(Unanswered::because(format!(
            "{} cannot be asked",
            self.name
        )))))
    }
}
