//! Explanations of the settings that an agent of this session would run with.

use thiserror::Error;

use super::Session;
use super::main_agent::MainAgent;
use super::memory::MainMemory;
use super::open::{OpenError, find_main};
use crate::agent::ToolScope;
use crate::definition::prompt::{Section, agent_sections, main_sections};
use crate::definition::resolve::{AgentPosition, LaunchError, Starter, Wishes};
use crate::delegate::build::WRITE_TOOL;
use crate::tools::agent_tool::{Explanation, explain};
use crate::toolset::servers::ServerPatience;

/// The reason why an agent cannot be explained.
#[derive(Debug, Error)]
pub enum ExplainError {
    #[error("there is no agent named `{0}`; `centurion agents list` shows those there are")]
    Unknown(String),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The session cannot run as it.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Session {
    /// Explains an agent as one at this depth would start it; the main agent's depth is zero.
    pub async fn explain(
        &self,
        name: &str,
        in_background: bool,
        depth: u32,
    ) -> Result<Explanation, ExplainError> {
        let shared = &self.shared;
        let (delegation, builder) = (&shared.delegation, &shared.delegation.builder);
        shared.servers.settle(self.server_patience()).await;
        let catalog = delegation.definitions.agents();
        let agent =
            find_main(&catalog, name).ok_or_else(|| ExplainError::Unknown(name.to_owned()))?;
        let main = &self.driver.dispatch.agent;
        main.note_settings(&self.driver.settings);
        let starter = Starter { depth, ..main.starter(builder.environment.cwd.clone()) };
        let wishes = Wishes { background: in_background.then_some(true), ..Wishes::default() };
        let scope = ToolScope { startable: None, is_main: true, ..main.tool_scope() };
        let effective =
            builder.resolve(shared, agent, AgentPosition::Below(&wishes), &starter, &scope)?;
        Ok(explain(shared, agent, effective, |effective, memory| {
            let mut sections = agent_sections(effective, &builder.environment, &delegation.rules);
            sections.extend(memory.map(Section::memory));
            sections
        }))
    }

    /// Nothing runs that could have the tools of a server later.
    fn server_patience(&self) -> ServerPatience {
        ServerPatience::same(self.server_patience.asked_for)
    }

    /// Explains an agent as the session itself would run as it.
    pub async fn explain_main(&self, name: &str) -> Result<Explanation, ExplainError> {
        let shared = &self.shared;
        let (delegation, builder) = (&shared.delegation, &shared.delegation.builder);
        shared.servers.settle(self.server_patience()).await;
        let catalog = delegation.definitions.agents();
        let agent =
            find_main(&catalog, name).ok_or_else(|| ExplainError::Unknown(name.to_owned()))?;
        let (flags, asked) = &self.asked;
        let mode = delegation.rules.mode;
        let main = MainAgent::plain(self.driver.settings.clone(), asked.clone(), mode);
        let effective = main.resolve(agent, shared, flags, &builder.environment.cwd)?;
        Ok(explain(shared, agent, effective, |effective, memory| {
            let (mut asked, is_replaced) = (asked.clone(), asked.replace.is_some());
            asked.replace.get_or_insert_with(|| effective.prompt.value.clone());
            let writes = effective.tools.iter().any(|tool| tool == WRITE_TOOL);
            let own = self.memory.as_ref().filter(|_| writes && !is_replaced);
            let own = own.map(MainMemory::section);
            let style = delegation.definitions.choose_style(asked.style.as_deref());
            let memory = memory.or(own.as_deref());
            main_sections(&asked, &builder.environment, mode, style.as_ref(), memory)
        }))
    }
}
