//! An MCP server asks the user something.

use serde::Serialize;
use serde_json::Value;

use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::output::ElicitationAction;
use crate::reply::{self, Reply};

/// A server's question is about to be shown to the user.
#[derive(Clone, Debug, Serialize)]
pub struct Elicitation<'a> {
    pub mcp_server_name: &'a str,
    pub message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<&'a Value>,
}

/// The user's answer is about to be sent to the server.
#[derive(Clone, Debug, Serialize)]
pub struct ElicitationResult<'a> {
    pub mcp_server_name: &'a str,
    pub action: ElicitationAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation_id: Option<&'a str>,
}

/// The answer to the server instead.
#[derive(Clone, Debug, PartialEq)]
pub struct ElicitationReply {
    pub action: ElicitationAction,
    pub content: Option<Value>,
}

/// A blocking hook declines; otherwise the answer that was declared last counts.
fn answer(replies: &[Reply]) -> Option<ElicitationReply> {
    if reply::blocks(replies).is_some() {
        return Some(ElicitationReply { action: ElicitationAction::Decline, content: None });
    }
    reply::last(replies, |it| {
        Some(ElicitationReply { action: it.action?, content: it.content.clone() })
    })
}

impl EventInput for Elicitation<'_> {
    const EVENT: Event = Event::Elicitation;
    type Verdict = Option<ElicitationReply>;

    fn subject(&self) -> Option<&str> {
        Some(self.mcp_server_name)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> Option<ElicitationReply> {
        answer(replies)
    }
}

impl EventInput for ElicitationResult<'_> {
    const EVENT: Event = Event::ElicitationResult;
    type Verdict = Option<ElicitationReply>;

    fn subject(&self) -> Option<&str> {
        Some(self.mcp_server_name)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> Option<ElicitationReply> {
        answer(replies)
    }
}
