//! An item of the queue: what an agent must be told, who says it, and how urgent it is.

use centurion_permissions::Mode;
use centurion_protocol::{AgentId, Block, RecordId};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::message::manner::Manner;

/// The urgency of an item. Within one priority, first come, first served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Before anything else that waits.
    Now,
    /// Input of people.
    Next,
    /// News of background work: never before a person's own input.
    Later,
}

/// Something an agent must be told.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub id: RecordId,
    pub priority: Priority,
    /// `None` is the main agent.
    pub addressee: Option<AgentId>,
    pub content: Vec<Block>,
    pub origin: Origin,
    pub manner: Manner,
}

impl Item {
    /// The origin as transcripts spell it; `None` for people.
    pub(crate) fn recorded_origin(&self) -> Option<Value> {
        self.manner.declared().cloned().or_else(|| self.origin.to_value())
    }

    /// The origin in the few words that hosts know.
    pub(crate) fn origin_for_hosts(&self) -> Option<Value> {
        self.manner.declared().cloned().or_else(|| self.origin.for_hosts())
    }

    /// Tells whether a person wants it to be said after the turn that is under way.
    pub(crate) fn waits_for_turn(&self) -> bool {
        self.priority == Priority::Later && matches!(self.origin, Origin::Person)
    }

    /// The words of a person without what was pasted, and the pastes.
    pub(crate) fn split_pastes(&mut self) -> Vec<Block> {
        let typed = self.content.len().saturating_sub(self.manner.pastes);
        self.manner.pastes = 0;
        self.content.split_off(typed)
    }

    /// Puts the pastes back, behind what the words of the person have become. Piped data is joined to the words, as one
    /// text, where these are as they were typed.
    pub(crate) fn rejoin_pastes(&mut self, typed: &str, pastes: Vec<Block>) {
        let is_piped = self.manner.is_piped;
        match (self.content.first_mut(), pastes.as_slice()) {
            (Some(Block::Text(words)), [Block::Text(data)]) if is_piped && words == typed => {
                words.push_str("\n\n");
                words.push_str(data);
            }
            _ => self.content.extend(pastes),
        }
    }

    /// Tells whether it begins a turn by itself.
    pub(super) fn wakes(&self) -> bool {
        !self.manner.is_quiet && self.origin.wakes()
    }
}

/// The origin of an item.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// A person typed it, or a host sent it on their behalf.
    Person,
    /// Background work ended: this run of an agent, or a shell.
    TaskNotification { run: Option<String> },
    /// Several agents ended, and this tells of all of them.
    TaskNotifications { covers: Vec<RecordId> },
    /// A hook has something to say, or something to ask.
    Hook,
    /// The task that an agent was started for.
    Delegation,
    /// The prompt that a definition puts before the first input.
    Initial,
    /// Another agent says it. It may hand the recipient a permission mode over: the lead approved its plan.
    Message { from: String, hands_over: Option<Mode> },
    /// A member of a team has nothing to do after this run.
    TeammateIdle { member: AgentId, run: String, wakes: Wakes },
    /// A schedule of the main agent was due.
    Schedule { id: String, due: Timestamp },
    /// Schedules were due while the session was closed, until it was opened again.
    MissedSchedules { ids: Vec<String>, until: Timestamp },
}

/// When the notice that a member of a team is idle begins a turn of the lead. Until then it goes along with the
/// lead's next turn, whatever begins that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakes {
    /// The lead knows what there is to know.
    Never,
    /// The lead has to hear what the member said, and can hear it together with the others.
    WhenAllAreIdle,
    AtOnce,
}

/// The kind of the origin of a schedule's item.
pub(crate) const SCHEDULE: &str = "schedule";
/// The kind of the origin of a notification about background work.
const TASK_NOTIFICATION: &str = "task-notification";
/// The producer of notifications about a session's own agents and shells, as hosts know it.
const PRODUCER: &str = "session-task";

impl Origin {
    /// The origin as hosts and transcripts spell it; `None` for people.
    pub(crate) fn to_value(&self) -> Option<Value> {
        match self {
            Self::Person => None,
            Self::Hook => Some(serde_json::json!({"kind": "hook"})),
            Self::TaskNotification { run: Some(run) } => Some(
                serde_json::json!({"kind": TASK_NOTIFICATION, "producer": PRODUCER, "runId": run}),
            ),
            Self::TaskNotification { run: None } => {
                Some(serde_json::json!({"kind": TASK_NOTIFICATION, "producer": PRODUCER}))
            }
            Self::TaskNotifications { covers } => Some(
                serde_json::json!({"kind": TASK_NOTIFICATION, "producer": PRODUCER, "covers": covers}),
            ),
            Self::Delegation | Self::Initial => Some(serde_json::json!({"kind": "coordinator"})),
            Self::Message { from, .. } => Some(serde_json::json!({"kind": "peer", "from": from})),
            Self::TeammateIdle { member, run, .. } => {
                Some(serde_json::json!({"kind": "teammate", "agentId": member, "runId": run}))
            }
            Self::Schedule { id, due } => Some(
                serde_json::json!({"kind": SCHEDULE, "id": id, "due": centurion_protocol::Timestamp::from(*due)}),
            ),
            Self::MissedSchedules { ids, until } => Some(
                serde_json::json!({"kind": SCHEDULE, "missed": ids, "due": centurion_protocol::Timestamp::from(*until)}),
            ),
        }
    }

    /// The origin in the few words that hosts know.
    fn for_hosts(&self) -> Option<Value> {
        match self {
            Self::Hook => Some(serde_json::json!({"kind": "auto-continuation"})),
            Self::TeammateIdle { member, .. } => {
                Some(serde_json::json!({"kind": "peer", "from": member}))
            }
            Self::Schedule { .. } | Self::MissedSchedules { .. } => {
                Some(serde_json::json!({"kind": TASK_NOTIFICATION, "subkind": "scheduled-trigger"}))
            }
            _ => self.to_value(),
        }
    }

    /// The ends of agents that an item with this id tells of, by the ids of their news.
    pub(crate) fn told_ends(&self, id: RecordId) -> Vec<RecordId> {
        match self {
            Self::TaskNotification { run: Some(_) } | Self::TeammateIdle { .. } => vec![id],
            Self::TaskNotifications { covers } => covers.clone(),
            _ => Vec::new(),
        }
    }

    /// Tells whether it tells of something that is over, and asks for nothing.
    pub(crate) fn is_news(&self) -> bool {
        matches!(
            self,
            Self::TaskNotification { .. }
                | Self::TaskNotifications { .. }
                | Self::TeammateIdle { .. }
        )
    }

    /// Tells whether it begins a turn by itself.
    fn wakes(&self) -> bool {
        !matches!(self, Self::TeammateIdle { wakes: Wakes::Never | Wakes::WhenAllAreIdle, .. })
    }

    /// Tells whether it tells how agents ended.
    pub(crate) fn is_of_agents(&self) -> bool {
        matches!(self, Self::TaskNotification { run: Some(_) } | Self::TaskNotifications { .. })
    }

    /// Tells whether agents say it, or it tells how they ended.
    pub(crate) fn is_by_agents(&self) -> bool {
        self.is_of_agents() || matches!(self, Self::Message { .. } | Self::TeammateIdle { .. })
    }

    /// Tells whether it tells of this schedule.
    pub(super) fn is_of_schedule(&self, schedule: &str) -> bool {
        match self {
            Self::Schedule { id, .. } => id == schedule,
            Self::MissedSchedules { ids, .. } => ids.iter().any(|id| id == schedule),
            _ => false,
        }
    }
}
