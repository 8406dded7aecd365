//! The restriction of a tool by an agent's definition: with `Bash(git *)` in [`Role::only`], the agent may use Bash for
//! that and nothing else.
//!
//! This only restricts. A call that passes here still needs the same permission as any other call. A call that runs
//! without a question elsewhere, such as a command that only reads, must pass here as well. Modes make no difference.
//!
//! [`Role::only`]: crate::Role

use std::path::Path;

use crate::access::Access;
use crate::policy::Policy;
use crate::powershell::statements;
use crate::query::Query;
use crate::reason::Reason;
use crate::rule::{Rule, RuleKind, Specifier};
use crate::shell::Analysis;
use crate::shell_verdict::are_files_given;

/// The reason that the definition of the agent does not let this call run, if so.
pub(crate) fn refusal(query: &Query<'_>) -> Option<Reason> {
    let tool = query.call.tool;
    let rules = confining(query.policy, tool)?;
    let plain = rules.iter().any(|rule| is_meant(query, rule));
    if plain || is_given(query) {
        return None;
    }
    let rules = rules.into_iter().map(|rule| rule.source.clone()).collect();
    Some(Reason::Confined { tool: tool.to_owned(), rules })
}

/// Whether the definition keeps a file tool away from this path.
pub(crate) fn keeps_away(policy: &Policy, tool: &str, path: &Path) -> bool {
    confining(policy, tool).is_some() && !is_inside(policy, tool, path)
}

/// The rules to which the calls of a tool are restricted, or `None` if it is not restricted.
///
/// A pattern over names of tools restricts them as any rule does, but lifts no restriction of another rule, just as it
/// would allow nothing.
fn confining<'a>(policy: &'a Policy, tool: &str) -> Option<Vec<&'a Rule>> {
    let only = &policy.role.only;
    let is_whole = |rule: &&Rule| matches!(rule.specifier, Specifier::Every);
    if only.iter().filter(is_whole).any(|rule| rule.tool.matches(RuleKind::Allow, tool)) {
        return None;
    }
    let parts = only.iter().filter(|rule| !is_whole(rule));
    let rules: Vec<&Rule> = parts.filter(|rule| rule.tool.matches(RuleKind::Deny, tool)).collect();
    (!rules.is_empty()).then_some(rules)
}

/// Whether a rule that is neither about commands nor about paths matches the call.
fn is_meant(query: &Query<'_>, rule: &Rule) -> bool {
    // Elsewhere a parameter allows nothing, since it says too little about the call. Here it says all that the
    // definition asks for.
    let kind = match rule.specifier {
        Specifier::Parameter(_) => RuleKind::Ask,
        _ => RuleKind::Allow,
    };
    query.holds(kind, rule)
}

/// Whether rules about commands, statements or paths permit the whole call.
fn is_given(query: &Query<'_>) -> bool {
    match (&query.analysis, query.call.access) {
        (Some(analysis), _) => is_line_given(query, analysis),
        (None, Access::Shell(command)) => are_statements_given(query, command),
        (None, Access::Read(_) | Access::Write(_)) => {
            query.paths().all(|path| is_inside(query.policy, query.call.tool, path))
        }
        (None, Access::Session | Access::Network(_) | Access::External { .. }) => false,
    }
}

/// Whether the rules permit every command of a line, and every file that the shell opens for one.
fn is_line_given(query: &Query<'_>, analysis: &Analysis) -> bool {
    let only = &query.policy.role.only;
    let names = |rule: &Rule| rule.tool.matches(RuleKind::Allow, query.call.tool);
    if only.for_exact_command(analysis.text()).is_some_and(names) {
        return true;
    }
    analysis.unclear().is_none()
        && analysis.parts().all(|part| {
            only.for_part(&part, names).is_some()
                && are_files_given(part.command, query.scene, |path, redirection| {
                    query.file_rule(only, path, redirection.writes).is_some()
                })
        })
}

fn are_statements_given(query: &Query<'_>, command: &str) -> bool {
    let only = &query.policy.role.only;
    let is_given = |statement: &String| {
        let fits = |rule: &Rule| matches!(&rule.specifier, Specifier::Statement(pattern) if pattern.fits(statement));
        only.for_tool(RuleKind::Allow, query.call.tool, fits).is_some()
    };
    statements(command).is_some_and(|statements| statements.iter().all(is_given))
}

/// Whether a rule about paths that names the tool matches this path.
fn is_inside(policy: &Policy, tool: &str, path: &Path) -> bool {
    let names = |rule: &Rule| rule.tool.matches(RuleKind::Allow, tool);
    policy.role.only.for_path(RuleKind::Allow, path, policy, names).is_some()
}
