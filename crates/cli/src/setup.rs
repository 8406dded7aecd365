//! From flags, settings and surroundings to what the engine needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use centurion_config::ReadRules;
use centurion_config::memory::{Memory, MemorySources};
use centurion_config::paths::repo_root;
use centurion_config::settings::{LevelChoice, RepositoryTrust, Settings};
use centurion_config::trust::Trust;

use centurion_engine::{
    AgentOptions, Answerer, Base, ContextRules, Extensions, Mirror, Options, PermissionOptions,
    PromptOptions, Redaction, RequestSettings, ResumePoint, RuleStore, SMALLEST_WINDOW, Start,
    Storage, StructuredOutput, ToolChoice, View,
};
use centurion_host::{Answerers, Attachment, ForServers, HostChannel, ModelLimits, OutputQueue};
use centurion_mcp::Pool;
use centurion_model::{KeyHelper, Model, ModelAccess, SharedDisplay};
use centurion_permissions::Policy;
use centurion_protocol::{Env, SessionId, Thinking, World, bounded};
use centurion_sandbox::Proxy;
use centurion_tools::builtin;
use centurion_tools::guard::{CommandLimits, GuardProgram};

use crate::absent_model::absent_model;
use crate::args::{AutoCompact, PermissionPrompts, PromptTool, RunArgs};
use crate::configuration::Configuration;
use crate::delegation::{self, AgentParts};
use crate::extensions::{self, ExtensionContext};
use crate::key_helper::HelperCommand;
use crate::live_settings::LiveSettings;
use crate::output::note;
use crate::plugin_reload::PluginReloader;
use crate::policy::{self, LiveRules};
use crate::prompt_tool::ToolAnswerer;
use crate::remember::RuleFiles;
use crate::sandbox::{self, Confinement};
use crate::sessions;
use crate::surroundings::{MANAGED, Surroundings};
use crate::teammates;
use crate::used_files::used_files;
use crate::users_files::users_files;

/// The largest file of a prompt that is read.
const MOST_PROMPT: u64 = 10 * 1024 * 1024;

/// The outputs of a session.
pub(crate) struct SessionIo {
    pub(crate) world: Arc<dyn World>,
    pub(crate) view: Arc<dyn View>,
    /// The output of a host that answers on standard input, where there is one.
    pub(crate) host: Option<Arc<OutputQueue>>,
    /// A reader of all transcripts of the session, where there is one.
    pub(crate) mirror: Option<Arc<dyn Mirror>>,
    /// The terminal of a person who answers questions, where there is one.
    pub(crate) answerer: Option<Arc<dyn Answerer>>,
}

/// Everything a session is made from, and what must live as long as it.
pub(crate) async fn options(
    args: &RunArgs,
    surroundings: &Surroundings,
    configuration: Configuration,
    SessionIo { world, view, host, mirror, answerer: person }: SessionIo,
) -> anyhow::Result<(Options, Lasting)> {
    let env = Arc::new(configuration.settings.overlay(&surroundings.env));
    let directories = additional_directories(&args.add_dir)?;
    let (policy, read_rules) =
        policy::policy(args, surroundings, &configuration.settings, &directories)?;
    let found =
        AgentParts::look(args, &directories, surroundings, &configuration, &read_rules, &world)?;
    let Configuration { settings, trust, .. } = configuration;
    let plugins = Arc::new(PluginReloader::new(args, surroundings, &directories, &found.plugins));
    let hook_judge = extensions::hook_judge(surroundings, plugins.judged(), &trust);
    let is_interactive = person.is_some();
    let asked = RunWishes { args, surroundings, settings: &settings, env: &env, is_interactive };
    let (policy, used) = asked.complete(policy, &found, &trust, &directories);
    let bypass = policy::bypass(policy.mode, args, &settings, &surroundings.env);
    let prompt = prompt_options(args, &settings)?;
    let (start, storage) = storage(args, surroundings, &settings, &*world, is_interactive)?;
    let host = asked.channel(host, &start, &world);
    let limits = ModelLimits::new(&settings);
    let hook_policy = settings.plugin_only().hooks.map(|origin| origin.to_string());
    let Requests { model, settings: requests, restores_model, display } =
        asked.requests(&limits, &world).await?;
    let memory = asked.memory(read_rules);
    let roots = working_directories(surroundings, &directories);
    let confinement = sandbox::confinement(&settings, surroundings, &roots, &used, &trust)?;
    let (sandbox, allows_sandboxed, proxy) = Confinement::split(confinement);
    let around = ExtensionContext {
        env: &env,
        roots: &roots,
        output_dir: &storage.output_dir,
        host: host.as_ref(),
        found: &found,
        hook_judge: &hook_judge,
        server_judge: extensions::server_judge(surroundings, plugins.judged(), &trust),
    };
    let (extensions, pool) = extensions::extensions(args, surroundings, &settings, &around)?;
    let mut agents = asked.agents(found, &pool, &limits, &model, start.id())?;
    let answerers = Arc::new(Answerers::default());
    let front = answerer(args, host.as_ref(), &extensions)?.or(person);
    let answerer = attach(&answerers, args, front, host.as_ref());
    let base = asked.base(directories, world)?;
    let rule_store = Some(Arc::new(RuleFiles::new(&settings, trust)) as Arc<dyn RuleStore>);
    let context = context_rules(args, &env, &settings)?;
    let remembers = settings.memory();
    let settings = LiveSettings::new(settings);
    agents.member_processes = teammates::back_end(args, &settings, &env, surroundings)?;
    let live = LiveRules::new(settings.clone(), args, roots, hook_judge)?;
    let rule_source = Some(Box::new(live) as Box<_>);
    let permission =
        PermissionOptions { policy, rule_source, rule_store, bypass, sandbox, allows_sandboxed };
    let options = Options {
        start,
        storage: Storage { mirror, ..storage },
        base,
        permission,
        model,
        settings: requests,
        context,
        restores_model,
        prompt,
        memory,
        tools: known_tools(args),
        max_budget: args.model.max_budget_usd,
        suggests_prompts: suggests_prompts(args, &env),
        remembers,
        structured: args.json_schema.as_deref().map(structured).transpose()?,
        answerer: Some(answerers),
        view,
        extensions,
        agents,
    };
    let held = (answerer, proxy);
    let lasting =
        Lasting { pool, host, limits, settings, hook_policy, plugins, display, _held: held };
    Ok((options, lasting))
}

/// The directories that the agents work in.
pub(crate) fn working_directories(surroundings: &Surroundings, added: &[PathBuf]) -> Vec<PathBuf> {
    std::iter::once(&surroundings.cwd).chain(added).cloned().collect()
}

/// The wishes for a run: the command line, the settings and the environment that they make.
#[derive(Clone, Copy)]
struct RunWishes<'a> {
    args: &'a RunArgs,
    surroundings: &'a Surroundings,
    settings: &'a Settings,
    env: &'a Arc<Env>,
    /// Whether a person sits before it.
    is_interactive: bool,
}

/// The model of a run, and what its requests ask for.
struct Requests {
    model: Model,
    settings: RequestSettings,
    /// Whether a resumed session continues with the model it had.
    restores_model: bool,
    /// The part of its thinking that the model shows.
    display: SharedDisplay,
}

impl RunWishes<'_> {
    /// The policy with the files that it protects, and the files that make the program run something.
    fn complete(
        &self,
        mut policy: Policy,
        found: &AgentParts,
        trust: &Arc<Trust>,
        directories: &[PathBuf],
    ) -> (Policy, Vec<PathBuf>) {
        let Self { args, surroundings, settings, env, .. } = *self;
        let mut used = used_files(found, trust, settings, surroundings, env, directories);
        let writable = sandbox::reachable(settings, surroundings, directories);
        let of_user = users_files(args, surroundings, &writable);
        // The sandbox holds the directories around a file that is missing.
        used.extend(of_user.iter().filter(|file| file.symlink_metadata().is_ok()).cloned());
        policy::check_git(&mut policy, trust);
        policy.protected = used.iter().cloned().chain(of_user).collect();
        (policy, used)
    }

    /// The instructions that are in force: none in a bare run.
    fn memory(&self, read_rules: ReadRules) -> Option<Memory> {
        let Self { args, surroundings, settings, env, .. } = *self;
        let levels = args.settings.setting_sources.unwrap_or_default();
        let memory = || memory(surroundings, env, settings, (levels, read_rules));
        (!args.reach.leaves_instructions()).then(memory)?
    }

    /// The channel to a host that answers on standard input, where there is one.
    fn channel(
        &self,
        output: Option<Arc<OutputQueue>>,
        start: &Start,
        world: &Arc<dyn World>,
    ) -> Option<Arc<HostChannel>> {
        let reports = self.env.is_on("CLAUDE_CODE_SDK_READS_SESSION_STATE");
        let reported = reports.then(|| start.id());
        Some(Arc::new(HostChannel::new(output?, Arc::clone(world), reported)))
    }

    /// The agents that were found, with the rules for them.
    fn agents(
        &self,
        found: AgentParts,
        pool: &Arc<Pool>,
        limits: &ModelLimits,
        model: &Model,
        session: SessionId,
    ) -> anyhow::Result<AgentOptions> {
        let Self { args, surroundings, settings, env, is_interactive } = *self;
        let run = delegation::Run {
            args,
            settings,
            env,
            surroundings,
            pool,
            limits,
            model,
            session,
            is_interactive,
        };
        found.into_options(&run)
    }

    async fn requests(
        &self,
        limits: &ModelLimits,
        world: &Arc<dyn World>,
    ) -> anyhow::Result<Requests> {
        let Self { args, surroundings, settings, env, .. } = *self;
        let (chosen, cwd) = (model_choice(args, env, settings), &surroundings.cwd);
        let helper = settings.api_key_helper().map(|command| {
            let helper = HelperCommand::new(command.value, Arc::clone(env), cwd.to_owned());
            Arc::new(helper) as Arc<dyn KeyHelper>
        });
        let access = ModelAccess {
            names: settings.model_overrides().into_iter().collect(),
            key_helper: helper,
            extras: args.model.extras(),
        };
        let display = access.extras.thinking_display.clone();
        let opened = open_model(chosen.as_deref(), limits, env, &access, world).await;
        let model = opened.or_else(|reason| replacement(reason, args, world))?;
        if let Some(unknown) = model.unknown(model.name()).filter(|_| chosen.is_some()) {
            note(&format!("warning: {unknown}"));
        }
        let settings = request_settings(args, env, settings, limits, &model)?;
        // A model that a session once used may not be listed any more.
        let restores_model =
            chosen.is_none() && env.get("ANTHROPIC_MODEL").is_none() && limits.is_none();
        Ok(Requests { model, settings, restores_model, display })
    }

    fn base(
        &self,
        additional_directories: Vec<PathBuf>,
        world: Arc<dyn World>,
    ) -> anyhow::Result<Base> {
        let includes_git = self.settings.include_git_instructions();
        let guard = guard()?.with_limits(command_limits(self.settings));
        let entrypoint = self.env.get("CLAUDE_CODE_ENTRYPOINT").unwrap_or("cli");
        Ok(Base {
            // A user may not want the state of the repository in the prompt.
            repository: repo_root(&self.surroundings.cwd).filter(|_| includes_git),
            additional_directories,
            env: Arc::clone(self.env),
            world,
            entrypoint: entrypoint.to_owned(),
            betas: self.args.model.betas.iter().map(|beta| beta.as_str().to_owned()).collect(),
            project: self.surroundings.project().to_owned(),
            ..Base::new(self.surroundings.cwd.clone(), guard)
        })
    }
}

/// A model that answers nothing, where a run needs none.
fn replacement(
    reason: anyhow::Error,
    args: &RunArgs,
    world: &Arc<dyn World>,
) -> anyhow::Result<Model> {
    if !args.model.is_optional {
        return Err(reason);
    }
    note(&format!("warning: no agent can run: {reason:#}"));
    Ok(absent_model(reason.to_string(), Arc::clone(world)))
}

/// Parts that must live as long as the session.
pub(crate) struct Lasting {
    pub(crate) pool: Arc<Pool>,
    /// The way to the host, where there is one.
    pub(crate) host: Option<Arc<HostChannel>>,
    pub(crate) limits: ModelLimits,
    pub(crate) settings: LiveSettings,
    /// The managed setting that leaves hooks to plugins, if one does.
    pub(crate) hook_policy: Option<String>,
    pub(crate) plugins: Arc<PluginReloader>,
    /// The part of its thinking that the model shows, which the host may change.
    pub(crate) display: SharedDisplay,
    _held: (Vec<Attachment>, Option<Proxy>),
}

/// The front that answers questions, as the flags say: the host, a tool of a server, or none.
fn answerer(
    args: &RunArgs,
    host: Option<&Arc<HostChannel>>,
    extensions: &Extensions,
) -> anyhow::Result<Option<Arc<dyn Answerer>>> {
    if args.permissions.permission_prompts == PermissionPrompts::None {
        return Ok(None);
    }
    Ok(match (&args.permissions.permission_prompt_tool, host) {
        (None, _) => None,
        (Some(PromptTool::Stdio), Some(host)) => Some(Arc::clone(host) as Arc<dyn Answerer>),
        (Some(PromptTool::Stdio), None) => {
            anyhow::bail!("--permission-prompt-tool stdio: there is no host that could answer")
        }
        (Some(PromptTool::Tool(name)), _) => Some(Arc::new(ToolAnswerer::find(name, extensions)?)),
    })
}

/// Attaches the front that answers. A host that is not asked about calls is asked in the name of servers.
fn attach(
    answerers: &Arc<Answerers>,
    args: &RunArgs,
    front: Option<Arc<dyn Answerer>>,
    host: Option<&Arc<HostChannel>>,
) -> Vec<Attachment> {
    let asked = &args.permissions;
    let is_asked = asked.permission_prompt_tool == Some(PromptTool::Stdio)
        || asked.permission_prompts == PermissionPrompts::None;
    let for_servers = host.filter(|_| !is_asked).map(|host| {
        let for_servers: Arc<dyn Answerer> = Arc::new(ForServers(Arc::clone(host)));
        for_servers
    });
    front.into_iter().chain(for_servers).map(|it| answerers.attach(it)).collect()
}

/// The tools of `--tools`, with a warning of names that no tool has.
fn known_tools(args: &RunArgs) -> ToolChoice {
    let tools = args.tool_choice();
    let unknown = tools.unknown(&builtin());
    // If no name is known the session will not open, and says the same.
    if matches!(&tools, ToolChoice::Only(names) if !unknown.is_empty() && unknown.len() < names.len())
    {
        note(&format!("warning: --tools: there is no tool named {}", unknown.join(", ")));
    }
    tools
}

/// The limits of one command.
pub(crate) fn command_limits(settings: &Settings) -> CommandLimits {
    const MEGABYTE: u64 = 1 << 20;
    let megabytes = |name: &str| settings.command_limit(name).map(|count| count * MEGABYTE);
    CommandLimits {
        memory: megabytes("memoryMb"),
        processes: settings.command_limit("processes"),
        file: megabytes("fileMb"),
    }
}

/// Commands run below this very program.
pub(crate) fn guard() -> anyhow::Result<GuardProgram> {
    let program = std::env::current_exe().context("this program's own file cannot be found")?;
    Ok(GuardProgram::new(program))
}

pub(crate) fn additional_directories(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    given
        .iter()
        .map(|path| {
            let found =
                path.canonicalize().with_context(|| format!("--add-dir {}", path.display()))?;
            anyhow::ensure!(found.is_dir(), "--add-dir {}: not a directory", path.display());
            Ok(found)
        })
        .collect()
}

/// The schema, given as text or as a file.
fn structured(given: &str) -> anyhow::Result<StructuredOutput> {
    let is_json = given.trim_start().starts_with(['{', '[', '"']) || given.parse::<bool>().is_ok();
    let text = if is_json || given.trim().is_empty() {
        given.to_owned()
    } else {
        read_text(Path::new(given), "--json-schema")?
    };
    StructuredOutput::parse(&text).context("--json-schema")
}

fn read_text(path: &Path, flag: &str) -> anyhow::Result<String> {
    bounded::read_text_file(path, MOST_PROMPT).with_context(|| format!("{flag} {}", path.display()))
}

fn prompt_options(args: &RunArgs, settings: &Settings) -> anyhow::Result<PromptOptions> {
    let from_file = |path: &Option<PathBuf>, flag: &str| {
        path.as_deref().map(|path| read_text(path, flag)).transpose()
    };
    let model = &args.model;
    let replace = from_file(&model.system_prompt_file, "--system-prompt-file")?;
    let append = from_file(&model.append_system_prompt_file, "--append-system-prompt-file")?;
    Ok(PromptOptions {
        replace: replace.or_else(|| model.system_prompt.clone()),
        append: append.or_else(|| model.append_system_prompt.clone()),
        style: settings.output_style().filter(|_| !args.reach.bare),
        is_the_same_for_all: model.exclude_dynamic_system_prompt_sections,
    })
}

/// The model that was asked for, if the settings list it, or else the default model.
async fn open_model(
    chosen: Option<&str>,
    limits: &ModelLimits,
    env: &Arc<Env>,
    access: &ModelAccess,
    world: &Arc<dyn World>,
) -> anyhow::Result<Model> {
    let open = |name| Model::open_with(name, env, access.clone(), Arc::clone(world));
    let model = open(chosen).await?;
    if chosen.is_some() {
        limits.check(model.name(), &model)?;
    } else if let Some(listed) = limits.instead_of_default(&model) {
        return Ok(open(Some(listed)).await?);
    }
    Ok(model)
}

/// The model that the user asked for: the flag, the environment, the settings, in this order.
fn model_choice(args: &RunArgs, env: &Env, settings: &Settings) -> Option<String> {
    let from_settings = || settings.model().map(|model| model.value);
    let from_env = env.get("ANTHROPIC_MODEL").map(str::to_owned);
    args.model.model.clone().or(from_env).or_else(from_settings)
}

fn request_settings(
    args: &RunArgs,
    env: &Env,
    settings: &Settings,
    limits: &ModelLimits,
    model: &Model,
) -> anyhow::Result<RequestSettings> {
    let effort = match env.get("CLAUDE_CODE_EFFORT_LEVEL") {
        Some("auto") | None => {
            args.model.effort.or_else(|| settings.effort().map(|effort| effort.value))
        }
        Some(level) => {
            Some(level.parse().map_err(anyhow::Error::msg).context("CLAUDE_CODE_EFFORT_LEVEL")?)
        }
    };
    let fallbacks = match args.model.fallback_model.as_slice() {
        [] => settings.fallback_models().into_iter().map(|model| model.value).collect(),
        given => given.to_vec(),
    };
    let (fallbacks, refused) = limits.divide(fallbacks, model);
    if !refused.is_empty() {
        let names = refused.join(", ");
        note(&format!("warning: the settings do not let {names} be used as a fallback"));
    }
    Ok(RequestSettings {
        model: model.name().to_owned(),
        fallback_models: fallbacks.iter().map(|name| model.resolve(name)).collect(),
        effort,
        thinking: args.model.chosen_thinking().unwrap_or(match settings.always_thinking() {
            Some(false) => Thinking::Disabled,
            _ => Thinking::Auto,
        }),
        max_turns: match args.model.max_turns {
            None => limit(env, "CLAUDE_CODE_MAX_TURNS")?,
            given => given,
        },
        partial_messages: args.format.include_partial_messages,
        concurrent_calls: limit(env, "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY")?.unwrap_or(10),
    })
}

/// Whether the host is shown what the user may say next.
fn suggests_prompts(args: &RunArgs, env: &Env) -> bool {
    args.format.prompt_suggestions && !env.is_on("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")
}

/// The window of every model, also a smaller one than those of other variables.
const WINDOW_VARIABLE: &str = "CENTURION_CONTEXT_WINDOW";

/// The limits of conversations: the flag, the environment, the settings, in this order.
fn context_rules(args: &RunArgs, env: &Env, settings: &Settings) -> anyhow::Result<ContextRules> {
    let automatic_window = match args.model.autocompact {
        Some(AutoCompact::Auto) => None,
        Some(AutoCompact::Window(tokens)) => Some(tokens),
        None => limit(env, "CLAUDE_CODE_AUTO_COMPACT_WINDOW")?
            .or_else(|| settings.auto_compact_window()),
    };
    Ok(ContextRules {
        window: limit(env, WINDOW_VARIABLE)?,
        unknown_window: limit(env, "CLAUDE_CODE_MAX_CONTEXT_TOKENS")?,
        automatic_window: automatic_window.map(|tokens: u64| tokens.max(SMALLEST_WINDOW)),
        percent: limit(env, "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE")?,
        automatic: !env.is_on("DISABLE_AUTO_COMPACT")
            && settings.auto_compact_enabled() != Some(false),
        allowed: !env.is_on("DISABLE_COMPACT"),
    })
}

/// A limit from the environment. One that cannot be read must not mean that there is none.
fn limit<N: std::str::FromStr>(env: &Env, name: &str) -> anyhow::Result<Option<N>> {
    let parse = |value: &str| {
        value
            .trim()
            .parse()
            .map_err(|_| anyhow::anyhow!("{name}={value} is no number that can be used"))
    };
    env.get(name).map(parse).transpose()
}

/// The session of the run, and its storage.
fn storage(
    args: &RunArgs,
    surroundings: &Surroundings,
    settings: &Settings,
    world: &dyn World,
    is_interactive: bool,
) -> anyhow::Result<(Start, Storage)> {
    let session = &args.session;
    let (dirs, cwd) = (&surroundings.dirs, &surroundings.cwd);
    let resumed: Option<(SessionId, PathBuf)> = if let Some(named) = &session.resume {
        let named = named.as_ref().ok_or_else(|| sessions::which(dirs, cwd))?;
        Some(sessions::named(dirs, cwd, named)?)
    } else if session.continue_last {
        // Without a session to resume, a new one begins: that is what people expect of a habit.
        sessions::newest(dirs, cwd)
    } else {
        None
    };
    let new_id = session.session_id.unwrap_or_else(|| world.session_id());
    let start = match &resumed {
        Some((from, _)) if session.fork_session => Start::Fork { from: *from, id: new_id },
        Some((id, _)) => Start::Resume(*id),
        None => Start::New(new_id),
    };
    let id = start.id();
    // A session that is resumed stays where it is, wherever it is resumed from.
    let transcript = match (&start, &resumed) {
        (Start::Resume(_), Some((_, path))) => path.clone(),
        _ => dirs.transcript(cwd, id),
    };
    anyhow::ensure!(
        // The session of a member's process is its lead's.
        args.member.is_member() || matches!(start, Start::Resume(_)) || !transcript.exists(),
        "the session {id} exists already\nhelp: --resume {id} continues it"
    );
    let redaction = match surroundings.env.get("CENTURION_REDACT") {
        Some("0" | "false" | "off" | "no") => Redaction::Off,
        None if !settings.redact_transcripts() => Redaction::Off,
        _ => Redaction::On,
    };
    let is_kept = !session.no_session_persistence;
    // A person may go back at any time.
    let keeps_files = surroundings.env.is_on("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING")
        || settings.file_checkpointing_enabled().unwrap_or(is_interactive);
    let storage = Storage {
        output_dir: if is_kept {
            transcript.with_extension("").join("tool-results")
        } else {
            surroundings.scratch.clone()
        },
        file_history: (is_kept && keeps_files).then(|| sessions::file_history(&transcript)),
        transcript: is_kept.then_some(transcript),
        resumed: resumed.map(|(_, path)| path),
        resumed_at: session.resume_session_at.map(|record| {
            let drops = session.resume_drops_turn;
            ResumePoint { record, drops }
        }),
        redaction,
        mirror: None,
    };
    Ok((start, storage))
}

fn memory(
    surroundings: &Surroundings,
    env: &Env,
    settings: &Settings,
    (levels, read_rules): (LevelChoice, ReadRules),
) -> Option<Memory> {
    if env.is_on("CLAUDE_CODE_DISABLE_CLAUDE_MDS") {
        return None;
    }
    let memory = Memory::load(MemorySources {
        cwd: surroundings.cwd.clone(),
        repo_root: repo_root(&surroundings.cwd),
        home: surroundings.home.clone(),
        managed_dir: Some(PathBuf::from(MANAGED)),
        levels,
        config_dirs: surroundings.dirs.config_dirs().to_vec(),
        excludes: settings.memory_excludes(),
        follow_links_outside: settings.standing() == RepositoryTrust::Full,
        read_rules,
        managed_text: settings.managed_memory().map(|it| (it.origin.file.to_path_buf(), it.value)),
        ..MemorySources::default()
    });
    for problem in &memory.problems {
        note(&format!("warning: {problem}"));
    }
    Some(memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use centurion_config::paths::Dirs;
    use centurion_config::settings::SettingsSources;

    #[test]
    fn the_administrators_text_comes_before_all_files() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let managed = root.join("managed-settings.json");
        std::fs::write(&managed, "{\"claudeMd\": \"Ask twice.\"}").unwrap();
        std::fs::write(root.join("CLAUDE.md"), "Ask once.").unwrap();
        let sources = SettingsSources { managed_dir: Some(root.clone()), ..Default::default() };
        let settings = Settings::load(sources, RepositoryTrust::Untrusted);
        let env = Arc::new(Env::default());
        let surroundings = Surroundings {
            env: Arc::clone(&env),
            home: None,
            cwd: root.clone(),
            config_root: None,
            dirs: Dirs::new(&env, Some(&root)).unwrap(),
            scratch: root.join("scratch"),
        };
        let memory =
            memory(&surroundings, &env, &settings, (LevelChoice::default(), ReadRules::default()))
                .unwrap();
        let said: Vec<&str> = memory.files.iter().map(|file| file.content.trim()).collect();
        assert_eq!(said, ["Ask twice.", "Ask once."]);
        assert_eq!(memory.files[0].path, managed);
        let text = memory.render().unwrap();
        assert!(text.contains("instructions of this machine's administrator"), "{text}");
    }
}
