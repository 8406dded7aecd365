//! What a call is judged by, and the call itself.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use url::Url;

use crate::access::Access;
use crate::apart::Apart;
use crate::confinement;
use crate::domain_pattern::{DomainPattern, Host};
use crate::links::{Links, NoLinks};
use crate::mode::Mode;
use crate::path_pattern::Spot;
use crate::paths::is_inside;
use crate::protected::is_protected;
use crate::rule::{RuleKind, Specifier};
use crate::rule_set::RuleSet;
use crate::shell::Readings;
use crate::stance::{Bounds, OwnMode, Skipping, Stance};

/// Others that work in a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// Its top directory, with links resolved.
    pub checkout: PathBuf,
    /// Who they are, in words.
    pub who: String,
}

/// The rules, mode and places of one agent.
///
/// Two layers: what binds this agent and all agents below it, the ceiling, and what its own definition adds for
/// it alone, the role. Paths are absolute with symbolic links resolved, like those of [`Access`]: a link in one
/// of them would make what is inside look as if it were outside.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub mode: Mode,
    /// What binds the agent whatever its mode is, because it binds an agent above it.
    pub bounds: Bounds,
    pub allow: RuleSet,
    pub ask: RuleSet,
    pub deny: RuleSet,
    /// What the agent's own definition adds.
    pub role: Role,
    /// Who else works now, and where.
    pub sharers: Vec<Sharer>,
    /// Where the shell stands now; relative paths in commands hang here, and nothing else does.
    pub cwd: PathBuf,
    /// Where the agent was started; the patterns of rules hang here unless they begin with `//` or
    /// `~/`, or their settings say otherwise for `/`.
    pub project_root: PathBuf,
    pub home: Option<PathBuf>,
    /// Where the agent works: its own directory and those that were added.
    pub directories: Vec<PathBuf>,
    /// Places that may be read although the agent does not work there, such as the session's own output files.
    /// Writing there takes a rule, a mode or a person, as anywhere else outside.
    pub readable: Vec<PathBuf>,
    /// The git repository that the session began in, if the user trusts it. Only in it are read-only git
    /// commands free: the configuration of any other may name programs that git runs.
    pub trusted_repository: Option<PathBuf>,
    /// Says whether that repository makes git run nothing but what the user accepted, as it is now.
    pub git_check: Option<GitCheck>,
    /// Command lines that were read before, shared with every clone of this policy. They save time and
    /// change no verdict.
    pub readings: Readings,
    /// Files and directories that hooks, servers and plugins of the session are made of: a write there needs
    /// a person's word, as with every protected path.
    pub protected: Vec<PathBuf>,
}

/// Looks at a repository whenever a git command is judged that would be free in it.
#[derive(Clone)]
pub struct GitCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl GitCheck {
    pub fn new(check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn passes(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for GitCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GitCheck")
    }
}

/// The rules of an agent's own definition. They bind that agent and no other, but for what is said of
/// one that only reads.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Where the agent keeps its memory, with links resolved: it reads and writes there without asking.
    pub memory: Option<PathBuf>,
    /// Whether the agent looks around only: it changes nothing, by no tool and no command, whatever rules,
    /// modes, hooks and people say. Unlike the rest of a role this binds every agent below it as well.
    pub only_reads: bool,
    /// Where the agent works apart from a checkout, if it does.
    pub apart: Option<Apart>,
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
    /// A rule that binds the agent and all agents below it.
    Ceiling,
    /// A rule of the agent's own definition.
    Role,
    /// The permission mode.
    Mode,
    /// What holds without any rule.
    BuiltIn,
}

impl Policy {
    /// Whether a write to this path needs a person's word.
    pub(crate) fn protects(&self, path: &Path) -> bool {
        is_protected(path) || is_inside(path, &self.protected)
    }

    /// The policy of an agent that this one starts: the same ceiling, a role of its own, and a stance that
    /// is no freer than this one's but for a mode of its own.
    pub fn child(&self, role: Role, own: OwnMode, skipping: Skipping) -> Self {
        let Stance { mode, bounds } = self.stance().below(own, skipping);
        Self { mode, bounds, role, ..self.clone() }
    }

    /// How freely the agent works.
    pub fn stance(&self) -> Stance {
        Stance { mode: self.mode, bounds: self.bounds }.only_reading(self.role.only_reads)
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
            rules.for_path(RuleKind::Deny, path, self, is_about_reading).is_some()
        });
        denied || ["Grep", "Glob"].iter().all(|tool| confinement::keeps_away(self, tool, path))
    }

    /// Whether a deny or ask rule about reading, or with `writes` about editing, means this path.
    pub(crate) fn guards(&self, path: &Path, writes: bool) -> bool {
        [RuleKind::Deny, RuleKind::Ask].into_iter().any(|kind| {
            let means = |rule: &crate::Rule| match rule.tool.name() {
                Some("Read") => true,
                Some("Edit") => writes,
                _ => false,
            };
            self.rules(kind)
                .iter()
                .any(|(rules, _)| rules.for_path(kind, path, self, means).is_some())
        })
    }

    /// Whether a deny rule keeps this file or directory from being changed.
    pub fn denies_writing(&self, path: &Path) -> bool {
        let mut rules = self.rules(RuleKind::Deny).into_iter();
        rules.any(|(rules, _)| {
            rules.for_path(RuleKind::Deny, path, self, is_about_writing).is_some()
        })
    }

    /// Where deny rules keep files from being read or changed: for a sandbox, which can hold a whole process to them.
    pub fn denied_places(&self) -> DeniedPlaces {
        let mut places =
            DeniedPlaces { all_reading: !self.is_offered("Read"), ..DeniedPlaces::default() };
        if !self.is_offered("Edit") {
            places.write.extend(self.directories.iter().chain([&self.project_root]).cloned());
        }
        for rule in self.rules(RuleKind::Deny).into_iter().flat_map(|(rules, _)| rules.iter()) {
            let Specifier::Path(pattern) = &rule.specifier else { continue };
            let (reads, writes) = (is_about_reading(rule), is_about_writing(rule));
            if reads || writes {
                places.patterns.extend(pattern.texts(self));
            }
            for spot in pattern.spots(self) {
                match spot {
                    Spot::Below(directory) => {
                        places.search.extend((reads || writes).then_some(directory));
                    }
                    Spot::Path(path) if reads => places.read.push(path),
                    Spot::Path(path) => places.write.extend(writes.then_some(path)),
                }
            }
        }
        places
    }

    /// What the rules say about fetching from the host of this address.
    pub fn host_rule(&self, url: &Url) -> HostRule {
        let Some(host) = Host::of(url.as_str()) else { return HostRule::Taken };
        let is_meant = |kind: RuleKind, fits: &dyn Fn(&DomainPattern) -> bool| {
            self.rules(kind).into_iter().any(|(rules, _)| {
                let fits = |rule: &crate::Rule| match &rule.specifier {
                    Specifier::Domain(pattern) => fits(pattern),
                    _ => false,
                };
                rules.for_tool(kind, "WebFetch", fits).is_some()
            })
        };
        let takes = |pattern: &DomainPattern| pattern.matches(&host);
        if is_meant(RuleKind::Deny, &takes) || is_meant(RuleKind::Ask, &takes) {
            HostRule::Taken
        } else if is_meant(RuleKind::Allow, &|pattern| pattern.names(&host)) {
            HostRule::Named
        } else {
            HostRule::Unnamed
        }
    }

    /// Whether some rule guards certain files from being read: a search through a tree could pass it.
    pub(crate) fn guards_files(&self) -> bool {
        [&self.deny, &self.ask, &self.role.deny].iter().any(|rules| rules.guards_reading())
    }

    /// Whether some ask or deny rule is about commands or about paths.
    pub(crate) fn guards_commands(&self) -> bool {
        [&self.deny, &self.ask, &self.role.deny]
            .iter()
            .any(|rules| rules.has_commands() || rules.has_paths())
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

fn is_about_reading(rule: &crate::Rule) -> bool {
    matches!(rule.tool.name(), Some("Read" | "Grep" | "Glob"))
}

fn is_about_writing(rule: &crate::Rule) -> bool {
    matches!(rule.tool.name(), Some("Edit" | "Write" | "NotebookEdit" | "MultiEdit"))
}

/// Where deny rules take effect in the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeniedPlaces {
    /// Not to be read, with everything below.
    pub read: Vec<PathBuf>,
    /// Not to be changed, with everything below.
    pub write: Vec<PathBuf>,
    /// Directories below which patterns mean something that only looking can tell.
    pub search: Vec<PathBuf>,
    /// The patterns of those rules: where each hangs, and its glob over the paths below.
    pub patterns: Vec<(PathBuf, String)>,
    /// Whether nothing at all is to be read, which no sandbox can hold a command to.
    pub all_reading: bool,
}

/// What the rules say about a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRule {
    /// A rule denies it, or wants a person to be asked.
    Taken,
    /// A rule allows this host by its name, and no other host.
    Named,
    Unnamed,
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
    /// All names of the agent that the call would start or resume, where that is known.
    pub agent: &'a [String],
    /// Where the paths in shell commands lead.
    pub links: &'a dyn Links,
}

impl<'a> Call<'a> {
    /// A call without links and without input.
    pub fn new(tool: &'a str, access: &'a Access) -> Self {
        Self { tool, access, named: None, input: None, agent: &[], links: &NoLinks }
    }
}
