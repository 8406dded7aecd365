//! What a call is judged by, and the call itself.

use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::mode::Mode;
use crate::paths::is_inside;
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
    /// Where the shell stands now; relative paths in commands hang here, and nothing else does.
    pub cwd: PathBuf,
    /// Where the agent was started; the patterns of rules hang here unless they begin with `//` or `~/`.
    pub project_root: PathBuf,
    pub home: Option<PathBuf>,
    /// Where the agent works: its own directory and those that were added.
    pub directories: Vec<PathBuf>,
    /// Places that may be read although nobody works there, such as the session's own output files.
    /// Writing there takes a rule, a mode or a person, as anywhere else outside.
    pub readable: Vec<PathBuf>,
}

impl Policy {
    /// Whether a tool is shown to the model at all: no deny rule takes away every call of it.
    pub fn is_offered(&self, tool: &str) -> bool {
        !self.deny.iter().any(|rule| {
            matches!(rule.specifier, Specifier::Every) && rule.tool.matches(RuleKind::Deny, tool)
        })
    }

    /// Whether a deny rule keeps the file or directory at this path from being read.
    ///
    /// For what lies below a place that a search was allowed to look into: the search asks for each path,
    /// so this is quick when no rule speaks about paths.
    pub fn denies_reading(&self, path: &Path) -> bool {
        self.deny.iter().any(|rule| rule.denies_reading(path, self))
    }

    /// Whether reading this path needs nobody's word.
    pub(crate) fn is_open_to_reading(&self, path: &Path) -> bool {
        is_inside(path, &self.directories) || is_inside(path, &self.readable)
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
