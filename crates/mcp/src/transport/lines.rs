//! The transport to a server that is a local program: one message a line.
//!
//! The SDK writes; this module reads, because the SDK drops a line that it cannot parse, and with it the answer for
//! which a call waits.

use std::future::Future;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader, Empty};

use super::message::{self, Incoming, MOST_MESSAGE, Outline};

/// The most bytes of one line that are skipped: a longer line ends the connection.
const MOST_SKIPPED: usize = 256 * 1024 * 1024;

/// The reason that this side gave up a connection, if it did.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenUp(Arc<Mutex<Option<String>>>);

impl GivenUp {
    pub(crate) fn reason(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn because(&self, reason: String) {
        *self.0.lock() = Some(reason);
    }
}

pub(crate) struct LineTransport<R, W: AsyncWrite> {
    reader: BufReader<R>,
    /// The incomplete line so far.
    line: Vec<u8>,
    /// Set while the rest of a line that is too long is skipped.
    skipped: Option<Skipped>,
    given_up: GivenUp,
    writer: AsyncRwTransport<RoleClient, Empty, W>,
}

struct Skipped {
    outline: Outline,
    length: usize,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(crate) fn new(reader: R, writer: W, given_up: GivenUp) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            line: Vec::new(),
            skipped: None,
            given_up,
            writer: AsyncRwTransport::new_client(tokio::io::empty(), writer),
        }
    }

    /// Reads to the end of a line. Keeps the bytes so far if it is dropped while it waits.
    async fn read_to_line_end(&mut self) -> io::Result<Line> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(Line::Last);
            }
            let end = memchr::memchr(b'\n', bytes);
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            let taken = piece.len() + usize::from(end.is_some());
            match &mut self.skipped {
                Some(skipped) => skipped.push(piece),
                None if self.line.len() + piece.len() <= MOST_MESSAGE => {
                    self.line.extend_from_slice(piece);
                }
                None => {
                    let mut skipped = Skipped { outline: Outline::default(), length: 0 };
                    skipped.push(&self.line);
                    skipped.push(piece);
                    self.line = Vec::new();
                    self.skipped = Some(skipped);
                }
            }
            self.reader.consume(taken);
            if self.skipped.as_ref().is_some_and(|skipped| skipped.length > MOST_SKIPPED) {
                return Ok(Line::Endless);
            }
            if end.is_some() {
                return Ok(Line::Whole);
            }
        }
    }

    /// The message of the line that was read.
    fn message(&mut self) -> Option<Incoming> {
        if let Some(skipped) = self.skipped.take() {
            let length = skipped.length;
            tracing::warn!(length, "an MCP server sent a line that is too long");
            return skipped.outline.refusal(&format!(
                "it has {length} bytes, more than the {MOST_MESSAGE} that a message may have"
            ));
        }
        let message = message::parse(&self.line);
        self.line.clear();
        self.line.shrink_to(MOST_KEPT);
        message
    }
}

/// The capacity for a line that is kept for the next.
const MOST_KEPT: usize = 64 * 1024;

enum Line {
    Whole,
    /// Nothing more comes.
    Last,
    Endless,
}

impl Skipped {
    fn push(&mut self, piece: &[u8]) {
        self.outline.push(piece);
        self.length += piece.len();
    }
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.writer.send(message)
    }

    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            match self.read_to_line_end().await {
                Ok(Line::Whole) => {
                    if let Some(message) = self.message() {
                        return Some(message);
                    }
                }
                Ok(Line::Last) => return None,
                Ok(Line::Endless) => {
                    let reason = format!("it sent a line of more than {MOST_SKIPPED} bytes");
                    self.given_up.because(reason);
                    return None;
                }
                Err(error) => {
                    tracing::debug!(%error, "the output of an MCP server cannot be read");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writer.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    type Pipe = tokio::io::DuplexStream;

    fn transport() -> (LineTransport<Pipe, tokio::io::Sink>, Pipe) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        (LineTransport::new(ours, tokio::io::sink(), GivenUp::default()), theirs)
    }

    fn answer(id: u32) -> String {
        json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string() + "\n"
    }

    fn told(message: Option<Incoming>) -> Value {
        serde_json::to_value(message.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_an_error_for_its_call_and_the_next_is_read() {
        for id_comes_first in [true, false] {
            let (mut transport, mut server) = transport();
            let writing = async move {
                let (head, tail) = if id_comes_first {
                    (r#"{"jsonrpc":"2.0","id":7,"result":""#, "\"}\n")
                } else {
                    (r#"{"result":""#, "\",\"jsonrpc\":\"2.0\",\"id\":7}\n")
                };
                server.write_all(head.as_bytes()).await.unwrap();
                for _ in 0..17 {
                    server.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
                }
                server.write_all(tail.as_bytes()).await.unwrap();
                server.write_all(b"a line of a log\n\n").await.unwrap();
                server.write_all(answer(8).as_bytes()).await.unwrap();
                server
            };
            let reading = async {
                let refused = told(transport.receive().await);
                assert_eq!(refused["id"], 7);
                assert!(
                    refused["error"]["message"].as_str().unwrap().contains("bytes"),
                    "{refused}"
                );
                assert_eq!(told(transport.receive().await)["id"], 8);
                assert!(transport.line.capacity() <= MOST_KEPT);
            };
            tokio::join!(writing, reading);
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_the_end_of_the_connection() {
        let given_up = GivenUp::default();
        let endless = tokio::io::repeat(b'x').take(1 << 34);
        let mut transport = LineTransport::new(endless, tokio::io::sink(), given_up.clone());
        assert!(transport.receive().await.is_none());
        assert!(given_up.reason().unwrap().contains("a line of more than"));
        assert!(transport.reader.get_ref().limit() > 1 << 33, "the rest is not read");
        assert!(transport.line.capacity() <= MOST_MESSAGE * 2);
    }

    #[tokio::test]
    async fn a_line_that_comes_in_pieces_survives_a_cancelled_reader() {
        let (mut transport, mut server) = transport();
        let text = answer(9);
        for byte in text.as_bytes() {
            let waiting = transport.receive();
            let message = tokio::time::timeout(std::time::Duration::ZERO, waiting).await;
            assert!(message.is_err(), "the line is not whole");
            server.write_all(&[*byte]).await.unwrap();
        }
        assert_eq!(told(transport.receive().await)["id"], 9);
        drop(server);
        assert!(transport.receive().await.is_none());
    }
}
