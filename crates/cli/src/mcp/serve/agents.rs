//! Agents for the caller: each is a session of its own, as if its prompt had been typed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use centurion_engine::{Answerer, Session, View};
use centurion_permissions::Mode;
use centurion_protocol::sdk::{Event, EventBody, RunResult};
use centurion_protocol::{Block, Outcome, SessionId, SystemWorld, World};
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::request::Request;
use super::tasks::LongCall;
use super::{Notes, prepare};
use crate::args::{NamedSession, RunArgs};
use crate::configuration::Configuration;
use crate::sessions;
use crate::setup::Lasting;
use crate::surroundings::Surroundings;

/// The most steps that may wait to be told. More are left out: the client does not miss one of that many.
const STEPS: usize = 64;
/// The result of a call whose run was stopped before it began.
const NOT_BEGUN: &str = "The run was stopped before it began.";
/// The longest time in which the last steps are told, once the run is over.
const LAST_STEPS: Duration = Duration::from_secs(1);

/// The parts that agents of this server are made from.
pub(super) struct ServedAgents {
    args: RunArgs,
    surroundings: Surroundings,
    /// The server's own mode.
    mode: Mode,
    /// The directories in which agents may work; the first is the one where they do unless told otherwise.
    roots: Vec<PathBuf>,
    /// The cost of all runs so far, in dollars.
    spent: Mutex<f64>,
    /// The sessions that are at work: what comes for one of them waits for its turn.
    at_work: Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>,
}

/// The client that wants an agent to run.
pub(super) struct Caller {
    pub(super) peer: Peer<RoleServer>,
    /// Names the call in notifications of its progress, if those are wanted.
    pub(super) progress: Option<ProgressToken>,
    pub(super) answerer: Option<Arc<dyn Answerer>>,
    pub(super) cancel: CancellationToken,
    /// The call, where it may continue as a task.
    pub(super) long: Option<Arc<LongCall>>,
}

impl ServedAgents {
    pub(super) fn new(
        args: RunArgs,
        surroundings: Surroundings,
        mode: Mode,
        roots: Vec<PathBuf>,
    ) -> Self {
        let (spent, at_work) = Default::default();
        Self { args, surroundings, mode, roots, spent, at_work }
    }

    /// Runs an agent to its end. What went wrong is in the result.
    pub(super) async fn run(&self, input: JsonObject, caller: Caller) -> CallToolResult {
        let request = match Request::parse(input) {
            Ok(request) => request,
            Err(error) => return failure(error.to_string()),
        };
        match Box::pin(self.work(request, caller)).await {
            Ok(result) => result,
            Err(error) => failure(format!("The agent could not start: {error:#}")),
        }
    }

    async fn work(&self, request: Request, caller: Caller) -> anyhow::Result<CallToolResult> {
        let directory = request.directory(&self.roots)?;
        let surroundings = self.surroundings.for_another_session();
        let args = self.args_of(&request, &surroundings)?;
        let configuration = Configuration::load(&surroundings, &args.settings)?;
        let (steps, told) = mpsc::channel(STEPS);
        let watch = Arc::new(Watch { steps, result: Mutex::default() });
        let view = Arc::clone(&watch) as Arc<dyn View>;
        let (mut options, lasting) = prepare(&args, &surroundings, configuration, view).await?;
        // Rules, hooks and trust are the server's, wherever the caller lets the agent work.
        options.permission.policy.cwd.clone_from(&directory);
        if options.base.cwd != directory {
            options.base.project.clone_from(&directory);
        }
        options.base.cwd = directory;
        let id = options.start.id();
        let turn = self.turn(id);
        let turn = tokio::select! {
            turn = turn.lock_owned() => turn,
            () = caller.cancel.cancelled() => return Ok(failure(NOT_BEGUN.to_owned())),
        };
        let mut session = Session::open(options).await?;
        session.hold_results();
        let run = AgentRun { session, lasting, watch };
        let result = run.drive(request.prompt, caller, told).await;
        drop(turn);
        let Some((id, result)) = result else {
            return Ok(failure(NOT_BEGUN.to_owned()));
        };
        *self.spent.lock() += result.total_cost_usd;
        Ok(report(id, result))
    }

    /// The turn of a session. Only one run at a time can resume it.
    fn turn(&self, id: SessionId) -> Arc<tokio::sync::Mutex<()>> {
        let mut at_work = self.at_work.lock();
        at_work.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(at_work.entry(id).or_default())
    }

    /// The flags that a run as it is asked for would have.
    fn args_of(&self, request: &Request, surroundings: &Surroundings) -> anyhow::Result<RunArgs> {
        let mut args = self.args.clone();
        let mode = request.mode(self.mode)?;
        args.permissions.permission_mode = Some(mode);
        args.permissions.dangerously_skip_permissions = false;
        if let Some(model) = request.model()? {
            args.model.model = Some(model.to_owned());
        }
        if let Some(id) = request.session_id {
            // Sessions of other directories are none of the caller's business.
            ensure!(
                sessions::find_here(&surroundings.dirs, &surroundings.cwd, id).is_some(),
                "there is no session {id} of {}, where this server works",
                surroundings.cwd.display()
            );
            args.session.resume = Some(Some(NamedSession::Id(id)));
        }
        if let Some(most) = &mut args.model.max_budget_usd {
            let spent = *self.spent.lock();
            *most = (*most - spent).max(0.0);
        }
        Ok(args)
    }
}

/// One agent at work, with all that lives as long as it does.
struct AgentRun {
    session: Session,
    lasting: Lasting,
    watch: Arc<Watch>,
}

impl AgentRun {
    /// Runs until there is a result, and tells the caller of each step. `None` if nothing ran, and else the session that
    /// it is of.
    async fn drive(
        mut self,
        prompt: String,
        caller: Caller,
        told: mpsc::Receiver<String>,
    ) -> Option<(SessionId, RunResult)> {
        let handle = self.session.handle();
        if let Some(answerer) = &caller.answerer {
            handle.attach(Arc::clone(answerer));
        }
        handle.submit(SystemWorld.record_id(), vec![Block::Text(prompt)]);
        handle.close();
        let mut telling = pin!(tell(&caller, told));
        let (mut is_told, mut is_stopped) = (false, false);
        {
            let mut running = pin!(self.session.run());
            loop {
                tokio::select! {
                    _ = &mut running => break,
                    () = &mut telling, if !is_told => is_told = true,
                    () = caller.cancel.cancelled(), if !is_stopped => {
                        is_stopped = true;
                        handle.stop();
                    }
                }
            }
        }
        // Its conversation may have begun anew.
        let id = handle.id();
        let result = self.watch.result.lock().take();
        // No steps are sent any more once these are gone.
        let Self { session, lasting, watch } = self;
        drop((session, handle, watch));
        if !is_told {
            let _ = tokio::time::timeout(LAST_STEPS, telling).await;
        }
        lasting.pool.shutdown().await;
        result.map(|result| (id, result))
    }
}

/// Tells the caller which tools the agent uses.
async fn tell(caller: &Caller, mut told: mpsc::Receiver<String>) {
    let mut count = 0_u32;
    while let Some(step) = told.recv().await {
        if caller.long.as_ref().is_some_and(|call| call.step(&step)) {
            continue;
        }
        let Some(token) = &caller.progress else { continue };
        count += 1;
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(count));
        if caller.peer.notify_progress(progress.with_message(step)).await.is_err() {
            return;
        }
    }
}

/// Sees what an agent does.
struct Watch {
    /// To [`tell`]: the names of tools. What does not fit is left out.
    steps: mpsc::Sender<String>,
    /// The result of the run.
    result: Mutex<Option<RunResult>>,
}

impl View for Watch {
    fn show(&self, event: &Event) {
        match &event.body {
            EventBody::Assistant(answer) => {
                for block in &answer.message.content {
                    if let Block::ToolUse(call) = block {
                        let _ = self.steps.try_send(call.name.clone());
                    }
                }
            }
            EventBody::Result(result) => {
                let mut last = self.result.lock();
                let earlier = last.take();
                *last = Some(together(earlier, (**result).clone()));
            }
            EventBody::System(_) => Notes.show(event),
            EventBody::User(_)
            | EventBody::StreamEvent(_)
            | EventBody::ToolProgress(_)
            | EventBody::PromptSuggestion(_)
            | EventBody::RateLimitEvent(_)
            | EventBody::ToolUseSummary(_)
            | EventBody::ActiveGoal { .. }
            | EventBody::ConversationReset { .. }
            | EventBody::Relayed(_) => {}
        }
    }
}

/// The result of a session that ran more than once, as it does when a background command ends: the last
/// words, and what all runs did. Costs are those of the whole session already.
fn together(earlier: Option<RunResult>, mut last: RunResult) -> RunResult {
    if let Some(earlier) = earlier {
        last.num_turns += earlier.num_turns;
        let mut usage = earlier.usage;
        usage += &last.usage;
        last.usage = usage;
        last.permission_denials.splice(0..0, earlier.permission_denials);
    }
    last
}

/// The report that the caller gets.
fn report(id: SessionId, result: RunResult) -> CallToolResult {
    let structured = json!({
        "session_id": id,
        "outcome": result.outcome,
        "num_turns": result.num_turns,
        "total_cost_usd": result.total_cost_usd,
        "usage": result.usage,
        "permission_denials": result.permission_denials,
        "unfinished_agents": result.unfinished_agents,
    });
    let mut content = vec![ContentBlock::text(result.result)];
    let unfinished: Vec<String> =
        result.unfinished_agents.iter().map(ToString::to_string).collect();
    if !unfinished.is_empty() {
        let text = format!("The run ended before these agents had: {}", unfinished.join(", "));
        content.push(ContentBlock::text(text));
    }
    // A run that was stopped is no fault, but no success either.
    let is_whole = !result.is_error && result.outcome != Outcome::Cancelled;
    let mut report = if !is_whole || !unfinished.is_empty() {
        CallToolResult::error(content)
    } else {
        CallToolResult::success(content)
    };
    report.structured_content = Some(structured);
    report
}

fn failure(message: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}
