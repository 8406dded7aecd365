//! The identity of an agent in its records, events, hooks and questions.

use centurion_config::agents::Color;
use centurion_protocol::sdk::AgentTag;
use centurion_protocol::{AgentId, ToolUseId};
use centurion_team::TeamName;

use crate::definition::spec::AgentSpec;

pub(crate) use centurion_team::LEAD;

/// One agent of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// `None` for the main agent.
    pub(crate) id: Option<AgentId>,
    /// The type that it is of.
    pub(crate) kind: Option<String>,
    /// `None` where the main agent started it.
    pub(crate) parent: Option<AgentId>,
    /// The main agent's is zero.
    pub(crate) depth: u32,
    /// The call that started it.
    pub(crate) call: Option<ToolUseId>,
    /// Its task, in a few words.
    pub(crate) description: String,
    /// The name that others reach it by.
    pub(crate) name: Option<String>,
    pub(crate) color: Option<Color>,
    /// The types from the main agent's children down to this one.
    pub(crate) path: Vec<String>,
    /// The team that it is a member of.
    pub(crate) team: Option<TeamName>,
}

impl Identity {
    /// The identity of an agent that another one starts.
    pub(crate) fn of_spec(spec: &AgentSpec, id: &AgentId) -> Self {
        Self {
            id: Some(id.clone()),
            kind: Some(spec.agent_type.clone()),
            parent: spec.parent.clone(),
            depth: spec.depth,
            call: Some(spec.call.clone()),
            description: spec.description.clone(),
            name: spec.name.clone(),
            color: spec.color.parse().ok(),
            path: spec.path.clone(),
            team: spec.team.as_ref().map(|team| team.name.clone()),
        }
    }

    /// Its id as providers are told: members of a team go by `name@team`.
    pub(crate) fn provider_id(&self) -> Option<AgentId> {
        match (&self.team, &self.name) {
            (Some(team), Some(name)) => Some(AgentId::new(format!("{name}@{team}"))),
            _ => self.id.clone(),
        }
    }

    /// The tag of its events; `None` for the main agent.
    pub(crate) fn tag(&self) -> Option<AgentTag> {
        Some(AgentTag {
            agent_id: self.id.clone()?,
            subagent_type: self.kind.clone().unwrap_or_default(),
            task_description: self.description.clone(),
        })
    }

    /// The name under which it works on tasks.
    pub(crate) fn task_name(&self) -> String {
        let id = || self.id.as_ref().map(ToString::to_string);
        self.name.clone().or_else(id).unwrap_or_else(|| LEAD.to_owned())
    }

    pub(crate) fn is_main(&self) -> bool {
        self.id.is_none()
    }
}
