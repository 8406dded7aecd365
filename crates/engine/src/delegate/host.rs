//! Services of an agent for its tools: questions to a person, planning, news of shells.

use std::sync::{Arc, Weak};
use std::time::Duration;

use centurion_permissions::Mode;
use centurion_protocol::sdk::{EventBody, ToolProgress, WaitsFor};
use centurion_protocol::{AgentId, ToolUseId};
use centurion_team::Frame;
use centurion_tools::{
    AgentState, AgentStop, Answer, Host, HostFuture, NoAnswer, PlanModeError, PlanVerdict,
    Question, ShellChange, ShellEnd, StopRefusal,
};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio_util::sync::CancellationToken;

use crate::agent::Agent;
use crate::agent::shared::Shared;
use crate::agent::task::{PostResult, Stopper, Task};
use crate::delegate::notification;
use crate::delegate::outcome::whole_result;
use crate::delegate::teammate;
use crate::message::mail::{Mail, TeamMail};
use crate::policy::broker::{Ask, AskReason, AskingAgent, Reply};
use centurion_protocol::markup::contain;

/// The longest wait of a call that stops an agent for the agent's end.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// The host of one agent's tools.
pub(crate) struct AgentHost {
    /// Weak, because the agent owns the shells that own this.
    agent: Weak<Agent>,
}

/// The agent and its session, as long as both are there.
struct ReachedAgent {
    agent: Arc<Agent>,
    shared: Arc<Shared>,
}

impl AgentHost {
    pub(crate) fn new(agent: Weak<Agent>) -> Self {
        Self { agent }
    }

    fn reach(&self) -> Option<ReachedAgent> {
        let agent = self.agent.upgrade()?;
        let shared = agent.shared.upgrade()?;
        Some(ReachedAgent { agent, shared })
    }
}

impl ReachedAgent {
    /// Shows hosts the mode of the main agent: they take it for that of the session.
    fn show_mode(&self) {
        if self.agent.identity.is_main() {
            self.shared.show_mode(self.agent.permissions.mode());
        }
    }

    /// The reason why this agent does not end another, if so: the main agent ends all, others only agents that they started
    /// or resumed, and the descendants of these.
    fn refuses_to_end(&self, other: &Task) -> Option<StopRefusal> {
        let (delegation, identity) = (&self.shared.delegation, &self.agent.identity);
        let own = identity.id.as_ref()?;
        if own == &other.id {
            return Some(StopRefusal::Oneself);
        }
        let parent = |id: &AgentId| delegation.find(id.as_str())?.identity.parent.clone();
        let is_among = |first: Option<AgentId>, sought: &AgentId| {
            std::iter::successors(first, parent).any(|id| id == *sought)
        };
        if is_among(identity.parent.clone(), &other.id) {
            return Some(StopRefusal::Above(other.id.clone()));
        }
        let asker = other.run().asker.map(|asker| asker.agent);
        let works_here = is_among(other.identity.parent.clone(), own) || is_among(asker, own);
        (!works_here).then(|| StopRefusal::Stranger(other.id.clone()))
    }

    /// Sends the plan of a member to the lead of its team. `None` for other agents.
    fn submit_plan(&self, plan: &str) -> Option<PlanVerdict> {
        let team = self.shared.delegation.team.as_ref()?;
        let task = self.agent.task.as_ref().filter(|_| self.agent.plans_for_lead())?;
        let address = teammate::address(task)?;
        let name = task.spec.name.clone().unwrap_or_default();
        let id = format!("plan_approval-{}@{address}", team.number(self.shared.world.now()));
        let frame = Frame::PlanApprovalRequest {
            request_id: id.clone(),
            from: name.clone(),
            plan_content: plan.to_owned(),
        };
        let mail = Mail {
            id: self.shared.world.record_id(),
            from: name,
            text: frame.to_text(),
            team: Some(TeamMail {
                color: Some(task.spec.color.clone()),
                summary: Some("asks to approve its plan".to_owned()),
                frame: Some(frame),
            }),
        };
        let earlier = team.propose_plan(&task.id, &id);
        let fault = match self.shared.post_to_main(&mail) {
            Ok(PostResult::Queued | PostResult::HasEnded) => {
                task.note_report();
                return Some(PlanVerdict::Submitted(id));
            }
            Ok(PostResult::Full) => {
                "too much waits unread for the lead: try again later".to_owned()
            }
            Err(error) => format!("the plan cannot be kept: {error}"),
        };
        // The lead knows nothing of this plan, and may still answer the one before it.
        match earlier {
            Some(earlier) => drop(team.propose_plan(&task.id, &earlier)),
            None => drop(team.close_plan(&task.id, &id)),
        }
        Some(PlanVerdict::Refused(fault))
    }

    async fn put(&self, tool: &str, call: &ToolUseId, input: serde_json::Value) -> Reply {
        let denied = |reason: &str| Reply::Denied { reason: reason.to_owned(), interrupt: false };
        let Ok(input) = to_raw_value(&input) else { return denied("the question cannot be sent") };
        let reason = AskReason::other(format!("{tool} needs an answer from the user"));
        let ask = Ask {
            tool: tool.to_owned(),
            call: call.clone(),
            input,
            reason,
            reach: None,
            suggestions: Vec::new(),
            agent: AskingAgent::of(&self.agent.identity),
            server: None,
            is_for_person: true,
        };
        // The dispatch drops this future when the call is cancelled, which withdraws the question.
        let (broker, cancel) = (&self.shared.broker, CancellationToken::new());
        self.agent.tell_wait(WaitsFor::Person, broker.ask(ask, &cancel)).await
    }
}

/// Describes the progress of an agent that has not ended.
fn at_work(task: &Task) -> String {
    let progress = task.progress();
    match progress.summary {
        Some(summary) => format!("{summary}\n{}", progress.activity),
        None => progress.activity,
    }
}

impl Host for AgentHost {
    fn ask<'a>(
        &'a self,
        call: &'a ToolUseId,
        questions: Vec<Question>,
    ) -> HostFuture<'a, Result<Vec<Answer>, NoAnswer>> {
        #[derive(Deserialize)]
        struct Answered {
            #[serde(default)]
            answers: indexmap::IndexMap<String, String>,
        }
        Box::pin(async move {
            let reached = self.reach().ok_or(NoAnswer::Ended)?;
            match reached.put("AskUserQuestion", call, json!({"questions": questions})).await {
                Reply::Allowed { input, .. } => {
                    let answered = input.and_then(|raw| serde_json::from_str(raw.get()).ok());
                    let Answered { answers } = answered.ok_or(NoAnswer::Empty)?;
                    let answer = |(question, answer)| Answer { question, answer };
                    Ok(answers.into_iter().map(answer).collect())
                }
                Reply::Denied { reason, .. } | Reply::HostDenied { reason, .. } => {
                    Err(NoAnswer::Refused(reason))
                }
                Reply::Cancelled => Err(NoAnswer::Withdrawn),
            }
        })
    }

    fn enter_plan_mode<'a>(
        &'a self,
        _: &'a ToolUseId,
    ) -> HostFuture<'a, Result<(), PlanModeError>> {
        Box::pin(async move {
            let reached = self.reach().ok_or(PlanModeError::Ended)?;
            reached.agent.permissions.enter_plan()?;
            reached.show_mode();
            Ok(())
        })
    }

    fn propose_plan<'a>(
        &'a self,
        call: &'a ToolUseId,
        plan: String,
    ) -> HostFuture<'a, PlanVerdict> {
        Box::pin(async move {
            let Some(reached) = self.reach() else {
                return PlanVerdict::Refused(NoAnswer::Ended.to_string());
            };
            let permissions = &reached.agent.permissions;
            if permissions.mode() != Mode::Plan {
                return PlanVerdict::Refused("plan mode is not on".to_owned());
            }
            if let Some(verdict) = reached.submit_plan(&plan) {
                return verdict;
            }
            // No agent below a planner writes, even if a person approves it (invariant I-1).
            if permissions.must_plan() {
                let reason = "you work for an agent that plans: put your plan into your report";
                return PlanVerdict::Refused(reason.to_owned());
            }
            match reached.put("ExitPlanMode", call, json!({"plan": plan})).await {
                Reply::Allowed { .. } => {
                    permissions.leave_plan();
                    reached.show_mode();
                    PlanVerdict::Approved
                }
                Reply::Denied { reason, .. } | Reply::HostDenied { reason, .. } => {
                    PlanVerdict::Rejected(reason)
                }
                Reply::Cancelled => PlanVerdict::Refused(NoAnswer::Withdrawn.to_string()),
            }
        })
    }

    fn call_progressed(&self, call: &ToolUseId, tool: &str, elapsed: Duration) {
        if let Some(ReachedAgent { agent, shared }) = self.reach() {
            if let Some(task) = &agent.task {
                task.stall.note_activity();
            }
            shared.show(EventBody::ToolProgress(ToolProgress {
                tool_use_id: call.clone(),
                tool_name: tool.to_owned(),
                parent_tool_use_id: agent.identity.call.clone(),
                agent_id: agent.identity.id.clone(),
                subagent_type: agent.identity.kind.clone(),
                elapsed_time_seconds: elapsed.as_secs(),
            }));
        }
    }

    fn shell_changed(&self, change: ShellChange) {
        if let Some(ReachedAgent { shared, .. }) = self.reach() {
            notification::show_shell(&shared, &change);
        }
    }

    fn stop_agent<'a>(
        &'a self,
        id: &'a str,
    ) -> HostFuture<'a, Option<Result<AgentStop, StopRefusal>>> {
        Box::pin(async move {
            let reached = self.reach()?;
            let task = reached.shared.delegation.find(id)?;
            if let Some(reason) = reached.refuses_to_end(&task) {
                return Some(Err(reason));
            }
            let was_resting = teammate::dismiss(&reached.shared, &task, Stopper::Agent);
            let was_running = was_resting || task.stop(Stopper::Agent);
            // Its end is known when the call answers.
            task.ended(STOP_PATIENCE).await;
            let (id, description) = (task.id.to_string(), task.spec.description.clone());
            Some(Ok(AgentStop { id, description, was_running }))
        })
    }

    fn agent_state<'a>(
        &'a self,
        id: &'a str,
        patience: Option<Duration>,
    ) -> HostFuture<'a, Option<AgentState>> {
        Box::pin(async move {
            let ReachedAgent { shared, .. } = self.reach()?;
            let task = shared.delegation.find(id)?;
            let end = match patience {
                Some(patience) => task.ended(patience).await,
                None => task.end(),
            };
            // The news of it are told with this answer, unless they were told already.
            let told = end.as_ref().filter(|_| patience.is_some()).map(|end| end.notification);
            let told = told.filter(|id| shared.queue.claim(*id));
            Some(AgentState {
                id: task.id.to_string(),
                description: task.spec.description.clone(),
                status: end.as_ref().map_or("running", |end| end.status()),
                text: match &end {
                    Some(end) => contain(&whole_result(&task, end)).into_owned(),
                    None => contain(&at_work(&task)).into_owned(),
                },
                output_file: task.output.path().to_owned(),
                notification: told.map(|id| id.to_string()),
            })
        })
    }

    fn report_shell_end(&self, end: ShellEnd) {
        if let Some(ReachedAgent { agent, shared }) = self.reach() {
            notification::report_shell_end(&shared, &end, agent.identity.id.as_ref());
        }
    }
}
