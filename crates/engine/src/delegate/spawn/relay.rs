//! The events of a member's process, as far as observers are shown them: those about the member, and about what it started.
//!
//! Hosts believe what they are told under the name of an agent. A process that is broken, or turned against its lead, can
//! tell of itself what it likes, and nothing of the session, of its host, or of other agents.

use std::collections::HashSet;

use centurion_protocol::AgentId;
use serde_json::{Map, Value};

/// The types of events about one agent.
const ABOUT_AN_AGENT: [&str; 5] =
    ["assistant", "user", "stream_event", "tool_progress", "tool_use_summary"];
/// The subtypes of system events about one agent.
const SYSTEM_ABOUT_AN_AGENT: [&str; 9] = [
    "agent_waiting",
    "api_retry",
    "compact_boundary",
    "hook_progress",
    "hook_response",
    "hook_started",
    "permission_denied",
    "status",
    "thinking_tokens",
];

/// The agents and commands that a process may tell of.
pub(super) struct Relay {
    member: AgentId,
    /// The tasks that the process has started in this run.
    below: HashSet<String>,
}

impl Relay {
    pub(super) fn new(member: AgentId) -> Self {
        Self { member, below: HashSet::new() }
    }

    /// Tells whether observers may be shown an event. `is_known` says whether a task is one of the lead's process.
    pub(super) fn admits(
        &mut self,
        event: &Map<String, Value>,
        is_known: impl Fn(&str) -> bool,
    ) -> bool {
        let field = |name: &str| event.get(name).and_then(Value::as_str);
        // An event without an agent is about the main agent.
        let is_of_its_agents = || {
            field("agent_id")
                .is_some_and(|id| id == self.member.as_str() || self.below.contains(id))
        };
        match (field("type"), field("subtype")) {
            (Some("system"), Some("task_started")) => {
                let id = field("task_id").filter(|id| *id != self.member.as_str() && !is_known(id));
                id.is_some_and(|id| {
                    self.below.insert(id.to_owned());
                    true
                })
            }
            (Some("system"), Some("task_progress" | "task_updated" | "task_notification")) => {
                field("task_id").is_some_and(|id| self.below.contains(id))
            }
            (Some("system"), Some(subtype)) => {
                SYSTEM_ABOUT_AN_AGENT.contains(&subtype) && is_of_its_agents()
            }
            (Some(kind), _) => ABOUT_AN_AGENT.contains(&kind) && is_of_its_agents(),
            (None, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_process_tells_of_its_own_agents_and_of_nothing_else() {
        let mut relay = Relay::new(AgentId::new("a1"));
        let mut admits = |event: Value| {
            let Value::Object(event) = event else { panic!("{event}") };
            relay.admits(&event, |id| id == "a2")
        };
        assert!(admits(json!({"type": "assistant", "agent_id": "a1"})));
        assert!(!admits(json!({"type": "user", "agent_id": "b1"})), "not started yet");
        assert!(admits(json!({"type": "system", "subtype": "task_started", "task_id": "b1"})));
        assert!(admits(json!({"type": "user", "agent_id": "b1"})));
        assert!(admits(json!({"type": "system", "subtype": "task_notification", "task_id": "b1"})));
        assert!(admits(json!({"type": "system", "subtype": "api_retry", "agent_id": "a1"})));
        for forged in [
            json!({"type": "result", "subtype": "success", "agent_id": "a1"}),
            json!({"type": "control_request", "request_id": "1", "agent_id": "a1"}),
            json!({"type": "system", "subtype": "init", "agent_id": "a1"}),
            json!({"type": "system", "subtype": "session_state_changed", "agent_id": "a1"}),
            json!({"type": "assistant"}),
            json!({"type": "assistant", "agent_id": null}),
            json!({"type": "assistant", "agent_id": "a2"}),
            json!({"type": "system", "subtype": "task_started", "task_id": "a2"}),
            json!({"type": "system", "subtype": "task_started", "task_id": "a1"}),
            json!({"type": "system", "subtype": "task_notification", "task_id": "a1"}),
            json!({"type": "system", "subtype": "task_notification", "task_id": "a2"}),
            json!({"type": ["assistant"], "agent_id": "a1"}),
            json!({}),
        ] {
            assert!(!admits(forged.clone()), "{forged}");
        }
    }
}
