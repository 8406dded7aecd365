//! Tests from seeds: one seed that the environment names, or many side by side. A failure names its seed.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The seeds of a test.
pub(crate) struct Seeds {
    /// The variable that names one seed to play alone.
    pub(crate) one: &'static str,
    /// The variable that says how many seeds to play.
    pub(crate) count: &'static str,
    /// The number of seeds without it.
    pub(crate) usual: u64,
}

impl Seeds {
    /// Plays the seeds. Returns all results, unless one seed is named or fewer than usual are asked for.
    pub(crate) fn play<T: Send>(&self, play: impl Fn(u64) -> T + Sync) -> Option<Vec<T>> {
        if let Some(seed) = number(self.one) {
            self.attempt(seed, &play);
            return None;
        }
        let count = number(self.count).unwrap_or(self.usual);
        let next = AtomicU64::new(0);
        let results = Mutex::default();
        std::thread::scope(|scope| {
            let workers = std::thread::available_parallelism().map_or(1, usize::from);
            let work = || {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        break;
                    }
                    let result = self.attempt(seed, &play);
                    Vec::push(&mut results.lock(), result);
                }
            };
            let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
        (count >= self.usual).then(|| results.into_inner())
    }

    /// Plays one seed; a failure names it.
    fn attempt<T>(&self, seed: u64, play: impl Fn(u64) -> T) -> T {
        let played = std::panic::catch_unwind(AssertUnwindSafe(|| play(seed)));
        played.unwrap_or_else(|reason| {
            let message = reason.downcast_ref::<String>().cloned();
            let message =
                message.or_else(|| reason.downcast_ref::<&str>().map(|it| (*it).to_owned()));
            let message = message.unwrap_or_default();
            panic!("seed {seed}: {message}\n{}={seed} plays it again", self.one);
        })
    }
}

/// A number that the caller of the tests chose.
pub(crate) fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}
