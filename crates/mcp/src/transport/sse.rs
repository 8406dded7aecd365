//! The older transport to remote servers: one stream of events from the server, and an address to post to.

use std::future::Future;
use std::io;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::auth::{AuthError, AuthorizationManager};
use sse_stream::{Sse, SseByteStream};
use thiserror::Error;
use url::Url;

use super::message::{self, MOST_MESSAGE};

/// The largest event: a message and its field's name.
const MOST_EVENT: usize = MOST_MESSAGE + 1024;

#[derive(Debug, Error)]
pub(crate) enum SseError {
    #[error("the server asks for authorization")]
    Unauthorized,
    #[error("the authorization failed")]
    Auth(#[source] AuthError),
    #[error("the request failed")]
    Request(#[from] reqwest::Error),
    #[error("the server answered with HTTP {0}")]
    Status(u16),
    #[error("the server gave no stream of events: is it one of the type `http`?")]
    NoEventStream,
    #[error("the stream of events broke off")]
    Stream(#[source] sse_stream::Error),
    #[error("the stream of events ended before it began")]
    Ended,
    #[error("the server wants messages posted to {0}, which is not a place of its own")]
    Endpoint(String),
}

/// The parts of every request.
#[derive(Clone)]
struct Caller {
    http: Client,
    headers: HeaderMap,
    authority: Option<Arc<AuthorizationManager>>,
}

impl Caller {
    async fn send(&self, request: RequestBuilder) -> Result<Response, SseError> {
        let mut request = request.headers(self.headers.clone());
        if let Some(authority) = &self.authority {
            request =
                request.bearer_auth(authority.get_access_token().await.map_err(SseError::Auth)?);
        }
        let response = request.send().await?;
        match response.status() {
            StatusCode::UNAUTHORIZED => Err(SseError::Unauthorized),
            status if status.is_success() => Ok(response),
            status => Err(SseError::Status(status.as_u16())),
        }
    }
}

pub(crate) struct SseTransport {
    caller: Caller,
    endpoint: Url,
    events: BoxStream<'static, Result<Sse, sse_stream::Error>>,
}

impl SseTransport {
    /// Opens the stream and waits for the address to post to.
    pub(crate) async fn open(
        http: Client,
        url: &str,
        headers: HeaderMap,
        authority: Option<Arc<AuthorizationManager>>,
    ) -> Result<Self, SseError> {
        let base = Url::parse(url).map_err(|_| SseError::Endpoint(url.to_owned()))?;
        let caller = Caller { http, headers, authority };
        let request = caller.http.get(base.clone()).header(ACCEPT, "text/event-stream");
        let response = caller.send(request).await?;
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !kind.is_some_and(|kind| kind.starts_with(b"text/event-stream")) {
            return Err(SseError::NoEventStream);
        }
        let mut measure = Measure::default();
        let bytes = response
            .bytes_stream()
            .map_err(io::Error::other)
            .and_then(move |chunk| std::future::ready(measure.add(&chunk).map(|()| chunk)));
        let mut events = SseByteStream::new(bytes).boxed();
        loop {
            let event = events.next().await.ok_or(SseError::Ended)?.map_err(SseError::Stream)?;
            if event.event.as_deref() == Some("endpoint") {
                let place = event.data.unwrap_or_default();
                let endpoint = base
                    .join(place.trim())
                    .ok()
                    .filter(|endpoint| endpoint.origin() == base.origin())
                    .ok_or(SseError::Endpoint(place))?;
                return Ok(Self { caller, endpoint, events });
            }
        }
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = SseError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (caller, endpoint) = (self.caller.clone(), self.endpoint.clone());
        async move {
            let body = serde_json::to_vec(&message).unwrap_or_default();
            let request =
                caller.http.post(endpoint).header(CONTENT_TYPE, "application/json").body(body);
            caller.send(request).await.map(drop)
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(error) => {
                    tracing::debug!(%error, "the event stream of an MCP server broke off");
                    return None;
                }
            };
            if !matches!(event.event.as_deref(), None | Some("message")) {
                continue;
            }
            let data = event.data.unwrap_or_default();
            if let Some(message) = message::parse(data.as_bytes()) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events = futures_util::stream::empty().boxed();
        Ok(())
    }
}

/// Measures the event that is being received.
#[derive(Default)]
pub(super) struct Measure {
    event: usize,
    line: usize,
}

impl Measure {
    pub(super) const TOO_LARGE: &str = "an event is too large";

    pub(super) fn add(&mut self, chunk: &[u8]) -> io::Result<()> {
        for byte in chunk {
            self.event += 1;
            match byte {
                b'\n' if self.line == 0 => self.event = 0,
                b'\n' => self.line = 0,
                b'\r' => {}
                _ => self.line += 1,
            }
            if self.event > MOST_EVENT {
                return Err(io::Error::other(Self::TOO_LARGE));
            }
        }
        Ok(())
    }
}
