//! A server that talks through its standard streams: its offers, and the results of calls.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::Arc;

use centurion_config::mcp::McpTransport;
use centurion_mcp::{
    CallError, CallOptions, Connection, Progress, ResourceContent, State, tool_name,
};
use centurion_permissions::Access;
use centurion_protocol::ToolResultContent;
use centurion_tools::ToolError;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, PATIENCE, call, find, object, program, server};

#[tokio::test]
async fn everything_that_a_server_offers_is_there() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    // Seven in pages of two; `union` cannot be called and one of two has the other's name.
    let names: Vec<_> = connection.tools().iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(
        names,
        [
            "mcp__test__big",
            "mcp__test__echo",
            "mcp__test__long",
            "mcp__test__two_words",
            "mcp__test__zoo"
        ]
    );
    let problems = connection.problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("union") && problems[0].contains("not an object"), "{problems:?}");
    assert!(problems[1].contains("two/words") && problems[1].contains("another"), "{problems:?}");

    let infos = connection.tool_infos();
    let info = |name: &str| infos.iter().find(|info| info.tool == name).unwrap();
    assert!(info("echo").only_reads && !info("zoo").only_reads);
    assert_eq!(info("echo").annotations["readOnlyHint"], true);
    assert_eq!(info("echo").title.as_deref(), Some("Echo"));
    assert!(info("big").always_load && info("two.words").requires_user_interaction);

    assert_eq!(find(&connection, "long").spec().description.len(), 2_048);
    assert_eq!(
        find(&connection, "zoo").spec().input_schema.get(),
        r#"{"type":"object","properties":{}}"#
    );
    assert_eq!(connection.instructions().unwrap().len(), 2_048);
    let info = connection.server_info().unwrap();
    assert_eq!((info.name.as_str(), info.protocol.as_str()), ("test", "2025-11-25"));
    assert_eq!(
        serde_json::from_str::<Value>(&info.version).unwrap(),
        json!({ "name": "centurion", "version": "1.2.3" })
    );

    let prompts = connection.prompts();
    assert_eq!((prompts[0].name.as_str(), prompts[0].arguments[0].required), ("greet", true));
    let options = CallOptions::default();
    let prompt = connection.get_prompt("greet", object(json!({ "who": "you" })), &options).await;
    assert_eq!(prompt.unwrap().messages[0].content, ToolResultContent::Text("Hello you".into()));
    let uris: Vec<_> = connection.resources().into_iter().map(|resource| resource.uri).collect();
    assert_eq!(uris, ["test://a", "test://b"]);
    assert_eq!(connection.resource_templates()[0].uri_template, "test://{x}");
    let content = connection.read_resource("test://a", &options).await.unwrap();
    assert_eq!(
        content,
        [ResourceContent::Text {
            uri: "test://a".into(),
            mime_type: None,
            text: "the content".into()
        }]
    );
}

#[tokio::test]
async fn a_call_goes_through_with_its_ids_and_its_environment() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let context = bench.context(CancellationToken::new());
    let echo = find(&connection, "echo");
    let input = serde_json::value::to_raw_value(&json!({ "b": 1, "a": [2] })).unwrap();
    let prepared = echo.prepare(&input).unwrap();
    assert!(prepared.is_read_only());
    assert_eq!(prepared.access(&context), Access::External { only_reads: true });
    let output = prepared.run(&context).await.unwrap();
    assert_eq!(output.content, [ToolResultContent::Text("{\"b\": 1, \"a\": [2]}".into())]);
    assert_eq!(output.data[0]["type"], "text");

    let not_an_object = serde_json::value::to_raw_value(&json!([1])).unwrap();
    assert!(matches!(echo.prepare(&not_an_object), Err(ToolError::Input(_))));

    let told: Value =
        serde_json::from_str(&call(&connection, "environment", json!({})).await).unwrap();
    assert_eq!(told["cwd"], bench.root().to_str().unwrap());
    assert_eq!(told["variables"]["OWN"], "yes");
    assert!(told["variables"]["PIDS"].is_string());

    let mut options = CallOptions::default();
    options.meta.insert("claudecode/toolUseId".into(), json!("toolu_9"));
    let meta = connection.call("meta", object(json!({})), &options).await.unwrap().text();
    let meta: Value = serde_json::from_str(&meta).unwrap();
    assert_eq!(meta["claudecode/toolUseId"], "toolu_9");
    assert!(meta.get("progressToken").is_some(), "{meta}");
}

#[tokio::test]
async fn results_of_every_kind_are_told_apart() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    assert_eq!(call(&connection, "structured", json!({})).await, "{\"answer\":42}");
    assert!(call(&connection, "strange", json!({})).await.contains("hologram"));
    let output = connection.call("fail", object(json!({})), &CallOptions::default()).await.unwrap();
    assert!(output.is_error);
    assert_eq!(output.text(), "it does not work");
    let error = connection.call("none", object(json!({})), &CallOptions::default()).await;
    assert!(matches!(error, Err(CallError::Refused { code: -32602, .. })), "{error:?}");
}

#[tokio::test]
async fn a_result_that_does_not_fit_is_in_a_file() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let output = bench.run(&connection, "big", json!({ "count": 50 })).await.unwrap();
    assert_eq!(output.content, [ToolResultContent::Text("x".repeat(50))]);
    let output = bench.run(&connection, "big", json!({ "count": 51 })).await.unwrap();
    let ToolResultContent::Text(text) = &output.content[0] else { panic!("{output:?}") };
    let file = bench.root().join("output/mcp__test__big-toolu_1.txt");
    assert!(text.contains(file.to_str().unwrap()), "{text}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x".repeat(51));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(output.data.to_string().len() < 2_000);
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let mut changes = connection.changes();
    let before = connection.generation();
    assert_eq!(call(&connection, "grow", json!({})).await, "grown");
    let grown = || connection.tools().iter().any(|tool| tool.name() == "mcp__test__grown");
    tokio::time::timeout(PATIENCE, changes.wait_for(|_| grown())).await.unwrap().unwrap();
    assert!(connection.generation() > before);
}

#[tokio::test]
async fn a_cancelled_call_ends_and_the_server_hears_of_it() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let mark = bench.root().join("mark");
    let cancel = CancellationToken::new();
    let options = CallOptions { cancel: cancel.clone(), ..CallOptions::default() };
    let arguments = object(json!({ "mark": mark.to_str().unwrap() }));
    let call_it = connection.call("hang", arguments, &options);
    let cancel_it = async {
        crate::bench::eventually("the call", || mark.exists()).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(call_it, cancel_it);
    assert!(matches!(result, Err(CallError::Cancelled)), "{result:?}");
    let told = call(&connection, "cancelled", json!({})).await;
    assert!(told.contains("requestId") && told.contains("cancelled"), "{told}");
}

#[tokio::test]
async fn a_cancelled_tool_says_so() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let context = bench.context(cancel);
    let result = crate::bench::run(&find(&connection, "echo"), &context, json!({})).await;
    assert!(matches!(result, Err(ToolError::Cancelled { .. })), "{result:?}");
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let bench = Bench::new();
    let mut server = program("");
    server.timeout = Some(std::time::Duration::from_millis(20));
    let connection = bench.pool.share(server);
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    let result = connection.call("hang", object(json!({})), &CallOptions::default()).await;
    assert!(matches!(result, Err(CallError::Timeout { .. })), "{result:?}");

    // The same process under another name, with more patience.
    let patient = bench.pool.share(program(""));
    let told = call(&patient, "cancelled", json!({})).await;
    assert!(told.contains("too long"), "{told}");
}

#[tokio::test]
async fn progress_reaches_the_caller_that_wants_it() {
    let bench = Bench::new();
    let connection = bench.connect("").await;
    let mark = bench.root().join("heard");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (hearing, done) = (Arc::clone(&heard), mark.clone());
    let options = CallOptions {
        on_progress: Some(Arc::new(move |progress| {
            hearing.lock().push(progress);
            std::fs::write(&done, "").unwrap();
        })),
        ..CallOptions::default()
    };
    // The tool ends when its sign has arrived.
    let arguments = object(json!({ "mark": mark.to_str().unwrap() }));
    let output = connection.call("progress", arguments, &options).await.unwrap();
    assert_eq!(output.text(), "done");
    let half = Progress { done: 1.0, total: Some(2.0), message: Some("half".to_owned()) };
    assert_eq!(*heard.lock(), [half]);
}

#[tokio::test]
async fn progress_of_an_agents_call_is_told_to_the_host_of_the_agent() {
    let bench = Bench::new();
    let connection = bench.connect("signs").await;
    // The tool ends when its sign has been reported.
    let beat = bench.root().join("beat");
    let input = json!({ "mark": beat.to_str().unwrap() });
    let tool = tool_name(connection.name(), "progress");
    bench.run(&connection, "progress", input).await.unwrap();
    assert_eq!(std::fs::read_to_string(beat).unwrap(), format!("toolu_1 {tool}"));
}

#[tokio::test]
async fn servers_that_say_too_much_or_too_little_work_too() {
    for mode in ["noisy", "old", "silent", "late"] {
        let bench = Bench::new();
        let connection = bench.connect(mode).await;
        assert_eq!(connection.tools().len(), 5, "{mode}");
        assert_eq!(call(&connection, "chat", json!({})).await, "said", "{mode}");
    }
}

/// Speaks only the newest protocol, and starts slowly: it answers the question only after the handshake for an old
/// server, or reads nothing until a gate opens, or reads the question and works on until then. It ends when it is
/// greeted before it has answered. It records its starts and its input.
const SLOW: &str = r#"
id() { printf '%s' "$1" | sed 's/.*"id":\([0-9]*\).*/\1/'; }
tell() { printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private",%s}}\n' "$1" "$2"; }
about='"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"Be kind."'
answer() { tell "$(id "$question")" "$about"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32600,"message":"I am new"}}\n' "$(id "$greeting")"; }
echo start >> "$1/starts"
if [ "$2" = gate ]; then
  until [ -e "$1/gate" ]; do sleep 0.02; done
fi
read -r question
case "$2" in
  gate) ;;
  early) until [ -e "$1/gate" ]; do sleep 0.02; done ;;
  ends) mkdir "$1/first" 2>/dev/null && { read -r greeting; answer; refuse; exit 1; } ;;
  *) read -r greeting ;;
esac
case "$2" in
  in-order) answer; refuse ;;
  other-order) refuse; answer ;;
  *) answer ;;
esac
while read -r line; do
  printf '%s\n' "$line" >> "$1/heard"
  case "$line" in *'"initialize"'*) exit 1 ;; esac
  tell "$(id "$line")" '"tools":[{"name":"greet","inputSchema":{"type":"object"}}]'
done
"#;

/// A client of containers: copies its input to a socket of a service, and the answers to its output.
const CLIENT: &str = "
import os, socket, sys, threading
service = socket.socket(socket.AF_UNIX)
service.connect(sys.argv[1])
def copy():
    while data := os.read(0, 65536):
        service.sendall(data)
    service.shutdown(socket.SHUT_WR)
threading.Thread(target=copy, daemon=True).start()
while data := service.recv(65536):
    os.write(1, data)
";

/// A service that has a program answer each connection. It ends with its input.
const SERVICE: &str = "
import os, socket, subprocess, sys, threading
service = socket.socket(socket.AF_UNIX)
service.bind(sys.argv[1])
service.listen()
def serve():
    while True:
        connection, _ = service.accept()
        subprocess.Popen(sys.argv[2:], stdin=connection, stdout=connection)
        connection.close()
threading.Thread(target=serve, daemon=True).start()
print('ready', flush=True)
sys.stdin.read()
";

/// A server in a container, as it were: no process on the way from the client to it is one of the client's.
struct Container {
    service: std::process::Child,
}

impl Container {
    /// Starts the service; the program that a client of it is.
    fn start(root: &std::path::Path, server: &[&str]) -> (Self, McpTransport) {
        let socket = root.join("service").display().to_string();
        let mut command = std::process::Command::new("python3");
        command.args(["-c", SERVICE, &socket]).args(server);
        let mut service = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(service.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let args = ["-c", CLIENT, &socket].map(str::to_owned).into();
        let command = "python3".to_owned();
        (Self { service }, McpTransport::Stdio { command, args, env: BTreeMap::new() })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.service.stdin = None;
        self.service.wait().unwrap();
    }
}

struct Slow {
    bench: Bench,
    connection: Connection,
    manner: &'static str,
    _container: Option<Container>,
}

fn slow(manner: &'static str) -> Slow {
    let bench = Bench::new();
    let root = bench.root();
    let place = root.display().to_string();
    let local = |script: &str, manner: &str| {
        let args = ["-c", script, "server", &place, manner].map(str::to_owned).into();
        McpTransport::Stdio { command: "sh".to_owned(), args, env: BTreeMap::new() }
    };
    let (container, transport) = match manner {
        "behind-a-pipe" => (
            None,
            local(&format!("cat | sh -c '{}' server \"$1\" gate", SLOW.replace('\'', r"'\''")), ""),
        ),
        "in-a-container" => {
            let server = ["sh", "-c", SLOW, "server", &place, "gate"];
            let (container, transport) = Container::start(&root, &server);
            (Some(container), transport)
        }
        _ => (None, local(SLOW, manner)),
    };
    let connection = bench.pool.share(server(transport));
    Slow { bench, connection, manner, _container: container }
}

#[tokio::test]
async fn a_new_server_that_starts_slowly_is_started_once() {
    let check = async |Slow { bench, connection, manner, .. }: &Slow| {
        assert_eq!(connection.ready(PATIENCE).await, State::Connected, "{manner}");
        assert_eq!(connection.tools()[0].name(), "mcp__test__greet", "{manner}");
        assert_eq!(connection.server_info().unwrap().protocol, "2026-07-28", "{manner}");
        assert_eq!(connection.instructions().as_deref(), Some("Be kind."), "{manner}");
        let noted = |file: &str| std::fs::read_to_string(bench.root().join(file)).unwrap();
        assert_eq!(noted("starts"), "start\n", "{manner}");
        let heard = noted("heard");
        let first: Value = serde_json::from_str(heard.lines().next().unwrap()).unwrap();
        assert_eq!(first["method"], "tools/list", "no old greeting continues: {manner} {heard}");
        let version = &first["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version, "2026-07-28", "{manner} {heard}");
    };
    // A program that reads the question first may seem to be done with it.
    let still_starting = ["gate", "early", "behind-a-pipe", "in-a-container"].map(slow);
    let others = ["in-order", "other-order", "no-refusal"].map(slow);
    // When they are connected, every time limit that the first one could have exceeded is over.
    for other in &others {
        check(other).await;
    }
    for starting in &still_starting {
        std::fs::write(starting.bench.root().join("gate"), "").unwrap();
        check(starting).await;
    }
}

#[tokio::test]
async fn a_new_server_that_ends_when_it_is_greeted_is_started_over_and_not_greeted() {
    let Slow { bench, connection, .. } = slow("ends");
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    assert_eq!(connection.tools()[0].name(), "mcp__test__greet");
    let starts = std::fs::read_to_string(bench.root().join("starts")).unwrap();
    assert_eq!(starts, "start\nstart\n");
}

#[tokio::test]
async fn an_old_server_that_ends_at_the_question_is_started_over_with_a_plain_greeting() {
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}"#;
    let script = r#"echo start >> "$1"; read -r line; case "$line" in *'"initialize"'*) echo "$2"; cat >/dev/null ;; *) exit 1 ;; esac"#;
    let bench = Bench::new();
    let starts = bench.root().join("starts");
    let args = ["-c", script, "server", &starts.display().to_string(), answer].map(str::to_owned);
    let transport =
        McpTransport::Stdio { command: "sh".to_owned(), args: args.into(), env: BTreeMap::new() };
    let connection = bench.pool.share(server(transport));
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    assert_eq!(connection.server_info().unwrap().protocol, "2025-11-25");
    assert_eq!(std::fs::read_to_string(starts).unwrap(), "start\nstart\n");
}

#[tokio::test]
async fn a_silent_old_server_in_a_container_is_greeted_when_its_time_is_over() {
    let bench = Bench::with_env([("MCP_TIMEOUT", "4000")]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let (_container, transport) = Container::start(&bench.root(), &["python3", script, "silent"]);
    let connection = bench.pool.share(server(transport));
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    assert_eq!(call(&connection, "chat", json!({})).await, "said");
}
