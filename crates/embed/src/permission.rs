//! Permissions: modes, and the questions that the program answers.

use std::pin::Pin;
use std::sync::Arc;

use centurion_engine::{
    Answerer, Ask, ElicitFuture, Elicitation, Reply as EngineReply, ReplyFuture, Unanswered,
};
use centurion_permissions::Mode as EngineMode;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The calls that run without a question. Rules come first: a call that a rule denies never runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Reading in the directory of the session runs, everything else asks.
    #[default]
    Default,
    /// Edits of files in the directory of the session run, too.
    AcceptEdits,
    /// Nothing is changed.
    Plan,
    /// A call that would ask is denied.
    DontAsk,
    /// Every call runs that no rule denies or asks about.
    BypassPermissions,
}

impl Mode {
    pub(crate) fn engine(self) -> EngineMode {
        match self {
            Self::Default => EngineMode::Default,
            Self::AcceptEdits => EngineMode::AcceptEdits,
            Self::Plan => EngineMode::Plan,
            Self::DontAsk => EngineMode::DontAsk,
            Self::BypassPermissions => EngineMode::BypassPermissions,
        }
    }
}

/// A question: may this call run?
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PermissionAsk {
    /// The name of the tool.
    pub tool: String,
    /// The input of the call.
    pub input: Value,
    /// The reason that it is asked about.
    pub reason: String,
    /// The name or type of the agent that calls; `None` for the main agent.
    pub agent: Option<String>,
}

/// The answer to a [`PermissionAsk`].
#[derive(Clone, Debug)]
pub struct PermissionReply(Verdict);

#[derive(Clone, Debug)]
enum Verdict {
    Allow(Option<Value>),
    Deny(String),
}

impl PermissionReply {
    /// The call runs.
    pub fn allow() -> Self {
        Self(Verdict::Allow(None))
    }

    /// The call runs with another input, which is judged again.
    pub fn allow_with(input: Value) -> Self {
        Self(Verdict::Allow(Some(input)))
    }

    /// The call does not run. The model reads the reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self(Verdict::Deny(reason.into()))
    }
}

pub(crate) type AskFuture = Pin<Box<dyn Future<Output = PermissionReply> + Send>>;

/// The callback of the program.
pub(crate) type AskCallback = Arc<dyn Fn(PermissionAsk) -> AskFuture + Send + Sync>;

/// Puts the questions of a session to the callback.
pub(crate) struct CallbackAnswerer(pub(crate) AskCallback);

impl Answerer for CallbackAnswerer {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let input = serde_json::from_str(ask.input.get()).map_err(|error| {
                Unanswered::because(format!("the input cannot be read: {error}"))
            })?;
            let asked = PermissionAsk {
                tool: ask.tool,
                input,
                reason: ask.reason.text,
                agent: ask.agent.map(|agent| agent.name),
            };
            let PermissionReply(verdict) = (self.0)(asked).await;
            Ok(match verdict {
                Verdict::Allow(input) => {
                    let input = input.map(|input| raw(&input)).transpose()?;
                    EngineReply::Allowed { input, remember: Vec::new() }
                }
                Verdict::Deny(reason) => EngineReply::Denied { reason, interrupt: false },
            })
        })
    }

    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        let reason = "the program answers no questions of servers".to_owned();
        Box::pin(std::future::ready(Err(Unanswered::because(reason))))
    }
}

fn raw(input: &Value) -> Result<Box<RawValue>, Unanswered> {
    to_raw_value(input)
        .map_err(|error| Unanswered::because(format!("the input cannot be used: {error}")))
}
