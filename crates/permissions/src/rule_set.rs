//! Rules of one kind, indexed once so that a decision examines only the rules that may match.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::beginnings::Beginnings;
use crate::path_pattern::PathIndex;
use crate::policy::Policy;
use crate::rule::{Rule, RuleKind, Specifier};
use crate::shell::{Part, Shape};
use crate::tool_name::{ToolPattern, canonical, server_of};

/// The allow, the ask or the deny rules of a policy.
///
/// Made from a list of rules with `into()`, and behaves like one. The order only decides which of several matching
/// rules is named as the reason: the first.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Rebuilt with each change, and shared by clones until then: a policy has several sets, and is cloned for each
    /// agent.
    index: Arc<Index>,
}

#[derive(Clone, Debug, Default)]
struct Index {
    /// Rules for one tool that are neither about commands nor about paths.
    by_tool: HashMap<String, Vec<usize>>,
    /// Rules for several tools of one MCP server.
    by_server: HashMap<String, Vec<usize>>,
    /// Rules for several other tools.
    wide: Vec<usize>,
    /// Rules about commands.
    commands: Beginnings,
    /// Rules about commands that match exactly one text.
    by_text: HashMap<String, usize>,
    paths: PathIndex,
    guards_reading: bool,
}

impl Index {
    fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (position, rule) in rules.iter().enumerate() {
            match (&rule.specifier, &rule.tool) {
                (Specifier::Path(_), tool) => index.guards_reading |= tool.name() == Some("Read"),
                (Specifier::Command(pattern), _) => {
                    if let Some(text) = pattern.exact() {
                        index.by_text.entry(text.to_owned()).or_insert(position);
                    }
                }
                (_, ToolPattern::Name(name)) => {
                    index.by_tool.entry(name.clone()).or_default().push(position);
                    // It may be a server with `__` in its name.
                    if let Some(server) = server_of(name) {
                        index.by_server.entry(server.to_owned()).or_default().push(position);
                    }
                }
                (_, tool) => match tool.server() {
                    Some(server) => {
                        index.by_server.entry(server.to_owned()).or_default().push(position);
                    }
                    None => index.wide.push(position),
                },
            }
        }
        index.commands = Beginnings::new(rules.iter().zip(0..).filter_map(|(rule, position)| {
            match &rule.specifier {
                Specifier::Command(pattern) => Some((pattern, position)),
                _ => None,
            }
        }));
        index.paths = PathIndex::new(rules.iter().enumerate().filter_map(|(position, rule)| {
            match &rule.specifier {
                Specifier::Path(pattern) => Some((position, pattern)),
                _ => None,
            }
        }));
        index
    }
}

impl RuleSet {
    pub fn push(&mut self, rule: Rule) {
        self.extend([rule]);
    }

    /// The first of these positions whose rule satisfies the condition.
    fn first(
        &self,
        positions: impl IntoIterator<Item = usize>,
        condition: impl Fn(&Rule) -> bool,
    ) -> Option<&Rule> {
        let fits = |position: usize| self.rules.get(position).is_some_and(&condition);
        let mut first = None;
        for position in positions {
            if first.is_none_or(|first| position < first) && fits(position) {
                first = Some(position);
            }
        }
        self.rules.get(first?)
    }

    /// The first rule for this tool, neither about commands nor about paths, that satisfies the condition.
    pub(crate) fn for_tool(
        &self,
        kind: RuleKind,
        tool: &str,
        condition: impl Fn(&Rule) -> bool,
    ) -> Option<&Rule> {
        let named = self.index.by_tool.get(canonical(tool)).into_iter().flatten();
        let server = server_of(tool).and_then(|server| self.index.by_server.get(server));
        let wide = server.into_iter().flatten().chain(&self.index.wide);
        self.first(named.chain(wide).copied(), |rule| {
            rule.tool.matches(kind, tool) && condition(rule)
        })
    }

    /// The first rule about commands that satisfies the condition, among those that may match a text.
    pub(crate) fn for_command(
        &self,
        text: &str,
        condition: impl Fn(&Rule) -> bool,
    ) -> Option<&Rule> {
        self.first(self.index.commands.of_text(text), |rule| {
            matches!(&rule.specifier, Specifier::Command(pattern) if pattern.fits(text))
                && condition(rule)
        })
    }

    /// The first rule about commands that may match a command with unknown words.
    pub(crate) fn for_command_shape(&self, shape: &Shape) -> Option<&Rule> {
        self.first(
            self.index.commands.of_shape(shape),
            |rule| matches!(&rule.specifier, Specifier::Command(pattern) if pattern.may_fit(shape)),
        )
    }

    /// The first rule about commands.
    pub(crate) fn first_command(&self) -> Option<&Rule> {
        self.iter().find(|rule| matches!(rule.specifier, Specifier::Command(_)))
    }

    /// The first rule about paths that matches a path of the shape and satisfies the condition.
    pub(crate) fn for_path_shape(
        &self,
        shape: &Shape,
        policy: &Policy,
        condition: impl Fn(&Rule) -> bool,
    ) -> Option<&Rule> {
        if self.index.paths.is_empty() {
            return None;
        }
        self.first(self.index.paths.owners_of_shape(shape, policy), condition)
    }

    /// The first rule about paths that matches a path below a directory and satisfies the condition.
    pub(crate) fn for_path_below(
        &self,
        directory: &Path,
        policy: &Policy,
        condition: impl Fn(&Rule) -> bool,
    ) -> Option<&Rule> {
        if self.index.paths.is_empty() {
            return None;
        }
        self.first(self.index.paths.owners_below(directory, policy), condition)
    }

    /// The rule about commands that permits one command of a line and satisfies the condition.
    pub(crate) fn for_part(
        &self,
        part: &Part<'_>,
        condition: impl Fn(&Rule) -> bool,
    ) -> Option<&Rule> {
        part.readings().find_map(|(text, word_for_word)| {
            self.for_command(text, |rule| {
                let exact = |rule: &Rule| {
                    matches!(&rule.specifier, Specifier::Command(pattern) if pattern.is_exact())
                };
                condition(rule) && (!word_for_word || exact(rule))
            })
        })
    }

    /// The rule about commands that matches exactly this text.
    pub(crate) fn for_exact_command(&self, text: &str) -> Option<&Rule> {
        self.rules.get(*self.index.by_text.get(text)?)
    }

    /// The first rule about paths that matches this path and satisfies the condition.
    pub(crate) fn for_path(
        &self,
        kind: RuleKind,
        path: &Path,
        policy: &Policy,
        condition: impl Fn(&Rule) -> bool,
    ) -> Option<&Rule> {
        if self.index.paths.is_empty() {
            return None;
        }
        self.first(self.index.paths.owners(kind, path, policy), condition)
    }

    pub(crate) fn has_paths(&self) -> bool {
        !self.index.paths.is_empty()
    }

    pub(crate) fn has_commands(&self) -> bool {
        !self.index.commands.is_empty()
    }

    /// Whether some rule is about reading files.
    pub(crate) fn guards_reading(&self) -> bool {
        self.index.guards_reading
    }
}

impl From<Vec<Rule>> for RuleSet {
    fn from(rules: Vec<Rule>) -> Self {
        Self { index: Arc::new(Index::new(&rules)), rules }
    }
}

impl FromIterator<Rule> for RuleSet {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        rules.into_iter().collect::<Vec<_>>().into()
    }
}

impl Extend<Rule> for RuleSet {
    fn extend<I: IntoIterator<Item = Rule>>(&mut self, rules: I) {
        self.rules.extend(rules);
        self.index = Arc::new(Index::new(&self.rules));
    }
}

impl Deref for RuleSet {
    type Target = [Rule];

    fn deref(&self) -> &[Rule] {
        &self.rules
    }
}
