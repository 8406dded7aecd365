//! The processes of members, as their lead sees them: how they start, come to the lead's socket, rest and end.
//!
//! A process stays while its member is in the team. Between runs its connection rests here; what passes in a run is the
//! run's affair. A process that died while its member rested harms nothing: the next run starts another one.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{AgentId, SessionId};
use centurion_team::socket::{
    Connection, FrameError, Limits, Listener, Patience, SocketDirectory, SocketError,
};
use centurion_team::{
    BackEnd, BackEndError, Execution, MemberCommand, MemberName, MemberPlace, MemberProcess,
};
use futures_util::future::join_all;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agent::member_frames::{ExecutionFrame, FromMember, LeadSession, MOST_FRAME, ToMember};
use crate::agent::shared::Shared;
use crate::definition::spec::AgentSpec;

/// The longest wait for a process that was started, and again until its session is there.
const STARTING: Duration = Duration::from_mins(1);
/// The longest wait for a process that is to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// The time that a caller of the socket has to say who it is.
const GREETING: Patience =
    Patience { until_next: Some(Duration::from_secs(5)), for_one: Duration::from_secs(5) };
/// The longest time that one frame may take.
pub(crate) const FOR_ONE: Duration = Duration::from_secs(30);
/// The time limits of a process that begins.
const BEGINNING: Patience = Patience { until_next: None, for_one: FOR_ONE };

/// The word for members that have no process of their own.
pub(crate) const IN_PROCESS: &str = "in-process";

const LIMITS: Limits = Limits { frame: MOST_FRAME, connections: 256, of_one_process: 4 };

/// The back end of the members of a session.
#[derive(Clone)]
pub struct MemberProcessOptions {
    pub back_end: Arc<dyn BackEnd>,
    /// The directory of the sockets of all leads.
    pub directory: PathBuf,
    pub inherited: Inherited,
    /// The time after which a process at work that says nothing counts as one that hangs, and is ended.
    pub silence: Duration,
}

/// The words of a command line that hold for members as for their lead, as they are at this moment. They go over the
/// socket: other users of the machine read command lines, and a word there is bounded.
pub type Inherited = Arc<dyn Fn() -> Vec<OsString> + Send + Sync>;

/// The reason why a member has no process.
#[derive(Debug, Error)]
pub(crate) enum MemberProcessError {
    #[error(transparent)]
    BackEnd(#[from] BackEndError),
    #[error("the team's socket cannot be made: {0}")]
    Socket(#[from] SocketError),
    #[error("its process cannot be heard: {0}")]
    Frame(#[from] FrameError),
    #[error("its process has ended: {0}")]
    Ended(String),
    #[error("its process cannot be a member: {0}")]
    Unable(String),
    #[error("its process did not come in time")]
    Late,
    #[error("a member needs a name and a team")]
    NoMember,
}

/// The processes of the members of a session.
pub(crate) struct MemberProcesses {
    back_end: Arc<dyn BackEnd>,
    directory: PathBuf,
    session: SessionId,
    /// The directory in which the lead was started: relative paths of its flags, its settings and its trust begin there.
    cwd: PathBuf,
    inherited: Inherited,
    silence: Duration,
    state: Mutex<ProcessesState>,
    /// Held while the socket is made.
    listening: tokio::sync::Mutex<bool>,
    /// The socket is served until the session ends.
    closing: CancellationToken,
}

#[derive(Default)]
struct ProcessesState {
    /// The processes that were started and have not come, by ticket.
    expected: HashMap<String, ExpectedProcess>,
    /// The processes of members that rest.
    links: HashMap<AgentId, MemberLink>,
    places: HashMap<AgentId, MemberPlace>,
}

/// A process that is to come to the socket.
struct ExpectedProcess {
    welcome: LeadSession,
    execution: Option<Execution>,
    arrival: oneshot::Sender<Connection>,
}

/// A member's process, and the connection to it.
pub(crate) struct MemberLink {
    pub(crate) connection: Connection,
    process: Box<dyn MemberProcess>,
    /// The words that it was told at its start.
    inherited: Vec<OsString>,
    /// The time limits of the process while it works.
    pub(crate) working: Patience,
}

impl MemberLink {
    /// Waits for the end of the process; says how it ended.
    pub(crate) async fn ended(&mut self) -> String {
        timeout(GRACE, self.process.ended())
            .await
            .unwrap_or_else(|_| "it does not speak any more".to_owned())
    }

    /// Ends the process: politely, and then by force.
    pub(crate) async fn end(mut self) {
        let said = self.connection.writer.write(&ToMember::Bye, GRACE).await;
        if said.is_err() || timeout(GRACE, self.process.ended()).await.is_err() {
            tracing::debug!("a member's process is ended by force");
        }
        self.process.stop().await;
    }
}

fn bytes(text: &OsStr) -> Vec<u8> {
    text.as_bytes().to_vec()
}

impl From<Execution> for ExecutionFrame {
    fn from(execution: Execution) -> Self {
        Self {
            program: bytes(&execution.program),
            args: execution.args.iter().map(|arg| bytes(arg)).collect(),
            environment: execution
                .environment
                .iter()
                .map(|(name, value)| (bytes(name), bytes(value)))
                .collect(),
            cwd: bytes(execution.cwd.as_os_str()),
        }
    }
}

impl MemberProcesses {
    pub(crate) fn new(options: MemberProcessOptions, session: SessionId, cwd: PathBuf) -> Self {
        Self {
            back_end: options.back_end,
            directory: options.directory,
            session,
            cwd,
            inherited: options.inherited,
            silence: options.silence,
            state: Mutex::default(),
            listening: tokio::sync::Mutex::new(false),
            closing: CancellationToken::new(),
        }
    }

    /// Starts a process for a member, and keeps its link for the first run.
    pub(crate) async fn prepare(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        agent: &AgentId,
        spec: &AgentSpec,
    ) -> Result<(), MemberProcessError> {
        let link = self.start(shared, agent, spec).await?;
        self.keep(agent, link);
        Ok(())
    }

    /// Starts a process for a member, and waits until its session is there.
    pub(crate) async fn start(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        agent: &AgentId,
        spec: &AgentSpec,
    ) -> Result<MemberLink, MemberProcessError> {
        self.listen(shared).await?;
        let world = &shared.world;
        let ticket = format!("{:016x}{:016x}", world.random(), world.random());
        let mode = shared.permissions.mode().to_string();
        let command = self.command(spec, mode, ticket.clone())?;
        let (arrival, arrived) = oneshot::channel();
        let execution = self.back_end.execution(&command);
        let inherited = (self.inherited)();
        let files = &shared.delegation.builder.files;
        files.known.share_in(&files.output_dir);
        let welcome = LeadSession {
            transcript: files.place.transcript(),
            output_dir: files.output_dir.clone(),
            keeps_files: files.checkpoints.is_some(),
            inherited: inherited.iter().map(|word| bytes(word)).collect(),
            silence: self.silence,
        };
        let expected = ExpectedProcess { welcome, execution, arrival };
        self.state.lock().expected.insert(ticket.clone(), expected);
        let _expecting = ExpectationGuard { processes: self, ticket };
        let mut process = self.back_end.start(&command).await?;
        let coming = async {
            let mut connection = arrived.await.map_err(|_| MemberProcessError::Late)?;
            match connection.reader.read(BEGINNING).await? {
                Some(FromMember::Ready) => Ok(connection),
                Some(FromMember::Unable(reason)) => Err(MemberProcessError::Unable(reason)),
                _ => Err(MemberProcessError::Ended("it left while it began".to_owned())),
            }
        };
        let connection = tokio::select! {
            biased;
            connection = coming => connection?,
            how = process.ended() => return Err(MemberProcessError::Ended(how)),
            () = tokio::time::sleep(STARTING) => return Err(MemberProcessError::Late),
        };
        self.state.lock().places.insert(agent.clone(), process.place());
        let working = Patience { until_next: Some(self.silence), for_one: FOR_ONE };
        Ok(MemberLink { connection, process, inherited, working })
    }

    /// Makes the socket, once.
    async fn listen(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<(), MemberProcessError> {
        let mut is_listening = self.listening.lock().await;
        if *is_listening {
            return Ok(());
        }
        let (directory, name) = (self.directory.clone(), self.session.to_string());
        let bind = move || Listener::bind(&SocketDirectory::open(&directory)?, &name);
        let bound = tokio::task::spawn_blocking(bind).await;
        let listener = bound.map_err(|error| SocketError::Io(std::io::Error::other(error)))??;
        let (processes, closing) = (Arc::clone(self), self.closing.clone());
        shared.work.spawn(async move {
            let serve = |connection| {
                let processes = Arc::clone(&processes);
                async move {
                    if let Err(error) = processes.greet(connection).await {
                        tracing::debug!(%error, "a caller of the team's socket was given up");
                    }
                }
            };
            tokio::select! {
                biased;
                () = closing.cancelled() => {}
                never = listener.serve(LIMITS, serve) => match never {},
            }
        });
        *is_listening = true;
        Ok(())
    }

    /// Lets a caller in that has the ticket of a member. Without one it learns nothing.
    async fn greet(&self, mut connection: Connection) -> Result<(), FrameError> {
        let hello = connection.reader.read(GREETING).await?;
        let Some(FromMember::Hello { ticket, becomes }) = hello else { return Ok(()) };
        if becomes {
            let execution =
                self.state.lock().expected.get_mut(&ticket).and_then(|it| it.execution.take());
            if let Some(execution) = execution {
                let frame = ToMember::Execute(execution.into());
                connection.writer.write(&frame, GREETING.for_one).await?;
            }
            return Ok(());
        }
        let Some(expected) = self.state.lock().expected.remove(&ticket) else { return Ok(()) };
        let welcome = ToMember::Welcome(expected.welcome);
        connection.writer.write(&welcome, GREETING.for_one).await?;
        // The process may have ended meanwhile.
        let _ = expected.arrival.send(connection);
        Ok(())
    }

    /// The process of a member that rests, for its next run. One that began with other flags than the lead has now is
    /// ended: another one begins with those.
    pub(crate) async fn resume(&self, agent: &AgentId) -> Option<MemberLink> {
        let link = self.take(agent)?;
        if link.inherited == (self.inherited)() {
            return Some(link);
        }
        link.end().await;
        None
    }

    fn take(&self, agent: &AgentId) -> Option<MemberLink> {
        self.state.lock().links.remove(agent)
    }

    /// Keeps the process of a member that rests.
    pub(crate) fn keep(&self, agent: &AgentId, link: MemberLink) {
        if self.closing.is_cancelled() {
            return;
        }
        self.state.lock().links.insert(agent.clone(), link);
    }

    /// The place of a member that has or had a process.
    pub(crate) fn place(&self, agent: &AgentId) -> Option<MemberPlace> {
        self.state.lock().places.get(agent).cloned()
    }

    /// Ends the process of a member that has left the team.
    pub(crate) async fn dismiss(&self, agent: &AgentId) {
        if let Some(link) = self.take(agent) {
            link.end().await;
        }
    }

    fn command(
        &self,
        spec: &AgentSpec,
        mode: String,
        ticket: String,
    ) -> Result<MemberCommand, MemberProcessError> {
        let name = spec.name.as_deref().and_then(|name| name.parse::<MemberName>().ok());
        let (Some(name), Some(team)) = (name, &spec.team) else {
            return Err(MemberProcessError::NoMember);
        };
        Ok(MemberCommand {
            name,
            team: team.name.clone(),
            color: spec.color.clone(),
            agent_type: spec.agent_type.clone(),
            session: self.session,
            plan_mode_required: team.must_plan,
            permission_mode: mode,
            // The agent itself works where its record says.
            cwd: self.cwd.clone(),
            ticket,
        })
    }

    /// Ends all processes: the session ends.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let links: Vec<MemberLink> =
            self.state.lock().links.drain().map(|(_, link)| link).collect();
        join_all(links.into_iter().map(MemberLink::end)).await;
    }
}

/// Forgets a process that does not come any more when it is dropped.
struct ExpectationGuard<'a> {
    processes: &'a MemberProcesses,
    ticket: String,
}

impl Drop for ExpectationGuard<'_> {
    fn drop(&mut self) {
        self.processes.state.lock().expected.remove(&self.ticket);
    }
}
