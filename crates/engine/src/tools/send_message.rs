//! The `SendMessage` tool: one agent speaks to another, which may be at work or have ended.

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_protocol::ToolUseId;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::agent::meant;
use crate::agent::shared::Shared;
use crate::agent::task::{Posted, Stopper, Task};
use crate::delegate::recall;
use crate::delegate::spawn;
use crate::message::mail::Mail;
use crate::message::titles::listed;
use crate::tools::agent_tool::name;

/// How much of a message stands for all of it.
const SUMMARY_BYTES: usize = 200;

/// Says something to an agent that you or others started. One at work reads it before its next step; one
/// that has ended goes on in the background with all that it knows, and you are told when it ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendMessageInput {
    /// The agent's name or id.
    to: String,
    /// What to say.
    message: Value,
    /// The message in a few words, for people.
    summary: Option<String>,
}

pub(crate) struct SendMessage(pub(crate) Arc<Agent>);

impl Tool for SendMessage {
    type Input = SendMessageInput;

    const NAME: &'static str = "SendMessage";

    fn is_read_only(&self, _: &SendMessageInput) -> bool {
        false
    }

    fn access(&self, _: &SendMessageInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        input: SendMessageInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let Value::String(message) = &input.message else {
            let reason = "a message that is no text is for members of a team, and there are no teams in \
                          this version: send text";
            return Err(ToolError::Input(reason.to_owned()));
        };
        let to = input.to.trim();
        if to == "*" {
            let reason = "there is no team to speak to: send a message to each agent by name or id";
            return Err(ToolError::Input(reason.to_owned()));
        }
        if to.starts_with("uds:") || to.starts_with("bridge:") {
            let reason = "other sessions cannot be reached in this version";
            return Err(ToolError::Input(reason.to_owned()));
        }
        if let Some(fault) = name::path_fault(to) {
            return Err(ToolError::Input(format!("no agent can have the name in `to`: {fault}")));
        }
        if message.trim().is_empty() {
            return Err(ToolError::Input("the message is empty: say something".to_owned()));
        }
        let summary = summary(input.summary.as_deref(), message);
        send(&shared, &self.0, to, message, &summary, &context.call)
    }
}

/// The summary, or the first line in its place.
fn summary(given: Option<&str>, message: &str) -> String {
    let given = given.map(str::trim).filter(|text| !text.is_empty());
    let text = given.unwrap_or_else(|| message.trim().lines().next().unwrap_or_default());
    text[..text.floor_char_boundary(SUMMARY_BYTES)].to_owned()
}

/// The old parameter `resume` of the Agent tool: the same as a message.
pub(crate) fn resume(
    shared: &Arc<Shared>,
    caller: &Agent,
    id: &str,
    message: &str,
    call: &ToolUseId,
) -> Result<ToolOutput, ToolError> {
    send(shared, caller, id.trim(), message, &summary(None, message), call)
}

fn send(
    shared: &Arc<Shared>,
    caller: &Agent,
    to: &str,
    message: &str,
    summary: &str,
    call: &ToolUseId,
) -> Result<ToolOutput, ToolError> {
    let Some(task) = recall::find(shared, to) else { return Ok(unreachable(shared, to)) };
    if caller.identity.id.as_ref() == Some(&task.id) {
        return Err(ToolError::Input("this is you: speak to another agent".to_owned()));
    }
    // One after another: of two that speak to an agent that has ended, one sets it to work.
    let _door = task.door();
    if task.end().is_some_and(|end| end.stopped_by == Some(Stopper::Person)) {
        let text = format!(
            "The user stopped agent {to}, and only the user sets it to work again: it was not told."
        );
        return Ok(receipt(
            json!({"success": false, "message": text, "status": "stopped_by_user"}),
        ));
    }
    let mail =
        Mail { id: shared.world.record_id(), from: sender(caller), text: message.to_owned() };
    let pin =
        json!({"id": task.id, "name": task.identity.name.as_deref().unwrap_or(task.id.as_str())});
    let posted = task.post(&shared.queue, &mail).map_err(|error| {
        ToolError::failed(format!("the message was not sent, because it cannot be kept: {error}"))
    })?;
    if posted == Posted::Queued {
        return Ok(receipt(json!({
            "success": true,
            "message": format!("Queued: {to} reads it before its next step."),
            "status": "queued",
            "summary": summary,
            "msg_id": mail.id,
            "pin": pin,
        })));
    }
    if let Some(reason) = refusal(shared, caller, &task) {
        return Err(ToolError::Failed(reason));
    }
    spawn::resume(shared, caller, &task, call.clone(), &mail)
        .map_err(|error| ToolError::failed(format!("the agent cannot go on: {error}")))?;
    Ok(receipt(json!({
        "success": true,
        "message": format!(
            "Agent {to} had ended and goes on in the background with your message. You are told when it ends."
        ),
        "status": "resumed",
        "summary": summary,
        "msg_id": mail.id,
        "resumedAgentId": task.id,
        "outputFile": task.output.path(),
        "pin": pin,
    })))
}

/// Why an agent that has ended is not set to work again, if so: rules that came since may forbid its type.
fn refusal(shared: &Shared, caller: &Agent, task: &Task) -> Option<String> {
    let kind = &task.spec.agent_type;
    let catalog = shared.delegation.definitions.agents();
    let is_denied = caller.permissions.denies_agent(&meant::names(&catalog, kind));
    is_denied.then(|| {
        format!(
            "Agents of type '{kind}' may not be set to work: a deny rule forbids it. Do without it."
        )
    })
}

fn sender(caller: &Agent) -> String {
    match (&caller.identity.name, &caller.identity.id) {
        (Some(name), _) => format!("The agent {name}"),
        (None, Some(id)) => format!("The agent {id}"),
        (None, None) => "The agent that leads".to_owned(),
    }
}

/// Says who can be reached instead. It is an answer, not a failure: nothing was lost.
fn unreachable(shared: &Shared, to: &str) -> ToolOutput {
    let tasks = shared.delegation.tasks();
    let name = |task: &Arc<Task>| task.identity.name.clone().unwrap_or_else(|| task.id.to_string());
    let names: Vec<String> = tasks.iter().map(name).collect();
    let known = match names.as_slice() {
        [] => "There is nobody to speak to: start an agent first.".to_owned(),
        names => format!("Those who can be reached: {}.", listed(names.iter().rev(), ", ")),
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
