//! From flags and surroundings to what the engine needs. The one place that looks at the environment.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use centurion_config::memory::{Memory, MemorySources};
use centurion_config::paths::{Dirs, repo_root};
use centurion_engine::{
    Answerer, Bypass, Options, PromptOptions, Redaction, RequestSettings, Start, Storage,
    StructuredOutput, ToolChoice, View,
};
use centurion_model::Model;
use centurion_permissions::{Mode, Policy, Rule, RuleKind, RuleOrigin};
use centurion_protocol::{Env, SessionId, SystemWorld, Thinking, World};
use centurion_tools::builtin;
use centurion_tools::guard::GuardProgram;
use jiff::tz::TimeZone;

use crate::args::RunArgs;
use crate::output::note;
use crate::sessions;

/// Where managed instructions and settings live.
const MANAGED: &str = "/etc/claude-code";

/// What the program found when it started.
pub(crate) struct Surroundings {
    pub(crate) env: Arc<Env>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) cwd: PathBuf,
    pub(crate) dirs: Dirs,
    /// For what must not stay: made when something is put there.
    pub(crate) scratch: PathBuf,
}

impl Drop for Surroundings {
    fn drop(&mut self) {
        // Most runs never made it.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

impl Surroundings {
    pub(crate) fn observe() -> anyhow::Result<Self> {
        let env = Env::new(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }));
        let home = std::env::home_dir();
        let cwd = std::env::current_dir()
            .and_then(|cwd| cwd.canonicalize())
            .context("the working directory cannot be found")?;
        let dirs = Dirs::new(&env, home.as_deref())?;
        let scratch = std::env::temp_dir().join(format!("centurion-{}", SystemWorld.uuid()));
        Ok(Self { env: Arc::new(env), home, cwd, dirs, scratch })
    }

    /// Whether what goes to standard error may have colours.
    pub(crate) fn paints(&self) -> bool {
        std::io::stderr().is_terminal() && self.env.get("NO_COLOR").is_none()
    }
}

/// Logs to standard error, if that is wanted.
pub(crate) fn start_logging(filter: Option<&str>) -> anyhow::Result<()> {
    let Some(filter) = filter else { return Ok(()) };
    let filter = tracing_subscriber::EnvFilter::try_new(filter)
        .with_context(|| format!("`{filter}` is no log filter"))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    Ok(())
}

/// Everything a session is made from.
pub(crate) async fn options(
    args: &RunArgs,
    surroundings: &Surroundings,
    world: Arc<dyn World>,
    view: Arc<dyn View>,
    answerer: Option<Arc<dyn Answerer>>,
) -> anyhow::Result<Options> {
    let env = &surroundings.env;
    let cwd = surroundings.cwd.clone();
    let additional_directories = additional_directories(&args.add_dir)?;
    let policy = policy(args, surroundings, &additional_directories)?;
    let tools = args.tool_choice();
    let unknown = tools.unknown(&builtin());
    // Where no name is known the session will not open, and says the same.
    if matches!(&tools, ToolChoice::Only(names) if !unknown.is_empty() && unknown.len() < names.len())
    {
        note(&format!("warning: --tools: there is no tool named {}", unknown.join(", ")));
    }
    let structured = args.json_schema.as_deref().map(structured).transpose()?;
    let prompt = prompt_options(args)?;
    let (start, storage) = storage(args, surroundings, &*world)?;
    let model = Model::open(args.model.model.as_deref(), env, Arc::clone(&world)).await?;
    let settings = request_settings(args, env, &model)?;
    let repository = repo_root(&cwd);
    let memory = memory(surroundings, repository.as_deref());
    Ok(Options {
        start,
        storage,
        repository,
        additional_directories,
        world,
        time_zone: TimeZone::system(),
        model,
        restores_model: args.model.model.is_none() && env.get("ANTHROPIC_MODEL").is_none(),
        settings,
        prompt,
        memory,
        tools,
        policy,
        bypass: bypass(args, env),
        max_budget: args.model.max_budget_usd,
        structured,
        answerer,
        view,
        guard: guard()?,
        entrypoint: env.get("CLAUDE_CODE_ENTRYPOINT").unwrap_or("cli").to_owned(),
        env: Arc::clone(env),
        cwd,
    })
}

/// Commands run below this very program.
pub(crate) fn guard() -> anyhow::Result<GuardProgram> {
    let program = std::env::current_exe().context("this program's own file cannot be found")?;
    Ok(GuardProgram::new(program))
}

fn additional_directories(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
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

fn policy(
    args: &RunArgs,
    surroundings: &Surroundings,
    added: &[PathBuf],
) -> anyhow::Result<Policy> {
    let mode = args.mode();
    if let (Mode::BypassPermissions, Bypass::Refused(reason)) =
        (mode, bypass(args, &surroundings.env))
    {
        bail!("{reason}");
    }
    let permissions = &args.permissions;
    let cwd = surroundings.cwd.clone();
    let home =
        surroundings.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone()));
    Ok(Policy {
        mode,
        allow: rules(&permissions.allowed_tools, RuleKind::Allow, "--allowedTools")?,
        ask: Vec::new(),
        deny: rules(&permissions.disallowed_tools, RuleKind::Deny, "--disallowedTools")?,
        readable: Vec::new(),
        project_root: cwd.clone(),
        home,
        directories: std::iter::once(cwd.clone()).chain(added.iter().cloned()).collect(),
        cwd,
    })
}

/// The rules of a flag. One that can never match is said, since its author expects something of it.
fn rules(texts: &[String], kind: RuleKind, flag: &str) -> anyhow::Result<Vec<Rule>> {
    let mut all = Vec::new();
    for text in texts {
        let rules = Rule::parse_list(text, &RuleOrigin::Flag)
            .with_context(|| format!("{flag} `{text}`"))?;
        for warning in rules.iter().filter_map(|rule| rule.warning(kind)) {
            note(&format!("warning: {flag}: {warning}"));
        }
        all.extend(rules);
    }
    Ok(all)
}

/// Whether permissions may be skipped in this run.
fn bypass(args: &RunArgs, env: &Env) -> Bypass {
    if rustix::process::geteuid().is_root() && !env.is_on("IS_SANDBOX") {
        return Bypass::Refused(
            "permissions cannot be skipped as root: every command would run with full rights\n\
             help: run as another user, or set IS_SANDBOX=1 inside a container that may be lost",
        );
    }
    match args.mode() {
        Mode::BypassPermissions => Bypass::Enabled,
        _ => Bypass::Refused("this run was not started with leave to skip permissions"),
    }
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
    std::fs::read_to_string(path).with_context(|| format!("{flag} {}", path.display()))
}

fn prompt_options(args: &RunArgs) -> anyhow::Result<PromptOptions> {
    let from_file = |path: &Option<PathBuf>, flag: &str| {
        path.as_deref().map(|path| read_text(path, flag)).transpose()
    };
    let model = &args.model;
    let replace = from_file(&model.system_prompt_file, "--system-prompt-file")?;
    let append = from_file(&model.append_system_prompt_file, "--append-system-prompt-file")?;
    Ok(PromptOptions {
        replace: replace.or_else(|| model.system_prompt.clone()),
        append: append.or_else(|| model.append_system_prompt.clone()),
    })
}

fn request_settings(args: &RunArgs, env: &Env, model: &Model) -> anyhow::Result<RequestSettings> {
    let effort = match env.get("CLAUDE_CODE_EFFORT_LEVEL") {
        Some("auto") | None => args.model.effort,
        Some(level) => {
            Some(level.parse().map_err(anyhow::Error::msg).context("CLAUDE_CODE_EFFORT_LEVEL")?)
        }
    };
    Ok(RequestSettings {
        model: model.name().to_owned(),
        fallback_models: args.model.fallback_model.iter().map(|name| model.resolve(name)).collect(),
        effort,
        thinking: Thinking::Auto,
        max_turns: match args.model.max_turns {
            None => limit(env, "CLAUDE_CODE_MAX_TURNS")?,
            given => given,
        },
        partial_messages: args.format.include_partial_messages,
        concurrent_calls: limit(env, "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY")?.unwrap_or(10),
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

/// Which session this is, and where it is kept.
fn storage(
    args: &RunArgs,
    surroundings: &Surroundings,
    world: &dyn World,
) -> anyhow::Result<(Start, Storage)> {
    let session = &args.session;
    let (dirs, cwd) = (&surroundings.dirs, &surroundings.cwd);
    let resumed: Option<(SessionId, PathBuf)> = if let Some(id) = session.resume {
        let id = id.ok_or_else(|| sessions::which(dirs, cwd))?;
        let path = sessions::find(dirs, cwd, id).with_context(|| {
            format!(
                "there is no session {id}\nhelp: centurion sessions lists those of this directory"
            )
        })?;
        Some((id, path))
    } else if session.continue_last {
        // Nothing to go on with is a new session, as people expect of a habit.
        sessions::newest(&dirs.project_dir(cwd))
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
        matches!(start, Start::Resume(_)) || !transcript.exists(),
        "the session {id} exists already\nhelp: --resume {id} goes on with it"
    );
    let redaction = match surroundings.env.get("CENTURION_REDACT") {
        Some("0" | "false" | "off" | "no") => Redaction::Off,
        _ => Redaction::On,
    };
    let storage = Storage {
        output_dir: if session.no_session_persistence {
            surroundings.scratch.clone()
        } else {
            dirs.session_dir(cwd, id).join("tool-results")
        },
        transcript: (!session.no_session_persistence).then_some(transcript),
        resumed: resumed.map(|(_, path)| path),
        redaction,
    };
    Ok((start, storage))
}

fn memory(surroundings: &Surroundings, repository: Option<&Path>) -> Option<Memory> {
    if surroundings.env.is_on("CLAUDE_CODE_DISABLE_CLAUDE_MDS") {
        return None;
    }
    let memory = Memory::load(MemorySources {
        cwd: surroundings.cwd.clone(),
        repo_root: repository.map(Path::to_owned),
        home: surroundings.home.clone(),
        managed_dir: Some(PathBuf::from(MANAGED)),
        config_dirs: surroundings.dirs.config_dirs().to_vec(),
        ..MemorySources::default()
    });
    for problem in &memory.problems {
        note(&format!("warning: {problem}"));
    }
    Some(memory)
}
