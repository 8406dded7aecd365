//! Questions of members to their lead: each has an end, whatever becomes of the member that asks and of the lead.

use std::ops::AddAssign;

use serde_json::Value;

use crate::mail;
use crate::process::Ended;
use crate::records::{Records, Transcript};

/// The questions to the lead of a team, by their ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) allowed: usize,
    pub(crate) denied: usize,
    /// The lead read it and did not answer.
    pub(crate) ignored: usize,
    /// The member or the lead was gone before.
    pub(crate) gone: usize,
}

impl AddAssign for Asked {
    fn add_assign(&mut self, other: Self) {
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.ignored += other.ignored;
        self.gone += other.gone;
    }
}

/// Counts the questions to the lead. None of them is open where the session is over.
pub(crate) fn count(records: &Records, ended: Ended) -> Asked {
    let mut asked = Asked::default();
    let Some(lead) = &records.lead else { return asked };
    for (_, frame) in mail::frames(lead).filter(|(_, it)| it["type"] == "permission_request") {
        let id = frame["requestId"].as_str().unwrap();
        let call = id.splitn(3, '-').nth(2).unwrap();
        let member = records.agents.iter().find(|agent| said(agent, call));
        let Some(result) = member.and_then(|agent| result(agent, call)) else {
            let has_ended = member.is_none_or(|agent| agent.status() != "running");
            assert!(has_ended || !matches!(ended, Ended::Over(_)), "{id} has no answer");
            asked.gone += 1;
            continue;
        };
        let text = result["content"].to_string();
        let count = match &result["is_error"] {
            error if error != true => &mut asked.allowed,
            _ if text.contains("did not answer") => &mut asked.ignored,
            _ if text.contains("says no") => &mut asked.denied,
            _ => &mut asked.gone,
        };
        *count += 1;
    }
    asked
}

fn blocks(line: &Value) -> impl Iterator<Item = &Value> {
    line["message"]["content"].as_array().into_iter().flatten()
}

fn said(agent: &Transcript, call: &str) -> bool {
    let mut said = agent.lines.iter().filter(|line| line["type"] == "assistant").flat_map(blocks);
    said.any(|block| block["id"] == call)
}

fn result<'a>(agent: &'a Transcript, call: &str) -> Option<&'a Value> {
    let told = agent.lines.iter().filter(|line| line["type"] == "user");
    told.flat_map(blocks).find(|block| block["tool_use_id"] == call)
}
