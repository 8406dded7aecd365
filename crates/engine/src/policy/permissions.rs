//! The permissions of one agent: its policy, and the mode that planning will give back.
//!
//! The permissions of an agent that another one started always follow those above: the rules are the main
//! agent's, and the stance is decided below its parent's whenever a call is judged.

mod mode;
mod remember;
mod source;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_permissions::{
    Access, Apart, Call, Decision, HostRule, Mode, OwnMode, Policy, Role, Rule, RuleKind,
    RuleLevel, RuleOrigin, RuleSet, Sharer, Stance, Verdict, decide, suggest,
};
use centurion_tools::{DeniedFiles, DeniedSearch};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use serde_json::Value;
use url::Url;

use self::mode::{BeforePlan, ChosenMode};
pub(crate) use self::remember::RememberError;
use self::remember::level;
pub use self::remember::{Destination, KeepError, Remember, RuleChange, SavedChange};
pub(crate) use self::source::Objection;
pub use self::source::{Change, RuleSource, RuleStore, Rules};
use self::source::{KeptOut, WatchedSource};
use crate::definition::bypass::Bypass;
use crate::policy::rule_text::{UnreadRule, read_rule};

pub(crate) struct Permissions {
    /// Searches ask from several threads at once.
    state: RwLock<RulesState>,
    /// The permissions of the parent, which this agent follows; `None` for the main agent.
    above: Option<Arc<Self>>,
    bypass: Bypass,
    source: Mutex<WatchedSource>,
    /// Changes that hooks kept out: they are still in the files, and come with the next change.
    kept_out: Mutex<Option<KeptOut>>,
    store: Option<Arc<dyn RuleStore>>,
    /// The results of searches for files that deny rules name.
    denied: Mutex<DeniedSearch>,
}

struct RulesState {
    /// With the mode and bounds that held when something was last judged; the main agent's always hold.
    policy: Policy,
    /// The version of the rules and directories. It stands beside them under one lock, so that no
    /// copy of them can bear another number.
    version: u64,
    /// The mode that the agent's definition gives it.
    own: OwnMode,
    /// The mode that was chosen for it while it worked; `None` for the main agent, whose mode is the policy's.
    chosen: Option<ChosenMode>,
    /// The number of changes of the session's mode; counted for the main agent.
    mode_changes: u64,
    /// Rules decided in this session, each with its store: they stay when settings are read
    /// again.
    session: Vec<SessionRule>,
    session_directories: Vec<PathBuf>,
    /// Directories that were taken away in this session, whatever the settings say.
    lost_directories: Vec<PathBuf>,
    /// The state to restore when a plan is approved; `None` unless the model itself began to plan.
    before_plan: Option<BeforePlan>,
    /// True if the parent was planning when it started this agent: then this one plans to its end, unless its
    /// lead approves its plan.
    began_below_planner: bool,
}

#[derive(Clone, Debug)]
struct SessionRule {
    kind: RuleKind,
    destination: Destination,
    rule: Rule,
    /// The server whose tools the host restricts with it: no answer takes such a rule away.
    server: Option<Arc<str>>,
}

/// A host's rules for tools of one server, and the fate of its earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRules {
    /// They come along with the earlier ones.
    Add,
    /// They stand in the place of the earlier ones.
    Replace,
}

impl RulesState {
    fn rules_mut(&mut self, kind: RuleKind) -> &mut RuleSet {
        match kind {
            RuleKind::Allow => &mut self.policy.allow,
            RuleKind::Ask => &mut self.policy.ask,
            RuleKind::Deny => &mut self.policy.deny,
        }
    }

    fn add_rules(&mut self, kind: RuleKind, destination: Destination, rules: Vec<Rule>) {
        let kept =
            |rule: &Rule| SessionRule { kind, destination, rule: rule.clone(), server: None };
        self.session.extend(rules.iter().map(kept));
        self.rules_mut(kind).extend(rules);
    }

    /// Takes rules of one kind and place away: those with these texts, or all of them.
    fn remove_rules(&mut self, kind: RuleKind, destination: Destination, texts: Option<&[String]>) {
        let is_meant = |rule: &Rule| {
            let text = rule.source().text.trim();
            texts.is_none_or(|texts| texts.iter().any(|it| it.trim() == text))
        };
        let is_other = |it: &SessionRule| it.kind != kind || it.destination != destination;
        self.session.retain(|it| it.server.is_some() || is_other(it) || !is_meant(&it.rule));
        let level = level(destination);
        let is_kept = |rule: &&Rule| {
            let own = rule.source().origin.level();
            own != RuleLevel::Session && !(own == level && is_meant(rule))
        };
        self.rebuild(kind, is_kept);
    }

    /// Puts the rules of one kind together again: those that are kept, and those of the session.
    fn rebuild(&mut self, kind: RuleKind, is_kept: impl FnMut(&&Rule) -> bool) {
        let session = self.session.iter().filter(|it| it.kind == kind).map(|it| it.rule.clone());
        let session: Vec<Rule> = session.collect();
        let rules = self.rules_mut(kind);
        *rules = rules.iter().filter(is_kept).cloned().chain(session).collect();
    }

    /// Applies a host's rules for tools of a server.
    fn restrict_server(&mut self, server: &str, rules: Vec<(RuleKind, Rule)>, change: ServerRules) {
        let server: Arc<str> = server.into();
        if change == ServerRules::Replace {
            self.session.retain(|it| it.server.as_ref() != Some(&server));
        }
        let destination = Destination::Session;
        self.session.extend(rules.into_iter().map(|(kind, rule)| {
            let server = Some(Arc::clone(&server));
            SessionRule { kind, destination, rule, server }
        }));
        for kind in [RuleKind::Allow, RuleKind::Ask, RuleKind::Deny] {
            self.rebuild(kind, |rule| rule.source().origin.level() != RuleLevel::Session);
        }
    }
}

/// A number that changes with the deny rules of a policy and with where they hang.
fn rules_of(policy: &Policy) -> u64 {
    let mut hasher = DefaultHasher::new();
    for rule in policy.deny.iter().chain(policy.role.deny.iter()) {
        rule.source().hash(&mut hasher);
    }
    (&policy.project_root, &policy.home, &policy.directories).hash(&mut hasher);
    hasher.finish()
}

impl Permissions {
    pub(crate) fn new(
        policy: Policy,
        bypass: Bypass,
        source: Option<Box<dyn RuleSource>>,
        store: Option<Arc<dyn RuleStore>>,
    ) -> Self {
        let state = RulesState {
            policy,
            version: 0,
            own: OwnMode::Inherited,
            chosen: None,
            mode_changes: 0,
            session: Vec::new(),
            session_directories: Vec::new(),
            lost_directories: Vec::new(),
            before_plan: None,
            began_below_planner: false,
        };
        Self {
            state: RwLock::new(state),
            above: None,
            bypass,
            source: Mutex::new(WatchedSource { source, looked: None }),
            kept_out: Mutex::default(),
            store,
            denied: Mutex::default(),
        }
    }

    fn state(&self) -> RwLockReadGuard<'_, RulesState> {
        self.state.read()
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, RulesState> {
        self.state.write()
    }

    /// The permissions of an agent that works for this one: a role below the same ceiling, and a mode of its
    /// own or none. What the agent may is never more than this one may but for that mode, now and later.
    pub(crate) fn child(self: &Arc<Self>, role: Role, own: OwnMode) -> Self {
        let child = {
            let state = self.current();
            let policy = state.policy.child(role, own, self.bypass.skipping());
            let child = Self::new(policy, self.bypass, None, None);
            let mut own_state = child.state_mut();
            own_state.version = state.version;
            own_state.own = own;
            own_state.began_below_planner = state.policy.mode == Mode::Plan;
            drop(own_state);
            child
        };
        Self { above: Some(Arc::clone(self)), ..child }
    }

    /// The main agent's, whose rules bind every agent of the session.
    fn root(&self) -> &Self {
        let mut root = self;
        while let Some(above) = &root.above {
            root = above;
        }
        root
    }

    /// A number that changes with the rules.
    pub(crate) fn version(&self) -> u64 {
        self.root().state().version
    }

    /// The present mode and limits of the agent.
    pub(crate) fn stance(&self) -> Stance {
        self.current().policy.stance()
    }

    /// The state with what holds now in it.
    fn current(&self) -> RwLockReadGuard<'_, RulesState> {
        if let Some(above) = &self.above {
            self.follow(above);
        }
        self.state()
    }

    /// Applies what changed above: the mode of the agent that started this one, and the rules that bind all.
    fn follow(&self, above: &Self) {
        {
            let state = self.state();
            let stance = Stance { mode: state.policy.mode, bounds: state.policy.bounds };
            if stance == self.stance_below(above, &state) && state.version == self.version() {
                return;
            }
        }
        let mut state = self.state_mut();
        // Only now is it decided what holds, so that nothing newer is overwritten: locks are taken upwards.
        let Stance { mode, bounds } = self.stance_below(above, &state);
        (state.policy.mode, state.policy.bounds) = (mode, bounds);
        let root = self.root().state();
        if state.version != root.version {
            state.version = root.version;
            let (policy, rules) = (&mut state.policy, &root.policy);
            policy.allow.clone_from(&rules.allow);
            policy.ask.clone_from(&rules.ask);
            policy.deny.clone_from(&rules.deny);
            policy.directories.clone_from(&rules.directories);
            policy.readable.clone_from(&rules.readable);
            policy.server_modes.clone_from(&rules.server_modes);
        }
    }

    fn stance_below(&self, above: &Self, state: &RulesState) -> Stance {
        let mut stance = above.stance();
        if state.began_below_planner {
            stance.mode = Mode::Plan;
        }
        // Plan mode stays: no mode permits less.
        let changes = self.root().state().mode_changes;
        let is_in_force = |it: &ChosenMode| it.mode == Mode::Plan || it.at == changes;
        let chosen = state.chosen.filter(is_in_force).map(|it| OwnMode::Given(it.mode));
        stance.below(chosen.unwrap_or(state.own), self.bypass.skipping())
    }

    /// Changes the rules or directories that bind every agent.
    fn amend<T>(&self, change: impl FnOnce(&mut RulesState) -> T) -> T {
        let mut state = self.state_mut();
        state.version += 1;
        change(&mut state)
    }

    /// Tells whether rules forbid to start agents of a type that has these names.
    pub(crate) fn denies_agent(&self, names: &[String]) -> bool {
        let call = Call { meant: names, ..Call::new("Agent", &Access::Session) };
        decide(&self.current().policy, &call).verdict == Verdict::Deny
    }

    /// Tells whether a rule speaks against invoking a skill that has these names, or asks about it.
    pub(crate) fn takes_skill(&self, names: &[String]) -> Option<Verdict> {
        let call = Call { meant: names, ..Call::new("Skill", &Access::Session) };
        let decision = decide(&self.current().policy, &call);
        (decision.verdict != Verdict::Allow).then_some(decision.verdict)
    }

    /// Limits the agent to what its definition says about single tools.
    pub(crate) fn confine(&self, role: Role) {
        self.state_mut().policy.role = role;
    }

    /// Has the agent work apart from checkouts, or no longer so.
    pub(crate) fn work_apart(&self, apart: Option<Apart>) {
        self.state_mut().policy.role.apart = apart;
    }

    /// Lets agents read these paths without a question, as far as no rule speaks against it.
    pub(crate) fn let_read(&self, paths: Vec<PathBuf>) {
        self.amend(|state| state.policy.readable.extend(paths));
    }

    /// Tells whether a path is where agents of the session work.
    pub(crate) fn works_in(&self, path: &Path) -> bool {
        self.current().policy.directories.iter().any(|directory| path.starts_with(directory))
    }

    /// The agent's own part of its rules.
    pub(crate) fn role(&self) -> Role {
        self.current().policy.role.clone()
    }

    pub(crate) fn bypass(&self) -> Bypass {
        self.bypass
    }

    /// Returns changes on disk since the last look, with changes that hooks kept out before. Any agent may look:
    /// looks: the main agent may wait while others work.
    pub(crate) fn changed(&self) -> Option<Change> {
        let root = self.root();
        let mut source = root.source.lock();
        let is_due = self.above.is_none() || source.is_due();
        let news = if is_due { source.changed() } else { None };
        let mut kept_out = root.kept_out.lock();
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
        let mut kept_out = self.root().kept_out.lock();
        *kept_out = Some(KeptOut { change, objection });
    }

    /// Applies rules that changed on disk.
    pub(crate) fn replace_rules(&self, rules: Rules) {
        self.root().amend(|state| {
            let session = std::mem::take(&mut state.session);
            let RulesState { policy, session_directories, lost_directories, .. } = &mut *state;
            policy.allow = rules.allow;
            policy.ask = rules.ask;
            policy.deny = rules.deny;
            policy.directories = rules.directories;
            policy.directories.retain(|path| !lost_directories.contains(path));
            policy.directories.extend(session_directories.iter().cloned());
            for kept in session {
                state.rules_mut(kept.kind).extend(vec![kept.rule.clone()]);
                state.session.push(kept);
            }
        });
    }

    /// Applies a host's rules for tools of one of its servers. They outlast changes of settings and answers.
    pub(crate) fn restrict_server(
        &self,
        server: &str,
        rules: Vec<(RuleKind, Rule)>,
        change: ServerRules,
    ) {
        self.root().amend(|state| state.restrict_server(server, rules, change));
    }

    /// Sets the mode of the tools whose names begin so, or sets none any more. It holds only where it gives less than
    /// the agent's own mode.
    pub(crate) fn set_server_mode(&self, prefix: String, mode: Option<Mode>) {
        self.root().amend(|state| match mode {
            Some(mode) => drop(state.policy.server_modes.insert(prefix, mode)),
            None => drop(state.policy.server_modes.remove(&prefix)),
        });
    }

    /// The rules that are in force, each with its kind, the strongest kind first.
    pub(crate) fn listed(&self) -> Vec<(RuleKind, centurion_permissions::RuleSource)> {
        let state = self.current();
        let policy = &state.policy;
        let kinds = [
            (RuleKind::Deny, &policy.deny),
            (RuleKind::Ask, &policy.ask),
            (RuleKind::Allow, &policy.allow),
        ];
        let rules = kinds
            .into_iter()
            .flat_map(|(kind, rules)| rules.iter().map(move |rule| (kind, rule.source().clone())));
        rules.collect()
    }

    /// The directories that agents of the session work in, each with whether it was added in this session.
    pub(crate) fn directories(&self) -> Vec<(PathBuf, bool)> {
        let state = self.current();
        let is_added = |path: &PathBuf| state.session_directories.contains(path);
        let all = state.policy.directories.iter().map(|path| (path.clone(), is_added(path)));
        all.collect()
    }

    /// The rules that are in force, one a line, with where they come from.
    pub(crate) fn describe(&self) -> Vec<String> {
        let state = self.current();
        let policy = &state.policy;
        let kinds = [("deny", &policy.deny), ("ask", &policy.ask), ("allow", &policy.allow)];
        let lines = kinds.into_iter().flat_map(|(kind, rules)| {
            rules.iter().map(move |rule| {
                format!("{kind}  {}  ({})", rule.source().text, rule.source().origin)
            })
        });
        lines.collect()
    }

    /// Judges a call of an agent whose shell stands in `cwd`.
    pub(crate) fn decide(&self, call: &Call<'_>, cwd: PathBuf) -> Decision {
        self.decide_among(call, cwd, Vec::new())
    }

    /// The last directory of the agent's shell.
    pub(crate) fn place(&self) -> PathBuf {
        self.current().policy.cwd.clone()
    }

    /// Tells whether a call would be allowed without a question to an agent with these rules whose shell stands in `cwd`.
    pub(crate) fn allows_in(&self, call: &Call<'_>, cwd: PathBuf) -> bool {
        drop(self.current());
        let mut state = self.state_mut();
        let own = std::mem::replace(&mut state.policy.cwd, cwd);
        let decision = decide(&state.policy, call);
        state.policy.cwd = own;
        decision.verdict == Verdict::Allow
    }

    /// Judges a call while others work.
    pub(crate) fn decide_among(
        &self,
        call: &Call<'_>,
        cwd: PathBuf,
        sharers: Vec<Sharer>,
    ) -> Decision {
        drop(self.current());
        let mut state = self.state_mut();
        state.policy.cwd = cwd;
        state.policy.sharers = sharers;
        decide(&state.policy, call)
    }

    /// Suggests answers besides yes and no, in the shape of the public protocol.
    pub(crate) fn suggest(&self, call: &Call<'_>) -> Vec<Value> {
        let suggestions = suggest(&self.state().policy, call);
        suggestions.iter().filter_map(|suggestion| serde_json::to_value(suggestion).ok()).collect()
    }

    /// Applies an answer of a person that holds for longer than one call. What could not be kept holds for this session all
    /// the same.
    pub(crate) fn remember(&self, remember: &Remember) -> Result<(), RememberError> {
        // A person's decision about one agent's call holds for the session; a mode is the agent's own.
        if let (Some(_), false) = (&self.above, matches!(remember.what, SavedChange::Mode(_))) {
            return self.root().remember(remember);
        }
        match &remember.what {
            SavedChange::Rules { change, kind, texts } => {
                self.change_rules(*change, *kind, texts, remember.destination)?;
            }
            SavedChange::LostDirectories(directories) => {
                let home = self.state().policy.home.clone();
                let lost = directories.iter().map(|path| in_home(path, home.as_deref()));
                let lost: Vec<PathBuf> = lost.flat_map(|path| names_of(&path)).collect();
                let kept = self.amend(|state| {
                    state.policy.directories.retain(|path| !lost.contains(path));
                    state.session_directories.retain(|path| !lost.contains(path));
                    let kept = &state.policy.directories;
                    let is_kept = |path: &&PathBuf| kept.iter().any(|it| path.starts_with(it));
                    let kept = lost.iter().find(is_kept).cloned();
                    state.lost_directories.extend(lost);
                    kept
                });
                if let Some(kept) = kept {
                    return Err(RememberError::PartOfDirectory(kept));
                }
            }
            SavedChange::Directories(directories) => {
                let home = self.state().policy.home.clone();
                let found = directories.iter().map(|path| in_home(path, home.as_deref()));
                let found = found.filter_map(|path| names_of(&path).pop());
                let found: Vec<PathBuf> = found.collect();
                self.amend(|state| {
                    state.lost_directories.retain(|path| !found.contains(path));
                    state.policy.directories.extend(found.iter().cloned());
                    state.session_directories.extend(found);
                });
            }
            SavedChange::Mode(mode) => self.set_mode(*mode)?,
        }
        match (&self.store, remember.destination) {
            (_, Destination::Session) | (None, _) => Ok(()),
            (Some(store), _) => Ok(store.keep(remember)?),
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
    ) -> Result<(), RememberError> {
        if change == RuleChange::Remove {
            self.amend(|state| state.remove_rules(kind, destination, Some(texts)));
            return Ok(());
        }
        let mut unread = Vec::new();
        let mut rules = Vec::new();
        for text in texts {
            match read_rule(&Value::from(text.as_str()), &RuleOrigin::Session) {
                Ok(rule) => rules.push(rule),
                Err(UnreadRule { source, tools }) => {
                    rules.extend(tools.into_iter().filter(|_| kind != RuleKind::Allow));
                    unread.push(source);
                }
            }
        }
        self.amend(|state| {
            // A substitute for a rule that cannot be read is no reason to take others away.
            if change == RuleChange::Replace && unread.is_empty() {
                state.remove_rules(kind, destination, None);
            }
            state.add_rules(kind, destination, rules);
        });
        if unread.is_empty() { Ok(()) } else { Err(RememberError::UnreadRules(unread)) }
    }

    /// Tells whether a deny rule keeps this file from being read, wherever a search began.
    pub(crate) fn denies_reading(&self, path: &Path) -> bool {
        self.current().policy.denies_reading(path)
    }

    /// The deny rule for reading that a file comes under, for its user.
    pub(crate) fn read_denial(&self, path: &Path) -> Option<String> {
        self.current().policy.read_denial(path).map(|rule| rule.source().to_string())
    }

    /// Looks for the files that deny rules keep from commands in a sandbox.
    pub(crate) fn find_denied(&self) -> DeniedFiles {
        let policy = self.current().policy.clone();
        let mut search = self.denied.lock();
        let mut denied = search.find(&policy, rules_of(&policy));
        // The sandbox was made when agents still worked there.
        denied.write.extend(self.root().state().lost_directories.iter().cloned());
        denied
    }

    /// The decision of the rules about fetching from a host.
    pub(crate) fn host_rule(&self, url: &Url) -> HostRule {
        self.current().policy.host_rule(url)
    }

    pub(crate) fn is_offered(&self, tool: &str) -> bool {
        self.current().policy.is_offered(tool)
    }
}

/// The path with the home directory for a tilde at its beginning.
fn in_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path.to_owned(),
    }
}

/// A directory as it was written and as rules know it, with links resolved, in this order.
fn names_of(path: &Path) -> Vec<PathBuf> {
    let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    vec![path.to_owned(), resolved]
}
