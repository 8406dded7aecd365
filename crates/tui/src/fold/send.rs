//! Sending typed text: its recipient, its moment, and its fate if a turn is under way.

use centurion_protocol::AgentId;

use super::{commands, images};
use crate::effect::Effect;
use crate::model::Model;
use crate::model::prompts::{Stage, When};
use crate::model::talk::OwnShell;

/// Sends the draft.
pub(super) fn submit(model: &mut Model, when: When, effects: &mut Vec<Effect>) {
    let to = model.addressee();
    let text = model.draft_mut().take().text;
    model.menu = None;
    if text.trim().is_empty() {
        return;
    }
    model.history.add(&text);
    effects.push(Effect::Remember(text.clone()));
    super::chat::unsaved(model);
    if let Some(agent) = to {
        if text.trim() == "/stop" {
            return effects.push(Effect::StopTask(agent));
        }
        if let Some(word) = command_word(&text).filter(|word| is_command(model, word)) {
            // A command is the session's: no agent is told its words by a slip.
            model.notice = Some(format!(
                "/{word} is for the main prompt: esc · enter again says it to the agent"
            ));
            return model.set_draft(&format!(" {text}"));
        }
        return tell(model, agent, text, when, effects);
    }
    if let Some(command) = text.trim_start().strip_prefix('!') {
        return run_shell(model, command.trim(), effects);
    }
    if let Some(command) = text.trim().strip_prefix('/')
        && own_command(model, command, effects)
    {
        return;
    }
    if let Some((agent, words)) = addressed(model, &text) {
        return tell(model, agent, words, when, effects);
    }
    if is_unknown_command(model, &text) {
        // Nothing is sent by a slip: the words are back, and Enter sends them.
        let word = text.split_whitespace().next().unwrap_or_default();
        model.notice = Some(format!("there is no command {word} · enter again sends it as text"));
        model.set_draft(&format!(" {text}"));
        return;
    }
    let stage = if when == When::Later && model.is_busy() { Stage::Held } else { Stage::Sent };
    let number = model.prompts.add(None, text.clone(), when, stage);
    images::attach(model, number, &text, effects);
    if stage == Stage::Sent {
        effects.push(Effect::Submit { number, text, when });
    }
}

fn run_shell(model: &mut Model, command: &str, effects: &mut Vec<Effect>) {
    model.talk.last_shell += 1;
    let (number, command) = (model.talk.last_shell, command.to_owned());
    model.talk.shells.push(OwnShell {
        number,
        command: command.clone(),
        began: model.now,
        last_line: String::new(),
        is_stopping: false,
    });
    effects.push(Effect::Shell { number, command });
}

/// Stops the newest of the person's own commands; whether one runs.
pub(super) fn stop_shell(model: &mut Model, effects: &mut Vec<Effect>) -> bool {
    let mut running = model.talk.shells.iter_mut().rev();
    let Some(shell) = running.find(|it| !it.is_stopping) else { return false };
    shell.is_stopping = true;
    effects.push(Effect::StopShell(shell.number));
    model.notice = Some(format!("stopping `{}`", shell.command));
    true
}

/// Sends a command that was chosen and not typed: the draft stays as it is.
pub(super) fn command(model: &mut Model, text: &str, when: When, effects: &mut Vec<Effect>) {
    if let Some(command) = text.strip_prefix('/')
        && own_command(model, command, effects)
    {
        return;
    }
    let number = model.prompts.add(None, text.to_owned(), when, Stage::Sent);
    effects.push(Effect::Submit { number, text: text.to_owned(), when });
}

/// Sends the command of a key: the draft stays as it is.
pub(super) fn bound_command(model: &mut Model, typed: &str, effects: &mut Vec<Effect>) {
    if is_unknown_command(model, typed) {
        model.notice = Some(format!("there is no command {typed}: keybindings.json names it"));
        return;
    }
    command(model, typed, When::Next, effects);
}

fn is_unknown_command(model: &Model, text: &str) -> bool {
    let word = command_word(text);
    word.is_some_and(|word| !model.commands.is_empty() && !is_command(model, word))
}

fn is_command(model: &Model, word: &str) -> bool {
    model.commands.iter().any(|command| command.name == word)
}

/// The name of a command that a text begins with, whether there is such a command or not.
fn command_word(text: &str) -> Option<&str> {
    let word = text.strip_prefix('/')?.split_whitespace().next()?;
    let is_name = word.starts_with(char::is_alphanumeric)
        && word.chars().all(|it| it.is_alphanumeric() || "-_:.".contains(it));
    is_name.then_some(word)
}

/// The newest agent of a name.
fn named(model: &Model, name: &str) -> Option<AgentId> {
    let agents = model.agents.iter().filter(|(_, row)| row.name == name && !row.is_shell);
    agents.last().map(|(id, _)| id.clone())
}

/// The agent that a text begins with, and the words for it.
fn addressed(model: &Model, text: &str) -> Option<(AgentId, String)> {
    let (name, words) = text.trim_start().strip_prefix('@')?.split_once(char::is_whitespace)?;
    let words = words.trim();
    (!words.is_empty()).then_some(())?;
    Some((named(model, name)?, words.to_owned()))
}

/// Says something to another agent.
pub(super) fn tell(
    model: &mut Model,
    agent: AgentId,
    text: String,
    when: When,
    effects: &mut Vec<Effect>,
) {
    let number = model.prompts.add(Some(agent.clone()), text.clone(), when, Stage::Sent);
    effects.push(Effect::Tell { agent, number, text, when });
}

/// Carries out a command that is the terminal's own; whether it is one.
fn own_command(model: &mut Model, typed: &str, effects: &mut Vec<Effect>) -> bool {
    let (name, arguments) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
    match (name, arguments.trim()) {
        ("exit" | "quit", _) => effects.push(Effect::Exit),
        ("stop", "") => effects.push(Effect::StopAll),
        ("stop", agent) => match named(model, agent) {
            Some(id) => effects.push(Effect::StopTask(id)),
            None => model.notice = Some(format!("there is no agent {agent}")),
        },
        ("permissions" | "agents", words) if !words.is_empty() => {
            effects.push(Effect::Show { command: typed.to_owned() });
        }
        (name, arguments) => return commands::own(model, name, arguments, effects),
    }
    true
}

/// Sends what was held until the turn was over.
pub(super) fn release(model: &mut Model, effects: &mut Vec<Effect>) {
    for waiting in model.prompts.waiting.iter_mut().filter(|it| it.stage == Stage::Held) {
        waiting.stage = Stage::Sent;
        let (number, text) = (waiting.number, waiting.text.clone());
        effects.push(Effect::Submit { number, text, when: When::Next });
    }
}

/// Takes the last prompt back that is not read; whether there was one.
pub(super) fn take_back(model: &mut Model, effects: &mut Vec<Effect>) -> bool {
    let to = model.addressee();
    let Some(number) = model.prompts.last_for(&to).map(|waiting| waiting.number) else {
        return false;
    };
    let Some(waiting) = model.prompts.take(number) else { return false };
    if waiting.stage == Stage::Sent {
        effects.push(Effect::Withdraw(number));
    }
    model.set_draft(&waiting.text);
    super::chat::unsaved(model);
    true
}
