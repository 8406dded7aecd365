//! The rate gate: all requests of the process with one credential for one model pass it.
//!
//! When a provider asks one request to wait, it means all of them. The gate closes for all requests until then, and
//! admits them one after another.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use centurion_protocol::World;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The most requests in flight at one gate.
const IN_FLIGHT: usize = 256;

/// The longest wait that a provider can impose. A longer one is shortened to it.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// The gates of a process, one for each credential and model. Cloning shares them.
#[derive(Clone, Default)]
pub struct Gates(Arc<Mutex<HashMap<Key, Arc<Gate>>>>);

/// A credential and a model.
type Key = (String, String);

impl Gates {
    /// The gates that the whole process shares.
    pub fn of_process() -> Self {
        static GATES: LazyLock<Gates> = LazyLock::new(Gates::default);
        GATES.clone()
    }

    pub fn gate(&self, credential: &str, model: &str) -> Arc<Gate> {
        let mut gates = self.0.lock();
        let key = (credential.to_owned(), model.to_owned());
        Arc::clone(gates.entry(key).or_insert_with(|| Arc::new(Gate::new(IN_FLIGHT))))
    }
}

/// One gate.
pub struct Gate {
    places: Arc<Semaphore>,
    closing: Mutex<Option<Closing>>,
}

/// A time during which no request passes.
#[derive(Clone, Copy)]
struct Closing {
    until: Instant,
    /// The time over which the waiting requests are admitted.
    spread: Duration,
}

/// Guard: permission for one request in flight, released when dropped.
pub struct Pass {
    _place: OwnedSemaphorePermit,
}

impl Gate {
    fn new(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places)), closing: Mutex::new(None) }
    }

    /// Waits until the gate is open and a slot is free.
    pub async fn enter(&self, world: &dyn World) -> Pass {
        loop {
            self.open(world).await;
            let place = Arc::clone(&self.places).acquire_owned().await;
            let place = place.expect("invariant: the semaphore is never closed");
            // It may have closed again while this request waited for a slot.
            if self.closing().is_none() {
                return Pass { _place: place };
            }
        }
    }

    /// Closes the gate for all requests. A closing never shortens an earlier one.
    pub fn close_for(&self, wait: Duration) {
        let wait = wait.min(LONGEST_WAIT);
        let closing = Closing { until: Instant::now() + wait, spread: spread(wait) };
        let mut current = self.closing.lock();
        if current.is_none_or(|current| current.until < closing.until) {
            *current = Some(closing);
        }
    }

    /// Whether the gate is closed now.
    pub fn is_closed(&self) -> bool {
        self.closing().is_some()
    }

    /// The remaining time until the gate opens.
    pub(crate) fn held(&self) -> Duration {
        self.closing().map(|it| it.until.duration_since(Instant::now())).unwrap_or_default()
    }

    /// Waits until the gate is open.
    pub(crate) async fn open(&self, world: &dyn World) {
        while let Some(closing) = self.closing() {
            let turn = closing.spread.mul_f64(world.fraction());
            tokio::time::sleep_until(closing.until + turn).await;
        }
    }

    fn closing(&self) -> Option<Closing> {
        let current = *self.closing.lock();
        current.filter(|closing| closing.until > Instant::now())
    }
}

/// The time over which waiting requests are admitted: a quarter of the wait, within bounds.
pub(crate) fn spread(wait: Duration) -> Duration {
    (wait / 4).clamp(Duration::from_millis(50), Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use centurion_protocol::SeededWorld;
    use futures_util::future::join_all;

    #[tokio::test(start_paused = true)]
    async fn all_requests_wait_and_none_stampedes() {
        let (gate, world) = (Gate::new(IN_FLIGHT), SeededWorld::new(3));
        let start = Instant::now();
        gate.close_for(Duration::from_secs(8));
        gate.close_for(Duration::from_secs(1));
        let times = join_all((0..20).map(async |_| {
            drop(gate.enter(&world).await);
            start.elapsed()
        }))
        .await;
        assert!(times.iter().all(|time| *time >= Duration::from_secs(8)), "{times:?}");
        assert!(times.iter().all(|time| *time <= Duration::from_millis(10_010)), "{times:?}");
        let mut distinct = times.clone();
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > 10, "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_gate_that_closes_again_holds_those_who_wait() {
        let (gate, world) = (Gate::new(1), SeededWorld::new(3));
        let start = Instant::now();
        let first = gate.enter(&world).await;
        let second = async {
            drop(gate.enter(&world).await);
            start.elapsed()
        };
        let closing = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            gate.close_for(Duration::from_secs(5));
            drop(first);
        };
        let (elapsed, ()) = tokio::join!(second, closing);
        assert!(elapsed >= Duration::from_secs(6), "{elapsed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_bounded_and_given_back() {
        let (gate, world) = (Gate::new(2), SeededWorld::new(3));
        let (one, two) = (gate.enter(&world).await, gate.enter(&world).await);
        let third = tokio::time::timeout(Duration::from_mins(1), gate.enter(&world)).await;
        assert!(third.is_err());
        drop(one);
        let third = tokio::time::timeout(Duration::from_mins(1), gate.enter(&world)).await;
        assert!(third.is_ok());
        drop(two);
    }

    #[tokio::test(start_paused = true)]
    async fn gates_are_told_apart_by_credential_and_model() {
        let (gates, world) = (Gates::default(), SeededWorld::new(3));
        gates.gate("key", "opus").close_for(Duration::from_mins(1));
        let start = Instant::now();
        assert_eq!(gates.gate("key", "opus").held(), Duration::from_mins(1));
        assert_eq!(gates.gate("key", "haiku").held(), Duration::ZERO);
        drop(gates.gate("key", "haiku").enter(&world).await);
        drop(gates.gate("other", "opus").enter(&world).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(gates.clone().gate("key", "opus").enter(&world).await);
        assert!(start.elapsed() >= Duration::from_mins(1));
    }
}
