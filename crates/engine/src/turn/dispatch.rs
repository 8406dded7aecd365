//! The one dispatch: every tool call of every agent passes here.
//!
//! input check → hooks before → permission → approval → run → hooks after → bounded result. The journal gets
//! the result from the driver. No kind of agent has another way to a tool.

mod hooked;
mod lead;
mod member_calls;
mod reach;

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_mcp::tool_name;
use centurion_permissions::{Access, Call, Decision, Reason, Verdict, canonical_tool_name};
use centurion_protocol::markup::{Continuation, contain, contain_part};
use centurion_protocol::sdk::WaitsFor;
use centurion_protocol::{ToolResult, ToolResultContent, ToolUse, ToolUseId};
use centurion_tools::{DiskLinks, PreparedCall, ToolContext, ToolError, ToolOutput};
use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::hooked::Leave;
pub(crate) use self::hooked::{CallGrouping, HookOutput, text_of};
use crate::agent::Agent;
use crate::agent::member_frames::CallDenied;
use crate::agent::name_lookup;
use crate::policy::broker::{Ask, AskReason, AskingAgent, Broker, Reply};
use crate::policy::permissions::Remember;
use crate::toolset::toolbox::Toolbox;
use crate::turn::bounded::bounded_parts;

/// The most text of one result that enters a conversation; tools keep to smaller bounds of their own.
const RESULT_BOUND: usize = 200_000;

/// The result of a call that was cut short, for the model.
pub(crate) const CUT_SHORT: &str =
    "The user interrupted this call. It may have taken effect in part.";

/// Everything a call of one agent goes through.
pub(crate) struct Dispatch {
    pub toolbox: Toolbox,
    /// The agent whose calls these are.
    pub agent: Arc<Agent>,
    pub broker: Arc<Broker>,
    /// True if a command that the sandbox confines needs no question.
    pub allows_sandboxed: bool,
}

/// True if a person may be asked about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asking {
    Allowed,
    Never,
}

/// The reason why a call needs an answer.
struct Question {
    reason: AskReason,
    /// True if only a person can give it: a hook wants one, or the tool needs one each time.
    is_for_person: bool,
}

/// The end of a call.
pub(crate) struct CallResult {
    pub result: ToolResult,
    /// The structured form for hosts and transcripts.
    pub data: Value,
    /// The file that the call read, if it read one.
    pub read: Option<PathBuf>,
    /// The denial, if the call was not allowed to run.
    pub denied: Option<CallDenied>,
    /// True if the call was stopped while it ran.
    is_cut_short: bool,
    /// True if a hook put the call off: it has no result yet.
    pub is_deferred: bool,
    /// The output of hooks beside the result.
    pub aside: HookOutput,
}

impl CallResult {
    /// A call that did what it was to do.
    fn done(call: &ToolUse, output: ToolOutput, access: &Access) -> Self {
        let result = ToolResult { id: call.id.clone(), content: output.content, is_error: false };
        let read = match access {
            Access::Read(path) => Some(path.clone()),
            _ => None,
        };
        Self {
            result,
            data: output.data,
            read,
            denied: None,
            is_cut_short: false,
            is_deferred: false,
            aside: HookOutput::default(),
        }
    }

    fn error(id: &ToolUseId, message: String) -> Self {
        let data = Value::String(format!("Error: {message}"));
        let result = ToolResult::error(id.clone(), message);
        Self {
            result,
            data,
            read: None,
            denied: None,
            is_cut_short: false,
            is_deferred: false,
            aside: HookOutput::default(),
        }
    }

    fn denied(id: &ToolUseId, reason: AskReason, interrupt: bool) -> Self {
        let AskReason { text: reason, kind, .. } = reason;
        let message = format!("This call was not allowed: {reason}.");
        let denied = CallDenied { reason, kind: Some(kind.to_owned()), interrupt, is_told: false };
        Self { denied: Some(denied), ..Self::error(id, message) }
    }

    /// A call whose input could not be read at all.
    pub(crate) fn malformed(id: &ToolUseId, what: &str) -> Self {
        let message = format!(
            "The input of this call could not be read: {what}. Send it again as one JSON object."
        );
        Self::error(id, message)
    }

    /// A call that was never begun, because the run was stopped before its turn.
    pub(crate) fn not_begun(id: &ToolUseId) -> Self {
        Self::error(id, "The run was stopped before this call began. It had no effect.".to_owned())
    }

    /// A call that was stopped while it ran.
    pub(crate) fn cut_short(id: &ToolUseId) -> Self {
        Self { is_cut_short: true, ..Self::error(id, CUT_SHORT.to_owned()) }
    }
}

impl Dispatch {
    /// Finds the tool and reads the input. What cannot run has its result already.
    pub(crate) fn prepare(&self, call: &ToolUse) -> Result<Box<dyn PreparedCall>, Box<CallResult>> {
        self.toolbox
            .get(&call.name)
            .map_err(|error| {
                self.agent.servers.absence(&call.name).unwrap_or_else(|| error.to_string())
            })
            .and_then(|tool| tool.prepare(&call.input).map_err(|error| error.to_string()))
            .map_err(|reason| {
                let reason = contain(&reason);
                let message = format!("<tool_use_error>Error: {reason}</tool_use_error>");
                Box::new(CallResult::error(&call.id, message))
            })
    }

    /// Takes a prepared call through the remaining steps. Always ends with a result.
    pub(crate) async fn run(
        &self,
        call: &ToolUse,
        prepared: Box<dyn PreparedCall>,
        company: CallGrouping,
        cancel: &CancellationToken,
    ) -> CallResult {
        self.run_with(call, prepared, company, Asking::Allowed, cancel).await
    }

    /// The same for a call that the program makes for the agent, without asking a person: what is not free is denied.
    pub(crate) async fn run_unasked(
        &self,
        call: &ToolUse,
        prepared: Box<dyn PreparedCall>,
        cancel: &CancellationToken,
    ) -> CallResult {
        self.run_with(call, prepared, CallGrouping::Alone, Asking::Never, cancel).await
    }

    /// The same for a call of another program, which its host brings: it is decided about as the agent's own calls are, but
    /// that what skills free for the agent is asked about.
    pub(crate) async fn run_for_host(
        &self,
        call: &ToolUse,
        prepared: Box<dyn PreparedCall>,
        cancel: &CancellationToken,
    ) -> CallResult {
        let context = self.context(call, Asking::Allowed, cancel);
        let mut aside = HookOutput { company: CallGrouping::Alone, ..HookOutput::default() };
        let ready = ReadyCall::new(Cow::Borrowed(call), prepared, &context);
        let permitted = async {
            let ready = self.permit(ready, Asking::Allowed, &context, &mut aside).await?;
            if ready.is_approved || !self.agent.has_rules_of_skills() {
                return Ok(ready);
            }
            let text = format!("{} is not free for other programs", call.name);
            let question = Question { reason: AskReason::other(text), is_for_person: true };
            self.approved(ready, question, &context, &mut aside).await
        };
        let permitted = permitted.await;
        let mut dispatched = match permitted {
            Ok(permitted) => self.execute(permitted, context, &mut aside).await,
            Err(refused) => *refused,
        };
        contain_parts(&mut dispatched.result.content);
        dispatched.aside = aside;
        dispatched
    }

    async fn run_with(
        &self,
        call: &ToolUse,
        prepared: Box<dyn PreparedCall>,
        company: CallGrouping,
        asking: Asking,
        cancel: &CancellationToken,
    ) -> CallResult {
        let context = self.context(call, asking, cancel);
        let mut aside = HookOutput { company, ..HookOutput::default() };
        if let Some(lead) = self.agent.shared.upgrade().and_then(|it| it.delegation.lead.clone()) {
            let led = self.run_led(&lead, call, prepared, asking, (aside, context));
            let mut dispatched = Box::pin(led).await;
            contain_parts(&mut dispatched.result.content);
            return dispatched;
        }
        let ready = ReadyCall::new(Cow::Borrowed(call), prepared, &context);
        let mut dispatched = match self.permit(ready, asking, &context, &mut aside).await {
            Ok(permitted) => self.execute(permitted, context, &mut aside).await,
            Err(refused) => *refused,
        };
        contain_parts(&mut dispatched.result.content);
        dispatched.aside = aside;
        dispatched
    }

    /// The agent's shell stays where it is when the program makes a call for it.
    fn context(&self, call: &ToolUse, asking: Asking, cancel: &CancellationToken) -> ToolContext {
        ToolContext {
            workspace: Arc::clone(&self.agent.workspace),
            call: call.id.clone(),
            cancel: cancel.child_token(),
            decided: None,
            is_approved: false,
            moves_agent: asking == Asking::Allowed,
        }
    }

    /// Runs a call that may, and lets hooks see its result.
    async fn execute(
        &self,
        ready: ReadyCall<'_>,
        mut context: ToolContext,
        aside: &mut HookOutput,
    ) -> CallResult {
        let ReadyCall { call, prepared, access, is_approved } = ready;
        if let (Access::External { only_reads: false }, Some(worktree)) =
            (&access, &self.agent.isolation)
        {
            worktree.note_outside(&call.name);
        }
        context.decided = Some(access.clone());
        context.is_approved = is_approved;
        let (started, stood) = (Instant::now(), self.agent.workspace.cwd());
        // A command has a time limit of its own: until then its silence is no stall.
        let task = self.agent.task.as_ref().filter(|_| call.name == "Bash");
        let waiting = task.map(|task| task.stall.pause());
        let outcome = tokio::select! {
            biased;
            outcome = AssertUnwindSafe(prepared.run(&context)).catch_unwind() => outcome,
            // Tools watch the token themselves and tidy up; this is for those that do not look.
            () = abandoned(&context.cancel) => Ok(Err(ToolError::Cancelled { partial: None })),
        };
        drop(waiting);
        // A fault in one tool is that call's problem, not the end of the session.
        let outcome = outcome.unwrap_or_else(|_| {
            Err(ToolError::failed(format!("{} broke while it ran; try another way", call.name)))
        });
        let dispatched = match outcome {
            Ok(output) => CallResult::done(&call, output, &access),
            Err(ToolError::Cancelled { partial: None }) => CallResult::cut_short(&call.id),
            Err(ToolError::Cancelled { partial: Some(partial) }) => CallResult {
                is_cut_short: true,
                ..CallResult::error(&call.id, format!("{CUT_SHORT} Until then:\n{partial}"))
            },
            Err(ToolError::FailedWith { message, data }) => {
                CallResult { data, ..CallResult::error(&call.id, message) }
            }
            Err(error) => CallResult::error(&call.id, error.to_string()),
        };
        let mut dispatched = self.after(&call, &access, dispatched, started.elapsed(), aside).await;
        self.moved(&stood, aside).await;
        let parts = std::mem::take(&mut dispatched.result.content);
        dispatched.result.content = self.bounded_parts(&call, parts);
        dispatched
    }

    /// Asks hooks, the policy, and a person where the policy says so. Gives back the call that may run, and
    /// what it may touch.
    async fn permit<'a>(
        &self,
        ready: ReadyCall<'a>,
        asking: Asking,
        context: &ToolContext,
        aside: &mut HookOutput,
    ) -> Result<ReadyCall<'a>, Box<CallResult>> {
        let (ready, leave) = self.before(ready, context, aside).await?;
        let decision = self.judge(&ready);
        let id = &ready.call.id;
        let question = |reason, is_for_person| Question { reason, is_for_person };
        let question = match (decision.verdict, leave) {
            (Verdict::Deny, _) => {
                return Err(Box::new(CallResult::denied(id, (&decision.reason).into(), false)));
            }
            (Verdict::Allow, Leave::Usual | Leave::Granted)
                if !self.toolbox.needs_a_person(&ready.call.name) =>
            {
                return Ok(ready);
            }
            (Verdict::Ask, Leave::Granted) if is_open(&decision) => return Ok(ready),
            (Verdict::Ask, Leave::Usual) if self.is_confined(&ready, &decision).await => {
                return Ok(ready);
            }
            (_, Leave::MustAsk(text)) => {
                question(AskReason { text, kind: "hook", path: None, rule: None }, true)
            }
            (Verdict::Allow, _) => {
                let text = format!("{} needs a person each time", ready.call.name);
                question(AskReason::other(text), true)
            }
            (Verdict::Ask, _) => {
                let is_for_person = self.toolbox.needs_a_person(&ready.call.name);
                question(AskReason::from(&decision.reason), is_for_person)
            }
        };
        if asking == Asking::Never {
            return Err(Box::new(CallResult::denied(id, question.reason, false)));
        }
        let ready = self.approved(ready, question, context, aside).await?;
        // A yes answers the question, not a denial: the input may be another one by now, and so may the
        // mode. What is denied stays denied.
        let decision = self.judge(&ready);
        if decision.verdict == Verdict::Deny {
            let reason = AskReason::from(&decision.reason);
            return Err(Box::new(CallResult::denied(&ready.call.id, reason, false)));
        }
        Ok(ready)
    }

    /// Puts the call to hooks that answer in a person's place, then to a person.
    async fn approved<'a>(
        &self,
        ready: ReadyCall<'a>,
        question: Question,
        context: &ToolContext,
        aside: &mut HookOutput,
    ) -> Result<ReadyCall<'a>, Box<CallResult>> {
        let kind = question.reason.kind;
        let (named, meant) = (self.named(&ready.call), self.target_names(&ready.call));
        let suggestions = self.agent.permissions.suggest(&ready.as_call(named.as_deref(), &meant));
        let answer = self.answered_by_hook(&ready, &suggestions, &context.cancel, aside).await;
        let reply = if let Some(answer) = answer {
            answer
        } else {
            self.call_for_attention(&ready.call.name, &context.cancel, aside).await;
            if let Some(reply) = self.asked_lead(&ready, &question, context).await {
                return self.settled(ready, reply, kind, context, aside).await;
            }
            let ask = Ask {
                tool: ready.call.name.clone(),
                call: ready.call.id.clone(),
                input: ready.call.input.clone(),
                reason: question.reason,
                reach: reach::of(&ready.access, &ready.call.input, &self.agent.workspace),
                suggestions,
                agent: AskingAgent::of(&self.agent.identity),
                server: self.agent.servers.server_of(&ready.call.name),
                is_for_person: self.toolbox.needs_a_person(&ready.call.name),
            };
            // An agent that waits for a person holds no slot that another could use.
            let asking = self.broker.ask(ask, &context.cancel);
            self.agent.wait(WaitsFor::Person, asking).await
        };
        self.settled(ready, reply, kind, context, aside).await
    }

    /// Applies the reply of a person to the call, about which was asked for a reason of this kind.
    async fn settled<'a>(
        &self,
        ready: ReadyCall<'a>,
        reply: Reply,
        kind: &'static str,
        context: &ToolContext,
        aside: &mut HookOutput,
    ) -> Result<ReadyCall<'a>, Box<CallResult>> {
        match reply {
            // The call may touch what the question named, wherever links lead by now.
            Reply::Allowed { input: None, remember } => {
                self.remember(&remember);
                Ok(ReadyCall { is_approved: true, ..ready })
            }
            Reply::Allowed { input: Some(input), remember } => {
                self.remember(&remember);
                let ready = self.rewritten(ready, input, context)?;
                Ok(ReadyCall { is_approved: true, ..ready })
            }
            Reply::HostDenied { reason, interrupt } => {
                let reply = Reply::Denied { reason, interrupt };
                let denied = Box::pin(self.settled(ready, reply, kind, context, aside)).await;
                denied.map_err(|mut dispatched| {
                    if let Some(denied) = &mut dispatched.denied {
                        denied.is_told = true;
                    }
                    dispatched
                })
            }
            Reply::Denied { reason, interrupt } => {
                let may_retry = self.told_denied(&ready, &reason, &context.cancel, aside).await;
                let reason =
                    if may_retry { format!("{reason}; you may try again") } else { reason };
                let reason = AskReason { kind, ..AskReason::other(reason) };
                Err(Box::new(CallResult::denied(&ready.call.id, reason, interrupt)))
            }
            Reply::Cancelled => Err(Box::new(CallResult::not_begun(&ready.call.id))),
        }
    }

    /// The same call with another input, which is read like the first one.
    fn rewritten<'a>(
        &self,
        ready: ReadyCall<'a>,
        input: Box<RawValue>,
        context: &ToolContext,
    ) -> Result<ReadyCall<'a>, Box<CallResult>> {
        let call = ToolUse { input, ..ready.call.into_owned() };
        let prepared = self.prepare(&call)?;
        Ok(ReadyCall::new(Cow::Owned(call), prepared, context))
    }

    /// Tells whether a command that nothing else allows may run because it is confined. Rules that ask, critical
    /// removals and protected places still ask.
    async fn is_confined(&self, ready: &ReadyCall<'_>, decision: &Decision) -> bool {
        #[derive(Deserialize)]
        struct Input {
            #[serde(default, rename = "dangerouslyDisableSandbox")]
            is_disabled: bool,
        }
        let (Access::Shell(command), Some(sandbox)) =
            (&ready.access, &self.agent.workspace.sandbox)
        else {
            return false;
        };
        let is_disabled = serde_json::from_str::<Input>(ready.call.input.get())
            .is_ok_and(|input| input.is_disabled);
        if !self.allows_sandboxed || !is_open(decision) {
            return false;
        }
        // A rule about files that the sandbox cannot hold the command to is a reason to ask.
        let denied = self.agent.workspace.denied_files().await;
        sandbox.confines(command, is_disabled, &denied)
    }

    /// Applies what the answer means for later calls.
    fn remember(&self, remember: &[Remember]) {
        for answer in remember {
            if let Err(problem) = self.agent.permissions.remember(answer) {
                let text = format!("an answer could not be kept as it was given: {problem}");
                self.agent.inform("warning", text);
            }
        }
    }

    fn judge(&self, ready: &ReadyCall<'_>) -> Decision {
        let (named, meant) = (self.named(&ready.call), self.target_names(&ready.call));
        let call = ready.as_call(named.as_deref(), &meant);
        let sharers = match call.access {
            Access::Shell(_) => self.agent.others_at_work(),
            _ => Vec::new(),
        };
        let cwd = self.agent.workspace.cwd();
        let decision = self.agent.permissions.decide_among(&call, cwd, sharers);
        // Rules about a server are rules about what it keeps, too.
        match resource_server(&ready.call).filter(|_| decision.verdict == Verdict::Allow) {
            None => decision,
            Some(server) => {
                let tool = tool_name(&server, "resources");
                let call = Call::new(&tool, &Access::Session);
                self.agent.permissions.decide(&call, self.agent.workspace.cwd())
            }
        }
    }

    /// All names of the agent that a call would start, or of the skill that it would invoke.
    fn target_names(&self, call: &ToolUse) -> Vec<String> {
        match canonical_tool_name(&call.name) {
            "Agent" => name_lookup::names_for_call(&self.agent, &call.input),
            "Skill" => name_lookup::skill_names_for_call(&self.agent, &call.input),
            _ => Vec::new(),
        }
    }

    /// The path as the model wrote it: a rule may speak of a link or of where it leads.
    fn named(&self, call: &ToolUse) -> Option<PathBuf> {
        #[derive(Deserialize)]
        struct Named<'a> {
            #[serde(borrow, alias = "notebook_path", alias = "path")]
            file_path: Option<Cow<'a, str>>,
        }
        let named: Named<'_> = serde_json::from_str(call.input.get()).ok()?;
        Some(self.agent.workspace.absolute(&named.file_path?))
    }
}

impl Dispatch {
    /// Cuts a result for the conversation: to the limit of one result, and to the room that all results of the turn leave
    /// room for.
    fn bounded_parts(
        &self,
        call: &ToolUse,
        parts: Vec<ToolResultContent>,
    ) -> Vec<ToolResultContent> {
        let mut room = self.agent.result_room.lock();
        let most = room.allowed().min(RESULT_BOUND);
        let directory = &self.agent.workspace.output_dir;
        let parts = bounded_parts(parts, most, directory, call.id.as_str());
        room.take(parts.iter().map(ToolResultContent::text_length).sum());
        parts
    }
}

/// A call whose input was read.
struct ReadyCall<'a> {
    /// With the input that it will run with, which need not be the one that the model wrote.
    call: Cow<'a, ToolUse>,
    prepared: Box<dyn PreparedCall>,
    access: Access,
    /// True if a person has said yes to it.
    is_approved: bool,
}

impl<'c> ReadyCall<'c> {
    fn new(call: Cow<'c, ToolUse>, prepared: Box<dyn PreparedCall>, context: &ToolContext) -> Self {
        let access = prepared.access(context);
        Self { call, prepared, access, is_approved: false }
    }
}

impl ReadyCall<'_> {
    /// As the rules see it.
    fn as_call<'a>(&'a self, named: Option<&'a Path>, meant: &'a [String]) -> Call<'a> {
        let (tool, input) = (self.call.name.as_str(), Some(&*self.call.input));
        Call { tool, access: &self.access, named, input, meant, links: &DiskLinks }
    }
}

/// Defuses what looks like our markup in a result, across its parts too (invariant I-9): files, commands,
/// servers and hooks wrote it.
fn contain_parts(parts: &mut [ToolResultContent]) {
    let last = parts.len().saturating_sub(1);
    for (index, part) in parts.iter_mut().enumerate() {
        let continuation = if index == last { Continuation::Ends } else { Continuation::GoesOn };
        if let ToolResultContent::Text(text) = part
            && let Cow::Owned(contained) = contain_part(text, continuation)
        {
            *text = contained;
        }
    }
}

/// Tells whether it is only that nothing speaks for the call: no rule asks, nothing critical or protected is
/// touched.
fn is_open(decision: &Decision) -> bool {
    matches!(
        decision.reason,
        Reason::Command(_)
            | Reason::Unclear { .. }
            | Reason::Write(_)
            | Reason::ReadOutside(_)
            | Reason::Network(_)
            | Reason::External(_)
    )
}

/// Waits until a cancelled call has had time to end by itself.
async fn abandoned(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
}

/// The server whose resources a call reads, if it reads some.
fn resource_server(call: &ToolUse) -> Option<String> {
    #[derive(Deserialize)]
    struct OfServer {
        server: String,
    }
    let reads = matches!(call.name.as_str(), "ListMcpResourcesTool" | "ReadMcpResourceTool");
    let of: OfServer = serde_json::from_str(call.input.get()).ok().filter(|_| reads)?;
    Some(of.server)
}
