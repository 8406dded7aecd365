//! A view that is told when the session is over.

use std::io;
use std::pin::Pin;

use centurion_engine::View;

pub type FinishFuture<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

/// Shows a session to one reader.
pub trait Front: View {
    /// The session is over: shows what is left to show, and waits until the reader has it. `Err` says why the
    /// reader did not get everything. Events that come later are not shown. A front whose reader has each event
    /// when it is shown has nothing left to do.
    fn finish(&self) -> FinishFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}
