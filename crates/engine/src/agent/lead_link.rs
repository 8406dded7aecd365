//! The link of a member's process to the process of its lead.
//!
//! An agent of this process asks there before it does or spends anything, and speaks to the team through it. When the
//! link breaks, the process ends: no member outlives its lead.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use centurion_files::Existing;
use centurion_protocol::sdk::{Event, EventBody, System};
use centurion_protocol::{AgentId, RecordId, ReportedUsage, SessionId};
use centurion_team::socket::{Connection, FrameError, Patience, SocketDirectory, SocketError};
use centurion_tools::{CheckpointError, ContentHash, FileKeeper};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::agent::member_frames::{
    BeginRun, ExecutionFrame, FromMember, FunctionCall, FunctionFault, LeadAnswer, LeadQuestion,
    LeadSession, MOST_FRAME, ProgressNews, RunReport, ToMember,
};
use crate::agent::shared::{Shared, View};
use crate::money::budget::{AccountsAbove, Amount, BudgetLevel, OverBudget, Quantity};

/// The longest wait for the lead's socket.
const CONNECTING: Duration = Duration::from_secs(10);
/// The time limits of the lead's first frames.
const GREETING: Patience =
    Patience { until_next: Some(Duration::from_secs(10)), for_one: Duration::from_secs(10) };
/// The lead may say nothing for as long as it likes.
const LISTENING: Patience = Patience { until_next: None, for_one: Duration::from_secs(30) };

/// The reason why a process cannot be a member of a team.
#[derive(Debug, Error)]
pub enum LinkError {
    #[error("the lead of the team cannot be reached: {0}")]
    Socket(#[from] SocketError),
    #[error("the lead of the team does not answer: {0}")]
    Frame(#[from] FrameError),
    #[error("the lead of the team knows nothing of this member")]
    Unknown,
}

/// The way to the lead's process.
pub struct LeadLink {
    out: mpsc::UnboundedSender<FromMember>,
    state: Mutex<LinkState>,
    next: AtomicU64,
    session: LeadSession,
    is_working: AtomicBool,
    /// A run has begun.
    begun: Notify,
}

#[derive(Default)]
struct LinkState {
    waiting: HashMap<u64, oneshot::Sender<LeadAnswer>>,
    is_closed: bool,
    /// The member that this process is, once it has begun.
    member: Option<AgentId>,
}

/// The connection to the lead, and the frames that are yet to be sent there.
pub struct LeadHearing {
    connection: Connection,
    out: mpsc::UnboundedReceiver<FromMember>,
}

/// The way in which a member's process and its lead part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// The lead has no more use for it.
    Dismissed,
    /// The lead is gone. A later one may have the transcripts already, so that nothing more is written.
    Orphaned,
}

/// A run that the lead begins.
pub(crate) struct BegunRun {
    pub(crate) begin: BeginRun,
    pub(crate) cancel: CancellationToken,
    /// Cancelled when the member is to end before its next request.
    pub(crate) leaves: CancellationToken,
}

impl fmt::Debug for LeadLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LeadLink").finish_non_exhaustive()
    }
}

async fn greet(
    directory: &Path,
    session: SessionId,
    ticket: &str,
    becomes: bool,
) -> Result<(Connection, ToMember), LinkError> {
    let directory = SocketDirectory::open_existing(directory)?;
    let name = session.to_string();
    let mut connection = Connection::open(&directory, &name, MOST_FRAME, CONNECTING).await?;
    let hello = FromMember::Hello { ticket: ticket.to_owned(), becomes };
    connection.writer.write(&hello, GREETING.for_one).await?;
    let answer = connection.reader.read(GREETING).await?.ok_or(LinkError::Unknown)?;
    Ok((connection, answer))
}

/// Asks the lead what a process is to execute that becomes a member.
pub async fn member_execution(
    directory: &Path,
    session: SessionId,
    ticket: &str,
) -> Result<centurion_team::Execution, LinkError> {
    match greet(directory, session, ticket, true).await? {
        (_, ToMember::Execute(frame)) => Ok(frame.into()),
        _ => Err(LinkError::Unknown),
    }
}

impl From<ExecutionFrame> for centurion_team::Execution {
    fn from(frame: ExecutionFrame) -> Self {
        let text = OsString::from_vec;
        Self {
            program: text(frame.program),
            args: frame.args.into_iter().map(text).collect(),
            environment: frame
                .environment
                .into_iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
            cwd: PathBuf::from(text(frame.cwd)),
        }
    }
}

impl LeadLink {
    /// Goes to the lead's socket.
    pub async fn connect(
        directory: &Path,
        session: SessionId,
        ticket: &str,
    ) -> Result<(Arc<Self>, LeadHearing), LinkError> {
        let (connection, ToMember::Welcome(session)) =
            greet(directory, session, ticket, false).await?
        else {
            return Err(LinkError::Unknown);
        };
        let (out, outgoing) = mpsc::unbounded_channel();
        let link = Self {
            out,
            state: Mutex::default(),
            next: AtomicU64::new(1),
            session,
            is_working: AtomicBool::new(false),
            begun: Notify::new(),
        };
        Ok((Arc::new(link), LeadHearing { connection, out: outgoing }))
    }

    /// The transcript of the lead.
    pub fn transcript(&self) -> &Path {
        &self.session.transcript
    }

    /// The directory of output that is too large for an answer.
    pub fn output_dir(&self) -> &Path {
        &self.session.output_dir
    }

    /// The words of the lead's command line that hold here.
    pub fn inherited(&self) -> impl Iterator<Item = OsString> + '_ {
        self.session.inherited.iter().cloned().map(OsString::from_vec)
    }

    pub(crate) fn tell(&self, frame: FromMember) {
        // Without a lead the process is about to end.
        let _ = self.out.send(frame);
    }

    /// Tells the result of the run.
    pub(crate) fn tell_ended(&self, report: RunReport) {
        self.is_working.store(false, Ordering::Relaxed);
        self.tell(FromMember::Ended(Box::new(report)));
    }

    /// Waits until the lead would wonder whether this process hangs. At rest it does not.
    async fn until_wondered_at(&self) {
        loop {
            while !self.is_working.load(Ordering::Relaxed) {
                self.begun.notified().await;
            }
            tokio::time::sleep(self.session.silence / 4).await;
            if self.is_working.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    pub(crate) fn tell_used(&self, model: &str, usage: &ReportedUsage) {
        self.tell(FromMember::Used { model: model.to_owned(), usage: usage.clone() });
    }

    /// Puts a question; `None` if the lead is gone. Dropping the wait withdraws it.
    pub(crate) async fn ask(&self, question: LeadQuestion) -> Option<(u64, LeadAnswer)> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.is_closed {
                return None;
            }
            state.waiting.insert(id, sender);
        }
        self.tell(FromMember::Asks { id, question });
        let withdrawal = Withdrawal { link: self, id };
        let answer = receiver.await.ok();
        drop(withdrawal);
        answer.map(|answer| (id, answer))
    }

    /// Has the lead's host carry out one of its functions.
    pub(crate) async fn call_function(&self, function: FunctionCall) -> Result<Value, NotCalled> {
        match self.ask(LeadQuestion::Function(function)).await {
            Some((_, LeadAnswer::Function(answer))) => Ok(answer?),
            _ => Err(NotCalled::Gone),
        }
    }

    fn resolve(&self, id: u64, answer: LeadAnswer) {
        if let Some(waiting) = self.state.lock().waiting.remove(&id) {
            // Nothing may wait for it any more.
            let _ = waiting.send(answer);
        }
    }

    /// Nothing more will be answered.
    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.waiting.clear();
    }
}

/// Withdraws a question that has no answer when it is dropped.
struct Withdrawal<'a> {
    link: &'a LeadLink,
    id: u64,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        if self.link.state.lock().waiting.remove(&self.id).is_some() {
            self.link.tell(FromMember::Withdraws(self.id));
        }
    }
}

/// The reason that the lead keeps no copy of a file.
#[derive(Debug, Error)]
enum NotKept {
    #[error("the lead of the team is gone")]
    Gone,
    #[error("the lead of the team cannot keep it: {0}")]
    Refused(String),
}

/// The lead keeps what files were: it knows the prompt, and what others of the session made of them.
impl FileKeeper for LeadLink {
    fn keep(
        &self,
        path: &Path,
        _: Option<&Existing>,
        written: &ContentHash,
    ) -> Result<(), CheckpointError> {
        if !self.session.keeps_files {
            return Ok(());
        }
        if path.to_str().is_none() {
            return Err(CheckpointError::Name);
        }
        let written = written.to_hex().to_string();
        let question = LeadQuestion::Keep { path: path.to_owned(), written };
        // This thread is one for work that waits.
        let refusal = match Handle::current().block_on(self.ask(question)) {
            Some((_, LeadAnswer::Kept(None))) => return Ok(()),
            Some((_, LeadAnswer::Kept(Some(reason)))) => NotKept::Refused(reason),
            _ => NotKept::Gone,
        };
        Err(CheckpointError::Log(Box::new(refusal)))
    }

    fn waits(&self) -> bool {
        self.session.keeps_files
    }
}

/// The reason that a function of the lead's host was not carried out.
#[derive(Debug, Error)]
pub(crate) enum NotCalled {
    #[error("the lead of the team is gone")]
    Gone,
    #[error(transparent)]
    Failed(#[from] FunctionFault),
}

impl AccountsAbove for LeadLink {
    fn reserve(&self, amount: Amount) -> BoxFuture<'_, Result<u64, OverBudget>> {
        async move {
            match self.ask(LeadQuestion::Reserve(amount)).await {
                Some((id, LeadAnswer::Reserved(Ok(())))) => Ok(id),
                Some((_, LeadAnswer::Reserved(Err(refused)))) => Err(refused),
                // Without a lead nothing is spent.
                _ => Err(OverBudget {
                    limit: Quantity::Tokens(0),
                    spent: Quantity::Tokens(0),
                    reserved: Quantity::Tokens(0),
                    level: BudgetLevel::Session,
                }),
            }
        }
        .boxed()
    }

    fn close(&self, reservation: u64, cost: Amount) {
        self.tell(FromMember::Closes { reservation, cost });
    }
}

impl LeadHearing {
    /// Hears the lead until it is gone or has no more use for this process; tells which of both. It is heard while frames
    /// are on their way to it, too: two processes that each waited for the other to read would wait for ever.
    pub(crate) async fn hear(
        &mut self,
        link: &LeadLink,
        shared: &Shared,
        begun: &mpsc::UnboundedSender<BegunRun>,
    ) -> LinkEnd {
        let Connection { reader, writer, .. } = &mut self.connection;
        let out = &mut self.out;
        let telling = async {
            loop {
                let frame = tokio::select! {
                    biased;
                    frame = out.recv() => frame,
                    () = link.until_wondered_at() => Some(FromMember::Alive),
                };
                let Some(frame) = frame else { break };
                if let Err(error) = writer.write(&frame, LISTENING.for_one).await {
                    tracing::warn!(%error, "the lead cannot be told any more");
                    break;
                }
            }
        };
        let hearing = async {
            let mut run = None;
            loop {
                match reader.read::<ToMember>(LISTENING).await {
                    Ok(Some(ToMember::Bye)) => break LinkEnd::Dismissed,
                    Ok(None) => break LinkEnd::Orphaned,
                    Ok(Some(frame)) => take(frame, link, shared, begun, &mut run),
                    Err(error) => {
                        tracing::warn!(%error, "the lead cannot be heard any more");
                        break LinkEnd::Orphaned;
                    }
                }
            }
        };
        let parting = tokio::select! {
            biased;
            parting = hearing => parting,
            () = telling => LinkEnd::Orphaned,
        };
        link.close();
        parting
    }

    /// Tells the lead that this process cannot be a member.
    pub async fn refuse(mut self, reason: String) {
        let refusal = FromMember::Unable(reason);
        // A lead that is gone needs no reason.
        let _ = self.connection.writer.write(&refusal, GREETING.for_one).await;
    }
}

/// The run under way, as the lead can change it.
struct CurrentRun {
    agent: AgentId,
    cancel: CancellationToken,
    leaves: CancellationToken,
}

/// Takes a frame of the lead up.
fn take(
    frame: ToMember,
    link: &LeadLink,
    shared: &Shared,
    runs: &mpsc::UnboundedSender<BegunRun>,
    run: &mut Option<CurrentRun>,
) {
    match frame {
        ToMember::Begin(begin) => {
            // The lead sends again those that the last run did not read.
            let left = shared.queue.pending(Some(&begin.agent));
            let left: Vec<RecordId> = left.iter().map(|item| item.id).collect();
            shared.queue.withdraw_all(&left);
            let (cancel, leaves) = (CancellationToken::new(), CancellationToken::new());
            *run = Some(CurrentRun {
                agent: begin.agent.clone(),
                cancel: cancel.clone(),
                leaves: leaves.clone(),
            });
            link.state.lock().member = Some(begin.agent.clone());
            link.is_working.store(true, Ordering::Relaxed);
            link.begun.notify_one();
            // The receiver lives as long as the session.
            let _ = runs.send(BegunRun { begin: *begin, cancel, leaves });
        }
        ToMember::Answers { id, answer } => link.resolve(id, answer),
        ToMember::Item(item) => {
            if let Some(run) = run {
                shared.queue.push(item.into_item(&run.agent));
            }
        }
        ToMember::Cancel => run.iter().for_each(|run| run.cancel.cancel()),
        ToMember::Leave => run.iter().for_each(|run| run.leaves.cancel()),
        ToMember::Welcome(_) | ToMember::Execute(_) | ToMember::Bye => {}
    }
}

/// Shows the lead what happens here, and a view of this process as well.
pub struct LeadView {
    link: Arc<LeadLink>,
    own: Option<Arc<dyn View>>,
}

impl LeadView {
    pub fn new(link: Arc<LeadLink>, own: Option<Arc<dyn View>>) -> Self {
        Self { link, own }
    }

    /// The event as the view of this process takes it: the member is its main agent.
    fn at_its_own<'a>(&self, event: &'a Event) -> Option<Cow<'a, Event>> {
        let member = self.link.state.lock().member.clone();
        let is_its = |agent: &AgentId| member.as_ref() == Some(agent);
        let mut body = match &event.body {
            EventBody::Assistant(answer) if answer.agent.is_some() => event.body.clone(),
            EventBody::User(user) if user.agent.is_some() => event.body.clone(),
            // Its calls are shown themselves.
            EventBody::System(System::TaskProgress(told))
                if member.as_ref().is_some_and(|member| told.task_id == member.as_str()) =>
            {
                return None;
            }
            _ => return Some(Cow::Borrowed(event)),
        };
        let tag = match &mut body {
            EventBody::Assistant(answer) => &mut answer.agent,
            EventBody::User(user) => &mut user.agent,
            _ => return Some(Cow::Borrowed(event)),
        };
        *tag = tag.take().filter(|tag| !is_its(&tag.agent_id));
        let (session_id, uuid) = (event.session_id, event.uuid);
        Some(Cow::Owned(Event { body, session_id, uuid }))
    }
}

impl View for LeadView {
    fn show(&self, event: &Event) {
        match &event.body {
            EventBody::System(System::TaskProgress(told)) => {
                self.link.tell(FromMember::Progress(ProgressNews {
                    tokens: told.usage.total_tokens,
                    tool_uses: told.usage.tool_uses,
                    last_tool: told.last_tool_name.clone(),
                    activity: told.description.clone(),
                }));
            }
            EventBody::System(System::Informational(told)) => {
                let (level, text) = (told.level.to_owned(), told.content.clone());
                self.link.tell(FromMember::Informs { level, text });
            }
            // The lead tells of what the whole session has, and of the member's own beginning and end.
            EventBody::System(System::Init(_) | System::BackgroundTasksChanged { .. })
            | EventBody::Result(_) => {}
            body => {
                if let Ok(Value::Object(body)) = serde_json::to_value(body) {
                    self.link.tell(FromMember::Shows { uuid: event.uuid, body });
                }
            }
        }
        if let Some((own, event)) = self.own.as_ref().zip(self.at_its_own(event)) {
            own.show(&event);
        }
    }
}
