//! Steering: what a person does to one agent of a running session, and sees of it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use centurion_journal::Page;
use centurion_permissions::{Call, Decision};
use centurion_protocol::{AgentId, Block, RecordId, ToolUseId};
use thiserror::Error;

use super::Handle;
use super::commands::show;
use crate::agent::foreground::show_background;
use crate::agent::task::{PostResult, Stopper, Task};
use crate::delegate::{recall, spawn};
use crate::message::mail::Mail;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::turn::commands::typed_commands;

/// The sender of what a person says to an agent that resumes.
const PERSON: &str = "The user";

/// The way in which a message of a person reached an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRoute {
    /// The agent reads it between two calls.
    Queued,
    /// The agent had ended, and resumes with it in the background.
    Resumed,
}

/// The reason why a message of a person reached no agent.
#[derive(Debug, Error)]
pub enum TellError {
    #[error("there is no agent `{0}`")]
    Unknown(String),
    #[error("the session has ended")]
    Ended,
    #[error("the agent cannot be resumed: {0}")]
    Resume(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The spending of an agent with everything below it, over all its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSpending {
    pub id: AgentId,
    pub parent: Option<AgentId>,
    /// Its name, or else its type.
    pub name: String,
    /// Its task, in a few words.
    pub task: String,
    pub dollars: f64,
    pub tokens: u64,
    /// The most that it may spend; `None` without a limit of its own.
    pub most_dollars: Option<f64>,
    pub model: String,
    /// The tokens of its own last request and answer, and the size of the window that they are in.
    pub context: u64,
    pub window: u64,
    /// The tokens of its own requests in its last run that the provider read from its cache.
    pub cached: u64,
    pub is_running: bool,
}

impl Handle {
    /// Says something to an agent in a person's name: one at work reads it between two calls, one that has ended resumes
    /// with it, a stopped one too. [Recall](Self::recall_agent) one that is unknown.
    pub fn tell(
        &self,
        agent: &str,
        id: RecordId,
        text: String,
        priority: Priority,
    ) -> Result<MessageRoute, TellError> {
        let shared = &self.0;
        let found = shared.delegation.find(agent);
        let task = found.ok_or_else(|| TellError::Unknown(agent.to_owned()))?;
        let _access = task.hold_access();
        let item = Item {
            id,
            priority,
            addressee: Some(task.id.clone()),
            content: vec![Block::Text(text.clone())],
            origin: Origin::Person,
            manner: Manner::default(),
        };
        if task.tell(&shared.queue, item) == PostResult::Queued {
            return Ok(MessageRoute::Queued);
        }
        let asker = shared.main_agent().ok_or(TellError::Ended)?;
        let mail = Mail { id, from: PERSON.to_owned(), text, team: None };
        let call = ToolUseId::new(format!("user_{id}"));
        let resumed = spawn::resume(shared, &asker, &task, call, &mail);
        resumed.map_err(|error| TellError::Resume(error.into()))?;
        Ok(MessageRoute::Resumed)
    }

    /// Enters an agent that is no longer in memory, so that it can be told something.
    pub async fn recall_agent(&self, agent: &str) {
        recall::recall(&self.0, agent).await;
    }

    /// Stops what an agent does now; it stays, and a message resumes it. Whether it was at work.
    pub fn interrupt_agent(&self, agent: &str) -> bool {
        self.0.delegation.find(agent).is_some_and(|task| task.stop(Stopper::Person))
    }

    /// Lets the call that waits for an agent continue without it, or the main agent where that waits; whether one waited.
    pub fn background_agent(&self, agent: &str) -> bool {
        let delegation = &self.0.delegation;
        let Some(task) = delegation.find(agent).filter(|task| task.is_running()) else {
            return false;
        };
        let is_released = delegation.foreground.release(&task.id);
        if is_released {
            show_background(&self.0, &task, true);
        }
        task.detach() || is_released
    }

    /// Has the main agent wait for an agent in the background: it takes no further step before that one has ended, is
    /// sent to the background again, or the main agent is interrupted. Whether the agent is at work in the background.
    pub fn foreground_agent(&self, agent: &str) -> bool {
        let delegation = &self.0.delegation;
        let Some(task) = delegation.find(agent) else { return false };
        let is_so = task.is_running() && task.is_background();
        if is_so && delegation.foreground.bring(&task.id) {
            show_background(&self.0, &task, false);
        }
        is_so
    }

    /// Tells whether no agent has read this yet. Views may ask that while they are shown an event.
    pub fn is_waiting(&self, id: RecordId) -> bool {
        self.0.queue.holds(id)
    }

    /// The decision about a call of the main agent with the rules and the mode that are in force now; `None` after the end.
    pub fn explain_call(&self, call: &Call<'_>) -> Option<Decision> {
        let agent = self.0.main_agent()?;
        Some(self.0.permissions.decide(call, agent.workspace.cwd()))
    }

    /// The ids of what waits for the main agent and for the agents that are at work.
    pub fn waiting(&self) -> Vec<RecordId> {
        let queue = &self.0.queue;
        let of_agents = self.0.delegation.running();
        let of_agents = of_agents.iter().flat_map(|task| queue.pending(Some(&task.id)));
        queue.pending(None).into_iter().chain(of_agents).map(|item| item.id).collect()
    }

    /// The spending of each agent that is in memory, in the order of their start.
    pub fn spending(&self) -> Vec<AgentSpending> {
        let of = |task: &Arc<Task>| {
            let (spent, progress) = (task.account.spent(), task.progress());
            let model = task.spec.model.clone();
            let info = self.0.model.info(&model);
            AgentSpending {
                id: task.id.clone(),
                parent: task.spec.parent.clone(),
                name: task.spec.name.clone().unwrap_or_else(|| task.spec.agent_type.clone()),
                task: task.spec.description.clone(),
                dollars: spent.dollars,
                tokens: spent.tokens,
                most_dollars: task.account.most_dollars(),
                context: progress.tokens,
                window: self.0.delegation.builder.context.window(&info),
                cached: progress.cached,
                is_running: task.is_running(),
                model,
            }
        };
        self.0.delegation.tasks().iter().map(of).collect()
    }

    /// The money that is left of what the session may spend; `None` without a limit.
    pub fn budget_left(&self) -> Option<f64> {
        self.0.budget.left_of_session()
    }

    /// A page of a transcript: the records before an offset, or the last ones. `None` is the main agent's. Reads a file,
    /// and so blocks.
    pub fn page(&self, agent: Option<&str>, before: Option<u64>, most: u64) -> io::Result<Page> {
        let path = self.transcript(agent).ok_or(io::ErrorKind::NotFound)?;
        Page::before(&path, before, most)
    }

    /// The transcript of an agent; `None` is the main agent's.
    pub fn transcript(&self, agent: Option<&str>) -> Option<PathBuf> {
        let delegation = &self.0.delegation;
        let Some(agent) = agent else { return Some(delegation.builder.files.place.transcript()) };
        let id = delegation.id_of(agent);
        recall::is_id(&id).then(|| spawn::agent_files(delegation, &id).transcript)
    }

    /// The output of a command that asks nothing and changes nothing, at once and beside a turn that is under way; `None` for
    /// other commands.
    pub fn shown_by(&self, command: &str) -> Option<String> {
        let shared = &self.0;
        Some(match command {
            "agents" => show::agents(shared),
            "cost" | "usage" => show::cost(shared),
            "help" => show::help(&typed_commands(shared)),
            "hooks" => show::hooks(shared),
            "mcp" => show::servers(shared),
            "permissions" => show::permissions(shared),
            "tasks" => show::tasks(shared),
            _ => return None,
        })
    }
}
