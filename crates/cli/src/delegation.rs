//! The agents of a run: which there are, which one the session runs as, and what they may do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use centurion_config::ReadRules;
use centurion_config::agent_memory::{AgentMemory, MemoryPlaces};
use centurion_config::agents::{AgentCatalog, AgentSource};
use centurion_config::mcp::{
    McpConfiguration, McpOrigin, McpReference, McpScope, McpServer, McpVariables, parse_references,
};
use centurion_config::plugins::{Plugin, PluginCatalog, PluginLoader, PluginSources};
use centurion_config::settings::{
    ChildMode, ForkGate, SessionMode as ModeSetting, Settings, TeammateMode,
};
use centurion_config::skills::SkillCatalog;
use centurion_config::trust::collect_texts;
use centurion_engine::{
    AgentOptions, AgentServers, AgentServersError, BroughtBy, Definitions, DelegationRules, Limits,
    MainFlags, ModelRefusal, PeerOptions, SessionMode, TASK_TOOLS, TaskListPlace, TeamOptions,
    ToolChoice, worktree_name,
};
use centurion_hooks::{HookOrigin, HookSet, HookSource, PluginSource};
use centurion_host::ModelLimits;
use centurion_mcp::{Connection, Pool};
use centurion_model::Model;
use centurion_permissions::Mode;
use centurion_protocol::{Env, SessionId, World};
use centurion_team::TeamName;
use clap::Args;

use crate::agents::sources::{self, AgentArgs, FlagSources};
use crate::args::{RunArgs, ValueError};
use crate::configuration::Configuration;
use crate::mcp;
use crate::output::note;
use crate::skills;
use crate::surroundings::Surroundings;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Agents")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct DelegationArgs {
    /// Run the session as this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    #[command(flatten)]
    pub(crate) definitions: AgentArgs,

    /// A plugin's directory, for this run; may be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// The same for a plugin whose servers stay away
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir_no_mcp: Vec<PathBuf>,

    /// Have no skills and no commands: none is listed, and no `/name` runs
    #[arg(long)]
    pub(crate) disable_slash_commands: bool,

    /// Add this to the system prompt of every agent that another one starts
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_subagent_system_prompt: Option<String>,

    /// With stream-json: also print what agents say and think while a call waits for them
    #[arg(long)]
    pub(crate) forward_subagent_text: bool,

    /// The processes in which members of a team run: in-process, process, tmux, or auto for tmux inside of tmux
    #[arg(long, value_name = "WHERE", value_parser = teammate_mode)]
    pub(crate) teammate_mode: Option<TeammateMode>,

    /// The main agent only directs others: it starts agents, all in the background
    #[arg(long, conflicts_with_all = ["assistant", "proactive"])]
    pub(crate) coordinator: bool,

    /// The main agent never waits for others, and may say where they work
    #[arg(long, conflicts_with = "proactive")]
    pub(crate) assistant: bool,

    /// The main agent acts by itself and never waits for others
    #[arg(long)]
    pub(crate) proactive: bool,
}

fn teammate_mode(word: &str) -> Result<TeammateMode, ValueError> {
    TeammateMode::named(word).ok_or(ValueError::TeammateMode)
}

/// The plugins of a run.
pub(crate) fn plugins(
    surroundings: &Surroundings,
    settings: &Settings,
    directories: &[PathBuf],
    world: &dyn World,
) -> anyhow::Result<Arc<PluginCatalog>> {
    if let Some(origin) = settings.sideload_disabled()
        && !directories.is_empty()
    {
        anyhow::bail!("{origin} does not let --plugin-dir be used");
    }
    let directories: Vec<PathBuf> =
        directories.iter().map(|path| surroundings.cwd.join(path)).collect();
    let sources =
        PluginSources::new(&surroundings.dirs, settings, surroundings.project(), &directories);
    let catalog = PluginLoader::new().load(&sources, world);
    for problem in &catalog.problems {
        note(&format!("warning: {problem}"));
    }
    Ok(catalog)
}

impl DelegationArgs {
    /// The directories of the plugins of this run.
    pub(crate) fn plugin_dirs(&self) -> Vec<PathBuf> {
        self.plugin_dir.iter().chain(&self.plugin_dir_no_mcp).cloned().collect()
    }

    /// The plugins whose servers count.
    pub(crate) fn bringing_servers(&self, plugins: &[Arc<Plugin>], cwd: &Path) -> PluginCatalog {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let without = self.plugin_dir_no_mcp.iter().map(|path| real(&cwd.join(path)));
        let without: Vec<PathBuf> = without.collect();
        let is_kept = |plugin: &&Arc<Plugin>| !without.contains(&real(plugin.root()));
        let enabled = plugins.iter().filter(is_kept).cloned().collect();
        PluginCatalog { enabled, ..PluginCatalog::default() }
    }
}

/// Makes the directories that hooks and servers of plugins expect.
pub(crate) fn prepare_plugins(catalog: &PluginCatalog) {
    for plugin in &catalog.enabled {
        if let Err(error) = plugin.make_data_dir() {
            let place = plugin.data.display();
            note(&format!("warning: plugin {}: cannot make {place}: {error}", plugin.name()));
        }
    }
}

/// The hooks that plugins bring.
pub(crate) fn plugin_hooks(plugins: &PluginCatalog) -> Vec<HookSet> {
    let mut sets = Vec::new();
    for plugin in &plugins.enabled {
        let source = Arc::new(PluginSource {
            name: plugin.name().to_owned(),
            root: plugin.root().to_owned(),
            data: plugin.data.clone(),
            options: plugin.options.clone(),
            is_managed: plugin.is_managed(),
        });
        for hooks in plugin.hooks() {
            let source = HookSource::Plugin(Arc::clone(&source));
            let origin = HookOrigin::in_file(source, hooks.file.clone(), Some(hooks.line));
            let set = HookSet::with_lines(&hooks.value, &hooks.lines, &origin);
            for problem in set.problems() {
                note(&format!("error: {problem}"));
            }
            sets.push(set);
        }
    }
    sets
}

/// The files about agents that a run found, and the parts that agents bring.
pub(crate) struct AgentParts {
    pub(crate) plugins: Arc<PluginCatalog>,
    pub(crate) servers: McpConfiguration,
    definitions: Arc<Definitions>,
}

/// The parts of a run that its agents need.
pub(crate) struct Run<'a> {
    pub(crate) args: &'a RunArgs,
    pub(crate) settings: &'a Settings,
    pub(crate) env: &'a Arc<Env>,
    pub(crate) surroundings: &'a Surroundings,
    pub(crate) pool: &'a Arc<Pool>,
    pub(crate) limits: &'a ModelLimits,
    pub(crate) model: &'a Model,
    pub(crate) session: SessionId,
    /// Whether a person sits before it.
    pub(crate) is_interactive: bool,
}

impl AgentParts {
    /// Looks for plugins, servers and definitions; of the last, none that the rules keep from being read.
    pub(crate) fn look(
        args: &RunArgs,
        additional: &[PathBuf],
        surroundings: &Surroundings,
        configuration: &Configuration,
        read_rules: &ReadRules,
        world: &Arc<dyn World>,
    ) -> anyhow::Result<Self> {
        let settings = &configuration.settings;
        let plugins = plugins(surroundings, settings, &args.delegation.plugin_dirs(), &**world)?;
        prepare_plugins(&plugins);
        let mut servers = mcp::configuration(surroundings, configuration, &args.mcp)?;
        if !args.mcp.strict_mcp_config {
            let bringing = args.delegation.bringing_servers(&plugins.enabled, &surroundings.cwd);
            mcp::add_plugins(&mut servers, &bringing, &settings.overlay(&surroundings.env));
        }
        let brought = FlagSources {
            agents: args.delegation.definitions.agents.as_deref(),
            additional,
            plugins: plugins.enabled.iter().map(|plugin| plugin.agents()).collect(),
            read_rules: read_rules.clone(),
        };
        let agents = sources::sources(surroundings, configuration, brought)?;
        let mut skills = skills::sources::sources(&agents, settings, &plugins);
        let is_kept = !args.session.no_session_persistence;
        skills.index_dir = is_kept.then(|| surroundings.dirs.skill_index_dir());
        skills.is_off = args.delegation.disable_slash_commands;
        skills.takes_added = args.reach.bare || args.reach.safe_mode;
        Ok(Self {
            definitions: Definitions::new(agents, skills, Arc::clone(world)),
            plugins,
            servers,
        })
    }

    /// The agents as they are now.
    pub(crate) fn agents(&self) -> Arc<AgentCatalog> {
        self.definitions.agents()
    }

    /// The skills as they were at the look of the start.
    pub(crate) fn skills(&self) -> Arc<SkillCatalog> {
        self.definitions.skills()
    }

    /// Everything about agents, for the engine.
    pub(crate) fn into_options(self, run: &Run<'_>) -> anyhow::Result<AgentOptions> {
        let Run { args, settings, env, surroundings, .. } = *run;
        let (limits, model) = (run.limits.clone(), run.model.clone());
        let servers = DefinitionServers {
            pool: Arc::clone(run.pool),
            configuration: self.servers,
            env: Arc::clone(env),
            project: surroundings.project().to_owned(),
        };
        Ok(AgentOptions {
            definitions: self.definitions,
            rules: rules(run)?,
            main: main_agent(&args.delegation, settings, &self.plugins),
            flags: MainFlags {
                has_model: args.model.model.is_some(),
                has_effort: args.model.effort.is_some() || fixes_effort(env),
                has_mode: args.mode().is_some(),
                has_turns: args.model.max_turns.is_some(),
            },
            servers: Some(Arc::new(servers)),
            check_model: Arc::new(move |name| {
                limits.check(name, &model).map_err(ModelRefusal::new)
            }),
            memory: (!args.reach.leaves_instructions())
                .then(|| memory_places(surroundings, settings, env)),
            only_plugin_hooks: settings.plugin_only().hooks.is_some(),
            settings_files: settings.files().map(|(_, path)| path.to_owned()).collect(),
            only_managed_rules: settings.permissions().managed_rules_only.is_some(),
            skills: settings.skills(),
            worktrees: settings.worktrees(),
            task_list: task_list(args, settings, env, surroundings, run.session),
            team: has_team(settings, env).then(|| team(args, env, surroundings, run.session)),
            member_processes: None,
            lead: None,
            peers: Some(PeerOptions {
                directory: surroundings.dirs.peers_dir(),
                inbound: settings.other_sessions(),
            }),
            begins_in: args
                .session
                .worktree
                .as_ref()
                .map(|name| name.clone().unwrap_or_else(|| worktree_name(run.session))),
        })
    }
}

/// The longest time that a member of a team continues after it was asked to end.
const TEARDOWN: Duration = Duration::from_mins(1);

/// Whether agents with a name join a team.
pub(crate) fn has_team(settings: &Settings, env: &Env) -> bool {
    match env.get("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS") {
        Some(_) => env.is_on("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS"),
        None => settings.subagents().teams,
    }
}

/// The team of a session: it goes by the session's id until a call names it.
fn team(args: &RunArgs, env: &Env, surroundings: &Surroundings, session: SessionId) -> TeamOptions {
    let id: String = session.to_string().chars().take(8).collect();
    let teardown = env.millis("CLAUDE_CODE_TEAM_TEARDOWN_PARK_TIMEOUT_MS");
    // The lead shows the team, as long as anything of the session is kept.
    let is_shown = !args.member.is_member() && !args.session.no_session_persistence;
    TeamOptions {
        name: TeamName::of_session(&id),
        teardown: teardown.unwrap_or(TEARDOWN),
        views: is_shown.then(|| surroundings.dirs.teams_dir()),
    }
}

/// The task list of a session, where it has one: `CLAUDE_CODE_ENABLE_TASKS` asks for it, a team, or `--tools`.
fn task_list(
    args: &RunArgs,
    settings: &Settings,
    env: &Env,
    surroundings: &Surroundings,
    session: SessionId,
) -> Option<TaskListPlace> {
    let names_one = || match args.tool_choice() {
        ToolChoice::Only(names) => names.iter().any(|name| TASK_TOOLS.contains(&name.as_str())),
        ToolChoice::All => false,
    };
    let is_wanted = match env.get("CLAUDE_CODE_ENABLE_TASKS") {
        Some(_) => env.is_on("CLAUDE_CODE_ENABLE_TASKS"),
        None => names_one() || has_team(settings, env),
    };
    let lists = if args.session.no_session_persistence {
        surroundings.scratch.join("tasks")
    } else {
        surroundings.dirs.task_lists_dir()
    };
    // An id has nothing in it that a name may not have.
    let name = session.to_string().parse().ok()?;
    is_wanted.then_some(TaskListPlace { lists, name })
}

/// The directories of agents' memories. A directory of the user's choice that cannot be one is told at once.
fn memory_places(surroundings: &Surroundings, settings: &Settings, env: &Env) -> MemoryPlaces {
    let places = MemoryPlaces::new(
        &surroundings.dirs,
        surroundings.home.as_deref(),
        &surroundings.cwd,
        settings,
        &[&surroundings.env, env],
    );
    if places.chosen_dir.is_some()
        && let Err(error) = AgentMemory::of_main(&places)
    {
        note(&format!("warning: {error}"));
    }
    places
}

/// The agent that the session runs as: the flag's, the settings', a plugin's.
fn main_agent(
    args: &DelegationArgs,
    settings: &Settings,
    plugins: &PluginCatalog,
) -> Option<String> {
    let by_setting = || settings.agent().map(|agent| agent.value);
    let by_plugin = || {
        let mut agents = plugins.enabled.iter().filter_map(|plugin| plugin.main_agent());
        agents.next().map(|agent| agent.name.clone())
    };
    args.agent.clone().or_else(by_setting).or_else(by_plugin)
}

fn fixes_effort(env: &Env) -> bool {
    env.get("CLAUDE_CODE_EFFORT_LEVEL").is_some_and(|level| level != "auto")
}

/// The user's choices about agents that others start.
fn rules(run: &Run<'_>) -> anyhow::Result<DelegationRules> {
    let Run { args, settings, env, .. } = *run;
    let chosen = settings.subagents();
    let flags = &args.delegation;
    let defaults = DelegationRules::default();
    let subagent_model = env.get("CLAUDE_CODE_SUBAGENT_MODEL").map(str::trim);
    let mode = mode(flags, chosen.mode.map(|mode| mode.value), env);
    Ok(DelegationRules {
        limits: Limits::new(&chosen.limits, env).context("the limits of agents")?,
        models: chosen.models.into_iter().map(|(name, model)| (name, model.value)).collect(),
        subagent_model: subagent_model
            .filter(|model| !model.is_empty() && *model != "inherit")
            .map(str::to_owned),
        child_mode: chosen.permission_mode.and_then(|mode| match mode.value {
            ChildMode::Inherit => None,
            ChildMode::AcceptEdits => Some(Mode::AcceptEdits),
        }),
        background: chosen.background,
        background_is_off: env.is_on("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"),
        auto_background: chosen
            .auto_background
            .or_else(|| env.is_on("CLAUDE_AUTO_BACKGROUND_TASKS").then_some(Duration::from_mins(2)))
            .filter(|after| !after.is_zero()),
        stall: env
            .millis("CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS")
            .or(chosen.stall)
            .map_or(defaults.stall, |stall| Some(stall).filter(|stall| !stall.is_zero())),
        wait: env
            .millis("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS")
            .map_or(defaults.wait, |wait| Some(wait).filter(|wait| !wait.is_zero())),
        mode,
        interrupt_ends_background: chosen.esc_stops_background,
        effort_is_fixed: fixes_effort(env),
        forwards_text: flags.forward_subagent_text
            || env.is_on("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT"),
        append_prompt: flags.append_subagent_system_prompt.clone(),
        forks: has_forks(chosen.fork.map(|gate| gate.value), env, run.is_interactive),
        loops: run.is_interactive,
        summaries: chosen.summaries,
    })
}

/// Whether agents can be forked. A coordinator's cannot, whatever is said here.
fn has_forks(setting: Option<ForkGate>, env: &Env, is_interactive: bool) -> bool {
    let gate = match env.get("CLAUDE_CODE_FORK_SUBAGENT") {
        Some(_) if env.is_on("CLAUDE_CODE_FORK_SUBAGENT") => ForkGate::Always,
        Some(_) => ForkGate::Off,
        None if env.is_on("FEATURE_FORK_SUBAGENT") => ForkGate::Interactive,
        None => setting.unwrap_or(ForkGate::Off),
    };
    match gate {
        ForkGate::Off => false,
        ForkGate::Interactive => is_interactive,
        ForkGate::Always => true,
    }
}

fn mode(flags: &DelegationArgs, setting: Option<ModeSetting>, env: &Env) -> SessionMode {
    let by_flag = [
        (flags.coordinator, SessionMode::Coordinator),
        (flags.assistant, SessionMode::Assistant),
        (flags.proactive, SessionMode::Proactive),
    ];
    let by_flag = by_flag.into_iter().find(|(is_on, _)| *is_on).map(|(_, mode)| mode);
    let by_env = || env.is_on("CLAUDE_CODE_COORDINATOR_MODE").then_some(SessionMode::Coordinator);
    let by_setting = || {
        setting.map(|mode| match mode {
            ModeSetting::Normal => SessionMode::Normal,
            ModeSetting::Coordinator => SessionMode::Coordinator,
            ModeSetting::Assistant => SessionMode::Assistant,
            ModeSetting::Proactive => SessionMode::Proactive,
        })
    };
    by_flag.or_else(by_env).or_else(by_setting).unwrap_or_default()
}

/// The servers that definitions bring, as far as the administrator of the machine lets them.
struct DefinitionServers {
    pool: Arc<Pool>,
    configuration: McpConfiguration,
    env: Arc<Env>,
    project: PathBuf,
}

impl AgentServers for DefinitionServers {
    fn read(
        &self,
        servers: &serde_json::Value,
        by: &BroughtBy<'_>,
    ) -> Result<Vec<McpReference>, AgentServersError> {
        let origin = McpOrigin {
            scope: McpScope::Agent(by.name.to_owned()),
            file: Some(by.path.to_owned()),
            line: None,
        };
        let project = self.project.display().to_string();
        let known = [("CLAUDE_PROJECT_DIR".to_owned(), project)].into();
        let variables = McpVariables { env: &self.env, known: &known };
        let (mut references, problems) = parse_references(servers, &origin, &variables);
        if let Some(problem) = problems.into_iter().next() {
            return Err(AgentServersError::Malformed(problem));
        }
        for reference in &mut references {
            if let McpReference::Inline(server) = reference {
                let standing = self.configuration.judge_for(server, by.source);
                if !standing.is_active() {
                    let name = server.name.clone();
                    return Err(AgentServersError::NotActive { name, standing });
                }
                if by.source == AgentSource::Project {
                    let mut accepted = Vec::new();
                    collect_texts(servers, &mut accepted);
                    server.accepted = Some(accepted);
                }
                self.pool.judge(server).map_err(|reason| AgentServersError::Refused {
                    name: server.name.clone(),
                    reason,
                })?;
            }
        }
        Ok(references)
    }

    fn own(&self, server: McpServer) -> Connection {
        self.pool.own(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_switches_forks_on_depends_on_who_sits_before_the_session() {
        // D-11: what says it, with a person and without
        let (always, feature) = ("CLAUDE_CODE_FORK_SUBAGENT", "FEATURE_FORK_SUBAGENT");
        for (setting, variables, expected) in [
            (None, &[][..], [false, false]),
            (Some(ForkGate::Off), &[], [false, false]),
            (Some(ForkGate::Interactive), &[], [true, false]),
            (Some(ForkGate::Always), &[], [true, true]),
            (None, &[(feature, "1")], [true, false]),
            (None, &[(feature, "0")], [false, false]),
            (Some(ForkGate::Interactive), &[(feature, "0")], [true, false]),
            (None, &[(always, "1")], [true, true]),
            (Some(ForkGate::Off), &[(always, "1")], [true, true]),
            (Some(ForkGate::Always), &[(always, "0")], [false, false]),
            (None, &[(always, "0"), (feature, "1")], [false, false]),
        ] {
            let variables =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let env = Env::new(variables);
            let found =
                [true, false].map(|is_interactive| has_forks(setting, &env, is_interactive));
            assert_eq!(found, expected, "{setting:?} {env:?}");
        }
    }
}
