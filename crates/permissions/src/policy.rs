//! What a call is judged by, and the call itself.

use std::path::{Path, PathBuf};

use serde_json::value::RawValue;

use crate::access::Access;
use crate::confinement;
use crate::links::{Links, NoLinks};
use crate::mode::Mode;
use crate::rule::{RuleKind, Specifier};
use crate::rule_set::RuleSet;
use crate::shell::Readings;

/// The rules, mode and places of one agent.
///
/// Two layers: what binds this agent and everybody below it, the ceiling, and what its own definition
/// adds for it alone, the role. Paths are absolute with symbolic links resolved, like those of
/// [`Access`]: a link in one of them would make what is inside look as if it were outside.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub mode: Mode,
    pub allow: RuleSet,
    pub ask: RuleSet,
    pub deny: RuleSet,
    /// What the agent's own definition adds.
    pub role: Role,
    /// Where the shell stands now; relative paths in commands hang here, and nothing else does.
    pub cwd: PathBuf,
    /// Where the agent was started; the patterns of rules hang here unless they begin with `//` or
    /// `~/`, or their settings say otherwise for `/`.
    pub project_root: PathBuf,
    pub home: Option<PathBuf>,
    /// Where the agent works: its own directory and those that were added.
    pub directories: Vec<PathBuf>,
    /// Places that may be read although nobody works there, such as the session's own output files.
    /// Writing there takes a rule, a mode or a person, as anywhere else outside.
    pub readable: Vec<PathBuf>,
    /// The git repository that was there when the session began. Only in it are read-only git commands
    /// free: the configuration of any other may name programs to run.
    pub repository: Option<PathBuf>,
    /// Command lines that were read before, shared with every clone of this policy. They save time and
    /// change no verdict.
    pub readings: Readings,
}

/// The rules of an agent's own definition. They bind that agent and nobody else.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Where the agent keeps its memory, with links resolved: it reads and writes there without asking.
    pub memory: Option<PathBuf>,
    pub allow: RuleSet,
    pub deny: RuleSet,
    /// What the agent is kept to: of a tool that a rule here names, only those calls may run, whatever
    /// else would let others run. A rule that names the whole tool lifts that; tools that no rule here
    /// names are free of it.
    pub only: RuleSet,
}

/// Which part of a policy decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A rule that binds the agent and everybody below it.
    Ceiling,
    /// A rule of the agent's own definition.
    Role,
    /// The permission mode.
    Mode,
    /// What holds without any rule.
    BuiltIn,
}

impl Policy {
    /// The policy of an agent that this one starts: the same ceiling, a role of its own. A parent that
    /// plans keeps it planning, and only a parent that skips permissions lets it skip them.
    pub fn child(&self, role: Role, mode: Mode) -> Self {
        let mode = match (self.mode, mode) {
            (Mode::Plan, _) => Mode::Plan,
            (parent, Mode::BypassPermissions) => parent,
            (_, own) => own,
        };
        Self { mode, role, ..self.clone() }
    }

    /// Whether a tool is shown to the model at all: no deny rule takes away every call of it.
    pub fn is_offered(&self, tool: &str) -> bool {
        !self.rules(RuleKind::Deny).iter().any(|(rules, _)| {
            let every = |rule: &crate::Rule| matches!(rule.specifier, Specifier::Every);
            rules.for_tool(RuleKind::Deny, tool, every).is_some()
        })
    }

    /// Whether the file or directory at this path is kept from being read: by a deny rule, or because
    /// every tool that searches is kept elsewhere.
    ///
    /// For what lies below a place that a search was allowed to look into: the search asks for each path,
    /// so this is quick when no rule speaks about paths. Which tool searches is not known here: one that
    /// is kept to some places while the other is free was held to them where its search began.
    pub fn denies_reading(&self, path: &Path) -> bool {
        let denied = self.rules(RuleKind::Deny).iter().any(|(rules, _)| {
            let reads =
                |rule: &crate::Rule| matches!(rule.tool.name(), Some("Read" | "Grep" | "Glob"));
            rules.for_path(RuleKind::Deny, path, self, reads).is_some()
        });
        denied || ["Grep", "Glob"].iter().all(|tool| confinement::keeps_away(self, tool, path))
    }

    /// Whether some rule guards certain files from being read: a search through a tree could pass it.
    pub(crate) fn guards_files(&self) -> bool {
        [&self.deny, &self.ask, &self.role.deny].iter().any(|rules| rules.guards_reading())
    }

    /// The rules of one kind with the layers they belong to.
    pub(crate) fn rules(&self, kind: RuleKind) -> [(&RuleSet, Layer); 2] {
        static NONE: std::sync::LazyLock<RuleSet> = std::sync::LazyLock::new(RuleSet::default);
        match kind {
            RuleKind::Allow => [(&self.allow, Layer::Ceiling), (&self.role.allow, Layer::Role)],
            RuleKind::Ask => [(&self.ask, Layer::Ceiling), (&*NONE, Layer::Role)],
            RuleKind::Deny => [(&self.deny, Layer::Ceiling), (&self.role.deny, Layer::Role)],
        }
    }
}

/// A call that wants to run.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub access: &'a Access,
    /// The path of [`Access`] as the caller named it, absolute but with its links: a rule that takes
    /// holds for either, a rule that gives must hold for both.
    pub named: Option<&'a Path>,
    /// The input as the model gave it, for rules about parameters, agents and skills.
    pub input: Option<&'a RawValue>,
    /// Where the paths in shell commands lead.
    pub links: &'a dyn Links,
}

impl<'a> Call<'a> {
    /// A call without links and without input.
    pub fn new(tool: &'a str, access: &'a Access) -> Self {
        Self { tool, access, named: None, input: None, links: &NoLinks }
    }
}
