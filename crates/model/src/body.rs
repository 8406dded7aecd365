//! A request body of shared chunks.
//!
//! A turn sends the whole conversation again. The chunks are the messages' own bytes, so that nothing is copied or
//! serialised twice, and the length is known before the first byte is sent.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// The bytes of one request, in order.
#[derive(Clone, Debug, Default)]
pub struct ChunkedBody {
    chunks: VecDeque<Bytes>,
    left: u64,
}

impl ChunkedBody {
    /// Appends a chunk. Ignores an empty one.
    pub fn push(&mut self, chunk: impl Into<Bytes>) {
        let chunk = chunk.into();
        if !chunk.is_empty() {
            self.left += chunk.len() as u64;
            self.chunks.push_back(chunk);
        }
    }

    pub fn len(&self) -> u64 {
        self.left
    }

    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The chunks that are not sent yet.
    pub fn chunks(&self) -> impl Iterator<Item = &Bytes> {
        self.chunks.iter()
    }

    /// All bytes in one piece: for recording and for tests.
    pub fn to_vec(&self) -> Vec<u8> {
        self.chunks().flat_map(|chunk| chunk.iter().copied()).collect()
    }
}

impl Body for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.chunks.pop_front();
        self.left -= next.as_ref().map_or(0, |chunk| chunk.len() as u64);
        Poll::Ready(next.map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.chunks.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_exact_at_every_moment() {
        let mut body = ChunkedBody::default();
        for chunk in ["abc", "", "de"] {
            body.push(chunk);
        }
        assert_eq!(body.to_vec(), b"abcde");
        assert_eq!(reqwest::Body::wrap(body.clone()).size_hint().exact(), Some(5));

        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut lengths = Vec::new();
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut context) {
            lengths.push((frame.unwrap().into_data().unwrap().len(), body.size_hint().exact()));
        }
        assert_eq!(lengths, [(3, Some(2)), (2, Some(0))]);
        assert!(body.is_end_stream());
    }
}
