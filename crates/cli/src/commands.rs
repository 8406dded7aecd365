//! `centurion commands`: what a person can type as `/name`, whatever brings it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use centurion_config::skills::{SkillCatalog, SkillEntry};
use centurion_engine::{BUILT_IN_COMMANDS, BuiltInCommand};
use clap::{Parser, Subcommand};
use serde::Serialize;
use serde_json::{Value, json};

use crate::definitions::listing::{Form, shortened, titled};
use crate::definitions::places::PlaceArgs;
use crate::skills::{GROUPS, Skills};

/// Shows what can be typed as `/name`.
#[derive(Debug, Parser)]
#[command(name = "centurion commands")]
pub(crate) struct CommandsArgs {
    #[command(subcommand)]
    action: CommandsAction,
}

#[derive(Debug, Subcommand)]
enum CommandsAction {
    /// List what can be typed as `/name`, by what brings it
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        places: PlaceArgs,
    },
}

/// Something that a person can type as `/name`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TypedCommand {
    name: String,
    description: Option<String>,
    argument_hint: Option<String>,
    source: &'static str,
    /// `None` for those of the program.
    path: Option<PathBuf>,
}

/// The commands that one owner brings, under its title.
type Group = (&'static str, Vec<TypedCommand>);

pub(crate) fn run(args: &CommandsArgs) -> anyhow::Result<ExitCode> {
    let CommandsAction::List { json, places } = &args.action;
    let mut groups = vec![("Built in", built_in())];
    groups.extend(skill_groups(&Skills::load(places)?.catalog));
    Form::new(*json).print(|| as_text(&groups), || as_json(&groups));
    Ok(ExitCode::SUCCESS)
}

/// Checks that the program itself carries out what people type by this name: no skill has its place.
pub(crate) fn is_of_program(name: &str) -> bool {
    BUILT_IN_COMMANDS.iter().any(|command| command.name == name)
}

/// The skills and commands of all owners that people may invoke.
fn skill_groups(catalog: &SkillCatalog) -> Vec<Group> {
    let is_typed = |entry: &&Arc<SkillEntry>| entry.card.for_people && !is_of_program(&entry.name);
    let group = |(source, title)| {
        let typed = catalog.active.iter().filter(is_typed);
        let of_source = typed.filter(|entry| entry.origin.source == source);
        (title, of_source.map(|entry| TypedCommand::from(&**entry)).collect())
    };
    GROUPS.into_iter().map(group).collect()
}

/// The commands that the program carries out itself.
fn built_in() -> Vec<TypedCommand> {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let typed = |command: &BuiltInCommand| TypedCommand {
        name: command.name.to_owned(),
        description: given(command.about),
        argument_hint: given(command.argument_hint),
        source: "built-in",
        path: None,
    };
    BUILT_IN_COMMANDS.iter().map(typed).collect()
}

impl From<&SkillEntry> for TypedCommand {
    fn from(entry: &SkillEntry) -> Self {
        Self {
            name: entry.name.clone(),
            description: entry.card.summary.clone(),
            argument_hint: entry.card.argument_hint.clone(),
            source: entry.origin.source.as_str(),
            path: Some(entry.origin.path.clone()),
        }
    }
}

/// All of them, sorted by name.
fn as_json(groups: &[Group]) -> Value {
    let mut commands: Vec<&TypedCommand> = groups.iter().flat_map(|(_, group)| group).collect();
    commands.sort_by(|one, other| one.name.cmp(&other.name));
    json!({ "commands": commands })
}

fn as_text(groups: &[Group]) -> String {
    let lines = groups.iter().map(|(title, group)| (*title, group.iter().flat_map(described)));
    let groups = lines.map(|(title, lines)| (title, lines.collect()));
    titled(groups).unwrap_or_else(|| "there are no commands\n".to_owned())
}

fn described(command: &TypedCommand) -> Vec<String> {
    let hint = command.argument_hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
    let mut lines = vec![format!("/{}{hint}", command.name)];
    let description = command.description.as_ref();
    lines.extend(description.map(|description| format!("    {}", shortened(description))));
    lines
}
