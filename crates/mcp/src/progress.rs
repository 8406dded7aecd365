//! Signs of life from running calls, passed to their callers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::name::cut;

/// The progress of a call, as its server reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// The calls that wait for signs of life.
#[derive(Debug, Default)]
pub(crate) struct ProgressDesk(Mutex<ProgressCalls>);

#[derive(Debug, Default)]
struct ProgressCalls {
    /// The desk sends, the call receives. A full channel drops the sign: the call has one to read already.
    calls: HashMap<ProgressToken, mpsc::Sender<Progress>>,
    /// Signs that came before their call was registered, the oldest first. Late signs of ended calls end up here too,
    /// and are pushed out.
    early: VecDeque<(ProgressToken, Progress)>,
}

/// The most bytes of a message; a longer one is cut.
const MOST_MESSAGE: usize = 1_024;
const MOST_EARLY: usize = 32;
const MOST_UNSEEN: usize = 16;

impl ProgressDesk {
    /// Passes a sign to its call.
    pub(crate) fn hand(&self, sign: ProgressNotificationParam) {
        let message = sign.message.map(|message| cut(&message, MOST_MESSAGE));
        let progress = Progress { done: sign.progress, total: sign.total, message };
        let mut waiting = self.lock();
        if let Some(call) = waiting.calls.get(&sign.progress_token) {
            let _ = call.try_send(progress);
            return;
        }
        if waiting.early.len() == MOST_EARLY {
            waiting.early.pop_front();
        }
        waiting.early.push_back((sign.progress_token, progress));
    }

    /// Receives the signs of a call until the result is dropped.
    pub(crate) fn wait(&self, token: ProgressToken) -> Signs<'_> {
        let (sender, receiver) = mpsc::channel(MOST_UNSEEN);
        let mut waiting = self.lock();
        waiting.early.retain(|(early, progress)| {
            let is_ours = *early == token;
            if is_ours {
                let _ = sender.try_send(progress.clone());
            }
            !is_ours
        });
        waiting.calls.insert(token.clone(), sender);
        Signs { desk: self, token, receiver }
    }

    fn lock(&self) -> MutexGuard<'_, ProgressCalls> {
        self.0.lock()
    }
}

/// The signs of life of one call.
pub(crate) struct Signs<'a> {
    desk: &'a ProgressDesk,
    token: ProgressToken,
    receiver: mpsc::Receiver<Progress>,
}

impl Signs<'_> {
    pub(crate) async fn next(&mut self) -> Option<Progress> {
        self.receiver.recv().await
    }
}

impl Drop for Signs<'_> {
    fn drop(&mut self) {
        self.desk.lock().calls.remove(&self.token);
    }
}

/// Throttles the signs of life of one call: an observer receives at most one a second.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    started: Instant,
    last: Mutex<Option<Instant>>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { started: Instant::now(), last: Mutex::default() }
    }
}

impl Heartbeat {
    const PAUSE: Duration = Duration::from_secs(1);

    /// Takes a sign; returns the run time of the call, if a report is due.
    pub(crate) fn beat(&self) -> Option<Duration> {
        let now = Instant::now();
        let mut last = self.last.lock();
        if last.is_some_and(|last| now - last < Self::PAUSE) {
            return None;
        }
        *last = Some(now);
        Some(now - self.started)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    fn sign(token: i64, done: f64) -> ProgressNotificationParam {
        ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(token)), done)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_beats_at_most_once_a_second() {
        let heartbeat = Heartbeat::default();
        let mut beats = Vec::new();
        for _ in 0..30 {
            beats.extend(heartbeat.beat().map(|elapsed| elapsed.as_millis()));
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert_eq!(beats, [0, 1000, 2000]);
    }

    #[tokio::test]
    async fn a_sign_that_comes_too_early_is_kept_for_its_call() {
        let desk = ProgressDesk::default();
        desk.hand(sign(1, 0.5));
        desk.hand(sign(2, 0.1));
        let mut signs = desk.wait(ProgressToken(NumberOrString::Number(1)));
        desk.hand(sign(1, 0.7));
        let progress = |done| Progress { done, total: None, message: None };
        assert_eq!(signs.next().await.unwrap(), progress(0.5));
        assert_eq!(signs.next().await.unwrap(), progress(0.7));
        drop(signs);
        assert!(desk.lock().calls.is_empty());
        for late in 0..100 {
            desk.hand(sign(late, 1.0));
        }
        assert_eq!(desk.lock().early.len(), MOST_EARLY);
    }
}
