//! Members in panes of tmux: in the window of the lead, or outside of tmux on a server of the run's own.
//!
//! A pane only shows its member. Nothing is typed into it: tmux executes a program with its arguments, and that becomes
//! the member.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::Duration;

use centurion_sandbox::awaitable;
use centurion_team::{
    BackEnd, BackEndError, BackEndFuture, Execution, MemberCommand, MemberPlace, MemberProcess,
    PanePlace,
};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;
use tokio::process::Command;
use tokio::time::timeout;

use super::TICKET;
use super::flags::{Start, member_args};
use super::pane::ARGUMENT;

/// The longest wait for an answer of tmux.
const PATIENCE: Duration = Duration::from_secs(10);
/// The session and the window on a server of the run's own.
const TEAM: &str = "team";
const MEMBERS: &str = "members";
/// The facts about a pane that tmux made. No name of a session has a colon.
const FORMAT: &str = "#{pane_id} #{pane_pid} #{session_name}:#{window_name}";

/// Starts members in panes.
pub(crate) struct TmuxBackEnd {
    start: Start,
    /// The pane of the lead, if it is in one.
    own_pane: Option<String>,
    /// The name of the server outside of tmux.
    server: String,
    sockets: PathBuf,
    /// Held while a pane is made: the first one makes the session.
    making: tokio::sync::Mutex<Weak<OwnServer>>,
}

/// A server of the run's own. It ends with its last pane, and leaves its socket behind, which goes when this is dropped.
struct OwnServer(PathBuf);

impl Drop for OwnServer {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, "the socket of a server could not be removed");
        }
    }
}

impl TmuxBackEnd {
    pub(crate) fn new(start: Start, own_pane: Option<&str>, sockets: PathBuf) -> Self {
        Self {
            start,
            own_pane: own_pane.map(str::to_owned),
            server: format!("centurion-{}", std::process::id()),
            sockets,
            making: tokio::sync::Mutex::default(),
        }
    }

    /// Runs a command of tmux; gives what it prints.
    async fn tmux(&self, args: &[OsString]) -> Result<String, BackEndError> {
        let mut command = Command::new("tmux");
        if self.own_pane.is_none() {
            // A server of its own reads no configuration: what is set there is for people's sessions.
            command.args(["-L", &self.server, "-f", "/dev/null"]).env_remove("TMUX");
        }
        command.args(args.iter().map(plain)).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(PATIENCE, command.output()).await.map_err(|_| BackEndError::Late)?;
        let output =
            output.map_err(|source| BackEndError::Start { program: "tmux".to_owned(), source })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(BackEndError::Tmux(said));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// The ways to make a pane, in the order in which they are tried.
    fn ways(&self) -> Vec<Vec<&str>> {
        match &self.own_pane {
            Some(own) => vec![
                vec!["split-window", "-d", "-h", "-t", own],
                vec!["new-window", "-d", "-t", own, "-a", "-n", MEMBERS],
            ],
            None => vec![
                vec!["split-window", "-d", "-t", "=team:members"],
                vec!["new-window", "-d", "-t", "=team:", "-n", MEMBERS],
                vec!["new-session", "-d", "-s", TEAM, "-n", MEMBERS, "-x", "200", "-y", "50"],
            ],
        }
    }

    /// The server of the run's own, which is there as long as one of its panes.
    async fn own_server(&self, known: &mut Weak<OwnServer>) -> Option<Arc<OwnServer>> {
        if let Some(server) = known.upgrade() {
            return Some(server);
        }
        let asked = ["display-message", "-p", "#{socket_path}"].map(OsString::from);
        let server = Arc::new(OwnServer(self.tmux(&asked).await.ok()?.into()));
        *known = Arc::downgrade(&server);
        Some(server)
    }

    async fn open(&self, member: &MemberCommand) -> Result<Pane, BackEndError> {
        let mut server = self.making.lock().await;
        let program: [OsString; 5] = [
            self.start.program.clone().into_os_string(),
            ARGUMENT.into(),
            self.sockets.clone().into_os_string(),
            member.session.to_string().into(),
            member.ticket.clone().into(),
        ];
        let mut made = Err(BackEndError::Late);
        for way in self.ways() {
            let words = way.into_iter().chain(["-P", "-F", FORMAT, "--"]).map(OsString::from);
            let words: Vec<OsString> = words.chain(program.iter().cloned()).collect();
            made = self.tmux(&words).await;
            // A server that hangs makes what it was asked for later: asked twice, it would make two.
            if matches!(made, Ok(_) | Err(BackEndError::Late)) {
                break;
            }
        }
        let told = made?;
        let mut pane = Pane::told(&told).ok_or_else(|| BackEndError::Tmux(told.clone()))?;
        if self.own_pane.is_none() {
            pane.server = self.own_server(&mut server).await;
        }
        let place = pane.place.pane.as_ref().map(|pane| pane.id.clone()).unwrap_or_default();
        let looks: [&[&str]; 3] = [
            // A person may keep dead panes; one whose member has ended shows nothing any more.
            &["set-option", "-p", "-t", &place, "remain-on-exit", "off"],
            &["select-layout", "-t", &place, "tiled"],
            &["select-pane", "-t", &place, "-T", member.name.as_str()],
        ];
        for look in looks {
            let words: Vec<OsString> = look.iter().map(OsString::from).collect();
            // Its looks decide nothing.
            match self.tmux(&words).await {
                Ok(_) => {}
                Err(BackEndError::Late) => break,
                Err(error) => tracing::debug!(%error, "a pane could not be arranged"),
            }
        }
        Ok(pane)
    }
}

/// A word that tmux takes as it is: a semicolon at its end would end the command.
fn plain(word: &OsString) -> OsString {
    match word.as_bytes().split_last() {
        Some((b';', rest)) => OsString::from_vec([rest, br"\;"].concat()),
        _ => word.clone(),
    }
}

impl BackEnd for TmuxBackEnd {
    fn start<'a>(
        &'a self,
        member: &'a MemberCommand,
    ) -> BackEndFuture<'a, Result<Box<dyn MemberProcess>, BackEndError>> {
        Box::pin(async move {
            tracing::debug!(command = self.start.shown(member), "a member's pane is made");
            Ok(Box::new(self.open(member).await?) as Box<dyn MemberProcess>)
        })
    }

    fn execution(&self, member: &MemberCommand) -> Option<Execution> {
        let ticket = (OsString::from(TICKET), OsString::from(&member.ticket));
        Some(Execution {
            program: self.start.program.clone().into_os_string(),
            args: member_args(member),
            environment: std::env::vars_os().chain([ticket]).collect(),
            cwd: member.cwd.clone(),
        })
    }
}

/// The pane of a member. Dropping it ends the member, and tmux closes the pane.
struct Pane {
    place: MemberPlace,
    /// The process in the pane, which no other one can take for it.
    process: Option<AsyncFd<OwnedFd>>,
    server: Option<Arc<OwnServer>>,
}

impl Pane {
    /// The pane that tmux tells of.
    fn told(text: &str) -> Option<Self> {
        let mut fields = text.splitn(3, ' ');
        let (id, pid) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
        let (session, window) = fields.next()?.split_once(':')?;
        let pid = Pid::from_raw(pid)?;
        let pane = Some(PanePlace { session: session.to_owned(), window: window.to_owned(), id });
        // It may have ended by now.
        let process = pidfd_open(pid, PidfdFlags::empty()).ok();
        let process = process.and_then(|it| awaitable(it).ok());
        Some(Self { place: MemberPlace { back_end: "tmux", pane }, process, server: None })
    }

    fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            // One that has ended needs none.
            let _ = pidfd_send_signal(process.get_ref(), signal);
        }
    }
}

impl MemberProcess for Pane {
    fn place(&self) -> MemberPlace {
        self.place.clone()
    }

    fn ended(&mut self) -> BackEndFuture<'_, String> {
        Box::pin(async move {
            if let Some(process) = &self.process
                && let Err(error) = process.readable().await
            {
                tracing::warn!(%error, "the end of a pane cannot be seen");
            }
            "its pane was closed, or the process in it ended".to_owned()
        })
    }

    fn stop(&mut self) -> BackEndFuture<'_, ()> {
        Box::pin(async move {
            self.signal(Signal::TERM);
            if timeout(Duration::from_secs(1), self.ended()).await.is_err() {
                self.signal(Signal::KILL);
            }
        })
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
