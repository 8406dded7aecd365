//! The policy of an agent, and the call to judge.

use std::collections::BTreeMap;
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
use crate::path_pattern::DenyLocation;
use crate::paths::is_inside;
use crate::protected::is_protected;
use crate::rule::{Rule, RuleKind, Specifier};
use crate::rule_set::RuleSet;
use crate::shell::Readings;
use crate::stance::{Bounds, OwnMode, Skipping, Stance};

/// Other agents or sessions that work in a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// Its top directory, with links resolved.
    pub checkout: PathBuf,
    /// Their names, in a phrase.
    pub who: String,
}

/// The rules, mode and directories of one agent.
///
/// Two layers: the ceiling binds this agent and all agents below it, and the role holds the additions of its own
/// definition, for it alone. Paths are absolute with symbolic links resolved, like those of [`Access`]: with a link in
/// one of them, a path inside would look as if it were outside.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub mode: Mode,
    /// Bounds of the agent whatever its mode is, because they bind an agent above it.
    pub bounds: Bounds,
    pub allow: RuleSet,
    pub ask: RuleSet,
    pub deny: RuleSet,
    /// The additions of the agent's own definition.
    pub role: Role,
    /// The others that work now, and their checkouts.
    pub sharers: Vec<Sharer>,
    /// The shell's current directory; only relative paths in commands are relative to it.
    pub cwd: PathBuf,
    /// The agent's start directory; the patterns of rules are anchored here unless they begin with `//` or `~/`, or
    /// their settings have another root for `/`.
    pub project_root: PathBuf,
    pub home: Option<PathBuf>,
    /// The agent's working directories: its own and those that were added.
    pub directories: Vec<PathBuf>,
    /// Paths outside the working directories that may be read, such as the session's own output files. Writing there
    /// needs a rule, a mode or a person, as anywhere else outside.
    pub readable: Vec<PathBuf>,
    /// The git repository in which the session began, if the user trusts it. Read-only git commands are free only
    /// there: the configuration of any other repository may name programs that git runs.
    pub trusted_repository: Option<PathBuf>,
    /// Checks whether that repository, in its present state, makes git run only programs that the user accepted.
    pub git_check: Option<GitCheck>,
    /// A cache of parsed command lines, shared by all clones of this policy. It saves time and changes no verdict.
    pub readings: Readings,
    /// Files and directories of the session's hooks, servers and plugins: a write there needs a person's approval, as
    /// with every protected path.
    pub protected: Vec<PathBuf>,
    /// The modes that a host has set for the tools of single servers, by the beginning of the names of the tools. They
    /// count only where they give less than the agent's own mode.
    pub server_modes: BTreeMap<String, Mode>,
}

impl Policy {
    /// The mode of a single server, where it holds for this tool in place of the agent's own.
    pub(crate) fn mode_of_server(&self, tool: &str) -> Option<Mode> {
        // Every other mode gives no more than these.
        if self.mode != Mode::BypassPermissions {
            return None;
        }
        let mut modes = self.server_modes.iter().filter(|(prefix, _)| tool.starts_with(*prefix));
        modes.next().map(|(_, mode)| *mode).filter(|mode| *mode != self.mode)
    }
}

/// Checks a repository whenever a git command is judged that would be free in it.
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

/// The rules of an agent's own definition. They bind that agent and no other, except for `only_reads`.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// The directory of the agent's memory, with links resolved: the agent reads and writes there without a question.
    pub memory: Option<PathBuf>,
    /// Whether the agent may only look: it changes nothing, by no tool and no command, whatever rules, modes, hooks and
    /// people permit. Unlike the rest of a role this binds every agent below it as well.
    pub only_reads: bool,
    /// The agent's own checkout, if it works apart from another.
    pub apart: Option<Apart>,
    pub allow: RuleSet,
    pub deny: RuleSet,
    /// The restrictions of the agent: of a tool that a rule here names, only the matching calls may run, whatever else
    /// would permit others. A rule that names the whole tool lifts that; tools that no rule here names are not
    /// restricted.
    pub only: RuleSet,
}

/// The part of a policy that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A rule that binds the agent and all agents below it.
    Ceiling,
    /// A rule of the agent's own definition.
    Role,
    /// The permission mode.
    Mode,
    /// A default that holds without any rule.
    BuiltIn,
}

impl Policy {
    /// Whether a write to this path needs a person's approval.
    pub(crate) fn protects(&self, path: &Path) -> bool {
        is_protected(path) || is_inside(path, &self.protected)
    }

    /// The policy of an agent that this one starts: the same ceiling, a role of its own, and a stance that is no freer
    /// than this one's except for a mode of its own.
    pub fn child(&self, role: Role, own: OwnMode, skipping: Skipping) -> Self {
        let Stance { mode, bounds } = self.stance().below(own, skipping);
        Self { mode, bounds, role, ..self.clone() }
    }

    /// The stance of the agent.
    pub fn stance(&self) -> Stance {
        Stance { mode: self.mode, bounds: self.bounds }.only_reading(self.role.only_reads)
    }

    /// Whether the model sees a tool: no deny rule denies every call of it.
    pub fn is_offered(&self, tool: &str) -> bool {
        !self.rules(RuleKind::Deny).iter().any(|(rules, _)| {
            let every = |rule: &Rule| matches!(rule.specifier, Specifier::Every);
            rules.for_tool(RuleKind::Deny, tool, every).is_some()
        })
    }

    /// Whether the file or directory at this path must not be read: because of a deny rule, or because the agent's
    /// definition restricts every searching tool to other paths.
    ///
    /// A search calls this for each path below its start, so this is quick when no rule is about paths. The tool of the
    /// search is not known here: if only one of the tools is restricted, its restriction was checked at the start of
    /// the search.
    pub fn denies_reading(&self, path: &Path) -> bool {
        let denied = self.rules(RuleKind::Deny).iter().any(|(rules, _)| {
            rules.for_path(RuleKind::Deny, path, self, is_about_reading).is_some()
        });
        denied || ["Grep", "Glob"].iter().all(|tool| confinement::keeps_away(self, tool, path))
    }

    /// The deny rule for the Read tool that matches this path. A rule that takes the whole tool is about no path.
    pub fn read_denial(&self, path: &Path) -> Option<&Rule> {
        let is_read = |rule: &Rule| rule.tool.name() == Some("Read");
        self.rules(RuleKind::Deny)
            .into_iter()
            .find_map(|(rules, _)| rules.for_path(RuleKind::Deny, path, self, is_read))
    }

    /// Whether a deny or ask rule about reading, or with `writes` about editing, matches this path.
    pub(crate) fn guards(&self, path: &Path, writes: bool) -> bool {
        [RuleKind::Deny, RuleKind::Ask].into_iter().any(|kind| {
            let means = |rule: &Rule| match rule.tool.name() {
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

    /// The locations at which deny rules keep files from being read or changed: for a sandbox, which can hold a whole
    /// process to them.
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
                    DenyLocation::Below(directory) => {
                        places.search.extend((reads || writes).then_some(directory));
                    }
                    DenyLocation::Path(path) if reads => places.read.push(path),
                    DenyLocation::Path(path) => places.write.extend(writes.then_some(path)),
                }
            }
        }
        places
    }

    /// The rule about fetching from the host of this address.
    pub fn host_rule(&self, url: &Url) -> HostRule {
        let Some(host) = Host::of(url.as_str()) else { return HostRule::Taken };
        let is_meant = |kind: RuleKind, fits: &dyn Fn(&DomainPattern) -> bool| {
            self.rules(kind).into_iter().any(|(rules, _)| {
                let fits = |rule: &Rule| match &rule.specifier {
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

    /// Whether some rule keeps certain files from being read: a search through a tree could bypass it.
    pub(crate) fn guards_files(&self) -> bool {
        [&self.deny, &self.ask, &self.role.deny].iter().any(|rules| rules.guards_reading())
    }

    /// Whether some ask or deny rule is about commands or about paths.
    pub(crate) fn guards_commands(&self) -> bool {
        [&self.deny, &self.ask, &self.role.deny]
            .iter()
            .any(|rules| rules.has_commands() || rules.has_paths())
    }

    /// The rules of one kind with their layers.
    pub(crate) fn rules(&self, kind: RuleKind) -> [(&RuleSet, Layer); 2] {
        static NONE: std::sync::LazyLock<RuleSet> = std::sync::LazyLock::new(RuleSet::default);
        match kind {
            RuleKind::Allow => [(&self.allow, Layer::Ceiling), (&self.role.allow, Layer::Role)],
            RuleKind::Ask => [(&self.ask, Layer::Ceiling), (&*NONE, Layer::Role)],
            RuleKind::Deny => [(&self.deny, Layer::Ceiling), (&self.role.deny, Layer::Role)],
        }
    }
}

fn is_about_reading(rule: &Rule) -> bool {
    matches!(rule.tool.name(), Some("Read" | "Grep" | "Glob"))
}

fn is_about_writing(rule: &Rule) -> bool {
    matches!(rule.tool.name(), Some("Edit" | "Write" | "NotebookEdit" | "MultiEdit"))
}

/// The locations in the file system at which deny rules take effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeniedPlaces {
    /// Not readable, with everything below.
    pub read: Vec<PathBuf>,
    /// Not writable, with everything below.
    pub write: Vec<PathBuf>,
    /// Directories below which patterns match paths that only a search can find.
    pub search: Vec<PathBuf>,
    /// The patterns of those rules: the base of each, and its glob over the paths below.
    pub patterns: Vec<(PathBuf, String)>,
    /// Whether nothing at all may be read, which no sandbox can enforce for a command.
    pub all_reading: bool,
}

/// The rule about a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRule {
    /// A rule denies it, or asks a person.
    Taken,
    /// A rule allows this host by its name, and no other host.
    Named,
    Unnamed,
}

/// A call to judge.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub access: &'a Access,
    /// The path of [`Access`] as the caller named it, absolute but with its links: an ask or deny rule holds if it
    /// matches either, an allow rule only if it matches both.
    pub named: Option<&'a Path>,
    /// The model's input, for rules about parameters, agents and skills.
    pub input: Option<&'a RawValue>,
    /// All names of the agent that the call would start or resume, or of the skill that it would invoke, where they are
    /// known.
    pub meant: &'a [String],
    /// Resolves the paths in shell commands.
    pub links: &'a dyn Links,
}

impl<'a> Call<'a> {
    /// A call without links and without input.
    pub fn new(tool: &'a str, access: &'a Access) -> Self {
        Self { tool, access, named: None, input: None, meant: &[], links: &NoLinks }
    }
}
