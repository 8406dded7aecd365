//! Names of tools in rules: old names, and patterns over names.

use std::borrow::Cow;

use crate::rule::RuleKind;
use crate::wildcard::Wildcard;

/// Old names of tools, with the present ones.
const OLD: [(&str, &str); 10] = [
    ("Task", "Agent"),
    ("KillShell", "TaskStop"),
    ("KillBash", "TaskStop"),
    ("BashOutput", "TaskOutput"),
    ("AgentOutputTool", "TaskOutput"),
    ("FileEdit", "Edit"),
    ("MultiEdit", "Edit"),
    ("FileWrite", "Write"),
    ("LS", "Read"),
    ("NotebookRead", "Read"),
];

/// The present name of a tool, for an old one.
pub fn canonical(name: &str) -> &str {
    OLD.iter().find(|(old, _)| *old == name).map_or(name, |(_, current)| current)
}

/// The names of all known tools, here or elsewhere, with their old names.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    KNOWN.into_iter().chain(OLD.into_iter().map(|(old, _)| old))
}

/// Every tool that a rule may name, including tools that not every session or version offers: a rule for one of them is
/// no mistake.
const KNOWN: [&str; 47] = [
    "Agent",
    "Artifact",
    "AskUserQuestion",
    "Bash",
    "Cd",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EndConversation",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "LSP",
    "ListAgents",
    "ListMcpResourcesTool",
    "Monitor",
    "NotebookEdit",
    "PowerShell",
    "Read",
    "ReadMcpResourceTool",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WaitForMcpServers",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Worktrees",
    "Write",
];

/// Whether a tool of this name exists, here or elsewhere.
pub(crate) fn is_known(name: &str) -> bool {
    KNOWN.contains(&canonical(name))
}

/// The tools that a rule names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ToolPattern {
    Name(String),
    /// Every tool of an MCP server: `mcp__server`.
    Server(String),
    /// A name with `*` in it.
    Glob {
        text: String,
        pattern: Wildcard,
    },
}

impl ToolPattern {
    pub(crate) fn parse(name: &str) -> Self {
        let plain = plain_name(name);
        let name = plain.as_ref();
        if name.contains('*') {
            return Self::Glob { text: name.to_owned(), pattern: Wildcard::parse(name) };
        }
        match name.strip_prefix("mcp__") {
            Some(server) if !server.is_empty() && !server.contains("__") => {
                Self::Server(name.to_owned())
            }
            _ => Self::Name(canonical(name).to_owned()),
        }
    }

    /// The name, where the rule names exactly one tool.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Server(_) | Self::Glob { .. } => None,
        }
    }

    /// The MCP server whose tools the pattern names, where it names one.
    pub(crate) fn server(&self) -> Option<&str> {
        match self {
            Self::Name(_) => None,
            Self::Server(name) => name.strip_prefix("mcp__"),
            Self::Glob { text, .. } => server_of(text).filter(|server| !server.contains('*')),
        }
    }

    pub(crate) fn matches(&self, kind: RuleKind, tool: &str) -> bool {
        let tool = canonical(tool);
        match self {
            Self::Name(name) => {
                // A server's name may contain `__`, so a name that looks like one tool may be all tools of a server.
                name == tool || (kind != RuleKind::Allow && is_served_by(tool, name))
            }
            Self::Server(server) => is_served_by(tool, server),
            Self::Glob { pattern, .. } => {
                let by_old_name =
                    || OLD.iter().any(|(old, current)| *current == tool && pattern.fits(old));
                self.may(kind) && (pattern.fits(tool) || (kind != RuleKind::Allow && by_old_name()))
            }
        }
    }

    /// Whether a rule of this kind may use the pattern. Ask and deny rules may be wide, allow rules may not: an allow
    /// rule has `*` only behind a literal `mcp__server__`.
    pub(crate) fn may(&self, kind: RuleKind) -> bool {
        match (kind, self) {
            (RuleKind::Allow, Self::Glob { .. }) => self.server().is_some(),
            _ => true,
        }
    }
}

/// A name in the form of tool names: a server's name with other characters means the same server.
fn plain_name(name: &str) -> Cow<'_, str> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '*');
    if !name.starts_with("mcp__") || name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    name.chars().map(|it| if is_plain(it) { it } else { '_' }).collect()
}

/// Whether a tool is one of the server that `mcp__server` names.
fn is_served_by(tool: &str, server: &str) -> bool {
    let is_server = server.starts_with("mcp__");
    is_server && tool.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"))
}

/// The MCP server of a tool: the text between `mcp__` and the next `__`.
pub(crate) fn server_of(tool: &str) -> Option<&str> {
    let (server, _) = tool.strip_prefix("mcp__")?.split_once("__")?;
    Some(server).filter(|server| !server.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_globs_name_many_tools() {
        use RuleKind::{Allow, Deny};
        for (pattern, kind, tool, expected) in [
            ("mcp__git", Allow, "mcp__git__log", true),
            ("mcp__git", Allow, "mcp__github__log", false),
            ("mcp__git", Allow, "mcp__git", false),
            ("mcp__git__*", Allow, "mcp__git__log", true),
            ("mcp__git__get_*", Allow, "mcp__git__get_log", true),
            ("mcp__git__get_*", Allow, "mcp__git__push", false),
            ("mcp__*", Deny, "mcp__git__push", true),
            ("*", Deny, "Bash", true),
            // An allow rule is not that wide.
            ("mcp__*", Allow, "mcp__git__push", false),
            ("mcp__*__get", Allow, "mcp__git__get", false),
            ("*", Allow, "Bash", false),
            ("Web*", Allow, "WebFetch", false),
            // Old names, in rules and in calls.
            ("Task", Deny, "Agent", true),
            ("Agent", Deny, "Task", true),
            ("KillBash", Deny, "TaskStop", true),
            ("Kill*", Deny, "TaskStop", true),
            ("Kill*", Deny, "KillShell", true),
            ("*Output", Deny, "TaskOutput", true),
            ("BashOut*", Deny, "TaskOutput", true),
            ("Multi*", Deny, "Edit", true),
            ("Kill*", Deny, "Bash", false),
            // Servers by their names in settings.
            ("mcp__my.server", Deny, "mcp__my_server__log", true),
            ("mcp__my server__log", Deny, "mcp__my_server__log", true),
            ("mcp__my.server__*", Allow, "mcp__my_server__log", true),
            ("mcp__my__server", Deny, "mcp__my__server__log", true),
            ("mcp__my__server", Allow, "mcp__my__server__log", false),
            ("mcp__git__log", Deny, "mcp__git__logs", false),
        ] {
            let matched = ToolPattern::parse(pattern).matches(kind, tool);
            assert_eq!(matched, expected, "{kind} {pattern} on {tool}");
        }
    }

    #[test]
    fn old_names_lead_to_present_ones() {
        // D-50
        for (old, new) in [
            ("Task", "Agent"),
            ("KillShell", "TaskStop"),
            ("KillBash", "TaskStop"),
            ("BashOutput", "TaskOutput"),
            ("AgentOutputTool", "TaskOutput"),
            ("FileEdit", "Edit"),
            ("MultiEdit", "Edit"),
            ("FileWrite", "Write"),
            ("LS", "Read"),
            ("NotebookRead", "Read"),
            ("Bash", "Bash"),
        ] {
            assert_eq!(canonical(old), new);
        }
    }
}
