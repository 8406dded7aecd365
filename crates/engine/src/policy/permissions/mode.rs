//! The mode of one agent: changed from outside, by planning, and by an approved plan.

use centurion_permissions::{Mode, OwnMode};
use centurion_tools::PlanModeError;

use super::{Permissions, RulesState};
use crate::definition::bypass::{Bypass, BypassRefused};

/// A mode that an answer, or its own planning, gave to one agent while it worked.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChosenMode {
    pub(super) mode: Mode,
    /// The number of changes of the session's mode at that time. A later change holds for every agent.
    pub(super) at: u64,
}

/// The permission state of an agent before its model began to plan.
pub(super) struct BeforePlan {
    pub(super) mode: Mode,
    pub(super) chosen: Option<ChosenMode>,
}

impl Permissions {
    pub(crate) fn mode(&self) -> Mode {
        self.current().policy.mode
    }

    /// Changes the mode from outside; what the model had planned to go back to no longer counts.
    pub(crate) fn set_mode(&self, mode: Mode) -> Result<(), BypassRefused> {
        if let (Mode::BypassPermissions, Bypass::Refused(reason)) = (mode, self.bypass) {
            return Err(BypassRefused(reason));
        }
        let changes = self.root().state().mode_changes;
        let mut state = self.state_mut();
        state.before_plan = None;
        if self.above.is_none() {
            state.mode_changes += 1;
        }
        self.put(&mut state, mode, changes);
        Ok(())
    }

    /// Puts a mode in force, below that of the agent above where there is one, until the session's mode is changed.
    pub(super) fn put(&self, state: &mut RulesState, mode: Mode, changes: u64) {
        match self.above {
            None => state.policy.mode = mode,
            Some(_) => state.chosen = Some(ChosenMode { mode, at: changes }),
        }
    }

    /// The model wants to plan.
    pub(crate) fn enter_plan(&self) -> Result<(), PlanModeError> {
        let mode = self.mode();
        if mode == Mode::Plan {
            return Err(PlanModeError::AlreadyOn);
        }
        let changes = self.root().state().mode_changes;
        let mut state = self.state_mut();
        state.before_plan = Some(BeforePlan { mode, chosen: state.chosen });
        self.put(&mut state, Mode::Plan, changes);
        Ok(())
    }

    /// Tells whether it plans for an agent that plans, or planned when this one began.
    pub(crate) fn must_plan(&self) -> bool {
        self.state().began_below_planner
            || self.above.as_ref().is_some_and(|above| above.mode() == Mode::Plan)
    }

    /// The lead of the team approved the agent's plan: it has this mode from now on, and at most what the lead has.
    pub(crate) fn hand_over(&self, mode: Mode) {
        let mut state = self.state_mut();
        state.own = OwnMode::Modest(mode);
        state.chosen = None;
        state.before_plan = None;
        state.began_below_planner = false;
    }

    /// The plan was approved: the mode before it is back.
    pub(crate) fn leave_plan(&self) -> Mode {
        let changes = self.root().state().mode_changes;
        let mut state = self.state_mut();
        match (state.before_plan.take(), &self.above) {
            // The rest may have changed meanwhile.
            (Some(before), Some(_)) => state.chosen = before.chosen,
            (before, _) => {
                let mode = before.map(|before| before.mode).unwrap_or_default();
                self.put(&mut state, mode, changes);
            }
        }
        drop(state);
        self.mode()
    }
}
