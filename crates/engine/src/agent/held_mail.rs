//! Messages of other sessions that wait until the user lets them in.
//!
//! Each is written down before its sender hears that it is held. It is put before the user, in a later process again,
//! until there is an answer; the sender is told what the answer is. When the conversation begins anew, the messages go along:
//! the transcript that is left says which it gives away, which counts once the new one has them.

use std::collections::HashSet;
use std::sync::Arc;

use centurion_journal::{Journal, JournalError};
use centurion_protocol::markup::contain;
use centurion_protocol::{RecordId, SessionId, ToolUseId};
use centurion_team::peers::{Incoming, Outgoing, PeerAddress, Sender};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::agent::peers::Peers;
use crate::agent::shared::Shared;
use crate::agent::task::PostResult;
use crate::message::mail::Mail;
use crate::policy::broker::{Ask, AskReason, Reply};

/// The most messages that are held.
pub(super) const MOST_HELD: usize = 100;

/// The records of a message that is held, of one that the user has declined, and of those that another session takes over.
const HELD: &str = "peer_held";
const DECLINED: &str = "peer_declined";
const GIVEN: &str = "peer_given";

/// The name under which the question is put.
const TOOL: &str = "PeerMessage";

/// A message that waits for the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeldMessage {
    pub(super) id: RecordId,
    /// The id that the sender knows it by.
    sent_as: RecordId,
    /// The sender in words.
    from: String,
    /// The session that is told its fate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    text: String,
    /// Whether it only tells the fate of a message of this session: its sender is not told its own fate.
    #[serde(default)]
    is_notice: bool,
}

/// A message that the user does not let in.
#[derive(Serialize, Deserialize)]
struct DeclinedMessage {
    id: RecordId,
}

/// Messages that go along to another session.
#[derive(Serialize, Deserialize)]
struct GivenMessages {
    to: SessionId,
    ids: HashSet<RecordId>,
}

/// The messages of an earlier process that the user has not let in.
#[derive(Debug, Default)]
pub(super) struct EarlierMail {
    /// The messages that wait, oldest first.
    pub(super) held: Vec<HeldMessage>,
    pub(super) declined: HashSet<RecordId>,
}

impl EarlierMail {
    /// Reads what a transcript says about them. `accepted` are the messages that the agent reads, and `other` gives the
    /// transcript of another session.
    pub(super) fn read(
        transcript: &[u8],
        accepted: &HashSet<RecordId>,
        other: impl Fn(SessionId) -> Vec<u8>,
    ) -> Self {
        let mut held: IndexMap<RecordId, HeldMessage> =
            notes::<HeldMessage>(transcript, HELD).map(|it| (it.id, it)).collect();
        let declined: HashSet<RecordId> =
            notes::<DeclinedMessage>(transcript, DECLINED).map(|it| it.id).collect();
        held.retain(|id, _| !accepted.contains(id) && !declined.contains(id));
        if !held.is_empty() {
            for GivenMessages { to, ids } in notes::<GivenMessages>(transcript, GIVEN) {
                let taken: HashSet<RecordId> =
                    notes::<HeldMessage>(&other(to), HELD).map(|it| it.id).collect();
                held.retain(|id, _| !(ids.contains(id) && taken.contains(id)));
            }
        }
        Self { held: held.into_values().collect(), declined }
    }
}

/// Writes down that these messages go along to another session.
pub(super) fn give_away<'m>(
    journal: &Journal,
    to: SessionId,
    messages: impl Iterator<Item = &'m HeldMessage>,
) -> Result<(), JournalError> {
    let ids: HashSet<RecordId> = messages.map(|message| message.id).collect();
    if ids.is_empty() { Ok(()) } else { journal.note(GIVEN, &GivenMessages { to, ids }).map(drop) }
}

/// The notes of a kind. A call whose input looks like one is none.
fn notes<'a, T: serde::de::DeserializeOwned>(
    transcript: &'a [u8],
    subtype: &'a str,
) -> impl Iterator<Item = T> + 'a {
    #[derive(Deserialize)]
    struct Note {
        #[serde(rename = "type")]
        kind: String,
        subtype: String,
        data: serde_json::Value,
    }
    let finder = memchr::memmem::Finder::new(subtype).into_owned();
    let lines = transcript.split(|byte| *byte == b'\n');
    let lines = lines.filter(move |line| finder.find(line).is_some());
    let notes = lines.filter_map(|line| serde_json::from_slice::<Note>(line).ok());
    let meant = notes.filter(move |note| note.kind == "system" && note.subtype == subtype);
    meant.filter_map(|note| T::deserialize(note.data).ok())
}

impl From<Incoming> for HeldMessage {
    fn from(message: Incoming) -> Self {
        let session = match &message.from {
            Sender::Session(it) => Some(it.session),
            Sender::Process(_) => None,
        };
        let Incoming { id, from, text, sent_as, is_notice } = message;
        // A sender may work in a directory with any name.
        let from = contain(&from.to_string()).into_owned();
        Self { id, sent_as, from, session, text, is_notice }
    }
}

impl HeldMessage {
    /// The message as mail, once the user has let it in, or where no user is asked.
    pub(super) fn into_mail(self) -> Mail {
        Mail { id: self.id, from: self.from, text: self.text, team: None }
    }

    /// Writes down that it is held.
    pub(super) fn record(&self, journal: &Journal) -> Result<(), JournalError> {
        journal.note(HELD, self).map(drop)
    }

    fn ask(&self) -> Option<Ask> {
        let input = to_raw_value(&json!({"from": self.from, "message": self.text})).ok()?;
        let text = format!(
            "{} has sent a message. Shall the agent read it? It does not count as your word",
            self.from
        );
        Some(Ask {
            tool: TOOL.to_owned(),
            call: ToolUseId::new(format!("peer-{}", self.id)),
            input,
            reason: AskReason { kind: "safetyCheck", ..AskReason::other(text) },
            reach: None,
            suggestions: Vec::new(),
            agent: None,
            server: None,
            is_for_person: true,
        })
    }

    /// The notice for the sender.
    fn notice(&self, is_let_in: bool) -> String {
        let what = if is_let_in { "has let in" } else { "has declined" };
        format!("The user of this session {what} your message {}.", self.sent_as)
    }
}

/// Puts a message before the user, and does what they say. Without an answer it stays.
pub(super) async fn decide(shared: &Arc<Shared>, peers: &Peers, message: HeldMessage) {
    let Some(ask) = message.ask() else { return };
    let is_let_in = match shared.broker.decide(ask).await {
        Some(Reply::Allowed { .. }) => true,
        Some(Reply::Denied { .. } | Reply::HostDenied { .. }) => false,
        // It is put before the user of a later process.
        Some(Reply::Cancelled) | None => return,
    };
    let done = if is_let_in {
        let posted = shared.post_to_main(&message.clone().into_mail());
        posted.map(|posted| posted == PostResult::Queued)
    } else {
        let journal = &shared.delegation.builder.files.journal;
        journal.note(DECLINED, &DeclinedMessage { id: message.id }).map(|_| true)
    };
    match done {
        Ok(true) => peers.settle(message.id, is_let_in),
        Ok(false) => {
            let text = format!("{} waits: too much is unread", message.from);
            return shared.inform(None, "warning", text);
        }
        Err(error) => {
            let text = format!("a message of another session cannot be kept: {error}");
            return shared.inform(None, "warning", text);
        }
    }
    if let Some(session) = message.session.filter(|_| !message.is_notice) {
        let notice = Outgoing::notice(shared.world.record_id(), message.notice(is_let_in));
        if let Err(error) = peers.send(&PeerAddress::Session(session), &notice).await {
            tracing::debug!(%error, "the sender of a held message was not told");
        }
    }
}

#[cfg(test)]
mod tests {
    use centurion_protocol::{SeededWorld, World as _};

    use super::*;

    #[test]
    fn what_waits_is_what_was_held_and_neither_let_in_nor_declined() {
        let world = SeededWorld::new(3);
        let message = |text: &str| HeldMessage {
            id: world.record_id(),
            sent_as: world.record_id(),
            from: "Another process".to_owned(),
            session: None,
            text: text.to_owned(),
            is_notice: false,
        };
        let line = |subtype: &str, data: serde_json::Value| {
            json!({"type": "system", "subtype": subtype, "data": data}).to_string() + "\n"
        };
        let all = ["one", "two", "three", "four"].map(message);
        let [one, two, three, four] = &all;
        let mut text: String = [one, two, three].map(|it| line(HELD, json!(it))).concat();
        text += &line(DECLINED, json!({"id": two.id}));
        // A call that looks like a record, and a record that was torn.
        let call = json!({"type": "assistant", "message": {"content": [{"input": line(HELD, json!(four))}]}});
        text += &(call.to_string() + "\n");
        text += &line(HELD, json!(four))[..60];
        let accepted = HashSet::from([three.id]);
        let earlier = EarlierMail::read(text.as_bytes(), &accepted, |_| Vec::new());
        assert_eq!(earlier.held, std::slice::from_ref(one));
        assert_eq!(earlier.declined, HashSet::from([two.id]));
        // What is given away counts once the other session has it.
        text += "\n";
        text += &line(GIVEN, json!({"to": world.session_id(), "ids": [one.id]}));
        let earlier = EarlierMail::read(text.as_bytes(), &accepted, |_| Vec::new());
        assert_eq!(earlier.held, std::slice::from_ref(one));
        let earlier =
            EarlierMail::read(text.as_bytes(), &accepted, |_| line(HELD, json!(one)).into());
        assert_eq!(earlier.held, []);
    }
}
