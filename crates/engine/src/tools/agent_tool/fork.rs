//! From a call to a fork of its caller: the checks, in their order, and what the fork runs with.

use std::sync::Arc;

use centurion_permissions::RuleSet;
use centurion_tools::ToolContext;

use super::launch::{Refusal, isolate};
use super::{AgentInput, name};
use crate::agent::Agent;
use crate::agent::builder::BroughtServers;
use crate::agent::fork_point::{ForkPoint, Inheritance, InheritedPart};
use crate::agent::name_lookup::given;
use crate::agent::shared::Shared;
use crate::definition::builtin::FORK;
use crate::definition::resolve::{LaunchError, ToolView};
use crate::definition::rules::DelegationRules;
use crate::definition::spec::{AgentSpec, BUILT_IN, DefinitionRef};
use crate::delegate::inherit::is_of_fork;
use crate::delegate::powers::Powers;
use crate::delegate::spawn::Launch;

/// The one who wants a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forker {
    /// Models may want one only where forks are on.
    Model,
    Person,
}

/// Tells whether a call asks for a fork: by that type, or by none where forks are on.
pub(super) fn is_asked_for(input: &AgentInput, rules: &DelegationRules) -> bool {
    match given(input.subagent_type.as_deref()) {
        Some(asked) => asked == FORK,
        None => rules.forks,
    }
}

/// Tells whether an agent is a fork, was started by one or by an agent below one, or works for one now.
pub(super) fn is_below_fork(shared: &Shared, caller: &Agent) -> bool {
    let mut task = caller.task.clone();
    for _ in 0..MOST_ASKERS {
        let Some(agent) = task else { return false };
        if agent.spec.is_below_fork {
            return true;
        }
        task = agent.run().asker.and_then(|asker| shared.delegation.find(asker.agent.as_str()));
    }
    // Agents that resume each other in a circle.
    true
}

/// The most agents that may work for each other before that is taken for a circle.
const MOST_ASKERS: usize = 64;

/// Checks a call and decides everything about the fork that it asks for.
pub(super) async fn prepare(
    shared: &Arc<Shared>,
    caller: &Arc<Agent>,
    input: &AgentInput,
    context: &ToolContext,
    by: Forker,
) -> Result<Launch, Refusal> {
    let delegation = &shared.delegation;
    let point = check(shared, caller, input, by)?;
    if let Some(name) = given(input.name.as_deref()) {
        name::check_beside_team(delegation, name)?;
    }
    delegation.gate.admit()?;
    let mut spec = spec(shared, caller, input, context, &point)?;
    let (id, is_apart) = (shared.world.agent_id(), input.isolation.is_some());
    let worktree = if is_apart {
        Some(isolate(shared, caller, &id, input, context).await?)
    } else {
        caller.isolation.clone()
    };
    if let Some(worktree) = &worktree {
        spec.cwd.clone_from(&worktree.spec.path);
        spec.worktree = Some(worktree.spec.clone());
    }
    let spec = Arc::new(spec);
    delegation.count(|stats| {
        stats.spawned += 1;
        stats.requested.unset += 1;
        stats.started_in_background += u64::from(spec.in_background);
        stats.max_depth = stats.max_depth.max(spec.depth);
        stats.spawned_by_subagents += u64::from(!caller.identity.is_main());
        *stats.by_type.entry(FORK.to_owned()).or_default() += 1;
    });
    // It follows its parent's mode while both are there, and has the hooks that bind the parent now.
    let powers = Powers {
        hooks: caller.brought_hooks.clone(),
        memory: caller.permissions.role().memory,
        ..Powers::default()
    };
    Ok(Launch {
        id,
        is_apart,
        worktree,
        spec,
        powers,
        prompt: input.prompt.clone(),
        initial_prompt: None,
        problems: Vec::new(),
        servers: BroughtServers::default(),
        structured: None,
        call: context.call.clone(),
        read_state: context.workspace.read_state.clone(),
        skills: Vec::new(),
        inherited: Some(Inheritance { point, what: InheritedPart::All }),
        allow: Vec::new(),
    })
}

/// Checks that the caller may be forked as the call asks. Returns the point that the fork continues from.
fn check(
    shared: &Shared,
    caller: &Agent,
    input: &AgentInput,
    by: Forker,
) -> Result<Arc<ForkPoint>, Refusal> {
    let rules = &shared.delegation.rules;
    if !rules.forks && by == Forker::Model {
        return Err(Refusal::ForksOff);
    }
    if caller.permissions.denies_agent(&[FORK.to_owned()]) {
        return Err(Refusal::Denied(FORK.to_owned()));
    }
    let is_listed = |types: &str| types.split(',').any(|it| it.trim() == FORK);
    if !caller.startable.as_deref().is_none_or(is_listed) {
        let available = crate::agent::listing::startable_types(&shared.delegation, caller);
        return Err(Refusal::NotStartable { asked: FORK.to_owned(), available });
    }
    // Recursion is refused when it happens: a fork has the same tools as its parent.
    if is_below_fork(shared, caller) {
        return Err(Refusal::ForkOfFork);
    }
    let depth = caller.identity.depth;
    if depth >= rules.limits.depth {
        return Err(LaunchError::TooDeep { depth, most: rules.limits.depth }.into());
    }
    for (is_given, wish) in [
        (input.output_schema.is_some(), "output_schema"),
        (input.cwd.is_some(), "cwd"),
        (input.team_name.is_some(), "team_name"),
    ] {
        if is_given {
            return Err(Refusal::ForkWish(wish));
        }
    }
    if input.max_turns == Some(0) {
        return Err(Refusal::NoTurns);
    }
    if input.prompt.trim().is_empty() {
        return Err(Refusal::NoPrompt);
    }
    let point = caller.fork_point().ok_or(Refusal::NoConversation)?;
    if is_of_fork(&point.prefix.conversation) {
        return Err(Refusal::ForkOfFork);
    }
    Ok(point)
}

fn spec(
    shared: &Shared,
    caller: &Agent,
    input: &AgentInput,
    context: &ToolContext,
    point: &ForkPoint,
) -> Result<AgentSpec, Refusal> {
    let delegation = &shared.delegation;
    let catalog = delegation.definitions.agents();
    let color = catalog.active.iter().find(|agent| agent.definition.name.value == FORK);
    let starter = caller.starter(context.workspace.root());
    let name = given(input.name.as_deref());
    let mut path = caller.identity.path.clone();
    path.push(name.unwrap_or(FORK).to_owned());
    let role = caller.permissions.role();
    let kept = caller.keep_prefix(point).map_err(Refusal::Journal)?;
    let source = |name: &String| {
        let found = catalog.active.iter().find(|agent| agent.definition.name.value == *name);
        let source = found.map(|agent| agent.definition.origin.source.to_string());
        DefinitionRef { name: name.clone(), source: source.unwrap_or_default() }
    };
    let parent = match &caller.task {
        Some(task) => {
            let AgentSpec { agent_type, source, .. } = &*task.spec;
            Some(DefinitionRef { name: agent_type.clone(), source: source.clone() })
        }
        None => caller.identity.kind.as_ref().map(source),
    };
    Ok(AgentSpec {
        agent_type: FORK.to_owned(),
        source: BUILT_IN.to_owned(),
        color: color.map(|agent| agent.color.as_str().to_owned()).unwrap_or_default(),
        description: input.description.clone(),
        name: name.map(str::to_owned),
        parent: caller.identity.id.clone(),
        depth: caller.identity.depth + 1,
        path,
        call: context.call.clone(),
        requested: super::launch::requested_model(shared, input, &starter.model),
        model: starter.model,
        effort: starter.effort,
        thinking: starter.thinking,
        mode: caller.permissions.mode(),
        own_mode: Some(caller.permissions.mode()),
        max_turns: input.max_turns,
        tools: ToolView::Inherited,
        only: texts(&role.only),
        system: Vec::new(),
        cwd: starter.cwd,
        only_reads: caller.permissions.stance().bounds.only_reads,
        instructions: caller.task.as_ref().is_none_or(|task| task.spec.instructions),
        reminder: None,
        schema: None,
        in_background: !delegation.rules.background_is_off,
        is_one_shot: false,
        is_below_fork: true,
        startable: caller.startable.clone(),
        context: Some(point.reference(Some(kept), parent)),
        worktree: None,
        team: None,
    })
}

fn texts(rules: &RuleSet) -> Vec<String> {
    rules.iter().map(ToString::to_string).collect()
}
