//! What an agent of this session would run with, for people who ask.

use super::Session;
use super::main_agent::MainAgent;
use super::open::find_main;
use crate::agent::ToolScope;
use crate::agent_tool::{Explanation, explain};
use crate::prompt::{Section, agent_sections, main_sections};
use crate::resolve::{Place, Starter, Wishes};

impl Session {
    /// Explains an agent as one at this depth would start it; the main agent's depth is zero.
    pub async fn explain(
        &self,
        name: &str,
        in_background: bool,
        depth: u32,
    ) -> Result<Explanation, String> {
        let shared = &self.shared;
        let (delegation, builder) = (&shared.delegation, &shared.delegation.builder);
        shared.servers.settle(self.server_patience).await;
        let catalog = delegation.definitions.agents();
        let agent = find_main(&catalog, name).ok_or_else(|| unknown(name))?;
        let main = &self.driver.dispatch.agent;
        main.note_settings(&self.driver.settings);
        let starter = Starter { depth, ..main.starter(builder.environment.cwd.clone()) };
        let wishes = Wishes { background: in_background.then_some(true), ..Wishes::default() };
        let scope = ToolScope { startable: None, is_main: true, ..main.tool_scope() };
        let effective = builder.resolve(shared, agent, Place::Below(&wishes), &starter, &scope);
        let effective = effective.map_err(|error| error.to_string())?;
        Ok(explain(shared, agent, effective, |effective, memory| {
            let mut sections = agent_sections(effective, &builder.environment, &delegation.rules);
            sections.extend(memory.map(Section::memory));
            sections
        }))
    }

    /// Explains an agent as the session itself would run as it.
    pub async fn explain_main(&self, name: &str) -> Result<Explanation, String> {
        let shared = &self.shared;
        let (delegation, builder) = (&shared.delegation, &shared.delegation.builder);
        shared.servers.settle(self.server_patience).await;
        let catalog = delegation.definitions.agents();
        let agent = find_main(&catalog, name).ok_or_else(|| unknown(name))?;
        let (flags, asked) = &self.asked;
        let mode = delegation.rules.mode;
        let main = MainAgent::plain(self.driver.settings.clone(), asked.clone(), mode);
        let effective = main.resolve(agent, shared, flags, &builder.environment.cwd);
        let effective = effective.map_err(|error| error.to_string())?;
        Ok(explain(shared, agent, effective, |effective, memory| {
            let mut asked = asked.clone();
            asked.replace.get_or_insert_with(|| effective.prompt.value.clone());
            main_sections(&asked, &builder.environment, mode, memory)
        }))
    }
}

fn unknown(name: &str) -> String {
    format!("there is no agent named `{name}`; `centurion agents list` shows those there are")
}
