//! The way of events from the engine to the program that reads them.

use std::task::{Context, Poll};

use centurion_engine::{RoomFuture, View};
use centurion_protocol::sdk::{self, EventBody, RunResult, System};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::Event;
use crate::event::events;

/// The most events that wait for the program before agents wait with their next request.
const MOST: usize = 1024;

/// Something that the session tells.
pub(crate) enum News {
    Event(Event),
    /// A run of the main agent has ended.
    Result(Box<RunResult>),
    /// Nothing is at work any more.
    Idle,
    /// The session is over.
    Ended,
}

/// The engine's end. Agents wait before their next request where the reader is far behind, which bounds the channel.
#[derive(Clone)]
pub(crate) struct Outlet {
    sender: UnboundedSender<News>,
    waiting: watch::Sender<usize>,
}

/// The reader's end.
pub(crate) struct Inbox {
    receiver: UnboundedReceiver<News>,
    waiting: watch::Sender<usize>,
}

pub(crate) fn channel() -> (Outlet, Inbox) {
    let (sender, receiver) = unbounded_channel();
    let waiting = watch::Sender::new(0);
    (Outlet { sender, waiting: waiting.clone() }, Inbox { receiver, waiting })
}

impl Outlet {
    pub(crate) fn tell(&self, news: News) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        // Without a reader the session is about to end.
        drop(self.sender.send(news));
    }
}

impl View for Outlet {
    fn show(&self, event: &sdk::Event) {
        match &event.body {
            EventBody::Result(result) => self.tell(News::Result(result.clone())),
            EventBody::System(System::SessionStateChanged { state: "idle" }) => {
                self.tell(News::Idle);
            }
            _ => events(event).into_iter().for_each(|event| self.tell(News::Event(event))),
        }
    }

    fn wants_state(&self) -> bool {
        true
    }

    fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        if *self.waiting.borrow() < MOST || self.sender.is_closed() {
            return None;
        }
        let mut waiting = self.waiting.subscribe();
        Some(Box::pin(async move {
            let has_room = waiting.wait_for(|waiting| *waiting < MOST);
            tokio::select! {
                // The sender of the count lives as long as this outlet.
                _ = has_room => {}
                () = self.sender.closed() => {}
            }
        }))
    }
}

impl Inbox {
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<News> {
        self.receiver.poll_recv(context).map(|news| {
            self.waiting.send_modify(|waiting| *waiting = waiting.saturating_sub(1));
            news.unwrap_or(News::Ended)
        })
    }
}
