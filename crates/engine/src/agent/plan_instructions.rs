//! The host's instructions for planning, which the main agent is told once each time that it begins to plan.

use centurion_permissions::Mode;
use parking_lot::Mutex;

/// The instructions, and whether the main agent knows them.
#[derive(Debug, Default)]
pub(crate) struct PlanInstructions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    text: Option<String>,
    is_told: bool,
}

impl PlanInstructions {
    /// Puts these in the place of earlier ones.
    pub(crate) fn set(&self, text: String) {
        *self.0.lock() = State { text: Some(text), is_told: false };
    }

    /// The text for an agent in this mode; `None` if there is none, or if the agent knows it.
    pub(crate) fn due(&self, mode: Mode) -> Option<String> {
        let mut state = self.0.lock();
        let was_told = std::mem::replace(&mut state.is_told, mode == Mode::Plan);
        state.text.as_deref().filter(|_| mode == Mode::Plan && !was_told).map(wrapped)
    }

    /// The text again, for a conversation that has lost it.
    pub(crate) fn again(&self) -> Option<String> {
        self.0.lock().text.as_deref().map(wrapped)
    }
}

fn wrapped(text: &str) -> String {
    format!(
        "Plan mode is on. Change nothing until the user has approved your plan.\n\n{text}\n\n\
         When the plan is ready, put it to the user with ExitPlanMode."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_told_once_each_time_that_it_begins_to_plan() {
        let instructions = PlanInstructions::default();
        assert_eq!(instructions.due(Mode::Plan), None);
        instructions.set("Think of tests.".to_owned());
        for (mode, is_told) in [
            (Mode::Default, false),
            (Mode::Plan, true),
            (Mode::Plan, false),
            (Mode::AcceptEdits, false),
            (Mode::Plan, true),
        ] {
            let text = instructions.due(mode);
            assert_eq!(text.is_some_and(|it| it.contains("Think of tests.")), is_told, "{mode}");
        }
    }
}
