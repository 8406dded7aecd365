//! A session: one conversation with an agent, and the agents that it starts.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use centurion_engine::{Handle, Session as EngineSession};
use centurion_protocol::{Block, SystemWorld, World as _};
use futures_util::Stream;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::inbox::{Inbox, News, Outlet};
use crate::{Answer, Error, ErrorKind, Event, Model, SessionBuilder};

/// One conversation. Dropping it ends everything that it started.
pub struct Session {
    handle: Handle,
    inbox: Inbox,
    /// Holds the one task that runs the engine's session.
    run: JoinSet<()>,
    /// True from a prompt until nothing is at work any more.
    is_busy: bool,
    has_ended: bool,
    /// The files of a session that keeps none, gone with it.
    _scratch: Option<TempDir>,
}

impl Session {
    /// Begins to describe a session with this model.
    pub fn builder(model: Model) -> SessionBuilder {
        SessionBuilder::new(model)
    }

    /// Sets an opened session to work. Every prompt waits in the queue until the session takes it.
    pub(crate) fn start(
        mut session: EngineSession,
        (outlet, inbox): (Outlet, Inbox),
        scratch: Option<TempDir>,
    ) -> Self {
        let handle = session.handle();
        let mut run = JoinSet::new();
        run.spawn(async move {
            session.run().await;
            outlet.tell(News::Ended);
        });
        Self { handle, inbox, run, is_busy: false, has_ended: false, _scratch: scratch }
    }

    /// The id by which [`SessionBuilder::resume`] finds the session again.
    pub fn id(&self) -> String {
        self.handle.id().to_string()
    }

    /// Sends a prompt and waits for its answer. Agents in the background belong to it: the answer is there when they have
    /// ended, and the main agent has read what they found.
    pub async fn ask(&mut self, prompt: impl Into<String>) -> Result<Answer, Error> {
        let mut turn = self.send(prompt);
        while let Some(event) = turn.next().await {
            if let Event::Answered(answer) = event {
                return Ok(answer);
            }
        }
        Err(Error::new(ErrorKind::Ended, "the session has ended"))
    }

    /// Sends a prompt, and gives what happens as a stream that ends with [`Event::Answered`]. Dropping it before
    /// interrupts the work. The prompt is sent when the stream is first polled.
    pub fn send(&mut self, prompt: impl Into<String>) -> Turn<'_> {
        Turn { session: self, prompt: Some(prompt.into()), answer: None, is_over: false }
    }

    /// A way to interrupt the session from elsewhere.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.handle.clone())
    }

    /// Ends the session, and waits until what it keeps is complete.
    pub async fn close(self) {
        let Self { handle, inbox, mut run, .. } = self;
        // Nothing reads any more: nothing may wait for a reader.
        drop(inbox);
        handle.close();
        while run.join_next().await.is_some() {}
    }

    fn submit(&mut self, prompt: String) {
        self.is_busy = true;
        self.handle.submit(SystemWorld.record_id(), vec![Block::Text(prompt)]);
    }
}

/// Interrupts a session from another task. Cloning is cheap.
#[derive(Clone)]
pub struct Interrupter(Handle);

impl Interrupter {
    /// Stops the main agent and all others. The prompt ends as [`Outcome::Interrupted`](crate::Outcome::Interrupted),
    /// and the conversation can continue.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

/// The events of one prompt.
pub struct Turn<'s> {
    session: &'s mut Session,
    /// The prompt, until it is sent.
    prompt: Option<String>,
    answer: Option<Answer>,
    is_over: bool,
}

impl Turn<'_> {
    /// The next event; `None` behind [`Event::Answered`].
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| self.poll_event(context)).await
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if self.is_over || self.session.has_ended {
                self.is_over = true;
                return Poll::Ready(None);
            }
            // The rest of an earlier turn comes first, and is not this turn's.
            let is_old = self.session.is_busy && self.prompt.is_some();
            if !is_old && let Some(prompt) = self.prompt.take() {
                self.session.submit(prompt);
            }
            match ready!(self.session.inbox.poll_next(context)) {
                News::Idle => {
                    self.session.is_busy = false;
                    if !is_old {
                        self.is_over = true;
                        return Poll::Ready(self.answer.take().map(Event::Answered));
                    }
                }
                News::Ended => {
                    self.session.has_ended = true;
                    self.is_over = true;
                    return Poll::Ready(self.answer.take().map(Event::Answered));
                }
                News::Result(result) if !is_old => {
                    self.answer = Some(Answer::fold(self.answer.take(), &result));
                }
                News::Event(event) if !is_old => return Poll::Ready(Some(event)),
                News::Result(_) | News::Event(_) => {}
            }
        }
    }
}

impl Stream for Turn<'_> {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.get_mut().poll_event(context)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.session.is_busy && self.prompt.is_none() {
            self.session.handle.interrupt();
        }
    }
}
