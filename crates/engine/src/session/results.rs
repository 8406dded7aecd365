//! When the results of a session's turns are shown.
//!
//! There is one result for each turn of the main agent, in the order of the turns. Several agents that end
//! while it is busy are told of in one turn, which has one result.
//!
//! A host that keeps talking sees each result when its turn is over. A run of one prompt is over when nothing is
//! undelivered: as long as agents work whose end will be told, its results are held back, so that no reader takes the
//! first of them for the last. Shells in the background hold nothing back.

use std::collections::VecDeque;

use centurion_protocol::sdk::{EventBody, RunResult, UnfinishedAgent};

use super::Shared;
use crate::agent::delegation::Delegation;
use crate::session::report;

/// The beginning of the warning about agents that were cut short. The result of the session names them, too.
pub const ENDED_BEFORE: &str = "the session ended before these agents had: ";

/// The results of a session.
#[derive(Default)]
pub(super) struct Results {
    /// True if results wait for agents.
    pub(super) are_held: bool,
    /// Agents that the session ended before they had finished.
    pub(super) unfinished: Vec<UnfinishedAgent>,
    made: u32,
    held: VecDeque<RunResult>,
}

impl Results {
    /// The number of the next result.
    pub(super) fn next_index(&mut self) -> u32 {
        let index = self.made;
        self.made += 1;
        index
    }

    /// Takes a result, and shows it with those before it unless they have to wait.
    pub(super) fn take(&mut self, shared: &Shared, result: RunResult) {
        self.held.push_back(result);
        if self.are_held && has_undelivered_ends(shared) {
            shared.view.wait_for_agents();
        } else {
            self.release(shared);
        }
    }

    /// Shows what was held back until the session ended. Agents have worked since the last result was made,
    /// and some may have been cut short: it says so.
    pub(super) fn close(&mut self, shared: &Shared, unfinished: Vec<UnfinishedAgent>) {
        if !unfinished.is_empty() {
            let agents: Vec<String> = unfinished.iter().map(ToString::to_string).collect();
            let text = format!("{ENDED_BEFORE}{}", agents.join(", "));
            shared.inform(None, "warning", text);
        }
        if let Some(last) = self.held.back_mut() {
            report::bring_up_to_date(shared, last);
            last.unfinished_agents.clone_from(&unfinished);
        }
        self.unfinished = unfinished;
        self.release(shared);
    }

    /// Shows what is held back.
    pub(super) fn release(&mut self, shared: &Shared) {
        // One at a time: a view that fails at one result is still shown the others.
        while let Some(result) = self.held.pop_front() {
            shared.show(EventBody::Result(Box::new(result)));
        }
    }
}

/// Tells whether an agent's end is yet to be told.
fn has_undelivered_ends(shared: &Shared) -> bool {
    let works = |it: &Delegation| it.is_telling() || it.has_running();
    works(&shared.delegation)
        || shared.queue.due(None).iter().any(|item| item.origin.is_by_agents())
}
