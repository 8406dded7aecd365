//! Questions to the program that calls, which puts them to the person who uses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use centurion_engine::{Answerer, Ask, ElicitFuture, Reply, ReplyFuture, Unanswered};
use centurion_mcp::{Elicitation, ElicitationAnswer, ElicitationKind};
use rmcp::RoleServer;
use rmcp::model::{ElicitRequestParams, ElicitationAction, ElicitationSchema};
use rmcp::service::Peer;
use serde_json::Value;

use super::tasks::{LongCall, QuestionError};

/// The most characters of an input in a question.
const SHOWN: usize = 2_000;

/// The program that calls, and the way to ask it.
pub(super) enum Client {
    /// A request of its own.
    Direct(Peer<RoleServer>),
    /// The client sees the question when it looks at the task.
    Task(Arc<LongCall>),
}

impl Client {
    /// Asks the client. Returns the filled-in form, or the reason that there is none. Dropping the future withdraws the question.
    async fn ask(
        &self,
        message: String,
        requested_schema: ElicitationSchema,
    ) -> Result<Value, (ElicitationAnswer, String)> {
        let question =
            ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        let answer = match self {
            Self::Direct(peer) => {
                peer.create_elicitation(question).await.map_err(QuestionError::from)
            }
            Self::Task(call) => call.ask(question).await,
        };
        match answer {
            Ok(answer) => match answer.action {
                ElicitationAction::Accept => Ok(answer.content.unwrap_or_default()),
                ElicitationAction::Decline => {
                    Err((ElicitationAnswer::Decline, "the person who was asked said no".to_owned()))
                }
                _ => Err((ElicitationAnswer::Cancel, "the question was not answered".to_owned())),
            },
            Err(error) => {
                Err((ElicitationAnswer::Cancel, format!("the question could not be put: {error}")))
            }
        }
    }
}

impl Answerer for Client {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let input = ask.input.get();
            let shown = &input[..input.floor_char_boundary(SHOWN)];
            let more = if shown.len() < input.len() { "…" } else { "" };
            let message = format!("May {} run? {}.\n{shown}{more}", ask.tool, ask.reason.text);
            // To accept is to say yes: there is nothing to fill in.
            match self.ask(message, ElicitationSchema::new(BTreeMap::new())).await {
                Ok(_) => Ok(Reply::Allowed { input: None, remember: Vec::new() }),
                Err((ElicitationAnswer::Cancel, why)) => {
                    Err(Unanswered::because(format!("{}, and {why}", ask.reason.text)))
                }
                Err((_, why)) => {
                    let reason = format!("{}, and {why}", ask.reason.text);
                    Ok(Reply::Denied { reason, interrupt: false })
                }
            }
        })
    }

    /// Passes on the question of a server that one of our agents uses. Pages to visit are not passed on.
    fn elicit(&self, question: Elicitation) -> ElicitFuture<'_> {
        Box::pin(async move {
            let ElicitationKind::Form { schema } = question.kind else {
                return Err(Unanswered::because("pages to visit are not passed on"));
            };
            let Ok(schema) = serde_json::from_value(schema) else {
                return Err(Unanswered::because("the form cannot be passed on"));
            };
            let message = format!("The MCP server {} asks: {}", question.server, question.message);
            Ok(match self.ask(message, schema).await {
                Ok(Value::Object(content)) => ElicitationAnswer::Accept(content),
                Ok(_) => ElicitationAnswer::Accept(serde_json::Map::new()),
                Err((answer, _)) => answer,
            })
        })
    }
}
