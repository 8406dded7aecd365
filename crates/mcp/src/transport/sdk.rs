//! The transport to a server inside the host: passes every message, and receives its answer.

use std::future::Future;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use crate::host::SdkChannel;

#[derive(Debug, thiserror::Error)]
#[error("the host did not pass the message on: {0}")]
pub(crate) struct SdkError(String);

pub(crate) struct SdkTransport {
    channel: Arc<dyn SdkChannel>,
    server: Arc<str>,
    /// Each exchange sends its answer, and the host what the server says by itself; the SDK receives. When it is full, the
    /// exchange waits and the host is refused.
    sender: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    receiver: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
}

impl SdkTransport {
    pub(crate) fn new(channel: Arc<dyn SdkChannel>, server: &str) -> Self {
        let (sender, receiver) = mpsc::channel(64);
        let inbox = sender.clone();
        channel.listen(
            server,
            Box::new(move |message| {
                let message = serde_json::from_value(message)?;
                // A server that says more than is read is not waited for.
                Ok(inbox.try_send(message)?)
            }),
        );
        Self { channel, server: server.into(), sender, receiver }
    }
}

impl Transport<RoleClient> for SdkTransport {
    type Error = SdkError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let (channel, server) = (Arc::clone(&self.channel), Arc::clone(&self.server));
        let sender = self.sender.clone();
        async move {
            let wants_answer = matches!(message, TxJsonRpcMessage::<RoleClient>::Request(_));
            let message =
                serde_json::to_value(&message).map_err(|error| SdkError(error.to_string()))?;
            let id = message.get("id").cloned();
            let answer = channel
                .exchange(&server, message)
                .await
                .map_err(|error| SdkError(error.to_string()))?;
            match answer {
                // The one that waits for this answer would wait for ever.
                Some(answer) if wants_answer && answer.get("id") != id.as_ref() => {
                    Err(SdkError("its answer is one to another request".to_owned()))
                }
                // Hosts answer notifications too, with an empty object.
                Some(answer) if wants_answer => {
                    let answer = serde_json::from_value(answer)
                        .map_err(|error| SdkError(format!("its answer is no message: {error}")))?;
                    // The receiver is gone when the connection is being closed.
                    let _ = sender.send(answer).await;
                    Ok(())
                }
                None if wants_answer => Err(SdkError("the server said nothing".to_owned())),
                _ => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.receiver.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.receiver.close();
        Ok(())
    }
}
