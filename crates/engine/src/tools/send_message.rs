//! The `SendMessage` tool: one agent speaks to another, which may be at work, at rest, or have ended.

mod deliver;
mod peer;
mod structured;

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_protocol::ToolUseId;
use centurion_team::Frame;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) use self::deliver::deliver_from_outside;
use self::deliver::{Letter, Recipient};
pub(crate) use self::structured::send as send_structured;
use crate::agent::Agent;
use crate::agent::shared::Shared;
use crate::agent::task::Task;
use crate::delegate::recall;
use crate::message::titles::listed;
use crate::tools::agent_tool::name;

/// The most bytes of a message in its summary.
const SUMMARY_BYTES: usize = 200;

/// The most names that are suggested for an unknown one.
const MOST_NEAR: usize = 3;

/// The least similarity of a suggested name: 1 is the same.
const NEAR: f64 = 0.7;

/// The part of the description for an agent of a session with a team.
const ABOUT_TEAMS: &str = "\n\nIn a team: `to` is a member's name, `team-lead`, or `*` for all others. `message` may also be an \
    object. The lead asks a member to end: {\"type\": \"shutdown_request\", \"reason\"?}. A member answers: {\"type\": \
    \"shutdown_response\", \"request_id\", \"approve\", \"reason\"?}. The lead answers a plan: {\"type\": \
    \"plan_approval_response\", \"request_id\", \"approve\", \"feedback\"?}, and a member's question whether a call may run: \
    {\"type\": \"permission_response\", \"request_id\", \"approve\", \"reason\"?}.";

/// Sends a message to an agent of this session, or to the agent `main`. A running agent reads it before its next step. An
/// agent that has ended resumes in the background with its whole conversation, and you are told when it ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendMessageInput {
    /// The agent's name or id; for another session of the user, the address that `ListAgents` shows (`uds:…`).
    to: String,
    /// The text to send.
    message: Value,
    /// The message in a few words, for people.
    summary: Option<String>,
}

pub(crate) struct SendMessage(pub(crate) Arc<Agent>);

impl Tool for SendMessage {
    type Input = SendMessageInput;

    const NAME: &'static str = "SendMessage";

    fn describe(&self, usual: String) -> String {
        let has_team =
            self.0.shared.upgrade().is_some_and(|shared| shared.delegation.team.is_some());
        if has_team { format!("{usual}{ABOUT_TEAMS}") } else { usual }
    }

    fn is_read_only(&self, _: &SendMessageInput) -> bool {
        false
    }

    fn access(&self, input: &SendMessageInput, _: &ToolContext) -> Access {
        peer::access(&input.to)
    }

    async fn run(
        &self,
        input: SendMessageInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let to = input.to.trim();
        if peer::is_peer(to) {
            let text = input.message.as_str().unwrap_or_default();
            let summary = summary(input.summary.as_deref(), text);
            return peer::send(&shared, to, &input.message, &summary).await;
        }
        recall::recall(&shared, to).await;
        let text = match &input.message {
            Value::String(text) => text,
            structured => {
                return structured::send(&shared, &self.0, to, structured, &context.call);
            }
        };
        if text.trim().is_empty() {
            return Err(ToolError::Input("the message is empty: say something".to_owned()));
        }
        if shared.delegation.team.is_some() && Frame::is_imitated_by(text) {
            let reason = "the text is a structured message of a team: give it as an object";
            return Err(ToolError::Input(reason.to_owned()));
        }
        let letter =
            Letter { text, summary: &summary(input.summary.as_deref(), text), frame: None };
        if to == "*" {
            return broadcast(&shared, &self.0, &letter, &context.call);
        }
        send(&shared, &self.0, to, &letter, &context.call)
    }
}

/// The summary, or the first line in its place.
fn summary(given: Option<&str>, message: &str) -> String {
    let given = given.map(str::trim).filter(|text| !text.is_empty());
    let text = given.unwrap_or_else(|| message.trim().lines().next().unwrap_or_default());
    text[..text.floor_char_boundary(SUMMARY_BYTES)].to_owned()
}

/// The old parameter `resume` of the Agent tool: the same as a message.
pub(crate) async fn resume(
    shared: &Arc<Shared>,
    caller: &Agent,
    id: &str,
    message: &str,
    call: &ToolUseId,
) -> Result<ToolOutput, ToolError> {
    recall::recall(shared, id.trim()).await;
    let letter = Letter { text: message, summary: &summary(None, message), frame: None };
    send(shared, caller, id.trim(), &letter, call)
}

/// Tells a member of the team that a task is its own now, unless it took the task itself. The result says why it was
/// not told, where it has to be.
pub(crate) async fn assign(
    caller: &Agent,
    task: &centurion_team::Task,
    call: &ToolUseId,
) -> Option<String> {
    let assigned_by = caller.identity.task_name();
    let owner = task.owner.as_deref().filter(|owner| *owner != assigned_by)?;
    let shared = caller.session().ok()?;
    recall::recall(&shared, owner).await;
    let recipient = Recipient::find(&shared, owner)?;
    if !recipient.is_teammate_of(caller) {
        return None;
    }
    let frame = Frame::TaskAssignment {
        task_id: task.id.to_string(),
        subject: task.subject.clone(),
        description: task.description.clone(),
        assigned_by,
    };
    let text = frame.to_text();
    let letter = Letter { text: &text, summary: &task.subject, frame: Some(frame) };
    match recipient.deliver(&shared, caller, &letter, call) {
        Ok(delivered) if delivered.is_accepted() => None,
        Ok(delivered) => Some(delivered.words(&recipient, owner)),
        Err(error) => Some(error.to_string()),
    }
}

fn send(
    shared: &Arc<Shared>,
    caller: &Agent,
    to: &str,
    letter: &Letter<'_>,
    call: &ToolUseId,
) -> Result<ToolOutput, ToolError> {
    let Some(recipient) = address(shared, caller, to)? else { return Ok(unreachable(shared, to)) };
    let delivered = recipient.deliver(shared, caller, letter, call)?;
    Ok(receipt(delivered.receipt(caller, &recipient, to, letter)))
}

/// Sends the same text to the lead and all members but the sender.
fn broadcast(
    shared: &Arc<Shared>,
    caller: &Agent,
    letter: &Letter<'_>,
    call: &ToolUseId,
) -> Result<ToolOutput, ToolError> {
    let team = shared.delegation.team.as_ref();
    let Some(team) = team.filter(|_| caller.identity.is_main() || caller.identity.team.is_some())
    else {
        let reason = "you are in no team: send a message to each agent by name or id";
        return Err(ToolError::Input(reason.to_owned()));
    };
    let is_other = |task: &Arc<Task>| caller.identity.id.as_ref() != Some(&task.id);
    let others = team.members().into_iter().filter(is_other).map(Recipient::Agent);
    let lead = (!caller.identity.is_main()).then_some(Recipient::Main);
    let (mut sent, mut receipts) = (0, Vec::new());
    for recipient in lead.into_iter().chain(others) {
        let name = recipient.name();
        let answer = match recipient.deliver(shared, caller, letter, call) {
            Ok(delivered) => {
                sent += usize::from(delivered.is_accepted());
                delivered.receipt(caller, &recipient, &name, letter)
            }
            Err(error) => json!({"success": false, "to": name, "message": error.to_string()}),
        };
        receipts.push(answer);
    }
    let message = match receipts.len() {
        0 => "There is no other member to speak to.".to_owned(),
        all => format!("Message sent to {sent} of {all} members."),
    };
    let success = sent > 0 && sent == receipts.len();
    Ok(receipt(json!({"success": success, "message": message, "recipients": receipts})))
}

/// The agent that `to` means; `None` if there is no such agent.
fn address(shared: &Arc<Shared>, caller: &Agent, to: &str) -> Result<Option<Recipient>, ToolError> {
    if peer::is_peer(to) {
        let reason = "another session is no agent of this one: only SendMessage reaches it";
        return Err(ToolError::Input(reason.to_owned()));
    }
    if let Some((name, _)) = to.split_once('@').filter(|_| shared.delegation.team.is_some()) {
        let reason = format!("give the bare name of the member: {name:?}");
        return Err(ToolError::Input(reason));
    }
    if let Err(fault) = name::check_path(to) {
        return Err(ToolError::Input(format!("no agent can have the name in `to`: {fault}")));
    }
    let recipient = Recipient::find(shared, to);
    if recipient.as_ref().is_some_and(|it| it.is(caller)) {
        return Err(ToolError::Input("this is you: speak to another agent".to_owned()));
    }
    Ok(recipient)
}

/// Says which agents can be reached instead. It is an answer, not a failure: nothing was lost.
fn unreachable(shared: &Shared, to: &str) -> ToolOutput {
    let tasks = shared.delegation.tasks();
    let name = |task: &Arc<Task>| task.identity.name.clone().unwrap_or_else(|| task.id.to_string());
    let names: Vec<String> = tasks.iter().map(name).collect();
    let mut near: Vec<&String> =
        names.iter().filter(|name| strsim::jaro_winkler(name, to) >= NEAR).collect();
    near.truncate(MOST_NEAR);
    let known = match names.as_slice() {
        [] => "There are no agents yet: start an agent first.".to_owned(),
        _ if !near.is_empty() => format!("Did you mean: {}?", listed(near.iter(), ", ")),
        names => format!("Reachable agents: {}.", listed(names.iter().rev(), ", ")),
    };
    let text = format!("No agent named '{to}' is reachable. {known}");
    receipt(json!({"success": false, "message": text, "status": "no_such_agent"}))
}

fn receipt(data: Value) -> ToolOutput {
    ToolOutput::text(data.to_string()).with_data(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_summary_is_the_first_line() {
        // D-15
        assert_eq!(summary(None, "\nGo on.\nAnd then stop."), "Go on.");
        assert_eq!(summary(Some(" short "), "long"), "short");
        assert_eq!(summary(None, &"é".repeat(300)).len(), 200);
    }
}
