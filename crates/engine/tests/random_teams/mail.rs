//! What holds for mail in every team: a receipt is true, what was accepted is read once and in the order of each pair, and
//! every request has one answer at most.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::cut::time;
use crate::records::{Records, Transcript};

/// A message that a transcript has accepted.
struct Accepted<'a> {
    id: &'a str,
    from: &'a str,
    text: &'a str,
    team: &'a Value,
    at: Timestamp,
}

/// Every message that a sender has a receipt of stands in the recipient's transcript once, and is read at most once, in
/// the order in which it came.
pub(crate) fn receipts_are_true(records: &Records) {
    // Who has accepted each message; `None` is the lead.
    let mut by_id: HashMap<&str, Vec<Option<&str>>> = HashMap::new();
    let lead = records.lead.iter().map(|it| (None, it));
    for (name, agent) in lead.chain(records.agents.iter().map(|it| (Some(it.id()), it))) {
        for mail in accepted(agent) {
            by_id.entry(mail.id).or_default().push(name);
        }
    }
    for receipt in receipts(records) {
        let to = receipt["pin"]["id"].as_str();
        let found = by_id.get(receipt["msg_id"].as_str().unwrap());
        assert_eq!(found.map(Vec::as_slice), Some(&[to][..]), "{receipt}");
    }
    for agent in records.lead.iter().chain(&records.agents) {
        let ids: Vec<&str> = accepted(agent).iter().map(|it| it.id).collect();
        let (path, read) = (agent.path.display(), read(agent));
        assert!(ids.starts_with(&read), "{path} read {read:?} of {ids:?}");
        let unique: HashSet<&&str> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{path} accepted {ids:?}");
    }
}

/// The messages of one agent to another come in the order in which they were sent.
pub(crate) fn is_in_order_for_each_pair(records: &Records) {
    for agent in records.lead.iter().chain(&records.agents) {
        let mut last: HashMap<&str, u64> = HashMap::new();
        for mail in accepted(agent) {
            let Some((_, rest)) = mail.text.split_once("message <") else { continue };
            let number = rest.split_once('>').unwrap().0.parse().unwrap();
            let before = last.insert(mail.from, number).unwrap_or_default();
            let path = agent.path.display();
            assert!(before < number, "{path}: {number} of {} after {before}", mail.from);
        }
    }
}

/// A plan or a request to end has one answer at most.
pub(crate) fn has_one_answer_for_each_request(records: &Records) {
    let mut answered = HashSet::new();
    for agent in records.lead.iter().chain(&records.agents) {
        let answers =
            ["plan_approval_response", "shutdown_rejected"].map(|kind| Value::String(kind.into()));
        for (_, frame) in frames(agent).filter(|(_, it)| answers.contains(&it["type"])) {
            let id = frame["requestId"].as_str().unwrap();
            assert!(answered.insert(id), "{id} was answered twice");
        }
    }
}

/// The structured messages that an agent has accepted, and when.
pub(crate) fn frames(agent: &Transcript) -> impl Iterator<Item = (Timestamp, &Value)> {
    let frames = accepted(agent).into_iter().map(|mail| (mail.at, &mail.team["frame"]));
    frames.filter(|(_, frame)| !frame.is_null())
}

/// How many messages an agent has not read.
pub(crate) fn waiting(agent: &Transcript) -> usize {
    accepted(agent).len() - read(agent).len()
}

/// How many messages an agent has accepted.
pub(crate) fn count(agent: &Transcript) -> usize {
    accepted(agent).len()
}

/// What the sender of a message was told, where that is that it will be read.
fn receipts(records: &Records) -> impl Iterator<Item = &Value> {
    let all = records.lead.iter().chain(&records.agents);
    let results = all.flat_map(|it| &it.lines).map(|line| &line["toolUseResult"]);
    let single = results.flat_map(|data| {
        let many = data["recipients"].as_array();
        many.map_or_else(|| vec![data], |many| many.iter().collect())
    });
    single.filter(|data| data["success"] == true && data["msg_id"].is_string())
}

fn accepted(agent: &Transcript) -> Vec<Accepted<'_>> {
    let accepted = agent.lines.iter().filter_map(|line| {
        let (id, from, text, team) = match line["type"].as_str()? {
            "queue-operation" => (
                &line["queueItem"],
                &line["origin"]["from"],
                &line["content"],
                &line["origin"]["team"],
            ),
            "system" if line["subtype"] == "agent_resume" => {
                let data = &line["data"];
                (&data["item"], &data["from"], &data["prompt"], &data["team"])
            }
            _ => return None,
        };
        let (id, from, text) = (id.as_str()?, from.as_str()?, text.as_str()?);
        Some(Accepted { id, from, text, team, at: time(line) })
    });
    accepted.collect()
}

/// The messages that a conversation contains, in order.
fn read(agent: &Transcript) -> Vec<&str> {
    let is_read = |line: &&Value| line["type"] == "user" && line["origin"]["kind"] == "peer";
    let read = agent.lines.iter().filter(is_read);
    read.map(|line| line["queueItem"].as_str().unwrap()).collect()
}
