//! The one way to build an agent of a session, and its driver.

use std::path::Path;
use std::sync::{Arc, Weak};

use centurion_config::memory::MemoryTracker;
use centurion_journal::Journal;
use centurion_model::SystemPrompt;
use centurion_protocol::{Conversation, ToolSpecs};
use centurion_tools::{
    AgentCheckpoints, Checkpoints, DynTool, FileKeeper, Shells, ShellsConfig, Workspace,
};
use parking_lot::Mutex;

use crate::agent::builder::AgentBuilder;
use crate::agent::hooks::reminder;
use crate::agent::listing::Listing;
use crate::agent::shared::Shared;
use crate::agent::{Agent, AgentParts};
use crate::definition::identity::Identity;
use crate::definition::request_settings::RequestSettings;
use crate::definition::resolve::ToolView;
use crate::delegate::host::AgentHost;
use crate::policy::permissions::Permissions;
use crate::toolset::structured::StructuredOutput;
use crate::toolset::toolbox::{Offer, Toolbox, ToolboxError};
use crate::turn::dispatch::Dispatch;
use crate::turn::driver::{Driver, EarlierState, Preamble, UnansweredCalls};

/// The variable for the most bytes that one command may write before it is ended.
const MAX_OUTPUT_VARIABLE: &str = "CENTURION_MAX_COMMAND_OUTPUT_BYTES";

/// The tool that an agent writes its notes with.
pub(crate) const WRITE_TOOL: &str = "Write";

/// The tools that the program itself calls for an agent, such as the commands of a skill.
const PROGRAM_TOOLS: [&str; 2] = ["Bash", "Read"];

/// The parts of a driver, beside its agent.
pub(crate) struct DriverParts {
    pub(crate) view: ToolView,
    pub(crate) system: SystemPrompt,
    pub(crate) settings: RequestSettings,
    pub(crate) journal: Arc<Journal>,
    pub(crate) conversation: Conversation,
    pub(crate) earlier: EarlierState,
    pub(crate) structured: Option<StructuredOutput>,
    /// The definitions of tools that a fork sends.
    pub(crate) fixed_tools: Option<ToolSpecs>,
    /// True if it is told what the instruction files say.
    pub(crate) instructions: bool,
    /// The section of its system prompt about its notes, for an agent that can write them.
    pub(crate) notes_section: Option<String>,
    /// Whether that section stands in the first message instead.
    pub(crate) tells_notes_aside: bool,
    /// Texts before the first input of a new conversation.
    pub(crate) context: Vec<String>,
}

impl AgentBuilder {
    /// All tools that an agent could have, in their order, with what they say about agents now.
    fn candidates(
        &self,
        shared: &Shared,
        agent: &Arc<Agent>,
        view: &ToolView,
    ) -> (Vec<Arc<dyn DynTool>>, u64) {
        let listing = Listing::of(&shared.delegation, &agent.tool_scope());
        let hash = Listing::hash(listing.as_ref());
        let mut tools = self.tools.clone();
        tools.push((self.engine_tools.searching)(agent));
        // Tools about the team run in the lead's process, which knows the member and no agent below it.
        let is_below_member = shared.delegation.lead.is_some() && agent.identity.team.is_none();
        if !is_below_member && (listing.is_some() || agent.identity.team.is_some()) {
            tools.extend((self.engine_tools.reaching)(agent));
        }
        if let Some(listing) = listing {
            tools.push((self.engine_tools.starting)(Arc::clone(agent), listing));
            tools.extend(self.has_repository().then(|| (self.engine_tools.merging)(agent)));
        }
        if view.admits_scheduling(agent.identity.is_main()) && shared.lets_models_schedule() {
            tools.extend((self.engine_tools.scheduling)(agent));
        }
        if shared.delegation.definitions.has_skills_for_models() {
            tools.push((self.engine_tools.invoking)(agent));
        }
        if shared.delegation.has_tasks() && !is_below_member {
            tools.extend((self.engine_tools.sharing)(agent));
        }
        if agent.identity.is_main() && shared.delegation.team.is_some() {
            tools.extend((self.engine_tools.leading)(agent));
        }
        if self.has_repository() && agent.isolation.is_none() {
            tools.extend((self.engine_tools.moving)(agent));
        }
        if tools.len() > self.tools.len() {
            tools.sort_by(|one, other| one.name().cmp(other.name()));
        }
        (tools, hash)
    }

    /// The keeper of what files were: for a member in a process of its own it is the lead's.
    fn file_keeper(&self, shared: &Shared, identity: &Identity) -> Option<Arc<dyn FileKeeper>> {
        let of_agent = |checkpoints: Arc<Checkpoints>| match identity.path.as_slice() {
            [] => checkpoints as Arc<dyn FileKeeper>,
            path => Arc::new(AgentCheckpoints::new(checkpoints, path.join(" ▸ "))),
        };
        let own = self.files.checkpoints.clone().map(of_agent);
        own.or_else(|| Some(shared.delegation.lead.clone()? as Arc<dyn FileKeeper>))
    }

    /// Builds an agent of a session.
    pub(crate) fn agent(&self, shared: &Arc<Shared>, parts: AgentParts) -> Arc<Agent> {
        let shells = Arc::new(self.shells(&parts.cwd));
        shared.note_shells(&shells);
        Arc::new_cyclic(|agent| {
            let permissions = Arc::clone(&parts.permissions);
            let (read, denied, hosts) =
                (Arc::clone(&permissions), Arc::clone(&permissions), permissions);
            let isolation = parts.isolation.as_ref();
            let workspace = Workspace {
                root: Mutex::new(parts.cwd.clone()),
                cwd: Mutex::new(parts.cwd.clone()),
                read_state: parts.read_state.clone(),
                may_read: Arc::new(move |path| !read.denies_reading(path)),
                find_denied: Arc::new(move || denied.find_denied()),
                host_rule: Arc::new(move |url| hosts.host_rule(url)),
                sandbox: isolation.map_or_else(
                    || self.confinement.sandbox.clone(),
                    |it| Some(Arc::clone(&it.sandbox)),
                ),
                isolation: isolation.map(|it| Arc::clone(&it.places)),
                files: Arc::clone(&self.files.known),
                called: parts.identity.called().into(),
                todos: Mutex::new(parts.kept.todos.clone()),
                plan: Mutex::new(parts.kept.plan.clone()),
                checkpoints: self.file_keeper(shared, &parts.identity),
                shells,
                output_dir: self.files.output_dir.clone(),
                env: Arc::clone(&self.env),
                world: Arc::clone(&shared.world),
                host: Arc::new(AgentHost::new(Weak::clone(agent))),
            };
            Agent::new(Arc::downgrade(shared), Arc::new(workspace), parts)
        })
    }

    /// The tools that the program itself calls for an agent, as far as the agent has them.
    pub(crate) fn program_tools(
        &self,
        shared: &Shared,
        permissions: &Permissions,
        view: &ToolView,
    ) -> Vec<Arc<dyn DynTool>> {
        let offer = self.offer(permissions, shared);
        let offered = offer.names(PROGRAM_TOOLS.into_iter());
        let is_its = |tool: &&Arc<dyn DynTool>| {
            offered.iter().any(|name| name == tool.name()) && view.admits(tool.name()).is_ok()
        };
        self.tools.iter().filter(is_its).cloned().collect()
    }

    fn shells(&self, cwd: &Path) -> Shells {
        let project = self.project_of(cwd).to_owned();
        let config = ShellsConfig::new(self.guard.clone(), self.files.place.current(), project);
        Shells::new(ShellsConfig {
            environment_files: self.files.env_files.clone(),
            max_output: self.env.number(MAX_OUTPUT_VARIABLE).unwrap_or(config.max_output),
            ..config
        })
    }

    /// The conditions for offering tools to an agent that is there.
    pub(crate) fn offer_to<'a>(&'a self, agent: &'a Agent, shared: &Shared) -> Offer<'a> {
        let plans_for_lead = agent.plans_for_lead();
        Offer { plans_for_lead, ..self.offer(&agent.permissions, shared) }
    }

    /// Builds the driver of an agent.
    pub(crate) fn driver(
        &self,
        shared: &Arc<Shared>,
        agent: Arc<Agent>,
        parts: DriverParts,
    ) -> Result<Driver, ToolboxError> {
        let DriverParts { view, structured, .. } = parts;
        let (tools, hash) = self.candidates(shared, &agent, &view);
        let offer = self.offer_to(&agent, shared);
        let cache = Some(Arc::clone(&self.specs));
        let mut toolbox = Toolbox::new(tools, view, &offer, cache, hash)?;
        if let Some(structured) = &structured {
            toolbox = toolbox.with(Arc::new(structured.clone()));
        }
        if let Some(fixed) = parts.fixed_tools {
            toolbox.fix(fixed);
        }
        let is_new = parts.conversation.is_empty();
        let known = if is_new { Vec::new() } else { agent.workspace.read_state.paths() };
        let memory = self.memory.as_ref().filter(|_| parts.instructions);
        let writes_notes = toolbox.names().any(|name| name == WRITE_TOOL);
        let mut context = parts.context;
        let system = match parts.notes_section.filter(|_| writes_notes) {
            Some(section) if parts.tells_notes_aside => {
                context.push(reminder(&section));
                parts.system
            }
            Some(section) => SystemPrompt::new(
                parts.system.sections().map(str::to_owned).chain([section]).collect(),
            ),
            None => parts.system,
        };
        let EarlierState { counted, standing, window, deferred, interrupted } = parts.earlier;
        let dispatch = Dispatch {
            toolbox,
            agent,
            broker: Arc::clone(&shared.broker),
            allows_sandboxed: self.confinement.allows_sandboxed,
        };
        Ok(Driver {
            preamble: Preamble {
                instructions: is_new,
                context: if is_new { context } else { Vec::new() },
                ..Preamble::default()
            },
            counted,
            standing,
            window,
            deferred,
            unanswered: UnansweredCalls::of(&parts.conversation, interrupted),
            structured,
            memory: memory.map(|memory| {
                let mut tracker = MemoryTracker::new(Arc::clone(memory));
                // The conversation holds the rules for files of an earlier process.
                for path in known {
                    tracker.rules_for(&path);
                }
                tracker
            }),
            ..Driver::new(
                Arc::clone(shared),
                parts.journal,
                dispatch,
                parts.conversation,
                system,
                parts.settings,
            )
        })
    }
}
