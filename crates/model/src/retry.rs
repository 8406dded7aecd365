//! Retries: their conditions, number and delays.
//!
//! A retry repeats the whole request. The reader of the stream is told to discard the partial answer, so that nothing
//! is seen twice.

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{Env, World};
use futures_util::{Stream, StreamExt, stream};
use tokio::time::Instant;

use crate::failure::{self, malformed};
use crate::gate::{self, Gate, Pass};
use crate::limits::Tally;
use crate::{ErrorKind, EventStream, ModelError, Provider, Request, StreamEvent};

/// The most retries that a person can ask for.
const MOST_RETRIES: u32 = 15;

/// The persistence of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As in the policy.
    Full,
    /// A few retries: there is a fallback model.
    Brief,
}

/// The number of retries when there is a fallback model.
const BRIEF_RETRIES: u32 = 3;

/// The retry settings of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    pub max_retries: u32,
    /// The wait before the first retry; it doubles with each.
    pub first_delay: Duration,
    pub longest_delay: Duration,
    /// The longest silence before a timeout.
    pub silence: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 10,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(32),
            silence: Duration::from_mins(10),
        }
    }
}

impl RetryPolicy {
    pub fn new(env: &Env) -> Self {
        let default = Self::default();
        let asked = env.number("CLAUDE_CODE_MAX_RETRIES").unwrap_or(default.max_retries);
        let silence = env.millis("API_TIMEOUT_MS").filter(|limit| !limit.is_zero());
        Self {
            max_retries: asked.min(MOST_RETRIES),
            silence: silence.unwrap_or(default.silence),
            ..default
        }
    }

    pub(crate) fn with(self, patience: Patience) -> Self {
        match patience {
            Patience::Full => self,
            Patience::Brief => Self { max_retries: self.max_retries.min(BRIEF_RETRIES), ..self },
        }
    }

    /// The wait before the given retry, counted from one.
    fn delay(&self, attempt: u32, asked: Option<Duration>, world: &dyn World) -> Duration {
        if let Some(wait) = asked.map(|wait| wait.min(gate::LONGEST_WAIT)) {
            return wait + gate::spread(wait).mul_f64(world.fraction());
        }
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let delay = self.first_delay.saturating_mul(doubled).min(self.longest_delay);
        delay + (delay / 4).mul_f64(world.fraction())
    }
}

/// The events of a model's stream.
#[derive(Clone, Debug)]
pub enum ModelEvent {
    Stream(StreamEvent),
    /// The answer failed and will start again: its earlier events are void.
    Retry(RetryNotice),
    /// The provider makes all requests wait, because of another one: this one has not begun.
    Held,
}

/// A retry after a wait that begins now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryNotice {
    /// Counted from one.
    pub attempt: u32,
    pub max_retries: u32,
    pub delay: Duration,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    pub error: ErrorKind,
    /// The failure and its cause, for a person.
    pub message: String,
}

/// The events of one request with all its retries. It ends after `Finish`, or with a final error. Dropping it cancels
/// the request.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// One request and its retries.
pub(crate) struct Attempts {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) request: Request,
    pub(crate) gate: Arc<Gate>,
    pub(crate) policy: RetryPolicy,
    /// Whether silence between events counts. Network providers watch their bytes instead, some of which only mean that
    /// the answer is still to come.
    pub(crate) watches_events: bool,
    pub(crate) world: Arc<dyn World>,
}

impl Attempts {
    pub(crate) fn stream(self) -> ModelStream {
        let state =
            RetryState { attempts: self, retries: 0, is_told_held: false, stage: Stage::Ready };
        stream::unfold(state, |mut state| async {
            let item = state.next().await?;
            Some((item, state))
        })
        .boxed()
    }
}

struct RetryState {
    attempts: Attempts,
    /// The number of retries so far.
    retries: u32,
    /// Whether the reader of the stream knows that the request waits.
    is_told_held: bool,
    stage: Stage,
}

enum Stage {
    Ready,
    /// Nothing is sent until then, even if the stream is not polled meanwhile.
    Waiting(Instant),
    /// The pass is held while the request is in flight, but not while it waits.
    Streaming {
        events: EventStream,
        tally: Tally,
        _pass: Pass,
    },
    Over,
}

impl RetryState {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            match &mut self.stage {
                Stage::Over => return None,
                Stage::Waiting(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.stage = Stage::Ready;
                }
                Stage::Ready if self.attempts.gate.is_closed() && !self.is_told_held => {
                    self.is_told_held = true;
                    return Some(Ok(ModelEvent::Held));
                }
                Stage::Ready => {
                    let pass = self.attempts.gate.enter(self.attempts.world.as_ref()).await;
                    let events = self.attempts.provider.stream(self.attempts.request.clone());
                    self.stage = Stage::Streaming { events, tally: Tally::default(), _pass: pass };
                }
                Stage::Streaming { events, tally, .. } => {
                    let silence = self.attempts.policy.silence;
                    let next = if self.attempts.watches_events {
                        let quiet =
                            |_| Some(Err(failure::silent("the answer stopped coming", silence)));
                        tokio::time::timeout(silence, events.next()).await.unwrap_or_else(quiet)
                    } else {
                        events.next().await
                    };
                    let error = match next {
                        Some(Ok(event)) if let Err(error) = tally.count(&event) => error,
                        Some(Ok(event)) => {
                            if matches!(event, StreamEvent::Finish { .. }) {
                                self.stage = Stage::Over;
                            }
                            return Some(Ok(ModelEvent::Stream(event)));
                        }
                        Some(Err(error)) => error,
                        None => malformed("the answer ended before it was finished"),
                    };
                    return Some(self.fail(error));
                }
            }
        }
    }

    fn fail(&mut self, error: ModelError) -> Result<ModelEvent, ModelError> {
        tracing::debug!(kind = ?error.kind, status = error.status, "a request failed: {error}");
        self.stage = Stage::Over;
        if let (ErrorKind::RateLimit, Some(wait)) = (error.kind, error.retry_after) {
            self.attempts.gate.close_for(wait);
        }
        let policy = self.attempts.policy;
        if !error.kind.is_retryable() || self.retries >= policy.max_retries {
            return Err(error);
        }
        self.retries += 1;
        // The notice says so already.
        self.is_told_held = true;
        let delay = policy.delay(self.retries, error.retry_after, self.attempts.world.as_ref());
        self.stage = Stage::Waiting(Instant::now() + delay);
        Ok(ModelEvent::Retry(RetryNotice {
            attempt: self.retries,
            max_retries: policy.max_retries,
            delay,
            status: error.status,
            error: error.kind,
            message: error.message,
        }))
    }
}
