//! The permissions of one agent: its policy, and the mode that planning will give back.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use centurion_hooks::{
    HookRules, HookSet, PermissionUpdate, RuleBehavior, RuleValue, UpdateDestination,
};
use centurion_permissions::{
    Call, Decision, Mode, Policy, Role, Rule, RuleKind, RuleOrigin, RuleSet, decide, suggest,
};
use serde_json::Value;

/// Whether this run may skip permissions: only where the user enabled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    Enabled,
    /// And why.
    Refused(&'static str),
}

/// Rules as they are at one moment.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub allow: RuleSet,
    pub ask: RuleSet,
    pub deny: RuleSet,
    /// Where the agent works.
    pub directories: Vec<PathBuf>,
}

/// Settings that changed while a session runs.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub rules: Rules,
    /// The files that changed, each with what hooks call it: `user_settings` and the like.
    pub files: Vec<(&'static str, PathBuf)>,
    /// The hooks of the settings, as they are now.
    pub hooks: HookSet,
    pub hook_rules: HookRules,
}

/// Where rules come from while a session runs, such as settings files.
pub trait RuleSource: Send + Sync {
    /// The settings, if they changed since the last look.
    fn changed(&mut self) -> Option<Change>;
}

/// Where answers are kept that hold for longer than a session.
pub trait RuleStore: Send + Sync {
    /// Keeps what somebody decided; `Err` says why it could not be.
    fn keep(&self, remember: &Remember) -> Result<(), String>;
}

/// An answer that holds for longer than one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remember {
    pub what: Remembered,
    pub destination: Destination,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remembered {
    Rules { kind: RuleKind, texts: Vec<String> },
    Directories(Vec<PathBuf>),
    Mode(Mode),
}

/// Where an answer is kept.
pub type Destination = UpdateDestination;

impl Remember {
    /// Reads a change as hooks and hosts send it; `None` for one that this program does not make.
    pub fn from_update(update: PermissionUpdate) -> Option<Self> {
        let (what, destination) = match update {
            PermissionUpdate::AddRules { rules, behavior, destination } => {
                let kind = match behavior {
                    RuleBehavior::Allow => RuleKind::Allow,
                    RuleBehavior::Ask => RuleKind::Ask,
                    RuleBehavior::Deny => RuleKind::Deny,
                };
                let texts = rules.into_iter().map(rule_text).collect();
                (Remembered::Rules { kind, texts }, destination)
            }
            PermissionUpdate::AddDirectories { directories, destination } => {
                (Remembered::Directories(directories), destination)
            }
            PermissionUpdate::SetMode { mode, destination } => {
                (Remembered::Mode(mode.parse().ok()?), destination)
            }
            other => {
                tracing::warn!(?other, "a change to the permissions that cannot be made");
                return None;
            }
        };
        Some(Self { what, destination })
    }
}

fn rule_text(rule: RuleValue) -> String {
    match rule.rule_content {
        Some(content) => format!("{}({content})", rule.tool_name),
        None => rule.tool_name,
    }
}

pub(crate) struct Permissions {
    /// Searches ask from several threads at once.
    state: RwLock<State>,
    bypass: Bypass,
    source: Mutex<Option<Box<dyn RuleSource>>>,
    /// What hooks kept out is still in the files, and comes along with the next change.
    kept_out: Mutex<Option<KeptOut>>,
    store: Option<Arc<dyn RuleStore>>,
}

/// A change that is not in force.
struct KeptOut {
    change: Change,
    objection: Objection,
}

/// Why a change is not in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Objection {
    /// A hook said no.
    Refused,
    /// The hooks were interrupted before they had answered.
    Unheard,
}

struct State {
    policy: Policy,
    /// What was allowed for this session: it stays when settings are read again.
    session: Vec<(RuleKind, Rule)>,
    session_directories: Vec<PathBuf>,
    /// The mode to go back to when a plan is approved; `None` unless the model itself began to plan.
    before_plan: Option<Mode>,
}

impl Permissions {
    pub(crate) fn new(
        policy: Policy,
        bypass: Bypass,
        source: Option<Box<dyn RuleSource>>,
        store: Option<Arc<dyn RuleStore>>,
    ) -> Self {
        let state = State {
            policy,
            session: Vec::new(),
            session_directories: Vec::new(),
            before_plan: None,
        };
        let (source, kept_out) = (Mutex::new(source), Mutex::default());
        Self { state: RwLock::new(state), bypass, source, kept_out, store }
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The permissions of an agent that works for this one: the same ceiling, nothing remembered.
    pub(crate) fn child(&self, role: Role, mode: Mode) -> Self {
        let policy = self.state().policy.child(role, mode);
        Self::new(policy, self.bypass, None, None)
    }

    /// What changed on disk since the last look, with all that was kept out and would come along.
    pub(crate) fn changed(&self) -> Option<Change> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let news = source.as_mut().and_then(|source| source.changed());
        let mut kept_out = self.kept_out.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |it: &mut KeptOut| news.is_some() || it.objection == Objection::Unheard;
        let earlier = kept_out.take_if(is_due).map(|it| it.change);
        match (news, earlier) {
            (Some(mut news), Some(earlier)) => {
                let again = earlier.files.into_iter().filter(|file| !news.files.contains(file));
                let again: Vec<_> = again.collect();
                news.files.extend(again);
                Some(news)
            }
            (news, earlier) => news.or(earlier),
        }
    }

    /// Leaves a change out of force.
    pub(crate) fn keep_out(&self, change: Change, objection: Objection) {
        let mut kept_out = self.kept_out.lock().unwrap_or_else(PoisonError::into_inner);
        *kept_out = Some(KeptOut { change, objection });
    }

    /// Takes up rules that changed on disk.
    pub(crate) fn take_up(&self, rules: Rules) {
        let mut state = self.state_mut();
        let session = std::mem::take(&mut state.session);
        let State { policy, session_directories, .. } = &mut *state;
        policy.allow = rules.allow;
        policy.ask = rules.ask;
        policy.deny = rules.deny;
        policy.directories = rules.directories;
        policy.directories.extend(session_directories.iter().cloned());
        drop(state);
        for (kind, rule) in session {
            self.add_rules(kind, vec![rule]);
        }
    }

    /// Judges a call of an agent whose shell stands in `cwd`.
    pub(crate) fn decide(&self, call: &Call<'_>, cwd: PathBuf) -> Decision {
        let mut state = self.state_mut();
        state.policy.cwd = cwd;
        decide(&state.policy, call)
    }

    /// What a person could answer besides yes and no, in the shape of the public protocol.
    pub(crate) fn suggest(&self, call: &Call<'_>) -> Vec<Value> {
        let suggestions = suggest(&self.state().policy, call);
        suggestions.iter().filter_map(|suggestion| serde_json::to_value(suggestion).ok()).collect()
    }

    /// Takes up what a person decided for longer than one call. `Err` says what could not be kept; it
    /// holds for this session all the same.
    pub(crate) fn remember(&self, remember: &Remember) -> Result<(), String> {
        match &remember.what {
            Remembered::Rules { kind, texts } => {
                let parse = |text: &String| Rule::parse(text, RuleOrigin::Session);
                let rules: Result<Vec<Rule>, _> = texts.iter().map(parse).collect();
                self.add_rules(*kind, rules.map_err(|error| error.to_string())?);
            }
            Remembered::Directories(directories) => {
                let mut state = self.state_mut();
                state.policy.directories.extend(directories.iter().cloned());
                state.session_directories.extend(directories.iter().cloned());
            }
            Remembered::Mode(mode) => self.set_mode(*mode)?,
        }
        match (&self.store, remember.destination) {
            (_, Destination::Session) | (None, _) => Ok(()),
            (Some(store), _) => store.keep(remember),
        }
    }

    fn add_rules(&self, kind: RuleKind, rules: Vec<Rule>) {
        let mut state = self.state_mut();
        state.session.extend(rules.iter().map(|rule| (kind, rule.clone())));
        let policy = &mut state.policy;
        match kind {
            RuleKind::Allow => policy.allow.extend(rules),
            RuleKind::Ask => policy.ask.extend(rules),
            RuleKind::Deny => policy.deny.extend(rules),
        }
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
        Permissions::new(Policy { mode, ..Policy::default() }, bypass, None, None)
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
