//! Both providers against a server that misbehaves, over real sockets.

use std::sync::Arc;
use std::time::Duration;

use centurion_model::{
    AnswerBuilder, Anthropic, ErrorKind, Gates, Model, ModelError, ModelEvent, OpenAi, Patience,
    Provider, ProviderKind, RetryNotice, RetryPolicy,
};
use centurion_protocol::StopReason;
use centurion_testkit::{Fault, Reply, Server, closed_port, sse};
use futures_util::StreamExt;

use crate::support::{env, request, world};

/// Long enough for a busy machine, short enough to wait for.
const SILENCE_MS: &str = "1000";

fn anthropic(url: &str) -> Anthropic {
    Anthropic::open(&env(url, SILENCE_MS), world()).expect("a provider")
}

/// A model that hardly waits before it tries again.
fn model(provider: impl Provider + 'static, max_retries: u32) -> Model {
    let hurry = Duration::from_millis(1);
    let policy = RetryPolicy {
        max_retries,
        first_delay: hurry,
        longest_delay: hurry,
        ..RetryPolicy::default()
    };
    Model::with_provider(Arc::new(provider), ProviderKind::Anthropic, "test-model", policy, world())
}

/// The result of one attempt of a provider.
async fn try_once(provider: &dyn Provider) -> Result<String, ModelError> {
    let mut builder = AnswerBuilder::default();
    let mut events = provider.stream(request());
    while let Some(event) = events.next().await {
        builder.push(&event?);
    }
    Ok(builder.finish()?.text())
}

/// The final text of a consumer, and the retries on the way.
async fn run(model: &Model) -> (Result<String, ModelError>, Vec<RetryNotice>) {
    let (mut builder, mut notices) = (AnswerBuilder::default(), Vec::new());
    let mut events = model.stream(request(), Patience::Full);
    while let Some(event) = events.next().await {
        match event {
            Ok(ModelEvent::Stream(event)) => builder.push(&event),
            Ok(ModelEvent::Held) => {}
            Ok(ModelEvent::Retry(notice)) => {
                notices.push(notice);
                builder = AnswerBuilder::default();
            }
            Err(error) => return (Err(error), notices),
        }
    }
    (builder.finish().map(|answer| answer.text()), notices)
}

#[tokio::test]
async fn every_fault_has_its_kind() {
    let good = || Reply::text("hello");
    let cases = [
        (Reply::rate_limit("3"), ErrorKind::RateLimit),
        (Reply::overloaded(), ErrorKind::Overloaded),
        (Reply::error(500, "api_error", "oops"), ErrorKind::Server),
        (Reply::status(502).body("bad gateway"), ErrorKind::Server),
        (Reply::error(401, "authentication_error", "invalid key"), ErrorKind::Authentication),
        (Reply::error(400, "invalid_request_error", "wrong"), ErrorKind::InvalidRequest),
        (
            Reply::error(400, "invalid_request_error", "prompt is too long: 9 > 8"),
            ErrorKind::ContextOverflow,
        ),
        (Reply::error(404, "not_found_error", "model: test-model"), ErrorKind::ModelNotFound),
        (Reply::status(307).header("location", "http://elsewhere"), ErrorKind::InvalidRequest),
        (good().fault(Fault::Reset { after: 0 }), ErrorKind::Network),
        (good().fault(Fault::Reset { after: 3 }), ErrorKind::Network),
        (good().fault(Fault::End { after: 3 }), ErrorKind::Network),
        (good().fault(Fault::Malformed { after: 2 }), ErrorKind::Malformed),
        (good().fault(Fault::Garbage { after: 2 }), ErrorKind::Malformed),
        (good().fault(Fault::StreamError { after: 2 }), ErrorKind::Overloaded),
        (good().fault(Fault::BlackHole), ErrorKind::Timeout),
        (good().fault(Fault::Silence { after: 0 }), ErrorKind::Timeout),
        (good().fault(Fault::Silence { after: 3 }), ErrorKind::Timeout),
        (
            Reply::status(200).header("content-type", "text/html").body("<html>"),
            ErrorKind::Malformed,
        ),
    ];
    let server = Server::start(cases.iter().map(|(reply, _)| reply.clone()));
    let provider = anthropic(&server.url());
    for (reply, kind) in &cases {
        let error = try_once(&provider).await.unwrap_err();
        assert_eq!(error.kind, *kind, "{reply:?}: {error}");
    }
}

#[tokio::test]
async fn a_closed_port_is_told_with_its_address() {
    let url = format!("http://127.0.0.1:{}", closed_port());
    for provider in [
        &anthropic(&url) as &dyn Provider,
        &OpenAi::open(&env(&url, SILENCE_MS), world()).unwrap() as &dyn Provider,
    ] {
        let error = try_once(provider).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Network);
        assert!(error.message.starts_with(&format!("cannot reach {url}: ")), "{error}");
        assert!(error.message.to_lowercase().contains("refused"), "{error}");
    }
}

#[tokio::test]
async fn what_passes_is_tried_again_until_it_works() {
    let good = || Reply::text("hello");
    let server = Server::start([
        good().fault(Fault::Reset { after: 4 }),
        good().fault(Fault::Malformed { after: 4 }),
        good().fault(Fault::StreamError { after: 4 }),
        good().fault(Fault::Silence { after: 4 }),
        good().fault(Fault::BlackHole),
        Reply::overloaded(),
        Reply::error(500, "api_error", "oops"),
        good(),
    ]);
    let (text, notices) = run(&model(anthropic(&server.url()), 10)).await;
    assert_eq!(text.unwrap(), "hello", "the partial answers are gone");
    let kinds: Vec<ErrorKind> = notices.iter().map(|notice| notice.error).collect();
    assert_eq!(
        kinds,
        [
            ErrorKind::Network,
            ErrorKind::Malformed,
            ErrorKind::Overloaded,
            ErrorKind::Timeout,
            ErrorKind::Timeout,
            ErrorKind::Overloaded,
            ErrorKind::Server,
        ]
    );
    assert_eq!(notices[5].status, Some(529));
    let requests = server.wait_for(8);
    assert!(requests.iter().all(|request| request.body == requests[0].body));
}

#[tokio::test]
async fn what_will_stay_wrong_is_asked_once() {
    for (status, kind) in [(401, ErrorKind::Authentication), (400, ErrorKind::InvalidRequest)] {
        let server =
            Server::start([Reply::error(status, "some_error", "no").header("request-id", "r7")]);
        let (end, notices) = run(&model(anthropic(&server.url()), 10)).await;
        let error = end.unwrap_err();
        assert_eq!((error.kind, error.status), (kind, Some(status)));
        assert_eq!(error.message, format!("{status} some_error: no (request r7)"));
        assert_eq!((notices.len(), server.requests().len()), (0, 1));
    }
}

#[tokio::test]
async fn a_wait_that_the_provider_asks_for_is_kept() {
    let server = Server::start([
        Reply::error(429, "rate_limit_error", "slow").header("retry-after-ms", "30"),
        Reply::text("hello"),
    ]);
    let (text, notices) = run(&model(anthropic(&server.url()), 1)).await;
    assert_eq!((text.unwrap().as_str(), notices.len()), ("hello", 1));
    assert!(notices[0].delay >= Duration::from_millis(30), "{notices:?}");
}

#[tokio::test]
async fn the_head_of_an_exchange_is_right() {
    let reply = Reply::text("hello").header("request-id", "req_9");
    let server = Server::start([reply.clone(), reply]);
    let provider = anthropic(&server.url());
    for _ in 0..2 {
        let mut builder = AnswerBuilder::default();
        let mut events = provider.stream(request());
        while let Some(event) = events.next().await {
            builder.push(&event.unwrap());
        }
        assert_eq!(builder.finish().unwrap().request_id.as_deref(), Some("req_9"));
    }
    let requests = server.requests();
    let first = &requests[0];
    assert_eq!((first.method.as_str(), first.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!(first.header("content-length"), Some(first.body.len().to_string().as_str()));
    assert_eq!(first.header("transfer-encoding"), None);
    assert_eq!(first.header("accept-encoding"), None);
    assert_eq!(first.header("x-api-key"), None);
    assert_eq!(first.json()["messages"][0]["content"][0]["text"], "hi");
    assert_eq!((first.connection, requests[1].connection), (0, 0), "one connection for both");
}

#[tokio::test]
async fn a_server_that_stays_open_after_the_end_delays_no_request() {
    let events = sse::answer(&[sse::text("hello")], "end_turn");
    let after = events.len();
    let server = Server::start([Reply::events(events).fault(Fault::Silence { after })]);
    assert_eq!(try_once(&anthropic(&server.url())).await.unwrap(), "hello");
}

#[tokio::test]
async fn an_openai_answer_streams_in() {
    let chunks = [
        r#"{"id":"c","model":"m","choices":[{"delta":{"content":"hel"}}]}"#,
        r#"{"id":"c","model":"m","choices":[{"delta":{"content":"lo"},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ];
    let events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let server = Server::start([
        Reply::events(events.clone()),
        Reply::events(events).fault(Fault::Reset { after: 1 }),
        Reply::status(404).body(r#"{"error":"model 'x' not found"}"#),
    ]);
    let provider = OpenAi::open(&env(&server.url(), SILENCE_MS), world()).unwrap();
    assert_eq!(try_once(&provider).await.unwrap(), "hello");
    assert_eq!(server.last().path, "/v1/chat/completions");
    assert_eq!(server.last().json()["stream_options"]["include_usage"], true);
    assert_eq!(try_once(&provider).await.unwrap_err().kind, ErrorKind::Network);
    assert_eq!(try_once(&provider).await.unwrap_err().kind, ErrorKind::ModelNotFound);
}

#[tokio::test]
async fn many_requests_at_once_share_a_gate_and_all_get_their_answers() {
    let server = Server::start_with(|_| Reply::blocks([sse::text("hello")]));
    let model = model(anthropic(&server.url()), 0);
    let runs = (0..50).map(|_| run(&model));
    for (text, _) in futures_util::future::join_all(runs).await {
        assert_eq!(text.unwrap(), "hello");
    }
    assert_eq!(server.requests().len(), 50);
    let gates = Gates::of_process();
    assert!(Arc::ptr_eq(&gates.gate("a", "b"), &Gates::of_process().gate("a", "b")));
}

#[tokio::test]
async fn a_dropped_stream_cancels_its_request() {
    let server = Server::start([
        Reply::text("hello").fault(Fault::Silence { after: 3 }),
        Reply::text("again"),
    ]);
    let model = model(anthropic(&server.url()), 0);
    let mut events = model.stream(request(), Patience::Full);
    assert!(events.next().await.unwrap().is_ok());
    drop(events);
    assert_eq!(run(&model).await.0.unwrap(), "again");
}

#[tokio::test]
async fn an_answer_in_json_instead_of_a_stream_is_no_answer() {
    let reply = Reply::status(200).header("content-type", "application/json; charset=utf-8");
    let server = Server::start([reply.body("{}")]);
    let error = try_once(&anthropic(&server.url())).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Malformed);
    assert!(error.message.contains("application/json"), "{error}");
}

#[tokio::test]
async fn a_refusal_is_a_reason_and_no_error() {
    let events = sse::answer(&[sse::text("no")], "refusal");
    let server = Server::start([Reply::events(events)]);
    let mut builder = AnswerBuilder::default();
    let mut events = anthropic(&server.url()).stream(request());
    while let Some(event) = events.next().await {
        builder.push(&event.unwrap());
    }
    assert_eq!(builder.finish().unwrap().stop_reason, StopReason::Refusal);
}
