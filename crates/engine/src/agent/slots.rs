//! Slots: a limit on the number of agents that compute at once.
//!
//! There is a fixed number of permits. An agent takes one before it computes or calls tools, and gives it
//! back while it waits for a child, a person or the rate gate, so that no number of permits and no depth
//! of agents can bring everything to a halt. Permits are given in the order in which they were asked for.
//! What an agent does is not known here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The slots of the agents of a session, and how many of them may compute at once.
#[derive(Debug)]
pub(crate) struct Slots {
    limit: usize,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Slots {
    /// As many permits as this; with none, no agent may run.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(limit));
        Arc::new(Self { limit, free, waiting: AtomicUsize::new(0) })
    }

    /// Tells whether no agent may run. One that asks for a permit nevertheless waits for ever.
    pub(crate) fn is_closed(&self) -> bool {
        self.limit == 0
    }

    /// A slot for one agent, which has no permit yet.
    pub(crate) fn slot(self: &Arc<Self>) -> Slot {
        Slot {
            slots: Arc::clone(self),
            ends: CancellationToken::new(),
            state: Mutex::new(SlotState::default()),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// The number of permits that are taken.
    #[cfg(test)]
    pub(crate) fn running(&self) -> usize {
        self.limit.saturating_sub(self.free.available_permits())
    }

    /// The number of agents that wait for a permit.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn acquire(&self) -> OwnedSemaphorePermit {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = WaitCount(&self.waiting);
        let permit = Arc::clone(&self.free).acquire_owned().await;
        permit.expect("invariant: the semaphore is never closed")
    }
}

/// Counts one who waits, until it is dropped.
struct WaitCount<'a>(&'a AtomicUsize);

impl Drop for WaitCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One agent's slot. Dropping it gives its permit back.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<Slots>,
    /// An agent that has to end does so without a permit: it computes no more, and others must not hold it up.
    ends: CancellationToken,
    state: Mutex<SlotState>,
    /// Held by the one future that waits for a permit: a slot needs no second one, and two futures that
    /// each waited for their own could wait for each other.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct SlotState {
    /// True if the agent has taken a permit and not left it, lent or not.
    is_taken: bool,
    /// The number of running futures for which the permit is given back.
    lends: usize,
    permit: Option<OwnedSemaphorePermit>,
}

impl SlotState {
    /// Tells whether a permit is missing.
    fn lacks_permit(&self) -> bool {
        self.is_taken && self.lends == 0 && self.permit.is_none()
    }

    /// Keeps a permit that was waited for, unless the agent left or lends it by now.
    fn keep(&mut self, permit: OwnedSemaphorePermit) {
        if self.lacks_permit() {
            self.permit = Some(permit);
        }
    }
}

impl Slot {
    /// The slot of an agent that ends when the token says so: it does not wait for a permit to do that.
    pub(crate) fn until(self, ends: CancellationToken) -> Self {
        Self { ends, ..self }
    }

    /// Waits for a permit, first come first served. An agent that has one keeps it.
    ///
    /// To be called again after a [`Slot::lend`] that was dropped before its end: the permit that it gave
    /// back is not there. While something runs for which the permit is lent, the end of that takes it.
    pub(crate) async fn take(&self) {
        let _turn = self.turn.lock().await;
        {
            let mut state = self.state();
            if state.permit.is_some() || state.lends > 0 {
                state.is_taken = true;
                return;
            }
        }
        let permit = self.slots.acquire().await;
        let mut state = self.state();
        state.is_taken = true;
        state.keep(permit);
    }

    /// Gives the permit back, until it is taken again.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        state.is_taken = false;
        state.permit = None;
    }

    /// Gives the permit back while `future` runs, and takes it again before returning.
    ///
    /// Of several that run inside each other or side by side, the first gives it back and the last takes
    /// it again. An agent without a permit lends none and takes none.
    pub(crate) async fn lend<T>(&self, future: impl Future<Output = T>) -> T {
        let lent = Lent::new(self);
        let output = future.await;
        drop(lent);
        self.settle().await;
        output
    }

    /// Takes the permit again once nothing runs any more for which it was lent.
    async fn settle(&self) {
        let settled = async {
            let _turn = self.turn.lock().await;
            if self.state().lacks_permit() {
                let permit = self.slots.acquire().await;
                self.state().keep(permit);
            }
        };
        tokio::select! {
            biased;
            () = settled => {}
            () = self.ends.cancelled() => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock()
    }
}

/// One future for which the permit of a slot is given back.
struct Lent<'a>(&'a Slot);

impl<'a> Lent<'a> {
    fn new(slot: &'a Slot) -> Self {
        let mut state = slot.state();
        state.lends += 1;
        state.permit = None;
        drop(state);
        Self(slot)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.lends = state.lends.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
