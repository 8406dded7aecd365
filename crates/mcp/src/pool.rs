//! All connections of a session, and their processes.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use centurion_config::mcp::{McpServer, McpTransport};
use centurion_config::trust::Unaccepted;
use centurion_protocol::Env;
use centurion_tools::guard::GuardProgram;
use parking_lot::Mutex;
use reqwest::redirect;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::Connection;
use crate::client::Manners;
use crate::host::{Elicitor, Sampler, SdkChannel};
use crate::limits::Limits;
use crate::link::Link;
use crate::supervisor::Supervisor;

/// The options of a pool.
pub struct PoolOptions {
    /// Every server program runs below one of these.
    pub guard: GuardProgram,
    /// The environment of server programs, and the source of limits.
    pub env: Arc<Env>,
    /// The working directory of server programs.
    pub cwd: PathBuf,
    /// The directories that servers may know about.
    pub roots: Vec<PathBuf>,
    /// The directory for results that are too large; private to the session.
    pub output_dir: PathBuf,
    /// The file with OAuth tokens. Without one the user is logged in nowhere.
    pub credentials: Option<PathBuf>,
    /// The client version that servers see.
    pub client_version: String,
    pub elicitor: Arc<dyn Elicitor>,
    /// Lets servers use a model. `None` refuses such requests.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// The channel to servers inside the host.
    pub sdk: Option<Arc<dyn SdkChannel>>,
    /// Decides before each start whether a server may run. `None` lets all run.
    pub judge: Option<ServerJudge>,
}

/// Decides whether a server may run, and if not, gives the reason: files that it runs may have changed since its
/// definition was read.
pub type ServerJudge = Arc<dyn Fn(&McpServer) -> Result<(), Unaccepted> + Send + Sync>;

/// The settings that all connections of a pool share.
pub(crate) struct Settings {
    pub(crate) guard: GuardProgram,
    env: Arc<Env>,
    pub(crate) cwd: PathBuf,
    pub(crate) output_dir: PathBuf,
    pub(crate) credentials: Option<PathBuf>,
    pub(crate) manners: Arc<Manners>,
    pub(crate) sdk: Option<Arc<dyn SdkChannel>>,
    judge: Option<ServerJudge>,
    pub(crate) limits: Limits,
    /// Made for the first remote server: most sessions need not spend the time.
    http: OnceLock<reqwest::Client>,
}

impl Settings {
    /// Whether a server may run now, and if not, the reason.
    pub(crate) fn judge(&self, server: &McpServer) -> Result<(), Unaccepted> {
        self.judge.as_ref().map_or(Ok(()), |judge| judge(server))
    }

    /// The environment that programs start with.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        self.env.of_programs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    pub(crate) fn http(&self) -> reqwest::Result<reqwest::Client> {
        if let Some(client) = self.http.get() {
            return Ok(client.clone());
        }
        let client = reqwest::Client::builder()
            .user_agent(format!("centurion/{}", self.manners.version))
            .connect_timeout(self.limits.connect)
            // A redirect to another address would carry the headers there.
            .redirect(redirect::Policy::custom(|attempt| {
                let origin = |url: Option<&url::Url>| url.map(url::Url::origin);
                let is_same = origin(attempt.previous().last()) == origin(Some(attempt.url()));
                if is_same && attempt.previous().len() <= 10 {
                    attempt.follow()
                } else {
                    attempt.stop()
                }
            }))
            .build()?;
        Ok(self.http.get_or_init(|| client).clone())
    }
}

/// Owns every connection. Dropping it closes them all, with their process groups.
pub struct Pool {
    settings: Arc<Settings>,
    /// Shared connections, by the fingerprint of the server's transport.
    shared: Mutex<HashMap<blake3::Hash, Arc<Link>>>,
    /// The supervisors of connections. Each ends when its token is cancelled.
    tasks: TaskTracker,
    closing: CancellationToken,
    _close_on_drop: DropGuard,
}

impl Pool {
    pub fn new(options: PoolOptions) -> Arc<Self> {
        let closing = CancellationToken::new();
        let settings = Settings {
            guard: options.guard,
            limits: Limits::new(&options.env),
            env: options.env,
            cwd: options.cwd,
            output_dir: options.output_dir,
            credentials: options.credentials,
            manners: Arc::new(Manners {
                version: options.client_version,
                roots: options.roots,
                elicitor: options.elicitor,
                sampler: options.sampler,
            }),
            sdk: options.sdk,
            judge: options.judge,
            http: OnceLock::new(),
        };
        Arc::new(Self {
            settings: Arc::new(settings),
            shared: Mutex::default(),
            tasks: TaskTracker::new(),
            _close_on_drop: closing.clone().drop_guard(),
            closing,
        })
    }

    /// The connection that all users of the same server share. Only the pool closes it.
    pub fn share(&self, server: McpServer) -> Connection {
        let mut shared = self.shared.lock();
        let link = shared
            .entry(fingerprint(&server.transport))
            .or_insert_with(|| self.start(&server, self.closing.child_token()));
        let link = Arc::clone(link);
        drop(shared);
        Connection::new(server, link, None)
    }

    /// A connection of the caller's own, closed when its last clone is dropped.
    pub fn own(&self, server: McpServer) -> Connection {
        let closing = self.closing.child_token();
        let link = self.start(&server, closing.clone());
        Connection::new(server, link, Some(closing.drop_guard()))
    }

    /// Whether a server may run now, and if not, the reason.
    pub fn judge(&self, server: &McpServer) -> Result<(), Unaccepted> {
        self.settings.judge(server)
    }

    /// Closes every connection and waits until nothing is left of them.
    pub async fn shutdown(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Begins to connect at once, in a task of the pool.
    fn start(&self, server: &McpServer, closing: CancellationToken) -> Arc<Link> {
        let (sender, wishes) = mpsc::channel(4);
        let is_remote = matches!(server.transport, McpTransport::Http(_) | McpTransport::Sse(_));
        let link = Arc::new(Link::new(Arc::clone(&self.settings), is_remote, sender, closing));
        let supervisor = Supervisor::new(Arc::clone(&link), server.clone(), wishes);
        self.tasks.spawn(supervisor.run());
        link
    }
}

/// Two servers with one fingerprint are one server.
fn fingerprint(transport: &McpTransport) -> blake3::Hash {
    blake3::hash(&serde_json::to_vec(transport).unwrap_or_default())
}
