//! Commands that a person types and the program carries out itself: `/cost`, `/model` and the like, and skills that an
//! agent of its own carries out.
//!
//! Each is a run of its own, with a result as every run has, and asks no model unless that is what it is for. The model
//! never reads what was typed; what an agent reports for a skill goes into the conversation.

mod ask_model;
mod directories;
mod fork;
mod loop_command;
mod main_state;
mod rewind;
pub(super) mod show;

use centurion_journal::JournalError;
use centurion_protocol::sdk::{EventBody, System};
use centurion_protocol::{Outcome, RecordId, is_hidden};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::message::queue::Item;
use crate::turn::commands::{command_of, typed_commands};
use crate::turn::driver::Run;
use crate::turn::skill::forked;
use crate::turn::typed_command::{TypedLine, is_built_in};

/// The result of a command of the program.
#[derive(Debug)]
pub(super) enum CommandEnd {
    /// Text for the person.
    Said(String),
    /// The reason why it was not carried out.
    Failed(String),
    /// It was a run of the agent, whose end is the run's.
    Ran,
}

impl Session {
    /// Carries out the command that the first item is, if the program does that; whether it was one.
    pub(super) async fn run_command(
        &mut self,
        run: &mut Run,
        items: &[Item],
        cancel: &CancellationToken,
    ) -> Result<bool, JournalError> {
        let Some(item) = items.first() else { return Ok(false) };
        // A compaction is the driver's, and so is a call that waits to be decided about.
        let typed = command_of(&self.shared, item).filter(|typed| typed.name != "compact");
        let Some(typed) = typed.filter(|_| self.driver.deferred.is_none()) else {
            return Ok(false);
        };
        if let Some((catalog, entry)) = forked(&self.shared, &typed) {
            self.note_command(item, &typed)?;
            let refused = self.driver.admit_forked(item, &entry, typed.arguments, cancel).await;
            let end = match refused {
                Some(reason) => CommandEnd::Failed(reason),
                None => self.run_forked(&catalog, &entry, &typed, cancel).await?,
            };
            finish(run, end, cancel);
            return Ok(true);
        }
        if !is_built_in(typed.name) {
            return Ok(false);
        }
        self.note_command(item, &typed)?;
        let end = self.run_built_in(run, item.id, &typed, cancel).await?;
        if let CommandEnd::Said(content) = &end
            && !content.is_empty()
        {
            let content = content.clone();
            self.shared.show(EventBody::System(System::LocalCommandOutput { content }));
        }
        finish(run, end, cancel);
        Ok(true)
    }

    /// Records that a command was typed: it is for the program, and the model never reads it.
    fn note_command(&self, item: &Item, typed: &TypedLine<'_>) -> Result<(), JournalError> {
        let note = json!({"command": typed.name, "arguments": typed.arguments, "item": item.id});
        self.driver.journal.note("command", &note)?;
        self.shared.queue.delivered(&[item.id]);
        Ok(())
    }

    /// Carries out a command of the program.
    async fn run_built_in(
        &mut self,
        run: &mut Run,
        item: RecordId,
        typed: &TypedLine<'_>,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, JournalError> {
        let shared = &self.shared;
        if let Some(list) = self.listed(typed.name) {
            return Ok(narrowed(typed, &list));
        }
        Ok(match (typed.name, typed.arguments) {
            ("add-dir", path) => self.add_directory(path).await,
            ("btw", question) => {
                // A conversation of an earlier process has asked nothing yet in this one.
                self.driver.keep_end(run);
                ask_model::ask_aside(shared, question, cancel).await
            }
            ("cd", path) => self.change_directory(path, cancel).await,
            ("clear", "") => self.clear(run, item, cancel).await?,
            ("context", "") => CommandEnd::Said(self.context()),
            ("cost" | "usage", "") => CommandEnd::Said(show::cost(shared)),
            ("export", file) => self.export(file),
            ("goal", condition) => self.set_goal(run, condition, cancel).await?,
            ("loop", words) => self.set_loop(run, words, cancel).await?,
            ("model", "") => {
                CommandEnd::Said(format!("The model is {}.", self.driver.settings.model))
            }
            ("model", name) => self.change_model(name).await,
            ("recap", "") => ask_model::recap(shared, cancel).await,
            ("reload-skills", "") => CommandEnd::Said(show::reloaded(shared)),
            ("rename", title) => self.rename(title),
            ("rewind", words) => self.rewind(run, words)?,
            ("status", "") => CommandEnd::Said(self.status()),
            ("subtask", task) => self.start_subtask(task, cancel).await,
            (name, words) => CommandEnd::Failed(format!("/{name} takes no arguments: {words}")),
        })
    }

    /// Carries out a command that lists something: one line for each thing. `None` for other commands.
    fn listed(&self, name: &str) -> Option<String> {
        let shared = &self.shared;
        Some(match name {
            "agents" => show::agents(shared),
            "help" => show::help(&typed_commands(shared)),
            "hooks" => show::hooks(shared),
            "mcp" => show::servers(shared),
            "memory" => self.memory_files(),
            "permissions" => show::permissions(shared),
            "resume" => show::sessions(shared),
            "skills" => self.skills_shown(),
            "tasks" => show::tasks(shared),
            _ => return None,
        })
    }
}

/// Leaves of a list the lines that have the words in them that were typed behind its command.
///
/// Much of a list is the words of others, who must not command the terminal that it is shown on.
fn narrowed(typed: &TypedLine<'_>, list: &str) -> CommandEnd {
    let TypedLine { name, arguments: words } = typed;
    let is_shown = |it: &char| *it == '\n' || !(it.is_control() || is_hidden(*it));
    let list: String = list.chars().filter(is_shown).collect();
    if words.is_empty() {
        return CommandEnd::Said(list);
    }
    let wanted = words.to_lowercase();
    let lines = list.lines().filter(|line| line.to_lowercase().contains(&wanted));
    let lines: Vec<&str> = lines.collect();
    if lines.is_empty() {
        return CommandEnd::Failed(format!("/{name} lists nothing with {words} in it"));
    }
    CommandEnd::Said(lines.join("\n"))
}

/// Makes the output of a command the result of its run.
fn finish(run: &mut Run, end: CommandEnd, cancel: &CancellationToken) {
    match end {
        CommandEnd::Ran => {}
        _ if cancel.is_cancelled() => run.outcome = Outcome::Cancelled,
        CommandEnd::Said(text) => {
            run.text = text;
            run.outcome = Outcome::Completed;
        }
        CommandEnd::Failed(reason) => {
            run.errors.push(reason);
            run.outcome = Outcome::CommandFailed;
        }
    }
}
