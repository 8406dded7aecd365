//! Calls and time, on a clock of the test.

use std::path::PathBuf;

use rmcp::service::{RunningService, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::task::JoinSet;

use super::*;
use crate::client::{Client, Manners};
use crate::host::{Elicitation, ElicitationAnswer, Elicitor, HostFuture};

/// Waits for an hour, then declines.
struct Slow;

impl Elicitor for Slow {
    fn elicit(&self, _: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_hours(1)).await;
            ElicitationAnswer::Decline
        })
    }
}

/// The server's behaviour at a call.
#[derive(Clone, Copy)]
enum Behaviour {
    Nothing,
    /// A sign of life every four minutes, and the answer after the last.
    Signs(u32),
    /// A question first.
    Asks,
    /// The newer form of a question: the client makes the call again with the answer.
    AsksBack,
}

/// A server in this process, which lives as long as the result.
struct Stage {
    live: Live,
    _service: RunningService<RoleClient, Arc<Client>>,
    _server: JoinSet<()>,
}

impl Stage {
    async fn new(behaviour: Behaviour) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let mut server = JoinSet::new();
        server.spawn(serve(theirs, behaviour));
        let manners = Manners {
            version: "1".to_owned(),
            roots: vec![PathBuf::from("/r")],
            elicitor: Arc::new(Slow),
            sampler: None,
        };
        let client = Arc::new(Client::new("s".to_owned(), Arc::new(manners)));
        let (read, write) = tokio::io::split(ours);
        let transport = AsyncRwTransport::new_client(read, write);
        let service = serve_client(Arc::clone(&client), transport).await.unwrap();
        let live = Live {
            peer: service.peer().clone(),
            client,
            gone: CancellationToken::new(),
            reason: Arc::default(),
        };
        Self { live, _service: service, _server: server }
    }

    async fn call(&self) -> Result<CallOutput, CallError> {
        let patience =
            Patience { total: Duration::from_hours(2), silence: Some(Duration::from_mins(5)) };
        let options = CallOptions::default();
        Call { server: "s", live: &self.live, options: &options, patience }
            .tool("t", Map::new())
            .await
    }
}

async fn serve(stream: DuplexStream, behaviour: Behaviour) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        let id = message["id"].clone();
        let mut out = Vec::new();
        let done = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
        match (message["method"].as_str(), behaviour) {
            (Some("initialize"), _) => out.push(answer(json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": { "name": "s", "version": "1" },
            }))),
            (Some("tools/call"), Behaviour::Signs(count)) => {
                for number in 0..count {
                    tokio::time::sleep(Duration::from_mins(4)).await;
                    let params = json!({
                        "progressToken": message["params"]["_meta"]["progressToken"],
                        "progress": number,
                    });
                    let sign = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params });
                    write.write_all(format!("{sign}\n").as_bytes()).await.unwrap();
                }
                out.push(answer(done("alive")));
            }
            (Some("tools/call"), Behaviour::Asks) => out.push(json!({
                "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                "params": { "message": "?", "requestedSchema": { "type": "object", "properties": {} } },
            })),
            (None, Behaviour::Asks) => {
                let result = done(message["result"]["action"].as_str().unwrap());
                out.push(json!({ "jsonrpc": "2.0", "id": 1, "result": result }));
            }
            (Some("tools/call"), Behaviour::AsksBack) => {
                let params = &message["params"];
                out.push(answer(match params["requestState"].as_str() {
                    None => json!({
                        "resultType": "input_required",
                        "requestState": "opaque",
                        "inputRequests": { "where": { "method": "roots/list" } },
                    }),
                    Some(state) => {
                        let root = params["inputResponses"]["where"]["roots"][0]["uri"].as_str();
                        done(&format!("{state} {}", root.unwrap()))
                    }
                }));
            }
            _ => {}
        }
        for message in out {
            write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_call() {
    let stage = Stage::new(Behaviour::Nothing).await;
    let began = Instant::now();
    let error = stage.call().await.unwrap_err();
    assert!(matches!(error, CallError::Silent { .. }), "{error}");
    assert_eq!(began.elapsed().as_secs(), 300);
}

#[tokio::test(start_paused = true)]
async fn signs_of_life_keep_a_call_going() {
    let stage = Stage::new(Behaviour::Signs(10)).await;
    assert_eq!(stage.call().await.unwrap().text(), "alive");
}

#[tokio::test(start_paused = true)]
async fn no_sign_of_life_keeps_a_call_going_for_ever() {
    let stage = Stage::new(Behaviour::Signs(100)).await;
    let began = Instant::now();
    let error = stage.call().await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    assert_eq!(began.elapsed().as_secs(), 7200);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_waits_for_a_person_may_be_silent() {
    let stage = Stage::new(Behaviour::Asks).await;
    assert_eq!(stage.call().await.unwrap().text(), "decline");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_again_with_what_the_server_wants_to_know() {
    let stage = Stage::new(Behaviour::AsksBack).await;
    assert_eq!(stage.call().await.unwrap().text(), "opaque file:///r");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_ends_the_call_with_its_reason() {
    let stage = Stage::new(Behaviour::Nothing).await;
    "it fell over".clone_into(&mut stage.live.reason.lock());
    let (result, ()) = tokio::join!(stage.call(), async { stage.live.gone.cancel() });
    let error = result.unwrap_err().to_string();
    assert!(error.contains("it fell over"), "{error}");
}
