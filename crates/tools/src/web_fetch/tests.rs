//! The tool against a server on this machine.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use centurion_permissions::HostRule;

use super::*;
use crate::testing::{call, context, text};

/// Answers each path with fixed bytes, and a path without an entry never.
struct Server {
    base: String,
    asked: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(answers: &[(&str, &str, &[u8])]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let answers: HashMap<String, Vec<u8>> = answers
            .iter()
            .map(|(path, head, body)| {
                let with_user = base.replace("://", "://user:pass@");
                let head = head.replace("{base}", &base).replace("{with}", &with_user);
                let length = body.len();
                let head = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n");
                let head = format!("{head}Connection: close\r\n\r\n");
                ((*path).to_owned(), [head.as_bytes(), body].concat())
            })
            .collect();
        let answers = Arc::new(answers);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                connections.spawn(answer(stream, Arc::clone(&answers)));
            }
        });
        Self { base, asked, _tasks: tasks }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn answer(stream: TcpStream, answers: Arc<HashMap<String, Vec<u8>>>) {
    let mut stream = BufReader::new(stream);
    let (mut path, mut agent) = (String::new(), String::new());
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        match line.trim_end() {
            "" => break,
            line if line.starts_with("GET ") => path = line.split(' ').nth(1).unwrap().to_owned(),
            line if line.to_lowercase().starts_with("user-agent: ") => line.clone_into(&mut agent),
            _ => {}
        }
    }
    assert!(agent.contains("centurion/"), "{agent}");
    match answers.get(&path) {
        // A client that has enough disconnects in the middle.
        Some(bytes) => drop(stream.write_all(bytes).await),
        None => std::future::pending().await,
    }
}

async fn fetch(server: &Server, path: &str) -> Result<ToolOutput, ToolError> {
    fetch_with(&WebFetch::default(), &server.url(path)).await
}

async fn fetch_with(tool: &WebFetch, url: &str) -> Result<ToolOutput, ToolError> {
    let scratch = tempfile::tempdir().unwrap();
    let context = context(scratch.path());
    let input = WebFetchInput { url: url.to_owned(), prompt: None, offset: 0 };
    tool.run(input, &context).await
}

#[tokio::test]
async fn pages_come_readable() {
    let server = Server::start(&[
        ("/html", "200 OK\r\nContent-Type: text/html", b"<title>T</title><p>Hello <b>you</b></p>"),
        ("/json", "200 OK\r\nContent-Type: application/json", b"{\"a\": 1}"),
        ("/latin", "200 OK\r\nContent-Type: text/plain; charset=latin1", b"caf\xe9"),
        ("/pdf", "200 OK\r\nContent-Type: application/pdf", b"%PDF-1.7"),
        ("/png", "200 OK\r\nContent-Type: image/png", b"not really"),
    ])
    .await;
    let output = fetch(&server, "/html#part").await.unwrap();
    assert_eq!(text(&output), format!("{}\n\n# T\n\nHello **you**", server.url("/html")));
    assert_eq!((&output.data["code"], &output.data["codeText"]), (&json!(200), &json!("OK")));
    let body = |output: &ToolOutput| text(output).split_once("\n\n").unwrap().1.to_owned();
    assert_eq!(body(&fetch(&server, "/json").await.unwrap()), "{\"a\": 1}");
    assert_eq!(body(&fetch(&server, "/latin").await.unwrap()), "café");
    let pdf = text(&fetch(&server, "/pdf").await.unwrap());
    assert!(pdf.contains("application/pdf, 8 bytes"), "{pdf}");
    let png = fetch(&server, "/png").await.unwrap();
    let data = BASE64_STANDARD.encode("not really");
    assert_eq!(png.content, [ToolResultContent::Image { media_type: "image/png".into(), data }]);
}

#[tokio::test]
async fn redirects_are_followed_at_home_and_named_abroad() {
    let server = Server::start(&[
        ("/a", "302 Found\r\nLocation: /b", b""),
        ("/b", "301 Moved Permanently\r\nLocation: {base}/c", b""),
        ("/c", "200 OK\r\nContent-Type: text/plain", b"arrived"),
        ("/out", "307 Temporary Redirect\r\nLocation: https://example.org/x?y", b""),
        ("/inside", "302 Found\r\nLocation: http://127.0.0.1:1/", b""),
        ("/loop", "302 Found\r\nLocation: /loop", b""),
        ("/bad", "302 Found\r\nLocation: http://[", b""),
    ])
    .await;
    let output = fetch(&server, "/a").await.unwrap();
    assert_eq!(text(&output), format!("{}\n\narrived", server.url("/c")));
    let abroad = fetch(&server, "/out").await.unwrap_err().to_string();
    assert!(abroad.ends_with("call WebFetch with https://example.org/x?y"), "{abroad}");
    let inside = fetch(&server, "/inside").await.unwrap_err().to_string();
    assert!(inside.contains("another host"), "{inside}");
    let endless = fetch(&server, "/loop").await.unwrap_err().to_string();
    assert!(endless.contains("more than 10 times"), "{endless}");
    let bad = fetch(&server, "/bad").await.unwrap_err().to_string();
    assert!(bad.contains("not an address"), "{bad}");
}

#[tokio::test]
async fn this_machine_is_reached_only_if_the_user_names_it() {
    let server = Server::start(&[("/", "200 OK\r\nContent-Type: text/plain", b"internal")]).await;
    let port = server.base.rsplit(':').next().unwrap().to_owned();
    let directory = tempfile::tempdir().unwrap();
    let mut context = context(directory.path());
    let set_rule = |context: &mut ToolContext, rule: HostRule| {
        let workspace = Arc::get_mut(&mut context.workspace).unwrap();
        workspace.host_rule = Arc::new(move |_| rule);
    };
    set_rule(&mut context, HostRule::Unnamed);
    for host in [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "LOCALHOST.",
        "x.localhost",
        "localhost%2e",
        "１２７.0.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
    ] {
        let url = format!("http://{host}:{port}/");
        let error = call(WebFetch::default(), &context, json!({ "url": url })).await.unwrap_err();
        assert!(error.to_string().contains("only if the user names it"), "{host}: {error}");
    }
    assert_eq!(server.asked(), 0);
    // A person's approval is for the written address.
    context.is_approved = true;
    let url = json!({ "url": server.url("/") });
    assert!(
        text(&call(WebFetch::default(), &context, url.clone()).await.unwrap()).contains("internal")
    );
    context.is_approved = false;
    set_rule(&mut context, HostRule::Named);
    for host in ["127.0.0.1", "localhost"] {
        let url = json!({ "url": format!("http://{host}:{port}/") });
        let output = call(WebFetch::default(), &context, url).await.unwrap();
        assert!(text(&output).contains("internal"), "{host}");
    }
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_followed() {
    // The answers of an attacker's name server, by the first part of the name.
    fn lookup(name: String) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>> {
        Box::pin(async move {
            let address: &[&str] = match name.split('.').next().unwrap() {
                "here" => &["127.0.0.1"],
                "six" => &["::1"],
                "mapped" => &["::ffff:127.0.0.1"],
                "cloud" => &["169.254.169.254"],
                "ec2" => &["fd00:ec2::254"],
                "nowhere" => &["0.0.0.0"],
                "both" => &["127.0.0.1", "::1", "169.254.1.1"],
                // One address is outside: a network for documents, where no host answers.
                _ => &["127.0.0.1", "192.0.2.1"],
            };
            let addresses = address.iter().map(|it| SocketAddr::new(it.parse().unwrap(), 0));
            Ok(addresses.collect())
        })
    }
    let server = Server::start(&[("/", "200 OK\r\nContent-Type: text/plain", b"internal")]).await;
    let port = server.base.rsplit(':').next().unwrap().to_owned();
    let limits = Limits { time: Duration::from_secs(1), ..Limits::default() };
    let tool =
        || WebFetch { fetcher: Fetcher::with_lookup(limits, lookup), cache: Cache::default() };
    let directory = tempfile::tempdir().unwrap();
    let mut context = context(directory.path());
    Arc::get_mut(&mut context.workspace).unwrap().host_rule = Arc::new(|_| HostRule::Unnamed);
    for is_approved in [false, true] {
        // A person's approval is for the name, not for its address.
        context.is_approved = is_approved;
        for name in ["here", "six", "mapped", "cloud", "ec2", "nowhere", "both"] {
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{name}.example:{port}/");
                let error = call(tool(), &context, json!({ "url": url })).await.unwrap_err();
                let told = error.to_string();
                assert!(told.contains("only if the user names it"), "{url}: {told}");
            }
        }
        let url = format!("http://partly.example:{port}/");
        let error = call(tool(), &context, json!({ "url": url })).await.unwrap_err().to_string();
        assert!(!error.contains("internal"), "{error}");
    }
    assert_eq!(server.asked(), 0, "nobody has come");
}

#[tokio::test]
async fn a_redirect_to_an_address_with_a_password_is_refused() {
    let server = Server::start(&[("/a", "302 Found\r\nLocation: {with}/b", b"")]).await;
    let error = fetch(&server, "/a").await.unwrap_err().to_string();
    assert!(error.contains("name and password"), "{error}");
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a_refusal_says_what_the_server_said() {
    let missing = "no such thing ".repeat(1_000);
    let server = Server::start(&[
        ("/missing", "404 Not Found\r\nContent-Type: text/plain", missing.as_bytes()),
        ("/broken", "500 Internal Server Error", b""),
    ])
    .await;
    let error = fetch(&server, "/missing").await.unwrap_err().to_string();
    assert!(error.contains("answered 404 Not Found\nno such thing"), "{error}");
    assert!(error.len() < 2_200);
    let error = fetch(&server, "/broken").await.unwrap_err().to_string();
    assert!(error.ends_with("answered 500 Internal Server Error"), "{error}");
}

#[tokio::test]
async fn limits_hold() {
    let large = "word ".repeat(10_000);
    let server =
        Server::start(&[("/large", "200 OK\r\nContent-Type: text/plain", large.as_bytes())]).await;
    let limits = Limits { download: 1_000, time: Duration::from_secs(30) };
    let output = fetch_with(&WebFetch::new(limits), &server.url("/large")).await.unwrap();
    assert_eq!(output.data["bytes"], 1_000);
    assert!(text(&output).ends_with("[Only the first part of it was loaded.]"));

    let limits = Limits { time: Duration::from_millis(50), ..Limits::default() };
    let error = fetch_with(&WebFetch::new(limits), &server.url("/never")).await.unwrap_err();
    assert!(error.to_string().contains("no answer within 0.05 seconds"), "{error}");
}

#[tokio::test]
async fn a_host_that_is_not_there_is_said_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = fetch_with(&WebFetch::default(), &format!("http://{address}/")).await.unwrap_err();
    assert!(error.to_string().contains("cannot connect"), "{error}");
    let error = fetch_with(&WebFetch::default(), "no address").await.unwrap_err();
    assert!(matches!(error, ToolError::Input(_)), "{error}");
}

#[tokio::test]
async fn a_page_is_remembered_for_a_quarter_of_an_hour() {
    let server = Server::start(&[
        ("/page", "200 OK\r\nContent-Type: text/plain", b"text"),
        ("/gone", "410 Gone", b""),
    ])
    .await;
    let tool = WebFetch::default();
    for _ in 0..3 {
        fetch_with(&tool, &server.url("/page")).await.unwrap();
    }
    assert_eq!(server.asked(), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(16)).await;
    tokio::time::resume();
    fetch_with(&tool, &server.url("/page")).await.unwrap();
    assert_eq!(server.asked(), 2);
    // A failed fetch is tried again.
    for _ in 0..2 {
        fetch_with(&tool, &server.url("/gone")).await.unwrap_err();
    }
    assert_eq!(server.asked(), 4);
}

#[tokio::test]
async fn a_cancelled_fetch_does_not_wait() {
    let server = Server::start(&[]).await;
    let scratch = tempfile::tempdir().unwrap();
    let context = context(scratch.path());
    let input: Value = json!({ "url": server.url("/never") });
    let cancel = async {
        while server.asked() == 0 {
            tokio::task::yield_now().await;
        }
        context.cancel.cancel();
    };
    let (result, ()) = tokio::join!(call(WebFetch::default(), &context, input), cancel);
    assert!(matches!(result, Err(ToolError::Cancelled { partial: None })), "{result:?}");
}
