//! The main agent's model is exchanged for another one.

use serde::Serialize;

use super::tools::decide;
use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::output::ToolDecision;
use crate::reply::Reply;

/// An exchange of models, with what it costs to send the conversation to the new one.
#[derive(Clone, Debug, Serialize)]
pub struct ModelSwitch<'a> {
    /// The full name of the model until now.
    pub from_model: &'a str,
    pub to_model: &'a str,
    /// The name that was asked for; `None` for the session's own model.
    pub requested_model: Option<&'a str>,
    /// `command`, `picker` or `sdk`; after an exchange also `auto` or `resume`.
    pub source: &'a str,
    /// The tokens that the next request sends again.
    pub context_tokens: u64,
    /// Whether the provider is likely to have the conversation in its cache for the present model.
    pub prompt_cache_warm: bool,
    /// `5m` or `1h`.
    pub cache_ttl: &'a str,
    /// The cost of writing the conversation to the new model's cache, without the answer.
    pub estimated_cache_write_usd: f64,
    /// `catalog` for the provider's list of prices, `default` for a guess.
    pub pricing: &'a str,
}

/// A person or a host wants another model.
#[derive(Clone, Debug, Serialize)]
pub struct PreModelSwitch<'a>(pub ModelSwitch<'a>);

/// The verdict of hooks about an exchange of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelSwitchVerdict {
    pub decision: Option<ToolDecision>,
    pub reason: Option<String>,
}

impl EventInput for PreModelSwitch<'_> {
    const EVENT: Event = Event::PreModelSwitch;
    type Verdict = ModelSwitchVerdict;

    fn subject(&self) -> Option<&str> {
        Some(self.0.source)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> ModelSwitchVerdict {
        let (decision, reason) = decide(replies);
        ModelSwitchVerdict { decision, reason }
    }
}

/// The model is another one now.
#[derive(Clone, Debug, Serialize)]
pub struct PostModelSwitch<'a>(pub ModelSwitch<'a>);

impl EventInput for PostModelSwitch<'_> {
    const EVENT: Event = Event::PostModelSwitch;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.0.source)
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}
