//! Stall detection: a stalled agent did nothing for too long, and did not wait for another agent, a person or its
//! turn either.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// Measures how long one agent has been silent.
#[derive(Debug)]
pub(crate) struct StallTimer(Mutex<StallState>);

#[derive(Debug)]
struct StallState {
    last: Instant,
    /// For how many things at once it waits that are not its own work.
    waits: usize,
}

/// While it lives, silence is no stall.
pub(crate) struct Pause<'a>(&'a StallTimer);

impl Default for StallTimer {
    fn default() -> Self {
        Self(Mutex::new(StallState { last: Instant::now(), waits: 0 }))
    }
}

impl StallTimer {
    fn state(&self) -> MutexGuard<'_, StallState> {
        self.0.lock()
    }

    pub(crate) fn note_activity(&self) {
        self.state().last = Instant::now();
    }

    /// The agent waits for a person, another agent or its turn.
    pub(crate) fn pause(&self) -> Pause<'_> {
        self.state().waits += 1;
        Pause(self)
    }

    /// Returns once the agent has done nothing for this long.
    pub(crate) async fn stalled(&self, after: Duration) {
        loop {
            let due = {
                let state = self.state();
                let quiet = if state.waits > 0 { Duration::ZERO } else { state.last.elapsed() };
                match after.checked_sub(quiet) {
                    None | Some(Duration::ZERO) => return,
                    Some(left) => left,
                }
            };
            tokio::time::sleep(due).await;
        }
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waits -= 1;
        state.last = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_is_a_stall_unless_the_agent_waits() {
        let timer = StallTimer::default();
        let after = Duration::from_mins(1);
        let started = Instant::now();
        tokio::join!(timer.stalled(after), async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            timer.note_activity();
            tokio::time::sleep(Duration::from_secs(30)).await;
            let waiting = timer.pause();
            tokio::time::sleep(Duration::from_mins(10)).await;
            drop(waiting);
        });
        assert_eq!(started.elapsed(), Duration::from_mins(12));
    }
}
