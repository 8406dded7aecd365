//! Finds the parts of a skill's file that have no effect, although their keys are known: rules that are none, hooks that
//! cannot run, an agent that is not there, a name that people cannot type, no text.

use std::sync::Arc;

use centurion_config::Problem;
use centurion_config::agents::{AgentCatalog, AgentLoader};
use centurion_config::skills::{SkillDefinition, SkillKind};
use centurion_hooks::{Frontmatter, HookOrigin, HookSet, HookSource};
use centurion_permissions::{Rule, RuleOrigin};
use centurion_protocol::SystemWorld;

use crate::commands::is_of_program;
use crate::definitions::places::Places;

/// Finds the problems of skills that can be invoked here.
pub(super) struct EffectCheck {
    agents: Arc<AgentCatalog>,
}

impl EffectCheck {
    pub(super) fn load(places: &Places) -> Self {
        Self { agents: AgentLoader::new().load(&places.agents, &SystemWorld) }
    }

    pub(super) fn problems(&self, skill: &SkillDefinition) -> Vec<Problem> {
        let mut problems = own_problems(skill);
        let agent = skill.agent.as_ref().filter(|_| skill.fork.is_some());
        if let Some(agent) = agent.filter(|name| self.agents.find(name).is_none()) {
            let message =
                format!("there is no agent `{}`: the skill cannot be invoked", agent.value);
            problems.push(problem(skill, agent.line, message));
        }
        problems
    }
}

/// The problems that a skill has wherever it stands.
pub(super) fn own_problems(skill: &SkillDefinition) -> Vec<Problem> {
    let mut problems = Vec::new();
    if skill.body.is_empty() {
        let message = "it has no text behind its frontmatter, and cannot be invoked".to_owned();
        problems.push(problem(skill, skill.body.line, message));
    }
    for tools in [&skill.allowed_tools, &skill.disallowed_tools].into_iter().flatten() {
        for rule in &tools.value {
            if let Err(error) = Rule::parse(rule, RuleOrigin::Flag) {
                problems.push(problem(skill, tools.line, error.to_string()));
            }
        }
    }
    if let Some(hooks) = &skill.hooks {
        let source = HookSource::Skill(skill.name.as_str().into());
        let origin = HookOrigin::in_file(source, skill.origin.path.clone(), Some(hooks.line));
        let set = HookSet::from_frontmatter(&hooks.value, &origin, Frontmatter::Skill);
        for found in set.problems() {
            let line = found.origin.line.unwrap_or(hooks.line);
            problems.push(problem(skill, line, found.message.clone()));
        }
    }
    if is_of_program(&skill.name) {
        let models = if skill.is_for_models() { "; models can invoke it" } else { "" };
        let message = format!(
            "people cannot type it: /{} is a command of the program{models}; give the {} another name",
            skill.name,
            match skill.origin.kind {
                SkillKind::Skill => "directory",
                SkillKind::Command => "file",
            }
        );
        problems.push(problem(skill, 1, message));
    }
    problems
}

fn problem(skill: &SkillDefinition, line: usize, message: String) -> Problem {
    Problem { path: skill.origin.path.clone(), line: Some(line), message }
}
