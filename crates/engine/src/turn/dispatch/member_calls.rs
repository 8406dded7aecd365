//! Calls of a member in a process of its own: the lead's process decides about them, and carries out what concerns the
//! team; everything else runs where the member is.

use std::borrow::Cow;

use centurion_permissions::{Mode, Verdict, canonical_tool_name};
use centurion_protocol::{Block, ToolUse};
use centurion_tools::{PreparedCall, ToolContext};
use serde_json::value::to_raw_value;
use tokio_util::sync::CancellationToken;

use super::hooked::{CallGrouping, HookOutput};
use super::{Asking, CallResult, Dispatch, Question, ReadyCall};
use crate::agent::builder::AGENT_TOOL;
use crate::agent::lead_link::LeadLink;
use crate::agent::member_frames::{CallFrame, DoneCall, LeadAnswer, LeadQuestion, PermittedCall};
use crate::definition::limits::SpawnGate;
use crate::policy::broker::AskReason;

/// The tools that the lead's process carries out for a member.
const LEADS_TOOLS: [&str; 7] = [
    "ExitPlanMode",
    "ListAgents",
    "SendMessage",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
];

impl Dispatch {
    /// In a member's process: has the lead decide about a call, and runs it here if it may.
    pub(super) async fn run_led(
        &self,
        lead: &LeadLink,
        call: &ToolUse,
        prepared: Box<dyn PreparedCall>,
        asking: Asking,
        (mut aside, context): (HookOutput, ToolContext),
    ) -> CallResult {
        let ready = ReadyCall::new(Cow::Borrowed(call), prepared, &context);
        let decision = self.judge(&ready);
        // The rules of this process are those that it began with; they can only forbid more.
        if decision.verdict == Verdict::Deny {
            return CallResult::denied(&call.id, (&decision.reason).into(), false);
        }
        let is_below = self.agent.identity.team.is_none();
        let must_ask =
            (is_below && decision.verdict == Verdict::Ask).then(|| decision.reason.to_string());
        let question = LeadQuestion::Call(CallFrame {
            id: call.id.clone(),
            name: call.name.clone(),
            input: call.input.clone(),
            cwd: self.agent.workspace.cwd(),
            is_alone: aside.company == CallGrouping::Alone,
            may_ask: asking == Asking::Allowed,
            is_below,
            must_ask,
        });
        let asked = tokio::select! {
            biased;
            () = context.cancel.cancelled() => None,
            answer = self.agent.wait_untold(lead.ask(question)) => answer,
        };
        let permitted = match asked.map(|(_, answer)| answer) {
            Some(LeadAnswer::Permitted(permitted)) => permitted,
            Some(LeadAnswer::Done(done)) => return self.done_by_lead(call, *done),
            Some(LeadAnswer::Reserved(_) | LeadAnswer::Kept(_) | LeadAnswer::Function(_))
            | None => {
                return CallResult::not_begun(&call.id);
            }
        };
        self.follow_lead(permitted.mode);
        aside.context.extend(permitted.context);
        let ready = match permitted.input {
            None => ready,
            Some(input) => match self.rewritten(ready, input, &context) {
                Ok(ready) => ready,
                Err(refused) => return *refused,
            },
        };
        let decision = self.judge(&ready);
        if decision.verdict == Verdict::Deny {
            return CallResult::denied(&call.id, (&decision.reason).into(), false);
        }
        let ready = ReadyCall { is_approved: permitted.is_approved, ..ready };
        let mut dispatched = self.execute(ready, context, &mut aside).await;
        dispatched.aside = aside;
        dispatched
    }

    /// The mode above the agents of this process is the lead's.
    fn follow_lead(&self, mode: Mode) {
        let Some(shared) = self.agent.shared.upgrade() else { return };
        if shared.permissions.mode() != mode
            && let Err(error) = shared.permissions.set_mode(mode)
        {
            tracing::warn!(%error, "the lead's permission mode cannot be followed");
        }
    }

    fn done_by_lead(&self, call: &ToolUse, done: DoneCall) -> CallResult {
        let Ok(Block::ToolResult(result)) = Block::parse(&done.result) else {
            return CallResult::not_begun(&call.id);
        };
        if done.data["awaitingLeaderApproval"] == true
            && let Some(plan) = done.data["plan"].as_str()
        {
            // The agent that has to remember it is the one here.
            self.agent.workspace.plan.lock().proposed = Some(plan.to_owned());
        }
        let aside = HookOutput { context: done.context, stop: done.stop, ..HookOutput::default() };
        CallResult {
            result,
            data: done.data,
            read: None,
            denied: done.denied,
            is_cut_short: done.is_cut_short,
            is_deferred: done.is_deferred,
            aside,
        }
    }

    /// Refuses a call that the host redirects to a tool of its own, which the member's process does not have.
    fn redirected(&self, call: &ToolUse) -> Option<CallResult> {
        let target = self.agent.shared.upgrade()?.delegation.aliases.target(&call.name)?;
        let reason = format!(
            "the host redirects {} to {target}, which only agents of the lead's process can call",
            call.name
        );
        Some(CallResult::denied(&call.id, AskReason::other(reason), false))
    }

    /// In the lead's process: decides about a call of a member, or carries it out.
    pub(crate) async fn answer_member(
        &self,
        asked: CallFrame,
        cancel: &CancellationToken,
    ) -> LeadAnswer {
        let call = asked.call();
        if let Some(denied) = self.redirected(&call) {
            return done(denied);
        }
        let prepared = match self.prepare(&call) {
            Ok(prepared) => prepared,
            Err(refused) => return done(*refused),
        };
        self.agent.workspace.cwd.lock().clone_from(&asked.cwd);
        let company = if asked.is_alone { CallGrouping::Alone } else { CallGrouping::WithOthers };
        if LEADS_TOOLS.contains(&call.name.as_str()) {
            // They would speak, and take tasks, under the member's name.
            if asked.is_below {
                let text = "only the member itself reaches its team from a process of its own: end with what the \
                    member is to know";
                return done(CallResult::error(&call.id, text.to_owned()));
            }
            return done(self.run(&call, prepared, company, cancel).await);
        }
        let context = self.context(&call, Asking::Allowed, cancel);
        let mut aside = HookOutput { company, ..HookOutput::default() };
        let asking = if asked.may_ask { Asking::Allowed } else { Asking::Never };
        let ready = ReadyCall::new(Cow::Borrowed(&call), prepared, &context);
        let permitted = async {
            let ready = self.permit(ready, asking, &context, &mut aside).await?;
            match asked.must_ask.filter(|_| !ready.is_approved) {
                Some(text) if asking == Asking::Allowed => {
                    let question =
                        Question { reason: AskReason::other(text), is_for_person: false };
                    self.approved(ready, question, &context, &mut aside).await
                }
                Some(text) => {
                    Err(Box::new(CallResult::denied(&call.id, AskReason::other(text), false)))
                }
                None => Ok(ready),
            }
        };
        match permitted.await {
            Err(refused) => done(CallResult { aside, ..*refused }),
            Ok(ready) => {
                let shared = self.agent.shared.upgrade();
                let gate = shared.as_ref().map(|shared| &shared.delegation.gate);
                // All agents of the session are counted here, wherever they work.
                if canonical_tool_name(&call.name) == AGENT_TOOL
                    && let Some(Err(refused)) = gate.map(SpawnGate::admit)
                {
                    return done(CallResult::error(&call.id, refused.to_string()));
                }
                let mode = shared.as_ref().map(|shared| shared.permissions.mode());
                LeadAnswer::Permitted(PermittedCall {
                    input: (ready.call.input.get() != call.input.get())
                        .then(|| ready.call.input.clone()),
                    is_approved: ready.is_approved,
                    context: aside.context,
                    mode: mode.unwrap_or_default(),
                })
            }
        }
    }
}

fn done(dispatched: CallResult) -> LeadAnswer {
    // A block of texts and images is always JSON.
    let result = to_raw_value(&Block::ToolResult(dispatched.result)).unwrap_or_default();
    LeadAnswer::Done(Box::new(DoneCall {
        result,
        data: dispatched.data,
        denied: dispatched.denied,
        is_cut_short: dispatched.is_cut_short,
        is_deferred: dispatched.is_deferred,
        context: dispatched.aside.context,
        stop: dispatched.aside.stop,
    }))
}
