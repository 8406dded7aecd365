//! The judgement of a call: deny rules, ask rules, mode, allow rules, defaults, in this order. Four checks come right
//! after the deny rules: the restriction of the tool by the agent's definition, the agent's own checkout, the read-only
//! bound, and plan mode.

use std::path::Path;

use crate::access::Access;
use crate::apart;
use crate::confinement;
use crate::mode::Mode;
use crate::origin::RuleSource;
use crate::paths::is_inside;
use crate::policy::{Call, Layer, Policy};
use crate::protected::is_protected;
use crate::query::{Query, RuleMatch};
use crate::reason::Reason;
use crate::rule::{Rule, RuleKind, Specifier};
use crate::shell_verdict;

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    Allow,
    /// A person, or a program that answers for one, has to decide.
    Ask,
    Deny,
}

/// A verdict and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: Reason,
    /// The rule that decided, with its level, file and line.
    pub rule: Option<RuleSource>,
    pub layer: Layer,
}

impl Decision {
    fn new(verdict: Verdict, reason: Reason, layer: Layer) -> Self {
        Self { verdict, reason, rule: None, layer }
    }

    pub(crate) fn allow(reason: Reason) -> Self {
        Self::new(Verdict::Allow, reason, Layer::BuiltIn)
    }

    pub(crate) fn ask(reason: Reason) -> Self {
        Self::new(Verdict::Ask, reason, Layer::BuiltIn)
    }

    pub(crate) fn by_mode(mode: Mode) -> Self {
        Self::new(Verdict::Allow, Reason::Mode(mode), Layer::Mode)
    }

    pub(crate) fn by_rule(kind: RuleKind, hit: RuleMatch<'_>) -> Self {
        let source = hit.rule.source.clone();
        let takes_all = matches!(hit.rule.specifier, Specifier::Every);
        let (verdict, reason) = match kind {
            RuleKind::Allow => (Verdict::Allow, Reason::Rule { kind, source: source.clone() }),
            RuleKind::Ask => (Verdict::Ask, Reason::Rule { kind, source: source.clone() }),
            RuleKind::Deny if takes_all => (Verdict::Deny, Reason::NotOffered(source.clone())),
            RuleKind::Deny => (Verdict::Deny, Reason::Rule { kind, source: source.clone() }),
        };
        Self { rule: Some(source), ..Self::new(verdict, reason, hit.layer) }
    }
}

/// Decides whether a call may run.
pub fn decide(policy: &Policy, call: &Call<'_>) -> Decision {
    if let Some(mode) = policy.mode_of_server(call.tool) {
        return decide(&Policy { mode, ..policy.clone() }, call);
    }
    let decision = judge(&Query::new(policy, call));
    let never_asks = policy.mode == Mode::DontAsk || policy.bounds.never_asks;
    if never_asks && decision.verdict == Verdict::Ask {
        return Decision {
            verdict: Verdict::Deny,
            reason: Reason::NotAsked(Box::new(decision.reason)),
            rule: decision.rule,
            layer: Layer::Mode,
        };
    }
    decision
}

fn judge(query: &Query<'_>) -> Decision {
    let policy = query.policy;
    if let Some(hit) = query.taken_by(RuleKind::Deny) {
        return Decision::by_rule(RuleKind::Deny, hit);
    }
    if let Some(reason) = confinement::refusal(query) {
        return Decision::new(Verdict::Deny, reason, Layer::Role);
    }
    if !is_memory(query)
        && let Some(reason) = apart::refusal(query)
    {
        return Decision::new(Verdict::Deny, reason, Layer::Role);
    }
    // Before the ask rules: no answer to a question may permit a call that these forbid.
    if let Some(path) = left_for(query) {
        return Decision::new(Verdict::Deny, Reason::Outside(path.to_owned()), Layer::Ceiling);
    }
    if policy.stance().bounds.only_reads && changes_something(query) {
        return Decision::new(Verdict::Deny, Reason::OnlyReads, Layer::Role);
    }
    if policy.mode == Mode::Plan && changes_something(query) {
        return Decision::new(Verdict::Deny, Reason::Mode(Mode::Plan), Layer::Mode);
    }
    if let Some(hit) = query.taken_by(RuleKind::Ask) {
        return Decision::by_rule(RuleKind::Ask, hit);
    }
    if query.is_entry() {
        return judge_entry(query);
    }
    if is_memory(query) {
        return Decision::new(Verdict::Allow, Reason::Memory, Layer::Role);
    }
    if let Some(decision) = judge_unknown(query) {
        return decision;
    }
    if let Some(analysis) = &query.analysis
        && let Some(target) = analysis.critical_removal(policy)
    {
        return Decision::ask(Reason::CriticalRemoval(target));
    }
    if policy.mode == Mode::BypassPermissions && !apart::is_asked_about(query) {
        return Decision::by_mode(policy.mode);
    }
    if let Some(reason) = shared_tree(query) {
        return Decision::ask(reason);
    }
    match &query.analysis {
        Some(analysis) => shell_verdict::judge(query, analysis),
        None => judge_plain(query),
    }
}

/// The path outside of the working directories that a file tool reaches, where it has to stay inside.
fn left_for<'a>(query: &Query<'a>) -> Option<&'a Path> {
    let policy = query.policy;
    let (path, also) = match query.call.access {
        Access::Read(path) => (path, policy.readable.as_slice()),
        Access::Write(path) => (path, &[][..]),
        _ => return None,
    };
    let is_free = is_inside(path, &policy.directories) || is_inside(path, also) || is_memory(query);
    (policy.bounds.stays_inside && !is_free).then_some(path)
}

/// The reason to ask about a command that changes a checkout in which others work.
fn shared_tree(query: &Query<'_>) -> Option<Reason> {
    let analysis = query.analysis.as_ref().filter(|_| !query.policy.sharers.is_empty())?;
    analysis.tree_moves().into_iter().find_map(|moved| {
        let mut sharers = query.policy.sharers.iter();
        let sharer = sharers.find(|it| moved.may_be_in(&it.checkout, query.scene))?;
        let (checkout, others) = (sharer.checkout.clone(), sharer.who.clone());
        Some(Reason::SharedTree { command: moved.command, checkout, others })
    })
}

/// Judges a command line that cannot be read, or that a rule may match although its text does not tell: a person
/// decides, before any mode or allow rule counts. Where permissions are skipped, only rules protect; without rules, an
/// unreadable text runs.
fn judge_unknown(query: &Query<'_>) -> Option<Decision> {
    let analysis = query.analysis.as_ref()?;
    for kind in [RuleKind::Deny, RuleKind::Ask] {
        if let Some((hit, why)) = query.may_be_taken_by(kind) {
            let source = hit.rule.source.clone();
            let reason = Reason::MayMatch { kind, source: source.clone(), why };
            return Some(Decision {
                rule: Some(source),
                layer: hit.layer,
                ..Decision::ask(reason)
            });
        }
    }
    let why = analysis.unreadable()?;
    if query.policy.mode == Mode::BypassPermissions && !query.policy.guards_commands() {
        return None;
    }
    let command = analysis.text().to_owned();
    Some(Decision::ask(Reason::Unreadable { command, why }))
}

/// Whether a call touches only the memory of the agent.
fn is_memory(query: &Query<'_>) -> bool {
    let Some(memory) = &query.policy.role.memory else { return false };
    // Links in the path are resolved, so its text tells its location.
    match query.call.access {
        Access::Read(path) => path.starts_with(memory),
        Access::Write(path) => {
            let below = path.strip_prefix(memory);
            below.is_ok_and(|below| !is_protected(below))
                && !is_inside(path, &query.policy.protected)
        }
        _ => false,
    }
}

fn changes_something(query: &Query<'_>) -> bool {
    match query.call.access {
        Access::Write(_) => true,
        Access::Shell(_) => !query.is_read_only_command(),
        Access::External { only_reads } => !only_reads,
        Access::Session | Access::Read(_) | Access::Network(_) => false,
    }
}

/// Judges a move of the session by a person: free, unless a rule lists the allowed directories.
fn judge_entry(query: &Query<'_>) -> Decision {
    if let Some(hit) = query.given_by() {
        return Decision::by_rule(RuleKind::Allow, hit);
    }
    let lists = |rule: &Rule| rule.tool.name() == Some("Cd");
    let mut given = query.policy.rules(RuleKind::Allow).into_iter();
    match given.find(|(rules, _)| rules.iter().any(lists)) {
        Some((_, layer)) => Decision::new(Verdict::Deny, Reason::NotListed, layer),
        None => Decision::allow(Reason::SessionOnly),
    }
}

/// Judges a call that is no command line.
fn judge_plain(query: &Query<'_>) -> Decision {
    let policy = query.policy;
    if let Access::Write(path) = query.call.access {
        let named = query.call.named;
        let guarded = policy.protects(path) || named.is_some_and(|path| policy.protects(path));
        if guarded {
            return Decision::ask(Reason::ProtectedPath(path.clone()));
        }
        if policy.mode == Mode::AcceptEdits && is_inside(path, &policy.directories) {
            return Decision::by_mode(policy.mode);
        }
    }
    if let Some(hit) = query.given_by() {
        return Decision::by_rule(RuleKind::Allow, hit);
    }
    by_default(policy, query.call)
}

/// The decision about a call that no rule or mode concerns.
fn by_default(policy: &Policy, call: &Call<'_>) -> Decision {
    match call.access {
        Access::Session => Decision::allow(Reason::SessionOnly),
        Access::Read(path) if is_inside(path, &policy.directories) => {
            Decision::allow(Reason::ReadInside)
        }
        Access::Read(path) if is_inside(path, &policy.readable) => {
            Decision::allow(Reason::ReadOpen)
        }
        Access::Read(path) => Decision::ask(Reason::ReadOutside(path.clone())),
        Access::Write(path) => Decision::ask(Reason::Write(path.clone())),
        Access::Shell(command) => Decision::ask(Reason::Command(command.clone())),
        Access::Network(url) => Decision::ask(Reason::Network(url.clone())),
        Access::External { .. } => Decision::ask(Reason::External(call.tool.to_owned())),
    }
}
