//! Whether an agent still gets somewhere: what it does beats, and time in which it waits for somebody
//! else does not count.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// The pulse of one agent.
#[derive(Debug)]
pub(crate) struct Pulse(Mutex<State>);

#[derive(Debug)]
struct State {
    last: Instant,
    /// For how many things at once it waits that are not its own work.
    waits: usize,
}

/// While it lives, silence is no stall.
pub(crate) struct Waiting<'a>(&'a Pulse);

impl Default for Pulse {
    fn default() -> Self {
        Self(Mutex::new(State { last: Instant::now(), waits: 0 }))
    }
}

impl Pulse {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    pub(crate) fn beat(&self) {
        self.state().last = Instant::now();
    }

    /// The agent waits for a person, another agent or its turn.
    pub(crate) fn wait(&self) -> Waiting<'_> {
        self.state().waits += 1;
        Waiting(self)
    }

    /// Returns once there was no beat for so long.
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

impl Drop for Waiting<'_> {
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
    async fn silence_is_a_stall_unless_the_agent_waits_for_somebody() {
        let pulse = Pulse::default();
        let after = Duration::from_mins(1);
        let started = Instant::now();
        tokio::join!(pulse.stalled(after), async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            pulse.beat();
            tokio::time::sleep(Duration::from_secs(30)).await;
            let waiting = pulse.wait();
            tokio::time::sleep(Duration::from_mins(10)).await;
            drop(waiting);
        });
        assert_eq!(started.elapsed(), Duration::from_mins(12));
    }
}
