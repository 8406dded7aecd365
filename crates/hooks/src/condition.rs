//! The `if` of a hook: a permission rule that the call must match.
//!
//! A hook may exist to stop a call, so no call may bypass it: the rule matches if it matches one command of a command
//! line, and it matches every command line that cannot be parsed.

use std::path::{Path, PathBuf};

use centurion_permissions::{
    Access, Call, Policy, Reason, Rule, RuleError, RuleKind, RuleOrigin, RuleWarning, Verdict,
    canonical_tool_name, decide,
};
use thiserror::Error;

/// A permission rule that decides whether a hook runs.
#[derive(Clone, Debug)]
pub struct Condition {
    rule: Rule,
    /// The tool that the rule names.
    tool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionError {
    #[error(transparent)]
    Rule(#[from] RuleError),
    #[error("it can never match: {0}")]
    Never(Box<RuleWarning>),
}

/// The anchors of a rule's paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathAnchors<'a> {
    pub(crate) cwd: &'a Path,
    pub(crate) project: &'a Path,
    pub(crate) home: Option<&'a Path>,
}

impl Condition {
    /// Parses a rule such as `Bash(git *)`.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let rule = Rule::parse(text, RuleOrigin::Flag)?;
        // Deny rules examine each command, and parameters.
        if let Some(warning) = rule.warning(RuleKind::Deny) {
            return Err(ConditionError::Never(Box::new(warning)));
        }
        let name = rule.source().text.split('(').next().unwrap_or_default();
        Ok(Self { tool: canonical_tool_name(name).to_owned(), rule })
    }

    pub fn text(&self) -> &str {
        &self.rule.source().text
    }

    /// Whether the rule matches the call.
    pub(crate) fn fits(&self, call: &Call<'_>, places: PathAnchors<'_>) -> bool {
        if !self.speaks_about(call.access) {
            return false;
        }
        let policy = Policy {
            deny: vec![self.rule.clone()].into(),
            cwd: places.cwd.to_owned(),
            project_root: places.project.to_owned(),
            home: places.home.map(PathBuf::from),
            ..Policy::default()
        };
        let decision = decide(&policy, call);
        let may_match =
            matches!(decision.reason, Reason::Unreadable { .. } | Reason::MayMatch { .. });
        decision.verdict == Verdict::Deny
            || (may_match && self.tool == canonical_tool_name(call.tool))
    }

    /// Whether the rule concerns this access. A rule that denies reading also denies writing, and covers files that
    /// commands mention; a condition means only the call itself.
    fn speaks_about(&self, access: &Access) -> bool {
        match access {
            Access::Shell(_) => !matches!(self.tool.as_str(), "Read" | "Edit" | "Write"),
            Access::Write(_) => self.tool != "Read",
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn one_command_of_a_line_is_enough_and_what_is_unclear_counts() {
        let shell = |line: &str| ("Bash", Access::Shell(line.to_owned()));
        let file = |tool, path: &str| {
            let path = Path::new("/p").join(path);
            (tool, if tool == "Read" { Access::Read(path) } else { Access::Write(path) })
        };
        for (rule, (tool, access), expected) in [
            ("Bash(git *)", shell("git push"), true),
            ("Bash(git *)", shell("npm test && git push"), true),
            ("Bash(git *)", shell("echo $(git log)"), true),
            ("Bash(git *)", shell("GIT_DIR=x git log"), true),
            ("Bash(git *)", shell("npm test"), false),
            ("Bash(git *)", shell("echo 'git push'"), false),
            ("Bash(git *)", shell("echo \"unfinished"), true),
            ("Bash(git *)", shell("$x push"), true),
            ("Bash(git *)", shell("echo git push | sh"), true),
            ("Bash(git *)", shell("for i in 1 2; do npm test; done"), false),
            ("Bash", shell("anything"), true),
            ("Edit(*.ts)", file("Edit", "a.ts"), true),
            ("Edit(*.ts)", file("Write", "a.ts"), true),
            ("Edit(*.ts)", file("Edit", "a.rs"), false),
            ("Read(*.ts)", file("Read", "a.ts"), true),
            ("Read(*.ts)", file("Edit", "a.ts"), false),
            ("Read(*.ts)", shell("cat a.ts"), false),
            ("Edit", shell("echo > a.ts"), false),
            ("Edit(*.ts)", shell("echo \"unfinished"), false),
            ("mcp__git", ("mcp__git__log", Access::External { only_reads: true }), true),
            (
                "WebFetch(domain:a.com)",
                ("WebFetch", Access::Network("https://a.com/x".into())),
                true,
            ),
        ] {
            let condition = Condition::parse(rule).unwrap();
            let places = PathAnchors { cwd: Path::new("/p"), project: Path::new("/p"), home: None };
            let call = Call::new(tool, &access);
            assert_eq!(condition.fits(&call, places), expected, "{rule} on {access:?}");
        }
    }

    #[test]
    fn agents_are_told_apart_by_their_input_and_by_their_old_name() {
        let input = to_raw_value(&serde_json::json!({"subagent_type": "Explore"})).unwrap();
        let access = Access::Session;
        let call = Call { input: Some(&input), ..Call::new("Agent", &access) };
        let places = PathAnchors { cwd: Path::new("/p"), project: Path::new("/p"), home: None };
        assert!(Condition::parse("Task(Explore)").unwrap().fits(&call, places));
        assert!(!Condition::parse("Agent(Plan)").unwrap().fits(&call, places));
    }

    #[test]
    fn a_rule_that_cannot_be_read_or_never_matches_is_refused() {
        assert!(matches!(Condition::parse("Bash(").unwrap_err(), ConditionError::Rule(_)));
        assert!(matches!(Condition::parse("TodoWrite(x)").unwrap_err(), ConditionError::Never(_)));
    }
}
