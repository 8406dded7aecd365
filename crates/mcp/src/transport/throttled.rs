//! Stops reading while the other side does not read.
//!
//! The SDK makes a task for every message to send. A peer that asks again and again without reading the answers would
//! fill the memory with them: here its requests wait in the pipe instead.

use std::future::Future;

use rmcp::service::{RxJsonRpcMessage, ServiceRole, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::watch;

/// The most unsent messages before reading stops.
const MOST_UNSENT: usize = 64;

pub struct ThrottledTransport<T> {
    inner: T,
    /// The number of unsent messages. Every send holds the channel; reading waits on it.
    unsent: watch::Sender<usize>,
}

impl<T> ThrottledTransport<T> {
    pub fn new(inner: T) -> Self {
        Self { inner, unsent: watch::Sender::new(0) }
    }
}

/// Guard: counts one message while it is held.
struct UnsentMessage(watch::Sender<usize>);

impl UnsentMessage {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for UnsentMessage {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl<R: ServiceRole, T: Transport<R>> Transport<R> for ThrottledTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<R>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let unsent = UnsentMessage::new(&self.unsent);
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(unsent);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<R>> {
        // The channel cannot close: this holds its sender.
        let _ = self.unsent.subscribe().wait_for(|count| *count < MOST_UNSENT).await;
        self.inner.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use rmcp::RoleClient;
    use rmcp::transport::async_rw::AsyncRwTransport;
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn nothing_is_read_while_answers_wait_and_everything_when_they_are_gone() {
        let (ours, mut theirs) = tokio::io::duplex(256);
        let (input, mut server) = tokio::io::duplex(1 << 20);
        let inner = AsyncRwTransport::<RoleClient, _, _>::new(input, ours);
        let mut transport = ThrottledTransport::new(inner);
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string() + "\n";
        server.write_all(ask.repeat(1_000).as_bytes()).await.unwrap();
        let mut sending = Vec::new();
        while let Some(asked) = transport.receive().now_or_never() {
            assert!(asked.is_some());
            let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"text": "x".repeat(100)}});
            sending.push(tokio::spawn(transport.send(serde_json::from_value(answer).unwrap())));
            tokio::task::yield_now().await;
            assert!(sending.len() <= MOST_UNSENT + 4, "{} answers", sending.len());
        }
        assert!(sending.len() >= MOST_UNSENT, "{} answers", sending.len());
        // The server reads at last.
        tokio::spawn(async move { theirs.read_to_end(&mut Vec::new()).await });
        for sent in sending {
            sent.await.unwrap().unwrap();
        }
        for _ in 0..900 {
            assert!(transport.receive().await.is_some());
        }
    }
}
