//! The `Agent` tool: one agent hands work to another.

mod answer;
mod explain;
mod fork;
mod launch;
pub(crate) mod name;
mod teammate;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use centurion_permissions::Access;
use centurion_protocol::sdk::WaitsFor;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

pub(crate) use self::answer::about;
pub use self::explain::Explanation;
pub(crate) use self::explain::explain;
use self::fork::Forker;
use crate::agent::Agent;
use crate::agent::builder::AGENT_TOOL;
use crate::agent::listing::Listing;
use crate::agent::name_lookup::given;
use crate::agent::shared::Shared;
use crate::agent::task::{End, Stopper, Task};
use crate::definition::builtin::FORK;
use crate::definition::rules::SessionMode;
use crate::definition::spec::AgentSpec;
use crate::delegate::notification;
use crate::delegate::spawn::{Launch, spawn};
use crate::message::titles::title;
use crate::tools::send_message;
use crate::turn::skill::InvokedSkill;

/// Starts an agent that does one task on its own and returns one report.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentInput {
    /// The task in three to five words, for people.
    pub(crate) description: String,
    /// The whole task. The agent knows nothing of this conversation: say what to do, where, what is known
    /// already, and what to report.
    pub(crate) prompt: String,
    /// The type of the agent. The list of types says which agent is started without it.
    pub(crate) subagent_type: Option<String>,
    /// Another model than the agent's own: sonnet, opus, haiku (quick and cheap, for simple tasks), fable,
    /// or a full name.
    pub(crate) model: Option<String>,
    /// Do not wait for the agent. You are told when it has ended.
    pub(crate) run_in_background: Option<bool>,
    /// A name by which `SendMessage` reaches it.
    pub(crate) name: Option<String>,
    /// A JSON Schema for an object: the report must match it.
    pub(crate) output_schema: Option<Value>,
    /// The directory that the agent works in.
    pub(crate) cwd: Option<PathBuf>,
    /// The most requests that the agent may make.
    pub(crate) max_turns: Option<u32>,
    /// `worktree`: the agent works in a git worktree and on a branch of its own, apart from the changes of other
    /// agents. You are told where its changes are and whether they would merge.
    pub(crate) isolation: Option<String>,
    /// The id of an agent to resume.
    pub(crate) resume: Option<String>,
    /// The team that it joins.
    pub(crate) team_name: Option<String>,
    /// `plan`: it changes nothing until you have approved its plan. Leave it out otherwise: it has your permission mode.
    pub(crate) mode: Option<String>,
}

/// Parameters that are accepted and not offered: others offer it, or it comes from older sessions.
const HIDDEN: [&str; 4] = ["max_turns", "resume", "team_name", "mode"];

/// The tool of one agent.
pub(crate) struct AgentTool {
    caller: Arc<Agent>,
    listing: Arc<Listing>,
    withheld: Vec<&'static str>,
    /// True if agents with a name join its team.
    leads: bool,
}

impl AgentTool {
    pub(crate) fn new(caller: Arc<Agent>, listing: Arc<Listing>) -> Self {
        let mut withheld: Vec<&'static str> = HIDDEN.into();
        let shared = caller.shared.upgrade();
        let leads = caller.identity.is_main()
            && shared.as_ref().is_some_and(|shared| shared.delegation.team.is_some());
        if leads {
            withheld.retain(|field| !["team_name", "mode"].contains(field));
        }
        let rules = shared.as_ref().map(|shared| &shared.delegation.rules);
        if rules.is_none_or(|rules| rules.background_is_off || rules.forks) {
            withheld.push("run_in_background");
        }
        if rules.is_none_or(|rules| rules.mode != SessionMode::Assistant) {
            withheld.push("cwd");
        }
        if rules.is_some_and(|rules| rules.mode == SessionMode::Coordinator) {
            withheld.push("model");
        }
        Self { caller, listing, withheld, leads }
    }
}

/// The result of a started agent.
pub(crate) struct LaunchResult {
    task: Arc<Task>,
    /// `None` while it works in the background.
    end: Option<Arc<End>>,
}

/// An agent ended without success: why, and what it had said until then.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct CutOff(String);

impl LaunchResult {
    /// The result for the model that started it.
    pub(crate) fn for_model(&self, caller: &Agent) -> Result<ToolOutput, ToolError> {
        match &self.end {
            Some(end) => answer::ended(&self.task, end, caller.report_room()),
            None => Ok(answer::launched(&self.task, caller)),
        }
    }

    /// The result for the person who typed the skill: the report, or the reason why there is none.
    pub(crate) fn for_person(&self) -> Result<String, CutOff> {
        match &self.end {
            Some(end) => answer::shown(&self.task, end),
            None => Ok(format!(
                "{} works in the background as agent {}. You are shown its report when it has ended.",
                self.task.spec.description, self.task.id
            )),
        }
    }
}

/// Starts an agent, and waits for it unless it works in the background.
async fn carry_out(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    launch: Launch,
    context: &ToolContext,
) -> Result<LaunchResult, ToolError> {
    let in_background = launch.spec.in_background;
    let (task, end) = spawn(shared, caller, launch)
        .map_err(|error| ToolError::failed(format!("the agent could not be started: {error}")))?;
    let end = match end {
        Some(end) if !in_background => wait(shared, caller, &task, end, context).await,
        _ => None,
    };
    Ok(LaunchResult { task, end })
}

/// Carries out a task that a person gives, by a fork of the agent at the point that it keeps.
pub(crate) async fn carry_out_subtask(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    task: &str,
    context: &ToolContext,
) -> Result<LaunchResult, ToolError> {
    let input = AgentInput {
        description: title(task),
        prompt: task.to_owned(),
        subagent_type: Some(FORK.to_owned()),
        ..AgentInput::default()
    };
    let launch = fork::prepare(shared, caller, &input, context, Forker::Person).await;
    let launch = launch.map_err(|error| launch::refused(shared, &error))?;
    carry_out(shared, caller, launch, context).await
}

/// Carries out a skill by an agent of its own, with the skill's text as its task.
pub(crate) async fn carry_out_skill(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    skill: &InvokedSkill,
    context: &ToolContext,
) -> Result<LaunchResult, ToolError> {
    let definition = &skill.definition;
    let rules = &shared.delegation.rules;
    let wants = definition.background.as_ref().is_some_and(|it| it.value);
    let in_background = !rules.background_is_off && (wants || rules.mode == SessionMode::Assistant);
    let input = AgentInput {
        description: format!("/{}", definition.name),
        prompt: skill.for_agent(),
        subagent_type: definition.agent.as_ref().map(|it| it.value.clone()),
        model: definition.model.as_ref().map(|it| it.value.clone()),
        run_in_background: Some(in_background),
        ..AgentInput::default()
    };
    let launch = launch::prepare_skill(shared, caller, &input, definition, context).await;
    let mut launch = launch.map_err(|error| launch::refused(shared, &error))?;
    // A skill is waited for unless it says otherwise, whatever holds for agents in general.
    let mut spec = AgentSpec::clone(&launch.spec);
    spec.in_background = in_background;
    launch.spec = Arc::new(spec);
    carry_out(shared, caller, launch, context).await
}

/// Waits until the agent has ended; `None` if the call no longer waits for it.
async fn wait(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    task: &Arc<Task>,
    end: tokio::sync::oneshot::Receiver<Arc<End>>,
    context: &ToolContext,
) -> Option<Arc<End>> {
    let patience = shared.delegation.rules.auto_background;
    let mut waiting = AwaitedEnd { shared, task, end: OnceLock::new(), has_answered: false };
    let mut end = std::pin::pin!(end);
    let ended = caller
        .wait(WaitsFor::Agent, async {
            let ended = tokio::select! {
                biased;
                ended = &mut end => ended.ok(),
                () = context.cancel.cancelled() => {
                    task.stop(Stopper::Agent);
                    end.await.ok()
                }
                // An end that came in this very moment is this call's to tell.
                () = after(patience) => if task.detach() { None } else { end.await.ok() },
            };
            ended.inspect(|end| drop(waiting.end.set(Arc::clone(end))))
        })
        .await;
    waiting.has_answered = true;
    match &ended {
        None => notification::show_detached(shared, task),
        // Of a cancelled call as well: its caller is told, and no other agent has to be.
        Some(end) => caller.note_denials(shared.take_denials(end.notification)),
    }
    ended
}

/// A call that waits for an agent. If it is dropped before it has answered, the agent is stopped, or its end, if
/// it has come, becomes a notification.
struct AwaitedEnd<'a> {
    shared: &'a Shared,
    task: &'a Task,
    /// The end that was this call's to tell.
    end: OnceLock<Arc<End>>,
    has_answered: bool,
}

impl Drop for AwaitedEnd<'_> {
    fn drop(&mut self) {
        match self.end.get() {
            _ if self.has_answered => {}
            Some(end) => {
                notification::tell_end(&self.shared.queue, self.task, &self.task.run(), end);
            }
            None => drop(self.task.stop(Stopper::Agent)),
        }
    }
}

async fn after(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => std::future::pending().await,
    }
}

impl Tool for AgentTool {
    type Input = AgentInput;

    const NAME: &'static str = AGENT_TOOL;

    fn withheld(&self) -> &[&'static str] {
        &self.withheld
    }

    fn describe(&self, usual: String) -> String {
        let about_teams = if self.leads { teammate::ABOUT } else { "" };
        format!("{usual}{about_teams}\n\n{}", self.listing.text)
    }

    /// Agents that are asked for together work at the same time.
    fn is_read_only(&self, _: &AgentInput) -> bool {
        true
    }

    fn access(&self, _: &AgentInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, input: AgentInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.caller.session()?;
        if let Some(id) = given(input.resume.as_deref()) {
            if input.prompt.trim().is_empty() {
                return Err(ToolError::failed(launch::NO_PROMPT));
            }
            return send_message::resume(&shared, &self.caller, id, &input.prompt, &context.call)
                .await;
        }
        match teammate::joined_team(&shared, &self.caller, &input) {
            Ok(None) => {}
            Ok(Some(team)) => {
                let started = teammate::start(&shared, &self.caller, &team, &input, context).await;
                return started.map_err(|error| launch::refused(&shared, &error));
            }
            Err(refusal) => return Err(launch::refused(&shared, &refusal.into())),
        }
        let launch = launch::prepare(&shared, &self.caller, &input, context).await;
        let launch = launch.map_err(|error| launch::refused(&shared, &error))?;
        carry_out(&shared, &self.caller, launch, context).await?.for_model(&self.caller)
    }
}
