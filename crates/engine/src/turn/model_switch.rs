//! Another model for the main agent: hooks are asked before a person or a host gets it, and told afterwards.

use centurion_hooks::events::{ModelSwitch, PostModelSwitch, PreModelSwitch};
use centurion_hooks::{Event, ToolDecision};
use centurion_model::NameRefused;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::agent::fork_point::CachedPrefix;
use crate::agent::shared::Shared;
use crate::turn::context_usage::context_usage;

/// An exchange of the main agent's model.
pub(crate) struct Switch<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    /// The name that was asked for; `None` for the session's own model.
    pub(crate) requested: Option<&'a str>,
    /// `command`, `sdk` or `auto`.
    pub(crate) source: &'static str,
}

/// The reason that the model stays.
#[derive(Debug, Error)]
pub enum SwitchRefused {
    #[error(transparent)]
    Name(#[from] NameRefused),
    #[error("a hook denied the change of the model: {0}")]
    Denied(String),
    #[error(
        "a hook wants a person to confirm the change of the model, and this session asks none: {0}"
    )]
    Unconfirmed(String),
}

impl Switch<'_> {
    /// Refuses a name that can be no model's.
    pub(crate) fn check_name(&self, shared: &Shared) -> Result<(), SwitchRefused> {
        self.requested.map_or(Ok(()), |name| Ok(shared.model.check_name(name)?))
    }

    /// Asks hooks whether the exchange may be made.
    pub(crate) async fn ask(&self, agent: &Agent, shared: &Shared) -> Result<(), SwitchRefused> {
        if self.from == self.to || !agent.has_hooks(Event::PreModelSwitch) {
            return Ok(());
        }
        let input = PreModelSwitch(self.told(shared));
        let verdict = agent.fire(&input, &CancellationToken::new()).await.verdict;
        let reason = verdict.reason.unwrap_or_else(|| "no reason was given".to_owned());
        match verdict.decision {
            Some(ToolDecision::Deny) => Err(SwitchRefused::Denied(reason)),
            Some(ToolDecision::Ask | ToolDecision::Defer) => {
                Err(SwitchRefused::Unconfirmed(reason))
            }
            Some(ToolDecision::Allow) | None => Ok(()),
        }
    }

    /// Tells hooks of the exchange. The model hears what they add with its next request.
    pub(crate) async fn tell(&self, agent: &Agent, shared: &Shared) {
        if self.from == self.to || !agent.has_hooks(Event::PostModelSwitch) {
            return;
        }
        let input = PostModelSwitch(self.told(shared));
        let fired = agent.fire(&input, &CancellationToken::new()).await;
        for text in fired.context_for_model() {
            shared.add_side_note(None, text);
        }
    }

    fn told(&self, shared: &Shared) -> ModelSwitch<'_> {
        let context_tokens = context_usage(shared).parts.iter().map(|part| part.tokens).sum();
        let info = shared.model.info(self.to);
        let point = shared.main_point();
        ModelSwitch {
            from_model: self.from,
            to_model: self.to,
            requested_model: self.requested,
            source: self.source,
            context_tokens,
            prompt_cache_warm: point
                .and_then(|it| it.cached)
                .is_some_and(|it| CachedPrefix::is_fresh(&it)),
            cache_ttl: "5m",
            estimated_cache_write_usd: context_tokens as f64 * info.prices.cache_write / 1e6,
            pricing: if info.is_estimate { "default" } else { "catalog" },
        }
    }
}
