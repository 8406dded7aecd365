//! The user's other sessions on this machine: who is there, what is said to them, and what they say.
//!
//! Their messages are mail for the main agent, in the words of another session and not of the user.

use std::collections::HashSet;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use centurion_config::settings::PeerPolicy;
use centurion_journal::{Journal, JournalError, MOST_TRANSCRIPT};
use centurion_protocol::{RecordId, SessionId, bounded};
use centurion_team::peers::{
    Inbox, Incoming, Introduction, LivePeer, MessageRefusal, MessageTreatment, Outgoing,
    PeerAddress, PeerDirectory, PeerListener, SendError,
};
use centurion_team::socket::SocketError;
use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use crate::agent::held_mail::{self, EarlierMail, HeldMessage, MOST_HELD};
use crate::agent::shared::Shared;
use crate::agent::task::PostResult;
use crate::message::mail;

/// The most pending messages of other sessions.
const MOST_WAITING: usize = 100;

/// The longest wait of a message for the session's own socket.
const BINDING: Duration = Duration::from_secs(5);

/// The options of a session among the user's sessions.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// The directory of the sockets of all sessions.
    pub directory: PathBuf,
    /// The treatment of messages of others to this one.
    pub inbound: PeerPolicy,
}

/// The other sessions, and the mail of theirs that this one has taken.
pub(crate) struct Peers {
    directory: PathBuf,
    own: Mutex<Introduction>,
    inbound: PeerPolicy,
    state: Mutex<PeerState>,
    /// The messages that the user is to decide about, one after another.
    held: mpsc::UnboundedSender<HeldMessage>,
    /// Taken by what serves the socket.
    to_decide: Mutex<Option<mpsc::UnboundedReceiver<HeldMessage>>>,
    /// True if it is known by now if this process serves the session's socket.
    is_settled: watch::Sender<bool>,
    /// Tells that the session has another id.
    moved: watch::Sender<()>,
}

#[derive(Default)]
struct PeerState {
    /// The messages that were taken, in this process or an earlier one.
    taken: HashSet<RecordId>,
    /// The messages that wait for the user, and those that the user has declined.
    held: IndexMap<RecordId, HeldMessage>,
    declined: HashSet<RecordId>,
    /// True if this process serves the session's socket.
    is_listening: bool,
    /// True if the session is ending and takes no more.
    is_closed: bool,
}

impl Peers {
    pub(crate) fn new(options: PeerOptions, session: SessionId, cwd: String) -> Self {
        let PeerOptions { directory, inbound } = options;
        let own = Mutex::new(Introduction { session, cwd });
        let is_settled = watch::Sender::new(inbound == PeerPolicy::Refuse);
        let moved = watch::Sender::default();
        let (held, to_decide) = mpsc::unbounded_channel();
        let to_decide = Mutex::new(Some(to_decide));
        let state = Mutex::default();
        Self { directory, own, inbound, state, held, to_decide, is_settled, moved }
    }

    fn own(&self) -> Introduction {
        self.own.lock().clone()
    }

    /// Writes down that the messages that the user has not decided about go along to another session.
    pub(crate) fn give_away(&self, journal: &Journal, to: SessionId) -> Result<(), JournalError> {
        held_mail::give_away(journal, to, self.state.lock().held.values())
    }

    /// Writes down in the other session that they are held.
    pub(crate) fn take_over(&self, journal: &Journal) -> Result<(), JournalError> {
        self.state.lock().held.values().try_for_each(|message| message.record(journal))
    }

    /// The process continues as another session, which others reach under its own id.
    pub(crate) fn begin_anew(&self, session: SessionId) {
        self.own.lock().session = session;
        let mut state = self.state.lock();
        if state.is_listening {
            state.is_listening = false;
            self.is_settled.send_replace(false);
        }
        drop(state);
        self.moved.send_replace(());
    }

    /// The sessions that answer, but for this one.
    pub(crate) async fn live(&self) -> Result<Vec<LivePeer>, SocketError> {
        if !self.directory.exists() {
            return Ok(Vec::new());
        }
        PeerDirectory::open_existing(&self.directory)?.live(Some(self.own().session)).await
    }

    /// Says something to another session; when this returns, that one has written it down.
    pub(crate) async fn send(&self, to: &PeerAddress, message: &Outgoing) -> Result<(), SendError> {
        if !self.directory.exists() {
            // No session has ever listened here.
            let is_elsewhere =
                matches!(to, PeerAddress::Socket(path) if path.parent() != Some(&self.directory));
            let unserved = SendError::Unreachable(SocketError::Dead);
            return Err(if is_elsewhere { SendError::Elsewhere } else { unserved });
        }
        let directory =
            PeerDirectory::open_existing(&self.directory).map_err(SendError::Unreachable)?;
        // Only a session that can be answered says who it is: its socket is made while it begins.
        let mut settled = self.is_settled.subscribe();
        // A session whose socket is not made by then goes without a name.
        let _ = tokio::time::timeout(BINDING, settled.wait_for(|is_settled| *is_settled)).await;
        let is_listening = self.state.lock().is_listening;
        let own = is_listening.then(|| self.own());
        directory.send(to, own.as_ref(), message).await
    }

    /// The user has decided about a message.
    pub(super) fn settle(&self, id: RecordId, is_let_in: bool) {
        let mut state = self.state.lock();
        state.held.shift_remove(&id);
        let settled = if is_let_in { &mut state.taken } else { &mut state.declined };
        settled.insert(id);
    }

    /// Keeps a message until the user has decided about it.
    fn hold(
        &self,
        shared: &Shared,
        state: &mut PeerState,
        message: HeldMessage,
    ) -> Result<MessageTreatment, MessageRefusal> {
        if !shared.broker.has_answerer() {
            return Err(MessageRefusal::Alone);
        }
        if state.held.len() >= MOST_HELD {
            return Err(MessageRefusal::Full);
        }
        let journal = &shared.delegation.builder.files.journal;
        message.record(journal).map_err(|error| MessageRefusal::Lost(error.to_string()))?;
        state.held.insert(message.id, message.clone());
        // It is received as long as the socket is served.
        let _ = self.held.send(message);
        Ok(MessageTreatment::Held)
    }

    /// Puts the messages that are held before the user, one after another.
    async fn decide_all(&self, shared: &Arc<Shared>) {
        let to_decide = self.to_decide.lock().take();
        if let Some(mut to_decide) = to_decide {
            while let Some(message) = to_decide.recv().await {
                held_mail::decide(shared, self, message).await;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Tells whether an address is that of this very session.
    pub(crate) fn is_own(&self, address: &PeerAddress) -> bool {
        *address == PeerAddress::Session(self.own().session)
    }

    /// Takes no more messages, unless one waits to be read: then the session continues.
    fn close_if_idle(&self, shared: &Shared) -> bool {
        let mut state = self.state.lock();
        let is_owed = !shared.queue.is_abandoned() && !shared.queue.due(None).is_empty();
        state.is_closed = !is_owed;
        state.is_closed
    }
}

/// Hears what other sessions say until this is dropped, if the session is to hear it.
pub(crate) async fn listen(shared: &Arc<Shared>) {
    let hears = |it: &&Arc<Peers>| it.inbound != PeerPolicy::Refuse;
    let Some(peers) = shared.delegation.peers.as_ref().filter(hears) else { return };
    let mut moved = peers.moved.subscribe();
    let mut deciding = pin!(peers.decide_all(shared));
    loop {
        let listener = make_socket(shared, peers).await;
        peers.is_settled.send_replace(true);
        let Some(listener) = listener else { return };
        let inbox = Arc::new(SessionInbox(Arc::downgrade(shared)));
        tokio::select! {
            never = listener.serve(inbox) => match never {},
            () = &mut deciding => return,
            // The sender lives as long as the session.
            _ = moved.changed() => {}
        }
    }
}

/// Makes the socket of the session; `None` if the session accepts no messages. A warning tells the user.
async fn make_socket(shared: &Arc<Shared>, peers: &Arc<Peers>) -> Option<PeerListener> {
    if !shared.delegation.builder.files.journal.is_kept() {
        let text = "this session keeps no transcript, so that it hears nothing of other sessions";
        shared.inform(None, "warning", text.to_owned());
        return None;
    }
    let (binding, session) = (Arc::clone(peers), Arc::clone(shared));
    let bound = tokio::task::spawn_blocking(move || bind(&binding, &session)).await;
    match bound {
        Ok(Ok(listener)) => return Some(listener),
        Ok(Err(error)) => {
            let text = format!("other sessions cannot reach this one: {error}");
            shared.inform(None, "warning", text);
        }
        Err(fault) => tracing::error!(%fault, "the socket of the session could not be made"),
    }
    None
}

fn bind(peers: &Peers, shared: &Shared) -> Result<PeerListener, SocketError> {
    let directory = PeerDirectory::open(&peers.directory)?;
    let path = shared.delegation.builder.files.place.transcript();
    let earlier = bounded::read_file(&path, MOST_TRANSCRIPT).unwrap_or_default();
    let taken: HashSet<RecordId> = mail::accepted(&earlier).into_iter().collect();
    let place = &shared.delegation.builder.files.place;
    let other = |session| {
        let path = place.transcript_of(session).unwrap_or_default();
        bounded::read_file(&path, MOST_TRANSCRIPT).unwrap_or_default()
    };
    let EarlierMail { held, declined } = EarlierMail::read(&earlier, &taken, other);
    let listener = PeerListener::bind(&directory, peers.own())?;
    let mut state = peers.state.lock();
    state.taken.extend(taken);
    state.declined.extend(declined);
    state.is_listening = true;
    // The user was not asked about these, or has not answered. Those that went along from a conversation that was left
    // wait already.
    for message in held {
        if state.held.insert(message.id, message.clone()).is_some() {
            continue;
        }
        // It is received as long as the socket is served.
        let _ = peers.held.send(message);
    }
    Ok(listener)
}

/// Tells whether the session may end: it then hears nothing more, and nothing that it took waits.
pub(crate) fn close_if_idle(shared: &Shared) -> bool {
    shared.delegation.peers.as_ref().is_none_or(|peers| peers.close_if_idle(shared))
}

/// The inbox for messages of other sessions. Weak, because the session owns what serves it.
struct SessionInbox(Weak<Shared>);

impl Inbox for SessionInbox {
    fn take(&self, message: Incoming) -> Result<MessageTreatment, MessageRefusal> {
        let shared = self.0.upgrade().ok_or(MessageRefusal::Ending)?;
        let peers = shared.delegation.peers.as_ref().ok_or(MessageRefusal::Ending)?;
        // Held until it is written down and queued: of two that bring the same message, one delivers it.
        let mut state = peers.state.lock();
        let id = message.id;
        if state.taken.contains(&id) {
            return Ok(MessageTreatment::ToRead);
        }
        if state.held.contains_key(&id) {
            return Ok(MessageTreatment::Held);
        }
        if state.declined.contains(&id) {
            return Err(MessageRefusal::Declined);
        }
        if state.is_closed || shared.queue.is_abandoned() {
            return Err(MessageRefusal::Ending);
        }
        if shared.queue.mail_load(None).0 >= MOST_WAITING {
            return Err(MessageRefusal::Full);
        }
        let message = HeldMessage::from(message);
        if peers.inbound == PeerPolicy::Hold {
            return peers.hold(&shared, &mut state, message);
        }
        match shared.post_to_main(&message.into_mail()) {
            Ok(PostResult::Queued) => {
                state.taken.insert(id);
                Ok(MessageTreatment::ToRead)
            }
            Ok(_) => Err(MessageRefusal::Full),
            Err(error) => Err(MessageRefusal::Lost(error.to_string())),
        }
    }
}
