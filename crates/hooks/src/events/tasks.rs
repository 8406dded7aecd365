//! The shared task list, and idle teammates.

use serde::Serialize;

use super::Block;
use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::Reply;

/// A task in the form that hooks see.
#[derive(Clone, Debug, Serialize)]
pub struct Task<'a> {
    #[serde(rename = "task_id")]
    pub id: &'a str,
    #[serde(rename = "task_subject")]
    pub subject: &'a str,
    #[serde(rename = "task_description", skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teammate_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team_name: Option<&'a str>,
}

/// A task was created; a block removes it.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct TaskCreated<'a>(pub Task<'a>);

/// A task is about to be completed; a block keeps it open.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct TaskCompleted<'a>(pub Task<'a>);

/// The text for the model when a hook blocks.
fn feedback(event: Event, replies: &[Reply]) -> Block {
    let Block(reason) = Block::of(replies);
    Block(reason.map(|reason| format!("{event} hook feedback:\n{reason}")))
}

impl EventInput for TaskCreated<'_> {
    const EVENT: Event = Event::TaskCreated;
    type Verdict = Block;

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        feedback(Self::EVENT, replies)
    }
}

impl EventInput for TaskCompleted<'_> {
    const EVENT: Event = Event::TaskCompleted;
    type Verdict = Block;

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        feedback(Self::EVENT, replies)
    }
}

/// A teammate is about to become idle; a block keeps it working.
#[derive(Clone, Debug, Serialize)]
pub struct TeammateIdle<'a> {
    pub teammate_name: &'a str,
    pub team_name: &'a str,
}

impl EventInput for TeammateIdle<'_> {
    const EVENT: Event = Event::TeammateIdle;
    type Verdict = Block;

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        feedback(Self::EVENT, replies)
    }
}
