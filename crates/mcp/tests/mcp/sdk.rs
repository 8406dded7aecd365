//! A server inside the host.

use std::sync::Arc;

use centurion_config::mcp::McpTransport;
use centurion_mcp::{CallError, CallOptions, HostError, HostFuture, SdkChannel, State};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bench::{Bench, PATIENCE, call, object, server};
use crate::web::answer;

/// A host with one server in it.
#[derive(Default)]
struct TestHost {
    heard: Mutex<Vec<(String, Value)>>,
}

impl SdkChannel for TestHost {
    fn exchange<'a>(
        &'a self,
        server: &'a str,
        message: Value,
    ) -> HostFuture<'a, Result<Option<Value>, HostError>> {
        self.heard.lock().push((server.to_owned(), message.clone()));
        let reply = match message["params"]["name"].as_str() {
            Some("lost") => Err("the host is busy".into()),
            Some("another") => Ok(Some(json!({"jsonrpc": "2.0", "id": 7777, "result": {}}))),
            _ => Ok(Some(
                answer(&message).unwrap_or_else(|| json!({ "jsonrpc": "2.0", "result": {} })),
            )),
        };
        Box::pin(std::future::ready(reply))
    }
}

fn inproc() -> centurion_config::mcp::McpServer {
    server(McpTransport::Sdk { name: "inproc".to_owned() })
}

#[tokio::test]
async fn messages_go_through_the_host() {
    let host = Arc::new(TestHost::default());
    let bench = Bench::with([], |options| options.sdk = Some(Arc::clone(&host) as _));
    let connection = bench.pool.share(inproc());
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    assert_eq!(call(&connection, "echo", json!({ "a": 1 })).await, "{\"a\":1}");
    let error = connection.call("lost", object(json!({})), &CallOptions::default()).await;
    let Err(CallError::Unreachable { reason, .. }) = &error else { panic!("{error:?}") };
    assert!(reason.contains("the host is busy"), "{reason}");

    let heard = host.heard.lock();
    assert!(heard.iter().all(|(server, _)| server == "inproc"));
    let methods: Vec<_> =
        heard.iter().map(|(_, message)| message["method"].as_str().unwrap()).collect();
    assert_eq!(
        methods,
        ["initialize", "notifications/initialized", "tools/list", "tools/call", "tools/call"]
    );
    assert_eq!(heard[0].1["params"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn a_call_that_the_host_answers_under_the_id_of_another_one_fails_at_once() {
    let bench = Bench::with([], |options| options.sdk = Some(Arc::new(TestHost::default()) as _));
    let connection = bench.pool.share(inproc());
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    let error = connection.call("another", object(json!({})), &CallOptions::default()).await;
    let Err(CallError::Unreachable { reason, .. }) = &error else { panic!("{error:?}") };
    assert!(reason.contains("another request"), "{reason}");
}

#[tokio::test]
async fn without_a_host_there_is_no_such_server() {
    let state = Bench::new().pool.share(inproc()).ready(PATIENCE).await;
    assert!(state.reason().unwrap().contains("no host"), "{state:?}");
}
