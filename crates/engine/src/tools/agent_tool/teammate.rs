//! From a call with a name to a member of the team. A member is started like any agent; the team keeps its name.

use std::sync::Arc;

use centurion_permissions::Mode;
use centurion_team::{MemberName, MemberPlace, TeamName, TeamNameError};
use centurion_tools::{ToolContext, ToolOutput};
use serde_json::json;
use thiserror::Error;

use super::AgentInput;
use super::launch::{self, Refusal};
use crate::agent::Agent;
use crate::agent::member_processes::{IN_PROCESS, MemberProcessError};
use crate::agent::name_lookup::given;
use crate::agent::shared::Shared;
use crate::agent::task::Task;
use crate::agent::team::{Team, TeamError};
use crate::definition::prompt::teammate_sections;
use crate::definition::resolve::Joining;
use crate::definition::spec::{AgentSpec, Membership};
use crate::delegate::spawn::{Launch, SpawnError, spawn};

/// The part of the tool's description for an agent that leads a team.
pub(super) const ABOUT: &str = "\n\nWith `name` the agent joins your team: it works beside you, stays when it has nothing \
    to do, and reads what you send it with SendMessage. Members share the task list and speak to each other. Their plain \
    text reaches no other agent: have them report with SendMessage. Ask a member to end when you no longer need it.";

/// The reason why an agent did not join the team.
#[derive(Debug, Error)]
pub(super) enum TeamRefusal {
    #[error(
        "teams are switched off (the user can switch them on: subagents.teams in the settings)."
    )]
    Off,
    #[error("`team_name` needs `name`: a member of a team has a name.")]
    NoName,
    #[error(
        "members of a team start no other members. Leave `name` out to start an agent that works for you alone, or \
         ask the lead."
    )]
    NotLead,
    #[error(
        "agents in the background are switched off, and members of a team work in the background."
    )]
    NoBackground,
    #[error("{0}.")]
    Name(#[from] TeamNameError),
    #[error("{0}.")]
    Team(#[from] TeamError),
    #[error("the agent could not be started: {0}")]
    Spawn(#[from] SpawnError),
    #[error("the agent could not be started where members run: {0}")]
    Process(#[from] MemberProcessError),
}

/// The team that a call has an agent join, if it does.
pub(super) fn joined_team(
    shared: &Shared,
    caller: &Agent,
    input: &AgentInput,
) -> Result<Option<Arc<Team>>, TeamRefusal> {
    let (name, team_name) = (given(input.name.as_deref()), given(input.team_name.as_deref()));
    let Some(team) = &shared.delegation.team else { return Ok(None) };
    match (name, team_name) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(TeamRefusal::NoName),
        (Some(_), _) if caller.identity.team.is_some() => Err(TeamRefusal::NotLead),
        (Some(_), Some(_)) if !caller.identity.is_main() => Err(TeamRefusal::NotLead),
        (Some(_), _) if !caller.identity.is_main() => Ok(None),
        (Some(_), _) if shared.delegation.rules.background_is_off => Err(TeamRefusal::NoBackground),
        (Some(_), _) => Ok(Some(Arc::clone(team))),
    }
}

/// Refuses a team where there are none.
pub(super) fn refuse_team(input: &AgentInput) -> Result<(), TeamRefusal> {
    let Some(name) = given(input.team_name.as_deref()) else { return Ok(()) };
    name.parse::<TeamName>()?;
    Err(TeamRefusal::Off)
}

/// Starts a member.
pub(super) async fn start(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    team: &Team,
    input: &AgentInput,
    context: &ToolContext,
) -> Result<ToolOutput, Refusal> {
    let name: MemberName =
        given(input.name.as_deref()).unwrap_or_default().parse().map_err(TeamRefusal::Name)?;
    if let Some(asked) = given(input.team_name.as_deref()) {
        let asked = asked.parse().map_err(TeamRefusal::Name)?;
        team.set_name(asked, None).map_err(TeamRefusal::Team)?;
    }
    let reserved = team.reserve(name, |name| shared.delegation.find(name).is_some());
    let input = AgentInput { name: Some(reserved.name.to_string()), ..input.clone() };
    let joins = match given(input.mode.as_deref()) {
        Some("plan") => Joining::Planning,
        _ => Joining::AtWork,
    };
    let catalog = shared.delegation.definitions.agents();
    let agent = launch::route(&shared.delegation, caller, &input, &catalog)?;
    let preparing = launch::prepare_agent(shared, caller, &input, agent, Some(joins), context);
    let mut launch = preparing.await?;
    let said = agent.definition.permission_mode.as_ref().and_then(|it| it.value.parse().ok());
    enlist(&mut launch, team, reserved.color, said);
    let place = place(shared, &launch).await?;
    let id = launch.id.clone();
    let started = spawn(shared, caller, launch);
    if let (Err(_), Some(processes)) = (&started, &shared.delegation.member_processes) {
        processes.dismiss(&id).await;
    }
    let (task, _) = started.map_err(TeamRefusal::Spawn)?;
    reserved.join(&task);
    Ok(spawned(&task, place.as_ref()))
}

/// Starts the process of a member that is to have one: if it cannot have it, it is not started at all.
async fn place(shared: &Arc<Shared>, launch: &Launch) -> Result<Option<MemberPlace>, TeamRefusal> {
    let Some(processes) = &shared.delegation.member_processes else { return Ok(None) };
    if launch.spec.context.is_some() {
        return Ok(None);
    }
    processes.prepare(shared, &launch.id, &launch.spec).await?;
    Ok(processes.place(&launch.id))
}

/// Makes what is about to start a member.
fn enlist(launch: &mut Launch, team: &Team, color: &str, said: Option<Mode>) {
    let mut spec = AgentSpec::clone(&launch.spec);
    let name = team.name();
    let member = spec.name.as_deref().unwrap_or_default();
    spec.system = teammate_sections(std::mem::take(&mut spec.system), member, &name);
    color.clone_into(&mut spec.color);
    spec.is_one_shot = false;
    spec.team = Some(Membership {
        name,
        must_plan: spec.mode == Mode::Plan,
        limit: said.filter(|mode| *mode != Mode::Plan),
    });
    launch.spec = Arc::new(spec);
}

/// The answer of the call.
fn spawned(task: &Task, place: Option<&MemberPlace>) -> ToolOutput {
    let spec = &task.spec;
    let name = spec.name.as_deref().unwrap_or_default();
    let Some(team) = &spec.team else { return ToolOutput::text("") };
    let id = format!("{name}@{}", team.name);
    let text = format!(
        "Spawned successfully.\nagent_id: {id}\nname: {name}\nteam_name: {}\nIt works beside you now. SendMessage with \
         to: '{name}' reaches it; you are told what it reports and when it has nothing to do.",
        team.name
    );
    let pane = place.and_then(|place| place.pane.as_ref());
    let back_end = place.map_or(IN_PROCESS, |place| place.back_end);
    let data = json!({
        "status": "teammate_spawned",
        "prompt": task.run().prompt,
        "teammate_id": id,
        "agent_id": id,
        "agentId": task.id,
        "agent_type": spec.agent_type,
        "model": spec.model,
        "name": name,
        "color": spec.color,
        "tmux_session_name": pane.map_or(back_end, |pane| &pane.session),
        "tmux_window_name": pane.map_or(back_end, |pane| &pane.window),
        "tmux_pane_id": pane.map_or(back_end, |pane| &pane.id),
        "team_name": team.name,
        "is_splitpane": pane.is_some(),
        "plan_mode_required": team.must_plan,
        "outputFile": task.output.path(),
    });
    ToolOutput::text(text).with_data(data)
}
