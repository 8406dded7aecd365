//! HTTP to a server of the current protocol, with bodies of bounded size.
//!
//! The SDK's own client reads a whole body into memory, whatever its size, and drops an event that it cannot parse,
//! which leaves its call waiting. Here a request always gets an answer, if need be an error.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sdk_sse_stream::{Error as SseError, Sse, SseStream};

use super::message::{self, MOST_MESSAGE};
use super::sse::Measure;

pub(super) type Failed = StreamableHttpError<reqwest::Error>;
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

const SESSION: &str = "mcp-session-id";
/// The headers that the transport itself sets.
const RESERVED: &[&str] = &["accept", SESSION, "last-event-id"];
/// The bytes of an error's body that are read.
const MOST_ERROR: usize = 64 * 1024;
/// The bytes of it that are shown.
const EXCERPT: usize = 500;

#[derive(Clone, Debug)]
pub(crate) struct BoundedHttp(Client);

impl BoundedHttp {
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }
}

impl StreamableHttpClient for BoundedHttp {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session_id.is_some();
        let mut request =
            self.0.post(uri.as_ref()).header(ACCEPT, "text/event-stream, application/json");
        if let Some(token) = auth_token {
            request = request.bearer_auth(token);
        }
        for (name, value) in custom_headers {
            if RESERVED.contains(&name.as_str()) {
                return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(session) = session_id {
            request = request.header(SESSION, session.as_ref());
        }
        let body = serde_json::to_vec(&message)?;
        let response = request.header(CONTENT_TYPE, "application/json").body(body).send().await?;
        answer(&message, has_session, response).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        self.0.delete_session(uri, session_id, auth_token, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_token: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failed> {
        // The SDK limits the events of a stream, and reads only streams here.
        let events =
            self.0.get_stream(uri, session_id, last_event_id, auth_token, custom_headers).await?;
        Ok(events.map_ok(readable).boxed())
    }
}

/// Interprets a response to a posted message.
async fn answer(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response,
) -> Result<StreamableHttpPostResponse, Failed> {
    let status = response.status();
    if let Some(challenge) = challenge(status, response.headers()) {
        return Err(challenge);
    }
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status == StatusCode::NOT_FOUND && has_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let id = asked(message);
    if !status.is_success() {
        return refused(message, has_session, response).await;
    }
    let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let session = text(SESSION).map(str::to_owned);
    let kind = text(CONTENT_TYPE.as_str()).unwrap_or_default().to_ascii_lowercase();
    if kind.starts_with("text/event-stream") {
        return Ok(StreamableHttpPostResponse::Sse(events(response, id), session));
    }
    if kind.starts_with("application/json") {
        let (body, is_whole) = read_body(response, MOST_MESSAGE).await?;
        let problem = format!("it has more than {MOST_MESSAGE} bytes");
        let parsed = if is_whole { message::parse(&body) } else { None };
        return match (parsed, id) {
            (Some(parsed), _) => Ok(StreamableHttpPostResponse::Json(parsed, session)),
            (None, Some(id)) if !is_whole => {
                Ok(StreamableHttpPostResponse::Json(message::refusal(id, &problem), session))
            }
            (None, Some(_)) => Err(unexpected(format!("no message: {}", excerpt(&body)))),
            // A post without a request needs no answer.
            (None, None) => Ok(StreamableHttpPostResponse::Accepted),
        };
    }
    // Some servers acknowledge with an empty success without a type.
    if id.is_none() && response.content_length() == Some(0) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    Err(StreamableHttpError::UnexpectedContentType(Some(kind).filter(|kind| !kind.is_empty())))
}

/// The request that waits for an answer.
fn asked(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// The error of a server that demands authorization.
fn challenge(status: StatusCode, headers: &HeaderMap) -> Option<Failed> {
    let header = headers.get(WWW_AUTHENTICATE)?.to_str().unwrap_or_default().to_owned();
    match status {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(header)))
        }
        StatusCode::FORBIDDEN => {
            let scope = scope(&header);
            let error = InsufficientScopeError::new(header, scope);
            Some(StreamableHttpError::InsufficientScope(error))
        }
        _ => None,
    }
}

/// The scope that a challenge names.
fn scope(challenge: &str) -> Option<String> {
    let at = challenge.to_ascii_lowercase().find("scope=")? + "scope=".len();
    let value = challenge.get(at..)?;
    let scope = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split([',', ';', ' ']).next()?,
    };
    (!scope.is_empty()).then(|| scope.to_owned())
}

/// Interprets a refusal: an error of the protocol, a server that does not know a question, or neither.
async fn refused(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response,
) -> Result<StreamableHttpPostResponse, Failed> {
    let status = response.status();
    let body = read_body(response, MOST_ERROR).await.map(|(body, _)| body).unwrap_or_default();
    let is_auth = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let said = serde_json::from_slice::<ServerJsonRpcMessage>(&body);
    let said = said.ok().filter(|said| matches!(said, ServerJsonRpcMessage::Error(_)));
    if let ClientJsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && !has_session
        && !is_auth
    {
        let error = match said {
            Some(ServerJsonRpcMessage::Error(error)) => error.error,
            _ => ErrorData::invalid_request(format!("HTTP {status}: {}", excerpt(&body)), None),
        };
        let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(error, None));
    }
    match said {
        Some(said) if !is_auth => Ok(StreamableHttpPostResponse::Json(said, None)),
        _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
            Err(HttpStatusError::new(status.as_u16(), None).into())
        }
        _ => Err(unexpected(format!("HTTP {status}: {}", excerpt(&body)))),
    }
}

fn unexpected(text: String) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text))
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(EXCERPT).collect()
}

/// Reads a body up to a size, decompressed; returns whether it was complete.
pub(crate) async fn read_body(
    mut response: Response,
    most: usize,
) -> Result<(Vec<u8>, bool), reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > most {
            return Ok((body, false));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, true))
}

/// The events of an answer. One that is too large becomes an error for the request, and ends the stream.
fn events(response: Response, id: Option<RequestId>) -> Events {
    let mut measure = Measure::default();
    let bytes = response
        .bytes_stream()
        .map_err(io::Error::other)
        .and_then(move |chunk| std::future::ready(measure.add(&chunk).map(|()| chunk)));
    let events = SseStream::from_bytes_stream(bytes).map_ok(readable);
    stream::unfold((events.boxed(), id), |(mut events, mut id)| async move {
        let event = match events.next().await? {
            Err(SseError::Body(error)) if error.to_string() == Measure::TOO_LARGE => {
                events = stream::empty().boxed();
                let problem = format!("it has more than {MOST_MESSAGE} bytes");
                let refusal = message::refusal(id.take()?, &problem);
                Ok(Sse::default().data(serde_json::to_string(&refusal).unwrap_or_default()))
            }
            event => event,
        };
        Some((event, (events, id)))
    })
    .boxed()
}

/// The event, or in its place the error for the call that it answers.
fn readable(mut event: Sse) -> Sse {
    let Some(data) = event.data.as_deref().filter(|data| !data.trim().is_empty()) else {
        return event;
    };
    if serde_json::from_str::<ServerJsonRpcMessage>(data).is_err()
        && let Some(refusal) = message::parse(data.as_bytes())
    {
        event.data = serde_json::to_string(&refusal).ok();
    }
    event
}
