//! Time, ids and randomness (invariant I-14): the three things that make a run unrepeatable enter
//! through one trait. Timers are not here: they are tokio's, whose clock a test can pause.

use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::{Builder, Uuid};

use crate::{AgentId, RecordId, SessionId, TaskId};

/// The source of wall-clock time and of randomness.
pub trait World: Send + Sync {
    /// The wall-clock time, for records and people; never for measuring.
    fn now(&self) -> Timestamp;

    /// Sixty-four random bits.
    fn random(&self) -> u64;

    /// Whether work may be done beside everything else, by another thread. It then ends at a moment that nothing in
    /// this process decides.
    fn has_threads(&self) -> bool {
        true
    }

    fn uuid(&self) -> Uuid {
        let high = u128::from(self.random()) << 64;
        Builder::from_u128(high | u128::from(self.random()))
            .with_version(uuid::Version::Random)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid()
    }

    fn session_id(&self) -> SessionId {
        SessionId(self.uuid())
    }

    fn record_id(&self) -> RecordId {
        RecordId(self.uuid())
    }

    fn agent_id(&self) -> AgentId {
        AgentId::new(format!("a{:016x}", self.random()))
    }

    fn shell_id(&self) -> TaskId {
        const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
        let mut bits = self.random();
        let mut id = String::from("b");
        for _ in 0..8 {
            id.push(char::from(DIGITS[(bits % 36) as usize]));
            bits /= 36;
        }
        TaskId::new(id)
    }

    /// A number in `0.0..1.0`, for jitter.
    fn fraction(&self) -> f64 {
        (self.random() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The real clock, and randomness that the operating system seeds.
#[derive(Debug, Default)]
pub struct SystemWorld;

impl World for SystemWorld {
    fn now(&self) -> Timestamp {
        // No more than is written down, so that a time is the same when it is read back.
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    fn uuid(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn random(&self) -> u64 {
        // Two halves of a v4 UUID would lose six bits; hashing both keeps all of them useful.
        let (high, low) = Uuid::new_v4().as_u64_pair();
        high.rotate_left(32) ^ low
    }
}

/// A world that is the same for the same seed: time stands at a fixed point and moves one
/// millisecond with every look.
#[derive(Debug)]
pub struct SeededWorld {
    state: Mutex<(fastrand::Rng, i64)>,
}

impl SeededWorld {
    pub fn new(seed: u64) -> Self {
        Self { state: Mutex::new((fastrand::Rng::with_seed(seed), 1_767_225_600_000)) }
    }
}

impl World for SeededWorld {
    fn now(&self) -> Timestamp {
        let mut state = self.state.lock();
        state.1 += 1;
        Timestamp::from_millisecond(state.1).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn random(&self) -> u64 {
        self.state.lock().0.u64(..)
    }

    fn has_threads(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_ids() {
        let (one, two) = (SeededWorld::new(7), SeededWorld::new(7));
        assert_eq!(one.session_id(), two.session_id());
        assert_eq!(one.now(), two.now());
        assert_ne!(one.session_id(), one.session_id());
    }

    #[test]
    fn ids_have_the_shapes_that_readers_expect() {
        let world = SystemWorld;
        let agent = world.agent_id();
        assert!(agent.as_str().len() == 17 && agent.as_str().starts_with('a'));
        let shell = world.shell_id();
        assert!(shell.as_str().len() == 9 && shell.as_str().starts_with('b'));
        assert_eq!(world.uuid().get_version_num(), 4);
    }
}
