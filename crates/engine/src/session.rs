//! A session: one conversation with a person, from its first prompt to its end, across processes.
//!
//! It owns what its agents share (queue, broker, budget, shells) and runs the main agent once for each
//! input that the queue holds.

mod open;
mod options;
mod shared;
mod tool_server;

use std::sync::Arc;
use std::time::Duration;

use centurion_hooks::events::SessionEnd;
use centurion_protocol::sdk::{EventBody, Init, System};
use centurion_protocol::{Outcome, SessionId};
use centurion_tools::Shells;
use tokio_util::sync::CancellationToken;

pub use self::open::{OpenError, PROTOCOL_VERSION};
pub use self::options::{Extensions, Options, Start, Storage};
pub(crate) use self::shared::Shared;
pub use self::shared::{Handle, View};
pub use self::tool_server::{NotOffered, ToolReply, ToolServer};
use crate::driver::{Driver, Run};
use crate::elicitation::Elicitations;
use crate::queue::Item;
use crate::report;

/// How long a finished run waits for background shells before it ends them.
const SHELL_GRACE: Duration = Duration::from_secs(5);

/// One session with its main agent.
pub struct Session {
    shared: Arc<Shared>,
    driver: Driver,
    shells: Arc<Shells>,
    init: Init,
    results: u32,
    broken_lines: usize,
    /// How this process takes part in the session, until hooks have been told.
    begins: Option<&'static str>,
    server_patience: Duration,
    elicitations: Arc<Elicitations>,
}

impl Session {
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    pub fn id(&self) -> SessionId {
        self.shared.id
    }

    /// How many lines of the transcript that was resumed could not be read.
    pub fn broken_lines(&self) -> usize {
        self.broken_lines
    }

    /// Runs until the input is closed and nothing is owed. Returns how the last run ended.
    pub async fn run(&mut self) -> Option<Outcome> {
        let mut last = None;
        while let Some(items) = self.next_items().await {
            last = Some(self.run_once(&items).await);
            if last == Some(Outcome::JournalFailed) {
                // What cannot be recorded is not done, and trying again would only fail again.
                self.shared.queue.abandon();
            }
        }
        self.end().await;
        last
    }

    /// Tells hooks, and ends everything that still runs.
    async fn end(&self) {
        let hooks = &self.driver.dispatch.hooks;
        if self.begins.is_none() {
            hooks.fire(&SessionEnd { reason: "other" }, &CancellationToken::new()).await;
        }
        self.elicitations.detach();
        if let Some(hooks) = &hooks.hooks {
            hooks.shutdown().await;
        }
        self.shells.shutdown().await;
    }

    async fn next_items(&self) -> Option<Vec<Item>> {
        if let Some(items) = self.shared.queue.next(None).await {
            return Some(items);
        }
        if self.shared.queue.is_abandoned() || self.shells.running().is_empty() {
            return None;
        }
        let arrival = self.shared.queue.arrival(None);
        tokio::time::timeout(SHELL_GRACE, arrival).await.ok().flatten()
    }

    async fn run_once(&mut self, items: &[Item]) -> Outcome {
        let cancel = self.shared.begin_run();
        let mut items = items.to_vec();
        if self.begins.is_some() {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = self.shared.servers.settle(self.server_patience) => {}
            }
        }
        // A run that is cancelled already begins nothing that hooks would have to be told the end of.
        if !cancel.is_cancelled()
            && let Some(source) = self.begins.take()
        {
            self.driver.begin(source, &cancel).await;
            items = self.shared.queue.pending(None);
        }
        let items = &items;
        if let Some(model) = self.shared.take_chosen_model() {
            self.init.model.clone_from(&model);
            self.driver.settings.model = model;
        }
        if let Some(thinking) = self.shared.take_chosen_thinking() {
            self.driver.settings.thinking = thinking;
        }
        self.driver.take_up_servers();
        self.init.tools = self.driver.dispatch.toolbox.all_names().map(str::to_owned).collect();
        self.init.mcp_servers = self.shared.servers.statuses();
        self.init.slash_commands = self.shared.servers.commands();
        self.init.permission_mode = self.shared.permissions.mode().to_string();
        self.shared.show(EventBody::System(System::Init(Box::new(self.init.clone()))));
        let mut run = Run::new();
        if let Err(error) = self.driver.run(&mut run, items, &cancel).await {
            run.outcome = Outcome::JournalFailed;
            run.errors.push(error.to_string());
        }
        self.shared.end_run();
        let origin = items.first().and_then(|item| item.origin.to_value());
        let result = report::result(&self.shared, &run, self.results, origin);
        self.results += 1;
        if let Err(error) = report::record(&self.driver.journal, &run, &result).await {
            tracing::error!(%error, "the end of the run could not be recorded");
        }
        self.shared.show(EventBody::Result(Box::new(result)));
        run.outcome
    }
}
