//! All connections of a session, and everything that lives because of them.

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

/// What a pool is made of.
pub struct PoolOptions {
    /// Every server program runs below one of these.
    pub guard: GuardProgram,
    /// The environment of server programs; limits are read from it too.
    pub env: Arc<Env>,
    /// Where server programs stand.
    pub cwd: PathBuf,
    /// The directories that servers may know about.
    pub roots: Vec<PathBuf>,
    /// Where results that are too large are kept; private to the session.
    pub output_dir: PathBuf,
    /// The file with OAuth tokens. Without one the user is logged in nowhere.
    pub credentials: Option<PathBuf>,
    /// The version that servers are told.
    pub client_version: String,
    pub elicitor: Arc<dyn Elicitor>,
    /// Lets servers use a model. `None` refuses them.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// The way to servers that live in the host.
    pub sdk: Option<Arc<dyn SdkChannel>>,
    /// Says before each start whether a server may run. `None` lets all run.
    pub judge: Option<ServerJudge>,
}

/// Says whether a server may run, and if not, why: files that it runs may have changed since it was read.
pub type ServerJudge = Arc<dyn Fn(&McpServer) -> Result<(), Unaccepted> + Send + Sync>;

/// What all connections of a pool have in common.
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
    /// Made when the first remote server is reached: it costs time that most sessions need not pay.
    http: OnceLock<reqwest::Client>,
}

impl Settings {
    /// Whether a server may run now, and if not, why.
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
            // A redirect to another place would carry the headers there.
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

/// Owns every connection. Dropping it closes them all, process groups and all.
pub struct Pool {
    settings: Arc<Settings>,
    /// Connections that are shared, by the fingerprint of how the server is reached.
    shared: Mutex<HashMap<blake3::Hash, Arc<Link>>>,
    /// The tasks that keep connections. Each ends when its token is cancelled.
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

    /// Whether a server may run now, and if not, why.
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
