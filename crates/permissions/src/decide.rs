//! The one judgement: deny rules, ask rules, mode, allow rules, defaults, in this order. Only the
//! prohibition of plan mode comes earlier, right after the deny rules.

use crate::access::Access;
use crate::mode::Mode;
use crate::paths::is_inside;
use crate::policy::{Call, Policy};
use crate::protected::is_protected;
use crate::reason::Reason;
use crate::rule::{Rule, RuleKind, Specifier};
use crate::shell;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    Allow,
    /// A person, or whoever answers for one, has to say.
    Ask,
    Deny,
}

/// A verdict and what decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    pub reason: Reason,
}

impl Decision {
    fn new(verdict: Verdict, reason: Reason) -> Self {
        Self { verdict, reason }
    }

    fn by_rule(kind: RuleKind, rule: &Rule) -> Self {
        let source = rule.source.clone();
        match kind {
            RuleKind::Allow => Self::new(Verdict::Allow, Reason::Rule { kind, source }),
            RuleKind::Ask => Self::new(Verdict::Ask, Reason::Rule { kind, source }),
            RuleKind::Deny if matches!(rule.specifier, Specifier::Every) => {
                Self::new(Verdict::Deny, Reason::NotOffered(source))
            }
            RuleKind::Deny => Self::new(Verdict::Deny, Reason::Rule { kind, source }),
        }
    }
}

/// Decides whether a call may run.
pub fn decide(policy: &Policy, call: &Call<'_>) -> Decision {
    let decision = judge(policy, call);
    if policy.mode == Mode::DontAsk && decision.verdict == Verdict::Ask {
        return Decision::new(Verdict::Deny, Reason::NotAsked(Box::new(decision.reason)));
    }
    decision
}

fn judge(policy: &Policy, call: &Call<'_>) -> Decision {
    if let Some(rule) = policy.matching(RuleKind::Deny, call) {
        return Decision::by_rule(RuleKind::Deny, rule);
    }
    // Before the ask rules: what planning forbids, no answer to a question may let through.
    if policy.mode == Mode::Plan && changes_something(policy, call.access) {
        return Decision::new(Verdict::Deny, Reason::Mode(Mode::Plan));
    }
    if let Some(rule) = policy.matching(RuleKind::Ask, call) {
        return Decision::by_rule(RuleKind::Ask, rule);
    }
    if let Access::Shell(command) = call.access
        && let Some(target) = shell::critical_removal(command, policy)
    {
        return Decision::new(Verdict::Ask, Reason::CriticalRemoval(target));
    }
    if let Some(decision) = by_mode(policy, call.access) {
        return decision;
    }
    if let Access::Write(path) = call.access
        && is_protected(path)
    {
        return Decision::new(Verdict::Ask, Reason::ProtectedPath(path.clone()));
    }
    if let Some(rule) = policy.matching(RuleKind::Allow, call) {
        return Decision::by_rule(RuleKind::Allow, rule);
    }
    by_default(policy, call.access)
}

fn changes_something(policy: &Policy, access: &Access) -> bool {
    match access {
        Access::Write(_) => true,
        Access::Shell(command) => !shell::is_read_only(command, policy),
        Access::Session | Access::Read(_) | Access::Network(_) => false,
    }
}

/// What the mode lets run before any allow rule is asked.
fn by_mode(policy: &Policy, access: &Access) -> Option<Decision> {
    let runs = match (policy.mode, access) {
        (Mode::BypassPermissions, _) => true,
        (Mode::AcceptEdits, Access::Write(path)) => {
            is_inside(path, &policy.directories) && !is_protected(path)
        }
        (Mode::AcceptEdits, Access::Shell(command)) => shell::edits_inside(command, policy),
        _ => false,
    };
    runs.then(|| Decision::new(Verdict::Allow, Reason::Mode(policy.mode)))
}

/// What happens to a call that nothing else speaks about.
fn by_default(policy: &Policy, access: &Access) -> Decision {
    match access {
        Access::Session => Decision::new(Verdict::Allow, Reason::SessionOnly),
        Access::Read(path) if is_inside(path, &policy.directories) => {
            Decision::new(Verdict::Allow, Reason::ReadInside)
        }
        Access::Read(path) if is_inside(path, &policy.readable) => {
            Decision::new(Verdict::Allow, Reason::ReadOpen)
        }
        Access::Read(path) => Decision::new(Verdict::Ask, Reason::ReadOutside(path.clone())),
        Access::Write(path) => Decision::new(Verdict::Ask, Reason::Write(path.clone())),
        Access::Shell(command) if shell::is_read_only(command, policy) => {
            Decision::new(Verdict::Allow, Reason::ReadOnlyCommand)
        }
        Access::Shell(command) => Decision::new(Verdict::Ask, Reason::Command(command.clone())),
        Access::Network(url) => Decision::new(Verdict::Ask, Reason::Network(url.clone())),
    }
}
