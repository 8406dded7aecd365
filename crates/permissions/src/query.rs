//! Finds the rules that match a call.
//!
//! An allow rule must be certain to match, an ask or deny rule must not be bypassed: the same rule therefore matches
//! more as an ask or deny rule than as an allow rule.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::access::Access;
use crate::domain_pattern::Host;
use crate::links::PathKind;
use crate::mode::Mode;
use crate::path_pattern::DenyLocation;
use crate::paths::join;
use crate::policy::{Call, Layer, Policy};
use crate::powershell::{possible_paths, possible_statements, statements};
use crate::reason::MayMatch;
use crate::rule::{Rule, RuleKind, Specifier};
use crate::rule_set::RuleSet;
use crate::scene::Scene;
use crate::shell::{Analysis, Part, TreeUse, is_sink};
use crate::shell_verdict::{changes_nothing, is_read_only};
use crate::tool_name::canonical;

/// A call with the facts that are derived from it.
pub(crate) struct Query<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) call: &'a Call<'a>,
    pub(crate) scene: Scene<'a>,
    /// The command line, if the call is one.
    pub(crate) analysis: Option<Arc<Analysis>>,
    input: OnceCell<Option<Map<String, Value>>>,
    host: OnceCell<Option<Host>>,
    read_only: OnceCell<bool>,
}

/// A rule that matches, and its layer.
#[derive(Clone, Copy)]
pub(crate) struct RuleMatch<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) layer: Layer,
}

impl<'a> Query<'a> {
    pub(crate) fn new(policy: &'a Policy, call: &'a Call<'a>) -> Self {
        let analysis = match call.access {
            // There is no grammar for that shell here.
            Access::Shell(_) if canonical(call.tool) == "PowerShell" => None,
            Access::Shell(command) => Some(policy.readings.analysis(command, policy)),
            _ => None,
        };
        Self {
            policy,
            call,
            scene: Scene { policy, links: call.links },
            analysis,
            input: OnceCell::new(),
            host: OnceCell::new(),
            read_only: OnceCell::new(),
        }
    }

    /// Whether the call is a command line that only reads.
    pub(crate) fn is_read_only_command(&self) -> bool {
        *self.read_only.get_or_init(|| {
            self.analysis.as_ref().is_some_and(|analysis| is_read_only(analysis, self.scene))
        })
    }

    /// The ask or deny rule that matches this call.
    pub(crate) fn taken_by(&self, kind: RuleKind) -> Option<RuleMatch<'a>> {
        let policy = self.policy;
        policy
            .rules(kind)
            .into_iter()
            .find_map(|(rules, layer)| Some(RuleMatch { rule: self.takes(kind, rules)?, layer }))
    }

    /// The allow rule that matches this call as a whole.
    pub(crate) fn given_by(&self) -> Option<RuleMatch<'a>> {
        self.giving(|rules| {
            let fits = |rule: &Rule| self.counts(rule) && self.holds(RuleKind::Allow, rule);
            let tool = self.call.tool;
            rules
                .for_tool(RuleKind::Allow, tool, fits)
                .or_else(|| self.edit_rule(RuleKind::Allow, rules))
                .or_else(|| match &self.analysis {
                    Some(analysis) if self.has_commands() => {
                        rules.for_exact_command(analysis.text()).filter(|rule| self.counts(rule))
                    }
                    _ => self.paths_given_by(rules),
                })
        })
        .or_else(|| self.statements_given_by())
    }

    /// One of the allow rules that permit a command of PowerShell, if they permit each of its statements.
    fn statements_given_by(&self) -> Option<RuleMatch<'a>> {
        let Access::Shell(command) = self.call.access else { return None };
        if self.analysis.is_some() {
            return None;
        }
        let statement_given_by = |statement: &String| {
            let fits = |rule: &Rule| {
                let named = matches!(&rule.specifier, Specifier::Statement(pattern) if pattern.fits(statement));
                named && self.counts(rule)
            };
            self.giving(|rules| rules.for_tool(RuleKind::Allow, self.call.tool, fits))
        };
        let hits: Option<Vec<RuleMatch<'a>>> =
            statements(command)?.iter().map(statement_given_by).collect();
        hits?.first().copied()
    }

    /// The allow rule that permits one command of a command line.
    pub(crate) fn part_given_by(&self, part: &Part<'_>) -> Option<RuleMatch<'a>> {
        if !self.has_commands() {
            return None;
        }
        self.giving(|rules| rules.for_part(part, |rule| self.counts(rule)))
    }

    /// The allow rule that lets the shell open a file, by its name and by its target.
    pub(crate) fn file_given_by(&self, path: &Path, writes: bool) -> Option<RuleMatch<'a>> {
        self.giving(|rules| self.file_rule(rules, path, writes))
    }

    /// The rule among these that lets the shell open a file, by its name and by its target.
    pub(crate) fn file_rule<'r>(
        &self,
        rules: &'r RuleSet,
        path: &Path,
        writes: bool,
    ) -> Option<&'r Rule> {
        let name = |rule: &Rule| match rule.tool.name() {
            Some("Edit") => true,
            Some("Read") => !writes,
            _ => false,
        };
        let every = |rule: &Rule| matches!(rule.specifier, Specifier::Every);
        let tool = if writes { "Edit" } else { "Read" };
        let named = rules.for_tool(RuleKind::Allow, tool, every);
        named.or_else(|| {
            let spots = self.scene.spots(path);
            let given: Option<Vec<&Rule>> = spots
                .map(|spot| rules.for_path(RuleKind::Allow, &spot, self.policy, name))
                .collect();
            given?.pop()
        })
    }

    fn giving(&self, find: impl Fn(&'a RuleSet) -> Option<&'a Rule>) -> Option<RuleMatch<'a>> {
        if self.policy.mode == Mode::Bubble {
            return None;
        }
        let policy = self.policy;
        policy
            .rules(RuleKind::Allow)
            .into_iter()
            .find_map(|(rules, layer)| Some(RuleMatch { rule: find(rules)?, layer }))
    }

    /// Whether an allow rule is honoured in this mode.
    fn counts(&self, rule: &Rule) -> bool {
        self.policy.mode != Mode::Auto || !rule.is_broad()
    }

    /// Whether rules about commands concern this tool.
    fn has_commands(&self) -> bool {
        self.analysis.is_some() && matches!(canonical(self.call.tool), "Bash" | "Monitor")
    }

    fn takes(&self, kind: RuleKind, rules: &'a RuleSet) -> Option<&'a Rule> {
        rules
            .for_tool(kind, self.call.tool, |rule| self.holds(kind, rule))
            .or_else(|| self.edit_rule(kind, rules))
            .or_else(|| match &self.analysis {
                Some(analysis) => self
                    .command_taken_by(rules, analysis)
                    .or_else(|| self.mentioned_path_taken_by(kind, rules, analysis)),
                None => self.path_taken_by(kind, rules).or_else(|| self.word_taken_by(kind, rules)),
            })
    }

    /// The path rule that matches a word of a PowerShell command.
    fn word_taken_by(&self, kind: RuleKind, rules: &'a RuleSet) -> Option<&'a Rule> {
        let Access::Shell(command) = self.call.access else { return None };
        if !rules.has_paths() {
            return None;
        }
        let concerned = |rule: &Rule| matches!(rule.tool.name(), Some("Read" | "Edit"));
        possible_paths(command).iter().find_map(|word| {
            let path = join(&self.policy.cwd, word);
            let mut spots = self.scene.spots(&path);
            spots.find_map(|spot| rules.for_path(kind, &spot, self.policy, concerned))
        })
    }

    /// Whether a person moves the session to another directory.
    pub(crate) fn is_entry(&self) -> bool {
        self.call.tool == "Cd"
    }

    /// Whether a rule of this call's tool that is neither about commands nor about paths matches it.
    pub(crate) fn holds(&self, kind: RuleKind, rule: &Rule) -> bool {
        let input = || self.input().map_or(&EMPTY as &Map<_, _>, |input| input);
        match (&rule.specifier, self.call.access) {
            (Specifier::Every, _) => true,
            (Specifier::Domain(pattern), Access::Network(url)) => {
                let host = self.host.get_or_init(|| Host::of(url)).as_ref();
                host.is_some_and(|host| pattern.matches(host))
            }
            (Specifier::Parameter(parameter), _) => {
                kind != RuleKind::Allow && parameter.fits(input())
            }
            (Specifier::Statement(pattern), Access::Shell(command)) => {
                // Allow rules are matched against each statement by itself.
                kind != RuleKind::Allow
                    && possible_statements(command).iter().any(|text| pattern.fits(text))
            }
            (Specifier::Agent(names), _) => names.fit(input(), self.call.meant),
            (Specifier::Peer(pattern), _) => pattern.fits(input()),
            (Specifier::Skill(pattern), _) => {
                pattern.fits(input(), self.call.meant, kind == RuleKind::Allow)
            }
            _ => false,
        }
    }

    fn input(&self) -> Option<&Map<String, Value>> {
        self.input.get_or_init(|| serde_json::from_str(self.call.input?.get()).ok()).as_ref()
    }

    /// The rule `Edit` without a path covers every tool that writes files, and the files that the shell itself writes.
    fn edit_rule(&self, kind: RuleKind, rules: &'a RuleSet) -> Option<&'a Rule> {
        let writes = match (self.call.access, &self.analysis) {
            (Access::Write(_), _) => true,
            (_, Some(analysis)) if kind != RuleKind::Allow => {
                let commands = analysis.all_commands();
                let mut redirections = commands.flat_map(|command| &command.redirections);
                redirections.any(|redirection| {
                    let target = redirection.target.value.as_deref();
                    redirection.writes && !target.is_some_and(is_sink)
                })
            }
            _ => false,
        };
        let every = |rule: &Rule| {
            matches!(rule.specifier, Specifier::Every) && rule.tool.name() == Some("Edit")
        };
        if writes { rules.for_tool(kind, "Edit", every) } else { None }
    }

    fn command_taken_by(&self, rules: &'a RuleSet, analysis: &Analysis) -> Option<&'a Rule> {
        if !self.has_commands() || !rules.has_commands() {
            return None;
        }
        analysis.view_texts().find_map(|text| rules.for_command(text, |_| true))
    }

    /// The ask or deny rule that may match this command line although its text does not tell, and the reason of the
    /// doubt.
    pub(crate) fn may_be_taken_by(&self, kind: RuleKind) -> Option<(RuleMatch<'a>, MayMatch)> {
        let analysis = self.analysis.as_ref()?;
        self.policy.rules(kind).into_iter().find_map(|(rules, layer)| {
            let found = self
                .command_may_be_taken_by(rules, analysis)
                .or_else(|| self.path_may_be_taken_by(rules, analysis));
            found.map(|(rule, why)| (RuleMatch { rule, layer }, why))
        })
    }

    fn command_may_be_taken_by(
        &self,
        rules: &'a RuleSet,
        analysis: &Analysis,
    ) -> Option<(&'a Rule, MayMatch)> {
        if !self.has_commands() || !rules.has_commands() {
            return None;
        }
        if let Some(why) = analysis.opaque() {
            return Some((rules.first_command()?, MayMatch::Unclear(why)));
        }
        let shaped = analysis.shapes().iter().find_map(|shape| rules.for_command_shape(shape));
        let named = || analysis.possible_texts().find_map(|text| rules.for_command(text, |_| true));
        shaped.or_else(named).map(|rule| (rule, MayMatch::Command))
    }

    fn path_may_be_taken_by(
        &self,
        rules: &'a RuleSet,
        analysis: &Analysis,
    ) -> Option<(&'a Rule, MayMatch)> {
        if !rules.has_paths() {
            return None;
        }
        let mentions = analysis.mentions();
        if let Some(why) = analysis.hides_paths() {
            let mut paths =
                rules.iter().filter(|rule| matches!(rule.specifier, Specifier::Path(_)));
            return paths
                .find(|rule| concerns(rule, true))
                .map(|rule| (rule, MayMatch::Unclear(why)));
        }
        let unknown = mentions.unknown().iter().find_map(|path| {
            let concerned = |rule: &Rule| concerns(rule, path.may_be_written);
            rules.for_path_shape(&path.shape, self.policy, concerned)
        });
        let below = || {
            mentions.trees().iter().find_map(|tree| {
                self.scene.spots(&tree.path).find_map(|spot| {
                    rules
                        .for_path_below(&spot, self.policy, |rule| {
                            concerns(rule, tree.used.is_written)
                        })
                        .or_else(|| self.found_below(rules, &spot, tree.used))
                })
            })
        };
        let rule = unknown.or_else(below)?;
        Some((rule, MayMatch::Path))
    }

    /// The rule that matches a file further down in a directory that a command reads as a whole. Where there is too
    /// much to search, any rule may match.
    fn found_below(&self, rules: &'a RuleSet, directory: &Path, used: TreeUse) -> Option<&'a Rule> {
        const MOST: usize = 20_000;
        let concerned = |rule: &Rule| concerns(rule, used.is_written);
        let looks_here = |rule: &Rule| match &rule.specifier {
            Specifier::Path(pattern) => pattern.spots(self.policy).iter().any(|spot| match spot {
                DenyLocation::Below(top) => {
                    directory.starts_with(top) || top.starts_with(directory)
                }
                DenyLocation::Path(_) => false,
            }),
            _ => false,
        };
        let mut all = rules.iter();
        let first = all.find(|rule| concerned(rule) && (used.follows || looks_here(rule)))?;
        if self.scene.links.kind(directory) != PathKind::Directory {
            return None;
        }
        let Some(below) = self.scene.links.tree(directory, MOST) else { return Some(first) };
        let named = below
            .iter()
            .find_map(|path| rules.for_path(RuleKind::Deny, path, self.policy, concerned));
        named.or_else(|| {
            let mut links = below
                .iter()
                .filter(|path| used.follows && self.scene.links.kind(path) == PathKind::Link);
            links.find_map(|link| {
                let target = self.scene.links.resolve(link);
                let once = TreeUse { follows: false, ..used };
                rules
                    .for_path(RuleKind::Deny, &target, self.policy, concerned)
                    .or_else(|| rules.for_path_below(&target, self.policy, concerned))
                    .or_else(|| self.found_below(rules, &target, once))
            })
        })
    }

    fn mentioned_path_taken_by(
        &self,
        kind: RuleKind,
        rules: &'a RuleSet,
        analysis: &Analysis,
    ) -> Option<&'a Rule> {
        if !rules.has_paths() {
            return None;
        }
        let changes = OnceCell::new();
        let changes = || *changes.get_or_init(|| !changes_nothing(analysis, self.scene));
        let concerned = |rule: &Rule| match rule.tool.name() {
            Some("Read") => true,
            Some("Edit") => changes(),
            _ => false,
        };
        let named = analysis.mentions().paths().iter().find_map(|path| {
            let mut spots = self.scene.spots(path);
            spots.find_map(|spot| rules.for_path(kind, &spot, self.policy, concerned))
        });
        named.or_else(|| {
            analysis.mentions().patterns().iter().find_map(|path| {
                let concerned = |rule: &Rule| concerns(rule, path.may_be_written);
                if let Some(text) = path.shape.text() {
                    return self
                        .scene
                        .spots(Path::new(&text))
                        .find_map(|spot| rules.for_path(kind, &spot, self.policy, concerned));
                }
                rules.for_path_shape(&path.shape, self.policy, concerned).or_else(|| {
                    let matches = self.scene.matches(&path.shape).unwrap_or_default();
                    matches
                        .iter()
                        .flat_map(|path| self.scene.spots(path))
                        .find_map(|spot| rules.for_path(kind, &spot, self.policy, concerned))
                })
            })
        })
    }

    /// The paths of a call that reads or writes one file: its target, and its name.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'a Path> {
        let resolved = match self.call.access {
            Access::Read(path) | Access::Write(path) => Some(path.as_path()),
            Access::Session | Access::Shell(_) | Access::Network(_) | Access::External { .. } => {
                None
            }
        };
        let named = self.call.named.filter(|_| resolved.is_some());
        resolved.into_iter().chain(named)
    }

    fn path_taken_by(&self, kind: RuleKind, rules: &'a RuleSet) -> Option<&'a Rule> {
        let covers = |rule: &Rule| self.covers(kind, rule);
        self.paths().find_map(|path| rules.for_path(kind, path, self.policy, covers))
    }

    fn paths_given_by(&self, rules: &'a RuleSet) -> Option<&'a Rule> {
        let covers = |rule: &Rule| self.covers(RuleKind::Allow, rule);
        let mut given = None;
        for path in self.paths() {
            let rule = rules.for_path(RuleKind::Allow, path, self.policy, covers)?;
            given.get_or_insert(rule);
        }
        given
    }

    /// Whether a path rule of one tool concerns this call. `Edit` covers every write, `Read` every read; permission to
    /// edit includes reading, and a denial of reading includes editing.
    fn covers(&self, kind: RuleKind, rule: &Rule) -> bool {
        let gives = kind == RuleKind::Allow;
        let tool = canonical(self.call.tool);
        match (rule.tool.name(), self.call.access) {
            (Some(name), _) if self.is_entry() => name == "Cd",
            (Some("Edit"), Access::Write(_)) | (Some("Read"), Access::Read(_)) => true,
            (Some("Edit"), Access::Read(_)) => gives,
            (Some("Read"), Access::Write(_)) => !gives && tool != "NotebookEdit",
            (Some(name), _) => name == tool,
            (None, _) => false,
        }
    }
}

/// Whether a rule about paths concerns a path that a command reads, or writes.
fn concerns(rule: &Rule, is_written: bool) -> bool {
    match rule.tool.name() {
        Some("Read") => true,
        Some("Edit") => is_written,
        _ => false,
    }
}

static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
