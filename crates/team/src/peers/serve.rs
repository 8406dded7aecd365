//! The socket of this session: it answers callers, and receives messages.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::RecordId;
use uuid::Builder;

use super::wire::{Answer, Greeting, MOST_FRAME, MOST_TEXT, Request, VERSION};
use super::{Incoming, Introduction, MessageRefusal, MessageTreatment, PeerDirectory, Sender};
use crate::frames::Frame;
use crate::socket::{Connection, FrameError, Limits, Listener, Patience, Process, SocketError};

/// The time after which a silent caller loses its connection.
const PATIENCE: Patience =
    Patience { until_next: Some(Duration::from_secs(10)), for_one: Duration::from_secs(5) };
/// The time that a caller has to identify itself.
const GREETING: Patience =
    Patience { until_next: Some(Duration::from_secs(2)), for_one: Duration::from_secs(2) };

const LIMITS: Limits = Limits { frame: MOST_FRAME, connections: 64, of_one_process: 8 };

/// The recipient of peers' messages.
pub trait Inbox: Send + Sync + 'static {
    /// Accepts a message. When this returns, the message is recorded, or it was refused. A repeated id is accepted without
    /// effect.
    fn take(&self, message: Incoming) -> Result<MessageTreatment, MessageRefusal>;
}

/// The socket of this session, while this is held.
#[derive(Debug)]
pub struct PeerListener {
    listener: Listener,
    directory: PeerDirectory,
    own: Introduction,
}

impl PeerListener {
    /// Makes the socket. It may block, so it must not run on a thread of the runtime.
    pub fn bind(directory: &PeerDirectory, own: Introduction) -> Result<Self, SocketError> {
        let name = PeerDirectory::socket_name(own.session);
        let listener = Listener::bind(directory.sockets(), &name)?;
        Ok(Self { listener, directory: directory.clone(), own })
    }

    /// Answers callers until the future is dropped.
    pub async fn serve(&self, inbox: Arc<dyn Inbox>) -> Infallible {
        let serve = |connection| {
            let (own, directory) = (self.own.clone(), self.directory.clone());
            let inbox = Arc::clone(&inbox);
            async move {
                if let Err(error) = converse(connection, &own, &directory, &*inbox).await {
                    tracing::debug!(%error, "a connection of another process was given up");
                }
            }
        };
        self.listener.serve(LIMITS, serve).await
    }
}

async fn converse(
    mut connection: Connection,
    own: &Introduction,
    directory: &PeerDirectory,
    inbox: &dyn Inbox,
) -> Result<(), FrameError> {
    let Some(greeting) = connection.reader.read::<Greeting>(GREETING).await? else { return Ok(()) };
    let version = greeting.centurion;
    connection.writer.write(&Greeting::of(Some(own)), PATIENCE.for_one).await?;
    if version != VERSION {
        // Our greeting tells it the version that is spoken here.
        return Ok(());
    }
    let claimed = greeting.introduction();
    let mut sender = None;
    while let Some(request) = connection.reader.read::<Request>(PATIENCE).await? {
        let Request::Message { id, text, notice } = request;
        let from = match &mut sender {
            Some(known) => known,
            // Determined now: most callers only want to know the live sessions.
            none => none.insert(identify(connection.peer, claimed.as_ref(), directory).await),
        };
        let own = delivery_id(from, connection.peer, id);
        let message =
            Incoming { id: own, from: from.clone(), text, sent_as: id, is_notice: notice };
        let answer = answer(message, inbox);
        connection.writer.write(&answer, PATIENCE.for_one).await?;
    }
    Ok(())
}

fn answer(message: Incoming, inbox: &dyn Inbox) -> Answer {
    if message.text.trim().is_empty() {
        return Answer::Refused("the message is empty".to_owned());
    }
    if message.text.len() > MOST_TEXT {
        return Answer::Refused(format!("it has more than {MOST_TEXT} bytes"));
    }
    if Frame::is_imitated_by(&message.text) {
        return Answer::Refused("it is a structured message of a team: write text".to_owned());
    }
    let id = message.sent_as;
    match inbox.take(message) {
        Ok(MessageTreatment::ToRead) => Answer::Accepted(id),
        Ok(MessageTreatment::Held) => Answer::Held(id),
        Err(refusal) => Answer::Refused(refusal.to_string()),
    }
}

/// A caller is the session that it claims to be if its process serves that session's socket.
async fn identify(
    peer: Process,
    claimed: Option<&Introduction>,
    directory: &PeerDirectory,
) -> Sender {
    if let (Some(pid), Some(claimed)) = (peer.pid, claimed)
        && directory.server(claimed.session).await == Some(pid)
    {
        return Sender::Session(claimed.clone());
    }
    Sender::Process(peer.pid)
}

/// The id under which a message is stored: no sender can choose the id of another sender's message, or of anything
/// else.
fn delivery_id(from: &Sender, peer: Process, id: RecordId) -> RecordId {
    let sender = match from {
        Sender::Session(it) => format!("session {}", it.session),
        // A process number is reused; together with the start time it is unique.
        Sender::Process(_) => format!("process {:?} {:?}", peer.pid, peer.pid.and_then(started)),
    };
    let digest = blake3::Hasher::new_derive_key("centurion 2026 message of a peer")
        .update(sender.as_bytes())
        .update(&[0])
        .update(id.0.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    RecordId(Builder::from_random_bytes(bytes).into_uuid())
}

/// The start time of a process, in ticks since boot.
fn started(pid: u32) -> Option<u64> {
    let path = format!("/proc/{pid}/stat");
    let stat = centurion_protocol::bounded::read_file(path.as_ref(), 4096).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name in parentheses may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use centurion_protocol::{SeededWorld, World as _};

    use super::*;

    #[test]
    fn no_sender_gets_the_id_of_another_senders_message() {
        let world = SeededWorld::new(1);
        let (id, session, other) = (world.record_id(), world.session_id(), world.session_id());
        let of = |session| Sender::Session(Introduction { session, cwd: "/".to_owned() });
        let peer = |pid| Process { pid: Some(pid) };
        let own = delivery_id(&of(session), peer(1), id);
        assert_eq!(own, delivery_id(&of(session), peer(2), id), "after a restart as well");
        let others = [
            delivery_id(&of(other), peer(1), id),
            delivery_id(&of(session), peer(1), world.record_id()),
            delivery_id(&Sender::Process(Some(1)), peer(1), id),
            delivery_id(&Sender::Process(Some(2)), peer(2), id),
            id,
        ];
        assert!(!others.contains(&own));
    }

    #[test]
    fn the_start_of_a_process_is_known() {
        let own = started(std::process::id());
        assert!(own.is_some() && own == started(std::process::id()));
        assert_eq!(started(u32::MAX), None);
    }
}
