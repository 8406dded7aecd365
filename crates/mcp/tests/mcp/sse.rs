//! The older transport to remote servers.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use centurion_config::mcp::McpTransport;
use centurion_mcp::State;
use centurion_testkit::{Reply, Server};
use http_body_util::BodyExt as _;
use http_body_util::combinators::BoxBody;
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bench::{Bench, PATIENCE, call, remote, server};
use crate::web;

/// A server with one stream at a time. Answers go out on the stream.
#[derive(Default)]
struct OldServer {
    stream: Mutex<Option<mpsc::UnboundedSender<String>>>,
    opened: Mutex<usize>,
    keys: Mutex<Vec<Option<String>>>,
}

type Body = BoxBody<Bytes, Infallible>;

impl OldServer {
    async fn serve(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let key = request.headers().get("x-key").map(|key| key.to_str().unwrap().to_owned());
        self.keys.lock().push(key);
        if request.method() == Method::GET {
            let (sender, receiver) = mpsc::unbounded_channel();
            sender.send("event: endpoint\ndata: /post?session=1\n\n".to_owned()).unwrap();
            *self.stream.lock() = Some(sender);
            *self.opened.lock() += 1;
            let body = Events(receiver).boxed();
            let response = Response::builder().header("content-type", "text/event-stream");
            return Ok(response.body(body).unwrap());
        }
        assert_eq!(request.uri().to_string(), "/post?session=1");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let message = serde_json::from_slice(&body).unwrap();
        if let Some(answer) = web::answer(&message) {
            let event = format!("event: message\r\ndata: {answer}\r\n\r\n: a comment\n\n");
            self.stream.lock().as_ref().unwrap().send(event).unwrap();
        }
        Ok(Response::builder().status(202).body(Body::default()).unwrap())
    }

    fn hang_up(&self) {
        self.stream.lock().take();
    }
}

struct Events(mpsc::UnboundedReceiver<String>);

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event.into()))))
    }
}

async fn start(old: &Arc<OldServer>) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    let old = Arc::clone(old);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let old = Arc::clone(&old);
            connections.spawn(async move {
                let service = service_fn(move |request| Arc::clone(&old).serve(request));
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (url, tasks)
}

#[tokio::test]
async fn an_old_server_is_talked_to_and_found_again_when_it_hangs_up() {
    let old = Arc::new(OldServer::default());
    let (url, _tasks) = start(&old).await;
    let bench = Bench::new();
    let mut place = remote(url);
    place.headers.insert("X-Key".into(), "k".into());
    let connection = bench.pool.share(server(McpTransport::Sse(place)));
    assert_eq!(connection.ready(PATIENCE).await, State::Connected);
    assert_eq!(call(&connection, "echo", json!({ "a": 1 })).await, "{\"a\":1}");
    assert!(old.keys.lock().iter().all(|key| key.as_deref() == Some("k")));

    let mut changes = connection.changes();
    old.hang_up();
    let is = |state: State| {
        let connection = connection.clone();
        move |_: &u64| connection.state() == state
    };
    tokio::time::timeout(PATIENCE, changes.wait_for(is(State::Pending))).await.unwrap().unwrap();
    // Tools stay offered during a reconnect, and a call waits for it.
    assert_eq!(connection.tools().len(), 1);
    assert_eq!(call(&connection, "echo", json!({ "b": 2 })).await, "{\"b\":2}");
    assert_eq!(connection.state(), State::Connected);
    assert_eq!(*old.opened.lock(), 2);
}

#[tokio::test]
async fn what_is_no_old_server_is_told() {
    let bench = Bench::new();
    let elsewhere = "event: endpoint\ndata: http://elsewhere.example/post\n\n";
    for (reply, words) in [
        (Reply::status(404), "HTTP 404"),
        (Reply::status(200).header("content-type", "text/html").body("<p>"), "no stream of events"),
        (Reply::events([elsewhere]), "not a place of its own"),
        (Reply::status(401), "centurion mcp login test"),
    ] {
        let web = Server::start_with(move |_| reply.clone());
        let place = remote(format!("{}/sse", web.url()));
        let state = bench.pool.share(server(McpTransport::Sse(place))).ready(PATIENCE).await;
        assert!(state.reason().is_some_and(|reason| reason.contains(words)), "{state:?}");
    }
}
