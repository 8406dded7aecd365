//! The reason that a call was allowed, asked about or denied.
//!
//! A reason is data; its text is for the model that made the call and for the person who is asked.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::mode::Mode;
use crate::origin::RuleSource;
use crate::rule::RuleKind;
use crate::shell::Unclear;

/// The reason that a rule may match a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayMatch {
    /// The command may run anything.
    Unclear(Unclear),
    /// It may run a command that the rule matches.
    Command,
    /// It may touch a path that the rule matches.
    Path,
}

impl fmt::Display for MayMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclear(why) => why.fmt(f),
            Self::Command => f.write_str("it may run a command that the rule means"),
            Self::Path => f.write_str("it may read or write a path that the rule means"),
        }
    }
}

/// The reason of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rule matched this call.
    Rule { kind: RuleKind, source: RuleSource },
    /// A deny rule denies the whole tool.
    NotOffered(RuleSource),
    /// The agent's definition restricts the tool to these rules, and none of them matches the call.
    Confined { tool: String, rules: Vec<RuleSource> },
    /// The agent may only look, and the call could change something.
    OnlyReads,
    /// File tools reach the working directories alone, and the path is outside of them.
    Outside(PathBuf),
    /// The agent works apart, and the path is in the other checkout.
    Apart { path: PathBuf, instead: PathBuf },
    /// The agent works apart, and git obeys the file at the path.
    Kept(PathBuf),
    /// The mode decides about calls of this kind.
    Mode(Mode),
    /// In `dontAsk`, a question becomes a denial.
    NotAsked(Box<Reason>),
    /// Allow rules list the directories that the session may enter, and this is none of them.
    NotListed,
    /// The call touches only the session.
    SessionOnly,
    /// The call is about the agent's own memory.
    Memory,
    /// The call reads inside the working directories.
    ReadInside,
    /// The call reads a path that is readable without being in a working directory.
    ReadOpen,
    /// The command is known to change nothing.
    ReadOnlyCommand,
    /// The call reads outside the working directories.
    ReadOutside(PathBuf),
    /// The call writes to a path that later steps may run.
    ProtectedPath(PathBuf),
    /// The command removes a critical directory, such as the root or a home.
    CriticalRemoval(String),
    /// The command changes a checkout in which others work, too.
    SharedTree { command: String, checkout: PathBuf, others: String },
    /// Nothing allows this write.
    Write(PathBuf),
    /// Nothing allows this command.
    Command(String),
    /// The command cannot be read, so no rule allows it.
    Unreadable { command: String, why: Unclear },
    /// A rule that denies or asks may match the command, and its text does not tell.
    MayMatch { kind: RuleKind, source: RuleSource, why: MayMatch },
    /// The effect of the command is not clear.
    Unclear { command: String, why: Unclear },
    /// Nothing allows this request.
    Network(String),
    /// Nothing allows this tool of a server.
    External(String),
}

impl Reason {
    /// The kind of reason, by its word in the public protocol.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Rule { .. } | Self::NotOffered(_) | Self::NotListed | Self::MayMatch { .. } => {
                "rule"
            }
            Self::Mode(_) | Self::NotAsked(_) => "mode",
            Self::ReadOutside(_) | Self::Outside(_) => "workingDir",
            Self::ProtectedPath(_)
            | Self::CriticalRemoval(_)
            | Self::SharedTree { .. }
            | Self::Unreadable { .. }
            | Self::Unclear { .. } => "safetyCheck",
            Self::Confined { .. }
            | Self::OnlyReads
            | Self::Apart { .. }
            | Self::Kept(_)
            | Self::SessionOnly
            | Self::Memory
            | Self::ReadInside
            | Self::ReadOpen
            | Self::ReadOnlyCommand
            | Self::Write(_)
            | Self::Command(_)
            | Self::Network(_)
            | Self::External(_) => "other",
        }
    }

    /// The path that the call may not touch without more ado.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::ReadOutside(path)
            | Self::Outside(path)
            | Self::ProtectedPath(path)
            | Self::Write(path) => Some(path),
            Self::NotAsked(reason) => reason.path(),
            _ => None,
        }
    }

    /// The rule that decided, where one rule did.
    pub fn rule(&self) -> Option<&RuleSource> {
        match self {
            Self::Rule { source, .. }
            | Self::NotOffered(source)
            | Self::MayMatch { source, .. } => Some(source),
            Self::NotAsked(reason) => reason.rule(),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { kind: RuleKind::Allow, source } => write!(f, "allowed by the rule {source}"),
            Self::Rule { kind: RuleKind::Ask, source } => {
                write!(f, "the rule {source} asks for approval each time")
            }
            Self::Rule { kind: RuleKind::Deny, source } => write!(f, "denied by the rule {source}"),
            Self::NotOffered(source) => {
                write!(f, "the tool is not offered: the rule {source} takes it away")
            }
            Self::Confined { tool, rules } => {
                write!(f, "the agent's definition allows {tool} only as {}", alternatives(rules))
            }
            Self::OnlyReads => f.write_str(
                "this agent only reads, by tools as by commands, and the call is not known to change \
                 nothing: report what should be done instead",
            ),
            Self::Outside(path) => write!(
                f,
                "`{}` is outside the working directories, which file tools do not leave in this run",
                path.display()
            ),
            Self::Apart { path, instead } => write!(
                f,
                "{} is in the checkout that this agent works apart from; its own is {}",
                path.display(),
                instead.display()
            ),
            Self::Kept(path) => {
                write!(f, "{} stays as it is for an agent that works apart", path.display())
            }
            Self::Mode(Mode::Plan) => f.write_str(
                "plan mode changes nothing: put the step into the plan and have the plan approved first",
            ),
            Self::Mode(mode) => write!(f, "the mode {mode} lets it run"),
            Self::NotAsked(reason) => {
                write!(f, "denied because the mode dontAsk never asks: {reason}")
            }
            Self::NotListed => f.write_str("no `Cd` rule lists the directory, and some list others"),
            Self::SessionOnly => f.write_str("it touches nothing outside the session"),
            Self::Memory => f.write_str("it is about the agent's own memory"),
            Self::ReadInside => f.write_str("it reads inside the working directories"),
            Self::ReadOpen => f.write_str("it reads a place that is open to reading"),
            Self::ReadOnlyCommand => f.write_str("the command only reads"),
            Self::ReadOutside(path) => {
                write!(f, "`{}` is outside the working directories", path.display())
            }
            Self::ProtectedPath(path) => {
                write!(f, "`{}` can change what runs later, so a person decides", path.display())
            }
            Self::SharedTree { command, checkout, others } => write!(
                f,
                "`{}` changes the files of others that work in {} now ({others}): wait for their end, or have an agent \
                 do it with isolation: worktree",
                brief(command),
                checkout.display()
            ),
            Self::CriticalRemoval(target) => {
                write!(f, "it would remove `{target}`, so a person decides; name what to remove")
            }
            Self::Write(path) => write!(f, "no rule or mode lets it write `{}`", path.display()),
            Self::Command(command) => write!(f, "no rule or mode lets `{}` run", brief(command)),
            Self::Unreadable { command, why } => {
                write!(f, "`{}` cannot be read, so a person decides: {why}", brief(command))
            }
            Self::MayMatch { kind, source, why } => {
                write!(f, "the {kind} rule {source} may mean it, so a person decides: {why}")
            }
            Self::Unclear { command, why } => {
                write!(f, "what `{}` would do is not plain: {why}", brief(command))
            }
            Self::Network(url) => write!(f, "no rule or mode lets it reach `{}`", brief(url)),
            Self::External(tool) => write!(f, "no rule or mode lets `{tool}` run"),
        }
    }
}

/// The texts of rules, with `or` between them; only the first few of many.
fn alternatives(rules: &[RuleSource]) -> String {
    const MOST: usize = 8;
    let mut texts: Vec<String> = rules.iter().take(MOST).map(|rule| brief(&rule.text)).collect();
    if rules.len() > MOST {
        texts.push(format!("{} others", rules.len() - MOST));
    }
    match texts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The beginning of a text on one line.
fn brief(text: &str) -> String {
    const LONGEST: usize = 120;
    let text = text.trim_matches([' ', '\t', '\n']);
    let line = text.split('\n').next().unwrap_or_default();
    // Shows control characters that a terminal would obey.
    let shown =
        |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let short: String = line.chars().take(LONGEST).map(shown).collect();
    if line.chars().count() > LONGEST || line.len() < text.len() {
        format!("{short}…")
    } else {
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::RuleOrigin;

    fn source(text: &str) -> RuleSource {
        RuleSource { origin: RuleOrigin::Flag, text: text.to_owned() }
    }

    #[test]
    fn reasons_name_the_rule_and_its_source() {
        let denied = Reason::Rule { kind: RuleKind::Deny, source: source("Bash(rm *)") };
        assert_eq!(denied.to_string(), "denied by the rule `Bash(rm *)` from the command line");
        let missing = Reason::NotOffered(source("Bash"));
        assert_eq!(
            missing.to_string(),
            "the tool is not offered: the rule `Bash` from the command line takes it away"
        );
    }

    #[test]
    fn a_confined_tool_is_told_with_what_it_may_do() {
        let confined = |texts: &[&str]| {
            let rules = texts.iter().map(|text| source(text)).collect();
            Reason::Confined { tool: "Bash".to_owned(), rules }.to_string()
        };
        for (rules, expected) in [
            (&["Bash(git *)"][..], "Bash(git *)"),
            (&["Bash(git *)", "Bash(make)"], "Bash(git *) or Bash(make)"),
            (&["Bash(a)", "Bash(b)", "Bash(c)"], "Bash(a), Bash(b) or Bash(c)"),
        ] {
            let said = format!("the agent's definition allows Bash only as {expected}");
            assert_eq!(confined(rules), said);
        }
        assert!(confined(&["Bash(x)"; 30]).ends_with("Bash(x) or 22 others"));
    }

    #[test]
    fn what_was_not_asked_says_what_would_have_been() {
        let reason = Reason::NotAsked(Box::new(Reason::Command("make".to_owned())));
        assert_eq!(
            reason.to_string(),
            "denied because the mode dontAsk never asks: no rule or mode lets `make` run"
        );
    }

    #[test]
    fn long_commands_are_cut_to_one_line() {
        let reason = Reason::Command(format!("{}\nsecond line", "é".repeat(500)));
        let text = reason.to_string();
        assert!(text.chars().count() < 200 && text.contains('…') && !text.contains('\n'), "{text}");
    }
}
