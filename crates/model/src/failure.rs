//! Turns a server's or a socket's failure into a [`ModelError`]: the one place that classifies statuses, error objects
//! and messages of all providers.

use std::time::Duration;

use centurion_protocol::World;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde::Deserialize;

use crate::gate::LONGEST_WAIT;
use crate::{ErrorKind, ModelError};

/// The bytes that are shown of a body without a message.
const EXCERPT: usize = 300;

/// The content of an error object, of any provider.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    /// The provider's word for the kind of error.
    pub(crate) kind: String,
    pub(crate) message: String,
    /// A status inside the object, as `OpenRouter` and llama.cpp send it.
    pub(crate) code: Option<u16>,
    pub(crate) request_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    error: Option<serde_json::Value>,
    message: Option<String>,
    detail: Option<serde_json::Value>,
    r#type: Option<String>,
    code: Option<serde_json::Value>,
    request_id: Option<String>,
}

impl ErrorBody {
    /// Parses an error object in any of the forms that servers use; `None` if it is none of them.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let fields: Fields = serde_json::from_slice(body).ok()?;
        let inner = match fields.error {
            // Ollama: {"error":"text"}
            Some(serde_json::Value::String(message)) => {
                Fields { message: Some(message), ..Fields::default() }
            }
            // Anthropic, OpenAI, OpenRouter, llama.cpp: {"error":{…}}
            Some(object) => serde_json::from_value(object).ok()?,
            // vLLM: the object is the error
            None => Fields {
                message: fields.message,
                r#type: fields.r#type,
                code: fields.code,
                ..Fields::default()
            },
        };
        let detail = || {
            fields
                .detail
                .map(|detail| detail.as_str().map_or_else(|| detail.to_string(), str::to_owned))
        };
        let code = inner.code.as_ref();
        Some(Self {
            message: inner.message.or_else(detail)?,
            kind: inner
                .r#type
                .or_else(|| code.and_then(serde_json::Value::as_str).map(str::to_owned))
                .unwrap_or_default(),
            code: code
                .and_then(serde_json::Value::as_u64)
                .and_then(|code| u16::try_from(code).ok()),
            request_id: fields.request_id,
        })
    }

    /// The error for an error object in the middle of a stream.
    pub(crate) fn in_stream(self) -> ModelError {
        let kind = self.code.and_then(kind_of_status).unwrap_or(ErrorKind::Server);
        let kind = refine(kind, &self.kind, &self.message);
        let mut error = ModelError::new(kind, self.describe(None));
        error.status = self.code;
        error
    }

    fn describe(&self, status: Option<u16>) -> String {
        let status = status.map(|status| format!("{status} ")).unwrap_or_default();
        let kind = if self.kind.is_empty() { String::new() } else { format!("{}: ", self.kind) };
        let id = self.request_id.as_ref().map(|id| format!(" (request {id})")).unwrap_or_default();
        format!("{status}{kind}{}{id}", self.message.trim())
    }
}

/// The error for a response without success.
pub(crate) fn from_response(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    world: &dyn World,
) -> ModelError {
    let mut complaint = ErrorBody::parse(body).unwrap_or_else(|| ErrorBody {
        message: excerpt(status, headers, body),
        ..ErrorBody::default()
    });
    complaint.request_id = complaint.request_id.or_else(|| request_id(headers));
    let kind = kind_of_status(status.as_u16()).unwrap_or(ErrorKind::InvalidRequest);
    let kind = refine(kind, &complaint.kind, &complaint.message);
    ModelError {
        status: Some(status.as_u16()),
        retry_after: retry_after(headers, world),
        ..ModelError::new(kind, complaint.describe(Some(status.as_u16())))
    }
}

/// The error of a request without an answer, or with an incomplete one.
pub(crate) fn from_transport(error: &reqwest::Error, doing: &str) -> ModelError {
    let kind = if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Network };
    // reqwest's own message names the URL, which may contain a secret; the cause tells the failure.
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let cause = if std::ptr::eq(cause, error as &dyn std::error::Error) {
        "the exchange failed".to_owned()
    } else {
        cause.to_string()
    };
    ModelError::new(kind, format!("{doing}: {cause}"))
}

pub(crate) fn silent(doing: &str, limit: Duration) -> ModelError {
    let text = format!("{doing}: nothing was heard for {} ms", limit.as_millis());
    ModelError::new(ErrorKind::Timeout, text)
}

pub(crate) fn malformed(message: impl Into<String>) -> ModelError {
    ModelError::new(ErrorKind::Malformed, message)
}

/// The provider's id of the request.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    ["request-id", "x-request-id"]
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(str::to_owned)
}

fn kind_of_status(status: u16) -> Option<ErrorKind> {
    Some(match status {
        401 | 403 => ErrorKind::Authentication,
        402 => ErrorKind::Billing,
        408 => ErrorKind::Timeout,
        429 => ErrorKind::RateLimit,
        503 | 529 => ErrorKind::Overloaded,
        500..=599 => ErrorKind::Server,
        413 => ErrorKind::ContextOverflow,
        300..=499 => ErrorKind::InvalidRequest,
        _ => return None,
    })
}

/// Refines the classification by status: the name and the message of the error can be more exact.
fn refine(kind: ErrorKind, name: &str, message: &str) -> ErrorKind {
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if name == "insufficient_quota" || says(&["credit balance is too low"]) {
        return ErrorKind::Billing;
    }
    let named = match name {
        "authentication_error" | "permission_error" | "invalid_api_key" => {
            ErrorKind::Authentication
        }
        "billing_error" => ErrorKind::Billing,
        "rate_limit_error" | "rate_limit_exceeded" => ErrorKind::RateLimit,
        "overloaded_error" => ErrorKind::Overloaded,
        "timeout_error" => ErrorKind::Timeout,
        "invalid_request_error" | "not_found_error" => ErrorKind::InvalidRequest,
        "request_too_large" | "context_length_exceeded" | "exceed_context_size_error" => {
            ErrorKind::ContextOverflow
        }
        "model_not_found" => ErrorKind::ModelNotFound,
        _ => kind,
    };
    // A server's own failure stays one, whatever its message says.
    let kind = if kind == ErrorKind::Server { named } else { kind };
    match (kind, named) {
        (_, ErrorKind::ContextOverflow | ErrorKind::ModelNotFound) => named,
        (ErrorKind::InvalidRequest, _) if says(OVERFLOW) => ErrorKind::ContextOverflow,
        (ErrorKind::InvalidRequest, _)
            if says(&["model"])
                && says(&["not found", "not_found", "does not exist", "no such"])
                || name == "not_found_error" && message.starts_with("model:") =>
        {
            ErrorKind::ModelNotFound
        }
        _ => kind,
    }
}

/// The providers' phrases for a conversation that is too long.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the context",
    "exceeds the available context",
    "context window",
    "context length",
    "reduce the length of the messages",
];

fn excerpt(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if let (true, Some(to)) = (status.is_redirection(), headers.get("location")) {
        let to = to.to_str().unwrap_or("another address");
        return format!("the server redirects to {to}; set the base URL to where it really is");
    }
    if text.is_empty() {
        return status.canonical_reason().unwrap_or("no explanation").to_lowercase();
    }
    let mut shown: String = text.chars().take(EXCERPT).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The wait that the provider asks for: milliseconds, seconds or a date.
fn retry_after(headers: &HeaderMap, world: &dyn World) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds =
        |number: f64| Duration::try_from_secs_f64(number.max(0.0)).unwrap_or(LONGEST_WAIT);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    let wait = if let Some(millis) = text("retry-after-ms").and_then(number) {
        seconds(millis / 1000.0)
    } else {
        let value = text("retry-after")?;
        let until = || jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok();
        match number(value) {
            Some(whole) => seconds(whole),
            // A date in the past asks for no wait.
            None => until()?.duration_since(world.now()).try_into().unwrap_or(Duration::ZERO),
        }
    };
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use centurion_protocol::SeededWorld;

    fn kind(status: u16, body: &str) -> ErrorKind {
        let status = StatusCode::from_u16(status).unwrap();
        from_response(status, &HeaderMap::new(), body.as_bytes(), &SeededWorld::new(1)).kind
    }

    #[test]
    fn statuses_are_sorted_by_what_to_do() {
        for (status, expected) in [
            (400, ErrorKind::InvalidRequest),
            (401, ErrorKind::Authentication),
            (402, ErrorKind::Billing),
            (403, ErrorKind::Authentication),
            (404, ErrorKind::InvalidRequest),
            (408, ErrorKind::Timeout),
            (413, ErrorKind::ContextOverflow),
            (422, ErrorKind::InvalidRequest),
            (429, ErrorKind::RateLimit),
            (500, ErrorKind::Server),
            (502, ErrorKind::Server),
            (503, ErrorKind::Overloaded),
            (529, ErrorKind::Overloaded),
        ] {
            assert_eq!(kind(status, ""), expected, "{status}");
        }
    }

    #[test]
    fn messages_are_more_exact_than_statuses() {
        for (status, body, expected) in [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                ErrorKind::ContextOverflow,
            ),
            (
                413,
                r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                ErrorKind::ContextOverflow,
            ),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-nope"}}"#,
                ErrorKind::ModelNotFound,
            ),
            (404, r#"{"error":"model 'qwen' not found"}"#, ErrorKind::ModelNotFound),
            (
                404,
                r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
                ErrorKind::ModelNotFound,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
                ErrorKind::ContextOverflow,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
                ErrorKind::ContextOverflow,
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}"#,
                ErrorKind::Billing,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
                ErrorKind::Billing,
            ),
            (
                500,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                ErrorKind::Overloaded,
            ),
        ] {
            assert_eq!(kind(status, body), expected, "{body}");
        }
    }

    #[test]
    fn a_message_names_the_status_the_error_and_the_request() {
        let mut headers = HeaderMap::new();
        headers.insert("request-id", "req_1".parse().unwrap());
        let body = br#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
        let world = SeededWorld::new(1);
        let error = from_response(StatusCode::TOO_MANY_REQUESTS, &headers, body, &world);
        assert_eq!(error.message, "429 rate_limit_error: slow down (request req_1)");
        assert_eq!(error.status, Some(429));
        let error = from_response(StatusCode::BAD_GATEWAY, &headers, b"<html>oops", &world);
        assert_eq!(error.message, "502 <html>oops (request req_1)");
    }

    #[test]
    fn a_wait_is_read_in_milliseconds_seconds_or_as_a_date() {
        let world = SeededWorld::new(1);
        let wait = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers, &world)
        };
        assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        assert_eq!(wait("retry-after", "1e300"), Some(LONGEST_WAIT));
        assert_eq!(wait("retry-after", "soon"), None);
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        // The seeded world begins at the start of 2026, plus a millisecond for each look.
        let wait = wait("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT").unwrap();
        assert!(wait > Duration::from_secs(29) && wait < Duration::from_secs(30), "{wait:?}");
    }

    #[test]
    fn an_error_in_a_stream_is_retried_unless_it_is_known_to_be_final() {
        let parse = |body: &str| ErrorBody::parse(body.as_bytes()).unwrap().in_stream();
        let error =
            parse(r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#);
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::Overloaded, "overloaded_error: busy")
        );
        assert_eq!(
            parse(r#"{"error":{"type":"api_error","message":"x"}}"#).kind,
            ErrorKind::Server
        );
        assert_eq!(parse(r#"{"error":{"code":429,"message":"x"}}"#).kind, ErrorKind::RateLimit);
        assert_eq!(
            parse(r#"{"error":{"type":"invalid_request_error","message":"bad"}}"#).kind,
            ErrorKind::InvalidRequest
        );
        assert_eq!(ErrorBody::parse(b"{}"), None);
        assert_eq!(ErrorBody::parse(b"not json"), None);
    }
}
