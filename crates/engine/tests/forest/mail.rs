//! What holds for mail in every forest: a receipt is true, what was accepted is read once and in order, and
//! what is not read yet waits.

use serde_json::Value;

use crate::records::{Records, Transcript};

/// At every moment, also of a record that was cut off.
pub(crate) fn receipts_are_true(records: &Records) {
    // S-229, scenario 25
    for receipt in receipts(records) {
        let (id, to) =
            (receipt["msg_id"].as_str().unwrap(), receipt["pin"]["id"].as_str().unwrap());
        let receiver = records.agent(to).unwrap_or_else(|| panic!("{to} has no record: {receipt}"));
        let count = accepted(receiver).iter().filter(|other| **other == id).count();
        assert_eq!(count, 1, "{to} accepted {count} times what it was sent: {receipt}");
    }
    for agent in &records.agents {
        let (accepted, read) = (accepted(agent), read(agent));
        assert!(accepted.starts_with(&read), "{} read {read:?} of {accepted:?}", agent.id());
    }
}

/// Once the forest is at rest: an end says how many messages wait.
pub(crate) fn ends_say_what_waits(records: &Records) {
    for agent in &records.agents {
        let unread = agent.ends().last().unwrap()["unread"].as_u64().unwrap_or_default();
        assert_eq!(unread, waiting(agent) as u64, "{}", agent.id());
    }
}

/// How many messages an agent has not read.
pub(crate) fn waiting(agent: &Transcript) -> usize {
    accepted(agent).len() - read(agent).len()
}

/// An agent that was set to work has read all that was accepted until then. What came when it was at work waits
/// only where it failed.
pub(crate) fn read_what_waited(agent: &Transcript) {
    let (begun, _) = agent.notes("agent_resume").last().unwrap();
    let until_then = accepted_in(&agent.lines[..=begun]).len();
    let read = read(agent).len();
    assert!(read >= until_then, "{} read {read} of {until_then}", agent.id());
    assert!(
        waiting(agent) == 0 || agent.status() != "completed",
        "{} left mail unread",
        agent.id()
    );
}

/// What the sender of a message was told, where that is that it will be read.
fn receipts(records: &Records) -> impl Iterator<Item = &Value> {
    let all = records.lead.iter().chain(&records.agents);
    let results = all.flat_map(|it| &it.lines).map(|line| &line["toolUseResult"]);
    results.filter(|data| data["success"] == true && data["msg_id"].is_string())
}

/// The messages that an agent accepted, in order.
fn accepted(agent: &Transcript) -> Vec<&str> {
    accepted_in(&agent.lines)
}

fn accepted_in(lines: &[Value]) -> Vec<&str> {
    let accepted = lines.iter().filter_map(|line| match line["type"].as_str() {
        Some("queue-operation") => line["queueItem"].as_str(),
        Some("system") if line["subtype"] == "agent_resume" => line["data"]["item"].as_str(),
        _ => None,
    });
    accepted.collect()
}

/// The messages that its conversation contains, in order.
fn read(agent: &Transcript) -> Vec<&str> {
    let is_read = |line: &&Value| line["type"] == "user" && line["origin"]["kind"] == "peer";
    let read = agent.lines.iter().filter(is_read);
    read.map(|line| line["queueItem"].as_str().unwrap()).collect()
}
