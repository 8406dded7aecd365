//! All commands that people can type: the program's own, skills, and prompts of servers.

use centurion_config::settings::closest_words;
use centurion_config::skills::{SkillCatalog, SkillEntry};
use serde_json::{Value, json};

use crate::agent::shared::Shared;
use crate::message::queue::Item;
use crate::toolset::servers::ServerCommand;
use crate::turn::typed_command::{BUILT_IN_COMMANDS, TypedLine, is_built_in};

/// The most commands that are suggested for an unknown one.
const MOST_NEAR: usize = 3;

/// The answer to a command in a session without commands.
pub(crate) const SWITCHED_OFF: &str =
    "commands and skills are off in this session (--disable-slash-commands)";

/// A command that a person can type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedCommand {
    /// Without the slash.
    pub name: String,
    pub description: String,
    pub argument_hint: String,
}

impl TypedCommand {
    /// The command as hosts list it.
    pub fn for_hosts(self) -> Value {
        json!({"name": self.name, "description": self.description, "argumentHint": self.argument_hint})
    }
}

/// All commands that a person can type, the program's first.
pub(crate) fn typed_commands(shared: &Shared) -> Vec<TypedCommand> {
    if !shared.delegation.definitions.has_commands() {
        return Vec::new();
    }
    let built_in = BUILT_IN_COMMANDS.iter().map(|command| TypedCommand {
        name: command.name.to_owned(),
        description: command.about.to_owned(),
        argument_hint: command.argument_hint.to_owned(),
    });
    let skills = shared.delegation.definitions.skills();
    let of_skills = typable(&skills).map(|skill| TypedCommand {
        name: skill.name.clone(),
        description: skill.card.summary.clone().unwrap_or_default(),
        argument_hint: skill.card.argument_hint.clone().unwrap_or_default(),
    });
    let of_servers = shared.servers.commands().into_iter().map(|command| {
        let ServerCommand { name, description, argument_hint } = command;
        TypedCommand { name, description, argument_hint }
    });
    built_in.chain(of_skills).chain(of_servers).collect()
}

/// The names of all commands that a person can type, in the same order.
pub(crate) fn command_names(shared: &Shared) -> Vec<String> {
    if !shared.delegation.definitions.has_commands() {
        return Vec::new();
    }
    let skills = shared.delegation.definitions.skills();
    let built_in = BUILT_IN_COMMANDS.iter().map(|command| command.name.to_owned());
    let of_skills = typable(&skills).map(|skill| skill.name.clone());
    let of_servers = shared.servers.commands().into_iter().map(|command| command.name);
    built_in.chain(of_skills).chain(of_servers).collect()
}

/// The skills that a person can type.
fn typable(skills: &SkillCatalog) -> impl Iterator<Item = &SkillEntry> {
    let active = skills.active.iter().map(|skill| &**skill);
    active.filter(|it| it.card.for_people && !is_built_in(&it.name))
}

/// The command that an item is; `None` for other text, and in a session without commands.
pub(crate) fn command_of<'i>(shared: &Shared, item: &'i Item) -> Option<TypedLine<'i>> {
    TypedLine::text_of_item(item).and_then(|text| read_command(shared, text))
}

/// The command that a text begins with; `None` for other text, and in a session without commands.
pub(crate) fn read_command<'t>(shared: &Shared, text: &'t str) -> Option<TypedLine<'t>> {
    let definitions = &shared.delegation.definitions;
    if !text.trim_start().starts_with('/') || !definitions.has_commands() {
        return None;
    }
    TypedLine::read_among(text, &definitions.skills())
}

/// The answer to an unknown command, with the names that were probably meant.
pub(crate) fn unknown_command(shared: &Shared, name: &str) -> String {
    let commands = typed_commands(shared);
    let bare = |name: &str| name.rsplit(':').next().unwrap_or_default().to_owned();
    let named: Vec<(String, &str)> = commands
        .iter()
        .flat_map(|command| {
            [command.name.clone(), bare(&command.name)].map(|it| (it, &*command.name))
        })
        .collect();
    let words: Vec<&str> = named.iter().map(|(word, _)| word.as_str()).collect();
    let mut near: Vec<String> = Vec::new();
    for place in closest_words(name, &words) {
        let shown = named.get(place).map(|(_, name)| format!("/{name}")).unwrap_or_default();
        if !near.contains(&shown) {
            near.push(shown);
        }
    }
    near.truncate(MOST_NEAR);
    let hint = match near.split_last() {
        None => String::new(),
        Some((last, [])) => format!("; did you mean {last}?"),
        Some((last, others)) => format!("; did you mean {} or {last}?", others.join(", ")),
    };
    format!("there is no command /{name}{hint}")
}
