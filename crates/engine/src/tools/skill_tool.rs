//! The `Skill` tool: a model invokes a skill.

use std::borrow::Cow;
use std::sync::Arc;

use centurion_config::skills::{SkillCatalog, SkillEntry};
use centurion_permissions::{Access, Verdict};
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::agent::builder::SKILL_TOOL;
use crate::agent::name_lookup::skill_name;
use crate::tools::agent_tool::carry_out_skill;
use crate::turn::skill::{FOLLOW, Invoker, KNOWN_TEXT, find, invoke};

/// Invokes a skill: instructions for a kind of task, written by the user or the project.
///
/// A list of the skills was given to you. When a skill fits the task, invoke it first and follow its text. Do not invoke
/// a skill again for the same task. Some skills run in an agent: then you get its report.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SkillInput {
    /// The name of the skill, as it was listed.
    #[serde(alias = "command")]
    skill: String,
    /// The arguments of the skill.
    args: Option<String>,
}

impl SkillInput {
    fn name(&self) -> &str {
        skill_name(&self.skill)
    }

    fn arguments(&self) -> &str {
        self.args.as_deref().unwrap_or_default().trim()
    }
}

pub(crate) struct SkillTool(pub(crate) Arc<Agent>);

impl SkillTool {
    /// Asks the rules once more, about the skill that was found now: files may have changed since the call was judged.
    fn check_rules(
        &self,
        catalog: &SkillCatalog,
        entry: &SkillEntry,
        context: &ToolContext,
    ) -> Result<(), ToolError> {
        match self.0.permissions.takes_skill(&catalog.names_of(entry)) {
            Some(Verdict::Deny) => {
                Err(ToolError::failed(format!("a rule denies the skill `{}`", entry.name)))
            }
            Some(_) if !context.is_approved => Err(ToolError::failed(format!(
                "a rule asks about the skill `{}`, and this name meant another one before: try again",
                entry.name
            ))),
            _ => Ok(()),
        }
    }
}

impl Tool for SkillTool {
    type Input = SkillInput;

    const NAME: &'static str = SKILL_TOOL;

    fn is_read_only(&self, _: &SkillInput) -> bool {
        false
    }

    fn access(&self, _: &SkillInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, input: SkillInput, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        self.0.refresh_skills(&context.cancel).await;
        let catalog = shared.delegation.definitions.skills_now();
        let failed = |error: &dyn std::fmt::Display| ToolError::failed(error.to_string());
        let entry = find(&catalog, input.name(), Invoker::Model).map_err(|it| failed(&it))?;
        self.check_rules(&catalog, &entry, context)?;
        if entry.card.is_fork && !self.0.starts_agents() {
            return Err(ToolError::failed(
                "this skill is carried out by an agent, and you have no Agent tool: do without it",
            ));
        }
        let given = (input.arguments(), Invoker::Model);
        let invoking = invoke(&shared, &self.0, &catalog, &entry, given, &context.cancel);
        let skill = invoking.await.map_err(|it| failed(&it))?;
        if skill.definition.fork.is_some() {
            return carry_out_skill(&shared, &self.0, &skill, context).await?.for_model(&self.0);
        }
        self.0.put_in_force(&skill.definition);
        let text = skill.for_agent();
        let is_new = self.0.note_skill_text(&skill.definition.name, &text);
        let answer = if is_new {
            Cow::Owned(format!("{FOLLOW}\n\n{text}"))
        } else {
            Cow::Borrowed(KNOWN_TEXT)
        };
        let allowed = skill.definition.allowed_tools.as_ref().map(|it| it.value.clone());
        let data = json!({
            "success": true,
            "commandName": skill.definition.name,
            "allowedTools": allowed.unwrap_or_default(),
            "model": skill.definition.model.as_ref().map(|it| it.value.clone()),
        });
        Ok(ToolOutput::text(answer).with_data(data))
    }
}
