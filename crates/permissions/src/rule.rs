//! A permission rule as a person writes it: `Tool` or `Tool(specifier)`.
//!
//! A rule is parsed once, here, and keeps its origin. `query` decides which calls it matches.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::domain_pattern::DomainPattern;
use crate::names::{AgentNames, PeerPattern, SkillPattern};
use crate::origin::{RuleOrigin, RuleSource};
use crate::parameter::{Parameter, names_parameter};
use crate::path_pattern::PathPattern;
use crate::powershell::StatementPattern;
use crate::shell::{CommandPattern, is_interpreter, is_package_runner};
use crate::tool_name::{ToolPattern, is_known};

/// The effect of a matching rule.
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

/// A rule that cannot be parsed.
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
    #[error("permission rule `{0}` is neither a text nor an object with `tool` and `args`")]
    NotARule(String),
}

/// The reason that a well-formed rule does less than its author may expect, or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleWarning {
    #[error(
        "allow rule {0} is ignored: `*` in a tool's name is allowed only after `mcp__server__`"
    )]
    WideAllow(RuleSource),
    #[error("allow rule {0} is ignored: only ask and deny rules look at a parameter of a call")]
    ParameterInAllow(RuleSource),
    #[error("{kind} rule {rule} is ignored: name the command, the path or the host itself")]
    PrimaryParameter { kind: RuleKind, rule: RuleSource },
    #[error("{kind} rule {rule} is ignored: this tool has no part that a rule can name")]
    NoSpecifierHere { kind: RuleKind, rule: RuleSource },
    #[error(
        "allow rule {rule} lets only {tool} through: `{instead}` covers every tool and command"
    )]
    OneToolOnly { rule: RuleSource, tool: String, instead: String },
    #[error("{kind} rule {rule} names a tool that does not exist")]
    UnknownTool { kind: RuleKind, rule: RuleSource },
}

/// The calls of a tool that a rule matches.
#[derive(Clone, Debug)]
pub(crate) enum Specifier {
    Every,
    Command(CommandPattern),
    /// A command of PowerShell.
    Statement(StatementPattern),
    Path(PathPattern),
    Domain(DomainPattern),
    Parameter(Parameter),
    Agent(AgentNames),
    Skill(SkillPattern),
    /// Another session as the recipient of a message.
    Peer(PeerPattern),
    /// Matches nothing, whatever the rule's kind.
    Never(Never),
}

/// The reason that a specifier matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Never {
    /// It names the parameter that has its own form of rule.
    Primary,
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
    /// Parses one rule.
    pub fn parse(text: &str, origin: RuleOrigin) -> Result<Self, RuleError> {
        let text = text.trim();
        let (name, inner) = split(text)?;
        let tool = ToolPattern::parse(name);
        let specifier = match inner {
            None | Some("*") => Specifier::Every,
            Some(inner) => specifier(&tool, inner, text, &origin)?,
        };
        Ok(Self { tool, specifier, source: RuleSource { origin, text: text.to_owned() } })
    }

    /// Parses a list of rules, separated by commas or spaces outside parentheses.
    pub fn parse_list(text: &str, origin: &RuleOrigin) -> Result<Vec<Self>, RuleError> {
        list_items(text).into_iter().map(|item| Self::parse(item, origin.clone())).collect()
    }

    /// Parses a rule from settings: a text, or an object such as `{"tool": "Agent", "args": "Explore"}`.
    pub fn from_value(value: &Value, origin: RuleOrigin) -> Result<Self, RuleError> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Object(fields) => {
                let args = match fields.get("args") {
                    None | Some(Value::Null) => None,
                    Some(Value::String(args)) => Some(args),
                    Some(_) => return Err(RuleError::NotARule(value.to_string())),
                };
                match (fields.get("tool"), args) {
                    (Some(Value::String(tool)), Some(args)) => format!("{tool}({args})"),
                    (Some(Value::String(tool)), None) => tool.clone(),
                    _ => return Err(RuleError::NotARule(value.to_string())),
                }
            }
            _ => return Err(RuleError::NotARule(value.to_string())),
        };
        Self::parse(&text, origin)
    }

    pub fn source(&self) -> &RuleSource {
        &self.source
    }

    /// The same rule about every file there is, where rules of its tool are about paths. Unlike the whole tool, it binds
    /// commands and other tools, too.
    pub fn about_all_files(&self) -> Option<Self> {
        let rule = Self::parse(&format!("{}(//**)", self.tool.name()?), self.source.origin.clone());
        rule.ok().filter(|rule| matches!(rule.specifier, Specifier::Path(_)))
    }

    /// The reason that the rule does less than it seems to say as a rule of this kind, if so. A person should see it.
    pub fn warning(&self, kind: RuleKind) -> Option<RuleWarning> {
        if !self.tool.may(kind) {
            return Some(RuleWarning::WideAllow(self.source.clone()));
        }
        let rule = self.source.clone();
        match self.specifier {
            Specifier::Parameter(_) if kind == RuleKind::Allow => {
                Some(RuleWarning::ParameterInAllow(rule))
            }
            Specifier::Never(Never::Primary) => Some(RuleWarning::PrimaryParameter { kind, rule }),
            Specifier::Never(Never::NoPart) => Some(RuleWarning::NoSpecifierHere { kind, rule }),
            Specifier::Path(_) if kind == RuleKind::Allow => self.one_tool_only(),
            _ => None,
        }
    }

    /// A warning that an allow rule names paths for only one of several tools that do the same, if so.
    fn one_tool_only(&self) -> Option<RuleWarning> {
        let tool = self.tool.name()?;
        let general = match tool {
            "Write" | "NotebookEdit" => "Edit",
            "Glob" | "Grep" => "Read",
            _ => return None,
        };
        let rule = self.source.clone();
        let (_, paths) = rule.text.split_once('(')?;
        let instead = format!("{general}({paths}");
        Some(RuleWarning::OneToolOnly { tool: tool.to_owned(), instead, rule })
    }

    /// The warning that an ask or deny rule names an unknown tool. A name with `_` or `*` may belong to a tool that
    /// comes later.
    pub fn unknown_tool(&self, kind: RuleKind) -> Option<RuleWarning> {
        let name = self.tool.name().filter(|name| !name.contains('_'))?;
        (kind != RuleKind::Allow && !is_known(name))
            .then(|| RuleWarning::UnknownTool { kind, rule: self.source.clone() })
    }

    /// Whether an allow rule permits almost anything: whole tools that run programs, interpreters, programs that run
    /// packages.
    pub(crate) fn is_broad(&self) -> bool {
        match (&self.specifier, self.tool.name()) {
            (Specifier::Every, Some("Bash" | "Monitor" | "Agent" | "PowerShell"))
            | (Specifier::Agent(_), _) => true,
            (Specifier::Statement(pattern), _) => pattern.is_broad(),
            (Specifier::Command(pattern), _) if !pattern.is_exact() => pattern
                .program()
                .is_none_or(|program| is_interpreter(program) || is_package_runner(program)),
            _ => false,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source.text)
    }
}

/// The tool's name and the text between the parentheses.
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
    // A server's name may contain a space.
    let is_split = name.contains(char::is_whitespace) && !name.starts_with("mcp__");
    if name.contains([',', ')']) || is_split {
        return Err(RuleError::BadName(text.to_owned()));
    }
    match inner.map(str::trim) {
        Some("") => Err(RuleError::EmptySpecifier(text.to_owned())),
        inner => Ok((name, inner)),
    }
}

/// The number of parentheses that are open at the end, or `None` if one closes that was never opened. A backslash
/// escapes the next character.
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
        // An open parenthesis keeps its commas and spaces.
        if depth(item).is_none_or(|open| open == 0) {
            items.push(item);
            start = index + character.len_utf8();
        }
    }
    items.push(text.get(start..).unwrap_or_default());
    items.retain(|item| !item.is_empty());
    items
}

fn specifier(
    tool: &ToolPattern,
    inner: &str,
    text: &str,
    origin: &RuleOrigin,
) -> Result<Specifier, RuleError> {
    match tool.name() {
        // Its own form contains a colon, too.
        Some("WebFetch") => match inner.strip_prefix("domain:").map(str::trim) {
            None | Some("") => Err(RuleError::NoHost(text.to_owned())),
            Some("*") => Ok(Specifier::Every),
            Some(host) => Ok(Specifier::Domain(DomainPattern::parse(host))),
        },
        // So does an address.
        Some("SendMessage") if let Some(peers) = PeerPattern::parse(inner) => {
            Ok(Specifier::Peer(peers))
        }
        name if names_parameter(name, inner) => Ok(match Parameter::parse(inner) {
            Some(parameter) if !parameter.is_primary() => Specifier::Parameter(parameter),
            _ => Specifier::Never(Never::Primary),
        }),
        Some("Bash") => Ok(Specifier::Command(CommandPattern::parse(inner))),
        Some("PowerShell") => Ok(Specifier::Statement(StatementPattern::parse(inner))),
        Some(name @ ("Read" | "Edit" | "Write" | "NotebookEdit" | "Glob" | "Grep" | "Cd")) => {
            let pattern = match name {
                "Cd" => PathPattern::parse_anchored(inner, origin.root()),
                _ => PathPattern::parse(inner, origin.root()),
            };
            pattern.map(Specifier::Path).map_err(|error| RuleError::BadPattern {
                rule: text.to_owned(),
                reason: error.kind().to_string(),
            })
        }
        Some("Agent") => Ok(Specifier::Agent(AgentNames::parse(inner))),
        Some("Skill") => Ok(Specifier::Skill(SkillPattern::parse(inner))),
        _ => Ok(Specifier::Never(Never::NoPart)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::RuleLevel;

    fn parse(text: &str) -> Result<Rule, RuleError> {
        Rule::parse(text, RuleOrigin::Flag)
    }

    #[test]
    fn a_rule_keeps_where_it_came_from() {
        let rule = parse("  Bash(git log *) ").unwrap();
        assert_eq!(rule.source().origin, RuleOrigin::Flag);
        assert_eq!(rule.source().text, "Bash(git log *)");
        let file = RuleOrigin::Settings {
            level: RuleLevel::Managed,
            file: "/etc/centurion/settings.json".into(),
            line: Some(7),
            root: "/etc/centurion".into(),
        };
        let rule = Rule::parse("Read", file).unwrap();
        assert_eq!(rule.source().to_string(), "`Read` from /etc/centurion/settings.json:7");
        assert_eq!(rule.source().origin.level(), RuleLevel::Managed);
        assert_eq!(rule.source().origin.line(), Some(7));
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
        use RuleKind::{Allow, Deny};
        for (text, kind, said) in [
            (
                "Agent(model:opus)",
                Allow,
                "allow rule `Agent(model:opus)` from the command line is ignored: \
                 only ask and deny rules look at a parameter of a call",
            ),
            (
                "Bash(command: rm)",
                Deny,
                "deny rule `Bash(command: rm)` from the command line is ignored: \
                 name the command, the path or the host itself",
            ),
            (
                "WebSearch(rust)",
                Deny,
                "deny rule `WebSearch(rust)` from the command line is ignored: \
                 this tool has no part that a rule can name",
            ),
            (
                "Write(src/**)",
                Allow,
                "allow rule `Write(src/**)` from the command line lets only Write through: \
                 `Edit(src/**)` covers every tool and command",
            ),
            (
                "Grep(//srv/(a)/**)",
                Allow,
                "allow rule `Grep(//srv/(a)/**)` from the command line lets only Grep through: \
                 `Read(//srv/(a)/**)` covers every tool and command",
            ),
        ] {
            let warning = parse(text).unwrap().warning(kind).map(|warning| warning.to_string());
            assert_eq!(warning.as_deref(), Some(said), "{text}");
        }
        for text in [
            "Agent",
            "Agent(*)",
            "Agent(Explore)",
            "Agent(model:opus)",
            "Skill(review *)",
            "Bash(git:*)",
            "Bash(timeout:*)",
            "Bash(run_in_background:true)",
            "Read(a:b)",
            "mcp__git__push(to:x)",
            "Write(src/**)",
            "PowerShell(ls *)",
            "Cd(~/work/*)",
        ] {
            assert_eq!(parse(text).unwrap().warning(Deny), None, "{text}");
        }
    }

    #[test]
    fn tools_that_do_not_exist_are_reported_where_it_matters() {
        use RuleKind::{Allow, Ask, Deny};
        for (text, kind, warned) in [
            ("Bash", Deny, false),
            ("Task", Deny, false),
            ("Bsh", Deny, true),
            ("Bsh(ls)", Ask, true),
            ("Bsh", Allow, false),
            ("mcp__git__push", Deny, false),
            ("B*", Deny, false),
            ("PowerShell(ls)", Deny, false),
            ("Cd(/srv)", Deny, false),
            ("LSP", Ask, false),
            ("KillShell", Deny, false),
        ] {
            let warning = parse(text).unwrap().unknown_tool(kind);
            assert_eq!(warning.is_some(), warned, "{kind} {text}");
        }
    }

    #[test]
    fn settings_hold_rules_as_texts_or_objects() {
        // D-22
        for (json, expected) in [
            (r#""Bash(ls *)""#, Some("Bash(ls *)")),
            (r#"{"tool":"Task","args":"Explore"}"#, Some("Task(Explore)")),
            (r#"{"tool":"Read"}"#, Some("Read")),
            (r#"{"tool":"Read","args":null}"#, Some("Read")),
            (r#"{"args":"x"}"#, None),
            (r#"{"tool":"Read","args":[1]}"#, None),
            ("7", None),
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            let rule = Rule::from_value(&value, RuleOrigin::Flag).ok().map(|rule| rule.to_string());
            assert_eq!(rule.as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn rules_that_allow_almost_anything_are_known() {
        for (text, broad) in [
            ("Bash", true),
            ("Bash(*)", true),
            ("Bash(* --version)", true),
            ("Bash(python3 *)", true),
            ("Bash(npx *)", true),
            ("Bash(npm run *)", true),
            ("Bash(npm run lint)", false),
            ("Bash(git log *)", false),
            ("PowerShell", true),
            ("PowerShell(iex *)", true),
            ("PowerShell(i*)", true),
            ("PowerShell(ls *)", false),
            ("Agent", true),
            ("Agent(Explore)", true),
            ("Read", false),
            ("Edit(src/**)", false),
        ] {
            assert_eq!(parse(text).unwrap().is_broad(), broad, "{text}");
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
            ("Bash(timeout: 5)", Deny, false),
            ("Bash(timeout: 5)", Allow, true),
        ] {
            assert_eq!(parse(text).unwrap().warning(kind).is_some(), warned, "{kind} {text}");
        }
    }
}
