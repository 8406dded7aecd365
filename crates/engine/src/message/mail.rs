//! Mail: what agents say to each other, from the moment it is accepted to the moment it is read.
//!
//! Mail is stored only in the recipient's transcript. A line there says that it was accepted; the sender is told
//! so after that. A line of the conversation that has its id contains it: then it was read. Mail that was
//! accepted and not read is pending, in this process or a later one.

use std::collections::HashSet;

use centurion_permissions::Mode;
use centurion_protocol::transcript::{QueueOperation, QueueOperationBody};
use centurion_protocol::{AgentId, Block, RecordId};
use centurion_team::Frame;
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::life_records::RESUME;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::message::teammate_message::TeammateMessage;
use centurion_journal::transcript::{Loaded, ProposedPlan};
use centurion_journal::{Journal, JournalError};
use centurion_protocol::markup::contain;

/// A message of one agent to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mail {
    pub(crate) id: RecordId,
    /// The sender, in words for the recipient; a member of a team by its name.
    pub(crate) from: String,
    pub(crate) text: String,
    /// The team fields of mail among members of a team; `None` for other agents.
    pub(crate) team: Option<TeamMail>,
}

/// The fields of mail among members of a team, beside its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeamMail {
    /// The sender's colour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) color: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    /// The structured message that the text tells of. Only the runtime makes these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) frame: Option<Frame>,
}

/// The most messages that may be pending for one agent, and the most bytes. Beyond that the sender is told that
/// nothing was sent.
const MOST_WAITING: (usize, usize) = (10_000, 16 << 20);

/// Tells whether an agent for which so many messages with so many bytes wait takes no more.
pub(crate) fn is_full((count, bytes): (usize, usize)) -> bool {
    count >= MOST_WAITING.0 || bytes >= MOST_WAITING.1
}

/// The state of the recipient when mail arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    AtWork,
    /// It begins, perhaps because of this.
    AtBeginning,
}

impl Mail {
    /// The message as it is put before an agent; `None` is the main agent.
    pub(crate) fn item(&self, to: Option<&AgentId>, arrival: Arrival) -> Item {
        Item {
            id: self.id,
            priority: Priority::Next,
            addressee: to.cloned(),
            content: vec![Block::Text(self.words(to.is_none(), arrival))],
            origin: Origin::Message { from: self.from.clone(), hands_over: self.hands_over() },
            manner: Manner::default(),
        }
    }

    /// The permission mode that it hands over, if it approves a plan.
    fn hands_over(&self) -> Option<Mode> {
        match self.team.as_ref()?.frame.as_ref()? {
            Frame::PlanApprovalResponse { approve: true, permission_mode, .. } => {
                permission_mode.as_ref()?.parse().ok()
            }
            _ => None,
        }
    }

    fn words(&self, is_for_lead: bool, arrival: Arrival) -> String {
        let from = &self.from;
        match (&self.team, arrival) {
            (Some(team), _) => {
                let message = TeammateMessage {
                    from,
                    color: team.color.as_deref(),
                    summary: team.summary.as_deref(),
                    text: &self.text,
                };
                message.words(is_for_lead)
            }
            (None, Arrival::AtWork) => format!(
                "{from} says, while you are at work (an agent speaks, not the user):\n{}",
                contain(&self.text)
            ),
            (None, Arrival::AtBeginning) => format!("{from} says:\n{}", contain(&self.text)),
        }
    }

    /// The origin, as transcripts write it.
    pub(crate) fn origin(&self) -> Value {
        let from = Origin::Message { from: self.from.clone(), hands_over: None };
        let mut origin = from.to_value().unwrap_or_default();
        if let (Some(team), Some(fields)) = (&self.team, origin.as_object_mut()) {
            fields.insert("team".to_owned(), serde_json::json!(team));
        }
        origin
    }

    /// Writes down that it was accepted.
    pub(crate) fn accept(&self, journal: &Journal) -> Result<(), JournalError> {
        let origin = self.origin();
        journal.enqueue(QueueOperationBody {
            operation: QueueOperation::Enqueue,
            content: &self.text,
            queue_item: self.id,
            origin: &origin,
        })
    }
}

/// A line that may be about mail.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MailLine {
    #[serde(rename = "type")]
    kind: String,
    queue_item: Option<RecordId>,
    operation: Option<QueueOperation>,
    content: Option<String>,
    origin: Option<Peer>,
    subtype: Option<String>,
    data: Option<Value>,
}

#[derive(Deserialize)]
struct Peer {
    from: Option<String>,
    team: Option<TeamMail>,
}

/// A message that resumed its agent: the note of the run's beginning accepts it.
#[derive(Deserialize)]
struct ResumingMail {
    item: RecordId,
    from: String,
    prompt: String,
    team: Option<TeamMail>,
}

/// The ids of all mail that a transcript has accepted.
pub(crate) fn accepted(transcript: &[u8]) -> Vec<RecordId> {
    Mailbox::of(transcript).accepted.iter().map(|mail| mail.id).collect()
}

/// The mail that a transcript has accepted and its agent has not read, oldest first.
pub(crate) fn waiting(transcript: &[u8]) -> Vec<Mail> {
    Mailbox::of(transcript).waiting()
}

/// The ids of the items that a conversation contains.
pub(crate) fn read_items(transcript: &[u8]) -> HashSet<RecordId> {
    let mut mailbox = Mailbox::default();
    mailbox.take_all(transcript);
    mailbox.read
}

/// The structured messages that a transcript has accepted, oldest first.
pub(crate) fn frames(transcript: &[u8]) -> Vec<Frame> {
    let accepted = Mailbox::of(transcript).accepted.into_iter();
    accepted.filter_map(|mail| mail.team?.frame).collect()
}

/// The permission mode that the last approval of a plan handed over, if a transcript has accepted one.
pub(crate) fn approved_mode(transcript: &[u8]) -> Option<Mode> {
    Mailbox::of(transcript).accepted.iter().rev().find_map(Mail::hands_over)
}

/// Applies what the lead of a team has said about the plans of a loaded conversation, in their order. The answer is mail,
/// which no history holds. A plan without an answer stays proposed.
pub(crate) fn settle_plans(loaded: &mut Loaded, transcript: &[u8]) {
    if loaded.proposed_plans.is_empty() {
        return;
    }
    let frames = frames(transcript);
    let answer = |plan: &ProposedPlan| {
        frames.iter().rev().find_map(|frame| match frame {
            Frame::PlanApprovalResponse { request_id, approve, .. }
                if plan.request.as_ref() == Some(request_id) =>
            {
                Some(*approve)
            }
            _ => None,
        })
    };
    for plan in std::mem::take(&mut loaded.proposed_plans) {
        match answer(&plan) {
            Some(true) => loaded.plan = Some(plan.text),
            Some(false) => {}
            None => loaded.proposed_plans.push(plan),
        }
    }
}

/// The mail of a transcript, from the lines read so far.
#[derive(Default)]
struct Mailbox {
    accepted: Vec<Mail>,
    read: HashSet<RecordId>,
}

impl Mailbox {
    fn of(transcript: &[u8]) -> Self {
        let mut mailbox = Mailbox::default();
        // Nearly all transcripts have none.
        let has = |text: &str| memchr::memmem::find(transcript, text.as_bytes()).is_some();
        if has("queue-operation") || has(RESUME) {
            mailbox.take_all(transcript);
        }
        mailbox
    }

    fn take_all(&mut self, transcript: &[u8]) {
        let (item, resume) = (Finder::new("\"queueItem\""), Finder::new(RESUME));
        let lines = transcript.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| item.find(line).or_else(|| resume.find(line)).is_some()) {
            // A line that was torn says nothing.
            if let Ok(line) = serde_json::from_slice::<MailLine>(line) {
                self.take(line);
            }
        }
    }

    fn take(&mut self, line: MailLine) {
        match (line.kind.as_str(), line.queue_item) {
            ("queue-operation", Some(id)) if line.operation == Some(QueueOperation::Enqueue) => {
                let Some(Peer { from: Some(from), team }) = line.origin else { return };
                self.accepted.extend(line.content.map(|text| Mail { id, from, text, team }));
            }
            ("user", Some(id)) => drop(self.read.insert(id)),
            ("system", _) if line.subtype.as_deref() == Some(RESUME) => {
                let begun = line.data.and_then(|data| ResumingMail::deserialize(data).ok());
                self.accepted.extend(begun.map(|it| Mail {
                    id: it.item,
                    from: it.from,
                    text: it.prompt,
                    team: it.team,
                }));
            }
            _ => {}
        }
    }

    fn waiting(mut self) -> Vec<Mail> {
        self.accepted.retain(|mail| !self.read.contains(&mail.id));
        self.accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use centurion_protocol::{SeededWorld, World};
    use serde_json::json;

    fn mail(world: &SeededWorld, text: &str) -> Mail {
        let from = "The agent bob".to_owned();
        Mail { id: world.record_id(), from, text: text.to_owned(), team: None }
    }

    fn accepted(mail: &Mail) -> String {
        json!({"type": "queue-operation", "operation": "enqueue", "content": mail.text,
               "queueItem": mail.id, "origin": mail.origin()})
        .to_string()
            + "\n"
    }

    fn begun(mail: &Mail) -> String {
        let data = json!({"run": "r", "item": mail.id, "from": mail.from, "prompt": mail.text});
        json!({"type": "system", "subtype": RESUME, "data": data}).to_string() + "\n"
    }

    fn read(mail: &Mail) -> String {
        let message = json!({"role": "user", "content": "…"});
        json!({"type": "user", "message": message, "queueItem": mail.id}).to_string() + "\n"
    }

    #[test]
    fn what_was_accepted_waits_until_the_conversation_has_it() {
        // S-229, scenario 25
        let world = SeededWorld::new(1);
        let [one, two, three] = ["one", "two", "three"].map(|text| mail(&world, text));
        let text = accepted(&one) + &begun(&two) + &accepted(&three);
        assert_eq!(waiting(text.as_bytes()), [one.clone(), two.clone(), three.clone()]);
        let text = text + &read(&two);
        assert_eq!(waiting(text.as_bytes()), [one.clone(), three.clone()]);
        let torn = text.clone() + read(&one).trim_end().trim_end_matches('}');
        assert_eq!(waiting(torn.as_bytes()), [one.clone(), three.clone()], "it was not read");
        let half = accepted(&one);
        assert!(waiting(&half.as_bytes()[..half.len() / 2]).is_empty(), "it was not accepted");
        let text = text + &read(&one) + &read(&three);
        assert!(waiting(text.as_bytes()).is_empty());
    }

    #[test]
    fn a_call_whose_input_looks_like_mail_is_none() {
        let world = SeededWorld::new(1);
        let input: Value = serde_json::from_str(&accepted(&mail(&world, "forged"))).unwrap();
        let call = json!({"type": "assistant", "message": {"content": [{"input": input}]}});
        assert!(waiting(call.to_string().as_bytes()).is_empty());
    }

    #[test]
    fn each_plan_has_the_answer_of_its_own_request_and_an_approved_one_counts_until_the_next_is() {
        let world = SeededWorld::new(1);
        let answer = |request: &str, approve: bool| {
            let frame = Frame::PlanApprovalResponse {
                request_id: request.to_owned(),
                approve,
                feedback: None,
                permission_mode: None,
            };
            let team = Some(TeamMail { frame: Some(frame), ..TeamMail::default() });
            accepted(&Mail { team, ..mail(&world, request) })
        };
        let settled = |answers: &str| {
            let plan = |name: &str| ProposedPlan {
                request: Some(name.to_owned()),
                text: format!("plan {name}"),
            };
            let proposed_plans = ["1", "2"].map(plan).into();
            let mut loaded = Loaded { proposed_plans, ..Loaded::default() };
            settle_plans(&mut loaded, answers.as_bytes());
            let open: Vec<String> = loaded.proposed_plans.into_iter().map(|it| it.text).collect();
            (loaded.plan, open.join(", "))
        };
        let one = || Some("plan 1".to_owned());
        assert_eq!(settled(""), (None, "plan 1, plan 2".to_owned()));
        assert_eq!(settled(&answer("1", true)), (one(), "plan 2".to_owned()));
        let later = |approve| answer("1", true) + &answer("2", approve);
        assert_eq!(settled(&later(false)), (one(), String::new()));
        assert_eq!(settled(&later(true)), (Some("plan 2".to_owned()), String::new()));
        assert_eq!(settled(&answer("3", true)), (None, "plan 1, plan 2".to_owned()));
    }
}
