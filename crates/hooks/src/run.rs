//! Runs the hooks of an event in parallel, and combines their replies.

mod command;
mod http;
mod overflow;
mod placeholders;

use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{Env, ToolUseId};
use centurion_tools::PipedProcess;
use futures_util::future::join_all;
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(crate) use self::http::HttpClient;
use crate::delegate::ModelRequest;
use crate::effects::{Effects, HookError, HookResult};
use crate::event::Event;
use crate::handler::{Action, CallbackAction, CommandAction, Handler, OnFailure, Waiting};
use crate::hooks::{Core, Hooks};
use crate::input::{Common, EventInput, compose, hook_name};
use crate::origin::HookSource;
use crate::reply::{End, HandlerEnd, Reply};
use crate::rules::HookRules;
use crate::watcher::{HookOutcome, HookProgress, HookResponse, HookStarted, LateReply};

/// The time for all hooks at the end of a session together, unless one asks for more.
const SESSION_END: Duration = Duration::from_millis(1_500);

/// The most time that one may ask for.
const LONGEST_SESSION_END: Duration = Duration::from_mins(1);

/// The input for all hooks of one event.
struct FiredEvent {
    event: Event,
    hook_name: String,
    common: Common,
    call: Option<ToolUseId>,
    value: Value,
    /// The same as text.
    text: String,
}

impl Hooks {
    /// Fires an event: runs all matching hooks, waits for them, and returns their combined verdict. The order of their
    /// declaration decides, never their speed.
    pub async fn fire<E: EventInput>(
        &self,
        common: &Common,
        input: &E,
        cancel: &CancellationToken,
    ) -> HookResult<E::Verdict> {
        // The user was told that hooks of other events never run.
        const { assert!(E::EVENT.is_fired(), "the event is not listed among those that are fired") };
        if self.is_empty_for(E::EVENT) {
            return HookResult::default();
        }
        let handlers = self.select(common, input);
        if handlers.is_empty() {
            return HookResult::default();
        }
        let told = match told(common, input) {
            Ok(told) => Arc::new(told),
            Err(error) => return untold(input, &error),
        };
        let limit = (E::EVENT == Event::SessionEnd)
            .then(|| session_end_budget(&handlers, &self.0.core.around.env));
        let rules = self.rules();
        let mut waited_for = Vec::with_capacity(handlers.len());
        for handler in &handlers {
            match &handler.action {
                Action::Command(command) if command.waiting != Waiting::Event => {
                    self.leave(handler, command.waiting, &told, &rules);
                }
                _ => waited_for.push(self.run_one(handler, &told, &rules, limit, cancel)),
            }
        }
        let replies = join_all(waited_for).await;
        let verdict = input.fold(common, &replies);
        if let Some(paths) = E::watches(&verdict) {
            self.0.watched.replace(paths);
        }
        HookResult {
            verdict,
            effects: Effects::gather(E::EVENT, &told.hook_name, &replies),
            is_denied_by_host: replies.iter().any(|reply| reply.is_hosts && reply.denies()),
            runs: handlers.len(),
            hook_name: told.hook_name.clone(),
        }
    }

    /// Runs a hook that the event waits for.
    async fn run_one(
        &self,
        handler: &Arc<Handler>,
        told: &FiredEvent,
        rules: &HookRules,
        limit: Option<Duration>,
        cancel: &CancellationToken,
    ) -> Reply {
        let patience = handler.patience(told.event);
        let patience = limit.map_or(patience, |limit| limit.min(patience));
        let running = self.0.core.run(handler, told, rules, patience, cancel);
        let (reply, left) = running.await;
        if let Some(mut left) = left {
            self.0.background.spawn(async move { left.gone().await });
        }
        reply
    }

    /// Starts a hook that the event does not wait for.
    fn leave(
        &self,
        handler: &Arc<Handler>,
        waiting: Waiting,
        told: &Arc<FiredEvent>,
        rules: &Arc<HookRules>,
    ) {
        let core = Arc::clone(&self.0.core);
        let (handler, told, rules) = (Arc::clone(handler), Arc::clone(told), Arc::clone(rules));
        self.0.background.spawn(async move {
            let patience = handler.patience(told.event);
            let never = CancellationToken::new();
            let (reply, left) = core.run(&handler, &told, &rules, patience, &never).await;
            core.around.watcher.late(late(&told, waiting, reply));
            if let Some(mut left) = left {
                left.gone().await;
            }
        });
    }
}

fn told<E: EventInput>(common: &Common, input: &E) -> serde_json::Result<FiredEvent> {
    let value = compose(common, input)?;
    Ok(FiredEvent {
        event: E::EVENT,
        hook_name: hook_name(input),
        common: common.clone(),
        call: input.call().map(|call| call.id.clone()),
        text: value.to_string(),
        value,
    })
}

fn untold<E: EventInput>(input: &E, error: &serde_json::Error) -> HookResult<E::Verdict> {
    let hook_name = hook_name(input);
    let message = format!("what happened cannot be written as JSON: {error}");
    let error = HookError { hook_name: hook_name.clone(), label: E::EVENT.to_string(), message };
    let effects = Effects { errors: vec![error], ..Effects::default() };
    HookResult { verdict: E::Verdict::default(), effects, hook_name, ..HookResult::default() }
}

/// The shared time limit of the hooks at the end of a session: the value from the environment, or the longest timeout
/// among the hooks of the settings, within bounds.
fn session_end_budget(handlers: &[Arc<Handler>], env: &Env) -> Duration {
    let of_settings = handlers.iter().filter(|handler| handler.origin.source.is_settings());
    let asked = of_settings.filter_map(|handler| handler.timeout).max().unwrap_or_default();
    env.millis("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS")
        .unwrap_or_else(|| SESSION_END.max(asked.min(LONGEST_SESSION_END)))
}

/// The late reply of an asynchronous hook.
fn late(told: &FiredEvent, waiting: Waiting, reply: Reply) -> LateReply {
    let name = &told.hook_name;
    let context = reply.specific().and_then(|it| it.additional_context.clone());
    let texts = [context, reply.output.system_message.clone()].into_iter().flatten();
    let wakes = reply.exit_two.as_ref().filter(|_| waiting == Waiting::Wakes);
    LateReply {
        hook_name: name.clone(),
        event: told.event,
        agent: told.common.agent_id.clone(),
        context: texts.map(|text| format!("{name} hook additional context: {text}")).collect(),
        wakes: wakes.map(|errors| format!("{name} hook feedback:\n{}", reply.with_label(errors))),
        error: reply.error,
    }
}

impl Core {
    /// Runs one hook to its end. Processes that it leaves running live for as long as the second part does.
    async fn run(
        &self,
        handler: &Handler,
        told: &FiredEvent,
        rules: &HookRules,
        patience: Duration,
        cancel: &CancellationToken,
    ) -> (Reply, Option<PipedProcess>) {
        let hook_id = self.around.world.uuid().to_string();
        self.around.watcher.started(HookStarted {
            hook_id: hook_id.clone(),
            hook_name: told.hook_name.clone(),
            hook_event: told.event,
            agent_id: told.common.agent_id.clone(),
            status_message: handler.status_message.clone(),
        });
        let mut left = None;
        let carried_out =
            timeout(patience, self.carry_out(&hook_id, handler, told, rules, &mut left));
        let ended = tokio::select! {
            biased;
            () = cancel.cancelled() => HandlerEnd { end: End::Cancelled, ..HandlerEnd::default() },
            ended = carried_out => ended.unwrap_or_else(|_| {
                HandlerEnd::failed(format!("took longer than {patience:?} and was ended"))
            }),
        };
        let label = handler.action.label();
        let mut reply = match &handler.action {
            Action::Prompt(action) | Action::Agent(action) if ended.end == End::Finished => {
                Reply::judged(told.event, label, action, &ended.stdout)
            }
            _ => Reply::read(told.event, label, &ended),
        };
        if let Action::Callback(CallbackAction { on_failure: OnFailure::Block, .. }) =
            handler.action
        {
            reply.block_on_failure(told.event);
        }
        reply.is_hosts = handler.origin.source == HookSource::Host;
        overflow::shorten(&mut reply, &self.around.overflow_dir, &hook_id);
        self.around.watcher.ended(response(hook_id, told, ended, &reply));
        (reply, left)
    }

    async fn carry_out(
        &self,
        hook_id: &str,
        handler: &Handler,
        told: &FiredEvent,
        rules: &HookRules,
        left: &mut Option<PipedProcess>,
    ) -> HandlerEnd {
        let delegate = &self.around.delegate;
        let answer = match &handler.action {
            Action::Command(action) => {
                if let Err(reason) = rules.judge(handler, action, &told.common.cwd) {
                    return HandlerEnd::failed(format!("did not run: {reason}"));
                }
                return self.command(hook_id, handler, action, told, left).await;
            }
            Action::Http(action) => {
                return self.http.post(action, &told.text, rules, &self.around.env).await;
            }
            Action::McpTool { server, tool, input } => {
                let input = placeholders::fill_object(input, &told.value);
                delegate.mcp_tool(server, tool, input).await
            }
            Action::Prompt(action) => {
                let prompt = placeholders::fill_prompt(&action.prompt, &told.text);
                let model = action.model.as_deref();
                let (event, common) = (told.event, &told.common);
                delegate.prompt(ModelRequest { prompt, model, event, common }).await
            }
            Action::Agent(action) => {
                let prompt = placeholders::fill_prompt(&action.prompt, &told.text);
                let model = action.model.as_deref();
                let (event, common) = (told.event, &told.common);
                delegate.agent(ModelRequest { prompt, model, event, common }).await
            }
            Action::Callback(function) => {
                let call = told.call.as_ref();
                let answer = delegate.callback(&function.id, &told.value, call).await;
                answer.map(|value| value.to_string())
            }
        };
        answer.map_or_else(|error| HandlerEnd::failed(error.to_string()), HandlerEnd::said)
    }

    async fn command(
        &self,
        hook_id: &str,
        handler: &Handler,
        action: &CommandAction,
        told: &FiredEvent,
        left: &mut Option<PipedProcess>,
    ) -> HandlerEnd {
        let program = command::program(action, &handler.origin.source, told, &self.around);
        let told_so_far = |stdout: String, stderr: String| {
            self.around.watcher.progressed(HookProgress {
                hook_id: hook_id.to_owned(),
                hook_name: told.hook_name.clone(),
                hook_event: told.event,
                agent_id: told.common.agent_id.clone(),
                output: format!("{stdout}{stderr}"),
                stdout,
                stderr,
            });
        };
        command::run(&self.around.guard, &program, &told.text, left, &told_so_far).await
    }
}

fn response(hook_id: String, told: &FiredEvent, ended: HandlerEnd, reply: &Reply) -> HookResponse {
    let outcome = match ended.end {
        End::Cancelled => HookOutcome::Cancelled,
        End::Finished if reply.error.is_none() && reply.exit_two.is_none() => HookOutcome::Success,
        _ => HookOutcome::Error,
    };
    let stderr = match ended.end {
        End::Failed(why) => why,
        End::SaidTooMuch(why) if ended.stderr.is_empty() => why,
        _ => ended.stderr,
    };
    HookResponse {
        hook_id,
        hook_name: told.hook_name.clone(),
        hook_event: told.event,
        agent_id: told.common.agent_id.clone(),
        output: format!("{}{stderr}", ended.stdout),
        stdout: ended.stdout,
        stderr,
        exit_code: ended.exit_code,
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use centurion_config::settings::Level;
    use serde_json::json;

    use super::*;
    use crate::{HookOrigin, HookSet, HookSource};

    /// Hooks of the user's settings for an event.
    fn handlers(event: Event, handlers: &[Value]) -> Vec<Arc<Handler>> {
        let origin = HookOrigin::new(HookSource::Settings(Level::User));
        let set = HookSet::from_value(&json!({event.name(): [{"hooks": handlers}]}), &origin);
        set.hooks().iter().map(|hook| Arc::clone(&hook.handler)).collect()
    }

    #[test]
    fn a_hook_has_the_time_of_its_type_and_event_unless_it_says_otherwise() {
        let command = json!({"type": "command", "command": "x"});
        let prompt = json!({"type": "prompt", "prompt": "x"});
        let agent = json!({"type": "agent", "prompt": "x"});
        let patient = json!({"type": "command", "command": "x", "timeout": 1000});
        for (event, handler, seconds) in [
            (Event::PreToolUse, &command, 600),
            (Event::PreToolUse, &prompt, 30),
            (Event::PreToolUse, &agent, 60),
            (Event::UserPromptSubmit, &command, 30),
            (Event::UserPromptSubmit, &agent, 30),
            (Event::MessageDisplay, &command, 10),
            (Event::MessageDisplay, &patient, 1000),
        ] {
            let handler = &handlers(event, std::slice::from_ref(handler))[0];
            assert_eq!(handler.patience(event).as_secs(), seconds, "{event} {handler:?}");
        }
    }

    #[test]
    fn the_end_of_a_session_takes_as_long_as_its_hooks_ask_for_within_reason() {
        let set = |timeouts: &[f64]| {
            let handler = |timeout| json!({"type": "command", "command": "x", "timeout": timeout});
            let all: Vec<Value> = timeouts.iter().map(handler).collect();
            handlers(Event::SessionEnd, &all)
        };
        let env = |value| Env::from([("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", value)]);
        for (timeouts, env, milliseconds) in [
            (&[][..], Env::default(), 1_500),
            (&[0.5], Env::default(), 1_500),
            (&[5.0, 9.0], Env::default(), 9_000),
            (&[600.0], Env::default(), 60_000),
            (&[600.0], env("70"), 70),
        ] {
            let budget = session_end_budget(&set(timeouts), &env);
            assert_eq!(budget.as_millis(), milliseconds, "{timeouts:?}");
        }
    }
}
