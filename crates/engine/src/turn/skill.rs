//! Invoking a skill: its text is read as it is now, arguments are put in, its commands run. This is the one way, whether
//! a person typed it or a model asked for it.
//!
//! The commands of a skill pass the dispatch like every call of the agent, but no person is asked: what is not free ends
//! the invocation. What they print is text; nothing in it is looked at again.

use std::sync::Arc;

use centurion_config::agents::AgentEffort;
use centurion_config::skills::{
    CommandForm, ExpandError, Expanded, FilledText, Invocation, Piece, ReadSkill, Shell,
    SkillCatalog, SkillCommand, SkillDefinition, SkillEntry, SkillLookupError, SkillReadError,
    SkillText, expand,
};
use centurion_config::trust::Unaccepted;
use centurion_protocol::markup::contain;
use centurion_protocol::{ToolUse, ToolUseId};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::agent::member_frames::CallDenied;
use crate::agent::shared::Shared;
use crate::toolset::toolbox::Toolbox;
use crate::turn::dispatch::{Dispatch, text_of};
use crate::turn::mention::{self, Attachment, Mentioning};
use crate::turn::typed_command::{TypedLine, is_built_in};

/// The timeout of a command in a skill's text.
const PATIENCE_MS: u64 = 120_000;

/// The text in the place of a command where the settings keep commands from running.
const SWITCHED_OFF: &str = "[shell command execution disabled by policy]";

/// The text before a skill that the model asked for.
pub(crate) const FOLLOW: &str = "Follow this skill now.";

/// The text in the place of a skill text that the conversation has already.
pub(crate) const KNOWN_TEXT: &str = "You were given exactly this text already, above. Follow it.";

/// Programs whose exit code 1 says that there was nothing to find, or a difference.
const ONE_IS_AN_ANSWER: [&str; 9] =
    ["grep ", "egrep ", "fgrep ", "rg ", "find ", "diff ", "test ", "git diff", "git grep"];

/// The reason why a skill was not carried out.
#[derive(Debug, Error)]
pub(crate) enum SkillError {
    #[error(transparent)]
    Lookup(#[from] SkillLookupError),
    #[error(transparent)]
    Read(#[from] SkillReadError),
    #[error("only people may invoke the skill `{0}`: its file, the settings or the host say so")]
    ForPeople(String),
    #[error("the skill `{0}` is for models and not to be typed (it says `user-invocable: false`)")]
    ForModels(String),
    #[error("the skill `{name}` was not carried out: the commands in its text are off: {reason}")]
    Withheld { name: String, reason: Unaccepted },
    #[error(
        "the skill `{0}` was not carried out: its commands are for PowerShell, which does not run here"
    )]
    PowerShell(String),
    #[error("the skill `{name}` was not carried out: {source}")]
    Expand { name: String, source: ExpandError },
    #[error(
        "Shell command permission check failed for pattern \"!`{command}`\" (skill `{name}`, line {line}): \
         {denial}"
    )]
    NotAllowed { name: String, line: usize, command: String, denial: String },
    #[error("the command `{command}` of skill `{name}` (line {line}) failed: {output}")]
    Failed { name: String, line: usize, command: String, output: String },
    #[error(
        "the skill `{0}` was not carried out: its text is empty, with these arguments and with what its commands print"
    )]
    Empty(String),
    #[error("the file of the skill `{0}` has just changed; try again")]
    Changed(String),
    #[error(
        "the skill `{0}` is carried out by an agent: type it alone, without others and without attachments"
    )]
    NotAlone(String),
    #[error("it was interrupted")]
    Cancelled,
}

/// The invoker of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invoker {
    Person,
    Model,
}

/// A skill with the text that it has for one invocation.
pub(crate) struct InvokedSkill {
    pub(crate) definition: SkillDefinition,
    pub(crate) text: SkillText,
    /// The files that its text mentions.
    pub(crate) attached: Vec<Attachment>,
}

impl InvokedSkill {
    /// The skill as an agent reads it: its text, and the files that this mentions.
    pub(crate) fn for_agent(&self) -> String {
        let mut text = self.text.for_model();
        for attachment in &self.attached {
            text.push_str("\n\n");
            text.push_str(&attachment.text);
        }
        text
    }
}

/// Tells whether a typed command is carried out by the program or by an agent of its own, and not told to the model.
pub(crate) fn is_for_program(shared: &Shared, typed: &TypedLine<'_>) -> bool {
    is_built_in(typed.name) || forked(shared, typed).is_some()
}

/// The skill that a person typed and that an agent of its own carries out.
pub(crate) fn forked(
    shared: &Shared,
    typed: &TypedLine<'_>,
) -> Option<(Arc<SkillCatalog>, Arc<SkillEntry>)> {
    if is_built_in(typed.name) {
        return None;
    }
    let catalog = shared.delegation.definitions.skills_now();
    let entry = find(&catalog, typed.name, Invoker::Person).ok()?;
    entry.card.is_fork.then_some((catalog, entry))
}

/// The skill that a name means, if it is for the one who asks.
pub(crate) fn find(
    catalog: &SkillCatalog,
    name: &str,
    by: Invoker,
) -> Result<Arc<SkillEntry>, SkillError> {
    let entry = catalog.resolve(name, None)?;
    match by {
        Invoker::Model if !entry.card.for_models => Err(SkillError::ForPeople(entry.name.clone())),
        Invoker::Person if !entry.card.for_people => Err(SkillError::ForModels(entry.name.clone())),
        _ => Ok(entry),
    }
}

/// Reads a skill and makes its text for an invocation by an agent.
pub(crate) async fn invoke(
    shared: &Arc<Shared>,
    agent: &Arc<Agent>,
    catalog: &SkillCatalog,
    entry: &SkillEntry,
    (arguments, by): (&str, Invoker),
    cancel: &CancellationToken,
) -> Result<InvokedSkill, SkillError> {
    let ReadSkill { definition, problems } = catalog.read(entry)?;
    // The file may have changed since it was looked at.
    let is_same = definition.is_for_models() || !entry.card.for_models;
    let is_same = is_same && (definition.is_for_people() || !entry.card.for_people);
    if !is_same || definition.fork.is_some() != entry.card.is_fork {
        return Err(SkillError::Changed(entry.name.clone()));
    }
    for problem in &problems {
        agent.inform("warning", problem.to_string());
    }
    let effort = definition.effort.as_ref().map(|it| it.value);
    // The agent's directory may be a worktree: its rules mean the same directory.
    let root = agent.workspace.root();
    let invocation = Invocation {
        arguments,
        project_dir: shared.delegation.builder.project_of(&root),
        session: shared.id(),
        effort: effort.or(agent.starter(root.clone()).effort.map(AgentEffort::Level)),
    };
    let expanded = expand(&definition.template(), &invocation);
    let name = || definition.name.clone();
    let expanded = expanded.map_err(|source| SkillError::Expand { name: name(), source })?;
    let dispatch = dispatch_of(shared, agent);
    // The tools that the skill frees are free for its commands now, and for the agent once the skill is in force.
    let rules = agent.hold_skill_rules();
    let body = run_commands(shared, &dispatch, &definition, &expanded, cancel).await;
    drop(rules);
    let body = body?;
    if body.trim().is_empty() {
        return Err(SkillError::Empty(name()));
    }
    let text = SkillText::new(&definition, body);
    let mut attached = mention::attached(&dispatch, &mentioning(&expanded), cancel).await;
    if by == Invoker::Person && definition.fork.is_some() {
        // Of other typed texts, the prompt brings along what they mention.
        let typed = mention::attached(&dispatch, &[Mentioning::all(arguments)], cancel).await;
        mention::add_new(&mut attached, typed);
    }
    Ok(InvokedSkill { definition, text, attached })
}

/// The texts of a skill that may mention files: those of its author, with values in place, and nothing that a
/// command prints.
fn mentioning(expanded: &Expanded) -> Vec<Mentioning<'_>> {
    let texts = expanded.pieces.iter().filter_map(|piece| match piece {
        Piece::Text(FilledText { text, values }) => Some(Mentioning { text, values }),
        Piece::Command(_) => None,
    });
    texts.collect()
}

/// Puts what its commands print in their places.
async fn run_commands(
    shared: &Shared,
    dispatch: &Dispatch,
    skill: &SkillDefinition,
    expanded: &Expanded,
    cancel: &CancellationToken,
) -> Result<String, SkillError> {
    let mut body = String::new();
    for piece in &expanded.pieces {
        let command = match piece {
            Piece::Text(text) => {
                body.push_str(&text.text);
                continue;
            }
            Piece::Command(command) => command,
        };
        if !shared.delegation.builder.sources.skills.runs_commands {
            body.push_str(SWITCHED_OFF);
            continue;
        }
        if let Some(reason) = &skill.withheld {
            let (name, reason) = (skill.name.clone(), reason.clone());
            return Err(SkillError::Withheld { name, reason });
        }
        if skill.shell.as_ref().is_some_and(|shell| shell.value == Shell::PowerShell) {
            return Err(SkillError::PowerShell(skill.name.clone()));
        }
        // They may use what the skill frees.
        dispatch.agent.put_rules_in_force(skill);
        let output = run_command(dispatch, skill, command, cancel).await?;
        body.push_str(output.trim_end());
        if command.form == CommandForm::Block {
            body.push('\n');
        }
    }
    Ok(body)
}

/// The way of calls that the program makes for an agent.
fn dispatch_of(shared: &Arc<Shared>, agent: &Arc<Agent>) -> Dispatch {
    let builder = &shared.delegation.builder;
    Dispatch {
        toolbox: Toolbox::holding(agent.program_tools()),
        agent: Arc::clone(agent),
        broker: Arc::clone(&shared.broker),
        allows_sandboxed: builder.confinement.allows_sandboxed,
    }
}

/// Runs one command of a skill's text; what it printed.
async fn run_command(
    dispatch: &Dispatch,
    skill: &SkillDefinition,
    command: &SkillCommand,
    cancel: &CancellationToken,
) -> Result<String, SkillError> {
    let failed = |output: String| {
        let (name, text) = (skill.name.clone(), command.text.clone());
        SkillError::Failed { name, line: command.line, command: text, output }
    };
    let input = json!({"command": command.text, "timeout": PATIENCE_MS});
    let input = to_raw_value(&input).map_err(|error| failed(error.to_string()))?;
    let id = ToolUseId::new(format!("skill-{}-{}", skill.name, command.line));
    let call = ToolUse { id, name: "Bash".to_owned(), input };
    let prepared = match dispatch.prepare(&call) {
        Ok(prepared) => prepared,
        Err(refused) => return Err(failed(text_of(&refused.result))),
    };
    let done = dispatch.run_unasked(&call, prepared, cancel).await;
    if cancel.is_cancelled() {
        return Err(SkillError::Cancelled);
    }
    if let Some(CallDenied { reason: denial, .. }) = done.denied {
        let (name, text) = (skill.name.clone(), command.text.clone());
        return Err(SkillError::NotAllowed { name, line: command.line, command: text, denial });
    }
    let is_answer = done.data["exitCode"] == 1
        && ONE_IS_AN_ANSWER.iter().any(|program| command.text.trim_start().starts_with(program));
    let text = text_of(&done.result);
    if done.result.is_error && !is_answer {
        return Err(failed(text));
    }
    Ok(printed(&done.data, text))
}

/// The output of a command, without the tool's own words for models. Where a hook or a bound has changed the text, it
/// is the whole text.
fn printed(data: &Value, text: String) -> String {
    let Some(output) = data["stdout"].as_str() else { return text };
    let output = contain(output);
    if text.ends_with(&*output) { output.into_owned() } else { text }
}
