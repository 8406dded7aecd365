//! The permissions of one agent: its policy, and the mode that planning will give back.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use centurion_permissions::{Access, Call, Decision, Mode, Policy, decide};

/// Whether this run may skip permissions: only where the user enabled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    Enabled,
    /// And why.
    Refused(&'static str),
}

pub(crate) struct Permissions {
    /// Searches ask from several threads at once.
    state: RwLock<State>,
    bypass: Bypass,
}

struct State {
    policy: Policy,
    /// The mode to go back to when a plan is approved; `None` unless the model itself began to plan.
    before_plan: Option<Mode>,
}

impl Permissions {
    pub(crate) fn new(policy: Policy, bypass: Bypass) -> Self {
        Self { state: RwLock::new(State { policy, before_plan: None }), bypass }
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges a call of an agent whose shell stands in `cwd`.
    pub(crate) fn decide(&self, tool: &str, access: &Access, cwd: PathBuf) -> Decision {
        let mut state = self.state_mut();
        state.policy.cwd = cwd;
        decide(&state.policy, &Call { tool, access })
    }

    /// Whether a deny rule keeps this file from being read, wherever a search began.
    pub(crate) fn denies_reading(&self, path: &Path) -> bool {
        self.state().policy.denies_reading(path)
    }

    pub(crate) fn is_offered(&self, tool: &str) -> bool {
        self.state().policy.is_offered(tool)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.state().policy.mode
    }

    /// Changes the mode from outside; what the model had planned to go back to no longer counts.
    pub(crate) fn set_mode(&self, mode: Mode) -> Result<(), &'static str> {
        if let (Mode::BypassPermissions, Bypass::Refused(reason)) = (mode, self.bypass) {
            return Err(reason);
        }
        let mut state = self.state_mut();
        state.policy.mode = mode;
        state.before_plan = None;
        Ok(())
    }

    /// The model wants to plan.
    pub(crate) fn enter_plan(&self) -> Result<(), &'static str> {
        let mut state = self.state_mut();
        if state.policy.mode == Mode::Plan {
            return Err("plan mode is on already");
        }
        state.before_plan = Some(std::mem::replace(&mut state.policy.mode, Mode::Plan));
        Ok(())
    }

    /// The plan was approved: the mode before it is back.
    pub(crate) fn leave_plan(&self) -> Mode {
        let mut state = self.state_mut();
        let mode = state.before_plan.take().unwrap_or_default();
        state.policy.mode = mode;
        mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permissions(mode: Mode, bypass: Bypass) -> Permissions {
        Permissions::new(Policy { mode, ..Policy::default() }, bypass)
    }

    #[test]
    fn planning_gives_back_the_mode_it_took() {
        let permissions = permissions(Mode::AcceptEdits, Bypass::Enabled);
        permissions.enter_plan().unwrap();
        assert!(permissions.enter_plan().is_err());
        assert_eq!(permissions.leave_plan(), Mode::AcceptEdits);
    }

    #[test]
    fn a_mode_set_meanwhile_is_not_raised_again_by_an_approved_plan() {
        let permissions = permissions(Mode::BypassPermissions, Bypass::Enabled);
        permissions.enter_plan().unwrap();
        permissions.set_mode(Mode::Plan).unwrap();
        assert_eq!(permissions.leave_plan(), Mode::Default);
    }

    #[test]
    fn bypass_needs_the_users_leave() {
        let permissions = permissions(Mode::Default, Bypass::Refused("not enabled"));
        assert_eq!(permissions.set_mode(Mode::BypassPermissions), Err("not enabled"));
        assert_eq!(permissions.mode(), Mode::Default);
    }
}
