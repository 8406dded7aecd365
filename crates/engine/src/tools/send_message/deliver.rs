//! The delivery of one message: its recipient and its receipt. The receipt is given after the message is on disk.

use std::sync::Arc;

use centurion_protocol::{RecordId, ToolUseId};
use centurion_team::{Frame, LEAD};
use centurion_tools::ToolError;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::agent::name_lookup;
use crate::agent::shared::Shared;
use crate::agent::task::{PostResult, Stopper, Task};
use crate::delegate::spawn;
use crate::message::mail::{Mail, TeamMail};

/// The names by which agents mean the main agent.
const MAIN_NAMES: [&str; 2] = ["main", LEAD];

/// A message to send.
pub(super) struct Letter<'a> {
    pub(super) text: &'a str,
    pub(super) summary: &'a str,
    /// The structured message that the text tells of.
    pub(super) frame: Option<Frame>,
}

/// An agent that is spoken to.
pub(super) enum Recipient {
    Main,
    Agent(Arc<Task>),
}

/// The result of a delivery.
pub(super) struct Delivery {
    id: RecordId,
    status: DeliveryStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeliveryStatus {
    /// It is read before the recipient's next step.
    Queued,
    /// A member of a team at rest works on it now.
    Delivered,
    /// An agent that had ended works on it now.
    Resumed,
    /// Nothing was sent: too much waits unread.
    Full,
    /// Nothing was sent: the user stopped the agent.
    StoppedByUser,
}

impl DeliveryStatus {
    fn is_accepted(self) -> bool {
        !matches!(self, Self::Full | Self::StoppedByUser)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Resumed => "resumed",
            Self::Full => "mailbox_full",
            Self::StoppedByUser => "terminated",
        }
    }
}

impl Recipient {
    /// The agent that a name or id means.
    pub(super) fn find(shared: &Arc<Shared>, to: &str) -> Option<Self> {
        if MAIN_NAMES.iter().any(|name| name.eq_ignore_ascii_case(to)) {
            return Some(Self::Main);
        }
        shared.delegation.find(to).map(Self::Agent)
    }

    pub(super) fn is(&self, caller: &Agent) -> bool {
        match self {
            Self::Main => caller.identity.is_main(),
            Self::Agent(task) => caller.identity.id.as_ref() == Some(&task.id),
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Main => LEAD.to_owned(),
            Self::Agent(task) => task.identity.name.clone().unwrap_or_else(|| task.id.to_string()),
        }
    }

    fn color(&self) -> Option<&str> {
        match self {
            Self::Main => None,
            Self::Agent(task) => Some(&task.spec.color),
        }
    }

    /// Tells whether it and the sender are in one team.
    pub(super) fn is_teammate_of(&self, caller: &Agent) -> bool {
        let is_inside = caller.identity.is_main() || caller.identity.team.is_some();
        is_inside
            && match self {
                Self::Main => caller.identity.team.is_some(),
                Self::Agent(task) => task.spec.team.is_some(),
            }
    }

    /// Has the message accepted, and wakes the recipient where it is at rest or has ended.
    pub(super) fn deliver(
        &self,
        shared: &Arc<Shared>,
        caller: &Agent,
        letter: &Letter<'_>,
        call: &ToolUseId,
    ) -> Result<Delivery, ToolError> {
        let mail = self.mail(shared, caller, letter);
        let status = match self {
            Self::Main => {
                let posted = shared.post_to_main(&mail).map_err(not_kept)?;
                if posted == PostResult::Full {
                    DeliveryStatus::Full
                } else {
                    DeliveryStatus::Queued
                }
            }
            Self::Agent(task) => deliver_to_agent(shared, caller, task, &mail, call)?,
        };
        if let Self::Agent(task) = self
            && task.spec.team.is_some()
            && status.is_accepted()
        {
            shared.note_team_mail(&self.name(), &mail);
        }
        if matches!(self, Self::Main) && status == DeliveryStatus::Queued {
            caller.task.iter().for_each(|task| task.note_report());
        }
        Ok(Delivery { id: mail.id, status })
    }

    fn mail(&self, shared: &Shared, caller: &Agent, letter: &Letter<'_>) -> Mail {
        let id = shared.world.record_id();
        let text = letter.text.to_owned();
        if !self.is_teammate_of(caller) {
            return Mail { id, from: sender(caller), text, team: None };
        }
        let identity = &caller.identity;
        let team = TeamMail {
            color: identity.color.map(|color| color.as_str().to_owned()),
            summary: Some(letter.summary.to_owned()).filter(|text| !text.is_empty()),
            frame: letter.frame.clone(),
        };
        let from = identity.name.clone().filter(|_| !identity.is_main());
        Mail { id, from: from.unwrap_or_else(|| LEAD.to_owned()), text, team: Some(team) }
    }
}

/// Puts a message of another program before a member of the team, or before its lead.
pub(crate) fn deliver_from_outside(
    shared: &Arc<Shared>,
    to: Option<&Arc<Task>>,
    mail: &Mail,
) -> Result<(), ToolError> {
    match (to, shared.main_agent()) {
        (None, _) => match shared.post_to_main(mail).map_err(not_kept)? {
            PostResult::Full => Err(ToolError::failed(DeliveryStatus::Full.as_str())),
            PostResult::Queued | PostResult::HasEnded => Ok(()),
        },
        (Some(task), Some(lead)) => {
            let call = ToolUseId::new("outside");
            let status = deliver_to_agent(shared, &lead, task, mail, &call)?;
            if !status.is_accepted() {
                return Err(ToolError::failed(status.as_str()));
            }
            shared.note_team_mail(task.spec.name.as_deref().unwrap_or_default(), mail);
            Ok(())
        }
        (Some(_), None) => Err(ToolError::failed("the session has no main agent")),
    }
}

fn not_kept(error: impl std::fmt::Display) -> ToolError {
    ToolError::failed(format!("the message was not sent, because it cannot be kept: {error}"))
}

fn deliver_to_agent(
    shared: &Arc<Shared>,
    caller: &Agent,
    task: &Arc<Task>,
    mail: &Mail,
    call: &ToolUseId,
) -> Result<DeliveryStatus, ToolError> {
    // One after another: of two that speak to an agent that has ended, one resumes it.
    let _access = task.hold_access();
    let end = task.end();
    if end.as_ref().is_some_and(|end| end.stopped_by == Some(Stopper::Person)) {
        return Ok(DeliveryStatus::StoppedByUser);
    }
    match task.post(&shared.queue, mail).map_err(not_kept)? {
        PostResult::Queued => return Ok(DeliveryStatus::Queued),
        PostResult::Full => return Ok(DeliveryStatus::Full),
        PostResult::HasEnded => {}
    }
    if let Some(reason) = refusal(shared, caller, task) {
        return Err(ToolError::Failed(reason));
    }
    // Every member of a team works for the lead, whichever agent wakes it.
    let lead = task.spec.team.as_ref().and_then(|_| shared.main_agent());
    spawn::resume(shared, lead.as_deref().unwrap_or(caller), task, call.clone(), mail)
        .map_err(|error| ToolError::failed(format!("the agent cannot be resumed: {error}")))?;
    let was_resting = task.spec.team.is_some() && end.is_some_and(|end| !end.leaves_team());
    Ok(if was_resting { DeliveryStatus::Delivered } else { DeliveryStatus::Resumed })
}

/// The reason why an agent that has ended is not resumed, if so: rules that came since may forbid its type.
fn refusal(shared: &Shared, caller: &Agent, task: &Task) -> Option<String> {
    let kind = &task.spec.agent_type;
    let catalog = shared.delegation.definitions.agents();
    let is_denied = caller.permissions.denies_agent(&name_lookup::names(&catalog, kind));
    is_denied.then(|| {
        format!(
            "Agents of type '{kind}' may not be resumed: a deny rule forbids it. Do without it."
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

impl Delivery {
    /// Tells whether it will be read.
    pub(super) fn is_accepted(&self) -> bool {
        self.status.is_accepted()
    }

    /// The receipt for the sender.
    pub(super) fn receipt(
        &self,
        caller: &Agent,
        recipient: &Recipient,
        to: &str,
        letter: &Letter<'_>,
    ) -> Value {
        let mut receipt = json!({
            "success": self.is_accepted(),
            "message": self.words(recipient, to),
            "status": self.status.as_str(),
        });
        if !self.is_accepted() {
            return receipt;
        }
        receipt["summary"] = json!(letter.summary);
        receipt["msg_id"] = json!(self.id);
        if let Recipient::Agent(task) = recipient {
            receipt["pin"] = json!({"id": task.id, "name": recipient.name()});
            if self.status == DeliveryStatus::Resumed {
                receipt["resumedAgentId"] = json!(task.id);
                receipt["outputFile"] = json!(task.output.path());
            }
        }
        if recipient.is_teammate_of(caller) {
            receipt["routing"] = routing(caller, recipient, letter);
        }
        receipt
    }

    /// The receipt in words.
    pub(super) fn words(&self, recipient: &Recipient, to: &str) -> String {
        match self.status {
            DeliveryStatus::Queued => format!("Queued: {to} reads it before its next step."),
            DeliveryStatus::Delivered => {
                format!("Message sent to {to}'s inbox: {to} works on it now.")
            }
            DeliveryStatus::Resumed => {
                let until = match recipient {
                    Recipient::Agent(task) if task.spec.team.is_some() => {
                        "It is in the team again."
                    }
                    _ => "You are told when it ends.",
                };
                format!(
                    "Agent {to} had ended and resumes in the background with your message. {until}"
                )
            }
            DeliveryStatus::Full => format!(
                "Too much waits unread for {to}, so nothing was sent: wait until {to} has read it, then send again."
            ),
            DeliveryStatus::StoppedByUser => format!(
                "The user stopped agent {to}, and only the user resumes it: it was not told."
            ),
        }
    }
}

/// The way of a message in a team.
fn routing(caller: &Agent, recipient: &Recipient, letter: &Letter<'_>) -> Value {
    let sender = if caller.identity.is_main() { LEAD } else { &caller.identity.task_name() };
    let mut routing = json!({
        "sender": sender,
        "target": format!("@{}", recipient.name()),
        "summary": letter.summary,
        "content": letter.text,
    });
    if let Some(color) = caller.identity.color.filter(|_| !caller.identity.is_main()) {
        routing["senderColor"] = json!(color.as_str());
    }
    if let Some(color) = recipient.color() {
        routing["targetColor"] = json!(color);
    }
    routing
}
