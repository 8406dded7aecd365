//! Chance that comes from a seed.

use std::time::Duration;

use centurion_protocol::{SeededWorld, World};

/// Chance that comes from a seed.
pub(crate) struct Dice(SeededWorld);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededWorld::new(seed))
    }

    pub(crate) fn below(&self, count: usize) -> usize {
        usize::try_from(self.0.random() % count.max(1) as u64).unwrap()
    }

    pub(crate) fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// A number from zero up to one.
    pub(crate) fn fraction(&self) -> f64 {
        self.0.fraction()
    }

    /// A time of any size: a moment, some seconds, or minutes.
    pub(crate) fn time(&self) -> Duration {
        let millis = match self.below(5) {
            0 => 0,
            1 => self.below(50),
            2 => self.below(2_000),
            3 => self.below(30_000),
            _ => self.below(100_000),
        };
        Duration::from_millis(millis as u64)
    }
}
