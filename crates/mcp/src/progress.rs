//! Signs of life from running calls, handed to whoever waits for the call.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::mpsc;

/// How far a call has come, as its server tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Which calls wait for signs of life.
#[derive(Debug, Default)]
pub(crate) struct ProgressDesk(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// The desk sends, the call receives. A full channel drops the sign: the call has one to see already.
    calls: HashMap<ProgressToken, mpsc::Sender<Progress>>,
    /// Signs that came before their call stood here, the oldest first. Late signs of ended calls end up
    /// here too, and are pushed out.
    early: VecDeque<(ProgressToken, Progress)>,
}

const MOST_EARLY: usize = 32;
const MOST_UNSEEN: usize = 16;

impl ProgressDesk {
    /// Hands a sign to its call.
    pub(crate) fn hand(&self, sign: ProgressNotificationParam) {
        let progress = Progress { done: sign.progress, total: sign.total, message: sign.message };
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

    /// Waits for the signs of a call until the result is dropped.
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

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    fn sign(token: i64, done: f64) -> ProgressNotificationParam {
        ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(token)), done)
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
