//! Reports at once when nothing more can come from a server.
//!
//! The SDK first waits for its own open work when a server goes away; a caller that awaits an answer cannot.

use std::future::Future;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

pub(crate) struct WatchedTransport<T> {
    inner: T,
    ended: CancellationToken,
}

impl<T> WatchedTransport<T> {
    /// `ended` is cancelled when the server has sent its last message.
    pub(crate) fn new(inner: T, ended: CancellationToken) -> Self {
        Self { inner, ended }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for WatchedTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        if message.is_none() {
            self.ended.cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
