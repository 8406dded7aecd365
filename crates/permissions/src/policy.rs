//! What a call is judged by, and the call itself.

use std::path::PathBuf;

use crate::access::Access;
use crate::mode::Mode;
use crate::rule::{Rule, RuleKind, Specifier};

/// The rules, mode and places of one agent.
///
/// Paths are absolute with symbolic links resolved, like those of [`Access`]: a link in one of them
/// would make what is inside look as if it were outside.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub mode: Mode,
    pub allow: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub deny: Vec<Rule>,
    /// Where the shell stands now; patterns without an anchor and paths in commands hang here.
    pub cwd: PathBuf,
    /// Where the agent was started; patterns with a leading `/` hang here.
    pub project_root: PathBuf,
    pub home: Option<PathBuf>,
    /// Where the agent works: its own directory and those that were added.
    pub directories: Vec<PathBuf>,
}

impl Policy {
    /// Whether a tool is shown to the model at all: no deny rule takes away every call of it.
    pub fn is_offered(&self, tool: &str) -> bool {
        !self.deny.iter().any(|rule| {
            matches!(rule.specifier, Specifier::Every) && rule.tool.matches(RuleKind::Deny, tool)
        })
    }

    pub(crate) fn rules(&self, kind: RuleKind) -> &[Rule] {
        match kind {
            RuleKind::Allow => &self.allow,
            RuleKind::Ask => &self.ask,
            RuleKind::Deny => &self.deny,
        }
    }

    /// The first rule of this kind that matches the call.
    pub(crate) fn matching(&self, kind: RuleKind, call: &Call<'_>) -> Option<&Rule> {
        self.rules(kind).iter().find(|rule| rule.matches(kind, call, self))
    }
}

/// A call that wants to run.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub access: &'a Access,
}
