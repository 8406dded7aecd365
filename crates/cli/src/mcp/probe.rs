//! Reaching for servers, for as long as a person waits, to see which of them answer.

use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::{Declared, McpTransport};
use centurion_mcp::{
    Connection, Elicitation, ElicitationAnswer, Elicitor, HostFuture, Pool, PoolOptions, State,
};
use tokio::time::Instant;

use super::ListedServers;
use crate::setup;

/// The longest time that servers may take to answer, unless `MCP_TIMEOUT` says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// A shorter value is a switch or a number, and hiding it would hide words that it is part of.
const SHORTEST_SECRET: usize = 6;

/// A server and the result of the attempt to reach it.
pub(crate) struct ProbedServer {
    pub(crate) declared: Declared,
    /// `None` for a server that does not run here.
    pub(crate) contact: Option<Contact>,
}

/// A server's words about itself.
pub(crate) struct Contact {
    pub(crate) state: State,
    /// Its name, its version and the protocol it speaks.
    pub(crate) about: Option<String>,
    /// The names under which models know its tools.
    pub(crate) tools: Vec<String>,
    pub(crate) prompts: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) problems: Vec<String>,
}

/// Answers no question of a server: there is no person to ask.
struct NoUser;

impl Elicitor for NoUser {
    fn elicit(&self, _: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        Box::pin(std::future::ready(ElicitationAnswer::Cancel))
    }
}

/// Reaches for all servers that run and are wanted, at once.
pub(crate) async fn look(
    servers: &ListedServers,
    is_wanted: impl Fn(&Declared) -> bool,
) -> anyhow::Result<Vec<ProbedServer>> {
    let surroundings = &servers.surroundings;
    let pool = Pool::new(PoolOptions {
        guard: setup::guard()?,
        env: Arc::new(servers.env.clone()),
        cwd: surroundings.cwd.clone(),
        roots: vec![surroundings.cwd.clone()],
        output_dir: surroundings.scratch.clone(),
        credentials: Some(surroundings.dirs.mcp_credentials()),
        client_version: env!("CARGO_PKG_VERSION").to_owned(),
        elicitor: Arc::new(NoUser),
        sampler: None,
        sdk: None,
        // They were judged a moment ago.
        judge: None,
    });
    let wanted = servers.configuration.servers.iter().filter(|declared| is_wanted(declared));
    let connect = |declared: &Declared| {
        let connection = declared.standing.is_active().then(|| pool.share(declared.server.clone()));
        (declared.clone(), connection)
    };
    let started: Vec<(Declared, Option<Connection>)> = wanted.map(connect).collect();
    let deadline = Instant::now() + servers.env.millis("MCP_TIMEOUT").unwrap_or(PATIENCE);
    let mut seen = Vec::with_capacity(started.len());
    for (declared, connection) in started {
        let contact = match connection {
            Some(connection) => {
                Some(contact(&connection, deadline).await.without(&secrets(&declared)))
            }
            None => None,
        };
        seen.push(ProbedServer { declared, contact });
    }
    pool.shutdown().await;
    Ok(seen)
}

/// The texts for a server that may be secrets: a failure may repeat them.
fn secrets(declared: &Declared) -> Vec<String> {
    let (address, values) = match &declared.server.transport {
        McpTransport::Stdio { env, .. } => ("", env),
        McpTransport::Http(remote) | McpTransport::Sse(remote) => {
            (remote.url.as_str(), &remote.headers)
        }
        McpTransport::Sdk { .. } => return Vec::new(),
    };
    let query = address.split_once('?').map(|(_, query)| query.to_owned());
    let user = address.split_once("://").and_then(|(_, rest)| rest.split_once('@'));
    let user = user.map(|(user, _)| user.to_owned()).filter(|user| !user.contains('/'));
    let long = values.values().filter(|value| value.len() >= SHORTEST_SECRET).cloned();
    query.into_iter().chain(user).chain(long).filter(|it| !it.is_empty()).collect()
}

impl Contact {
    /// The same with nothing of these in what went wrong.
    fn without(mut self, secrets: &[String]) -> Self {
        let hide = |text: &mut String| {
            for secret in secrets {
                *text = text.replace(secret.as_str(), "…");
            }
        };
        if let State::Failed { reason } | State::NeedsAuth { reason } = &mut self.state {
            hide(reason);
        }
        self.problems.iter_mut().for_each(hide);
        self
    }
}

async fn contact(connection: &Connection, deadline: Instant) -> Contact {
    let state = connection.ready(deadline.saturating_duration_since(Instant::now())).await;
    let reason = state.reason().map(str::to_owned);
    Contact {
        about: connection
            .server_info()
            .map(|it| format!("{} {} (protocol {})", it.name, it.version, it.protocol)),
        tools: connection.tool_infos().into_iter().map(|tool| tool.name).collect(),
        prompts: connection.prompts().into_iter().map(|prompt| prompt.name).collect(),
        resources: connection.resources().into_iter().map(|resource| resource.uri).collect(),
        problems: connection
            .problems()
            .into_iter()
            .filter(|it| Some(it) != reason.as_ref())
            .collect(),
        state,
    }
}
