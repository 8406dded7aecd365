//! The `matcher` of a group of hooks: the tools, agents, files or reasons that it matches.

use centurion_permissions::canonical_tool_name;
use regex::Regex;
use thiserror::Error;

use crate::event::Event;

/// The reason that a matcher cannot be used, and what to do about it.
#[derive(Debug, Error)]
pub(crate) enum MatcherError {
    #[error(
        "the matcher `{server}` matches no tool: write `{server}__.*` for all tools of the server"
    )]
    BareServer { server: String },
    #[error("the matcher `{text}` cannot be read: {}; {help}", last_line(&.source.to_string()))]
    NoPattern { text: String, source: regex::Error, help: &'static str },
    #[error("`matcher` must be text")]
    NoText,
}

/// The subjects of an event for which a group of hooks runs.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    Every,
    /// Any of these names, exactly.
    Names(Vec<String>),
    /// A pattern that may match anywhere in the name.
    Pattern(Box<Regex>),
}

impl Matcher {
    /// The matcher as it can be written; empty for all subjects.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Every => String::new(),
            Self::Names(names) => names.join("|"),
            Self::Pattern(pattern) => pattern.as_str().to_owned(),
        }
    }

    pub(crate) fn parse(text: &str, event: Event) -> Result<Self, MatcherError> {
        if matches!(text, "" | "*") || event.what_matcher_means().is_none() {
            return Ok(Self::Every);
        }
        if text.chars().all(|letter| is_plain(letter, event)) {
            let names = text.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
            let names: Vec<String> = names.map(str::to_owned).collect();
            if event.is_about_a_call()
                && let Some(server) = names.iter().find(|name| is_bare_server(name))
            {
                return Err(MatcherError::BareServer { server: (*server).clone() });
            }
            return Ok(Self::Names(names));
        }
        Regex::new(text).map(|regex| Self::Pattern(Box::new(regex))).map_err(|source| {
            let help = if text.contains("(?=") || text.contains("(?!") || text.contains("(?<") {
                "look-around is not supported: name what should match instead"
            } else {
                "write names with `|` between them, or a regular expression"
            };
            MatcherError::NoPattern { text: text.to_owned(), source, help }
        })
    }

    /// Whether it matches a subject. Where an event has none, every matcher matches.
    pub(crate) fn fits(&self, subject: Option<&str>, event: Event) -> bool {
        let Some(subject) = subject else { return true };
        let is_tool = event.is_about_a_call();
        match self {
            Self::Every => true,
            Self::Names(names) => names.iter().any(|name| {
                name == subject
                    || (is_tool && canonical_tool_name(name) == canonical_tool_name(subject))
            }),
            Self::Pattern(regex) => {
                // A pattern may match several tools by an old name that only looks alike; this one was simply renamed.
                regex.is_match(subject) || (is_tool && subject == "Agent" && regex.is_match("Task"))
            }
        }
    }
}

impl Matcher {
    /// The names that it spells out, of files to watch in the agent's directory. A dot in such a name is a dot.
    pub(crate) fn file_names(&self) -> Vec<&str> {
        let is_letter =
            |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        let is_name =
            |name: &&str| name.chars().all(is_letter) && name.chars().any(char::is_alphanumeric);
        match self {
            Self::Every => Vec::new(),
            Self::Names(names) => names.iter().map(String::as_str).collect(),
            Self::Pattern(regex) => regex.as_str().split('|').filter(is_name).collect(),
        }
    }
}

fn is_plain(letter: char, event: Event) -> bool {
    let is_strict = matches!(event, Event::FileChanged | Event::StopFailure);
    letter.is_ascii_alphanumeric()
        || matches!(letter, '_' | '|')
        || (!is_strict && matches!(letter, '-' | ' ' | ','))
}

/// Whether a name is that of an MCP server, and so of no tool.
fn is_bare_server(name: &str) -> bool {
    name.strip_prefix("mcp__").is_some_and(|server| !server.contains("__"))
}

/// The last line of a pattern's error: it draws a picture first and names the fault last.
fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text).trim_start_matches("error: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_is_everything_a_list_or_a_pattern() {
        let tool = Event::PreToolUse;
        for (event, matcher, subject, expected) in [
            (tool, "", "Bash", true),
            (tool, "*", "Bash", true),
            (tool, "Bash", "Bash", true),
            (tool, "Bash", "BashOutput", false),
            (tool, "bash", "Bash", false),
            (tool, "Edit|Write", "Write", true),
            (tool, "Edit, Write", "Write", true),
            (tool, "Edit|Write", "NotebookEdit", false),
            (tool, "Notebook.*", "NotebookEdit", true),
            (tool, "Notebook.*", "Read", false),
            (tool, "^Edit$", "NotebookEdit", false),
            (tool, "Edit.*", "NotebookEdit", true),
            (tool, "mcp__git__.*", "mcp__git__log", true),
            (tool, "mcp__my-server__get", "mcp__my-server__get", true),
            (tool, "mcp__.*__write.*", "mcp__fs__write_file", true),
            // Old names.
            (tool, "Task", "Agent", true),
            (tool, "Agent", "Task", true),
            (tool, "^Task$", "Agent", true),
            (tool, "MultiEdit", "Edit", true),
            (Event::SubagentStart, "Task", "Agent", false),
            // Other subjects.
            (Event::SessionStart, "startup|resume", "resume", true),
            (Event::SubagentStop, "code-reviewer", "code-reviewer", true),
            (Event::FileChanged, ".envrc|.env", ".env", true),
            (Event::FileChanged, "Makefile", "Makefile", true),
            (Event::FileChanged, "a-b", "xa-bx", true),
            (Event::StopFailure, "rate_limit", "rate_limit", true),
            // Without a subject, every hook runs.
            (Event::Stop, "Bash", "anything", true),
        ] {
            let matched = Matcher::parse(matcher, event).unwrap().fits(Some(subject), event);
            assert_eq!(matched, expected, "{event}: {matcher} on {subject}");
        }
        assert!(Matcher::parse("Bash", tool).unwrap().fits(None, tool));
    }

    #[test]
    fn files_to_watch_are_named_in_the_matcher() {
        for (matcher, expected) in [
            (".envrc|.env", &[".envrc", ".env"][..]),
            ("Makefile|Cargo_toml", &["Makefile", "Cargo_toml"]),
            ("package-lock.json", &["package-lock.json"]),
            (r".*\.rs|a.toml|.|..", &["a.toml"]),
            ("*", &[]),
            ("", &[]),
        ] {
            let parsed = Matcher::parse(matcher, Event::FileChanged).unwrap();
            assert_eq!(parsed.file_names(), expected, "{matcher}");
        }
    }

    #[test]
    fn what_cannot_match_is_refused_with_what_to_do() {
        for (matcher, expected) in [
            ("mcp__git", "write `mcp__git__.*`"),
            ("Bash|mcp__git", "write `mcp__git__.*`"),
            ("^(?!Bash)", "look-around is not supported"),
            ("Bash(", "unclosed group"),
        ] {
            let message = Matcher::parse(matcher, Event::PreToolUse).unwrap_err().to_string();
            assert!(message.contains(expected), "{matcher}: {message}");
        }
        assert!(Matcher::parse("mcp__git", Event::SubagentStart).is_ok());
    }
}
