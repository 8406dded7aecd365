//! Where events end that nothing else wants.

use centurion_engine::View;
use centurion_host::{FinishFuture, Front};
use centurion_protocol::sdk::Event;

pub(crate) struct Nowhere;

impl View for Nowhere {
    fn show(&self, _: &Event) {}
}

impl Front for Nowhere {
    fn finish(&self) -> FinishFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}
