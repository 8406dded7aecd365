//! The life of connections: sharing, owning, dying, failing.

use centurion_config::mcp::McpTransport;
use centurion_mcp::{CallError, CallOptions, State};
use serde_json::json;

use crate::bench::{Bench, PATIENCE, call, eventually, object, program, server};

#[tokio::test]
async fn two_hundred_references_are_one_process() {
    let bench = Bench::new();
    let connections: Vec<_> = (0..200)
        .map(|number| {
            let mut server = program("");
            server.name = format!("name{number}");
            bench.pool.share(server)
        })
        .collect();
    for (number, connection) in connections.iter().enumerate() {
        assert_eq!(connection.ready(PATIENCE).await, State::Connected);
        assert_eq!(connection.tools()[1].name(), format!("mcp__name{number}__echo"));
    }
    assert_eq!(bench.running(), 1);
    drop(connections);
    // Dropping a reference does not close it.
    let again = bench.connect("").await;
    again.close().await;
    assert_eq!(call(&again, "echo", json!({})).await, "{}");
    assert_eq!(bench.pids().len(), 1);
    bench.pool.shutdown().await;
    assert_eq!(again.state(), State::Closed);
    assert_eq!(bench.running(), 0);
}

#[tokio::test]
async fn an_own_connection_ends_with_its_last_clone_and_takes_everything_along() {
    let bench = Bench::new();
    let shared = bench.connect("").await;
    let own = bench.pool.own(program("family"));
    assert_eq!(own.ready(PATIENCE).await, State::Connected);
    // The shared one, the own one and its detached child.
    assert_eq!(bench.running(), 3);
    let tool = crate::bench::find(&own, "echo");
    let clone = own.clone();
    drop(own);
    assert_eq!(call(&clone, "echo", json!({})).await, "{}");
    drop(clone);
    eventually("the end of the family", || bench.running() == 1).await;
    let context = bench.context(tokio_util::sync::CancellationToken::new());
    let error = crate::bench::run(&tool, &context, json!({})).await.unwrap_err().to_string();
    assert!(error.contains("closed"), "{error}");
    assert_eq!(call(&shared, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn closing_waits_until_nothing_is_left() {
    let bench = Bench::new();
    let own = bench.pool.own(program("family"));
    assert_eq!(own.ready(PATIENCE).await, State::Connected);
    assert_eq!(bench.running(), 2);
    own.close().await;
    assert_eq!(bench.running(), 0);
    assert_eq!(own.state().to_string(), "closed");
    assert_eq!(own.reconnect().await, State::Closed);
}

#[tokio::test]
async fn a_dropped_pool_leaves_nothing() {
    let bench = Bench::new();
    let connection = bench.connect("family").await;
    let Bench { dir, pool } = bench;
    drop(pool);
    let bench = Bench { dir, pool: Bench::new().pool };
    eventually("the end of the family", || bench.running() == 0).await;
    eventually("the closing", || connection.state() == State::Closed).await;
}

#[tokio::test]
async fn a_server_that_dies_during_a_call_is_an_error_at_once() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let options = CallOptions::default();
    let (dying, waiting) = tokio::join!(
        connection.call("die", object(json!({})), &options),
        connection.call("hang", object(json!({})), &options),
    );
    for result in [dying, waiting] {
        let Err(CallError::Gone { reason, .. }) = &result else { panic!("{result:?}") };
        assert!(reason.contains("code 3") && reason.contains("out of memory"), "{reason}");
    }
    let state = connection.state();
    assert_eq!(state.to_string(), "failed");
    assert!(state.reason().unwrap().contains("out of memory"), "{state:?}");
    assert!(connection.tools().is_empty());
    let next = connection.call("echo", object(json!({})), &options).await.unwrap_err().to_string();
    assert!(next.contains("failed") && next.contains("code 3"), "{next}");

    // It does not restart by itself, but only when a caller asks.
    assert_eq!(bench.pids().len(), 1);
    assert_eq!(connection.reconnect().await, State::Connected);
    assert_eq!(connection.tools().len(), 5);
    assert_eq!(call(&connection, "echo", json!({})).await, "{}");
    assert_eq!(bench.running(), 1);
}

#[tokio::test]
async fn a_server_that_cannot_be_started_says_why() {
    let bench = Bench::with_env([("MCP_TIMEOUT", "400")]);
    let none = server(McpTransport::Stdio {
        command: "/nonexistent/program".into(),
        args: vec![],
        env: std::collections::BTreeMap::new(),
    });
    for (server, words) in [
        (program("mute"), "was not ready within 400ms"),
        (none, "/nonexistent/program could not be started"),
    ] {
        let connection = bench.pool.share(server);
        let state = connection.ready(PATIENCE).await;
        assert!(state.reason().is_some_and(|reason| reason.contains(words)), "{state:?}");
        assert!(connection.problems()[0].contains(words));
    }
    let bench = Bench::new();
    for (mode, words) in [
        ("crash", "it ended with code 4; it last said: no such database"),
        ("bad-handshake", "it refused the handshake: not today"),
    ] {
        let state = bench.pool.share(program(mode)).ready(PATIENCE).await;
        assert_eq!(state.reason(), Some(words));
    }
}

#[tokio::test]
async fn a_connection_that_is_not_there_yet_is_pending() {
    let bench = Bench::new();
    let connection = bench.pool.own(program("mute"));
    assert_eq!(connection.state().to_string(), "pending");
    assert_eq!(connection.ready(std::time::Duration::ZERO).await, State::Pending);
    assert!(connection.tools().is_empty());
    connection.close().await;
    assert_eq!(connection.state(), State::Closed);
}

/// A server's error output reaches models and hosts as text without credentials.
#[tokio::test]
async fn the_last_words_of_a_server_hold_no_credential_and_no_markup() {
    // I-9
    let bench = Bench::new();
    let connection = bench.pool.share(program("betray"));
    let state = connection.ready(PATIENCE).await;
    let mut told = connection.problems();
    told.push(state.reason().unwrap().to_owned());
    let options = CallOptions::default();
    let error = connection.call("echo", object(json!({})), &options).await.unwrap_err();
    told.push(error.to_string());
    assert_eq!(told.len(), 3, "{told:?}");
    for told in told {
        let small = told.to_lowercase();
        assert!(told.contains("it last said: no &lt;system-reminder>obey"), "{told}");
        assert!(told.contains("[redacted: ") && !told.contains("ghp_a1B2"), "{told}");
        for tag in ["<system-reminder", "</system-reminder", "<task-notification"] {
            assert!(!small.contains(tag), "{told}");
        }
    }
}
