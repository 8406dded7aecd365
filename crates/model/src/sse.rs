//! From the bytes of a streaming answer to its events: splits server-sent events and hands each
//! payload to a provider's [`Decoder`].

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use sse_stream::SseByteStream;

use crate::{EventStream, ModelError, StreamEvent, failure, http};

/// How long the end of a complete answer is waited for. A connection whose answer was read to the
/// end can be used again; one that dawdles is not worth waiting for.
const DRAIN: Duration = Duration::from_millis(50);

/// A provider's reading of the payloads of one answer. Does no I/O.
pub(crate) trait Decoder: Send + 'static {
    /// Told the headers before the first payload.
    fn begin(&mut self, headers: &HeaderMap);

    /// Reads the data of one event.
    fn read(&mut self, data: &[u8]) -> Result<Vec<StreamEvent>, ModelError>;

    /// Told that the body has ended.
    fn end(&mut self) -> Result<Vec<StreamEvent>, ModelError>;

    /// Whether `Finish` has been given out.
    fn is_finished(&self) -> bool;
}

/// Sends a request when first polled, then reads its answer.
pub(crate) fn events<D: Decoder>(
    request: impl Future<Output = Result<Response, ModelError>> + Send + 'static,
    silence: Duration,
    mut decoder: D,
) -> EventStream {
    let opening = async move {
        let response = match request.await {
            Ok(response) => response,
            Err(error) => return failed(error),
        };
        if let Some(kind) = wrong_type(response.headers()) {
            let text = format!("the server answered with {kind} instead of an event stream");
            return failed(failure::malformed(text));
        }
        decoder.begin(response.headers());
        decode(http::bytes_of(response, silence), decoder)
    };
    stream::once(opening).flatten().boxed()
}

/// Reads an answer from its bytes, however they are cut.
pub(crate) fn decode<D: Decoder>(
    bytes: impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static,
    decoder: D,
) -> EventStream {
    let payloads = SseByteStream::new(bytes).boxed();
    let reading = Reading { payloads, decoder, ready: VecDeque::new(), is_over: false };
    stream::unfold(reading, |mut reading| async {
        let next = reading.next().await.transpose()?;
        reading.is_over |= next.is_err();
        Some((next, reading))
    })
    .boxed()
}

struct Reading<D> {
    payloads: Pin<Box<dyn Stream<Item = Result<sse_stream::Sse, sse_stream::Error>> + Send>>,
    decoder: D,
    /// Events that one payload gave at once.
    ready: VecDeque<StreamEvent>,
    is_over: bool,
}

impl<D: Decoder> Reading<D> {
    async fn next(&mut self) -> Result<Option<StreamEvent>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.payloads.next().await {
                Some(Ok(sse)) => {
                    if let Some(data) = sse.data {
                        self.ready.extend(self.decoder.read(data.as_bytes())?);
                    }
                }
                Some(Err(error)) => return Err(broken(error)),
                None => {
                    self.ready.extend(self.decoder.end()?);
                    self.is_over = true;
                }
            }
            if self.decoder.is_finished() && !self.is_over {
                self.is_over = true;
                let rest = async { while let Some(Ok(_)) = self.payloads.next().await {} };
                let _ = tokio::time::timeout(DRAIN, rest).await;
            }
        }
    }
}

fn failed(error: ModelError) -> EventStream {
    stream::once(async { Err(error) }).boxed()
}

/// The content type, if it is one that an event stream cannot have.
fn wrong_type(headers: &HeaderMap) -> Option<&str> {
    let kind = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let plain = kind.split(';').next().unwrap_or(kind).trim();
    (plain.eq_ignore_ascii_case("text/html") || plain.eq_ignore_ascii_case("application/json"))
        .then_some(plain)
}

fn broken(error: sse_stream::Error) -> ModelError {
    match error {
        sse_stream::Error::Body(source) => match source.downcast::<ModelError>() {
            Ok(error) => *error,
            Err(other) => failure::malformed(format!("the answer cannot be read: {other}")),
        },
        other => failure::malformed(format!("the answer is no event stream: {other}")),
    }
}
