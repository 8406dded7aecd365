//! How many agents compute at once.
//!
//! There is a fixed number of places. An agent takes one before it computes or calls tools, and gives it
//! back while it waits for a child, a person or the rate gate, so that no number of places and no depth
//! of agents can bring everything to a halt. Places are given in the order in which they were asked for.
//! What an agent does is not known here.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The places of a session.
#[derive(Debug)]
pub(crate) struct Places {
    limit: usize,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Places {
    /// As many places as this; none at all means that nobody may run.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(limit));
        Arc::new(Self { limit, free, waiting: AtomicUsize::new(0) })
    }

    /// Whether nobody may run. Whoever asks for a place nevertheless waits for ever.
    pub(crate) fn is_closed(&self) -> bool {
        self.limit == 0
    }

    /// A seat for one agent, which has no place yet.
    pub(crate) fn seat(self: &Arc<Self>) -> Seat {
        Seat {
            places: Arc::clone(self),
            ends: CancellationToken::new(),
            state: Mutex::new(State::default()),
            turn: tokio::sync::Mutex::new(()),
        }
    }

    /// How many places are taken.
    #[cfg(test)]
    pub(crate) fn running(&self) -> usize {
        self.limit.saturating_sub(self.free.available_permits())
    }

    /// How many agents wait for a place.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn acquire(&self) -> OwnedSemaphorePermit {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        let permit = Arc::clone(&self.free).acquire_owned().await;
        permit.expect("invariant: nobody closes the semaphore")
    }
}

/// Counts one who waits, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where one agent sits. Dropping it gives its place back.
#[derive(Debug)]
pub(crate) struct Seat {
    places: Arc<Places>,
    /// Whoever has to end does so without a place: it computes no more, and others must not hold it up.
    ends: CancellationToken,
    state: Mutex<State>,
    /// Held by the one future that waits for a place: a seat needs no second one, and two futures that
    /// each waited for their own could wait for each other.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the agent has taken a place and not left it, lent or not.
    seated: bool,
    /// How many futures run for which the place is given back.
    lends: usize,
    place: Option<OwnedSemaphorePermit>,
}

impl State {
    /// Whether a place is missing.
    fn lacks_place(&self) -> bool {
        self.seated && self.lends == 0 && self.place.is_none()
    }

    /// Keeps a place that was waited for, unless the agent left or lends it by now.
    fn keep(&mut self, place: OwnedSemaphorePermit) {
        if self.lacks_place() {
            self.place = Some(place);
        }
    }
}

impl Seat {
    /// The seat of an agent that ends when the token says so: it does not wait for a place to do that.
    pub(crate) fn until(self, ends: CancellationToken) -> Self {
        Self { ends, ..self }
    }

    /// Waits for a place, first come first served. Whoever has one keeps it.
    ///
    /// To be called again after a [`Seat::lend`] that was dropped before its end: the place that it gave
    /// back is not there. While something runs for which the place is lent, the end of that takes it.
    pub(crate) async fn take(&self) {
        let _turn = self.turn.lock().await;
        {
            let mut state = self.state();
            if state.place.is_some() || state.lends > 0 {
                state.seated = true;
                return;
            }
        }
        let place = self.places.acquire().await;
        let mut state = self.state();
        state.seated = true;
        state.keep(place);
    }

    /// Gives the place back, until it is taken again.
    pub(crate) fn leave(&self) {
        let mut state = self.state();
        state.seated = false;
        state.place = None;
    }

    /// Gives the place back while `future` runs, and takes it again before returning.
    ///
    /// Of several that run inside each other or side by side, the first gives it back and the last takes
    /// it again. An agent without a place lends none and takes none.
    pub(crate) async fn lend<T>(&self, future: impl Future<Output = T>) -> T {
        let lent = Lent::new(self);
        let output = future.await;
        drop(lent);
        self.settle().await;
        output
    }

    /// Takes the place again once nothing runs any more for which it was lent.
    async fn settle(&self) {
        let settled = async {
            let _turn = self.turn.lock().await;
            if self.state().lacks_place() {
                let place = self.places.acquire().await;
                self.state().keep(place);
            }
        };
        tokio::select! {
            biased;
            () = settled => {}
            () = self.ends.cancelled() => {}
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// One future for which the place of a seat is given back.
struct Lent<'a>(&'a Seat);

impl<'a> Lent<'a> {
    fn new(seat: &'a Seat) -> Self {
        let mut state = seat.state();
        state.lends += 1;
        state.place = None;
        drop(state);
        Self(seat)
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
