//! A lead that starts its members, and wakes them all until there is nothing left to do.

use std::time::Duration;

use centurion_model::Request;
use centurion_protocol::StopReason;
use serde_json::{Value, json};

use crate::line::Line;

pub(crate) type Call = (String, &'static str, Value);

/// The lead, and the number of calls that it and its members have made.
#[derive(Default)]
pub(crate) struct WakingLead {
    has_started: bool,
    calls: u64,
}

impl WakingLead {
    /// A call of any agent, under an id of its own.
    pub(crate) fn call(&mut self, tool: &'static str, input: Value) -> Call {
        self.calls += 1;
        (format!("toolu_{}", self.calls), tool, input)
    }

    /// The next answer of the lead. `is_over` is asked when its members are idle.
    pub(crate) fn answer(
        &mut self,
        request: &Request,
        is_over: impl FnOnce() -> bool,
        prompt: &str,
        names: impl Iterator<Item = String>,
    ) -> Line {
        let says = |text: &str| Line::Text(Duration::ZERO, text.to_owned(), StopReason::EndTurn);
        // What it has asked for is under way: it hears when all are idle.
        let last = request.prefix.conversation.iter().last();
        if last.is_some_and(|it| it.wire().windows(13).any(|part| part == b"\"tool_result\"")) {
            return says("I wait.");
        }
        let calls = match (std::mem::replace(&mut self.has_started, true), is_over()) {
            (false, _) => {
                let start = |name| {
                    json!({"description": "work", "prompt": prompt,
                           "subagent_type": "general-purpose", "name": name})
                };
                names.map(|name| self.call("Agent", start(name))).collect()
            }
            (true, false) => {
                vec![self.call("SendMessage", json!({"to": "*", "message": "Continue."}))]
            }
            (true, true) => return says("Done."),
        };
        Line::Calls(Duration::ZERO, calls)
    }
}
