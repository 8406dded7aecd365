//! The one resolver: what an agent will run with, and what decided each part of it.
//!
//! A pure function of the definition, the wishes of the parent, the parent itself, and the session. The runtime
//! runs what comes out, and `centurion agents explain` prints it.

mod background;
mod provenance;
#[cfg(test)]
mod tests;
mod tools;

use std::path::PathBuf;

use centurion_config::agents::{
    AgentDefinition, AgentEffort, AgentModel, AgentSource, Color, Isolation, MemoryScope,
};
use centurion_config::trust::Unaccepted;
use centurion_permissions::{Mode, OwnMode, RuleError, RuleOrigin, RuleSet, Stance};
use centurion_protocol::{Effort, Thinking};
use serde::Serialize;
use thiserror::Error;

pub(crate) use self::background::runs_in_background;
pub use self::provenance::{Decided, Provenance};
pub use self::tools::{LeftOut, Reach, ToolView};
use self::tools::{MEMORY_TOOLS, TEAM_TOOLS};
use crate::definition::builtin;
use crate::definition::bypass::Bypass;
use crate::definition::model_check::ModelRefusal;
use crate::definition::rules::{DelegationRules, SessionMode};

/// The provenance of a team member's mode, as `agents explain` prints it.
const BESIDE_LEAD: &str = "a member of a team works beside its lead";
const LEADS_MODE: &str = "the mode of the lead when the member joins";
const PLAN_FIRST: &str = "the lead has to approve a plan first";
const PLANNING: &str = "an agent below a planner plans";
const NOT_ASKING: &str = "a parent in the mode dontAsk makes its agents dontAsk";
const SKIPPING: &str = "permissions are skipped only where the user enabled it for this run";

/// The wishes of the parent beyond the definition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub model: Option<String>,
    pub background: Option<bool>,
    pub isolation: Option<Isolation>,
    pub max_turns: Option<u32>,
    pub cwd: Option<PathBuf>,
    /// The kind of its joining of the starting agent's team, if it joins.
    pub joins: Option<Joining>,
}

/// The kind of an agent's joining of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joining {
    AtWork,
    /// It changes nothing until the lead has approved its plan.
    Planning,
}

/// The agent that starts another one.
#[derive(Clone, Debug)]
pub(crate) struct Starter {
    pub model: String,
    pub effort: Option<Effort>,
    pub thinking: Thinking,
    /// Its present mode and limits.
    pub stance: Stance,
    /// The main agent's is zero.
    pub depth: u32,
    pub cwd: PathBuf,
}

/// The parts of a main agent that flags and the environment fix, whatever its definition says.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct MainFlags {
    pub has_model: bool,
    pub has_effort: bool,
    pub has_mode: bool,
    pub has_turns: bool,
}

/// In whose place the agent works.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AgentPosition<'a> {
    /// The session itself runs as it.
    Main(&'a MainFlags),
    /// Another agent starts it.
    Below(&'a Wishes),
}

/// The facts of the session that bear on every agent.
pub(crate) struct ResolveContext<'a> {
    pub rules: &'a DelegationRules,
    /// The full name of a model.
    pub resolve_model: &'a dyn Fn(&str) -> String,
    /// Refuses a model that may not be used.
    pub check_model: &'a dyn Fn(&str) -> Result<(), ModelRefusal>,
    pub bypass: Bypass,
    /// All tools that there are now.
    pub pool: &'a [String],
    /// True if agents keep memories at all.
    pub keeps_memory: bool,
    /// True if only plugins and the administrator may bring hooks.
    pub only_plugin_hooks: bool,
}

/// Everything that an agent runs with. `centurion agents explain --json` prints it in this format.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveAgent {
    pub name: Decided<String>,
    pub color: Color,
    pub prompt: Decided<String>,
    pub tools: Vec<String>,
    /// Tools that there are and that the agent does not have, each with why.
    #[serde(serialize_with = "reasons")]
    pub left_out: Vec<(String, LeftOut)>,
    /// Entries of its list that give it no tool, each with why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unresolved: Vec<String>,
    #[serde(skip)]
    pub view: ToolView,
    /// The lists of the definition that decided about the tools.
    pub tool_lists: Vec<Decided<String>>,
    /// The rules by which its definition limits single tools.
    #[serde(skip)]
    pub only: RuleSet,
    /// Tools that it has for its memory alone.
    pub for_memory: Vec<String>,
    pub model: Decided<String>,
    pub effort: Decided<Option<Effort>>,
    #[serde(skip)]
    pub thinking: Thinking,
    pub permission_mode: Decided<Mode>,
    /// The mode that it has by itself; one without has that of the agent that starts it, also when that
    /// changes.
    #[serde(skip)]
    pub own_mode: OwnMode,
    /// True if it changes nothing, by no tool and no command, and starts no agent that does.
    pub only_reads: bool,
    pub max_turns: Decided<Option<u32>>,
    pub background: Decided<bool>,
    pub memory: Option<Decided<MemoryScope>>,
    pub skills: Option<Decided<Vec<String>>>,
    pub mcp_servers: Option<Decided<serde_json::Value>>,
    pub required_mcp_servers: Option<Decided<Vec<String>>>,
    pub hooks: Option<Decided<serde_json::Value>>,
    pub initial_prompt: Option<Decided<String>>,
    pub reminder: Option<Decided<String>>,
    /// True if it is told what the instruction files say.
    pub instructions: Decided<bool>,
    pub cwd: Decided<PathBuf>,
    /// The isolation from other agents, if there is one.
    pub isolation: Option<Decided<Isolation>>,
    /// Parts of the definition that are not in force, with the reasons.
    pub problems: Vec<String>,
}

/// The reason why an agent cannot be started.
#[derive(Clone, Debug, Error)]
pub enum LaunchError {
    #[error(
        "agent `{name}` would have no tools at all, so it was not started: {}. \
         Correct `tools` in {place}", .unresolved.join("; ")
    )]
    NoTools { name: String, unresolved: Vec<String>, place: String },
    #[error("agent `{name}` cannot use the model `{model}`: {source}")]
    Model { name: String, model: String, source: ModelRefusal },
    #[error(
        "agents are {depth} deep here, and at most {most} may be: do the work yourself, or hand it back"
    )]
    TooDeep { depth: u32, most: u32 },
    #[error(
        "agent `{name}` was not started: `cwd` ({cwd}) and `isolation: worktree` ({by}) exclude each other. Leave one of \
         them out."
    )]
    IsolationAndCwd { name: String, cwd: PathBuf, by: String },
    #[error("agent `{name}` has a limit in `tools` that cannot be read: {source}")]
    Limit { name: String, source: RuleError },
}

/// Decides everything about an agent.
pub(crate) fn resolve(
    definition: &AgentDefinition,
    color: Color,
    place: AgentPosition<'_>,
    starter: &Starter,
    context: &ResolveContext<'_>,
) -> Result<EffectiveAgent, LaunchError> {
    let resolving = Resolving { definition, place, starter, context };
    resolving.check_depth()?;
    let mut problems = Vec::new();
    let background = resolving.background();
    let usual = context.rules.child_mode.filter(|_| matches!(place, AgentPosition::Below(_)));
    let (own_mode, problem) = own_mode(definition, starter.stance.mode, usual);
    problems.extend(problem);
    let own_mode = resolving.member_mode(own_mode);
    let permission_mode = resolving.mode(own_mode.as_ref());
    let memory = definition.memory.as_ref().filter(|_| context.keeps_memory);
    let (view, for_memory) =
        resolving.view(background.value, permission_mode.value, memory.is_some());
    resolving.check_tools(&view)?;
    let only = resolving.confinement(&view)?;
    let (tools, left_out) = resolving.split(&view);
    let model = resolving.model()?;
    let isolation = resolving.isolation()?;
    let (effort, thinking) = resolving.effort();
    let at = |located: &centurion_config::Located<_>| Provenance::of(definition, located);
    let mut guarded = |value: &Option<centurion_config::Located<serde_json::Value>>, what: &str| {
        let value = value.as_ref()?;
        match resolving.is_powerless() {
            None => Some(Decided::new(value.value.clone(), at(value))),
            Some(reason) => {
                problems.push(format!("`{what}` is not in force: {reason}"));
                None
            }
        }
    };
    let mut hooks = guarded(&definition.hooks, "hooks");
    let mcp_servers = guarded(&definition.mcp_servers, "mcpServers");
    let may_hook = !context.only_plugin_hooks || brings_hooks(definition.origin.source);
    if !may_hook && hooks.take().is_some() {
        problems
            .push("`hooks` is not in force: managed settings leave hooks to plugins".to_owned());
    }
    if let (Some(_), Some(reason)) = (memory, resolving.is_powerless()) {
        problems.push(format!("writing to its `memory` is asked about: {reason}"));
    }
    Ok(EffectiveAgent {
        name: resolving.said(&definition.name).map(Clone::clone),
        color,
        prompt: resolving.said(&definition.prompt).map(Clone::clone),
        tools,
        left_out,
        unresolved: view.unresolved(context.pool),
        tool_lists: resolving.tool_lists(),
        view,
        only,
        for_memory,
        model,
        effort,
        thinking,
        permission_mode,
        own_mode: own_mode.map(|own| own.value).unwrap_or_default(),
        only_reads: builtin::only_reads(definition),
        max_turns: resolving.max_turns(),
        background,
        memory: memory.map(|memory| resolving.said(memory).map(|scope| *scope)),
        skills: resolving.stated(definition.skills.as_ref()),
        mcp_servers,
        required_mcp_servers: resolving.stated(definition.required_mcp_servers.as_ref()),
        hooks,
        initial_prompt: resolving.stated(definition.initial_prompt.as_ref()),
        reminder: resolving.stated(definition.critical_reminder.as_ref()),
        instructions: resolving.instructions(),
        cwd: resolving.cwd(),
        isolation,
        problems,
    })
}

/// The mode that an agent of this definition has by itself below one in the mode `above`: the definition's, or `usual`,
/// which the user chose for all agents. With it comes what is not in force, if something is.
pub(crate) fn own_mode(
    definition: &AgentDefinition,
    above: Mode,
    usual: Option<Mode>,
) -> (Option<Decided<OwnMode>>, Option<String>) {
    let said = definition.permission_mode.as_ref().and_then(|located| {
        let mode: Mode = located.value.parse().ok()?;
        Some((mode, Provenance::of(definition, located)))
    });
    let mut problem = None;
    if let Some((mode, by)) = said {
        match mode_refusal(definition) {
            None => return (Some(Decided::new(OwnMode::Given(mode), by)), None),
            Some(_) if mode.gives_at_most(above) => {
                return (Some(Decided::new(OwnMode::Modest(mode), by)), None);
            }
            Some(reason) => problem = Some(format!("`permissionMode` is not in force: {reason}")),
        }
    }
    // An agent that skips permissions skips them for its children, too.
    let usual = usual.filter(|_| above != Mode::BypassPermissions).map(|mode| {
        let by = Provenance::Setting(format!("subagents.permissionMode: {mode}"));
        Decided::new(OwnMode::Given(mode), by)
    });
    (usual, problem)
}

/// Tells whether definitions of this source bring hooks where managed settings leave hooks to plugins.
pub(crate) fn brings_hooks(source: AgentSource) -> bool {
    matches!(source, AgentSource::BuiltIn | AgentSource::Plugin | AgentSource::Policy)
}

/// The reason why the definition cannot bring a mode that gives more than the one above has, if so. Only the user,
/// the administrator, a flag and a trusted project can; plugins that the user did not bring have no mode.
fn mode_refusal(definition: &AgentDefinition) -> Option<String> {
    match definition.origin.source {
        AgentSource::BuiltIn => Some("built-in agents grant no mode with more power".to_owned()),
        _ => definition.withheld.as_ref().map(ToString::to_string),
    }
}

struct Resolving<'a> {
    definition: &'a AgentDefinition,
    place: AgentPosition<'a>,
    starter: &'a Starter,
    context: &'a ResolveContext<'a>,
}

impl Resolving<'_> {
    /// Decides whether the agent runs in the background.
    fn background(&self) -> Decided<bool> {
        match self.place {
            AgentPosition::Main(_) => {
                Decided::new(false, Provenance::Default("the session itself"))
            }
            AgentPosition::Below(Wishes { joins: Some(_), .. }) => {
                Decided::new(true, Provenance::Default(BESIDE_LEAD))
            }
            AgentPosition::Below(wishes) => {
                runs_in_background(self.definition, wishes.background, self.context.rules)
            }
        }
    }

    /// A value of the definition.
    fn said<'v, T>(&self, value: &'v centurion_config::Located<T>) -> Decided<&'v T> {
        Decided::new(&value.value, Provenance::of(self.definition, value))
    }

    fn stated<T: Clone>(&self, value: Option<&centurion_config::Located<T>>) -> Option<Decided<T>> {
        value.map(|value| self.said(value).map(T::clone))
    }

    fn name(&self) -> String {
        self.definition.name.value.clone()
    }

    fn depth(&self) -> u32 {
        match self.place {
            AgentPosition::Main(_) => 0,
            AgentPosition::Below(_) => self.starter.depth + 1,
        }
    }

    fn check_depth(&self) -> Result<(), LaunchError> {
        let most = self.context.rules.limits.depth;
        match self.depth() {
            depth if depth > most => Err(LaunchError::TooDeep { depth: self.starter.depth, most }),
            _ => Ok(()),
        }
    }

    fn joins(&self) -> Option<Joining> {
        match self.place {
            AgentPosition::Main(_) => None,
            AgentPosition::Below(wishes) => wishes.joins,
        }
    }

    /// The mode of a member of a team: planning, its definition's, or the lead's of this moment. Other agents have their
    /// own.
    fn member_mode(&self, own: Option<Decided<OwnMode>>) -> Option<Decided<OwnMode>> {
        let Some(joins) = self.joins() else { return own };
        let leads = self.starter.stance.mode;
        if joins == Joining::Planning || leads == Mode::Plan {
            let by = Provenance::Default(PLAN_FIRST);
            return Some(Decided::new(OwnMode::Given(Mode::Plan), by));
        }
        let leads = || Decided::new(OwnMode::Modest(leads), Provenance::Default(LEADS_MODE));
        Some(own.unwrap_or_else(leads))
    }

    /// The reason why the definition may not bring what acts for the user, if so.
    fn is_powerless(&self) -> Option<&Unaccepted> {
        self.definition.withheld.as_ref()
    }

    fn view(&self, in_background: bool, mode: Mode, has_memory: bool) -> (ToolView, Vec<String>) {
        let reach = match self.place {
            AgentPosition::Main(_) if self.context.rules.mode == SessionMode::Coordinator => {
                Reach::Coordinator
            }
            AgentPosition::Main(_) => Reach::Main,
            AgentPosition::Below(_) => Reach::Child {
                in_background,
                may_delegate: self.depth() < self.context.rules.limits.depth,
                is_planning: mode == Mode::Plan,
            },
        };
        let mut view = ToolView::new(self.definition, reach);
        if self.joins().is_some() {
            view.give(&TEAM_TOOLS);
        }
        let for_memory = if has_memory { view.give(&MEMORY_TOOLS) } else { Vec::new() };
        (view, for_memory)
    }

    /// A list that gives nothing although it names something is a mistake.
    fn check_tools(&self, view: &ToolView) -> Result<(), LaunchError> {
        let Some(listed) = &self.definition.tools else { return Ok(()) };
        let has_any = self.context.pool.iter().any(|tool| view.admits(tool).is_ok());
        let unresolved = view.unresolved(self.context.pool);
        // The tools of its own server are known when that server is there.
        let brings_servers = self.definition.mcp_servers.is_some();
        let is_served = brings_servers && listed.iter().any(|name| name.starts_with("mcp__"));
        if has_any || is_served || unresolved.is_empty() || listed.is_empty() {
            return Ok(());
        }
        let place = self.said(listed).by.to_string();
        Err(LaunchError::NoTools { name: self.name(), unresolved, place })
    }

    fn confinement(&self, view: &ToolView) -> Result<RuleSet, LaunchError> {
        let limit = |source| LaunchError::Limit { name: self.name(), source };
        view.confinement(&RuleOrigin::Session).map_err(limit)
    }

    fn split(&self, view: &ToolView) -> (Vec<String>, Vec<(String, LeftOut)>) {
        let (mut tools, mut left_out) = (Vec::new(), Vec::new());
        for tool in self.context.pool {
            match view.admits(tool) {
                Ok(()) => tools.push(tool.clone()),
                Err(why) => left_out.push((tool.clone(), why)),
            }
        }
        (tools, left_out)
    }

    fn tool_lists(&self) -> Vec<Decided<String>> {
        let lists = [
            ("tools", self.definition.tools.as_ref()),
            ("disallowedTools", self.definition.disallowed_tools.as_ref()),
        ];
        let list = |(key, list): (&str, Option<&centurion_config::Located<Vec<String>>>)| {
            Some(self.said(list?).map(|names| format!("{key}: {}", names.join(", "))))
        };
        lists.into_iter().filter_map(list).collect()
    }

    /// The call's, the settings' for this type, the definition's, the environment's, the parent's.
    fn model(&self) -> Result<Decided<String>, LaunchError> {
        let rules = self.context.rules;
        let parents = || Decided::new(self.starter.model.clone(), Provenance::Parent);
        let own = || {
            let located = self.definition.model.as_ref()?;
            let by = Provenance::of(self.definition, located);
            Some(match &located.value {
                AgentModel::Inherit => Decided::new(self.starter.model.clone(), by),
                AgentModel::Named(name) => Decided::new(name.clone(), by),
            })
        };
        let by_setting = || {
            let (_, model) =
                rules.models.iter().find(|(name, _)| **name == self.definition.name.value)?;
            let by =
                Provenance::Setting(format!("subagents.models.{}", self.definition.name.value));
            Some(match model.as_str() {
                "inherit" => Decided::new(self.starter.model.clone(), by),
                model => Decided::new(model.to_owned(), by),
            })
        };
        let decided = match self.place {
            AgentPosition::Main(flags) if flags.has_model => {
                Decided::new(self.starter.model.clone(), Provenance::Flag("--model"))
            }
            AgentPosition::Main(_) => own()
                .unwrap_or_else(|| Decided::new(self.starter.model.clone(), Provenance::Session)),
            AgentPosition::Below(wishes) => {
                let by_call = wishes
                    .model
                    .clone()
                    // Coordinators hand work on; which model does it is not theirs to say.
                    .filter(|_| rules.mode != SessionMode::Coordinator)
                    .map(|model| Decided::new(model, Provenance::Call("model")));
                let by_variable = || {
                    let by = Provenance::Variable("CLAUDE_CODE_SUBAGENT_MODEL");
                    rules.subagent_model.clone().map(|model| Decided::new(model, by))
                };
                by_call
                    .or_else(by_setting)
                    .or_else(own)
                    .or_else(by_variable)
                    .unwrap_or_else(parents)
            }
        };
        let decided = decided.map(|model| (self.context.resolve_model)(&model));
        match (self.context.check_model)(&decided.value) {
            Ok(()) => Ok(decided),
            Err(source) => {
                Err(LaunchError::Model { name: self.name(), model: decided.value, source })
            }
        }
    }

    fn effort(&self) -> (Decided<Option<Effort>>, Thinking) {
        let inherited = Decided::new(self.starter.effort, Provenance::Parent);
        let is_fixed = match self.place {
            AgentPosition::Main(flags) => flags.has_effort,
            AgentPosition::Below(_) => self.context.rules.effort_is_fixed,
        };
        if is_fixed {
            let by = Provenance::Flag("--effort or CLAUDE_CODE_EFFORT_LEVEL");
            return (Decided::new(self.starter.effort, by), self.starter.thinking);
        }
        match self.stated(self.definition.effort.as_ref()) {
            None => (inherited, self.starter.thinking),
            Some(Decided { value: AgentEffort::Level(level), by }) => {
                (Decided::new(Some(level), by), self.starter.thinking)
            }
            // A number says how many tokens it may think.
            Some(Decided { value: AgentEffort::Amount(tokens), by }) => {
                (Decided::new(None, by), Thinking::Budget(tokens))
            }
        }
    }

    /// The mode in force: never more than the one above may but by a mode of its own.
    fn mode(&self, own: Option<&Decided<OwnMode>>) -> Decided<Mode> {
        let stance = self.starter.stance;
        let by_itself = |inherited| own.map_or(inherited, |own| own.by.clone());
        match self.place {
            AgentPosition::Main(flags) if flags.has_mode => {
                Decided::new(stance.mode, Provenance::Flag("--permission-mode"))
            }
            AgentPosition::Main(_) => {
                match own.and_then(|own| own.value.mode()).unwrap_or(stance.mode) {
                    Mode::BypassPermissions if self.context.bypass != Bypass::Enabled => {
                        Decided::new(stance.mode, Provenance::Ceiling(SKIPPING))
                    }
                    mode => Decided::new(mode, by_itself(Provenance::Session)),
                }
            }
            AgentPosition::Below(_) => {
                let own_mode = own.map(|own| own.value).unwrap_or_default();
                let mode = stance.below(own_mode, self.context.bypass.skipping()).mode;
                let own_mode = own_mode.mode();
                let by = match (own_mode, stance.mode) {
                    (Some(own), _) if own == mode => by_itself(Provenance::Parent),
                    (Some(_), Mode::Plan) => Provenance::Ceiling(PLANNING),
                    (Some(Mode::BypassPermissions), _) if mode == stance.mode => {
                        Provenance::Ceiling(SKIPPING)
                    }
                    (Some(_), _) => Provenance::Ceiling(NOT_ASKING),
                    (None, _) => Provenance::Parent,
                };
                Decided::new(mode, by)
            }
        }
    }

    fn max_turns(&self) -> Decided<Option<u32>> {
        let own =
            self.stated(self.definition.max_turns.as_ref()).map(|it| it.map(|n| Some(n.get())));
        let limit = self.context.rules.limits.turns;
        let decided = match self.place {
            AgentPosition::Main(flags) if flags.has_turns => {
                return Decided::new(None, Provenance::Flag("--max-turns"));
            }
            AgentPosition::Below(Wishes { max_turns: Some(turns), .. }) => {
                Decided::new(Some(*turns), Provenance::Call("max_turns"))
            }
            _ => own.unwrap_or(Decided::new(None, Provenance::Default("no limit"))),
        };
        match limit {
            Some(limit) if decided.value.is_none_or(|turns| turns > limit) => {
                let by = Provenance::Setting("subagents.limits.turns".to_owned());
                Decided::new(Some(limit), by)
            }
            _ => decided,
        }
    }

    /// Tells whether it works apart from others: by the call, else by its definition.
    fn isolation(&self) -> Result<Option<Decided<Isolation>>, LaunchError> {
        let own = self.definition.isolation.as_ref().map(|it| self.said(it).map(|it| *it));
        let asked = match self.place {
            AgentPosition::Main(_) => None,
            AgentPosition::Below(wishes) => wishes.isolation,
        };
        let decided = asked.map(|it| Decided::new(it, Provenance::Call("isolation"))).or(own);
        let Some(decided) = decided else { return Ok(None) };
        match self.place {
            AgentPosition::Below(Wishes { cwd: Some(cwd), .. }) => {
                let (cwd, by) = (cwd.clone(), decided.by.to_string());
                Err(LaunchError::IsolationAndCwd { name: self.name(), cwd, by })
            }
            AgentPosition::Main(_) | AgentPosition::Below(_) => Ok(Some(decided)),
        }
    }

    fn instructions(&self) -> Decided<bool> {
        match &self.definition.omit_claude_md {
            Some(omits) => self.said(omits).map(|omits| !omits),
            None => Decided::new(true, Provenance::Default("agents know the instruction files")),
        }
    }

    fn cwd(&self) -> Decided<PathBuf> {
        match self.place {
            AgentPosition::Below(Wishes { cwd: Some(cwd), .. }) => {
                Decided::new(cwd.clone(), Provenance::Call("cwd"))
            }
            AgentPosition::Below(_) => Decided::new(self.starter.cwd.clone(), Provenance::Parent),
            AgentPosition::Main(_) => Decided::new(self.starter.cwd.clone(), Provenance::Session),
        }
    }
}

fn reasons<S: serde::Serializer>(
    left_out: &[(String, LeftOut)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let reason = |(tool, why): &(String, LeftOut)| (tool.clone(), why.to_string());
    serializer.collect_map(left_out.iter().map(reason))
}
