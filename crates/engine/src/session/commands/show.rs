//! Commands that show what the session has: texts for people, in lines.

use std::fmt::Write as _;
use std::sync::Arc;

use centurion_config::skills::SkillCatalog;
use centurion_journal::Glance;
use centurion_protocol::sdk::ModelUsage;

use crate::agent::shared::Shared;
use crate::agent::task::Task;
use crate::message::titles::title;
use crate::turn::commands::TypedCommand;

/// The most sessions that are listed.
const MOST_SESSIONS: usize = 20;

/// The commands that there are, one a line.
pub(in crate::session) fn help(commands: &[TypedCommand]) -> String {
    let line = |command: &TypedCommand| {
        let TypedCommand { name, description, argument_hint } = command;
        let space = if argument_hint.is_empty() { "" } else { " " };
        format!("/{name}{space}{argument_hint}  {}", first_line(description))
    };
    commands.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The types of agents that can be started.
pub(in crate::session) fn agents(shared: &Shared) -> String {
    let catalog = shared.delegation.definitions.agents();
    let shown = catalog.active.iter().filter(|agent| agent.definition.name.value != "fork");
    let lines = shown.map(|agent| {
        let definition = &agent.definition;
        let source = definition.origin.source.to_string();
        format!("{}  ({source})  {}", definition.name.value, first_line(&definition.description))
    });
    listed(lines, "There are no agents.")
}

/// The cost of the session, by model.
pub(crate) fn cost(shared: &Shared) -> String {
    let totals = shared.usage.totals.lock().clone();
    let mut text = format!("Total cost: ${:.4}", totals.total_cost());
    for (model, usage) in totals.by_model() {
        let ModelUsage { input_tokens, output_tokens, cost_usd, .. } = usage;
        let (read, written) = (usage.cache_read_input_tokens, usage.cache_creation_input_tokens);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n{model}: {input_tokens} input, {output_tokens} output, {read} cache read, {written} cache write \
             (${cost_usd:.4})"
        );
    }
    text
}

/// Looks at the skills as they are on disk now; how many there are.
pub(in crate::session) fn reloaded(shared: &Shared) -> String {
    let before: Vec<String> = names(&shared.delegation.definitions.skills());
    let after = names(&shared.delegation.definitions.skills_now());
    let missing = |of: &[String], from: &[String]| -> Vec<String> {
        of.iter().filter(|name| !from.contains(name)).cloned().collect()
    };
    let mut text = format!("There are {} skills and commands now.", after.len());
    for (what, names) in [("New", missing(&after, &before)), ("Gone", missing(&before, &after))] {
        if !names.is_empty() {
            let _ = write!(text, "\n{what}: {}", names.join(", "));
        }
    }
    text
}

fn names(catalog: &SkillCatalog) -> Vec<String> {
    catalog.active.iter().map(|skill| skill.name.clone()).collect()
}

/// The list of background work.
pub(in crate::session) fn tasks(shared: &Shared) -> String {
    let line = |task: &Arc<Task>| {
        let spec = &task.spec;
        format!("{}  agent {}  {}", task.id, spec.agent_type, title(&spec.description))
    };
    let agents: Vec<String> = shared.delegation.running().iter().map(line).collect();
    let shells = shared.all_shells().into_iter().flat_map(|shells| shells.running());
    let shells = shells.map(|shell| format!("{}  shell  {}", shell.id, first_line(&shell.command)));
    listed(agents.into_iter().chain(shells), "Nothing works in the background.")
}

/// The MCP servers and their state.
pub(in crate::session) fn servers(shared: &Shared) -> String {
    let statuses = shared.servers.statuses();
    let word =
        |status: &serde_json::Value, key: &str| status[key].as_str().unwrap_or_default().to_owned();
    let lines = statuses.iter().map(|it| format!("{}  {}", word(it, "name"), word(it, "status")));
    let withheld = shared.servers.withheld();
    let withheld =
        withheld.into_iter().map(|it| format!("{}  not started: {}", it.name, it.reason));
    listed(lines.chain(withheld), "There are no MCP servers.")
}

/// The hooks that are in force.
pub(in crate::session) fn hooks(shared: &Shared) -> String {
    let handlers = shared.delegation.builder.hooks.describe();
    listed(handlers.into_iter(), "There are no hooks.")
}

/// The permission mode and the rules.
pub(in crate::session) fn permissions(shared: &Shared) -> String {
    let mut text = format!("Mode: {}", shared.permissions.mode());
    for line in shared.permissions.describe() {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// The sessions of this directory, the newest first.
pub(in crate::session) fn sessions(shared: &Shared) -> String {
    let transcript = shared.delegation.builder.files.place.transcript();
    let Some(directory) = transcript.parent() else { return NO_SESSIONS.to_owned() };
    let Ok(entries) = std::fs::read_dir(directory) else { return NO_SESSIONS.to_owned() };
    let mut found: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|it| it == "jsonl"))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .filter(|(_, path)| *path != transcript)
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    let lines = found.iter().take(MOST_SESSIONS).filter_map(|(modified, path)| {
        let id = path.file_stem()?.to_str()?;
        let when =
            jiff::Timestamp::try_from(*modified).ok()?.strftime("%Y-%m-%d %H:%M").to_string();
        let about = Glance::at(path).map(|glance| title(&glance.title)).unwrap_or_default();
        Some(format!("--resume {id}  {when} UTC  {about}").trim_end().to_owned())
    });
    listed(lines, NO_SESSIONS)
}

const NO_SESSIONS: &str = "There are no other sessions of this directory.";

/// The lines as one text, or what is said where there are none.
fn listed(lines: impl Iterator<Item = String>, none: &str) -> String {
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() { none.to_owned() } else { text }
}

pub(in crate::session) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
