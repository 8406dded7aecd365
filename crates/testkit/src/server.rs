//! An HTTP server that says what a test wants and remembers what it was asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::{Fault, Reply};

/// The deadline for events that should happen at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// One request that the server received.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// The number of the connection, counted from zero.
    pub connection: usize,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// If it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

type Handler = Box<dyn Fn(&Recorded) -> Reply + Send + Sync>;

struct Shared {
    handler: Handler,
    /// Whether requests are kept.
    remembers: bool,
    requests: Mutex<Vec<Recorded>>,
    arrived: Condvar,
    /// Bytes of bodies that were handed to connections.
    sent: AtomicU64,
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.requests.lock()
    }
}

/// A running server. Dropping it closes its port and all its connections.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Gives each request the next reply; past the last one, an error that says so.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Mutex<VecDeque<Reply>> = Mutex::new(replies.into_iter().collect());
        Self::start_with(move |_| {
            let next = replies.lock().pop_front();
            // A client does not try this again.
            next.unwrap_or_else(|| Reply::error(400, "test_error", "the test has no reply left"))
        })
    }

    /// Lets a function answer: for requests that come side by side.
    ///
    /// # Panics
    /// If the machine has no port or no thread left.
    pub fn start_with(handler: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Self {
        Self::serving(Box::new(handler), true)
    }

    /// The same without a memory of the requests, for more than a test can hold.
    pub fn start_forgetful(handler: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Self {
        Self::serving(Box::new(handler), false)
    }

    fn serving(handler: Handler, remembers: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("the address of a listener");
        let shared = Arc::new(Shared {
            handler,
            remembers,
            requests: Mutex::default(),
            arrived: Condvar::new(),
            sent: AtomicU64::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime for the server");
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests so far, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests().clone()
    }

    /// The last request.
    ///
    /// # Panics
    /// If there was none.
    pub fn last(&self) -> Recorded {
        self.shared.requests().last().expect("a request").clone()
    }

    /// The bytes of bodies sent so far: a client that hangs up takes no more.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Blocks until this many requests have come.
    ///
    /// # Panics
    /// If they do not come in a reasonable time.
    pub fn wait_for(&self, count: usize) -> Vec<Recorded> {
        let mut requests = self.shared.requests();
        let waited =
            self.shared.arrived.wait_while_for(&mut requests, |all| all.len() < count, PATIENCE);
        assert!(!waited.timed_out(), "{} of {count} requests came", requests.len());
        requests.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The thread may have ended by itself.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A port on this machine on which no program listens.
///
/// # Panics
/// If the machine has no port left.
pub fn closed_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("the address of a listener").port()
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    // Dropping the set with this future ends every connection.
    let mut connections = tokio::task::JoinSet::new();
    let mut count = 0;
    while let Ok((stream, _)) = listener.accept().await {
        let (shared, connection) = (Arc::clone(&shared), count);
        count += 1;
        connections.spawn(async move {
            // Small events must not wait for each other.
            let _ = stream.set_nodelay(true);
            let service =
                service_fn(move |request| answer(request, Arc::clone(&shared), connection));
            let http = hyper::server::conn::http1::Builder::new();
            // A client that goes away is part of many tests.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    connection: usize,
) -> Result<Response<Pieces>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let recorded = Recorded {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: headers.collect(),
        body,
        connection,
    };
    let reply = (shared.handler)(&recorded);
    if shared.remembers {
        shared.requests().push(recorded);
    }
    shared.arrived.notify_all();
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    if reply.fault == Some(Fault::BlackHole) {
        std::future::pending::<()>().await;
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Pieces::new(reply, shared)).expect("a reply with proper headers"))
}

/// A body that is sent piece by piece and ends as its fault says.
struct Pieces {
    steps: VecDeque<Step>,
    shared: Arc<Shared>,
}

enum Step {
    Send(Bytes),
    Repeat(Bytes, usize),
    /// Lets what was sent leave before anything else happens.
    Flush,
    Reset,
    Silence,
}

impl Pieces {
    fn new(reply: Reply, shared: Arc<Shared>) -> Self {
        const BROKEN: &str = "event: content_block_delta\ndata: {\"type\":,,}\n\n";
        const GARBAGE: &[u8] = b"data: \xff\xfe\xfd\n\n";
        const ERROR: &str = concat!(
            "event: error\ndata: {\"type\":\"error\",\"error\":",
            "{\"type\":\"overloaded_error\",\"message\":\"overloaded\"}}\n\n"
        );
        let mut steps: VecDeque<Step> =
            reply.pieces.into_iter().map(|piece| Step::Send(piece.into())).collect();
        steps.extend(reply.flood.map(|(piece, times)| Step::Repeat(piece.into(), times)));
        let mut cut = |after: usize, insert: Option<Step>, rest_follows: bool| {
            let rest = steps.split_off(after.min(steps.len()));
            steps.push_back(Step::Flush);
            steps.extend(insert);
            if rest_follows {
                steps.extend(rest);
            }
        };
        match reply.fault {
            None | Some(Fault::BlackHole) => {}
            Some(Fault::Reset { after }) => cut(after, Some(Step::Reset), false),
            Some(Fault::Silence { after }) => cut(after, Some(Step::Silence), false),
            Some(Fault::End { after }) => cut(after, None, false),
            Some(Fault::Malformed { after }) => cut(after, Some(Step::Send(BROKEN.into())), true),
            Some(Fault::Garbage { after }) => {
                cut(after, Some(Step::Send(Bytes::from_static(GARBAGE))), true);
            }
            Some(Fault::StreamError { after }) => cut(after, Some(Step::Send(ERROR.into())), false),
        }
        Self { steps, shared }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.steps.pop_front() {
            None | Some(Step::Repeat(_, 0)) => Poll::Ready(None),
            Some(Step::Send(piece)) => {
                self.shared.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Some(Step::Repeat(piece, times)) => {
                self.steps.push_front(Step::Repeat(piece.clone(), times - 1));
                self.shared.sent.fetch_add(piece.len() as u64, Ordering::Relaxed);
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Some(Step::Flush) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            // The server closes a connection whose body fails.
            Some(Step::Reset) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            Some(Step::Silence) => {
                // Nothing wakes this body: it ends with its connection.
                self.steps.push_front(Step::Silence);
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    fn ask(server: &Server) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let request = "POST /v1/messages?x HTTP/1.1\r\nhost: test\r\nX-Mark: 7\r\n\
                       content-length: 2\r\nconnection: close\r\n\r\n{}";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn replies_come_in_order_and_requests_are_kept() {
        let server = Server::start([Reply::text("hello"), Reply::rate_limit("7")]);
        let first = ask(&server);
        assert!(first.starts_with("HTTP/1.1 200") && first.contains("message_stop"), "{first}");
        let second = ask(&server);
        assert!(
            second.starts_with("HTTP/1.1 429") && second.contains("retry-after: 7"),
            "{second}"
        );
        assert!(ask(&server).starts_with("HTTP/1.1 400"));
        let requests = server.wait_for(3);
        assert_eq!(requests[0].header("x-mark"), Some("7"));
        assert_eq!(requests[0].path, "/v1/messages?x");
        assert_eq!(requests[0].json(), serde_json::json!({}));
        assert_eq!(requests[1].connection, 1);
    }

    #[test]
    fn a_reset_cuts_the_answer_short() {
        let server = Server::start([Reply::text("hello").fault(Fault::Reset { after: 2 })]);
        let answer = ask(&server);
        assert!(answer.contains("message_start") && !answer.contains("message_stop"), "{answer}");
        assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
    }
}
