//! Turns the bytes of a streaming answer into events: splits server-sent events and passes each payload to a provider's
//! [`Decoder`]. Comments and pings keep a connection alive, but not for ever.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use sse_stream::SseByteStream;
use tokio::time::Instant;

use crate::{EventStream, ModelError, StreamEvent, failure, http, limits};

/// The time to wait for the end of a complete answer. A connection whose answer was read to the end can be reused; a
/// slow one is not worth waiting for.
const DRAIN: Duration = Duration::from_millis(50);

/// The factor on the longest silence that bounds the time without content, whatever pings come meanwhile.
const SILENCES_WITHOUT_CONTENT: u32 = 3;

/// A provider's decoder for the payloads of one answer. Does no I/O.
pub(crate) trait Decoder: Send + 'static {
    /// Receives the headers before the first payload.
    fn begin(&mut self, headers: &HeaderMap);

    /// Decodes the data of one event.
    fn read(&mut self, data: &[u8]) -> Result<Vec<StreamEvent>, ModelError>;

    /// Handles the end of the body.
    fn end(&mut self) -> Result<Vec<StreamEvent>, ModelError>;

    /// Whether `Finish` has been returned.
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
        decode_within(http::bytes_of(response, silence), decoder, Some(silence))
    };
    stream::once(opening).flatten().boxed()
}

/// Decodes an answer from its bytes, in chunks of any size.
pub(crate) fn decode<D: Decoder>(
    bytes: impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static,
    decoder: D,
) -> EventStream {
    decode_within(bytes, decoder, None)
}

fn decode_within<D: Decoder>(
    bytes: impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static,
    decoder: D,
    silence: Option<Duration>,
) -> EventStream {
    let without_content = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&without_content);
    let bytes = bytes.map(move |chunk| {
        let chunk = chunk?;
        let before = counted.fetch_add(chunk.len(), Ordering::Relaxed);
        limits::check_bytes_without_content(before.saturating_add(chunk.len()))?;
        Ok::<_, ModelError>(chunk)
    });
    let reading = Reading {
        payloads: SseByteStream::new(bytes).boxed(),
        decoder,
        ready: VecDeque::new(),
        is_over: false,
        without_content,
        patience: silence.map(|silence| silence.saturating_mul(SILENCES_WITHOUT_CONTENT)),
        last_content: Instant::now(),
    };
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
    /// Bytes since the last piece of content: the byte stream adds, this resets.
    without_content: Arc<AtomicUsize>,
    /// The longest time between two pieces of content.
    patience: Option<Duration>,
    last_content: Instant,
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
            match self.payload().await? {
                Some(Ok(sse)) => {
                    if let Some(data) = sse.data {
                        self.ready.extend(self.decoder.read(data.as_bytes())?);
                        self.note_content();
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

impl<D> Reading<D> {
    async fn payload(
        &mut self,
    ) -> Result<Option<Result<sse_stream::Sse, sse_stream::Error>>, ModelError> {
        let Some(patience) = self.patience else { return Ok(self.payloads.next().await) };
        tokio::time::timeout_at(self.last_content + patience, self.payloads.next())
            .await
            .map_err(|_| failure::silent("the answer stopped growing", patience))
    }

    /// Resets the counts without content when the last payload brought some.
    fn note_content(&mut self) {
        if self.ready.iter().any(is_content) {
            self.without_content.store(0, Ordering::Relaxed);
            if self.patience.is_some() {
                self.last_content = Instant::now();
            }
        }
    }
}

fn is_content(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::Ping => false,
        StreamEvent::Delta { delta, .. } => !delta.is_empty(),
        _ => true,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnthropicReader, ErrorKind};

    #[tokio::test(start_paused = true)]
    async fn pings_keep_an_answer_alive_for_a_while_and_not_for_ever() {
        let silence = Duration::from_mins(10);
        let start = "data: {\"type\":\"message_start\",\"message\":{}}\n\n";
        let pings = stream::unfold(0_usize, |sent| async move {
            tokio::time::sleep(Duration::from_secs(20)).await;
            let text = if sent == 0 { "" } else { "data: {\"type\":\"ping\"}\n\n: still here\n\n" };
            Some((Ok(Bytes::from_static(text.as_bytes())), sent + 1))
        });
        let bytes = stream::iter([Ok(Bytes::from_static(start.as_bytes()))]).chain(pings);
        let began = Instant::now();
        let events: Vec<_> =
            decode_within(bytes, AnthropicReader::default(), Some(silence)).collect().await;
        let error = events.last().unwrap().as_ref().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
        assert_eq!(began.elapsed(), silence * SILENCES_WITHOUT_CONTENT);
        assert!(events.len() > 50, "pings are told");
    }
}
