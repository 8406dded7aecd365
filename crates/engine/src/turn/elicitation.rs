//! Questions of MCP servers to the person at work: hooks first, then the broker.

use std::sync::Arc;

use centurion_hooks::ElicitationAction;
use centurion_hooks::events::{self as hooks, ElicitationReply};
use centurion_mcp::{Elicitation, ElicitationAnswer, ElicitationKind, Elicitor, HostFuture};
use centurion_protocol::sdk::{EventBody, System, WaitsFor};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::policy::broker::Broker;

/// The receiver of servers' questions. Connections are made before there is a session; once there is one, it
/// answers.
#[derive(Default)]
pub struct Elicitations(Mutex<Option<Desk>>);

#[derive(Clone)]
struct Desk {
    broker: Arc<Broker>,
    agent: Arc<Agent>,
}

impl Elicitations {
    pub(crate) fn attach(&self, broker: Arc<Broker>, agent: Arc<Agent>) {
        *self.0.lock() = Some(Desk { broker, agent });
    }

    pub(crate) fn detach(&self) {
        *self.0.lock() = None;
    }
}

impl Elicitor for Elicitations {
    fn elicit(&self, question: Elicitation) -> HostFuture<'_, ElicitationAnswer> {
        let desk = self.0.lock().clone();
        Box::pin(async move {
            match desk {
                Some(desk) => desk.answer(question).await,
                None => ElicitationAnswer::Cancel,
            }
        })
    }

    fn completed<'a>(&'a self, server: &'a str, id: &'a str) -> HostFuture<'a, ()> {
        let desk = self.0.lock().clone();
        Box::pin(async move {
            if let Some(desk) = desk {
                desk.tell_completed(server, id).await;
            }
        })
    }
}

impl Desk {
    async fn answer(&self, question: Elicitation) -> ElicitationAnswer {
        // The server that withdraws its question drops this.
        let never = CancellationToken::new();
        let server = question.server.clone();
        let (mode, url, id, schema) = match &question.kind {
            ElicitationKind::Form { schema } => ("form", None, None, Some(schema)),
            ElicitationKind::Url { url, id } => {
                ("url", Some(url.as_str()), Some(id.as_str()), None)
            }
        };
        let asked = hooks::Elicitation {
            mcp_server_name: &server,
            message: &question.message,
            mode: Some(mode),
            url,
            elicitation_id: id,
            requested_schema: schema,
        };
        let answer = if let Some(reply) = self.agent.fire(&asked, &never).await.verdict {
            from_reply(reply)
        } else {
            self.call_for_attention(&question).await;
            let asking = self.broker.elicit(question.clone());
            self.agent.tell_wait(WaitsFor::Person, asking).await
        };
        let content = match &answer {
            ElicitationAnswer::Accept(content) => Some(Value::Object(content.clone())),
            ElicitationAnswer::Decline | ElicitationAnswer::Cancel => None,
        };
        let result = hooks::ElicitationResult {
            mcp_server_name: &server,
            action: action(&answer),
            content: content.as_ref(),
            mode: Some(mode),
            elicitation_id: id,
        };
        self.agent.fire(&result, &never).await.verdict.map_or(answer, from_reply)
    }

    /// Tells observers and hooks that the person has done what a server wanted on a page.
    async fn tell_completed(&self, server: &str, id: &str) {
        if let Some(shared) = self.agent.shared.upgrade() {
            shared.show(EventBody::System(System::ElicitationComplete {
                mcp_server_name: server.to_owned(),
                elicitation_id: id.to_owned(),
            }));
        }
        let message = format!("{server}: the page was completed");
        let notification_type = "elicitation_complete";
        let news = hooks::Notification { message: &message, title: None, notification_type };
        self.agent.fire(&news, &CancellationToken::new()).await;
    }

    async fn call_for_attention(&self, question: &Elicitation) {
        let kind = match question.kind {
            ElicitationKind::Form { .. } => "elicitation_dialog",
            ElicitationKind::Url { .. } => "elicitation_url_dialog",
        };
        if self.broker.hears_servers() {
            let message = &question.message;
            let news = hooks::Notification { message, title: None, notification_type: kind };
            self.agent.fire(&news, &CancellationToken::new()).await;
        }
    }
}

fn action(answer: &ElicitationAnswer) -> ElicitationAction {
    match answer {
        ElicitationAnswer::Accept(_) => ElicitationAction::Accept,
        ElicitationAnswer::Decline => ElicitationAction::Decline,
        ElicitationAnswer::Cancel => ElicitationAction::Cancel,
    }
}

fn from_reply(reply: ElicitationReply) -> ElicitationAnswer {
    match (reply.action, reply.content) {
        (ElicitationAction::Accept, Some(Value::Object(content))) => {
            ElicitationAnswer::Accept(content)
        }
        (ElicitationAction::Accept, _) => ElicitationAnswer::Accept(Map::new()),
        (ElicitationAction::Decline, _) => ElicitationAnswer::Decline,
        (ElicitationAction::Cancel, _) => ElicitationAnswer::Cancel,
    }
}
