//! One type for every transport.
//!
//! The SDK's service is generic over its transport, and it is large: compiled once for each of them, it was the longest
//! part of the whole build.

use std::error::Error;
use std::fmt;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

pub(crate) struct AnyTransport(Box<dyn BoxedTransport>);

impl AnyTransport {
    pub(crate) fn new(transport: impl Transport<RoleClient> + 'static) -> Self {
        Self(Box::new(transport))
    }
}

/// The error of the boxed transport. It has the same text and the same sources.
#[derive(Debug)]
pub(crate) struct AnyError(Box<dyn Error + Send + Sync>);

impl AnyError {
    /// The transport's own error, where `error` is the box around it.
    pub(crate) fn unboxed<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
        match error.downcast_ref() {
            Some(Self(inner)) => inner.as_ref(),
            None => error,
        }
    }
}

impl fmt::Display for AnyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl Error for AnyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

/// [`Transport`] with boxed futures and a boxed error.
trait BoxedTransport: Send {
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> BoxFuture<'static, Result<(), AnyError>>;
    fn receive(&mut self) -> BoxFuture<'_, Option<RxJsonRpcMessage<RoleClient>>>;
    fn close(&mut self) -> BoxFuture<'_, Result<(), AnyError>>;
}

impl<T: Transport<RoleClient>> BoxedTransport for T {
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> BoxFuture<'static, Result<(), AnyError>> {
        Transport::send(self, message).map(boxed).boxed()
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<RxJsonRpcMessage<RoleClient>>> {
        Transport::receive(self).boxed()
    }

    fn close(&mut self) -> BoxFuture<'_, Result<(), AnyError>> {
        Transport::close(self).map(boxed).boxed()
    }
}

fn boxed<E: Error + Send + Sync + 'static>(result: Result<(), E>) -> Result<(), AnyError> {
    result.map_err(|error| AnyError(Box::new(error)))
}

impl Transport<RoleClient> for AnyTransport {
    type Error = AnyError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(message)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.0.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.close()
    }
}

#[cfg(test)]
mod tests {
    use super::super::failure::{self, Failure};
    use super::*;

    /// Fails with an error that has another behind it.
    struct Broken;

    #[derive(Debug, thiserror::Error)]
    #[error("the wire is cut")]
    struct Cut(#[source] std::io::Error);

    impl Transport<RoleClient> for Broken {
        type Error = Cut;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Cut>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
            None
        }

        async fn close(&mut self) -> Result<(), Cut> {
            Err(Cut(std::io::Error::other("by a digger")))
        }
    }

    #[tokio::test]
    async fn an_error_out_of_the_box_is_told_once_and_with_all_that_is_behind_it() {
        let mut transport = AnyTransport::new(Broken);
        let error = Transport::close(&mut transport).await.unwrap_err();
        assert!(AnyError::unboxed(&error).is::<Cut>());
        assert!(AnyError::unboxed(&Cut(std::io::Error::other("a spade"))).is::<Cut>());
        let told = Failure::Passing("the wire is cut: by a digger".to_owned());
        assert_eq!(failure::of(&error), told);
    }
}
