//! Opens a connection: starts or reaches the server, makes the handshake, and reads its offers.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::{McpRemote, McpServer, McpTransport};
use parking_lot::Mutex;
use reqwest::header::HeaderMap;
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ServerCapabilities, SubscriptionFilter};
use rmcp::service::{
    ClientLifecycleMode, RunningService, Subscription, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::catalog::{self, Catalog, ListKind, ServerInfo};
use crate::client::Client;
use crate::link::Live;
use crate::name::cut;
use crate::pool::Settings;
use crate::process::ServerProcess;
use crate::transport::failure::{self, Failure};
use crate::transport::{
    AnyTransport, BoundedHttp, GivenUp, HandshakeNotes, HttpCaller, LAST_CHANCE, LineTransport,
    PATIENCE, Pipe, Probe, SdkTransport, SseTransport, ThrottledTransport, WatchedTransport,
};
use crate::{auth, headers};

/// The most bytes of instructions; longer ones are cut.
const MOST_INSTRUCTIONS: usize = 2_048;

/// The most bytes of a server's name and version; longer ones are cut.
const MOST_NAME: usize = 200;

/// An open connection. Dropping it disconnects the server and ends its process.
pub(crate) struct Session {
    pub(crate) live: Live,
    /// Cancelled as soon as nothing more can come from the server.
    pub(crate) ended: CancellationToken,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) info: ServerInfo,
    pub(crate) instructions: Option<String>,
    pub(crate) catalog: Catalog,
    /// Newer servers report changes only to clients that subscribe.
    pub(crate) subscription: Option<Subscription>,
    service: RunningService<RoleClient, Arc<Client>>,
    process: Option<ServerProcess>,
    given_up: GivenUp,
    _gone: DropGuard,
}

impl Session {
    /// The reason of the server's end.
    pub(crate) async fn why_ended(&mut self) -> String {
        if let Some(reason) = self.given_up.reason() {
            return reason;
        }
        match &mut self.process {
            Some(process) => process.why_ended().await,
            None => "the connection broke".to_owned(),
        }
    }

    /// Tells all callers that wait for this server that it is gone, with the reason. Only the first reason counts.
    pub(crate) fn give_up(&self, reason: &str) {
        let mut told = self.live.reason.lock();
        if told.is_empty() {
            reason.clone_into(&mut told);
        }
        drop(told);
        self.live.gone.cancel();
    }

    /// Closes the connection in good order; bounded in time, whatever the server does.
    pub(crate) async fn close(mut self) {
        const GOODBYE: Duration = Duration::from_secs(2);
        self.give_up("the connection was closed");
        drop(self.subscription.take());
        let _ = self.service.close_with_timeout(GOODBYE).await;
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
    }
}

/// Whether the client first asks a server which generation of the protocol it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greeting {
    Ask,
    /// It is known to be a new one.
    New,
    Plain,
}

impl Greeting {
    fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::Ask => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Self::New => {
                ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
            }
            Self::Plain => ClientLifecycleMode::Initialize,
        }
    }
}

/// Opens a connection, within the time limit for that.
pub(crate) async fn open(
    settings: &Settings,
    server: &McpServer,
    greeting: Greeting,
) -> Result<Session, Failure> {
    let limit = settings.limits.connect;
    settings.judge(server).map_err(|reason| Failure::Lasting(reason.to_string()))?;
    match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            let program = Program { command, args, env };
            program.connect(settings, server, greeting).await
        }
        McpTransport::Sdk { name } => {
            let Some(channel) = &settings.sdk else {
                return Err(Failure::Lasting("there is no host that has this server".to_owned()));
            };
            let transport = AnyTransport::new(SdkTransport::new(Arc::clone(channel), name));
            timeout(limit, greet(settings, server, transport, Greeting::Plain))
                .await
                .unwrap_or_else(|_| Err(Failure::Lasting(late(settings))))
        }
        McpTransport::Http(remote) => timeout(limit, open_http(settings, server, remote, greeting))
            .await
            .unwrap_or_else(|_| Err(Failure::Passing(late(settings)))),
        McpTransport::Sse(remote) => timeout(limit, open_sse(settings, server, remote))
            .await
            .unwrap_or_else(|_| Err(Failure::Passing(late(settings)))),
    }
}

/// A server that is a program of this machine.
struct Program<'a> {
    command: &'a str,
    args: &'a [String],
    env: &'a BTreeMap<String, String>,
}

/// The reason that a program cannot be used as a server.
enum NotOpened {
    /// It ended, for this reason.
    Ended(String),
    Failed(Failure),
}

impl NotOpened {
    fn into_failure(self) -> Failure {
        match self {
            Self::Ended(reason) => Failure::Lasting(reason),
            Self::Failed(failure) => failure,
        }
    }
}

impl Program<'_> {
    /// Opens a connection to the program. It is started again only if it ended because of what it was sent.
    async fn connect(
        &self,
        settings: &Settings,
        server: &McpServer,
        greeting: Greeting,
    ) -> Result<Session, Failure> {
        let limit = settings.limits.connect;
        let notes = HandshakeNotes::default();
        let opened = self.open(settings, server, greeting, PATIENCE, &notes).await;
        let next = match &opened {
            // It answered too late that it is a new one, and ended at the handshake for an old one.
            Err(NotOpened::Ended(_)) if notes.answered_late() => (Greeting::New, limit),
            // It is an old one that ends at a question that it does not know.
            Err(NotOpened::Ended(_)) if notes.ended_at_question() && greeting == Greeting::Ask => {
                (Greeting::Plain, PATIENCE)
            }
            _ => return opened.map_err(NotOpened::into_failure),
        };
        tracing::debug!(server = server.name, "a server is started over");
        let notes = HandshakeNotes::default();
        let again = self.open(settings, server, next.0, next.1, &notes).await;
        again.map_err(NotOpened::into_failure)
    }

    /// Starts the program and makes the handshake. `patience` is for the question about its protocol.
    async fn open(
        &self,
        settings: &Settings,
        server: &McpServer,
        greeting: Greeting,
        patience: Duration,
        notes: &HandshakeNotes,
    ) -> Result<Session, NotOpened> {
        let failed = |reason| NotOpened::Failed(Failure::Lasting(reason));
        let Self { command, args, env } = self;
        let started = ServerProcess::start(settings, command, args, env);
        let (mut process, stdout, stdin) =
            started.map_err(|error| failed(format!("{command} could not start: {error}")))?;
        let given_up = GivenUp::default();
        let pipe = Pipe::of(&stdin);
        let lines = LineTransport::new(stdout, stdin, given_up.clone());
        let deadline = Instant::now() + settings.limits.connect;
        let probe = Probe::new(lines, pipe, patience, deadline, notes.clone());
        let mut greeted = pin!(greet(settings, server, AnyTransport::new(probe), greeting));
        let mut in_time = timeout_at(deadline, greeted.as_mut()).await;
        if in_time.is_err() && notes.was_held() {
            // It may be an old program that is silent to what it does not know: it gets the handshake now.
            in_time = timeout(LAST_CHANCE, greeted).await;
        }
        match in_time {
            Ok(Ok(mut session)) => {
                session.process = Some(process);
                session.given_up = given_up;
                Ok(session)
            }
            Ok(Err(Failure::Passing(_))) => Err(NotOpened::Ended(process.why_ended().await)),
            Ok(Err(failure)) => Err(NotOpened::Failed(failure)),
            Err(_) => Err(failed(process.with_last_words(late(settings)))),
        }
    }
}

fn late(settings: &Settings) -> String {
    format!("it was not ready within {:?}", settings.limits.connect)
}

async fn open_http(
    settings: &Settings,
    server: &McpServer,
    remote: &McpRemote,
    greeting: Greeting,
) -> Result<Session, Failure> {
    let headers = headers::collect(settings, &server.name, remote).await?;
    let http = BoundedHttp::new(http(settings)?);
    let caller = match authority(settings, remote).await? {
        Some(manager) => HttpCaller::LoggedIn(AuthClient::new(http, manager)),
        None => HttpCaller::Unknown(http),
    };
    let config =
        StreamableHttpClientTransportConfig::with_uri(remote.url.as_str()).custom_headers(headers);
    let transport = StreamableHttpClientTransport::with_client(caller, config);
    greet(settings, server, AnyTransport::new(transport), greeting).await
}

async fn open_sse(
    settings: &Settings,
    server: &McpServer,
    remote: &McpRemote,
) -> Result<Session, Failure> {
    let headers = headers::collect(settings, &server.name, remote).await?;
    let headers: HeaderMap = headers.into_iter().collect();
    let authority = authority(settings, remote).await?.map(Arc::new);
    let transport = SseTransport::open(http(settings)?, &remote.url, headers, authority)
        .await
        .map_err(|error| failure::of(&error))?;
    greet(settings, server, AnyTransport::new(transport), Greeting::Plain).await
}

fn http(settings: &Settings) -> Result<reqwest::Client, Failure> {
    settings.http().map_err(|error| Failure::Lasting(failure::chain(&error)))
}

/// The manager of the user's tokens, where the user has logged in.
async fn authority(
    settings: &Settings,
    remote: &McpRemote,
) -> Result<Option<rmcp::transport::auth::AuthorizationManager>, Failure> {
    let own = remote.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    match &settings.credentials {
        Some(credentials) if !own => auth::manager_with_tokens(remote, credentials)
            .await
            .map_err(|error| failure::of_auth(&error)),
        _ => Ok(None),
    }
}

/// Makes the handshake, and reads all lists for the first time.
async fn greet(
    settings: &Settings,
    server: &McpServer,
    transport: AnyTransport,
    greeting: Greeting,
) -> Result<Session, Failure> {
    let client = Arc::new(Client::new(server.name.clone(), Arc::clone(&settings.manners)));
    let ended = CancellationToken::new();
    let transport = WatchedTransport::new(ThrottledTransport::new(transport), ended.clone());
    let service = serve_client_with_lifecycle_and_ct(
        Arc::clone(&client),
        transport,
        greeting.lifecycle(),
        CancellationToken::new(),
    )
    .await
    .map_err(|error| failure::of_handshake(&error))?;
    let peer = service.peer().clone();
    let Some(told) = peer.peer_info() else {
        return Err(Failure::Lasting("it did not say what it can do".to_owned()));
    };
    let capabilities = told.capabilities.clone();
    let mut catalog = Catalog::default();
    let parts = [ListKind::Tools, ListKind::Prompts, ListKind::Resources];
    tokio::select! {
        // A list that broke off is empty: check first for the end that broke it.
        biased;
        () = ended.cancelled() => {
            return Err(Failure::Passing("it went away while it told what it offers".to_owned()));
        }
        read = catalog::list(&peer, &capabilities, &server.name, &parts, &mut catalog) => read?,
    }
    let gone = CancellationToken::new();
    let identity = told.server_info.as_ref().filter(|info| !info.name.is_empty());
    Ok(Session {
        subscription: subscribe(&peer, &told.protocol_version, &capabilities).await,
        info: ServerInfo {
            name: identity.map_or_else(|| server.name.clone(), |info| cut(&info.name, MOST_NAME)),
            version: identity.map(|info| cut(&info.version, MOST_NAME)).unwrap_or_default(),
            protocol: told.protocol_version.to_string(),
        },
        instructions: told
            .instructions
            .as_deref()
            .filter(|text| !text.trim().is_empty())
            .map(|text| cut(text, MOST_INSTRUCTIONS)),
        live: Live { peer, client, gone: gone.clone(), reason: Arc::new(Mutex::default()) },
        ended,
        capabilities,
        catalog,
        service,
        process: None,
        given_up: GivenUp::default(),
        _gone: gone.drop_guard(),
    })
}

/// Asks a newer server to report changes, if it can.
pub(crate) async fn subscribe(
    peer: &rmcp::Peer<RoleClient>,
    version: &ProtocolVersion,
    capabilities: &ServerCapabilities,
) -> Option<Subscription> {
    if version.has_initialize() {
        return None;
    }
    let is_on = |flag: Option<Option<bool>>| flag.flatten() == Some(true);
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed =
        is_on(capabilities.tools.as_ref().map(|tools| tools.list_changed)).then_some(true);
    filter.prompts_list_changed =
        is_on(capabilities.prompts.as_ref().map(|prompts| prompts.list_changed)).then_some(true);
    filter.resources_list_changed =
        is_on(capabilities.resources.as_ref().map(|resources| resources.list_changed))
            .then_some(true);
    if filter == SubscriptionFilter::new() {
        return None;
    }
    match peer.listen(filter).await {
        Ok(subscription) => Some(subscription),
        Err(error) => {
            tracing::debug!(%error, "an MCP server does not tell of changes");
            None
        }
    }
}
