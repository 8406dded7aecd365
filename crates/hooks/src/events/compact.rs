//! A conversation is compacted.

use serde::Serialize;

use super::Block;
use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::Reply;

/// The origin of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactTrigger {
    Manual,
    Auto,
}

impl CompactTrigger {
    pub fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

/// A conversation is about to be compacted; a block prevents it.
#[derive(Clone, Debug, Serialize)]
pub struct PreCompact<'a> {
    pub trigger: CompactTrigger,
    pub custom_instructions: &'a str,
}

impl EventInput for PreCompact<'_> {
    const EVENT: Event = Event::PreCompact;
    type Verdict = Block;

    fn subject(&self) -> Option<&str> {
        Some(self.trigger.name())
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        Block::of(replies)
    }
}

/// A conversation was compacted.
#[derive(Clone, Debug, Serialize)]
pub struct PostCompact<'a> {
    pub trigger: CompactTrigger,
    pub compact_summary: &'a str,
}

impl EventInput for PostCompact<'_> {
    const EVENT: Event = Event::PostCompact;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.trigger.name())
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}
