//! Servers that send too much: each call ends at once with an error, and memory is bounded.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use centurion_config::mcp::McpTransport;
use centurion_mcp::{
    CallError, CallOptions, CallOutput, Connection, Elicitation, ElicitationAnswer, Elicitor,
    HostFuture, State,
};
use centurion_testkit::{Recorded, Reply, Server};
use serde_json::{Value, json};

use crate::bench::{Bench, PATIENCE, call, eventually, object, program, remote, server};
use crate::web;

/// The result of a call that must end before its timeout.
async fn at_once(
    connection: &Connection,
    tool: &str,
    arguments: Value,
) -> Result<CallOutput, CallError> {
    let options = CallOptions::default();
    let calling = connection.call(tool, object(arguments), &options);
    tokio::time::timeout(PATIENCE, calling).await.expect("the call does not hang")
}

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[tokio::test]
async fn an_answer_that_is_too_large_or_too_deep_is_an_error_at_once_and_the_next_call_works() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let deep = nested(5_000);
    let wide = format!("[{}1]", "[],".repeat(600_000));
    let first = r#"{"jsonrpc":"2.0","id":ID,"result":"#;
    let last = ",\"jsonrpc\":\"2.0\",\"id\":ID}\n";
    for (before, times, after) in [
        (format!("{first}\""), 20, "\"}\n".to_owned()),
        ("{\"result\":\"".to_owned(), 20, format!("\"{last}")),
        (format!("{first}{deep}}}\n"), 0, String::new()),
        (format!("{{\"result\":{{\"content\":{deep}}}{last}"), 0, String::new()),
        (format!("{first}{wide}}}\n"), 0, String::new()),
        ("{\"id\":ID,\"result\":{}}\n".to_owned(), 0, String::new()),
        (format!("{first}{{\"content\":nonsense}}}}\n"), 0, String::new()),
    ] {
        let shown: String = before.chars().take(60).collect();
        let arguments = json!({"before": before, "times": times, "after": after});
        let error = at_once(&connection, "raw", arguments).await.unwrap_err();
        assert!(matches!(error, CallError::Refused { .. }), "{shown}: {error}");
        assert!(error.to_string().contains("cannot be read"), "{shown}: {error}");
        assert_eq!(call(&connection, "echo", json!({"a": 1})).await, "{\"a\": 1}");
    }
}

#[tokio::test]
async fn a_line_without_end_ends_the_connection_and_the_call() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let arguments = json!({"before": "{\"result\":\"", "times": 100_000, "after": ""});
    let error = at_once(&connection, "raw", arguments).await.unwrap_err();
    assert!(error.to_string().contains("a line of more than"), "{error}");
}

#[tokio::test]
async fn garbage_between_answers_does_no_harm() {
    let bench = Bench::new();
    let connection = bench.connect("noisy").await;
    let garbage = "\u{0}\u{1}\n{}\n[]\nnull\n{\"id\":99,\"result\":{}}\n{\"id\":ID}\n";
    // The last line names the call and is no answer: the call ends with an error.
    let arguments = json!({"before": garbage, "after": ""});
    assert!(at_once(&connection, "raw", arguments).await.is_err());
    assert_eq!(call(&connection, "echo", json!({})).await, "{}");
}

#[tokio::test]
async fn lists_without_end_are_cut_and_the_user_is_told() {
    for (mode, most, problem) in [
        ("many", 10_000, "is cut"),
        ("large", 4, "is cut"),
        ("circle", 0, "has no end"),
        ("same", 1, "is cut"),
    ] {
        let bench = Bench::with_env([("MCP_TIMEOUT", "120000")]);
        let connection = bench.pool.share(program(mode));
        assert_eq!(connection.ready(Duration::from_mins(2)).await, State::Connected, "{mode}");
        let tools = connection.tools().len();
        assert!(tools <= most, "{mode}: {tools} tools");
        let problems = connection.problems();
        assert!(problems.iter().any(|it| it.contains(problem)), "{mode}: {problems:?}");
        assert!(problems.len() <= 60, "{mode}: {} problems", problems.len());
        assert!(problems.iter().all(|it| it.len() < 500), "{mode}");
    }
}

/// A person who never answers.
#[derive(Default)]
struct Absent(AtomicUsize);

impl Elicitor for Absent {
    fn elicit(&self, _: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_flood_of_questions_reaches_a_person_only_up_to_a_limit() {
    let absent = Arc::new(Absent::default());
    let elicitor: Arc<dyn Elicitor> = absent.clone();
    let bench = Bench::with([], |options| options.elicitor = elicitor);
    let connection = bench.connect("").await;
    assert_eq!(call(&connection, "ask-many", json!({"count": 500})).await, "asked");
    assert_eq!(call(&connection, "echo", json!({})).await, "{}");
    eventually("the questions arrived", || absent.0.load(Ordering::Relaxed) >= 32).await;
    assert_eq!(absent.0.load(Ordering::Relaxed), 32);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = Command::new("gzip");
    let mut child = gzip.arg("-1").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = {
        let bytes = bytes.to_vec();
        std::thread::spawn(move || stdin.write_all(&bytes).unwrap())
    };
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout
}

fn call_of(request: &Recorded) -> Option<Value> {
    let message = (request.method == "POST").then(|| request.json())?;
    (message["method"] == "tools/call").then(|| message["id"].clone())
}

type Answer = Box<dyn Fn(&Value) -> Reply + Send + Sync>;

#[tokio::test]
async fn a_body_of_a_remote_server_is_bounded_in_every_form() {
    const PIECES: usize = 1 << 14;
    let piece = || vec![b'x'; 64 * 1024];
    let json = || Reply::status(200).header("content-type", "application/json");
    let stream = |data: String| Reply::events([data]);
    let head = |id: &Value| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
    let bomb = gzip(&vec![b'x'; 100 << 20]);
    let answers: Vec<(&str, Answer)> = vec![
        ("a body", Box::new(move |id| json().body(head(id) + "\"").flood(piece(), PIECES))),
        (
            "a compressed body",
            Box::new(move |_| json().header("content-encoding", "gzip").body(bomb.clone())),
        ),
        ("a deep body", Box::new(move |id| json().body(head(id) + &nested(5_000) + "}"))),
        ("no message", Box::new(move |_| json().body("{}"))),
        (
            "an event",
            Box::new(move |id| stream(format!("data: {}\"", head(id))).flood(piece(), PIECES)),
        ),
        (
            "a deep event",
            Box::new(move |id| stream(format!("data: {}{}}}\n\n", head(id), nested(5_000)))),
        ),
        (
            "an error",
            Box::new(move |_| {
                Reply::status(400).header("content-type", "application/json").flood(piece(), PIECES)
            }),
        ),
    ];
    for (name, answer) in answers {
        let web = Server::start_with(move |request| match call_of(request) {
            Some(id) => answer(&id),
            None => web::reply(request),
        });
        let bench = Bench::new();
        let place = remote(format!("{}/mcp", web.url()));
        let connection = bench.pool.share(server(McpTransport::Http(place)));
        assert_eq!(connection.ready(PATIENCE).await, State::Connected, "{name}");
        let error = at_once(&connection, "echo", json!({})).await.unwrap_err();
        assert!(error.to_string().len() < 5_000, "{name}: {} bytes", error.to_string().len());
        assert!(web.sent() < 64 << 20, "{name}: {} bytes were taken", web.sent());
    }
}
