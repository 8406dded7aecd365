//! Frames: JSON values, one a line, each of bounded size and complete within a bounded time.

use std::io;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

/// The capacity for a frame that is kept for the next.
const MOST_KEPT: usize = 16 * 1024;

/// The time limits of a peer.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until a frame begins; `None` means no limit.
    pub until_next: Option<Duration>,
    /// From the first byte until a frame is complete, and for the other side to read written bytes.
    pub for_one: Duration,
}

/// The reason that frames can no longer be read or written. The connection is of no use after it.
#[derive(Debug, Error)]
pub enum FrameError {
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
    #[error("a frame has more than {0} bytes")]
    TooLong(usize),
    #[error("the connection ended in the middle of a frame")]
    Torn,
    #[error("the other side took too long")]
    Late,
    #[error("a frame cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// Reads frames. Dropping a read while it waits loses nothing.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: BufReader<R>,
    /// The incomplete frame so far.
    line: Vec<u8>,
    /// Whether the line was returned and may be overwritten.
    is_taken: bool,
    most: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(reader: R, most: usize) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), is_taken: false, most }
    }

    /// The next frame; `None` if the other side has closed.
    pub async fn read<T: DeserializeOwned>(
        &mut self,
        patience: Patience,
    ) -> Result<Option<T>, FrameError> {
        if std::mem::take(&mut self.is_taken) {
            self.line.clear();
            self.line.shrink_to(MOST_KEPT);
        }
        if self.line.is_empty() {
            let first = self.reader.fill_buf();
            let first = match patience.until_next {
                Some(until_next) => {
                    timeout(until_next, first).await.map_err(|_| FrameError::Late)?
                }
                None => first.await,
            };
            if first?.is_empty() {
                return Ok(None);
            }
        }
        let whole = timeout(patience.for_one, self.read_frame()).await;
        whole.map_err(|_| FrameError::Late)??;
        self.is_taken = true;
        Ok(Some(serde_json::from_slice(&self.line)?))
    }

    async fn read_frame(&mut self) -> Result<(), FrameError> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Err(FrameError::Torn);
            }
            let end = memchr::memchr(b'\n', bytes);
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if self.line.len() + piece.len() > self.most {
                return Err(FrameError::TooLong(self.most));
            }
            self.line.extend_from_slice(piece);
            let taken = piece.len() + usize::from(end.is_some());
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}

/// Writes frames.
#[derive(Debug)]
pub struct FrameWriter<W> {
    writer: W,
    most: usize,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub fn new(writer: W, most: usize) -> Self {
        Self { writer, most }
    }

    /// Writes a frame. Does not begin one that is too long for the other side.
    pub async fn write(
        &mut self,
        frame: &impl Serialize,
        wait: Duration,
    ) -> Result<(), FrameError> {
        let mut line = serde_json::to_vec(frame)?;
        if line.len() > self.most {
            return Err(FrameError::TooLong(self.most));
        }
        line.push(b'\n');
        timeout(wait, self.writer.write_all(&line)).await.map_err(|_| FrameError::Late)??;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SOON: Patience =
        Patience { until_next: Some(Duration::from_secs(5)), for_one: Duration::from_secs(2) };

    async fn read_all(bytes: &[u8], most: usize) -> (Vec<Value>, Option<FrameError>) {
        let mut reader = FrameReader::new(bytes, most);
        let mut frames = Vec::new();
        loop {
            match reader.read(SOON).await {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return (frames, None),
                Err(error) => return (frames, Some(error)),
            }
        }
    }

    #[tokio::test]
    async fn what_is_too_long_torn_or_no_json_ends_the_reading_and_nothing_before_it() {
        let (frames, end) = read_all(b"1\n[2]\n", 100).await;
        assert!(end.is_none() && frames == [json!(1), json!([2])]);
        let (frames, end) = read_all(b"1\n[2", 100).await;
        assert!(matches!(end, Some(FrameError::Torn)) && frames.len() == 1);
        let (frames, end) = read_all(b"1\n\"xxxxx\"\n", 6).await;
        assert!(matches!(end, Some(FrameError::TooLong(6))) && frames.len() == 1);
        for no_json in [&b"\n"[..], b"nonsense\n", b"\xff\xfe\n", b"{\"a\":\n"] {
            let (frames, end) = read_all(no_json, 100).await;
            assert!(matches!(end, Some(FrameError::Unreadable(_))) && frames.is_empty());
        }
        let mut writer = FrameWriter::new(Vec::new(), 6);
        let long = writer.write(&"xxxxx", SOON.for_one).await;
        assert!(matches!(long, Err(FrameError::TooLong(6))));
        writer.write(&"xxxx", SOON.for_one).await.unwrap();
        assert_eq!(writer.writer, b"\"xxxx\"\n");
    }

    #[tokio::test(start_paused = true)]
    async fn no_peer_is_waited_for_longer_than_agreed() {
        let (mut one, two) = tokio::io::duplex(16);
        let mut reader = FrameReader::new(two, 100);
        assert!(matches!(reader.read::<Value>(SOON).await, Err(FrameError::Late)), "no frame");
        one.write_all(b"[1").await.unwrap();
        assert!(matches!(reader.read::<Value>(SOON).await, Err(FrameError::Late)), "half a frame");
        let (one, _two) = tokio::io::duplex(16);
        let mut writer = FrameWriter::new(one, 100);
        let slow = writer.write(&"x".repeat(50), SOON.for_one).await;
        assert!(matches!(slow, Err(FrameError::Late)), "a reader that does not read");
    }

    #[tokio::test]
    async fn a_read_that_is_dropped_loses_nothing() {
        let (mut one, two) = tokio::io::duplex(64);
        let mut reader = FrameReader::new(two, 100);
        let forever = Patience { until_next: None, ..SOON };
        for byte in b"[12,34]\n[5]\n" {
            one.write_all(&[*byte]).await.unwrap();
            if *byte != b'\n' {
                let unfinished = reader.read::<Value>(forever);
                tokio::select! {
                    biased;
                    read = unfinished => panic!("{read:?}"),
                    () = tokio::task::yield_now() => {}
                }
                continue;
            }
            assert!(reader.read::<Value>(forever).await.unwrap().is_some());
        }
    }
}
