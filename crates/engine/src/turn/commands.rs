//! All commands that people can type: the program's own, skills, and prompts of servers.

use centurion_config::settings::closest_words;

use crate::agent::shared::Shared;
use crate::turn::typed::{BUILT_IN_COMMANDS, is_built_in};

/// How many commands are named that may have been meant.
const MOST_NEAR: usize = 3;

/// A command that a person can type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedCommand {
    /// Without the slash.
    pub name: String,
    pub description: String,
    pub argument_hint: String,
}

/// All commands that a person can type, the program's first.
pub(crate) fn typed_commands(shared: &Shared) -> Vec<TypedCommand> {
    let built_in = BUILT_IN_COMMANDS.iter().map(|command| TypedCommand {
        name: command.name.to_owned(),
        description: command.about.to_owned(),
        argument_hint: command.argument_hint.to_owned(),
    });
    let skills = shared.delegation.definitions.skills();
    let typable = skills.active.iter().filter(|it| it.card.for_people && !is_built_in(&it.name));
    let of_skills = typable.map(|skill| TypedCommand {
        name: skill.name.clone(),
        description: skill.card.summary.clone().unwrap_or_default(),
        argument_hint: skill.card.argument_hint.clone().unwrap_or_default(),
    });
    let of_servers = shared.servers.commands().into_iter().map(|name| TypedCommand {
        name,
        description: "A prompt of an MCP server".to_owned(),
        argument_hint: String::new(),
    });
    built_in.chain(of_skills).chain(of_servers).collect()
}

/// What is said of a command that is not there: which were probably meant.
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
