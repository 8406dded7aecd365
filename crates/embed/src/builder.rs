//! The description of a session, and opening it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::agents::AgentSources;
use centurion_config::skills::SkillSources;
use centurion_engine::builtin::{self, Presence, Switches};
use centurion_engine::{
    AgentOptions, Base, Bypass, Definitions, Extensions, Options, PermissionOptions, PromptOptions,
    Session as EngineSession, ToolChoice, View,
};
use centurion_permissions::{Rule, RuleOrigin, all_tool_names, canonical_tool_name};
use centurion_protocol::{Env, SystemWorld, World};
use centurion_tools::DynTool;
use centurion_tools::guard::GuardProgram;

use crate::agent::definitions;
use crate::hook::Closures;
use crate::inbox;
use crate::permission::{AskCallback, CallbackAnswerer};
use crate::storage::{Beginning, Files};
use crate::tool::engine_tool;
use crate::{
    Agent, Error, ErrorKind, Guard, HookCall, HookEvent, HookReply, Mode, Model, PermissionAsk,
    PermissionReply, Session, Tool,
};

/// Tools that a session of a program never has. Schedules would have it work between prompts; the others put questions
/// or plans to a person, which no callback about permissions can answer.
const TAKEN_AWAY: [&str; 6] =
    ["AskUserQuestion", "CronCreate", "CronDelete", "CronList", "EnterPlanMode", "ExitPlanMode"];

/// The tool that needs a guard.
const SHELL: &str = "Bash";

/// The description of a [`Session`]. Without more than a model, a session works in an empty directory of its own, has no
/// shell and no other agents, keeps nothing, and may only read.
#[must_use = "a description does nothing until it is opened"]
pub struct SessionBuilder {
    model: Model,
    directory: Option<PathBuf>,
    environment: Env,
    transcripts: Option<PathBuf>,
    beginning: Beginning,
    guard: Option<Guard>,
    prompt: PromptOptions,
    tools: Tools,
    permission: Permission,
    agents: Agents,
    hooks: Closures,
    limits: Limits,
    streams_text: bool,
}

#[derive(Default)]
struct Tools {
    own: Vec<Arc<dyn DynTool>>,
    /// The built-in ones, unless all count.
    chosen: Option<Vec<String>>,
}

#[derive(Default)]
struct Permission {
    mode: Mode,
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    callback: Option<AskCallback>,
}

#[derive(Default)]
struct Agents {
    own: Vec<Agent>,
    has_built_in: bool,
}

#[derive(Default)]
struct Limits {
    budget: Option<f64>,
    turns: Option<u32>,
}

impl SessionBuilder {
    pub(crate) fn new(model: Model) -> Self {
        Self {
            model,
            directory: None,
            environment: Env::default(),
            transcripts: None,
            beginning: Beginning::New,
            guard: None,
            prompt: PromptOptions::default(),
            tools: Tools::default(),
            permission: Permission::default(),
            agents: Agents::default(),
            hooks: Closures::default(),
            limits: Limits::default(),
            streams_text: false,
        }
    }

    /// The directory that agents work in.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Some(path.into());
        self
    }

    /// The variables of the environment, such as `std::env::vars()`: keys of models, and what commands see.
    pub fn environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.environment = Env::new(variables);
        self
    }

    /// Keeps the transcript of the session in this directory, for [`SessionBuilder::resume`]. Nothing is kept otherwise.
    pub fn transcripts(mut self, directory: impl Into<PathBuf>) -> Self {
        self.transcripts = Some(directory.into());
        self
    }

    /// Continues the session of this id, whose transcript is in [`SessionBuilder::transcripts`].
    pub fn resume(mut self, id: impl Into<String>) -> Self {
        self.beginning = Beginning::Resume(id.into());
        self
    }

    /// A new session that begins with the history of another; see [`SessionBuilder::resume`].
    pub fn fork(mut self, id: impl Into<String>) -> Self {
        self.beginning = Beginning::Fork(id.into());
        self
    }

    /// Lets agents run shell commands, as far as rules and answers do. They run below this guard.
    pub fn guard(mut self, guard: Guard) -> Self {
        self.guard = Some(guard);
        self
    }

    /// The system prompt of the main agent, in the place of the usual one.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt.replace = Some(text.into());
        self
    }

    /// Added to the end of the system prompt.
    pub fn append_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt.append = Some(text.into());
        self
    }

    /// The built-in tools that there are, by their names; all without this. Tools of the program do not count.
    pub fn built_in_tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools.chosen = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a tool of the program.
    pub fn tool<T: Tool<State = ()>>(self) -> Self {
        self.tool_with::<T>(())
    }

    /// Adds a tool of the program whose calls share a value, such as a connection. An `Arc` is a state, too.
    pub fn tool_with<T: Tool>(mut self, state: T::State) -> Self {
        self.tools.own.push(engine_tool::<T>(state));
        self
    }

    /// The calls that run without a question.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.permission.mode = mode;
        self
    }

    /// Lets calls run without a question: `Add`, `Bash(git log *)`, `Edit(src/**)`.
    pub fn allow(mut self, rule: impl Into<String>) -> Self {
        self.permission.allow.push(rule.into());
        self
    }

    /// Has calls asked about, whatever allows them.
    pub fn always_ask(mut self, rule: impl Into<String>) -> Self {
        self.permission.ask.push(rule.into());
        self
    }

    /// Forbids calls, for all agents. No other rule, hook or answer lifts it.
    pub fn deny(mut self, rule: impl Into<String>) -> Self {
        self.permission.deny.push(rule.into());
        self
    }

    /// Answers questions about calls. Without a callback they are denied with the reason.
    pub fn on_permission<F, A>(mut self, callback: F) -> Self
    where
        F: Fn(PermissionAsk) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionReply> + Send + 'static,
    {
        self.permission.callback = Some(Arc::new(move |ask| Box::pin(callback(ask))));
        self
    }

    /// Adds an agent that others can start.
    pub fn agent(mut self, agent: Agent) -> Self {
        self.agents.own.push(agent);
        self
    }

    /// Adds the built-in agents: general-purpose, Explore, Plan and the others.
    pub fn built_in_agents(mut self) -> Self {
        self.agents.has_built_in = true;
        self
    }

    /// Adds a hook. The matcher is a name (`Edit`), several (`Edit|Write`) or a regular expression; an empty one matches
    /// everything.
    pub fn hook<F, A>(mut self, event: HookEvent, matcher: impl Into<String>, callback: F) -> Self
    where
        F: Fn(HookCall) -> A + Send + Sync + 'static,
        A: Future<Output = HookReply> + Send + 'static,
    {
        self.hooks.add(event, matcher.into(), callback);
        self
    }

    /// The most that all agents together may spend, in dollars.
    pub fn max_budget_usd(mut self, dollars: f64) -> Self {
        self.limits.budget = Some(dollars);
        self
    }

    /// The most requests of the main agent for one prompt.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.limits.turns = Some(turns);
        self
    }

    /// Gives texts piece by piece, too: [`Event::TextDelta`](crate::Event::TextDelta).
    pub fn streams_text(mut self) -> Self {
        self.streams_text = true;
        self
    }

    /// Opens the session. It runs on the tokio runtime that this is called in, which needs its timer and its I/O.
    pub async fn open(self) -> Result<Session, Error> {
        let world: Arc<dyn World> = Arc::new(SystemWorld);
        let files = Files::new(self.transcripts.as_deref(), &self.beginning, &*world)?;
        let cwd = directory(self.directory.as_deref(), &files)?;
        check_names(&self.tools.own)?;
        let definitions = self.agents.definitions(&cwd, &world)?;
        let env = Arc::new(self.environment);
        let model = self.model.open(&env, Arc::clone(&world)).await?;
        let has_guard = self.guard.is_some();
        // Without a guard no tool runs commands, and what else would run one fails to start.
        let guard = self.guard.map_or_else(|| GuardProgram::new(""), Guard::into_program);
        let base = Base { env, world, ..Base::new(cwd.clone(), guard) };
        let (outlet, inbox) = inbox::channel();
        let (hooks, host) = self.hooks.into_parts();
        let mut options = Options {
            start: files.start,
            permission: self.permission.options(&cwd, has_guard)?,
            prompt: self.prompt,
            tools: choice(self.tools.chosen, &self.tools.own),
            max_budget: self.limits.budget,
            answerer: self.permission.callback.map(|it| Arc::new(CallbackAnswerer(it)) as Arc<_>),
            view: Arc::new(outlet.clone()) as Arc<dyn View>,
            extensions: Extensions {
                hooks,
                hook_host: Some(host),
                tools: self.tools.own,
                ..Extensions::default()
            },
            agents: agent_options(definitions),
            ..Options::new(model, base, files.storage)
        };
        options.settings.max_turns = self.limits.turns;
        options.settings.partial_messages = self.streams_text;
        let opened = EngineSession::open(options).await;
        let opened = opened
            .map_err(|error| Error::caused(ErrorKind::Configuration, "the session", error))?;
        Ok(Session::start(opened, (outlet, inbox), files.scratch))
    }
}

impl Permission {
    fn options(&self, cwd: &Path, has_guard: bool) -> Result<PermissionOptions, Error> {
        let mut options = PermissionOptions::in_directory(cwd);
        let policy = &mut options.policy;
        policy.mode = self.mode.engine();
        policy.allow = rules(&self.allow)?.into();
        policy.ask = rules(&self.ask)?.into();
        let shell = (!has_guard).then_some(SHELL);
        let taken = TAKEN_AWAY.into_iter().chain(shell).map(str::to_owned);
        let denied: Vec<String> = self.deny.iter().cloned().chain(taken).collect();
        policy.deny = rules(&denied)?.into();
        if self.mode == Mode::BypassPermissions {
            options.bypass = Bypass::Enabled;
        }
        Ok(options)
    }
}

impl Agents {
    fn definitions(&self, cwd: &Path, world: &Arc<dyn World>) -> Result<Arc<Definitions>, Error> {
        // The guide is for people who use the program.
        let switches = Switches::from(&Env::default(), Vec::new(), Presence::Headless);
        let switches = Switches { sdk_entrypoint: true, ..switches };
        let sources = AgentSources {
            flag: definitions(&self.own, cwd)?,
            built_in: if self.has_built_in { builtin::agents(&switches) } else { Vec::new() },
            ..AgentSources::default()
        };
        Ok(Definitions::new(sources, SkillSources::default(), Arc::clone(world)))
    }
}

fn agent_options(definitions: Arc<Definitions>) -> AgentOptions {
    let mut options = AgentOptions::new(definitions);
    options.rules.interrupt_ends_background = true;
    options.rules.forwards_text = true;
    options
}

/// The directory of the session without links: the program's, or an empty one of its own.
fn directory(chosen: Option<&Path>, files: &Files) -> Result<PathBuf, Error> {
    let unusable = |path: &Path, error| {
        Error::caused(ErrorKind::Configuration, &format!("the directory {}", path.display()), error)
    };
    let path = if let Some(path) = chosen {
        path.to_owned()
    } else {
        let own = files.directory.join("work");
        std::fs::create_dir_all(&own).map_err(|error| unusable(&own, error))?;
        own
    };
    let path = path.canonicalize().map_err(|error| unusable(&path, error))?;
    if !path.is_dir() {
        let message = format!("{} is not a directory", path.display());
        return Err(Error::new(ErrorKind::Configuration, message));
    }
    Ok(path)
}

fn rules(texts: &[String]) -> Result<Vec<Rule>, Error> {
    let parsed = texts.iter().map(|text| Rule::parse(text, RuleOrigin::Flag));
    let parsed: Result<_, _> = parsed.collect();
    parsed.map_err(|error| Error::caused(ErrorKind::Configuration, "a rule", error))
}

/// The choice of tools, with those of the program.
fn choice(chosen: Option<Vec<String>>, own: &[Arc<dyn DynTool>]) -> ToolChoice {
    match chosen {
        None => ToolChoice::All,
        Some(names) => {
            let own = own.iter().map(|tool| tool.name().to_owned());
            ToolChoice::Only(names.into_iter().chain(own).collect())
        }
    }
}

/// Checks that rules can mean each tool of the program, and no other by its name.
fn check_names(own: &[Arc<dyn DynTool>]) -> Result<(), Error> {
    for (index, tool) in own.iter().enumerate() {
        let name = tool.name();
        let is_form = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        let is_known = all_tool_names().any(|known| known == canonical_tool_name(name));
        let reason = if name.is_empty() || name.len() > 64 || !name.chars().all(is_form) {
            "a name has up to 64 letters, digits, `_` and `-`"
        } else if is_known || name.starts_with("mcp__") {
            "the name is taken"
        } else if own[..index].iter().any(|other| other.name() == name) {
            "there are two tools of this name"
        } else {
            continue;
        };
        return Err(Error::new(ErrorKind::Configuration, format!("the tool `{name}`: {reason}")));
    }
    Ok(())
}
