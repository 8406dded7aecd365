//! Events about text for a person.

use serde::Serialize;

use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::{self, Reply};

/// The program wants a person's attention.
#[derive(Clone, Debug, Serialize)]
pub struct Notification<'a> {
    pub message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    pub notification_type: &'a str,
}

impl EventInput for Notification<'_> {
    const EVENT: Event = Event::Notification;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.notification_type)
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}

/// A piece of an answer is about to be shown.
#[derive(Clone, Debug, Serialize)]
pub struct MessageDisplay<'a> {
    pub turn_id: &'a str,
    pub message_id: &'a str,
    pub index: usize,
    #[serde(rename = "final")]
    pub is_final: bool,
    pub delta: &'a str,
}

impl EventInput for MessageDisplay<'_> {
    const EVENT: Event = Event::MessageDisplay;
    /// The text to show instead. Of several, the one declared last.
    type Verdict = Option<String>;

    fn fold(&self, _: &Common, replies: &[Reply]) -> Option<String> {
        reply::last(replies, |it| it.display_content.clone())
    }
}
