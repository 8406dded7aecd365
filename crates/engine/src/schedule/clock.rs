//! The time for schedules: the wall clock of the session's world, measured on by timers.
//!
//! Expressions speak of wall-clock time, which comes from [`World`]; waiting is done on tokio's clock, which
//! a test can pause. Both go together in one look: the world is asked once, at the start, and from then on
//! time passes as tokio's clock measures it. A machine that was suspended has measured too little; then the
//! world is ahead, and counts. A world that stands still, as in tests, is never ahead.

use std::sync::Arc;

use centurion_protocol::World;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

pub(super) struct Clock {
    pub(super) world: Arc<dyn World>,
    /// The wall-clock time at `since`.
    wall: Timestamp,
    since: Instant,
}

impl Clock {
    pub(super) fn new(world: Arc<dyn World>) -> Self {
        Self { wall: world.now(), since: Instant::now(), world }
    }

    pub(super) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::MAX);
        let measured = self.wall.checked_add(passed).unwrap_or(Timestamp::MAX);
        measured.max(self.world.now())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::*;

    /// A world whose time is set by hand.
    struct Wall(Mutex<Timestamp>);

    impl World for Wall {
        fn now(&self) -> Timestamp {
            *self.0.lock()
        }

        fn random(&self) -> u64 {
            0
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_with_the_timers_and_catches_up_after_a_suspension() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let wall = Arc::new(Wall(Mutex::new(start)));
        let clock = Clock::new(Arc::clone(&wall) as Arc<dyn World>);
        tokio::time::advance(Duration::from_mins(5)).await;
        assert_eq!(clock.now(), "2026-01-01T00:05:00Z".parse().unwrap());
        *wall.0.lock() = "2026-01-01T08:00:00Z".parse().unwrap();
        assert_eq!(clock.now(), "2026-01-01T08:00:00Z".parse().unwrap());
        // One that falls behind is not followed.
        *wall.0.lock() = start;
        assert_eq!(clock.now(), "2026-01-01T00:05:00Z".parse().unwrap());
    }
}
