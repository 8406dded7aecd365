//! Supervises one connection: opens it, reopens a broken remote one, and follows changes.

use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::McpServer;
use rmcp::model::ServerNotification;
use rmcp::service::Subscription;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::catalog::{self, Catalog, ListKind};
use crate::client::{Client, ListChanges};
use crate::link::Link;
use crate::open::{Greeting, Session, open};
use crate::transport::failure::Failure;
use crate::{State, auth};

/// The number of attempts to reach a remote server at first.
const FIRST_TRIES: u32 = 3;
/// The number of attempts after it broke.
const MORE_TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
/// The time between two readings of lists, however often a server reports changes.
const REST: Duration = Duration::from_millis(200);

type Wish = oneshot::Sender<State>;

/// Runs in a task of its own until the connection is closed.
pub(crate) struct Supervisor {
    link: Arc<Link>,
    server: McpServer,
    wishes: mpsc::Receiver<Wish>,
}

/// The reason that a connection is being opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenReason {
    Asked,
    Broke,
}

/// An event that ends the watch over an open connection, or the rest without one.
enum WatchEvent {
    Closing,
    Wish(Wish),
    Ended,
}

impl Supervisor {
    pub(crate) fn new(link: Arc<Link>, server: McpServer, wishes: mpsc::Receiver<Wish>) -> Self {
        Self { link, server, wishes }
    }

    pub(crate) async fn run(mut self) {
        let _closed = self.link.closed.clone().drop_guard();
        let mut cause = OpenReason::Asked;
        let mut wish: Option<Wish> = None;
        loop {
            let opened = tokio::select! {
                biased;
                () = self.link.closing.cancelled() => break,
                // A new request does not wait for the next attempt.
                Some(newer) = self.wishes.recv() => {
                    (cause, wish) = (OpenReason::Asked, Some(newer));
                    continue;
                }
                opened = try_to_open(&self.link, &self.server, cause) => opened,
            };
            let event = match opened {
                Ok(session) => {
                    self.show(&session);
                    self.tell(wish.take());
                    self.keep(session).await
                }
                Err(failure) => {
                    self.show_failure(failure);
                    self.tell(wish.take());
                    self.rest().await
                }
            };
            cause = match event {
                WatchEvent::Closing => break,
                WatchEvent::Wish(newer) => {
                    wish = Some(newer);
                    OpenReason::Asked
                }
                WatchEvent::Ended => OpenReason::Broke,
            };
            self.link.change(|seen| seen.state = State::Pending);
        }
        self.link.change(|seen| {
            (seen.state, seen.live, seen.catalog) = (State::Closed, None, Arc::default());
        });
    }

    fn show(&self, session: &Session) {
        self.link.change(|seen| {
            seen.state = State::Connected;
            seen.live = Some(session.live.clone());
            seen.catalog = Arc::new(session.catalog.clone());
            seen.info = Some(session.info.clone());
            seen.instructions.clone_from(&session.instructions);
        });
    }

    fn show_failure(&self, failure: Failure) {
        let state = match failure {
            Failure::NeedsAuth { reason, scope } => {
                auth::needs_login(&self.link.settings, &self.server, &reason, scope)
            }
            Failure::Passing(reason) | Failure::Lasting(reason) => State::Failed { reason },
        };
        self.link.change(|seen| {
            (seen.state, seen.live, seen.catalog) = (state, None, Arc::default());
        });
    }

    /// Answers the caller that asked for the connection.
    fn tell(&self, wish: Option<Wish>) {
        if let Some(wish) = wish {
            // The caller may have stopped waiting.
            let _ = wish.send(self.link.seen().state.clone());
        }
    }

    /// Watches an open connection until an event; closes it in good order.
    async fn keep(&mut self, mut session: Session) -> WatchEvent {
        let mut stale = session.live.client.stale();
        // Something may have changed while the lists were read for the first time.
        stale.mark_changed();
        let mut known = ListChanges::default();
        let mut next_reading = Instant::now();
        let event = loop {
            tokio::select! {
                biased;
                () = self.link.closing.cancelled() => break WatchEvent::Closing,
                () = session.ended.cancelled() => break WatchEvent::Ended,
                Some(wish) = self.wishes.recv() => break WatchEvent::Wish(wish),
                Ok(()) = changed_after(&mut stale, next_reading) => {
                    let now = *stale.borrow_and_update();
                    let parts = changed(known, now);
                    known = now;
                    self.read_again(&mut session, &parts).await;
                    next_reading = Instant::now() + REST;
                }
                notification = next_notification(&mut session.subscription) => match notification {
                    Some(notification) => mark(&session.live.client, &notification),
                    None => session.subscription = None,
                },
            }
        };
        if let WatchEvent::Ended = event {
            let reason = session.why_ended().await;
            session.give_up(&reason);
            if !self.link.is_remote {
                self.show_failure(Failure::Lasting(reason));
                session.close().await;
                return self.rest().await;
            }
        }
        self.link.change(|seen| seen.live = None);
        session.close().await;
        event
    }

    /// Reads changed lists again.
    async fn read_again(&self, session: &mut Session, parts: &[ListKind]) {
        if parts.is_empty() {
            return;
        }
        let mut catalog = session.catalog.clone();
        let peer = session.live.peer.clone();
        let reading =
            catalog::list(&peer, &session.capabilities, &self.server.name, parts, &mut catalog);
        let done = tokio::select! {
            read = reading => read.map_err(|failure| self.show_failure(failure)).is_ok(),
            () = self.link.closing.cancelled() => false,
            () = session.ended.cancelled() => false,
            () = sleep(self.link.settings.limits.connect) => false,
        };
        if done {
            self.replace_catalog(session, catalog);
        }
    }

    fn replace_catalog(&self, session: &mut Session, catalog: Catalog) {
        session.catalog = catalog;
        let shown = Arc::new(session.catalog.clone());
        self.link.change(|seen| seen.catalog = shown);
    }

    /// Waits, without a connection, until a caller wants one or none can any more.
    async fn rest(&mut self) -> WatchEvent {
        tokio::select! {
            () = self.link.closing.cancelled() => WatchEvent::Closing,
            wish = self.wishes.recv() => wish.map_or(WatchEvent::Closing, WatchEvent::Wish),
        }
    }
}

/// Opens the connection, with the number of attempts for its kind.
async fn try_to_open(
    link: &Link,
    server: &McpServer,
    cause: OpenReason,
) -> Result<Session, Failure> {
    let tries = match cause {
        _ if !link.is_remote => 1,
        OpenReason::Asked => FIRST_TRIES,
        OpenReason::Broke => MORE_TRIES,
    };
    let mut pause = PAUSE;
    let mut last = None;
    for attempt in 0..tries {
        if attempt > 0 || cause == OpenReason::Broke {
            sleep(pause).await;
            pause *= 2;
        }
        // A server that breaks at the question may accept a plain handshake.
        let greeting = if attempt % 2 == 0 { Greeting::Ask } else { Greeting::Plain };
        match open(&link.settings, server, greeting).await {
            Err(Failure::Passing(reason)) => {
                tracing::debug!(server = server.name, reason, "an MCP server is not there");
                last = Some(Failure::Passing(reason));
            }
            settled => return settled,
        }
    }
    Err(last.unwrap_or_else(|| Failure::Lasting("it was never tried".to_owned())))
}

/// Waits for a change, and until the next reading is due.
async fn changed_after(
    stale: &mut watch::Receiver<ListChanges>,
    earliest: Instant,
) -> Result<(), watch::error::RecvError> {
    sleep_until(earliest).await;
    stale.changed().await
}

/// The lists that have been reported since.
fn changed(known: ListChanges, now: ListChanges) -> Vec<ListKind> {
    let parts = [
        (known.tools != now.tools, ListKind::Tools),
        (known.prompts != now.prompts, ListKind::Prompts),
        (known.resources != now.resources, ListKind::Resources),
    ];
    parts.into_iter().filter_map(|(is_changed, part)| is_changed.then_some(part)).collect()
}

/// The next notification of a newer server; never returns without a subscription.
async fn next_notification(subscription: &mut Option<Subscription>) -> Option<ServerNotification> {
    match subscription {
        Some(subscription) => subscription.next().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

fn mark(client: &Client, notification: &ServerNotification) {
    client.mark_stale(|stale| match notification {
        ServerNotification::ToolListChangedNotification(_) => stale.tools += 1,
        ServerNotification::PromptListChangedNotification(_) => stale.prompts += 1,
        ServerNotification::ResourceListChangedNotification(_) => stale.resources += 1,
        _ => {}
    });
}
