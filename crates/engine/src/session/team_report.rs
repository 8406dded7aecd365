//! The team as a person is shown it: its members, its tasks and its mail; and the request to end that a person sends.

use std::sync::Arc;

use centurion_protocol::{AgentId, ToolUseId};
use centurion_team::{InboxEntry, LEAD};
use serde_json::json;
use thiserror::Error;

use super::Handle;
use crate::agent::task::Task;
use crate::agent::team::Team;
use crate::tools::send_message;

/// A member of the team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamMember {
    pub id: AgentId,
    pub name: String,
    pub agent_type: String,
    pub model: String,
    pub standing: MemberStanding,
    /// True if it was asked to end and has not answered.
    pub is_asked_to_end: bool,
    /// Its present activity, in a few words.
    pub activity: String,
    /// The tokens of its last request and answer.
    pub tokens: u64,
    /// The word for the place of its process.
    pub place: &'static str,
}

/// The standing of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberStanding {
    AtWork,
    /// It waits for a message or a task.
    AtRest,
    /// It is a member no more; its name stays its own.
    Left,
}

/// A message in a mailbox of the team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamMessage {
    pub from: String,
    pub to: String,
    /// Its summary, or else its text.
    pub summary: String,
    pub text: String,
    /// In the form of ISO 8601.
    pub at: String,
    /// True when it is in a recorded turn of its reader.
    pub is_read: bool,
}

/// The team of a session.
#[derive(Clone, Debug)]
pub struct TeamReport {
    pub name: String,
    /// In the order in which they joined.
    pub members: Vec<TeamMember>,
    /// In the order of their numbers.
    pub tasks: Vec<centurion_team::Task>,
    /// The newest first, as far as they are kept.
    pub mail: Vec<TeamMessage>,
}

/// The reason why a member was not asked to end.
#[derive(Debug, Error)]
pub enum AskToEndError {
    #[error("the session has ended")]
    Ended,
    #[error("there is no agent of that name in the team")]
    Unknown,
    #[error("{0}")]
    Refused(String),
}

impl Handle {
    /// The team as it is now; `None` where sessions have none. Reads the file of the tasks, and so blocks.
    pub fn team(&self) -> Option<TeamReport> {
        let delegation = &self.0.delegation;
        let team = delegation.team.as_ref()?;
        let everyone = team.all_members();
        let names = everyone.iter().filter_map(|task| task.spec.name.clone());
        let mut mail: Vec<TeamMessage> =
            std::iter::once(LEAD.to_owned()).chain(names).flat_map(|it| inbox(team, &it)).collect();
        mail.sort_by(|one, other| other.at.cmp(&one.at));
        Some(TeamReport {
            name: team.name().to_string(),
            members: everyone.iter().map(|task| member(team, task)).collect(),
            tasks: delegation.task_list().map(|list| list.everything()).unwrap_or_default(),
            mail,
        })
    }

    /// Asks a member of the team to end, as its lead does for a person.
    pub fn ask_to_end(&self, member: &str) -> Result<(), AskToEndError> {
        let shared = &self.0;
        let lead = shared.main_agent().ok_or(AskToEndError::Ended)?;
        let task = shared.delegation.find(member).ok_or(AskToEndError::Unknown)?;
        let name = task.spec.name.clone().ok_or(AskToEndError::Unknown)?;
        let request = json!({"type": "shutdown_request", "reason": "the user asks you to end"});
        let call = ToolUseId::new(format!("user_{}", shared.world.record_id()));
        let sent = send_message::send_structured(shared, &lead, &name, &request, &call);
        sent.map(drop).map_err(|error| AskToEndError::Refused(error.to_string()))
    }
}

fn member(team: &Team, task: &Arc<Task>) -> TeamMember {
    let progress = task.progress();
    let standing = match task.end() {
        None => MemberStanding::AtWork,
        Some(end) if end.leaves_team() => MemberStanding::Left,
        Some(_) => MemberStanding::AtRest,
    };
    TeamMember {
        id: task.id.clone(),
        name: task.identity.task_name(),
        agent_type: task.spec.agent_type.clone(),
        model: task.spec.model.clone(),
        standing,
        is_asked_to_end: team.is_asked_to_end(&task.id),
        activity: progress.activity,
        tokens: progress.tokens,
        place: task.back_end(),
    }
}

/// The messages that the mailbox of an agent shows.
fn inbox(team: &Team, of: &str) -> Vec<TeamMessage> {
    let entries = team.view().map(|view| view.inbox(of)).unwrap_or_default();
    let message = |entry: InboxEntry| TeamMessage {
        from: entry.from,
        to: of.to_owned(),
        summary: entry.summary.unwrap_or_else(|| entry.text.clone()),
        text: entry.text,
        at: entry.timestamp,
        is_read: entry.read,
    };
    entries.into_iter().map(message).collect()
}
