//! The permissions of one agent: its policy, and the mode that planning will give back.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use centurion_hooks::{
    HookRules, HookSet, PermissionUpdate, RuleBehavior, RuleValue, UpdateDestination,
};
use centurion_permissions::{
    Access, Call, Decision, Mode, Policy, Role, Rule, RuleKind, RuleLevel, RuleOrigin, RuleSet,
    Verdict, decide, suggest,
};
use serde_json::Value;
use serde_json::value::to_raw_value;

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
    Rules {
        change: RuleChange,
        kind: RuleKind,
        texts: Vec<String>,
    },
    Directories(Vec<PathBuf>),
    /// Directories in which the agent works no longer.
    LostDirectories(Vec<PathBuf>),
    Mode(Mode),
}

/// What rules do to those of the same kind that are kept in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleChange {
    /// They come along with the others.
    Add,
    /// They stand in the place of all others.
    Replace,
    /// They are no longer among them.
    Remove,
}

/// Where an answer is kept.
pub type Destination = UpdateDestination;

impl Remember {
    /// Reads a change as hooks and hosts send it; `None` for one that this program does not make.
    pub fn from_update(update: PermissionUpdate) -> Option<Self> {
        let (what, destination) = match update {
            PermissionUpdate::AddRules { rules, behavior, destination } => {
                (Remembered::rules(RuleChange::Add, behavior, rules), destination)
            }
            PermissionUpdate::ReplaceRules { rules, behavior, destination } => {
                (Remembered::rules(RuleChange::Replace, behavior, rules), destination)
            }
            PermissionUpdate::RemoveRules { rules, behavior, destination } => {
                (Remembered::rules(RuleChange::Remove, behavior, rules), destination)
            }
            PermissionUpdate::AddDirectories { directories, destination } => {
                (Remembered::Directories(directories), destination)
            }
            PermissionUpdate::RemoveDirectories { directories, destination } => {
                (Remembered::LostDirectories(directories), destination)
            }
            PermissionUpdate::SetMode { mode, destination } => {
                let Ok(mode) = mode.parse() else {
                    tracing::warn!(mode, "there is no such permission mode");
                    return None;
                };
                (Remembered::Mode(mode), destination)
            }
        };
        Some(Self { what, destination })
    }
}

impl Remembered {
    fn rules(change: RuleChange, behavior: RuleBehavior, rules: Vec<RuleValue>) -> Self {
        let kind = match behavior {
            RuleBehavior::Allow => RuleKind::Allow,
            RuleBehavior::Ask => RuleKind::Ask,
            RuleBehavior::Deny => RuleKind::Deny,
        };
        Self::Rules { change, kind, texts: rules.into_iter().map(rule_text).collect() }
    }
}

/// The level of the rules that are kept in a place.
fn level(destination: Destination) -> RuleLevel {
    match destination {
        Destination::Session => RuleLevel::Session,
        Destination::LocalSettings => RuleLevel::Local,
        Destination::ProjectSettings => RuleLevel::Project,
        Destination::UserSettings => RuleLevel::User,
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
    /// The main agent's, whose rules bind everybody below; `None` for the main agent itself.
    root: Option<Arc<Self>>,
    /// Whether whoever it works for planned when it began: then no approval ends its own planning.
    must_plan: bool,
    /// Counts the changes of the rules.
    version: AtomicU64,
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
    /// What was decided in this session, and where it is kept besides: it stays when settings are read
    /// again.
    session: Vec<SessionRule>,
    session_directories: Vec<PathBuf>,
    /// The mode to go back to when a plan is approved; `None` unless the model itself began to plan.
    before_plan: Option<Mode>,
    /// Whether it plans because the main agent does, and the mode that it had before.
    plans_with_root: bool,
    before_root: Option<Mode>,
    /// Which version of the root's rules these are.
    seen: u64,
}

#[derive(Clone, Debug)]
struct SessionRule {
    kind: RuleKind,
    destination: Destination,
    rule: Rule,
}

impl State {
    fn rules_mut(&mut self, kind: RuleKind) -> &mut RuleSet {
        match kind {
            RuleKind::Allow => &mut self.policy.allow,
            RuleKind::Ask => &mut self.policy.ask,
            RuleKind::Deny => &mut self.policy.deny,
        }
    }

    fn add_rules(&mut self, kind: RuleKind, destination: Destination, rules: Vec<Rule>) {
        let kept = rules.iter().map(|rule| SessionRule { kind, destination, rule: rule.clone() });
        self.session.extend(kept);
        self.rules_mut(kind).extend(rules);
    }

    /// Takes rules of one kind and place away: those with these texts, or all of them.
    fn remove_rules(&mut self, kind: RuleKind, destination: Destination, texts: Option<&[String]>) {
        let is_meant = |rule: &Rule| {
            let text = rule.source().text.trim();
            texts.is_none_or(|texts| texts.iter().any(|it| it.trim() == text))
        };
        self.session
            .retain(|it| it.kind != kind || it.destination != destination || !is_meant(&it.rule));
        let level = level(destination);
        let is_kept = |rule: &&Rule| {
            let own = rule.source().origin.level();
            own != RuleLevel::Session && !(own == level && is_meant(rule))
        };
        let session = self.session.iter().filter(|it| it.kind == kind).map(|it| it.rule.clone());
        let session: Vec<Rule> = session.collect();
        let rules = self.rules_mut(kind);
        *rules = rules.iter().filter(is_kept).cloned().chain(session).collect();
    }
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
            plans_with_root: false,
            before_root: None,
            seen: 0,
        };
        let (source, kept_out) = (Mutex::new(source), Mutex::default());
        let (root, must_plan, version) = (None, false, AtomicU64::new(0));
        let state = RwLock::new(state);
        Self { state, root, must_plan, version, bypass, source, kept_out, store }
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The permissions of an agent that works for this one: a role of its own below the same ceiling.
    pub(crate) fn child(self: &Arc<Self>, role: Role, mode: Mode) -> Self {
        self.catch_up();
        let policy = self.state().policy.child(role, mode);
        let root = Arc::clone(self.root.as_ref().unwrap_or(self));
        let child = Self::new(policy, self.bypass, None, None);
        {
            let mut state = child.state_mut();
            state.seen = root.version();
            // One that begins below a planner has no other mode to go back to.
            state.plans_with_root = root.state().policy.mode == Mode::Plan;
        }
        Self { root: Some(root), must_plan: self.mode() == Mode::Plan, ..child }
    }

    /// A number that changes with the rules.
    pub(crate) fn version(&self) -> u64 {
        match &self.root {
            Some(root) => root.version(),
            None => self.version.load(Ordering::Acquire),
        }
    }

    /// Takes up what changed in the rules that bind everybody.
    fn catch_up(&self) {
        let Some(root) = &self.root else { return };
        self.plan_with(root);
        let version = root.version();
        if self.state().seen == version {
            return;
        }
        let rules = {
            let state = root.state();
            let policy = &state.policy;
            (
                policy.allow.clone(),
                policy.ask.clone(),
                policy.deny.clone(),
                policy.directories.clone(),
            )
        };
        let mut state = self.state_mut();
        state.seen = version;
        let policy = &mut state.policy;
        (policy.allow, policy.ask, policy.deny, policy.directories) = rules;
    }

    /// While the main agent plans, nobody below it does anything else, also if it began before.
    fn plan_with(&self, root: &Self) {
        let root_plans = root.state().policy.mode == Mode::Plan;
        if self.state().plans_with_root == root_plans {
            return;
        }
        let mut state = self.state_mut();
        // Calls run side by side: another one may have been here.
        if std::mem::replace(&mut state.plans_with_root, root_plans) == root_plans {
            return;
        }
        if root_plans {
            state.before_root = Some(std::mem::replace(&mut state.policy.mode, Mode::Plan));
        } else if let Some(mode) = state.before_root.take() {
            state.policy.mode = mode;
        }
    }

    /// Whether rules forbid to start agents of a type.
    pub(crate) fn denies_agent(&self, kind: &str) -> bool {
        let Ok(input) = to_raw_value(&serde_json::json!({"subagent_type": kind})) else {
            return true;
        };
        let call = Call { input: Some(&input), ..Call::new("Agent", &Access::Session) };
        self.catch_up();
        decide(&self.state().policy, &call).verdict == Verdict::Deny
    }

    /// Limits the agent to what its definition says about single tools.
    pub(crate) fn confine(&self, role: Role) {
        self.state_mut().policy.role = role;
    }

    pub(crate) fn bypass(&self) -> Bypass {
        self.bypass
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
        self.version.fetch_add(1, Ordering::AcqRel);
        let mut state = self.state_mut();
        let session = std::mem::take(&mut state.session);
        let State { policy, session_directories, .. } = &mut *state;
        policy.allow = rules.allow;
        policy.ask = rules.ask;
        policy.deny = rules.deny;
        policy.directories = rules.directories;
        policy.directories.extend(session_directories.iter().cloned());
        for SessionRule { kind, destination, rule } in session {
            state.add_rules(kind, destination, vec![rule]);
        }
    }

    /// Judges a call of an agent whose shell stands in `cwd`.
    pub(crate) fn decide(&self, call: &Call<'_>, cwd: PathBuf) -> Decision {
        self.catch_up();
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
        // What a person decides about one agent's call holds for the session; a mode is the agent's own.
        if let (Some(root), Remembered::Rules { .. } | Remembered::Directories(_)) =
            (&self.root, &remember.what)
        {
            return root.remember(remember);
        }
        match &remember.what {
            Remembered::Rules { change, kind, texts } => {
                self.change_rules(*change, *kind, texts, remember.destination)?;
            }
            Remembered::LostDirectories(directories) => {
                let mut state = self.state_mut();
                state.policy.directories.retain(|path| !directories.contains(path));
                state.session_directories.retain(|path| !directories.contains(path));
            }
            Remembered::Directories(directories) => {
                self.version.fetch_add(1, Ordering::AcqRel);
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

    /// Changes rules of one kind and place. Those that an administrator, the command line or another file
    /// gives stay as they are.
    fn change_rules(
        &self,
        change: RuleChange,
        kind: RuleKind,
        texts: &[String],
        destination: Destination,
    ) -> Result<(), String> {
        self.version.fetch_add(1, Ordering::AcqRel);
        if change == RuleChange::Remove {
            self.state_mut().remove_rules(kind, destination, Some(texts));
            return Ok(());
        }
        let parse = |text: &String| Rule::parse(text, RuleOrigin::Session);
        let rules: Result<Vec<Rule>, _> = texts.iter().map(parse).collect();
        let rules = rules.map_err(|error| error.to_string())?;
        let mut state = self.state_mut();
        if change == RuleChange::Replace {
            state.remove_rules(kind, destination, None);
        }
        state.add_rules(kind, destination, rules);
        Ok(())
    }

    /// Whether a deny rule keeps this file from being read, wherever a search began.
    pub(crate) fn denies_reading(&self, path: &Path) -> bool {
        self.catch_up();
        self.state().policy.denies_reading(path)
    }

    pub(crate) fn is_offered(&self, tool: &str) -> bool {
        self.catch_up();
        self.state().policy.is_offered(tool)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.catch_up();
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

    /// Whether it plans for somebody who plans.
    pub(crate) fn must_plan(&self) -> bool {
        self.must_plan
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
    use serde_json::json;

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

    fn update(kind: &str, rules: &[&str], behavior: &str, destination: &str) -> Remember {
        let rules: Vec<Value> = rules.iter().map(|rule| json!({"toolName": rule})).collect();
        let update = json!({
            "type": kind, "rules": rules, "behavior": behavior, "destination": destination,
        });
        Remember::from_update(serde_json::from_value(update).unwrap()).unwrap()
    }

    fn texts(permissions: &Permissions, kind: RuleKind) -> Vec<String> {
        let mut state = permissions.state_mut();
        let rules = state.rules_mut(kind).iter();
        rules.map(|rule| rule.source().text.clone()).collect()
    }

    #[test]
    fn rules_are_added_replaced_and_removed_where_they_are_kept() {
        let of = |level, text| {
            let (file, root) = (PathBuf::from("/s.json"), PathBuf::from("/"));
            Rule::parse(text, RuleOrigin::Settings { level, file, line: None, root }).unwrap()
        };
        let written = || -> RuleSet {
            vec![of(RuleLevel::Managed, "A"), of(RuleLevel::User, "A"), of(RuleLevel::User, "B")]
                .into()
        };
        let permissions = permissions(Mode::Default, Bypass::Enabled);
        permissions.take_up(Rules { deny: written(), ..Rules::default() });
        let deny = || texts(&permissions, RuleKind::Deny);
        // The change, and all rules that deny something after it.
        for (kind, rules, destination, expected) in [
            ("addRules", &["C", "D"][..], "session", &["A", "A", "B", "C", "D"][..]),
            ("removeRules", &["A", "C"], "session", &["A", "A", "B", "D"]),
            ("replaceRules", &["E"], "session", &["A", "A", "B", "E"]),
            ("replaceRules", &["F"], "projectSettings", &["A", "A", "B", "E", "F"]),
            ("removeRules", &["F"], "session", &["A", "A", "B", "E", "F"]),
            ("removeRules", &["F"], "projectSettings", &["A", "A", "B", "E"]),
            // What the administrator wrote stays, whatever is said of the user's file.
            ("removeRules", &["A"], "userSettings", &["A", "B", "E"]),
            ("replaceRules", &["G"], "userSettings", &["A", "E", "G"]),
        ] {
            permissions.remember(&update(kind, rules, "deny", destination)).unwrap();
            assert_eq!(deny(), expected, "{kind} {rules:?} {destination}");
        }
        assert_eq!(texts(&permissions, RuleKind::Allow), Vec::<String>::new());
        // What holds for the session holds after the files were read again.
        permissions.take_up(Rules { deny: written(), ..Rules::default() });
        assert_eq!(deny(), ["A", "A", "B", "E", "G"]);
        let bad = permissions.remember(&update("replaceRules", &["Bash("], "deny", "session"));
        assert!(bad.is_err());
        assert_eq!(deny(), ["A", "A", "B", "E", "G"]);
    }

    #[test]
    fn directories_come_and_go() {
        let permissions = permissions(Mode::Default, Bypass::Enabled);
        let change = |kind| {
            let update = json!({"type": kind, "directories": ["/d"], "destination": "session"});
            let remember = Remember::from_update(serde_json::from_value(update).unwrap()).unwrap();
            permissions.remember(&remember).unwrap();
            permissions.take_up(Rules::default());
            permissions.state().policy.directories.clone()
        };
        assert_eq!(change("addDirectories"), [PathBuf::from("/d")]);
        assert_eq!(change("removeDirectories"), Vec::<PathBuf>::new());
    }

    #[derive(Default)]
    struct Kept(Mutex<Vec<Remember>>);

    impl RuleStore for Kept {
        fn keep(&self, remember: &Remember) -> Result<(), String> {
            self.0.lock().unwrap().push(remember.clone());
            Ok(())
        }
    }

    #[test]
    fn only_what_outlives_the_session_goes_to_the_store() {
        let store = Arc::new(Kept::default());
        let policy = Policy::default();
        let permissions =
            Permissions::new(policy, Bypass::Enabled, None, Some(Arc::clone(&store) as _));
        let lasting = update("removeRules", &["A"], "allow", "localSettings");
        permissions.remember(&lasting).unwrap();
        permissions.remember(&update("replaceRules", &["A"], "allow", "session")).unwrap();
        assert_eq!(*store.0.lock().unwrap(), [lasting]);
    }

    #[test]
    fn bypass_needs_the_users_leave() {
        let permissions = permissions(Mode::Default, Bypass::Refused("not enabled"));
        assert_eq!(permissions.set_mode(Mode::BypassPermissions), Err("not enabled"));
        assert_eq!(permissions.mode(), Mode::Default);
    }
}
