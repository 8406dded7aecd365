//! Streamable HTTP.

use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_config::mcp::McpTransport;
use centurion_mcp::{CallError, CallOptions, State};
use centurion_testkit::{Reply, Server, closed_port};
use serde_json::json;

use crate::bench::{Bench, PATIENCE, call, object, remote, server};
use crate::web;

#[tokio::test]
async fn headers_go_with_every_request() {
    let web = Server::start_with(web::reply);
    let bench = Bench::new();
    let mut place = remote(format!("{}/mcp", web.url()));
    place.headers.insert("X-Key".into(), "fixed".into());
    place.headers.insert("X-Both".into(), "fixed".into());
    place.headers_helper = Some(
        r#"printf '{"X-Both":"helper","X-Name":"%s at %s"}' "$CLAUDE_CODE_MCP_SERVER_NAME" "$CLAUDE_CODE_MCP_SERVER_URL""#.into(),
    );
    let connection = bench.pool.share(server(McpTransport::Http(place)));
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    assert_eq!(connection.server_info().unwrap().name, "web");
    assert_eq!(call(&connection, "echo", json!({ "a": 1 })).await, "{\"a\":1}");
    let posts: Vec<_> =
        web.requests().into_iter().filter(|request| request.method == "POST").collect();
    assert!(posts.len() >= 4, "{posts:?}");
    for post in posts {
        assert_eq!(post.header("x-key"), Some("fixed"));
        assert_eq!(post.header("x-both"), Some("helper"));
        assert_eq!(post.header("x-name"), Some(format!("test at {}/mcp", web.url()).as_str()));
    }
}

#[tokio::test]
async fn a_helper_that_fails_is_the_reason() {
    let bench = Bench::new();
    for (command, words) in [
        ("echo broken >&2; exit 3", "ended with code 3: broken"),
        ("echo hello", "did not print a JSON object"),
        (r#"echo '{"X": 1}'"#, "no text for the header X"),
    ] {
        let mut place = remote("http://localhost:1/mcp".to_owned());
        place.headers_helper = Some(command.to_owned());
        let state = bench.pool.share(server(McpTransport::Http(place))).ready(PATIENCE).await;
        assert!(state.reason().is_some_and(|reason| reason.contains(words)), "{state:?}");
    }
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_is_there_needs_a_login() {
    let with_challenge = || Reply::status(401).header("www-authenticate", "Bearer");
    for reply in [with_challenge(), Reply::status(401)] {
        let web = Server::start_with(move |_| reply.clone());
        let bench = Bench::new();
        let place = remote(format!("{}/mcp", web.url()));
        let connection = bench.pool.share(server(McpTransport::Http(place)));
        let state = connection.ready(PATIENCE).await;
        assert_eq!(state.to_string(), "needs-auth");
        assert!(state.reason().unwrap().contains("centurion mcp login test"), "{state:?}");
        let error = connection.call("echo", object(json!({})), &CallOptions::default()).await;
        assert!(matches!(error, Err(CallError::NeedsAuth { .. })), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_stumbles_is_tried_three_times_and_one_that_says_no_only_once() {
    let stumbling = |times: usize| {
        let tries = AtomicUsize::new(0);
        Server::start_with(move |request| {
            let is_down = tries.fetch_add(1, Ordering::SeqCst) < times;
            if is_down { Reply::status(503) } else { web::reply(request) }
        })
    };
    let (twice, thrice) = (stumbling(2), stumbling(3));
    let wrong = Server::start_with(|_| Reply::status(403).body("not here"));
    let bench = Bench::new();
    let share = |url: String| bench.pool.share(server(McpTransport::Http(remote(url))));
    let connections = [&twice, &thrice, &wrong].map(|web| share(format!("{}/mcp", web.url())));
    let nobody = share(format!("http://127.0.0.1:{}/mcp", closed_port()));

    let mut states = Vec::new();
    for connection in &connections {
        states.push(connection.ready(PATIENCE).await);
    }
    assert_eq!(states[0], State::Connected);
    assert_eq!(states[1].reason(), Some("HTTP 503"));
    assert_eq!(thrice.requests().len(), 3);
    assert!(states[2].reason().unwrap().contains("403"), "{states:?}");
    assert_eq!(wrong.requests().len(), 1);
    let state = nobody.ready(PATIENCE).await;
    assert!(state.reason().unwrap().contains("refused"), "{state:?}");
}
