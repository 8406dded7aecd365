//! Waits of an agent for something other than its own work, and telling views of them.
//!
//! A wait that is over at once is not told of. One that was told of is told to be over, however it ends.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_protocol::sdk::{AgentWaiting, EventBody, System, WaitsFor};
use futures_util::future::BoxFuture;

use crate::agent::Agent;
use crate::agent::stall::Pause;

impl Agent {
    /// Waits for another agent, a person or a provider: meanwhile its slot is free for others, and its silence
    /// is no stall.
    pub(crate) fn wait<'a, F>(&'a self, waits_for: WaitsFor, future: F) -> BoxFuture<'a, F::Output>
    where
        F: Future<Output: Send> + Send + 'a,
    {
        let told = self.tell_wait(waits_for, future);
        Box::pin(async move {
            let is_done = AtomicBool::new(false);
            let waiting = async {
                let output = told.await;
                is_done.store(true, Ordering::Relaxed);
                output
            };
            // Behind it the slot is taken again, which may be another's by now.
            let wants_slot = || is_done.load(Ordering::Relaxed);
            self.tell_wait_if(WaitsFor::Slot, wants_slot, self.wait_untold(waiting)).await
        })
    }

    /// The same, and views are not told.
    pub(crate) async fn wait_untold<F: Future>(&self, future: F) -> F::Output {
        let _waiting: Option<Pause<'_>> = self.task.as_ref().map(|task| task.stall.pause());
        match &self.slot {
            Some(slot) => slot.lend(future).await,
            None => future.await,
        }
    }

    /// Tells views that the agent waits while the future is not ready. The agent keeps its slot.
    ///
    /// Boxed, because what waits is seldom, and would make every step of an agent larger.
    pub(crate) fn tell_wait<'a, F>(
        &'a self,
        waits_for: WaitsFor,
        future: F,
    ) -> BoxFuture<'a, F::Output>
    where
        F: Future + Send + 'a,
    {
        Box::pin(self.tell_wait_if(waits_for, || true, future))
    }

    async fn tell_wait_if<F: Future>(
        &self,
        waits_for: WaitsFor,
        is_waiting: impl Fn() -> bool,
        future: F,
    ) -> F::Output {
        let mut future = pin!(future);
        let mut told = None;
        std::future::poll_fn(|context| {
            let polled = future.as_mut().poll(context);
            if polled.is_pending() && told.is_none() && is_waiting() {
                told = Some(ToldWait::begin(self, waits_for));
            }
            polled
        })
        .await
    }

    fn show_wait(&self, waits_for: WaitsFor, is_over: bool) {
        if let Some(shared) = self.shared.upgrade() {
            let agent_id = self.identity.id.clone();
            let event = AgentWaiting { agent_id, waits_for, is_over };
            shared.show(EventBody::System(System::AgentWaiting(event)));
        }
    }
}

/// A wait that views know of, until it is dropped.
struct ToldWait<'a> {
    agent: &'a Agent,
    waits_for: WaitsFor,
}

impl<'a> ToldWait<'a> {
    fn begin(agent: &'a Agent, waits_for: WaitsFor) -> Self {
        agent.show_wait(waits_for, false);
        Self { agent, waits_for }
    }
}

impl Drop for ToldWait<'_> {
    fn drop(&mut self) {
        // After a fault the agent ends, which is told of; a view that broke may break again.
        if !std::thread::panicking() {
            self.agent.show_wait(self.waits_for, true);
        }
    }
}
