//! From a call to what will run: the checks of a launch, in their order. Each that fails says exactly what
//! is wrong, and never is another agent started instead.

use std::sync::Arc;

use centurion_config::Located;
use centurion_config::agents::{ActiveAgent, AgentCatalog, AgentDefinition, Isolation};
use centurion_config::skills::SkillDefinition;
use centurion_journal::JournalError;
use centurion_permissions::Mode;
use centurion_protocol::AgentId;
use centurion_protocol::sdk::WaitsFor;
use centurion_tools::{ToolContext, ToolError};
use serde_json::{Value, json};
use thiserror::Error;

use super::name::{self, NameFault};
use super::teammate::{self, TeamRefusal};
use super::{AgentInput, fork};
use crate::agent::Agent;
use crate::agent::builder::{BroughtBy, BroughtServers, ServersError};
use crate::agent::delegation::Delegation;
use crate::agent::fork_point::{Inheritance, InheritedPart};
use crate::agent::isolation::{AgentWorktree, IsolationError};
use crate::agent::listing::{is_allowed, is_startable, startable_types};
use crate::agent::name_lookup::{self, given};
use crate::agent::shared::Shared;
use crate::definition::builtin::{self, USUAL};
use crate::definition::limits::SpawnRefused;
use crate::definition::prompt::{Section, agent_sections};
use crate::definition::resolve::{
    AgentPosition, Decided, EffectiveAgent, Joining, LaunchError, Wishes,
};
use crate::definition::spec::{AgentSpec, BroughtHooks, BroughtPart};
use crate::delegate::powers::Powers;
use crate::delegate::preload::{PreloadedMemory, PreloadedTexts, Purpose, Skills, preload};
use crate::delegate::spawn::Launch;
use crate::toolset::servers::{REQUIRED_PATIENCE, RequireError};
use crate::toolset::structured::{SchemaError, StructuredOutput};

/// The refusal of a call without a prompt.
pub(super) const NO_PROMPT: &str =
    "`prompt` is empty, so nothing was started: say what the agent is to do.";

/// The reason why no agent was started.
#[derive(Debug, Error)]
pub(super) enum Refusal {
    #[error("Agent type '{asked}' not found. Available agents: {available}")]
    Unknown { asked: String, available: String },
    #[error("Agent type '{0}' may not be started: a deny rule forbids it. Do without it.")]
    Denied(String),
    #[error("Agent type '{asked}' cannot be started by you. Available agents: {available}")]
    NotStartable { asked: String, available: String },
    #[error("subagent_type is required: {USUAL} is not available. Available agents: {0}")]
    NoUsual(String),
    #[error("{0} is not available in this version, so nothing was started.")]
    Unavailable(&'static str),
    #[error(
        "Forks are switched off, so nothing was started: name a type of agent. (The user can switch them on: \
         subagents.fork in the settings.)"
    )]
    ForksOff,
    #[error(
        "You are a fork, or work for one: forks are not forked. Do the work with your own tools."
    )]
    ForkOfFork,
    #[error(
        "a fork has your settings: it cannot have `{0}`, so nothing was started. Leave it out."
    )]
    ForkWish(&'static str),
    #[error("there is no conversation here that a fork could continue, so nothing was started.")]
    NoConversation,
    #[error("what the fork would share could not be recorded, so nothing was started: {0}")]
    Journal(#[source] JournalError),
    #[error("isolation: worktree cannot be given, so the agent was not started: {0}.")]
    Isolation(#[from] IsolationError),
    #[error("the directory {0} does not exist, so nothing was started.")]
    NoDirectory(String),
    #[error("`max_turns` is 0, so nothing was started: say 1 or more, or leave it out.")]
    NoTurns,
    #[error("{NO_PROMPT}")]
    NoPrompt,
    #[error("no agent can have this `name`, so nothing was started: {0}.")]
    Name(#[from] NameFault),
    #[error("nothing was started: {0}")]
    Team(#[from] TeamRefusal),
    #[error(
        "Members of a team do not start agents in the background, so nothing was started: leave \
         `run_in_background` out and wait for the agent, or ask the lead to start it."
    )]
    BackgroundOfMember,
    #[error("`output_schema` cannot be used: {0}")]
    Schema(#[from] SchemaError),
    #[error("agent `{agent}` cannot start: {source}")]
    RequiredServers { agent: String, source: RequireError },
    #[error("agent `{agent}` cannot start: {source}")]
    Servers { agent: String, source: ServersError },
    #[error(transparent)]
    Spawns(#[from] SpawnRefused),
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// Counts the refusal, and tells the model.
pub(super) fn refused(shared: &Shared, refusal: &Refusal) -> ToolError {
    shared.delegation.count(|stats| match refusal {
        Refusal::Launch(LaunchError::TooDeep { .. }) => stats.refused.depth_limit += 1,
        Refusal::Spawns(_) => stats.refused.concurrency_limit += 1,
        _ => {}
    });
    ToolError::failed(refusal.to_string())
}

/// Checks a call and decides everything about the agent that it asks for.
pub(super) async fn prepare(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    input: &AgentInput,
    context: &ToolContext,
) -> Result<Launch, Refusal> {
    let delegation = &shared.delegation;
    if fork::is_asked_for(input, &delegation.rules) {
        return fork::prepare(shared, caller, input, context, fork::Forker::Model).await;
    }
    let catalog = delegation.definitions.agents();
    let agent = route(delegation, caller, input, &catalog)?;
    prepare_agent(shared, caller, input, agent, None, context).await
}

/// The same for a skill that is carried out by an agent of its own: an agent of a type, with what the skill says instead
/// of its definition.
pub(super) async fn prepare_skill(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    input: &AgentInput,
    skill: &SkillDefinition,
    context: &ToolContext,
) -> Result<Launch, Refusal> {
    let catalog = shared.delegation.definitions.agents();
    let agent = tailored(route(&shared.delegation, caller, input, &catalog)?, skill);
    let mut launch = prepare_agent(shared, caller, input, &agent, None, context).await?;
    launch.allow = caller.allowed_by(skill);
    if let Some(hooks) = &skill.hooks {
        match shared.delegation.builder.sources.skill_hooks_refusal(skill) {
            Some(reason) => {
                launch.problems.push(format!("hooks of skill `{}`: {reason}", skill.name));
            }
            None => launch.powers.hooks.push(BroughtHooks {
                value: hooks.value.clone(),
                path: skill.origin.path.clone(),
                skill: Some(skill.name.clone()),
            }),
        }
    }
    Ok(launch)
}

/// A type of agent as a skill wants it: with the tools that the skill lists and no others, and with its model and effort.
fn tailored(agent: &ActiveAgent, skill: &SkillDefinition) -> ActiveAgent {
    let mut definition = AgentDefinition::clone(&agent.definition);
    if let Some(tools) = &skill.allowed_tools {
        let own = definition.tools.take().filter(|_| !agent.definition.has_all_tools());
        let listed = match own {
            Some(own) => narrowed(&own.value, &tools.value),
            None => tools.value.clone(),
        };
        definition.tools = Some(Located::new(listed, tools.line));
    }
    if let Some(forbidden) = &skill.disallowed_tools {
        let mut taken = definition.disallowed_tools.take().map(|it| it.value).unwrap_or_default();
        taken.extend(forbidden.value.iter().cloned());
        definition.disallowed_tools = Some(Located::new(taken, forbidden.line));
    }
    definition.effort = skill.effort.clone().or(definition.effort);
    ActiveAgent { definition: Arc::new(definition), ..agent.clone() }
}

/// The tools of an agent that a skill lists as well. Where both limit a tool, the agent's own limit stays.
fn narrowed(own: &[String], listed: &[String]) -> Vec<String> {
    let name = |tool: &str| tool.split('(').next().unwrap_or(tool).trim().to_owned();
    let mut tools = Vec::new();
    for tool in listed {
        let same = || own.iter().filter(|it| name(it) == name(tool));
        if same().any(|it| !it.contains('(')) {
            tools.push(tool.clone());
        } else {
            tools.extend(same().cloned());
        }
    }
    tools
}

/// Decides everything about an agent of a type, which may join the caller's team.
pub(super) async fn prepare_agent(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    input: &AgentInput,
    agent: &ActiveAgent,
    joins: Option<Joining>,
    context: &ToolContext,
) -> Result<Launch, Refusal> {
    let delegation = &shared.delegation;
    let definition = &agent.definition;
    let (depth, most) = (caller.identity.depth, delegation.rules.limits.depth);
    if depth >= most {
        return Err(LaunchError::TooDeep { depth, most }.into());
    }
    await_servers(shared, caller, definition).await?;
    let wishes = Wishes { joins, ..wishes(input, context)? };
    let starter = caller.starter(context.workspace.root());
    let (place, scope) = (AgentPosition::Below(&wishes), caller.tool_scope());
    let mut effective = delegation.builder.resolve(shared, agent, place, &starter, &scope)?;
    if effective.background.value && caller.identity.team.is_some() {
        return Err(Refusal::BackgroundOfMember);
    }
    let servers = servers(delegation, caller, &effective, definition)?;
    if input.prompt.trim().is_empty() {
        return Err(Refusal::NoPrompt);
    }
    // The team has chosen the name of a member.
    match given(input.name.as_deref()) {
        Some(name) if wishes.joins.is_some() => name::check(name)?,
        Some(name) => name::check_beside_team(delegation, name)?,
        None => {}
    }
    let structured = structured(input)?;
    let shares_conversation = definition.fork_context.as_ref().is_some_and(|it| it.value);
    let point = shares_conversation
        .then(|| caller.fork_point().ok_or(Refusal::NoConversation))
        .transpose()?;
    delegation.gate.admit()?;
    let id = shared.world.agent_id();
    let worktree = match &effective.isolation {
        Some(by) => {
            let own = isolate(shared, caller, &id, input, context).await?;
            effective.cwd = Decided::new(own.spec.path.clone(), by.by.clone());
            Some(own)
        }
        None => caller.isolation.clone(),
    };
    count(delegation, caller, input, &effective, definition);
    let PreloadedTexts { memory, skills: Skills { texts, hooks }, problems } =
        preload(shared, definition, &mut effective, Purpose::Run);
    let powers = powers(definition, &effective, hooks, memory.as_ref());
    let mut spec = spec(shared, caller, input, definition, &effective, memory.as_ref(), context);
    spec.worktree = worktree.as_ref().map(|it| it.spec.clone());
    let inherited = point.map(|point| {
        spec.context = Some(point.reference(None, None));
        Inheritance { point, what: InheritedPart::Conversation }
    });
    Ok(Launch {
        id,
        is_apart: effective.isolation.is_some(),
        worktree,
        spec: Arc::new(spec),
        powers,
        prompt: input.prompt.clone(),
        initial_prompt: effective.initial_prompt.map(|it| it.value),
        problems,
        servers,
        structured,
        call: context.call.clone(),
        read_state: context.workspace.read_state.clone(),
        skills: texts,
        inherited,
        allow: Vec::new(),
    })
}

/// Waits for the servers that a definition requires, and for a while for those whose tools it lists.
async fn await_servers(
    shared: &Shared,
    caller: &Agent,
    definition: &AgentDefinition,
) -> Result<(), Refusal> {
    if let Some(required) = &definition.required_mcp_servers {
        let requiring = caller.servers.require(required, REQUIRED_PATIENCE);
        let met = caller.wait(WaitsFor::Servers, requiring).await;
        let agent = || definition.name.value.clone();
        met.map_err(|source| Refusal::RequiredServers { agent: agent(), source })?;
    }
    if let Some(settling) = caller.servers.settle_listed(definition, shared.server_patience()) {
        caller.wait(WaitsFor::Servers, settling).await;
    }
    Ok(())
}

/// The powers of the agent to act for the user.
fn powers(
    definition: &AgentDefinition,
    effective: &EffectiveAgent,
    of_skills: Vec<BroughtHooks>,
    memory: Option<&PreloadedMemory>,
) -> Powers {
    let path = &definition.origin.path;
    let own_hooks = effective.hooks.as_ref().map(|it| BroughtHooks {
        value: it.value.clone(),
        path: path.clone(),
        skill: None,
    });
    let brought = effective.mcp_servers.as_ref();
    Powers {
        own_mode: effective.own_mode,
        hooks: own_hooks.into_iter().chain(of_skills).collect(),
        mcp_servers: brought.map(|it| BroughtPart { value: it.value.clone(), path: path.clone() }),
        // Without it the agent still reads its memory, and asks before it writes there.
        memory: memory.map(|it| it.directory.clone()),
    }
}

/// The shape of the report that a call asks for.
fn structured(input: &AgentInput) -> Result<Option<StructuredOutput>, Refusal> {
    let schema = input.output_schema.as_ref();
    Ok(schema.map(|schema| StructuredOutput::parse(&schema.to_string())).transpose()?)
}

/// Makes a worktree for the agent that a call asks for.
pub(super) async fn isolate(
    shared: &Shared,
    caller: &Agent,
    id: &AgentId,
    input: &AgentInput,
    context: &ToolContext,
) -> Result<Arc<AgentWorktree>, Refusal> {
    let isolator = &shared.delegation.builder.isolator;
    // Large, and seldom needed.
    Ok(Box::pin(isolator.make(caller, id, &input.description, &context.cancel)).await?)
}

/// Finds the agent that a call means.
pub(super) fn route<'c>(
    delegation: &Delegation,
    caller: &Agent,
    input: &AgentInput,
    catalog: &'c AgentCatalog,
) -> Result<&'c ActiveAgent, Refusal> {
    let available = || startable_types(delegation, caller);
    if delegation.team.is_none() {
        teammate::refuse_team(input)?;
    }
    if given(input.isolation.as_deref()) == Some("remote") {
        return Err(Refusal::Unavailable("isolation: remote"));
    }
    let asked = match input.subagent_type.as_deref().map(str::trim) {
        Some(asked) if !asked.is_empty() => asked,
        _ => USUAL,
    };
    let agent = match (name_lookup::find(catalog, asked), &input.subagent_type) {
        (Some(agent), _) => agent,
        (None, None) => return Err(Refusal::NoUsual(available())),
        (None, Some(_)) => {
            return Err(Refusal::Unknown { asked: asked.to_owned(), available: available() });
        }
    };
    // The rules spoke about the name that was asked for; the agent may have another.
    if !is_allowed(&agent.definition, catalog, &caller.permissions) {
        return Err(Refusal::Denied(agent.definition.name.value.clone()));
    }
    if !is_startable(&agent.definition, caller.startable.as_deref()) {
        return Err(Refusal::NotStartable { asked: asked.to_owned(), available: available() });
    }
    Ok(agent)
}

fn wishes(input: &AgentInput, context: &ToolContext) -> Result<Wishes, Refusal> {
    let cwd = match &input.cwd {
        None => None,
        Some(cwd) => {
            let path = context.workspace.absolute(&cwd.to_string_lossy());
            let found = path.canonicalize().ok().filter(|path| path.is_dir());
            Some(found.ok_or_else(|| Refusal::NoDirectory(path.display().to_string()))?)
        }
    };
    let isolation = match given(input.isolation.as_deref()) {
        None => None,
        Some("worktree") => Some(Isolation::Worktree),
        Some(_) => return Err(Refusal::Unavailable("This kind of isolation")),
    };
    if input.max_turns == Some(0) {
        return Err(Refusal::NoTurns);
    }
    Ok(Wishes {
        model: input.model.clone().filter(|model| !model.trim().is_empty()),
        background: input.run_in_background,
        isolation,
        max_turns: input.max_turns,
        cwd,
        joins: None,
    })
}

/// The servers that the agent has beside those of its parent. One that it names and that is not found fails the
/// launch.
fn servers(
    delegation: &Delegation,
    caller: &Agent,
    effective: &EffectiveAgent,
    definition: &AgentDefinition,
) -> Result<BroughtServers, Refusal> {
    let Some(asked) = &effective.mcp_servers else { return Ok(BroughtServers::default()) };
    let (name, origin) = (definition.name.as_str(), &definition.origin);
    let by = BroughtBy { name, source: origin.source, path: &origin.path };
    let found = delegation.builder.servers(&asked.value, &by, &asked.by, &caller.servers);
    found.map_err(|source| Refusal::Servers { agent: name.to_owned(), source })
}

fn count(
    delegation: &Delegation,
    caller: &Agent,
    input: &AgentInput,
    effective: &EffectiveAgent,
    definition: &AgentDefinition,
) {
    delegation.count(|stats| {
        stats.spawned += 1;
        match input.run_in_background {
            Some(true) => stats.requested.background += 1,
            Some(false) => stats.requested.foreground += 1,
            None => stats.requested.unset += 1,
        }
        stats.started_in_background += u64::from(effective.background.value);
        stats.max_depth = stats.max_depth.max(caller.identity.depth + 1);
        stats.spawned_by_subagents += u64::from(!caller.identity.is_main());
        *stats.by_type.entry(definition.name.value.clone()).or_default() += 1;
    });
}

fn spec(
    shared: &Shared,
    caller: &Agent,
    input: &AgentInput,
    definition: &AgentDefinition,
    effective: &EffectiveAgent,
    memory: Option<&PreloadedMemory>,
    context: &ToolContext,
) -> AgentSpec {
    let name = given(input.name.as_deref());
    let mut lineage = caller.identity.path.clone();
    lineage.push(name.unwrap_or(&definition.name).to_owned());
    let delegation = &shared.delegation;
    AgentSpec {
        agent_type: definition.name.value.clone(),
        source: definition.origin.source.to_string(),
        color: effective.color.as_str().to_owned(),
        description: input.description.clone(),
        name: name.map(str::to_owned),
        parent: caller.identity.id.clone(),
        depth: caller.identity.depth + 1,
        path: lineage,
        call: context.call.clone(),
        model: effective.model.value.clone(),
        effort: effective.effort.value,
        thinking: effective.thinking,
        mode: effective.permission_mode.value,
        own_mode: effective.own_mode.mode(),
        max_turns: effective.max_turns.value,
        tools: effective.view.clone(),
        only: effective.only.iter().map(ToString::to_string).collect(),
        system: {
            let mut sections =
                agent_sections(effective, &delegation.builder.environment, &delegation.rules);
            sections.extend(memory.map(|memory| Section::memory(&memory.section)));
            sections.into_iter().map(|section| section.text).collect()
        },
        cwd: effective.cwd.value.clone(),
        only_reads: effective.only_reads,
        instructions: effective.instructions.value,
        reminder: effective.reminder.as_ref().map(|it| it.value.clone()),
        schema: input.output_schema.clone(),
        in_background: effective.background.value,
        is_one_shot: builtin::is_one_shot(&definition.name),
        requested: requested(shared, input, effective),
        startable: None,
        is_below_fork: fork::is_below_fork(shared, caller),
        context: None,
        worktree: None,
        team: None,
    }
}

/// The model that was asked for, where another one is in force.
pub(super) fn requested_model(shared: &Shared, input: &AgentInput, model: &str) -> Value {
    match &input.model {
        Some(asked) if shared.model.resolve(asked) != model => json!({"model": asked}),
        _ => json!({}),
    }
}

/// The requested values where others are in force.
fn requested(shared: &Shared, input: &AgentInput, effective: &EffectiveAgent) -> Value {
    let mut requested = requested_model(shared, input, &effective.model.value);
    if let Some(background) = input.run_in_background
        && background != effective.background.value
    {
        requested["run_in_background"] = json!(background);
    }
    if let Some(mode) = input.mode.as_deref().and_then(|mode| mode.parse::<Mode>().ok())
        && mode != effective.permission_mode.value
    {
        requested["mode"] = json!(mode);
    }
    requested
}
