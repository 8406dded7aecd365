//! The time of the handshake, and the treatment of late answers.

use rustix::io::Errno;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::net::unix::pipe::{self, Receiver, Sender};
use tokio::time::{timeout, timeout_at};

use super::super::{GivenUp, LineTransport};
use super::*;

const LONG: Duration = Duration::from_mins(1);

/// The time for a connection.
const LIMIT: Duration = Duration::from_mins(10);

/// A program as the transport sees it.
struct Program {
    input: Receiver,
    output: DuplexStream,
}

impl Program {
    /// A program that rests whenever it has read its input.
    fn new() -> (Probe<LineTransport<DuplexStream, Sender>>, Self) {
        Self::judged_by(|_| true)
    }

    fn judged_by(rests: fn(u64) -> bool) -> (Probe<LineTransport<DuplexStream, Sender>>, Self) {
        let (writer, input) = pipe::pipe().unwrap();
        let (reader, output) = tokio::io::duplex(1 << 16);
        let pipe = Pipe::judged_by(&writer, rests);
        assert!(pipe.is_some());
        let lines = LineTransport::new(reader, writer, GivenUp::default());
        let probe =
            Probe::new(lines, pipe, PATIENCE, Instant::now() + LIMIT, HandshakeNotes::default());
        (probe, Self { input, output })
    }

    /// The methods of the messages in its input.
    fn reads(&self) -> Vec<String> {
        let mut bytes = vec![0; 1 << 16];
        // All available bytes, whether or not the runtime has seen them.
        let count = match rustix::io::read(&self.input, &mut bytes) {
            Err(Errno::AGAIN) => 0,
            read => read.unwrap(),
        };
        let text = String::from_utf8(bytes[..count].to_vec()).unwrap();
        let method = |line: &str| {
            let message: Value = serde_json::from_str(line).unwrap();
            message["method"].as_str().unwrap().to_owned()
        };
        text.lines().map(method).collect()
    }

    async fn says(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
}

fn sent(message: Value) -> TxJsonRpcMessage<RoleClient> {
    serde_json::from_value(message).unwrap()
}

fn question() -> TxJsonRpcMessage<RoleClient> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let params = json!({"_meta": meta});
    sent(json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": params}))
}

fn greeting() -> TxJsonRpcMessage<RoleClient> {
    let client = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    sent(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}))
}

fn initialized() -> TxJsonRpcMessage<RoleClient> {
    sent(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

fn telling() -> Value {
    let result = json!({
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
        "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
    });
    json!({"jsonrpc": "2.0", "id": 0, "result": result})
}

/// Asks, waits until the question is given up, and sends the handshake.
async fn ask_and_greet(probe: &mut Probe<LineTransport<DuplexStream, Sender>>) {
    probe.send(question()).await.unwrap();
    let given_up = serde_json::to_value(probe.receive().await.unwrap()).unwrap();
    assert_eq!((&given_up["id"], &given_up["error"]["code"]), (&json!(0), &json!(-32601)));
    probe.send(greeting()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_program_that_has_not_read_the_question_is_not_greeted() {
    let (mut probe, mut program) = Program::new();
    ask_and_greet(&mut probe).await;
    assert!(timeout(LONG, probe.receive()).await.is_err(), "nothing is said");
    assert_eq!(program.reads(), ["server/discover"], "however long it takes to start");
    program.says(&telling()).await;
    let read = serde_json::to_value(probe.receive().await.unwrap()).unwrap();
    assert_eq!(
        (&read["id"], &read["result"]["protocolVersion"]),
        (&json!(1), &json!("2026-07-28"))
    );
    assert_eq!(read["result"]["capabilities"], json!({"tools": {}}));
    probe.send(initialized()).await.unwrap();
    assert_eq!(program.reads(), [""; 0], "there is no old handshake to continue");
    assert!(!probe.notes.answered_late());
    assert!(probe.pipe.is_none(), "its input ends when ours is closed");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_drops_the_question_is_greeted_once_it_has_read_it() {
    for reads_at_once in [true, false] {
        let (mut probe, mut program) = Program::new();
        probe.send(question()).await.unwrap();
        if reads_at_once {
            assert_eq!(program.reads(), ["server/discover"]);
        }
        assert!(probe.receive().await.is_some_and(|message| is_error(&message)));
        probe.send(greeting()).await.unwrap();
        if !reads_at_once {
            assert!(timeout(LONG, probe.receive()).await.is_err());
            assert_eq!(program.reads(), ["server/discover"]);
        }
        assert!(timeout(REST / 2, probe.receive()).await.is_err());
        assert_eq!(program.reads(), [""; 0], "it may think about it");
        assert!(timeout(REST, probe.receive()).await.is_err());
        assert!(!probe.notes.was_held());
        assert_eq!(program.reads(), ["initialize"]);
        let server = json!({"name": "old", "version": "1"});
        let result =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server});
        program.says(&json!({"jsonrpc": "2.0", "id": 1, "result": result})).await;
        let read = serde_json::to_value(probe.receive().await.unwrap()).unwrap();
        assert_eq!(read["result"]["protocolVersion"], "2025-11-25");
        probe.send(initialized()).await.unwrap();
        assert_eq!(program.reads(), ["notifications/initialized"]);
        program.says(&telling()).await;
        assert!(timeout(LONG, probe.receive()).await.is_err(), "it comes too late to count");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_drops_the_question_and_refuses_the_greeting_is_believed() {
    let (mut probe, mut program) = Program::new();
    probe.send(question()).await.unwrap();
    program.reads();
    assert!(probe.receive().await.is_some());
    probe.send(greeting()).await.unwrap();
    assert!(timeout(REST * 2, probe.receive()).await.is_err());
    assert_eq!(program.reads(), ["initialize"]);
    let error = json!({"code": -32000, "message": "not today"});
    program.says(&json!({"jsonrpc": "2.0", "id": 1, "error": error})).await;
    let begun = Instant::now();
    let read = serde_json::to_value(probe.receive().await.unwrap()).unwrap();
    assert_eq!(read["error"]["message"], "not today");
    assert!(begun.elapsed() <= PATIENCE + LOOK, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_may_still_start_is_greeted_when_its_time_is_over() {
    let begun = Instant::now();
    let (mut probe, mut program) = Program::judged_by(|_| false);
    probe.send(question()).await.unwrap();
    assert_eq!(program.reads(), ["server/discover"]);
    assert!(probe.receive().await.is_some_and(|message| is_error(&message)));
    probe.send(greeting()).await.unwrap();
    let almost = begun + LIMIT - LOOK;
    assert!(timeout_at(almost, probe.receive()).await.is_err());
    assert_eq!(program.reads(), [""; 0], "however long it seems to be ready");
    assert!(timeout_at(begun + LIMIT + LOOK, probe.receive()).await.is_err());
    assert_eq!(program.reads(), ["initialize"], "there is nothing left to lose");
    assert!(probe.notes.was_held());
    program.says(&telling()).await;
    let error = json!({"code": -32600, "message": "I am new"});
    program.says(&json!({"jsonrpc": "2.0", "id": 1, "error": error})).await;
    let read = serde_json::to_value(probe.receive().await.unwrap()).unwrap();
    assert_eq!(read["result"]["protocolVersion"], "2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_program_at_the_question_is_noted() {
    for (reads, is_noted) in [(true, true), (false, false)] {
        let (mut probe, program) = Program::new();
        probe.send(question()).await.unwrap();
        if reads {
            program.reads();
        }
        drop(program);
        assert!(probe.receive().await.is_none());
        assert_eq!(probe.notes.ended_at_question(), is_noted, "{reads}");
    }
}
