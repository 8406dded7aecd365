//! Typed commands: `/name arguments` at the beginning of a message.

use std::path::Path;

use centurion_config::skills::SkillCatalog;
use centurion_protocol::Block;

use crate::message::queue::{Item, Origin};

/// The most skills that may stand one after the other at the beginning of a message.
pub(crate) const MOST_STACKED: usize = 6;

/// A command that the program itself carries out, as people are shown it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltInCommand {
    pub name: &'static str,
    pub argument_hint: &'static str,
    pub about: &'static str,
}

const fn built_in(
    name: &'static str,
    argument_hint: &'static str,
    about: &'static str,
) -> BuiltInCommand {
    BuiltInCommand { name, argument_hint, about }
}

/// The commands of the program, by name.
pub const BUILT_IN_COMMANDS: &[BuiltInCommand] = &[
    built_in("add-dir", "<path>", "Have agents work in one more directory"),
    built_in("agents", "", "List the types of agents that can be started"),
    built_in("btw", "<question>", "Ask something beside the conversation, which never hears of it"),
    built_in("cd", "<path>", "Have commands run in another of the directories"),
    built_in("clear", "", "Begin a new conversation; agents in the background continue"),
    built_in("compact", "[what to heed]", "Put a summary in the place of the conversation so far"),
    built_in("context", "", "Show what fills the window, by category"),
    built_in("cost", "", "Show what the session has cost, by model"),
    built_in("export", "[file]", "Write the conversation to a file, or print it"),
    built_in("goal", "[condition|clear]", "Continue working until a condition holds"),
    built_in("help", "", "List the commands"),
    built_in("hooks", "", "List the hooks that are in force"),
    built_in(
        "loop",
        "[interval] [prompt] | stop [id]",
        "Work on a prompt repeatedly while the session is open",
    ),
    built_in("mcp", "", "List the MCP servers and their state"),
    built_in("memory", "", "List the instruction files and notes that are in force"),
    built_in("model", "[name]", "Show or change the model"),
    built_in("permissions", "", "List the permission mode and rules"),
    built_in("recap", "", "Say where the session stands; the conversation never hears of it"),
    built_in("reload-skills", "", "Look at skills and commands as they are on disk now"),
    built_in("rename", "<title>", "Name the session"),
    built_in("resume", "", "List the sessions of this directory that can be resumed"),
    built_in(
        "rewind",
        "[number] [files|conversation|both] [--dry-run]",
        "List the prompts, or take one back with all that came of it: files and conversation, or one of them",
    ),
    built_in("skills", "", "List the skills, and what is left out of the model's list"),
    built_in("status", "", "Show the session, its model, mode and directories"),
    built_in(
        "subtask",
        "<task>",
        "Give a task to an agent that continues from here, beside this one",
    ),
    built_in("tasks", "", "List the agents and shells in the background"),
    built_in("usage", "", "Show what the session has cost, by model"),
];

/// Other names that people know commands by, where no skill has them, with the commands that they mean.
pub const COMMAND_ALIASES: [(&str, &str); 3] =
    [("bashes", "tasks"), ("new", "clear"), ("reset", "clear")];

/// The command that another name means.
fn alias(name: &str) -> Option<&'static str> {
    COMMAND_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, command)| *command)
}

/// Tells whether the program carries out a command of this name.
pub(crate) fn is_built_in(name: &str) -> bool {
    BUILT_IN_COMMANDS.iter().any(|command| command.name == name)
}

/// A command as it was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypedLine<'t> {
    pub(crate) name: &'t str,
    pub(crate) arguments: &'t str,
}

impl<'t> TypedLine<'t> {
    /// The command that a text begins with; `None` where it is something else, such as a path.
    pub(crate) fn read(text: &'t str) -> Option<Self> {
        let text = text.trim();
        let (word, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let name = word.strip_prefix('/')?;
        let is_usual = |it: char| it.is_alphanumeric() || "-_:./".contains(it);
        let begins = name.chars().next().is_some_and(char::is_alphanumeric);
        (begins && name.chars().all(is_usual)).then(|| Self { name, arguments: arguments.trim() })
    }

    /// The command that a text begins with where these are the names of skills: names that are no single word, such as
    /// `c++` or `my skill`, are found by the longest that the text begins with. A word that names a command by itself
    /// goes first, so that no skill is put between a command and its arguments.
    pub(crate) fn read_among(text: &'t str, skills: &SkillCatalog) -> Option<Self> {
        let plain = Self::read(text);
        let Some(rest) = text.trim().strip_prefix('/') else { return plain };
        let is_command = |it: &Self| is_built_in(it.name) || skills.find(it.name).is_some();
        if plain.as_ref().is_some_and(is_command) {
            return plain;
        }
        let names = skills.active.iter().map(|skill| skill.name.as_str());
        let behind = |name: &str| {
            let behind = rest.strip_prefix(name)?;
            behind.chars().next().is_none_or(char::is_whitespace).then_some(behind)
        };
        let found = names.filter_map(behind).min_by_key(|behind| behind.len());
        let longest = found.and_then(|behind| {
            let name = rest.get(..rest.len() - behind.len())?;
            Some(Self { name, arguments: behind.trim() })
        });
        let meant = |it: Self| Self { name: alias(it.name).unwrap_or(it.name), ..it };
        longest.or(plain.map(meant))
    }

    /// The text that an item is, if a person typed nothing else.
    pub(crate) fn text_of_item(item: &'t Item) -> Option<&'t str> {
        if item.manner.is_verbatim {
            return None;
        }
        let typed = item.content.len().saturating_sub(item.manner.pastes);
        match (&item.origin, item.content.get(..typed)) {
            (Origin::Person, Some([Block::Text(text)])) => Some(text),
            _ => None,
        }
    }

    /// Tells whether it may be meant as a path: that is no slip in the name of a command.
    pub(crate) fn may_be_path(&self) -> bool {
        self.name.contains('/') || Path::new("/").join(self.name).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_word_at_the_beginning() {
        let read = |text| TypedLine::read(text).map(|it| (it.name, it.arguments));
        assert_eq!(read("/deploy"), Some(("deploy", "")));
        assert_eq!(read(" /deploy  to  prod \n"), Some(("deploy", "to  prod")));
        assert_eq!(read("/kit:review a\nb"), Some(("kit:review", "a\nb")));
        assert_eq!(read("/apps/web:deploy x"), Some(("apps/web:deploy", "x")));
        for text in ["deploy", "a /b", "/", "/ x", "//x", "/-x", "/a?b", "/<x>", ""] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_path_is_no_slip() {
        let may_be_path = |text| TypedLine::read(text).unwrap().may_be_path();
        assert!(may_be_path("/usr/bin/env is missing"));
        assert!(may_be_path("/tmp"));
        assert!(!may_be_path("/depoly"));
    }
}
