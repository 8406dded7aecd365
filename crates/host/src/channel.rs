//! Our requests to a host, over its control channel: each ends with the host's response, or is withdrawn.
//!
//! With `--permission-prompt-tool stdio` the host is who answers questions: each is a `can_use_tool`
//! request that ends with the host's response, or is withdrawn when its call ends first.

mod again;
mod late;
mod permission;
mod state;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_engine::{Answerer, Ask, ElicitFuture, HookHost, ReplyFuture, Unanswered};
use centurion_hooks::DelegateFuture;

use centurion_mcp::{
    Elicitation, ElicitationAnswer, ElicitationKind, HostError, HostFuture, SdkChannel, SdkInbox,
};
use centurion_protocol::{CurrentSession, SessionId, Timestamp, ToolUseId, World};
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::late::{Subject, Withdrawn};
use self::state::WaitState;
use crate::control::matched;
use crate::{OutputQueue, RequestId, Requests, without_nulls};
pub use permission::reply;

/// The way to a host and back: its output, and our requests that wait for its responses.
pub struct HostChannel {
    output: Arc<OutputQueue>,
    world: Arc<dyn World>,
    /// Our own requests that wait for the host's response.
    requests: Requests,
    withdrawn: Withdrawn,
    state: WaitState,
    /// The ways to the servers that live in the host, by their names.
    inboxes: Mutex<HashMap<String, SdkInbox>>,
    /// Whether the host has introduced itself: it answers requests.
    is_introduced: AtomicBool,
}

impl HostChannel {
    /// A host that is told when `reported` waits for it, if it wants to know.
    pub fn new(
        output: Arc<OutputQueue>,
        world: Arc<dyn World>,
        reported: Option<SessionId>,
    ) -> Self {
        let (requests, withdrawn) = (Requests::default(), Withdrawn::default());
        let (state, inboxes) = (WaitState::new(reported), Mutex::default());
        let is_introduced = AtomicBool::default();
        Self { output, world, requests, withdrawn, state, inboxes, is_introduced }
    }

    /// Tells the host of the session by its present id, also after the conversation began anew.
    pub fn follow(&self, session: CurrentSession) {
        self.state.follow(session);
    }

    /// The host has introduced itself. Returns true if it had done that before.
    pub(crate) fn introduce(&self) -> bool {
        self.is_introduced.swap(true, Ordering::Relaxed)
    }

    /// The present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.world.now().into()
    }

    /// Prints a line that is no event of the session.
    pub fn send(&self, line: &Value) {
        self.output.json_line(line);
    }

    /// Passes on what a server in the host says by itself.
    pub(crate) fn pass_on(&self, server: &str, message: Value) -> Result<(), HostError> {
        match self.inboxes.lock().get(server) {
            Some(inbox) => inbox(message),
            None => Err(format!("there is no server `{server}` of the host").into()),
        }
    }

    /// Tells the host that its request has begun, whose answer takes long.
    pub(crate) fn tell_begun(&self, request: &RequestId, session: SessionId) {
        self.send(&json!({
            "type": "system", "subtype": "control_request_progress", "status": "started",
            "request_id": request, "uuid": self.world.uuid(), "session_id": session,
        }));
    }

    /// Takes the host's response to one of our requests. What it gives back is for the main agent to be told: the
    /// host answered a question that no call asks any more.
    pub fn take_response(&self, response: Value) -> Option<String> {
        let id = response.get("request_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let response = self.requests.respond(&id, response).err()?;
        tracing::debug!(id, "a response came for no open request");
        self.withdrawn.telling(&id, &response)
    }

    /// The end of input: every call that waits for the host, now or later, will not hear from it.
    pub fn disconnect(&self) {
        self.requests.disconnect();
    }

    /// Puts a request to the host and waits for its response. Dropping the future withdraws it.
    pub async fn ask_host(&self, request: Value) -> Result<Value, NoResponse> {
        let id = self.world.uuid().to_string();
        let subject = late::subject(&request);
        let line =
            Arc::new(json!({"type": "control_request", "request_id": id, "request": request}));
        let receiver = self.requests.expect(&id, Arc::clone(&line)).ok_or(NoResponse::Gone)?;
        let mut question = QuestionGuard { channel: self, id: &id, subject, is_answered: false };
        self.send(&line);
        let response = receiver.await;
        question.is_answered = true;
        let response = response.map_err(|_| NoResponse::Left)?;
        if response.get("subtype").and_then(Value::as_str) != Some("success") {
            let error = response.get("error").and_then(Value::as_str).unwrap_or("no reason given");
            return Err(NoResponse::Failed(error.to_owned()));
        }
        Ok(response.get("response").cloned().unwrap_or_default())
    }
}

/// The reason why a host has not done what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoResponse {
    #[error("the host went away and cannot be asked")]
    Gone,
    #[error("the host went away without an answer")]
    Left,
    #[error("the host failed to answer: {0}")]
    Failed(String),
}

impl From<NoResponse> for Unanswered {
    fn from(why: NoResponse) -> Self {
        match why {
            NoResponse::Failed(_) => Self::by_host(why.to_string()),
            NoResponse::Gone | NoResponse::Left => Self::because(why.to_string()),
        }
    }
}

impl HookHost for HostChannel {
    fn call<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        Box::pin(async move {
            let mut request =
                json!({"subtype": "hook_callback", "callback_id": id, "input": input});
            if let Some(call) = call {
                request["tool_use_id"] = json!(call);
            }
            Ok(self.ask_host(request).await?)
        })
    }
}

impl SdkChannel for HostChannel {
    fn exchange<'a>(
        &'a self,
        server: &'a str,
        message: Value,
    ) -> HostFuture<'a, Result<Option<Value>, HostError>> {
        Box::pin(async move {
            let request =
                json!({"subtype": "mcp_message", "server_name": server, "message": message});
            let answer = self.ask_host(request).await?;
            Ok(answer.get("mcp_response").cloned().filter(|response| response.get("id").is_some()))
        })
    }

    fn listen(&self, server: &str, inbox: SdkInbox) {
        self.inboxes.lock().insert(server.to_owned(), inbox);
    }
}

impl Answerer for HostChannel {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let _required = self.require_action();
            let request = without_nulls(json!({
                "subtype": "can_use_tool",
                "tool_name": ask.tool,
                "display_name": ask.tool,
                "input": ask.input,
                "tool_use_id": ask.call,
                "description": description(&ask.input),
                "decision_reason": ask.reason.text,
                "decision_reason_type": ask.reason.kind,
                "matched_ask_rule": ask.reason.rule.as_ref().map(matched),
                "blocked_path": ask.reason.path,
                "mcp_server": ask.server,
                "permission_suggestions": ask.suggestions,
                "agent_id": ask.agent.as_ref().map(|agent| &agent.id),
                "agent": ask.agent,
                "requires_user_interaction": ask.is_for_person.then_some(true),
                "suppress_always_allow_rule": keeps_no_rule(&ask.suggestions).then_some(true),
                // No classifier stands in for a person here.
                "classifier_approvable": (ask.reason.kind == "safetyCheck").then_some(false),
                "default_to_no": (ask.reason.kind == "safetyCheck").then_some(true),
            }));
            self.ask_host(request).await.map(|answer| reply(&answer)).map_err(Unanswered::from)
        })
    }

    fn elicit(&self, question: Elicitation) -> ElicitFuture<'_> {
        Box::pin(async move {
            let _required = self.require_action();
            let answer = self.ask_host(elicitation(&question)).await;
            answer.map(|answer| elicited(&answer)).map_err(Unanswered::from)
        })
    }

    fn settled_elsewhere(&self, call: &ToolUseId) {
        self.withdrawn.forget(call);
    }
}

/// Puts the questions of servers to a host that is not asked about calls. A program that only writes messages, and never
/// introduces itself, would not answer them.
pub struct ForServers(pub Arc<HostChannel>);

impl Answerer for ForServers {
    fn is_there(&self) -> bool {
        false
    }

    fn hears_servers(&self) -> bool {
        self.0.is_introduced.load(Ordering::Relaxed)
    }

    fn answer(&self, _: Ask) -> ReplyFuture<'_> {
        let why = Unanswered::because("the host is not asked about calls");
        Box::pin(std::future::ready(Err(why)))
    }

    fn elicit(&self, question: Elicitation) -> ElicitFuture<'_> {
        Box::pin(async move {
            if !self.hears_servers() {
                return Err(Unanswered::because("the host has not introduced itself"));
            }
            self.0.elicit(question).await
        })
    }
}

/// Tells whether no answer could hold for longer than this call by a rule.
fn keeps_no_rule(suggestions: &[Value]) -> bool {
    !suggestions.iter().any(|it| it["type"] == "addRules")
}

/// The model's description of the call, if it gives one.
fn description(input: &RawValue) -> Option<String> {
    let input: Value = serde_json::from_str(input.get()).ok()?;
    Some(input.get("description")?.as_str()?.to_owned())
}

/// The question to a host in a server's name.
fn elicitation(question: &Elicitation) -> Value {
    let mut asked = json!({
        "subtype": "elicitation",
        "mcp_server_name": question.server,
        "message": question.message,
    });
    match &question.kind {
        ElicitationKind::Form { schema } => {
            asked["mode"] = "form".into();
            let schema = json!(schema);
            if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
                asked["property_order"] = fields.keys().map(String::as_str).collect();
            }
            asked["requested_schema"] = schema;
        }
        ElicitationKind::Url { url, id } => {
            asked["mode"] = "url".into();
            asked["url"] = json!(url);
            asked["elicitation_id"] = json!(id);
        }
    }
    asked
}

/// Only a clear yes is one.
fn elicited(answer: &Value) -> ElicitationAnswer {
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => {
            let content = answer.get("content").and_then(Value::as_object).cloned();
            ElicitationAnswer::Accept(content.unwrap_or_default())
        }
        Some("decline") => ElicitationAnswer::Decline,
        _ => ElicitationAnswer::Cancel,
    }
}

/// Withdraws a question that is dropped before it is answered.
struct QuestionGuard<'a> {
    channel: &'a HostChannel,
    id: &'a str,
    /// The subject of a permission question.
    subject: Option<Subject>,
    is_answered: bool,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.channel.requests.forget(self.id);
        if !self.is_answered {
            let cancel = json!({"type": "control_cancel_request", "request_id": self.id});
            self.channel.output.json_line(&cancel);
            if let Some(subject) = self.subject.take() {
                self.channel.withdrawn.remember(self.id, subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use crate::Answerers;
    use centurion_engine::{AskReason, Reply};
    use centurion_protocol::SystemWorld;
    use parking_lot::Mutex;
    use serde_json::value::to_raw_value;

    use super::*;

    /// What a host would read.
    #[derive(Clone, Default)]
    struct Read(Arc<Mutex<Vec<u8>>>);

    impl Write for Read {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl crate::Sink for Read {}

    /// Says yes as soon as the host has been asked.
    struct Quick;

    impl Answerer for Quick {
        fn answer(&self, _: Ask) -> ReplyFuture<'_> {
            Box::pin(async { Ok(Reply::Allowed { input: None, remember: Vec::new() }) })
        }

        fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
            Box::pin(async { Ok(ElicitationAnswer::Decline) })
        }
    }

    #[tokio::test]
    async fn a_host_is_told_of_questions_that_another_front_has_answered() {
        let read = Read::default();
        let output = Arc::new(OutputQueue::new(read.clone(), Box::new(tempfile::tempfile)));
        let channel = Arc::new(HostChannel::new(Arc::clone(&output), Arc::new(SystemWorld), None));
        let answerers = Arc::new(Answerers::default());
        let _host = answerers.attach(Arc::clone(&channel) as Arc<dyn Answerer>);
        let _other = answerers.attach(Arc::new(Quick));
        let ask = Ask {
            tool: "Bash".to_owned(),
            call: ToolUseId::new("toolu_1"),
            input: to_raw_value(&json!({})).unwrap(),
            reason: AskReason::other("Bash needs permission".to_owned()),
            reach: None,
            suggestions: Vec::new(),
            agent: None,
            server: None,
            is_for_person: false,
        };
        assert!(matches!(answerers.answer(ask).await, Ok(Reply::Allowed { .. })));
        output.finish().await.unwrap();
        let read = String::from_utf8(read.0.lock().clone()).unwrap();
        let lines: Vec<Value> =
            read.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let id = lines[0]["request_id"].as_str().unwrap();
        assert_eq!(lines[0]["request"]["subtype"], "can_use_tool");
        assert_eq!(lines[1..], [json!({"type": "control_cancel_request", "request_id": id})]);
        let late = json!({"response": {"behavior": "deny"}});
        assert_eq!(channel.withdrawn.telling(id, &late), None, "the call was allowed");
    }
}
