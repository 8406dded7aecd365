//! The one decision about background work: does the parent wait for an agent that it starts?

use centurion_config::agents::AgentDefinition;

use super::{Decided, Provenance};
use crate::definition::rules::{DelegationRules, SessionMode};

/// Tells whether an agent runs in the background.
pub(crate) fn runs_in_background(
    definition: &AgentDefinition,
    wish: Option<bool>,
    rules: &DelegationRules,
) -> Decided<bool> {
    if rules.background_is_off {
        let by = Provenance::Variable("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS");
        return Decided::new(false, by);
    }
    let forced = match rules.mode {
        SessionMode::Normal => None,
        SessionMode::Coordinator => Some("a coordinator never waits for agents"),
        SessionMode::Assistant => Some("an assistant never waits for agents"),
        SessionMode::Proactive => Some("a proactive agent never waits for agents"),
    };
    if let Some(rule) = forced {
        return Decided::new(true, Provenance::Default(rule));
    }
    if rules.forks {
        return Decided::new(true, Provenance::Default("where forks are on, no call waits"));
    }
    match (&definition.background, wish) {
        (_, Some(true)) => Decided::new(true, Provenance::Call("run_in_background")),
        // An agent that is made for the background stays there, whatever the call says.
        (Some(own), _) if own.value => Decided::new(true, Provenance::of(definition, own)),
        (_, Some(false)) => Decided::new(false, Provenance::Call("run_in_background")),
        (_, None) if rules.background => {
            Decided::new(true, Provenance::Setting("subagents.background".to_owned()))
        }
        (_, None) => Decided::new(false, Provenance::Default("the call waits")),
    }
}
