//! Login to a server: a person agrees in a browser, and the answer returns to a port of ours.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use centurion_config::mcp::{McpRemote, McpServer, McpTransport};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use rmcp::transport::auth::{AuthError, AuthorizationRequest, AuthorizationSession};
use serde_json::json;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::store::TokenStore;
use crate::transport::failure::chain;

/// The time that a person may take.
const PATIENCE: Duration = Duration::from_mins(10);
/// The most bytes of a browser's request head.
const MOST_HEAD: usize = 16 * 1024;

#[derive(Debug, Error)]
pub enum LoginError {
    #[error("{0} is not a remote server, so there is nothing to log in to")]
    NotRemote(String),
    #[error("no port could be opened for the answer of the browser")]
    Port(#[source] io::Error),
    #[error("the authorization failed: {}", chain(.0))]
    Auth(AuthError),
    #[error("the authorization was refused: {0}")]
    Refused(String),
    #[error("the user did not agree within {} minutes", PATIENCE.as_secs() / 60)]
    NotAgreed,
    #[error("the tokens could not be changed")]
    Tokens(#[source] io::Error),
}

/// Logs in to a server and stores the tokens in the file `credentials`.
///
/// `client_secret` belongs to a client id of the configuration that was registered by hand. `open_url` receives the
/// page where a person agrees.
pub async fn login(
    server: &McpServer,
    credentials: &Path,
    client_secret: Option<&str>,
    open_url: impl FnOnce(&str),
) -> Result<(), LoginError> {
    let remote = remote(server)?;
    let oauth = remote.oauth.clone().unwrap_or_default();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, oauth.callback_port.unwrap_or(0)))
        .await
        .map_err(LoginError::Port)?;
    let port = listener.local_addr().map_err(LoginError::Port)?.port();
    let redirect = format!("http://localhost:{port}/callback");

    let store = TokenStore::new(credentials, &remote.url);
    let mut scopes = store.wanted();
    scopes.extend(
        oauth.scopes.into_iter().filter(|scope| !scopes.contains(scope)).collect::<Vec<_>>(),
    );
    let mut manager = super::manager(remote, store.clone()).await.map_err(LoginError::Auth)?;
    let challenge = challenge(remote).await;
    if !super::names_metadata(remote) {
        let found = super::metadata(&manager, remote, challenge.as_deref()).await;
        manager.set_metadata(found.map_err(LoginError::Auth)?);
    }
    let mut request = AuthorizationRequest::new(&redirect)
        .with_client_name("Centurion")
        .with_scopes(scopes)
        .with_initial_scope_selection();
    request = match oauth.client_id {
        // An authorization server that does not read such documents has the client register.
        Some(document) if is_document(&document) => request.with_client_metadata_url(document),
        Some(client) => request.with_preregistered_client(client),
        None => request,
    };
    if let Some(secret) = client_secret {
        request = request.with_client_secret(secret);
    }
    let session = AuthorizationSession::new(manager, request)
        .await
        .map_err(|(_, error)| LoginError::Auth(error))?;

    let page = session.get_authorization_url();
    let state = Url::parse(page).ok().and_then(|page| parameter(&page, "state"));
    open_url(page);
    let answer = tokio::time::timeout(PATIENCE, wait_for_answer(&listener, port, state.as_deref()))
        .await
        .map_err(|_| LoginError::NotAgreed)??;
    session.handle_callback_url(answer.as_str()).await.map_err(LoginError::Auth)?;
    store.conclude(client_secret).map_err(LoginError::Tokens)
}

/// Tells whether a client id is the address of a document that describes the client.
fn is_document(client: &str) -> bool {
    Url::parse(client).is_ok_and(|url| url.scheme() == "https" && url.path() != "/")
}

/// Deletes the tokens of a server; returns whether there were any.
pub fn logout(server: &McpServer, credentials: &Path) -> Result<bool, LoginError> {
    TokenStore::new(credentials, &remote(server)?.url).forget().map_err(LoginError::Tokens)
}

pub(super) fn remote(server: &McpServer) -> Result<&McpRemote, LoginError> {
    match &server.transport {
        McpTransport::Http(remote) | McpTransport::Sse(remote) => Ok(remote),
        McpTransport::Stdio { .. } | McpTransport::Sdk { .. } => {
            Err(LoginError::NotRemote(server.name.clone()))
        }
    }
}

/// The server's challenge to an unknown client: the address of the login, and the scopes.
async fn challenge(remote: &McpRemote) -> Option<String> {
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "ping" });
    let request = reqwest::Client::new()
        .post(&remote.url)
        .timeout(Duration::from_secs(30))
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .body(body.to_string());
    let response = request.send().await.ok()?;
    if response.status() != StatusCode::UNAUTHORIZED {
        return None;
    }
    Some(response.headers().get(WWW_AUTHENTICATE)?.to_str().ok()?.to_owned())
}

/// Waits for the browser to return. Rejects every other request at the port.
async fn wait_for_answer(
    listener: &TcpListener,
    port: u16,
    state: Option<&str>,
) -> Result<Url, LoginError> {
    loop {
        let (mut stream, _) = listener.accept().await.map_err(LoginError::Port)?;
        let target = tokio::time::timeout(Duration::from_secs(10), target(&mut stream)).await;
        let Ok(Some(target)) = target else { continue };
        let answer = Url::parse(&format!("http://localhost:{port}{target}")).ok();
        let Some(answer) = answer.filter(|answer| {
            answer.path() == "/callback" && parameter(answer, "state").as_deref() == state
        }) else {
            reply(&mut stream, "404 Not Found", "There is nothing here.").await;
            continue;
        };
        if let Some(error) = parameter(&answer, "error") {
            let why = parameter(&answer, "error_description").unwrap_or(error);
            reply(&mut stream, "200 OK", "The login was refused. You can close this page.").await;
            return Err(LoginError::Refused(why));
        }
        reply(&mut stream, "200 OK", "You are logged in. You can close this page.").await;
        return Ok(answer);
    }
}

/// The path and query of a browser's request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MOST_HEAD {
        match stream.read(&mut buffer).await.ok()? {
            0 => return None,
            count => head.extend_from_slice(buffer.get(..count)?),
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next()? == "GET").then(|| words.next().map(str::to_owned))?
}

async fn reply(stream: &mut TcpStream, status: &str, text: &str) {
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{text}",
        text.len()
    );
    // The browser's page is a courtesy.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}
