//! Agents and skills of a plugin, as they are when it is known where the plugin lies and how much it may
//! do.

use std::path::Path;
use std::sync::Arc;

use super::variables::PluginVariables;
use crate::agents::{AgentDefinition, ReadAgent};
use crate::fields::Located;
use crate::skills::SkillDefinition;
use crate::{Problem, agents::PluginAgents, skills::PluginSkills};

/// An agent with the plugin's variables in its texts, and without what the plugin may not bring.
pub(crate) fn adapt_agent(plugin: &PluginAgents, read: ReadAgent) -> ReadAgent {
    let ReadAgent { definition, mut problems } = read;
    let mut definition = Arc::unwrap_or_clone(definition);
    let variables = &plugin.variables;
    definition.prompt.value = variables.fill(&definition.prompt);
    if let Some(prompt) = &mut definition.initial_prompt {
        prompt.value = variables.fill(prompt);
    }
    if let Some(servers) = &mut definition.mcp_servers {
        servers.value = variables.fill_value(servers);
    }
    fill_hooks(&mut definition.hooks, variables);
    if let Some(reason) = plugin.power.limit() {
        limit_agent(&mut definition, &reason.to_string(), &mut problems);
        definition.withheld = Some(reason);
    }
    ReadAgent { definition: Arc::new(definition), problems }
}

/// A skill or command with the plugin's variables in its texts, and without what the plugin may not bring.
pub(crate) fn adapt_skill(
    plugin: &PluginSkills,
    skill: SkillDefinition,
    problems: &mut Vec<Problem>,
) -> SkillDefinition {
    let mut skill = skill;
    let variables = &plugin.variables;
    // They are put into the body and the rules when those are used: no value of theirs may become a command or a
    // pattern.
    skill.plugin_variables = variables.clone();
    fill_hooks(&mut skill.hooks, variables);
    let line = skill.power_line();
    if let (Some(_), Some(reason)) = (line, plugin.power.limit()) {
        let message = format!("what acts for the user in it is off: {reason}");
        problems.push(Problem { path: skill.origin.path.clone(), line, message });
        skill.withheld = Some(reason);
    }
    skill
}

/// A hook of an agent or skill does not know the plugin, so that the plugin's places are put into it.
fn fill_hooks(hooks: &mut Option<Located<serde_json::Value>>, variables: &PluginVariables) {
    if let Some(hooks) = hooks {
        hooks.value = variables.for_shell().fill_value(&hooks.value);
    }
}

fn limit_agent(definition: &mut AgentDefinition, reason: &str, problems: &mut Vec<Problem>) {
    let path = definition.origin.path.clone();
    take(&mut definition.permission_mode, "permissionMode", &path, reason, problems);
    take(&mut definition.hooks, "hooks", &path, reason, problems);
    take(&mut definition.mcp_servers, "mcpServers", &path, reason, problems);
    if definition.initial_command().is_some() {
        take(&mut definition.initial_prompt, "initialPrompt", &path, reason, problems);
    }
}

/// Takes a field away and says so.
fn take<T>(
    field: &mut Option<Located<T>>,
    name: &str,
    path: &Path,
    reason: &str,
    problems: &mut Vec<Problem>,
) {
    if let Some(taken) = field.take() {
        let message = format!("`{name}` is off: {reason}");
        problems.push(Problem { path: path.to_owned(), line: Some(taken.line), message });
    }
}
