//! The reason that a server could not be reached, as text, and whether a retry can help.

use std::error::Error;

use rmcp::service::ClientInitializeError;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::SseError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server demands authorization, or more scopes.
    NeedsAuth { reason: String, scope: Option<String> },
    /// A retry may help.
    Passing(String),
    /// A retry will not help.
    Lasting(String),
}

/// Classifies a failed handshake.
pub(crate) fn of_handshake(error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::TransportError { error, .. } => of(error.error.as_ref()),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_handshake(fallback),
        ClientInitializeError::JsonRpcError(error) => {
            Failure::Lasting(format!("it refused the handshake: {}", error.message))
        }
        ClientInitializeError::ConnectionClosed(_) => {
            Failure::Passing("it closed the connection before it was ready".to_owned())
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
            Failure::Lasting(format!(
                "it speaks only the protocol revisions {}",
                versions.join(", ")
            ))
        }
        // A server may answer anything to a question that it does not know: a plain handshake follows.
        ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ExpectedInitResponse(_) => {
            Failure::Passing("it did not answer the greeting properly".to_owned())
        }
        other => Failure::Lasting(format!("the handshake failed: {other}")),
    }
}

/// Classifies an error of a transport.
pub(crate) fn of(error: &(dyn Error + 'static)) -> Failure {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(error) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            return of_http(error);
        }
        if let Some(error) = current.downcast_ref::<SseError>() {
            return of_sse(error);
        }
        if let Some(error) = current.downcast_ref::<AuthError>() {
            return of_auth(error);
        }
        next = current.source();
    }
    Failure::Passing(chain(error))
}

fn of_http(error: &StreamableHttpError<reqwest::Error>) -> Failure {
    match error {
        StreamableHttpError::AuthRequired(_) => unauthorized(),
        StreamableHttpError::InsufficientScope(error) => {
            let scope = error.required_scope.clone();
            let reason = match &scope {
                Some(scope) => format!("the server asks for the permission {scope}"),
                None => "the server asks for more permissions".to_owned(),
            };
            Failure::NeedsAuth { reason, scope }
        }
        StreamableHttpError::Auth(error) => of_auth(error),
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            unauthorized()
        }
        StreamableHttpError::Client(error) if error.is_builder() => Failure::Lasting(chain(error)),
        StreamableHttpError::Client(error) => Failure::Passing(chain(error)),
        StreamableHttpError::UnexpectedServerResponse(_)
        | StreamableHttpError::UnexpectedContentType(_)
        | StreamableHttpError::Deserialize(_)
        | StreamableHttpError::ReservedHeaderConflict(_)
        | StreamableHttpError::MissingSessionIdInResponse => Failure::Lasting(chain(error)),
        other => Failure::Passing(chain(other)),
    }
}

fn of_sse(error: &SseError) -> Failure {
    match error {
        SseError::Unauthorized => unauthorized(),
        SseError::Auth(error) => of_auth(error),
        SseError::Request(error) if error.is_builder() => Failure::Lasting(chain(error)),
        SseError::Request(_) | SseError::Stream(_) | SseError::Ended => {
            Failure::Passing(chain(error))
        }
        SseError::Status(status) if *status == 429 || *status >= 500 => {
            Failure::Passing(error.to_string())
        }
        SseError::Status(_) | SseError::NoEventStream | SseError::Endpoint(_) => {
            Failure::Lasting(error.to_string())
        }
    }
}

pub(crate) fn of_auth(error: &AuthError) -> Failure {
    match error {
        AuthError::AuthorizationRequired
        | AuthError::TokenExpired
        | AuthError::TokenRefreshRejected(_) => {
            let reason = "the stored authorization is not valid any more".to_owned();
            Failure::NeedsAuth { reason, scope: None }
        }
        other => Failure::Passing(chain(other)),
    }
}

fn unauthorized() -> Failure {
    let reason = "the server asks for authorization".to_owned();
    Failure::NeedsAuth { reason, scope: None }
}

/// An error with all its sources.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let cause = source.to_string();
        // Many errors repeat their sources.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = source.source();
    }
    text
}
