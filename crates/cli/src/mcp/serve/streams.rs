//! The streams of a server: a line that never ends costs bounded memory, and no line of ours ends early.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use centurion_protocol::end_json_line;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest line that is taken.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// A reader that fails in the middle of a line that is too long.
pub(super) struct BoundedLines<R> {
    inner: R,
    /// The number of bytes of the present line that have come.
    length: usize,
    longest: usize,
}

impl<R> BoundedLines<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, length: 0, longest: LONGEST_LINE }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let fresh = buffer.filled().get(before..).unwrap_or_default();
        self.length = match memchr::memrchr(b'\n', fresh) {
            Some(end) => fresh.len() - end - 1,
            None => self.length + fresh.len(),
        };
        Poll::Ready(if self.length > self.longest {
            let longest = self.longest;
            Err(io::Error::other(format!("a line of input is longer than {longest} bytes")))
        } else {
            Ok(())
        })
    }
}

/// A writer of JSON, of which nothing but the end of a line looks like one.
pub(super) struct JsonLines<W> {
    inner: W,
    /// The present line, as far as it was given.
    line: Vec<u8>,
    /// Whole lines, and how much of them was written.
    ready: Vec<u8>,
    written: usize,
}

impl<W: AsyncWrite + Unpin> JsonLines<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, line: Vec::new(), ready: Vec::new(), written: 0 }
    }

    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.ready.get(self.written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.inner).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.written += count,
            }
        }
        self.ready.clear();
        self.written = 0;
        Poll::Ready(Ok(()))
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for JsonLines<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_drain(context))?;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(last) => {
                    let mut line = std::mem::take(&mut self.line);
                    line.extend_from_slice(last);
                    end_json_line(&mut line);
                    self.ready.extend_from_slice(&line);
                }
                None => self.line.extend_from_slice(piece),
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(context))?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_line_that_never_ends_is_an_error_and_many_lines_are_not() {
        let reader = |text: &'static [u8]| BoundedLines { inner: text, length: 0, longest: 8 };
        let mut bytes = [0; 32];
        assert_eq!(reader(b"12345678\n1\n12345678").read(&mut bytes).await.unwrap(), 19);
        let error = reader(b"1\n123456789").read(&mut bytes).await.unwrap_err();
        assert!(error.to_string().contains("longer than 8 bytes"), "{error}");
    }

    #[tokio::test]
    async fn lines_are_whole_however_they_are_given() {
        let text = "\"a\u{2028}b\"\n\"\u{2029}é\"\n".as_bytes();
        for size in 1..text.len() {
            let mut out = Vec::new();
            let mut writer = JsonLines::new(&mut out);
            for piece in text.chunks(size) {
                writer.write_all(piece).await.unwrap();
            }
            writer.flush().await.unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), "\"a\\u2028b\"\n\"\\u2029é\"\n");
        }
    }
}
