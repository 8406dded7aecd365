//! Making a session ready to run. Nothing is written until there is something to record.

mod begins_in;
mod record;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use centurion_config::agent_memory::AgentMemory;
use centurion_config::agents::{ActiveAgent, AgentCatalog};
use centurion_hooks::HookScope;
use centurion_journal::transcript::{Loaded, NotOneTurn, UsedSkill};
use centurion_journal::{Journal, JournalError, Stamp};
use centurion_protocol::sdk::Init;
use centurion_protocol::{RecordId, SessionId};
use centurion_tools::{
    ChangeLog, Checkpoints, DynTool, PreviewFormat, ReadState, SharedFiles, builtin_under, resolve,
};
use thiserror::Error;

use self::begins_in::{BeginsIn, enter_worktree};
use self::record::{TranscriptNotes, open_journal};
use super::clear;
use super::main_agent::{self, MainAgent};
use super::memory::MainMemory;
use super::results::Results;
use super::{Options, Session, Start, Storage, team_views};
use crate::agent::builder::{
    AgentBuilder, Confinement, DefinitionSources, ServersError, SessionFiles,
};
use crate::agent::delegation::Delegation;
use crate::agent::isolation::Isolator;
use crate::agent::isolation::entered::EnterError;
use crate::agent::lead_link::LeadLink;
use crate::agent::member_frames::FromMember;
use crate::agent::member_processes::MemberProcesses;
use crate::agent::name_lookup;
use crate::agent::peers::Peers;
use crate::agent::session_place::SessionPlace;
use crate::agent::session_tasks::SessionTasks;
use crate::agent::shared::{Shared, SharedParts};
use crate::agent::skills::AgentSkills;
use crate::agent::team::Team;
use crate::agent::{Agent, AgentParts, AgentRequests, KeptWork};
use crate::definition::bypass::BypassRefused;
use crate::definition::environment::{Environment, GitState};
use crate::definition::identity::Identity;
use crate::definition::prompt::{main_sections, system_prompt};
use crate::definition::resolve::LaunchError;
use crate::definition::rules::SessionMode;
use crate::delegate::build::DriverParts;
use crate::delegate::recall::{self, MainRecord};
use crate::message::queue::{DeliveryWatch, Queue};
use crate::money::budget::{AccountsAbove, Budget, Limit};
use crate::policy::permissions::Permissions;
use crate::schedule::{self, RecordedSchedule};
use crate::tools::ENGINE_TOOLS;
use crate::toolset::servers::{Deferral, RequireError, Servers};
use crate::toolset::toolbox::ToolboxError;
use crate::turn::driver::{Driver, EarlierState};
use crate::turn::hooks::{HookHost, SessionHooks};

/// The version of the headless protocol that our events follow; hosts look at it.
pub const PROTOCOL_VERSION: &str = "2.1.325";

/// The reason why a session cannot start.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot read the transcript {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the session has no message {0}")]
    NoSuchRecord(RecordId),
    /// Hosts know the first words.
    #[error("Resume rejected by --resume-drops-turn: {0}")]
    DropsMore(#[from] NotOneTurn),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Tools(#[from] ToolboxError),
    #[error("--agent '{name}' not found. Available agents: {available}")]
    NoSuchAgent { name: String, available: String },
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("the agent `{0}` cannot run: a deny rule forbids agents of this type")]
    DeniedAgent(String),
    #[error("the agent `{name}` cannot run: {source}")]
    AgentServers { name: String, source: ServersError },
    #[error("the agent `{name}` cannot run: {source}")]
    AgentMode { name: String, source: BypassRefused },
    #[error("the agent `{name}` cannot run: {source}")]
    RequiredServers { name: String, source: RequireError },
    /// `asked_by` is the flag or the definition that asks for the worktree.
    #[error("{asked_by}: {source}")]
    Worktree { asked_by: String, source: Box<EnterError> },
}

impl Session {
    /// Makes a session ready to run.
    pub async fn open(mut options: Options) -> Result<Self, OpenError> {
        let environment = observe(&options).await;
        let stamp = stamp(&mut options, &environment);
        let (journal, mut loaded, TranscriptNotes { schedules, worktree, agents, came_from }) =
            open_journal(&options, stamp.clone())?;
        let earlier = EarlierState::take(&mut loaded);
        if let Some(model) = loaded.model.as_ref().filter(|_| options.restores_model) {
            options.settings.model.clone_from(model);
        }
        let (begins, is_resumed) =
            (options.start.source(), matches!(options.start, Start::Resume(_)));
        let shared = build_shared(&mut options, environment, stamp, &journal, came_from.as_deref());
        shared.set_title(loaded.title.clone());
        let asked = asked_agent(&options, &loaded, &shared)?;
        let identity = Arc::new(main_agent::identity(asked.as_ref()));
        let (flags, mode) = (options.agents.flags, shared.delegation.rules.mode);
        let begins_in = BeginsIn::new(options.agents.begins_in, asked.as_ref(), shared.id());
        let asked_for = (flags.clone(), options.prompt.clone());
        let mut main = MainAgent::plain(options.settings, options.prompt, mode);
        if let Some(agent) = &asked {
            main.become_agent(agent, &shared, &flags, &options.base.cwd).await?;
        }
        let agent_hooks = main.register_hooks(&shared, &identity);
        let extensions = options.extensions;
        shared.set_plugins(extensions.plugins, extensions.plugin_hooks);
        let has_own = main.memory.is_some();
        let memory = (!has_own).then(|| MainMemory::locate(&shared, options.remembers)).flatten();
        let known = FromEarlier {
            read_state: ReadState::replayed(&loaded.seen_files),
            kept: KeptWork::take(&mut loaded),
            notes: memory.as_ref().map(|memory| Arc::clone(&memory.notes)),
            told_skills: loaded.told_skills,
        };
        let parts = agent_parts(&shared, &main, identity, &options.base.cwd, known);
        let agent = main_agent(&shared, parts);
        extensions.elicitations.attach(Arc::clone(&shared.broker), Arc::clone(&agent));
        let environment = enter_worktree(&shared, &agent, worktree, begins_in).await?;
        let definitions = &shared.delegation.definitions;
        let style = definitions.choose_style(main.prompt.style.as_deref());
        let own = main.memory.as_deref();
        let system = main_sections(&main.prompt, &environment, mode, style.as_ref(), own);
        let notes = memory.as_ref().filter(|_| asked_for.1.replace.is_none());
        let context = main.take_context(&environment);
        let parts = DriverParts {
            view: main.view,
            system: system_prompt(system),
            settings: main.settings,
            journal,
            conversation: loaded.conversation,
            earlier,
            structured: options.structured,
            fixed_tools: None,
            instructions: main.instructions,
            notes_section: notes.map(MainMemory::section),
            context,
            tells_notes_aside: main.prompt.is_the_same_for_all,
        };
        let driver = shared.delegation.builder.driver(&shared, agent, parts)?;
        driver.keep_start();
        restore_work(&shared, &driver.journal, schedules, is_resumed.then_some(agents)).await?;
        let mut init = init(&shared, &driver, &options.base.additional_directories);
        init.betas.clone_from(&options.base.betas);
        init.memory_paths = memory.as_ref().map(MainMemory::paths);
        Ok(Self {
            shared,
            driver,
            init: Arc::new(init),
            results: Results::default(),
            broken_lines: loaded.broken_lines,
            begins: Some(begins),
            setup: extensions.setup,
            server_patience: extensions.server_patience,
            elicitations: extensions.elicitations,
            suggests: options.suggests_prompts,
            memory,
            initial_prompt: main.initial_prompt,
            asked: asked_for,
            _agent_hooks: agent_hooks,
        })
    }
}

/// The knowledge of the main agent from earlier processes.
struct FromEarlier {
    read_state: ReadState,
    kept: KeptWork,
    notes: Option<Arc<AgentMemory>>,
    told_skills: Vec<UsedSkill>,
}

/// The parts of the main agent.
fn agent_parts(
    shared: &Shared,
    main: &MainAgent,
    identity: Arc<Identity>,
    cwd: &Path,
    known: FromEarlier,
) -> AgentParts {
    let builder = &shared.delegation.builder;
    let program_tools = builder.program_tools(shared, &shared.permissions, &main.view);
    AgentParts {
        identity,
        permissions: Arc::clone(&shared.permissions),
        servers: Arc::clone(&shared.servers),
        budget: shared.budget.child(Limit::default()),
        slot: None,
        task: None,
        startable: main.view.startable().map(str::to_owned),
        brought_hooks: main.hooks.clone(),
        hooks: builder.agent_hooks(main.settings.effort),
        cwd: cwd.to_owned(),
        isolation: None,
        read_state: known.read_state,
        kept: known.kept,
        notes: known.notes,
        requests: AgentRequests::new(&main.settings, None),
        skills: AgentSkills::new(program_tools, &known.told_skills, Vec::new()),
    }
}

/// Builds the main agent, which agents of the session find when they work for it.
fn main_agent(shared: &Arc<Shared>, parts: AgentParts) -> Arc<Agent> {
    let agent = shared.delegation.builder.agent(shared, parts);
    shared.enter_main_agent(&agent);
    agent
}

/// Looks at where the session stands.
async fn observe(options: &Options) -> Environment {
    let git = match &options.base.repository {
        Some(root) => Some(GitState::observe(root, &options.base.env).await),
        None => None,
    };
    let now = options.base.world.now().to_zoned(options.base.time_zone.clone());
    Environment {
        cwd: options.base.cwd.clone(),
        additional_directories: options.base.additional_directories.clone(),
        model: options.settings.model.clone(),
        date: now.date().to_string(),
        git,
    }
}

/// Builds what the agents of the session share, in one pass from parts to whole.
fn build_shared(
    options: &mut Options,
    environment: Environment,
    stamp: Stamp,
    journal: &Arc<Journal>,
    came_from: Option<&Path>,
) -> Arc<Shared> {
    // The model may read the files that the session keeps for it.
    let readable = clear::readable(&place(options.start.id(), &options.storage));
    let kept = std::iter::once(resolve(&options.storage.output_dir)).chain(readable);
    options.permission.policy.readable.extend(kept.chain(came_from.map(resolve)));
    let permissions = Permissions::new(
        std::mem::take(&mut options.permission.policy),
        options.permission.bypass,
        options.permission.rule_source.take(),
        options.permission.rule_store.take(),
    );
    let permissions = Arc::new(permissions);
    let judge = Arc::clone(&permissions);
    options.agents.definitions.read_rules().bind(move |path| judge.read_denial(path));
    let connections = std::mem::take(&mut options.extensions.servers);
    let servers = Servers::of_session(
        connections,
        Deferral::chosen(&options.base.env),
        std::mem::take(&mut options.extensions.withheld_servers),
        std::mem::take(&mut options.extensions.asked_tools),
    );
    let mut rules = std::mem::take(&mut options.agents.rules);
    // A coordinator directs agents that know nothing of its conversation, whatever the switch says.
    rules.forks &= rules.mode != SessionMode::Coordinator;
    let zone = options.base.time_zone.clone();
    let schedules =
        schedule::of_session(&options.base.world, &rules, &options.base.env, zone, journal);
    let world = &options.base.world;
    let place = options.agents.task_list.clone();
    let task_list = place.map(|place| Arc::new(SessionTasks::new(place, Arc::clone(world))));
    let team = options.agents.team.take().map(|team| Arc::new(Team::new(team)));
    let cwd = options.base.cwd.display().to_string();
    let peers = options.agents.peers.take();
    let peers = peers.map(|peers| Peers::new(peers, options.start.id(), cwd));
    let lead = options.agents.lead.clone();
    if lead.is_some() {
        // The lead counts this process as one agent at work.
        rules.limits.running = rules.limits.running.min(1);
    }
    let above = lead.clone().map(|lead| lead as Arc<dyn AccountsAbove>);
    let processes = options.agents.member_processes.take();
    let processes = processes.filter(|_| options.storage.transcript.is_some());
    let member_processes =
        processes.map(|it| MemberProcesses::new(it, options.start.id(), options.base.cwd.clone()));
    let queue = Queue::new(delivery_watch(lead.as_ref(), team.as_ref()));
    let shared = Arc::new_cyclic(|session| {
        let checkpoints = checkpoints(options, journal);
        let builder =
            Arc::new(agent_builder(options, session, environment, stamp, checkpoints, journal));
        let definitions = Arc::clone(&options.agents.definitions);
        Shared::new(SharedParts {
            world: Arc::clone(&options.base.world),
            view: Arc::clone(&options.view),
            queue,
            budget: Budget::root_below(options.max_budget, above),
            model: options.model.clone(),
            permissions,
            servers,
            server_patience: options.extensions.server_patience,
            delegation: Delegation::new(rules, definitions, builder, task_list, team)
                .with_members(member_processes, lead)
                .with_peers(peers),
            schedules,
        })
    });
    if let Some(answerer) = options.answerer.take() {
        shared.broker.attach(answerer);
    }
    team_views::begin(&shared);
    shared
}

/// The knowledge of the session's agents about files. A member's process shares it with the lead's.
fn known_files(is_member: bool, output_dir: &Path) -> Arc<SharedFiles> {
    let known = SharedFiles::default();
    if is_member {
        known.share_in(output_dir);
    }
    Arc::new(known)
}

/// The callback for messages that turns have read: a lead hears of its member's, views of a team show them as read.
fn delivery_watch(lead: Option<&Arc<LeadLink>>, team: Option<&Arc<Team>>) -> Option<DeliveryWatch> {
    if let Some(lead) = lead.cloned() {
        return Some(Box::new(move |ids| lead.tell(FromMember::Took(ids.to_vec()))));
    }
    let team = team.filter(|team| team.view().is_some()).cloned()?;
    Some(Box::new(move |ids| team.view().iter().for_each(|view| view.note_read(ids))))
}

/// The name of the directory, beside a transcript, for copies of files.
pub const FILE_HISTORY: &str = "file-history";

/// Keeps copies of files in the session's directory, and says so in the main agent's transcript.
fn checkpoints(options: &Options, journal: &Arc<Journal>) -> Option<Arc<Checkpoints>> {
    let directory = options.storage.file_history.clone()?;
    let journal = Arc::clone(journal);
    let log: ChangeLog = Box::new(move |prompt, files, timestamp| {
        journal.note_files(prompt, files, timestamp).map_err(Into::into)
    });
    let world = Arc::clone(&options.base.world);
    Some(Arc::new(Checkpoints::new(directory, log, world)))
}

/// The builder of all agents of the session.
fn agent_builder(
    options: &mut Options,
    session: &Weak<Shared>,
    environment: Environment,
    stamp: Stamp,
    checkpoints: Option<Arc<Checkpoints>>,
    journal: &Arc<Journal>,
) -> AgentBuilder {
    let env_file = options.storage.output_dir.join("hook-environment.sh");
    let hooks = session_hooks(options, env_file.clone()).build(session);
    let settings_hooks =
        hooks.add(HookScope::Session, std::mem::take(&mut options.extensions.hooks));
    let users_env_file = options.base.env.get("CLAUDE_ENV_FILE").map(PathBuf::from);
    let tools = tools(options);
    let (storage, agents) = (&options.storage, &mut options.agents);
    let place = place(options.start.id(), storage);
    AgentBuilder {
        guard: options.base.guard.clone(),
        isolator: Isolator::new(
            std::mem::take(&mut agents.worktrees),
            options.permission.sandbox.clone(),
            options.base.guard.clone(),
            (Arc::clone(&options.base.env), &options.base.cwd),
            place.current(),
        ),
        confinement: Confinement {
            sandbox: options.permission.sandbox.clone(),
            allows_sandboxed: options.permission.allows_sandboxed,
        },
        tools,
        engine_tools: ENGINE_TOOLS,
        choice: std::mem::take(&mut options.tools),
        environment,
        project: options.base.project.clone(),
        memory: options.memory.take().map(Arc::new),
        first_stamp: stamp,
        files: SessionFiles {
            recording: storage.recording(),
            output_dir: storage.output_dir.clone(),
            env_files: users_env_file.into_iter().chain([env_file]).collect(),
            known: known_files(agents.lead.is_some(), &storage.output_dir),
            checkpoints,
            place,
            journal: Arc::clone(journal),
            memories: agents.memory.take(),
        },
        settings: options.settings.clone(),
        context: options.context,
        hooks,
        settings_hooks: Arc::new(settings_hooks),
        agent_servers: agents.servers.take(),
        check_model: Arc::clone(&agents.check_model),
        sources: DefinitionSources {
            only_plugin_hooks: agents.only_plugin_hooks,
            settings_files: std::mem::take(&mut agents.settings_files),
            only_managed_rules: agents.only_managed_rules,
            skills: std::mem::take(&mut agents.skills),
        },
        specs: Arc::default(),
        env: Arc::clone(&options.base.env),
    }
}

/// The tools of the program and those that extend it, by their names. Where agents share a task list, none keeps a list
/// of its own.
fn tools(options: &mut Options) -> Vec<Arc<dyn DynTool>> {
    let preview = PreviewFormat::chosen(&options.base.env);
    let mut tools = builtin_under(options.permission.sandbox.as_deref(), preview);
    tools.retain(|tool| options.agents.task_list.is_none() || tool.name() != "TodoWrite");
    tools.append(&mut options.extensions.tools);
    tools.sort_by(|one, other| one.name().cmp(other.name()));
    tools
}

fn session_hooks(options: &mut Options, env_file: PathBuf) -> SessionHooks {
    let lead = options.agents.lead.clone().map(|lead| lead as Arc<dyn HookHost>);
    let extensions = &mut options.extensions;
    SessionHooks {
        rules: std::mem::take(&mut extensions.hook_rules),
        host: extensions.hook_host.take().or(lead),
        shows_runs: extensions.shows_hooks,
        home: extensions.home.take(),
        guard: options.base.guard.clone(),
        env_file,
        env: Arc::clone(&options.base.env),
        world: Arc::clone(&options.base.world),
        project_dir: options.base.project.clone(),
        output_dir: options.storage.output_dir.clone(),
    }
}

/// Restores what a resumed session left: its agents, and its schedules. A copy of a session is not the one that these
/// were made for.
async fn restore_work(
    shared: &Arc<Shared>,
    journal: &Journal,
    kept: Vec<RecordedSchedule>,
    resumed: Option<MainRecord>,
) -> Result<(), JournalError> {
    if let Some(main) = resumed {
        let restored = Arc::clone(shared);
        let restoring = move || recall::restore(&restored, main);
        // Its fault is not the session's: what is not restored now is found when it is asked for.
        if let Err(fault) = tokio::task::spawn_blocking(restoring).await {
            tracing::error!(%fault, "the agents of earlier processes could not be restored");
        }
        if let Some(tasks) = shared.delegation.task_list() {
            tasks.release(shared).await;
        }
        // In a session without schedules they stay in the journal.
        if let Some(schedules) = &shared.schedules {
            schedules.restore(&shared.queue, kept);
        }
        return Ok(());
    }
    schedule::note_left_behind(journal, &kept)
}

/// The agent that the session runs as: the one that was asked for, or the one it ran as before.
fn asked_agent(
    options: &Options,
    loaded: &Loaded,
    shared: &Shared,
) -> Result<Option<ActiveAgent>, OpenError> {
    let agents = &options.agents;
    let Some(name) = agents.main.as_ref().or(loaded.agent.as_ref()) else { return Ok(None) };
    let catalog = agents.definitions.agents();
    match find_main(&catalog, name) {
        Some(agent) => {
            let mut names = name_lookup::names(&catalog, &agent.definition.name);
            names.push(name.clone());
            if shared.permissions.denies_agent(&names) {
                return Err(OpenError::DeniedAgent(name.clone()));
            }
            Ok(Some(agent.clone()))
        }
        None if agents.main.is_none() => {
            let text =
                format!("the session ran as the agent `{name}`, which is not there any more");
            shared.inform(None, "warning", text);
            Ok(None)
        }
        None => Err(OpenError::NoSuchAgent { name: name.clone(), available: names(&catalog) }),
    }
}

/// The agent of a name; that of a plugin's also by the last part of its name, if there is just one.
pub(super) fn find_main<'c>(catalog: &'c AgentCatalog, name: &str) -> Option<&'c ActiveAgent> {
    let named = name_lookup::find(catalog, name);
    named.or_else(|| {
        let is_its = |agent: &&ActiveAgent| agent.definition.name.rsplit(':').next() == Some(name);
        let mut found = catalog.active.iter().filter(is_its);
        found.next().filter(|_| found.next().is_none())
    })
}

fn names(catalog: &AgentCatalog) -> String {
    let shown = catalog.active.iter().filter(|agent| agent.definition.name.value != "fork");
    shown.map(|agent| agent.definition.name.value.as_str()).collect::<Vec<_>>().join(", ")
}

/// The place of a session's transcripts.
fn place(id: SessionId, storage: &Storage) -> SessionPlace {
    SessionPlace::new(id, storage.transcript.clone(), &storage.output_dir)
}

/// The stamp of every record of the main agent.
fn stamp(options: &mut Options, environment: &Environment) -> Stamp {
    Stamp {
        session: options.start.id(),
        agent: None,
        cwd: options.base.cwd.display().to_string(),
        git_branch: environment.branch().to_owned(),
        entrypoint: std::mem::take(&mut options.base.entrypoint),
    }
}

/// The parts of the headless protocol that hosts can rely on.
pub const CAPABILITIES: &[&str] = &[
    // An interrupt says what still waits, and can drop it.
    "interrupt_receipt_v1",
    "interrupt_cancel_queued_v1",
    // `reload_plugins` leaves a session alone that is at work, if asked to.
    "reload_plugins_refuse_if_busy_v1",
    // `mcp_read_resource` gives what servers have for hosts to show.
    "mcp_read_resource_v1",
    // `mcp_call` decides about a call as about the model's own, if asked to.
    "mcp_call_check_permissions_v1",
];

fn init(shared: &Shared, driver: &Driver, additional_directories: &[PathBuf]) -> Init {
    let directories = additional_directories.iter().map(|path| path.display().to_string());
    Init {
        cwd: driver.dispatch.agent.workspace.root().display().to_string(),
        tools: driver.dispatch.toolbox.names().map(str::to_owned).collect(),
        mcp_servers: Vec::new(),
        model: driver.settings.model.clone(),
        permission_mode: shared.permissions.mode().to_string(),
        slash_commands: Vec::new(),
        terminal_slash_commands: [],
        api_key_source: match shared.model.key_source() {
            known @ ("ANTHROPIC_API_KEY" | "apiKeyHelper") => known,
            _ => "none",
        },
        claude_code_version: PROTOCOL_VERSION,
        centurion_version: env!("CARGO_PKG_VERSION"),
        output_style: shared.delegation.definitions.style_name(),
        agents: Vec::new(),
        skills: Vec::new(),
        plugins: shared.plugins(),
        additional_directories: directories.collect(),
        capabilities: CAPABILITIES,
        memory_paths: None,
        effort: driver.settings.effort,
        betas: Vec::new(),
    }
}
