//! The control channel between us and a host: requests and responses in both directions.
//!
//! With `--permission-prompt-tool stdio` the host is who answers questions: each is a `can_use_tool`
//! request that ends with the host's response, or is withdrawn when its call ends first.

mod late;
mod servers;
mod state;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use centurion_config::agents::{ActiveAgent, Vocabulary, read_agents_flag};
use centurion_engine::{
    Answerer, Ask, ElicitFuture, Handle, HookHost, Remember, Reply, ReplyFuture, TypedCommand,
    Unanswered,
};
use centurion_hooks::{DelegateFuture, HookSet};
use centurion_host::{OutputQueue, Requests};
use centurion_mcp::{
    Elicitation, ElicitationAnswer, ElicitationKind, HostError, HostFuture, Pool, SdkChannel,
};
use centurion_model::Model;
use centurion_permissions::Mode;
use centurion_protocol::{Thinking, ToolUseId, World};
use centurion_tools::{RewoundFile, StopError};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use self::late::{Subject, Withdrawn};
use self::state::State;
use crate::models::ModelLimits;
use crate::output::note;

pub(crate) struct Control {
    output: Arc<OutputQueue>,
    world: Arc<dyn World>,
    /// Our own requests that wait for the host's response.
    requests: Requests,
    withdrawn: Withdrawn,
    /// Which models the host may choose, once the session's own is known.
    models: OnceLock<(ModelLimits, Model)>,
    /// Where servers are connected that the host adds while the session runs.
    pool: OnceLock<Arc<Pool>>,
    /// The managed settings that leave hooks to plugins, if some do.
    hook_policy: OnceLock<String>,
    state: State,
}

impl Control {
    pub(crate) fn new(output: Arc<OutputQueue>, world: Arc<dyn World>) -> Self {
        let (models, pool, hook_policy) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Self {
            output,
            world,
            requests: Requests::default(),
            withdrawn: Withdrawn::default(),
            models,
            pool,
            hook_policy,
            state: State::default(),
        }
    }

    /// Lets the host choose only models that the settings allow.
    pub(crate) fn limit_models(&self, limits: ModelLimits, model: Model) {
        // One session has one control channel, and says this once.
        let _ = self.models.set((limits, model));
    }

    /// Keeps hooks of the host out.
    pub(crate) fn refuse_hooks(&self, origin: String) {
        // As above.
        let _ = self.hook_policy.set(origin);
    }

    /// Servers that the host adds are connected here.
    pub(crate) fn use_pool(&self, pool: Arc<Pool>) {
        // As above.
        let _ = self.pool.set(pool);
    }

    fn refusal_of_model(&self, name: &str) -> Option<String> {
        let (limits, model) = self.models.get()?;
        limits.check(name, model).err()
    }

    /// Answers a request of the host.
    pub(crate) async fn request(&self, handle: &Handle, id: &str, request: &Value) {
        let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
        let answer = match text("subtype") {
            "initialize" => {
                self.take_up(handle, request);
                Ok(initialization(handle))
            }
            "set_max_thinking_tokens" => {
                let tokens = request.get("max_thinking_tokens").and_then(Value::as_u64);
                handle.set_thinking(match tokens.map(u32::try_from) {
                    None => Thinking::Auto,
                    Some(Ok(0)) => Thinking::Disabled,
                    Some(tokens) => Thinking::Budget(tokens.unwrap_or(u32::MAX)),
                });
                Ok(json!({}))
            }
            "reload_skills" | "reload_plugins" => {
                handle.reload_skills();
                Ok(json!({"commands": commands(handle), "skills": handle.skill_names()}))
            }
            "supported_commands" => {
                handle.reload_skills();
                Ok(json!({"commands": commands(handle)}))
            }
            "mcp_status" => Ok(json!({"mcpServers": servers::status(handle)})),
            "mcp_reconnect" => servers::reconnect(handle, text("serverName")).await,
            "mcp_toggle" => {
                let is_on = request.get("enabled").and_then(Value::as_bool).unwrap_or(true);
                servers::switch(handle, text("serverName"), is_on)
            }
            "mcp_set_servers" => servers::set(handle, self.pool.get(), request.get("servers")),
            "interrupt" => Ok(json!({"still_queued": handle.interrupt()})),
            "side_question" => {
                let answered = handle.ask_aside(text("question")).await;
                let answered = answered.map(|text| json!({"response": text, "synthetic": false}));
                answered.map_err(|error| (error.to_string(), "invalid_request"))
            }
            "generate_session_title" => {
                let titled = handle.generate_title(text("description")).await;
                // Hosts go on without one.
                Ok(json!({"title": titled.ok()}))
            }
            "rewind_files" => rewind_files(handle, request),
            "stop_task" => stop_task(handle, text("task_id")).await,
            "background_tasks" => {
                handle.background_agents();
                Ok(json!({}))
            }
            "stop_all_tasks" => Ok(json!({"stopped": handle.stop_agents()})),
            "set_permission_mode" => text("mode")
                .parse::<Mode>()
                .map_err(|error| error.to_string())
                .and_then(|mode| {
                    handle.set_mode(mode).map_err(|refused| refused.to_string())?;
                    Ok(json!({"mode": mode.name()}))
                })
                .map_err(|error| (error, "invalid_request")),
            "set_model" => {
                let name =
                    request.get("model").and_then(Value::as_str).filter(|name| !name.is_empty());
                let refused = name.and_then(|name| self.refusal_of_model(name));
                match refused {
                    Some(error) => Err((error, "invalid_request")),
                    None => Ok(json!({"model": handle.set_model(name)})),
                }
            }
            other => {
                Err((format!("the request `{other}` is not supported"), "unsupported_request"))
            }
        };
        let response = match answer {
            Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            Err((error, code)) => {
                json!({"subtype": "error", "request_id": id, "error": error, "error_code": code})
            }
        };
        self.output.json_line(&json!({"type": "control_response", "response": response}));
    }

    /// Answers a request that is one too many.
    pub(crate) fn turn_away(&self, id: &str) {
        let response = json!({
            "subtype": "error", "request_id": id, "error_code": "too_many_requests",
            "error": "too many requests are under way; wait for their answers",
        });
        self.output.json_line(&json!({"type": "control_response", "response": response}));
    }

    /// Takes the host's response to one of our requests.
    pub(crate) fn response(&self, handle: &Handle, response: Value) {
        let id = response.get("request_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Err(response) = self.requests.respond(&id, response) else { return };
        tracing::debug!(id, "a response came for no open request");
        if let Some(text) = self.withdrawn.telling(&id, &response) {
            handle.remind(text);
        }
    }

    /// The end of input: every call that waits for the host, now or later, will not hear from it.
    pub(crate) fn disconnect(&self) {
        self.requests.disconnect();
    }
}

/// Ends an agent or a shell; a host that names none, or one that has ended, is told so.
/// Brings files back to what they were at a message of the user, or says what that would do.
fn rewind_files(handle: &Handle, request: &Value) -> Result<Value, (String, &'static str)> {
    let refused = |reason: String| (reason, "invalid_request");
    let id = request.get("user_message_id").and_then(Value::as_str).unwrap_or_default();
    let id = id.parse().map_err(|_| refused(format!("`{id}` is no id of a message")))?;
    let is_trial = request.get("dry_run").and_then(Value::as_bool).unwrap_or_default();
    let rewind = handle.rewind_files(id, is_trial).map_err(|error| refused(error.to_string()))?;
    let failed = rewind.failed.iter().map(|(path, why)| json!({"path": path, "error": why}));
    let failed: Vec<Value> = failed.collect();
    let sum = |count: fn(&RewoundFile) -> usize| rewind.files.iter().map(count).sum::<usize>();
    let mut answer = json!({
        "canRewind": true,
        "filesChanged": rewind.files.iter().map(|file| &file.path).collect::<Vec<_>>(),
        "insertions": sum(|file| file.insertions),
        "deletions": sum(|file| file.deletions),
        "setAside": rewind.set_aside,
        "failed": failed,
    });
    if !is_trial {
        answer["skippedLinks"] = json!(rewind.skipped_links);
    }
    Ok(answer)
}

async fn stop_task(handle: &Handle, id: &str) -> Result<Value, (String, &'static str)> {
    let refused = |reason: String| (reason, "invalid_request");
    handle.stop_task(id).await.map(|()| json!({})).map_err(|error| match error {
        StopError::Unknown => refused(format!("there is no task `{id}`")),
        StopError::NotRunning => refused(format!("task `{id}` is not running any more")),
    })
}

fn commands(handle: &Handle) -> Vec<Value> {
    let command = |it: TypedCommand| json!({"name": it.name, "description": it.description, "argumentHint": it.argument_hint});
    handle.commands().into_iter().map(command).collect()
}

fn initialization(handle: &Handle) -> Value {
    let models: Vec<Value> = ["default", "opus", "sonnet", "haiku", "fable"]
        .map(|name| {
            json!({"value": name, "resolvedModel": handle.resolve_model(name), "displayName": name, "description": ""})
        })
        .into();
    json!({
        "commands": commands(handle),
        "agents": agents(handle),
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": models,
        "account": {},
        "claude_code_version": centurion_engine::PROTOCOL_VERSION,
        "current_permission_mode": handle.mode().name(),
        "agent_progress_summaries": handle.summarises_agents(),
        "pid": std::process::id(),
    })
}

impl Control {
    /// Puts a request to the host and waits for its response. Dropping the future withdraws it.
    pub(crate) async fn ask_host(&self, request: Value) -> Result<Value, String> {
        let id = self.world.uuid().to_string();
        let gone = || "the host went away and cannot be asked".to_owned();
        let receiver = self.requests.expect(&id).ok_or_else(gone)?;
        let subject = late::subject(&request);
        let mut question = OpenQuestion { control: self, id: &id, subject, is_answered: false };
        let line = json!({"type": "control_request", "request_id": id, "request": request});
        self.output.json_line(&line);
        let response = receiver.await;
        question.is_answered = true;
        let response = response.map_err(|_| "the host went away without an answer".to_owned())?;
        if response.get("subtype").and_then(Value::as_str) != Some("success") {
            let error = response.get("error").and_then(Value::as_str).unwrap_or("no reason given");
            return Err(format!("the host failed to answer: {error}"));
        }
        Ok(response.get("response").cloned().unwrap_or_default())
    }
}

/// The agents that can be asked for, as hosts list them.
fn agents(handle: &Handle) -> Vec<Value> {
    let agent = |agent: ActiveAgent| {
        let definition = &agent.definition;
        let model = definition.model.as_ref().map(|model| model.as_str());
        match model {
            Some(model) => json!({
                "name": definition.name.value, "description": definition.description.value, "model": model,
            }),
            None => {
                json!({"name": definition.name.value, "description": definition.description.value})
            }
        }
    };
    handle.agents().into_iter().map(agent).collect()
}

impl Control {
    /// Takes up what the host brings and wants: functions that are hooks, agents, servers that live in it,
    /// and lines about agents at work.
    fn take_up(&self, handle: &Handle, request: &Value) {
        let hooks = request.get("hooks").filter(|hooks| hooks.is_object());
        if let (Some(_), Some(origin)) = (hooks, self.hook_policy.get()) {
            note(&format!(
                "warning: initialize: {origin} leaves hooks to plugins; those of the host are off"
            ));
        } else if let Some(hooks) = hooks {
            let set = HookSet::from_host(hooks);
            for problem in set.problems() {
                note(&format!("warning: initialize: {problem}"));
            }
            handle.add_hooks(set);
        }
        if let Some(agents) = request.get("agents").filter(|agents| agents.is_object()) {
            match read_agents_flag(
                &agents.to_string(),
                Path::new("initialize"),
                &Vocabulary::default(),
            ) {
                Ok(agents) => handle.add_agents(agents),
                Err(error) => note(&format!("warning: initialize: {error}")),
            }
        }
        if let Some(is_wanted) = request.get("agentProgressSummaries").and_then(Value::as_bool) {
            handle.summarise_agents(is_wanted);
        }
        let names = request.get("sdkMcpServers").and_then(Value::as_array);
        for name in names.into_iter().flatten().filter_map(Value::as_str) {
            servers::add_host_server(handle, self.pool.get(), name);
        }
    }
}

impl HookHost for Control {
    fn call<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        Box::pin(async move {
            let request = json!({
                "subtype": "hook_callback", "callback_id": id, "input": input, "tool_use_id": call,
            });
            Ok(self.ask_host(request).await?)
        })
    }
}

impl SdkChannel for Control {
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
}

impl Answerer for Control {
    fn answer(&self, ask: Ask) -> ReplyFuture<'_> {
        Box::pin(async move {
            let _required = self.require_action();
            let request = json!({
                "subtype": "can_use_tool",
                "tool_name": ask.tool,
                "display_name": ask.tool,
                "input": ask.input,
                "tool_use_id": ask.call,
                "decision_reason": ask.reason,
                "permission_suggestions": ask.suggestions,
                "agent_id": ask.agent.as_ref().map(|agent| &agent.id),
                "agent": ask.agent,
            });
            self.ask_host(request).await.map(|answer| reply(&answer)).map_err(Unanswered)
        })
    }

    fn elicit(&self, question: Elicitation) -> ElicitFuture<'_> {
        Box::pin(async move {
            let _required = self.require_action();
            let answer = self.ask_host(elicitation(&question)).await;
            answer.map(|answer| elicited(&answer)).map_err(Unanswered)
        })
    }

    fn settled_elsewhere(&self, call: &ToolUseId) {
        self.withdrawn.forget(call);
    }
}

/// What a host is asked in a server's name.
fn elicitation(question: &Elicitation) -> Value {
    let (mode, url, id, schema) = match &question.kind {
        ElicitationKind::Form { schema } => ("form", None, None, Some(schema)),
        ElicitationKind::Url { url, id } => ("url", Some(url), Some(id), None),
    };
    json!({
        "subtype": "elicitation",
        "mcp_server_name": question.server,
        "message": question.message,
        "mode": mode,
        "url": url,
        "elicitation_id": id,
        "requested_schema": schema,
    })
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
struct OpenQuestion<'a> {
    control: &'a Control,
    id: &'a str,
    /// What a permission question is about.
    subject: Option<Subject>,
    is_answered: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.control.requests.forget(self.id);
        if !self.is_answered {
            let cancel = json!({"type": "control_cancel_request", "request_id": self.id});
            self.control.output.json_line(&cancel);
            if let Some(subject) = self.subject.take() {
                self.control.withdrawn.remember(self.id, subject);
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionResponse {
    behavior: String,
    updated_input: Option<Box<RawValue>>,
    #[serde(default)]
    updated_permissions: Vec<Value>,
    message: Option<String>,
    #[serde(default)]
    interrupt: bool,
}

/// Reads an answer to `can_use_tool`, from a host or from a tool that stands in for one.
pub(crate) fn reply(body: &Value) -> Reply {
    // By way of text, because a `Value` cannot be read into raw JSON.
    let parsed = to_raw_value(body)
        .ok()
        .and_then(|raw| serde_json::from_str::<PermissionResponse>(raw.get()).ok());
    match parsed {
        Some(PermissionResponse { behavior, updated_input, updated_permissions, .. })
            if behavior == "allow" =>
        {
            // A kind of change that this program does not know changes nothing.
            let remember = updated_permissions
                .into_iter()
                .filter_map(|update| serde_json::from_value(update).ok())
                .filter_map(Remember::from_update);
            Reply::Allowed { input: updated_input, remember: remember.collect() }
        }
        Some(PermissionResponse { message, interrupt, .. }) => {
            let reason = message.unwrap_or_else(|| "the user said no".to_owned());
            Reply::Denied { reason, interrupt }
        }
        None => denied("the host's answer was not understood"),
    }
}

fn denied(reason: &str) -> Reply {
    Reply::Denied { reason: reason.to_owned(), interrupt: false }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use centurion_host::Answerers;
    use centurion_protocol::SystemWorld;
    use parking_lot::Mutex;

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

    impl centurion_host::Sink for Read {}

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
        let control = Arc::new(Control::new(Arc::clone(&output), Arc::new(SystemWorld)));
        let answerers = Arc::new(Answerers::default());
        let _host = answerers.attach(Arc::clone(&control) as Arc<dyn Answerer>);
        let _other = answerers.attach(Arc::new(Quick));
        let ask = Ask {
            tool: "Bash".to_owned(),
            call: ToolUseId::new("toolu_1"),
            input: to_raw_value(&json!({})).unwrap(),
            reason: "Bash needs permission".to_owned(),
            suggestions: Vec::new(),
            agent: None,
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
        assert_eq!(control.withdrawn.telling(id, &late), None, "the call was allowed");
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let yes = json!({"behavior": "allow", "updatedInput": {"a": 1}});
        assert!(matches!(reply(&yes), Reply::Allowed { input: Some(_), .. }));
        for no in [
            json!({"behavior": "deny", "message": "no"}),
            json!({"behavior": "perhaps"}),
            json!({}),
            json!(null),
        ] {
            assert!(matches!(reply(&no), Reply::Denied { .. }), "{no}");
        }
    }
}
