//! Whether the demo showed what it promises, seen from the events and from nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use centurion_engine::View;
use centurion_host::Front;
use centurion_protocol::sdk::{Event, EventBody, System};
use parking_lot::Mutex;
use serde_json::Value;

/// An observer that remembers what it saw.
#[derive(Clone, Default)]
pub(super) struct Witness(Arc<Mutex<WitnessedEvents>>);

#[derive(Default)]
struct WitnessedEvents {
    /// The names of the agents, by id.
    started: BTreeMap<String, String>,
    in_background: BTreeSet<String>,
    /// Agents that were resumed.
    again: BTreeSet<String>,
    /// The number of agents that ended well.
    completed: usize,
    /// The number of agents that ended in another way.
    failed: usize,
    /// Agents that read a message while at work.
    queued: BTreeSet<String>,
    /// The number of times that the end of an agent woke the lead.
    woken: usize,
    /// Agents that left work in worktrees of their own.
    apart: BTreeSet<String>,
}

/// One thing that the demo promises, and whether it was seen.
pub(super) struct Step {
    pub(super) what: String,
    pub(super) is_seen: bool,
}

impl View for Witness {
    fn show(&self, event: &Event) {
        let mut seen = self.0.lock();
        match &event.body {
            EventBody::System(System::TaskStarted(task)) => {
                let id = task.task_id.clone();
                if task.is_backgrounded && !seen.started.contains_key(&id) {
                    seen.in_background.insert(id.clone());
                }
                let name = task.name.clone().unwrap_or_else(|| id.clone());
                if seen.started.insert(id.clone(), name).is_some() {
                    seen.again.insert(id);
                }
            }
            EventBody::System(System::TaskNotification(task)) if task.status == "completed" => {
                seen.completed += 1;
            }
            EventBody::System(System::TaskNotification(_)) => seen.failed += 1,
            EventBody::User(user) => {
                if let Some(to) = user.tool_use_result.as_ref().and_then(queued_for) {
                    seen.queued.insert(to.to_owned());
                }
                if let Some(id) = user.tool_use_result.as_ref().and_then(apart) {
                    seen.apart.insert(id.to_owned());
                }
            }
            EventBody::Result(result) if result.origin.is_some() => seen.woken += 1,
            _ => {}
        }
    }
}

impl Front for Witness {}

/// The recipient of a pending message, as its receipt says.
fn queued_for(receipt: &Value) -> Option<&str> {
    let is_queued = receipt.get("status").and_then(Value::as_str) == Some("queued");
    receipt.get("pin")?.get("id")?.as_str().filter(|_| is_queued)
}

/// The agent of a result that left work in a worktree of its own.
fn apart(result: &Value) -> Option<&str> {
    result.get("worktreePath")?;
    result.get("agentId")?.as_str()
}

impl Witness {
    /// Everything that was promised.
    pub(super) fn steps(&self) -> Vec<Step> {
        let seen = self.0.lock();
        let names = |ids: &mut dyn Iterator<Item = &String>| {
            let mut names: Vec<&str> =
                ids.filter_map(|id| seen.started.get(id)).map(String::as_str).collect();
            names.sort_unstable();
            if names.is_empty() { "no agent".to_owned() } else { names.join(", ") }
        };
        let runs = seen.started.len() + seen.again.len();
        let step = |what: String, is_seen: bool| Step { what, is_seen };
        vec![
            step(
                format!("five agents worked for the lead: {}", names(&mut seen.started.keys())),
                seen.started.len() == 5 && seen.completed == runs && seen.failed == 0,
            ),
            step(
                format!(
                    "one worked in the background, and the lead was told of its end: {}",
                    names(&mut seen.in_background.iter())
                ),
                seen.in_background.len() == 1 && seen.woken > 0,
            ),
            step(
                format!("a message reached one at work: {}", names(&mut seen.queued.iter())),
                seen.queued.len() == 1 && seen.queued.is_subset(&seen.in_background),
            ),
            step(
                format!(
                    "one continued after its report, with all it knew: {}",
                    names(&mut seen.again.iter())
                ),
                seen.again.len() == 1,
            ),
            step(
                format!(
                    "two worked apart, on branches of their own: {}",
                    names(&mut seen.apart.iter())
                ),
                seen.apart.len() == 2,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use centurion_protocol::sdk::TaskStarted;
    use centurion_protocol::{SystemWorld, World};

    use super::*;

    fn start(witness: &Witness, id: &str, is_backgrounded: bool) {
        let task =
            TaskStarted { task_id: id.to_owned(), is_backgrounded, ..TaskStarted::default() };
        let body = EventBody::System(System::TaskStarted(Box::new(task)));
        let world = SystemWorld;
        witness.show(&Event { body, session_id: world.session_id(), uuid: world.record_id() });
    }

    #[test]
    fn what_was_not_seen_is_not_claimed() {
        let witness = Witness::default();
        assert!(witness.steps().iter().all(|step| !step.is_seen));
        for id in ["a", "b", "c"] {
            start(&witness, id, id == "b");
        }
        assert!(witness.steps().iter().all(|step| !step.is_seen), "started is not done");
        start(&witness, "a", true);
        let steps = witness.steps();
        assert!(steps[3].is_seen && steps[3].what.ends_with(": a"), "{}", steps[3].what);
        assert!(steps[1].what.ends_with(": b"), "who goes on was not started in the background");
    }

    #[test]
    fn only_a_queued_message_has_reached_a_running_agent() {
        let receipt = |status: &str| serde_json::json!({"status": status, "pin": {"id": "a1"}});
        assert_eq!(queued_for(&receipt("queued")), Some("a1"));
        assert_eq!(queued_for(&receipt("resumed")), None);
    }
}
