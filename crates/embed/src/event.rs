//! The events of a session.

use centurion_protocol::sdk::{self, EventBody, System};
use centurion_protocol::{AgentId, Block, ToolResultContent};
use serde_json::Value;

use crate::Answer;

/// Something that happened in a session. `agent` is the id of the agent that it happened to; `None` is the main agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The main agent begins to run.
    Started { model: String, tools: Vec<String> },
    /// A piece of a text that is being written; only where [`SessionBuilder::streams_text`](crate::SessionBuilder::streams_text)
    /// asks for it. The whole text follows.
    TextDelta { agent: Option<String>, text: String },
    /// A text that an agent wrote.
    Text { agent: Option<String>, text: String },
    /// The thoughts of an agent.
    Thinking { agent: Option<String>, text: String },
    /// A model asks for a call.
    Call { agent: Option<String>, id: String, tool: String, input: Value },
    /// A call has its result.
    CallEnded { agent: Option<String>, id: String, text: String, is_error: bool },
    /// A call was denied.
    Denied { agent: Option<String>, tool: String, reason: String },
    /// An agent begins that another one started.
    AgentStarted { id: String, name: Option<String>, kind: String, task: String },
    /// An agent has ended: `status` is `completed`, `failed` or `stopped`.
    AgentEnded { id: String, status: String, summary: String },
    /// A request is sent again.
    Retry { agent: Option<String>, attempt: u32, reason: String },
    /// Something that people should know, such as a warning.
    Notice { level: String, text: String },
    /// The prompt is answered: the last event of a turn.
    Answered(Answer),
}

/// The events for the program that an event of the engine means.
pub(crate) fn events(event: &sdk::Event) -> Vec<Event> {
    match &event.body {
        EventBody::System(system) => of_system(system).into_iter().collect(),
        EventBody::Assistant(said) => {
            let agent = said.agent.as_ref().map(|tag| tag.agent_id.to_string());
            said.message.content.iter().filter_map(|block| of_block(block, agent.clone())).collect()
        }
        EventBody::User(user) => {
            let agent = user.agent.as_ref().map(|tag| tag.agent_id.to_string());
            let content = user.message.content.iter();
            content.filter_map(|block| of_result(block, agent.clone())).collect()
        }
        EventBody::StreamEvent(stream) => {
            let delta: Option<Value> = serde_json::from_str(stream.event.get()).ok();
            let text = delta.as_ref().and_then(|delta| delta.pointer("/delta/text")?.as_str());
            let agent = id(stream.agent_id.as_ref());
            text.map(|text| Event::TextDelta { agent, text: text.to_owned() }).into_iter().collect()
        }
        EventBody::ToolProgress(_)
        | EventBody::PromptSuggestion(_)
        | EventBody::RateLimitEvent(_)
        | EventBody::ToolUseSummary(_)
        | EventBody::ActiveGoal { .. }
        | EventBody::ConversationReset { .. }
        | EventBody::Result(_)
        // Members work in this process where a program runs them.
        | EventBody::Relayed(_) => Vec::new(),
    }
}

fn id(agent: Option<&AgentId>) -> Option<String> {
    agent.map(ToString::to_string)
}

fn of_system(system: &System) -> Option<Event> {
    Some(match system {
        System::Init(init) => {
            Event::Started { model: init.model.clone(), tools: init.tools.clone() }
        }
        System::ApiRetry(retry) => Event::Retry {
            agent: id(retry.agent_id.as_ref()),
            attempt: retry.attempt,
            reason: retry.error.to_owned(),
        },
        System::PermissionDenied(denied) => Event::Denied {
            agent: id(denied.agent_id.as_ref()),
            tool: denied.tool_name.clone(),
            reason: denied.decision_reason.clone(),
        },
        System::Informational(told) => {
            Event::Notice { level: told.level.to_owned(), text: told.content.clone() }
        }
        System::TaskStarted(task) => Event::AgentStarted {
            id: task.task_id.clone(),
            name: task.name.clone(),
            // A shell in the background is no agent.
            kind: task.subagent_type.clone()?,
            task: task.description.clone(),
        },
        System::TaskNotification(task) => Event::AgentEnded {
            id: task.task_id.clone(),
            status: task.status.to_owned(),
            summary: task.summary.clone(),
        },
        _ => return None,
    })
}

fn of_block(block: &Block, agent: Option<String>) -> Option<Event> {
    Some(match block {
        Block::Text(text) => Event::Text { agent, text: text.clone() },
        Block::Thinking { thinking, .. } => Event::Thinking { agent, text: thinking.clone() },
        Block::ToolUse(call) => Event::Call {
            agent,
            id: call.id.to_string(),
            tool: call.name.clone(),
            input: serde_json::from_str(call.input.get()).unwrap_or_default(),
        },
        _ => return None,
    })
}

fn of_result(block: &Block, agent: Option<String>) -> Option<Event> {
    let Block::ToolResult(result) = block else { return None };
    let texts = result.content.iter().filter_map(|part| match part {
        ToolResultContent::Text(text) => Some(text.as_str()),
        _ => None,
    });
    Some(Event::CallEnded {
        agent,
        id: result.id.to_string(),
        text: texts.collect::<Vec<_>>().join("\n"),
        is_error: result.is_error,
    })
}
