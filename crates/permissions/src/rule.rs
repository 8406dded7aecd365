//! A permission rule as a person writes it: `Tool` or `Tool(specifier)`.
//!
//! A rule is read once, here, and keeps where it came from. What it matches is in `matching`.

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use crate::domain_pattern::DomainPattern;
use crate::parameter::names_parameter;
use crate::path_pattern::PathPattern;
use crate::shell::CommandPattern;
use crate::tool_name::ToolPattern;

/// What a matching rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleKind {
    Allow,
    Ask,
    Deny,
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

/// Who wrote a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleOrigin {
    /// A flag of the command line.
    Flag,
    /// An answer given while the session ran.
    Session,
    /// A settings file.
    File(PathBuf),
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("the command line"),
            Self::Session => f.write_str("this session"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Where a rule came from and how it was written there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RuleSource {
    pub origin: RuleOrigin,
    pub text: String,
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` from {}", self.text, self.origin)
    }
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleError {
    #[error("permission rule `{0}` names no tool")]
    NoTool(String),
    #[error("permission rule `{0}` has a parenthesis without its partner")]
    Unbalanced(String),
    #[error(
        "permission rule `{0}` has nothing between its parentheses: leave them out, or write `*`"
    )]
    EmptySpecifier(String),
    #[error("permission rule `{0}` has a tool name with a space, a comma or a parenthesis in it")]
    BadName(String),
    #[error("permission rule `{rule}` has a bad path pattern: {reason}")]
    BadPattern { rule: String, reason: String },
    #[error("permission rule `{0}` needs a host: write `WebFetch(domain:example.com)`")]
    NoHost(String),
}

/// Why a well-formed rule can never match.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleWarning {
    #[error(
        "allow rule {0} is ignored: `*` in a tool's name is allowed only after `mcp__server__`"
    )]
    WideAllow(RuleSource),
    #[error(
        "{kind} rule {rule} is ignored: rules cannot tell agents apart; `Agent` alone means all of them"
    )]
    SingleAgent { kind: RuleKind, rule: RuleSource },
    #[error(
        "{kind} rule {rule} is ignored: rules cannot tell skills apart; `Skill` alone means all of them"
    )]
    SingleSkill { kind: RuleKind, rule: RuleSource },
    #[error("{kind} rule {rule} is ignored: rules cannot look at a parameter of a call")]
    Parameter { kind: RuleKind, rule: RuleSource },
    #[error("{kind} rule {rule} is ignored: this tool has no part that a rule can name")]
    NoSpecifierHere { kind: RuleKind, rule: RuleSource },
}

/// Which calls of a tool a rule means.
#[derive(Clone, Debug)]
pub(crate) enum Specifier {
    Every,
    Command(CommandPattern),
    Path(PathPattern),
    Domain(DomainPattern),
    /// Matches nothing, whatever the rule's kind.
    Never(Never),
}

/// Why a specifier matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Never {
    /// It names an agent.
    Agent,
    /// It names a skill.
    Skill,
    /// It names a parameter of the call.
    Parameter,
    /// The tool's calls have no part that rules can name.
    NoPart,
}

/// A permission rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) tool: ToolPattern,
    pub(crate) specifier: Specifier,
    pub(crate) source: RuleSource,
}

impl Rule {
    /// Reads one rule.
    pub fn parse(text: &str, origin: RuleOrigin) -> Result<Self, RuleError> {
        let text = text.trim();
        let (name, inner) = split(text)?;
        let tool = ToolPattern::parse(name);
        let specifier = match inner {
            None | Some("*") => Specifier::Every,
            Some(inner) => specifier(&tool, inner, text)?,
        };
        Ok(Self { tool, specifier, source: RuleSource { origin, text: text.to_owned() } })
    }

    /// Reads rules that stand in one string, apart by commas or spaces outside parentheses.
    pub fn parse_list(text: &str, origin: &RuleOrigin) -> Result<Vec<Self>, RuleError> {
        list_items(text).into_iter().map(|item| Self::parse(item, origin.clone())).collect()
    }

    pub fn source(&self) -> &RuleSource {
        &self.source
    }

    /// Why the rule can never match as a rule of this kind, if so. A person should hear it.
    pub fn warning(&self, kind: RuleKind) -> Option<RuleWarning> {
        if !self.tool.may(kind) {
            return Some(RuleWarning::WideAllow(self.source.clone()));
        }
        let Specifier::Never(why) = self.specifier else { return None };
        let rule = self.source.clone();
        Some(match why {
            Never::Agent => RuleWarning::SingleAgent { kind, rule },
            Never::Skill => RuleWarning::SingleSkill { kind, rule },
            Never::Parameter => RuleWarning::Parameter { kind, rule },
            Never::NoPart => RuleWarning::NoSpecifierHere { kind, rule },
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source.text)
    }
}

/// The tool's name and what stands between the parentheses.
fn split(text: &str) -> Result<(&str, Option<&str>), RuleError> {
    if depth(text) != Some(0) {
        return Err(RuleError::Unbalanced(text.to_owned()));
    }
    let (name, inner) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let inner = rest.strip_suffix(')');
            (name, Some(inner.ok_or_else(|| RuleError::Unbalanced(text.to_owned()))?))
        }
    };
    if name.is_empty() {
        return Err(RuleError::NoTool(text.to_owned()));
    }
    if name.contains([',', ')']) || name.contains(char::is_whitespace) {
        return Err(RuleError::BadName(text.to_owned()));
    }
    match inner.map(str::trim) {
        Some("") => Err(RuleError::EmptySpecifier(text.to_owned())),
        inner => Ok((name, inner)),
    }
}

/// How many parentheses are open at the end, or nothing if one closes that was never opened. A
/// backslash takes the meaning from what follows.
fn depth(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                characters.next();
            }
            '(' => open += 1,
            ')' => open = open.checked_sub(1)?,
            _ => {}
        }
    }
    Some(open)
}

fn list_items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut start = 0;
    for (index, character) in text.char_indices() {
        if !(character == ',' || character.is_whitespace()) {
            continue;
        }
        let item = text.get(start..index).unwrap_or_default();
        // A parenthesis that is still open keeps its commas and spaces.
        if depth(item).is_none_or(|open| open == 0) {
            items.push(item);
            start = index + character.len_utf8();
        }
    }
    items.push(text.get(start..).unwrap_or_default());
    items.retain(|item| !item.is_empty());
    items
}

fn specifier(tool: &ToolPattern, inner: &str, text: &str) -> Result<Specifier, RuleError> {
    match tool.name() {
        // Its own form has a colon, too.
        Some("WebFetch") => match inner.strip_prefix("domain:").map(str::trim) {
            None | Some("") => Err(RuleError::NoHost(text.to_owned())),
            Some("*") => Ok(Specifier::Every),
            Some(host) => Ok(Specifier::Domain(DomainPattern::parse(host))),
        },
        name if names_parameter(name, inner) => Ok(Specifier::Never(Never::Parameter)),
        Some("Bash") => Ok(Specifier::Command(CommandPattern::parse(inner))),
        Some("Read" | "Edit" | "Write" | "NotebookEdit" | "Glob" | "Grep") => {
            PathPattern::parse(inner).map(Specifier::Path).map_err(|error| RuleError::BadPattern {
                rule: text.to_owned(),
                reason: error.kind().to_string(),
            })
        }
        Some("Agent") => Ok(Specifier::Never(Never::Agent)),
        Some("Skill") => Ok(Specifier::Never(Never::Skill)),
        _ => Ok(Specifier::Never(Never::NoPart)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Rule, RuleError> {
        Rule::parse(text, RuleOrigin::Flag)
    }

    #[test]
    fn a_rule_keeps_where_it_came_from() {
        let rule = parse("  Bash(git log *) ").unwrap();
        assert_eq!(rule.source().origin, RuleOrigin::Flag);
        assert_eq!(rule.source().text, "Bash(git log *)");
        let file = RuleOrigin::File(PathBuf::from("/etc/centurion/settings.json"));
        let rule = Rule::parse("Read", file).unwrap();
        assert_eq!(rule.source().to_string(), "`Read` from /etc/centurion/settings.json");
    }

    #[test]
    fn a_star_in_parentheses_means_every_call() {
        for text in ["Bash", "Bash(*)", "Bash( * )", "WebFetch(domain:*)", "Agent(*)"] {
            assert!(matches!(parse(text).unwrap().specifier, Specifier::Every), "{text}");
        }
    }

    #[test]
    fn broken_rules_say_what_is_wrong() {
        type Wrong = fn(String) -> RuleError;
        let cases: [(&str, Wrong); 13] = [
            ("", RuleError::NoTool),
            ("(ls)", RuleError::NoTool),
            ("Bash(ls", RuleError::Unbalanced),
            ("Bash ls)", RuleError::Unbalanced),
            ("Bash)", RuleError::Unbalanced),
            ("Bash(ls))", RuleError::Unbalanced),
            ("Bash((ls)", RuleError::Unbalanced),
            ("Bash(ls)x", RuleError::Unbalanced),
            ("Bash()", RuleError::EmptySpecifier),
            ("Bash(  )", RuleError::EmptySpecifier),
            ("Bash (ls)", RuleError::BadName),
            ("WebFetch(example.com)", RuleError::NoHost),
            ("WebFetch(domain:)", RuleError::NoHost),
        ];
        for (text, wrong) in cases {
            assert_eq!(parse(text).unwrap_err(), wrong(text.to_owned()), "{text}");
        }
        assert!(matches!(parse("Read(src/[a)"), Err(RuleError::BadPattern { .. })));
    }

    #[test]
    fn parentheses_may_nest_and_be_escaped() {
        for text in ["Bash(echo (a) b)", r"Bash(echo \))", r"Bash(echo \()"] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn lists_split_outside_parentheses() {
        for (text, expected) in [
            ("Bash(git log *), Read Edit", &["Bash(git log *)", "Read", "Edit"][..]),
            ("Read,Edit,,  Write", &["Read", "Edit", "Write"]),
            ("Bash(a, b (c, d) e) Read", &["Bash(a, b (c, d) e)", "Read"]),
            (r"Bash(a \( b) Read", &[r"Bash(a \( b)", "Read"]),
            ("Read\n\tEdit", &["Read", "Edit"]),
            ("", &[]),
            (" , ", &[]),
        ] {
            let rules = Rule::parse_list(text, &RuleOrigin::Flag).unwrap();
            let texts: Vec<_> = rules.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expected, "{text}");
        }
    }

    #[test]
    fn a_list_with_a_broken_rule_is_refused() {
        for text in ["Read, Bash(git log", "Read Bash (ls)", "Read) Edit"] {
            assert!(Rule::parse_list(text, &RuleOrigin::Flag).is_err(), "{text}");
        }
    }

    #[test]
    fn what_rules_cannot_name_is_said_plainly() {
        for (text, reason) in [
            ("Agent(Explore)", "rules cannot tell agents apart; `Agent` alone means all of them"),
            ("Task(a, b)", "rules cannot tell agents apart; `Agent` alone means all of them"),
            (
                "Agent(plugin:scan)",
                "rules cannot tell agents apart; `Agent` alone means all of them",
            ),
            ("Skill(review)", "rules cannot tell skills apart; `Skill` alone means all of them"),
            ("Skill(review *)", "rules cannot tell skills apart; `Skill` alone means all of them"),
            ("Agent(model:opus)", "rules cannot look at a parameter of a call"),
            ("Skill(args:x)", "rules cannot look at a parameter of a call"),
            ("Bash(run_in_background:true)", "rules cannot look at a parameter of a call"),
            ("Read(limit:5)", "rules cannot look at a parameter of a call"),
            ("mcp__git__push(remote:origin)", "rules cannot look at a parameter of a call"),
            ("WebSearch(rust)", "this tool has no part that a rule can name"),
        ] {
            let rule = parse(text).unwrap();
            for kind in [RuleKind::Allow, RuleKind::Ask, RuleKind::Deny] {
                let said = rule.warning(kind).map(|warning| warning.to_string());
                let expected =
                    format!("{kind} rule `{text}` from the command line is ignored: {reason}");
                assert_eq!(said, Some(expected), "{text}");
            }
        }
        for text in ["Agent", "Agent(*)", "Skill", "Bash(git:*)", "Bash(timeout:*)", "Read(a:b)"] {
            assert_eq!(parse(text).unwrap().warning(RuleKind::Deny), None, "{text}");
        }
    }

    #[test]
    fn rules_that_cannot_match_are_reported() {
        use RuleKind::{Allow, Ask, Deny};
        for (text, kind, warned) in [
            ("Bash(ls *)", Allow, false),
            ("mcp__git", Allow, false),
            ("mcp__git__*", Allow, false),
            ("mcp__*", Allow, true),
            ("*", Allow, true),
            ("*", Deny, false),
            ("mcp__*", Ask, false),
            ("WebSearch(rust)", Deny, true),
            ("mcp__git__log(x)", Deny, true),
        ] {
            assert_eq!(parse(text).unwrap().warning(kind).is_some(), warned, "{kind} {text}");
        }
    }
}
