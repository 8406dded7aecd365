//! What an agent of this session would run with, for people who ask.

use std::sync::Arc;

use super::Session;
use super::main_agent::MainAgent;
use super::open::find_main;
use crate::agent_tool::{Explanation, explain, limits};
use crate::caller::Caller;
use crate::ground::GONE;
use crate::identity::Identity;
use crate::prompt::main_sections;
use crate::remembered::{Purpose, Remembered, prompt, skills};
use crate::resolve::Wishes;

impl Session {
    /// An agent as one would start it that stands so deep; the main agent's depth is zero.
    pub async fn explain(
        &self,
        name: &str,
        in_background: bool,
        depth: u32,
    ) -> Result<Explanation, String> {
        let delegation = self.shared.delegation.get().ok_or(GONE)?;
        self.shared.servers.settle(self.server_patience).await;
        let catalog = delegation.definitions.agents();
        let agent = find_main(&catalog, name).ok_or_else(|| unknown(name))?;
        let main = &self.driver.dispatch.caller;
        let caller = Caller::new(
            Arc::downgrade(&self.shared),
            Arc::new(Identity { depth, ..Identity::default() }),
            Arc::clone(&main.permissions),
            Arc::clone(&main.servers),
            Arc::clone(&main.budget),
            None,
            None,
            None,
        );
        caller.note(&self.driver.settings);
        let wishes = Wishes { background: in_background.then_some(true), ..Wishes::default() };
        explain(&self.shared, delegation, &caller, agent, &wishes)
    }

    /// An agent as the session itself would run as it.
    pub async fn explain_main(&self, name: &str) -> Result<Explanation, String> {
        let shared = &self.shared;
        let delegation = shared.delegation.get().ok_or(GONE)?;
        shared.servers.settle(self.server_patience).await;
        let catalog = delegation.definitions.agents();
        let agent = find_main(&catalog, name).ok_or_else(|| unknown(name))?;
        let definition = &agent.definition;
        let (flags, asked) = &self.asked;
        let (ground, caller) = (&delegation.ground, &self.driver.dispatch.caller);
        let main =
            MainAgent::plain(self.driver.settings.clone(), asked.clone(), delegation.rules.mode);
        let cwd = &ground.environment.cwd;
        let effective = main.resolve(agent, shared, delegation, caller, flags, cwd);
        let mut effective = effective.map_err(|error| error.to_string())?;
        let mut problems = std::mem::take(&mut effective.problems);
        let purpose = Purpose::Explain;
        let memory = Remembered::of(delegation, definition, &mut effective, &mut problems, purpose);
        let skills = skills(shared, delegation, definition, &mut problems);
        effective.prompt.value = prompt(shared, delegation, definition);
        let mut asked = asked.clone();
        asked.replace.get_or_insert_with(|| effective.prompt.value.clone());
        let section = memory.as_ref().map(|memory| memory.section.as_str());
        let mode = delegation.rules.mode;
        let prompt_sections = main_sections(&asked, &ground.environment, mode, section);
        effective.problems = problems;
        Ok(Explanation {
            description: definition.description.value.clone(),
            source: definition.origin.source.to_string(),
            prompt_sections,
            limits: limits(&effective),
            memory_directory: memory.map(|memory| memory.directory),
            preloaded_skills: skills.texts.len() / 2,
            agent: effective,
        })
    }
}

fn unknown(name: &str) -> String {
    format!("there is no agent named `{name}`; `centurion agents list` shows those there are")
}
