//! The model of a forest: what an agent says is a function of the plan and of the agent's own
//! conversation, in which its first words name its node.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use centurion_model::{EventStream, Provider, Request};
use centurion_protocol::{AgentId, StopReason};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bench::{assert_valid, messages_of};
use crate::line::Line;
use crate::plan::{Action, Ending, LEAD, Plan};

/// Which part of a session's story is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The plan.
    Plan,
    /// The lead looks at its agents and reads what it is told. No other agent does anything.
    Reading,
    /// The lead speaks to all agents that it had, and each has an answer.
    Waking,
}

/// All agents of a forest.
pub(crate) struct Players {
    plan: Arc<Plan>,
    part: Part,
    state: Arc<Mutex<State>>,
}

/// What was seen of them.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Who plays which node.
    pub(crate) ids: HashMap<usize, AgentId>,
    /// Requests that are under way: those of agents that others started, and all.
    flying: (usize, usize),
    pub(crate) most_flying: (usize, usize),
    pub(crate) requests: usize,
    /// What a provider would have refused.
    pub(crate) faults: Vec<String>,
    has_looked: bool,
    tries: HashMap<AgentId, usize>,
    calls: usize,
}

/// One request under way.
struct Flight {
    state: Arc<Mutex<State>>,
    is_child: bool,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        state.flying.0 -= usize::from(self.is_child);
        state.flying.1 -= 1;
    }
}

impl Players {
    pub(crate) fn new(plan: &Arc<Plan>, part: Part) -> (Arc<Self>, Arc<Mutex<State>>) {
        let state = Arc::<Mutex<State>>::default();
        let players = Self { plan: Arc::clone(plan), part, state: Arc::clone(&state) };
        (Arc::new(players), state)
    }

    fn take_off(&self, request: &Request, messages: &[Value]) -> (Flight, usize) {
        let named = node(request, messages);
        let node = named.unwrap_or(LEAD);
        let is_child = request.agent.is_some();
        let mut state = self.state.lock();
        state.requests += 1;
        state.flying.0 += usize::from(is_child);
        state.flying.1 += 1;
        state.most_flying.0 = state.most_flying.0.max(state.flying.0);
        state.most_flying.1 = state.most_flying.1.max(state.flying.1);
        if std::panic::catch_unwind(AssertUnwindSafe(|| assert_valid(messages))).is_err() {
            state.faults.push(format!("an invalid request: {}", json!(messages)));
        }
        if named.is_none() {
            state.faults.push(format!("an agent does not know its task: {}", json!(messages)));
        }
        if is_child && self.part == Part::Reading {
            state.faults.push(format!("node {node} began to work by itself"));
        }
        if let Some(id) = &request.agent {
            state.ids.insert(node, id.clone());
        }
        (Flight { state: Arc::clone(&self.state), is_child }, node)
    }

    /// What an agent says now.
    fn line(&self, request: &Request, node: usize, messages: &[Value]) -> Line {
        let plan = &self.plan.nodes[node];
        if self.part != Part::Plan && request.agent.is_some() {
            return Line::Text(plan.latency, format!("more of node {node}"), StopReason::EndTurn);
        } else if self.part != Part::Plan {
            return self.reading(messages);
        }
        let said = messages.iter().filter(|message| message["role"] == "assistant").count();
        if let Some(turn) = plan.turns.get(said) {
            let calls = turn.actions.iter().map(|action| self.call(*action));
            return Line::Calls(turn.latency, calls.collect());
        }
        let text = |word: &str| {
            Line::Text(plan.latency, format!("{word} of node {node}"), StopReason::EndTurn)
        };
        if said > plan.turns.len() {
            // Another agent spoke to it, or news came.
            return text("more");
        }
        match plan.ending {
            Ending::Text => text("report"),
            Ending::Flaky if self.tries(request.agent.as_ref()) > 1 => text("report"),
            Ending::Flaky | Ending::Errors => Line::Error,
            Ending::Empty => Line::Text(plan.latency, String::new(), StopReason::EndTurn),
            Ending::Refusal => Line::Text(plan.latency, "no".to_owned(), StopReason::Refusal),
            Ending::MaxTokens => {
                Line::Text(plan.latency, "and th".to_owned(), StopReason::MaxTokens)
            }
            Ending::Stall => Line::Silence,
        }
    }

    /// What the lead says in a later process.
    fn reading(&self, messages: &[Value]) -> Line {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.has_looked, true) {
            return Line::Text(Duration::ZERO, "I have read it.".to_owned(), StopReason::EndTurn);
        }
        if self.part == Part::Reading {
            let look = ("look".to_owned(), "ListAgents", json!({}));
            return Line::Calls(Duration::ZERO, vec![look]);
        }
        // What it is asked to do names them.
        let asked = messages.last().unwrap()["content"].to_string();
        let ids = asked.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() == 17);
        let calls = ids.enumerate().map(|(number, id)| {
            (
                format!("wake_{number}"),
                "SendMessage",
                json!({"to": id, "message": "Are you there?"}),
            )
        });
        Line::Calls(Duration::ZERO, calls.collect())
    }

    /// How often an agent has asked for its last words.
    fn tries(&self, agent: Option<&AgentId>) -> usize {
        let Some(agent) = agent else { return usize::MAX };
        let mut state = self.state.lock();
        let tries = state.tries.entry(agent.clone()).or_default();
        *tries += 1;
        *tries
    }

    fn call(&self, action: Action) -> (String, &'static str, Value) {
        let mut state = self.state.lock();
        state.calls += 1;
        let number = state.calls;
        let address = |node: usize| {
            let name = self.plan.nodes[node].is_named.then(|| format!("n{node}"));
            // By its id where that is known, if only to be told that there is no such agent.
            let id =
                state.ids.get(&node).filter(|_| number.is_multiple_of(2)).map(ToString::to_string);
            id.or(name)
                .or(state.ids.get(&node).map(ToString::to_string))
                .unwrap_or_else(|| format!("n{node}"))
        };
        let (tool, input) = match action {
            Action::Start(child) => ("Agent", self.start(child)),
            Action::Read => ("Read", json!({"file_path": "notes.txt"})),
            Action::Ask => {
                // Outside of the project, where no mode lets it write without a question.
                let file = format!("../asked-{number}.txt");
                ("Write", json!({"file_path": file, "content": "allowed\n"}))
            }
            Action::Tell(other) => {
                let message = format!("message {number} to node {other}");
                ("SendMessage", json!({"to": address(other), "message": message}))
            }
            Action::Stop(other) => ("TaskStop", json!({"task_id": address(other)})),
            Action::Look(other) => (
                "TaskOutput",
                json!({"task_id": address(other), "block": !number.is_multiple_of(3)}),
            ),
        };
        (format!("toolu_{number}"), tool, input)
    }

    fn start(&self, child: usize) -> Value {
        let node = &self.plan.nodes[child];
        let mut input = json!({
            "description": format!("node {child}"),
            "prompt": prompt(child),
            "subagent_type": "general-purpose",
            "run_in_background": node.in_background,
        });
        if node.is_named {
            input["name"] = json!(format!("n{child}"));
        }
        input
    }
}

/// What an agent is asked to do.
pub(crate) fn prompt(node: usize) -> String {
    format!("Be <<{node}>>.")
}

/// Which node a conversation is that of.
fn node(request: &Request, messages: &[Value]) -> Option<usize> {
    if request.agent.is_none() {
        return Some(LEAD);
    }
    let first = messages[0].to_string();
    let (_, named) = first.split_once("Be <<")?;
    named.split_once(">>")?.0.parse().ok()
}

impl Provider for Players {
    fn stream(&self, request: Request) -> EventStream {
        let messages = messages_of(&request);
        let (flight, node) = self.take_off(&request, &messages);
        let number = self.state.lock().requests;
        let line = self.line(&request, node, &messages);
        let events = line.events(number, &request.model, self.plan.nodes[node].tokens);
        // The request is under way until its answer is read to the end, or dropped.
        stream::unfold((events, flight), |(mut events, flight)| async move {
            let event = events.next().await?;
            Some((event, (events, flight)))
        })
        .boxed()
    }

    fn credential(&self) -> &'static str {
        "forest"
    }
}
