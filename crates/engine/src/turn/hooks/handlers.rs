//! Hooks that a model, an agent, a server or the host carries out.

use std::sync::{Arc, Weak};

use centurion_hooks::{AGENT_HOOK_TURNS, Delegate, DelegateError, DelegateFuture, ModelRequest};
use centurion_mcp::CallOptions;
use centurion_model::{ProviderKind, SystemPrompt};
use centurion_permissions::{Mode, OwnMode, Role};
use centurion_protocol::{Block, Conversation, Outcome, ToolUseId};
use centurion_tools::{DynTool, ReadState, builtin};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::agent::hooks::AgentHooks;
use crate::agent::lead_link::LeadLink;
use crate::agent::member_frames::FunctionCall;
use crate::agent::shared::Shared;
use crate::agent::skills::AgentSkills;
use crate::agent::{AgentParts, AgentRequests, KeptWork};
use crate::definition::model_check::ModelRefusal;
use crate::definition::request_settings::RequestSettings;
use crate::definition::resolve::{Reach, ToolView};
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::money::budget::Limit;
use crate::toolset::servers::Servers;
use crate::toolset::toolbox::{Offer, ToolChoice, Toolbox};
use crate::turn::dispatch::Dispatch;
use crate::turn::driver::{Driver, Run};
use centurion_journal::Journal;

/// The system prompt of a judge.
const JUDGE: &str = "You are asked to judge one thing in the work of a coding agent. Answer with one JSON \
    object and nothing else: {\"ok\": true}, or {\"ok\": false, \"reason\": \"what is wrong and what to do\"}.";

/// The reason why a hook was not carried out.
#[derive(Debug, Error)]
enum HandlerError {
    #[error("the session has ended")]
    SessionEnded,
    #[error("no host is there to be called")]
    NoHost,
    #[error("the hook cannot use the model `{name}`: {source}")]
    Model { name: String, source: ModelRefusal },
    #[error("the model did not answer: {outcome} {}", .errors.join("; "))]
    NoAnswer { outcome: Outcome, errors: Vec<String> },
    #[error("{0}")]
    ToolFailed(String),
}

/// The tools that an agent of a hook looks around with.
const LOOKING: [&str; 3] = ["Read", "Grep", "Glob"];

/// The program that drives this one: it has functions that hooks can be.
pub trait HookHost: Send + Sync {
    /// Calls a function; gives the JSON that a command would print. Dropping the future withdraws the call.
    fn call<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value>;
}

/// A member in a process of its own: its lead's process is the one that the host hears.
impl HookHost for LeadLink {
    fn call<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        let function =
            FunctionCall { id: id.to_owned(), input: input.clone(), call: call.cloned() };
        Box::pin(async move { Ok(self.call_function(function).await?) })
    }
}

/// Carries out the hooks of a session that need a model, a server or the host.
pub(crate) struct Handlers {
    /// Weak, because the session owns the hooks.
    pub(crate) shared: Weak<Shared>,
    pub(crate) host: Option<Arc<dyn HookHost>>,
}

impl Handlers {
    /// Has a model judge, with tools to look around or without.
    async fn judge(
        &self,
        request: ModelRequest<'_>,
        tools: Vec<Arc<dyn DynTool>>,
        max_turns: u32,
    ) -> Result<String, DelegateError> {
        let shared = self.shared.upgrade().ok_or(HandlerError::SessionEnded)?;
        let mut driver = Self::driver(&shared, &request, tools, max_turns)?;
        let item = Item {
            id: shared.world.record_id(),
            priority: Priority::Now,
            addressee: None,
            content: vec![Block::Text(request.prompt)],
            origin: Origin::Hook,
            manner: Manner::default(),
        };
        let mut run = Run::new();
        // The task that waits for the hook drops this future to end it.
        let judged = driver.run(&mut run, &[item], &CancellationToken::new()).await;
        judged?;
        match run.outcome {
            Outcome::Completed => Ok(run.text),
            outcome => Err(HandlerError::NoAnswer { outcome, errors: run.errors }.into()),
        }
    }

    /// The model that judges: the one that the hook names, which must be one that may be used.
    fn model(shared: &Shared, asked: Option<&str>) -> Result<String, HandlerError> {
        let check = |name: &str| (shared.delegation.builder.check_model)(name);
        match (asked.map(|name| shared.model.resolve(name)), shared.model.provider_kind()) {
            (Some(name), _) => match check(&name) {
                Err(source) => Err(HandlerError::Model { name, source }),
                Ok(()) => Ok(name),
            },
            // A judge need not be the best model there is, but it must be one that is there.
            (None, ProviderKind::Anthropic) if check("haiku").is_ok() => {
                Ok(shared.model.resolve("haiku"))
            }
            (None, _) => Ok(shared.model.name().to_owned()),
        }
    }

    fn driver(
        shared: &Arc<Shared>,
        request: &ModelRequest<'_>,
        tools: Vec<Arc<dyn DynTool>>,
        max_turns: u32,
    ) -> Result<Driver, DelegateError> {
        let model = Self::model(shared, request.model)?;
        let looks = Role { only_reads: true, ..Role::default() };
        let permissions = Arc::new(shared.permissions.child(looks, OwnMode::Given(Mode::DontAsk)));
        let quiet = Arc::new(shared.for_side_question(Arc::clone(&permissions)));
        let offer = Offer {
            choice: &ToolChoice::All,
            permissions: &permissions,
            has_answerer: false,
            searches_web: false,
            plans_for_lead: false,
        };
        let view = ToolView::all(Reach::Main);
        let toolbox = Toolbox::new(tools, view, &offer, None, 0)?;
        let builder = &shared.delegation.builder;
        let settings = RequestSettings {
            model,
            max_turns: Some(max_turns),
            concurrent_calls: 10,
            ..RequestSettings::default()
        };
        let agent = builder.agent(
            &quiet,
            AgentParts {
                identity: Arc::default(),
                permissions,
                servers: Servers::none(),
                budget: quiet.budget.child(Limit::default()),
                slot: None,
                task: None,
                startable: None,
                brought_hooks: Vec::new(),
                hooks: AgentHooks::none(),
                cwd: request.common.cwd.clone(),
                isolation: None,
                read_state: ReadState::default(),
                kept: KeptWork::default(),
                notes: None,
                requests: AgentRequests::new(&settings, None),
                skills: AgentSkills::new(Vec::new(), &[], Vec::new()),
            },
        );
        let dispatch =
            Dispatch { toolbox, agent, broker: Arc::clone(&quiet.broker), allows_sandboxed: false };
        let journal = Journal::nowhere(builder.stamp(), Arc::clone(&shared.world));
        let system = SystemPrompt::new(vec![JUDGE.to_owned()]);
        Ok(Driver::new(quiet, journal, dispatch, Conversation::default(), system, settings))
    }
}

impl Delegate for Handlers {
    fn prompt<'a>(&'a self, request: ModelRequest<'a>) -> DelegateFuture<'a, String> {
        Box::pin(self.judge(request, Vec::new(), 1))
    }

    fn agent<'a>(&'a self, request: ModelRequest<'a>) -> DelegateFuture<'a, String> {
        let tools = builtin().into_iter().filter(|tool| LOOKING.contains(&tool.name())).collect();
        Box::pin(self.judge(request, tools, AGENT_HOOK_TURNS))
    }

    fn mcp_tool<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Map<String, Value>,
    ) -> DelegateFuture<'a, String> {
        Box::pin(async move {
            let shared = self.shared.upgrade().ok_or(HandlerError::SessionEnded)?;
            let reached = shared.servers.reach(server).await;
            let output = reached?.call(tool, input, &CallOptions::default()).await?;
            if output.is_error {
                return Err(HandlerError::ToolFailed(output.text()).into());
            }
            Ok(output.text())
        })
    }

    fn callback<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        match &self.host {
            Some(host) => host.call(id, input, call),
            None => Box::pin(async { Err(HandlerError::NoHost.into()) }),
        }
    }
}
