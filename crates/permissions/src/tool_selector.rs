//! Tools in the lists of definitions: `Read`, `mcp__server`, `mcp__server__*`, `Agent(a, b)`, `Bash(git *)`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::rule::RuleKind;
use crate::tool_name::ToolPattern;

/// One entry of a list of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ToolSelector {
    text: String,
    pattern: ToolPattern,
}

impl ToolSelector {
    /// Whether the entry names this tool, by its present name or an old one.
    pub fn selects(&self, tool: &str) -> bool {
        // A list that permits may be as wide as one that denies: the tools still ask for permission.
        self.pattern.matches(RuleKind::Deny, tool)
    }

    /// The text between the parentheses, unless it matches everything.
    pub fn specifier(&self) -> Option<&str> {
        let (_, inner) = self.text.strip_suffix(')')?.split_once('(')?;
        Some(inner.trim()).filter(|inner| !inner.is_empty() && *inner != "*")
    }

    /// The one tool that the entry names.
    pub fn name(&self) -> Option<&str> {
        self.pattern.name()
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<String> for ToolSelector {
    fn from(text: String) -> Self {
        let text = text.trim().to_owned();
        let name = text.split('(').next().unwrap_or_default().trim();
        Self { pattern: ToolPattern::parse(name), text }
    }
}

impl From<ToolSelector> for String {
    fn from(selector: ToolSelector) -> Self {
        selector.text
    }
}

impl fmt::Display for ToolSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_tools_by_all_their_spellings() {
        // D-50
        for (entry, tool, expected) in [
            ("Read", "Read", true),
            ("read", "Read", false),
            ("LS", "Read", true),
            ("Task", "Agent", true),
            ("Agent(a, b)", "Agent", true),
            ("Bash(git *)", "Bash", true),
            ("mcp__git", "mcp__git__log", true),
            ("mcp__git__*", "mcp__git__log", true),
            ("mcp__*", "mcp__git__log", true),
            ("mcp__git", "mcp__github__log", false),
            ("*", "Write", true),
        ] {
            assert_eq!(ToolSelector::from(entry.to_owned()).selects(tool), expected, "{entry}");
        }
    }

    #[test]
    fn what_stands_in_parentheses_is_kept_unless_it_means_everything() {
        let specifier = |text: &str| {
            let selector = ToolSelector::from(text.to_owned());
            selector.specifier().map(str::to_owned)
        };
        assert_eq!(specifier("Agent(a, b)").as_deref(), Some("a, b"));
        assert_eq!(specifier("Bash(*)"), None);
        assert_eq!(specifier("Bash"), None);
    }
}
