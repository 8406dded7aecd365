//! The skills that an agent carries out now: which tools they free or take away, which model they ask for, and whose
//! texts the agent knows already.
//!
//! A skill is in force from its invocation to the next input of a person. Its hooks last as long as the agent and the
//! conversation that it was invoked in.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use centurion_config::agents::AgentEffort;
use centurion_config::skills::{SkillDefinition, SkillSource};
use centurion_hooks::{Frontmatter, HookOrigin, HookScope, HookSet, HookSource, Registration};
use centurion_journal::transcript::UsedSkill;
use centurion_model::NameRefused;
use centurion_permissions::{Role, Rule, RuleOrigin};
use centurion_protocol::Effort;
use centurion_tools::DynTool;
use parking_lot::{Mutex, MutexGuard};
use thiserror::Error;

use crate::agent::Agent;
use crate::definition::model_check::ModelRefusal;

/// The state of skills in an agent.
pub(crate) struct AgentSkills {
    state: Mutex<SkillState>,
    view: Mutex<SkillView>,
    /// The tools that the program itself calls for the agent, as far as the agent has them.
    program_tools: Vec<Arc<dyn DynTool>>,
}

impl AgentSkills {
    /// Starts with the texts that the conversation of an earlier process holds, and with the rules by which skills of
    /// the starting agent bind this one.
    pub(crate) fn new(
        program_tools: Vec<Arc<dyn DynTool>>,
        told: &[UsedSkill],
        denied: Vec<Rule>,
    ) -> Self {
        let told = told.iter().map(|skill| hash_of(&skill.name, &skill.text)).collect();
        let state = SkillState { denied, told, ..SkillState::default() };
        Self { state: Mutex::new(state), view: Mutex::default(), program_tools }
    }
}

/// Guard: takes back the rules that skills put in force while this is held.
pub(crate) struct SkillRules<'a> {
    agent: &'a Agent,
    role: Role,
    /// A skill was in force already.
    has_own: bool,
    freed: HashSet<String>,
    denied: Vec<Rule>,
}

impl Drop for SkillRules<'_> {
    fn drop(&mut self) {
        let mut state = self.agent.skills.state.lock();
        state.freed = std::mem::take(&mut self.freed);
        state.denied = std::mem::take(&mut self.denied);
        if !self.has_own {
            state.own_role = None;
        }
        self.agent.permissions.confine(std::mem::take(&mut self.role));
    }
}

/// The texts about skills that the agent was told.
#[derive(Default)]
pub(crate) struct SkillView {
    /// The list as it was told last.
    pub(crate) told: Option<String>,
    /// The number of files that the agent had read when the list was made.
    pub(crate) files: usize,
    /// The settings of requests when no skill is in force.
    pub(crate) own: Option<(String, Option<Effort>)>,
    /// The skills that were used, where no record is kept.
    pub(crate) used: Vec<UsedSkill>,
}

#[derive(Default)]
struct SkillState {
    /// The agent's role without skills; `Some` while one is in force.
    own_role: Option<Role>,
    /// The skills whose rules are in force.
    freed: HashSet<String>,
    /// The rules by which they take tools away.
    denied: Vec<Rule>,
    requests: SkillRequests,
    /// Keeps the hooks of skills in force.
    hooks: HashMap<String, Registration>,
    /// The texts that are in the conversation, each by a hash of it and of the skill's name.
    told: HashSet<u64>,
    /// Texts that the journal does not have yet.
    unrecorded: Vec<UsedSkill>,
}

/// The request settings of the skills in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SkillRequests {
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<Effort>,
}

/// The reason why the model that a skill asks for is not used.
#[derive(Debug, Error)]
enum RefusedModel {
    #[error("its model is not used: {0}")]
    Refused(#[from] ModelRefusal),
    #[error("its model is not used: {0}")]
    Name(#[from] NameRefused),
}

impl Agent {
    pub(crate) fn program_tools(&self) -> &[Arc<dyn DynTool>] {
        &self.skills.program_tools
    }

    pub(crate) fn skill_view(&self) -> MutexGuard<'_, SkillView> {
        self.skills.view.lock()
    }

    /// Activates the options of a skill. Options without effect are reported.
    pub(crate) fn put_in_force(&self, skill: &SkillDefinition) {
        self.put_rules_in_force(skill);
        let mut state = self.skills.state.lock();
        if let Some(model) = &skill.model {
            match self.skill_model(&model.value) {
                Ok(Some(model)) => state.requests.model = Some(model),
                Ok(None) => {}
                Err(reason) => {
                    self.inform("warning", format!("skill `{}`: {reason}", skill.name));
                }
            }
        }
        if let Some(AgentEffort::Level(effort)) = skill.effort.as_ref().map(|it| it.value) {
            state.requests.effort = Some(effort);
        }
        drop(state);
        self.register_skill_hooks(skill);
    }

    /// The full name of the model that a skill asks for; `None` is the agent's own.
    fn skill_model(&self, asked: &str) -> Result<Option<String>, RefusedModel> {
        if asked == "inherit" {
            return Ok(None);
        }
        let Some(shared) = self.shared.upgrade() else { return Ok(None) };
        shared.model.check_name(asked)?;
        let model = shared.model.resolve(asked);
        (shared.delegation.builder.check_model)(&model)?;
        Ok(Some(model))
    }

    /// Frees the tools that a skill allows, and takes away those that it forbids. The commands in its text run after
    /// that, and before it counts as carried out.
    pub(crate) fn put_rules_in_force(&self, skill: &SkillDefinition) {
        if !self.skills.state.lock().freed.insert(skill.name.clone()) {
            return;
        }
        let (allow, deny) = (self.allowed_by(skill), self.forbidden_by(skill));
        if allow.is_empty() && deny.is_empty() {
            return;
        }
        let mut state = self.skills.state.lock();
        let mut role = self.permissions.role();
        state.own_role.get_or_insert_with(|| role.clone());
        role.allow.extend(allow);
        state.denied.extend(deny.iter().cloned());
        role.deny.extend(deny);
        self.permissions.confine(role);
    }

    /// Tells whether rules of skills are in force for the agent.
    pub(crate) fn has_rules_of_skills(&self) -> bool {
        self.skills.state.lock().own_role.is_some()
    }

    /// The rules by which skills in force bind the agent, and the agents that it starts.
    pub(crate) fn denied_by_skills(&self) -> Vec<Rule> {
        self.skills.state.lock().denied.clone()
    }

    /// The rules by which a skill frees tools, as far as they count.
    pub(crate) fn allowed_by(&self, skill: &SkillDefinition) -> Vec<Rule> {
        let Some(tools) = &skill.allowed_tools else { return Vec::new() };
        let Some(shared) = self.shared.upgrade() else { return Vec::new() };
        let refusal = match (&skill.withheld, skill.origin.source) {
            (Some(reason), _) => Some(reason.to_string()),
            (None, SkillSource::Managed | SkillSource::Bundled) => None,
            (None, _) => shared
                .delegation
                .builder
                .sources
                .only_managed_rules
                .then(|| "managed settings leave rules to the administrator".to_owned()),
        };
        if let Some(reason) = refusal {
            let message = format!("`allowed-tools` of skill `{}` is off: {reason}", skill.name);
            self.inform("warning", message);
            return Vec::new();
        }
        self.rules(skill, &tools.value)
    }

    fn forbidden_by(&self, skill: &SkillDefinition) -> Vec<Rule> {
        skill.disallowed_tools.as_ref().map(|it| self.rules(skill, &it.value)).unwrap_or_default()
    }

    fn rules(&self, skill: &SkillDefinition, texts: &[String]) -> Vec<Rule> {
        let origin = RuleOrigin::Role(format!("skill {}", skill.name));
        let mut rules = Vec::with_capacity(texts.len());
        for text in texts {
            let filled = skill.fill_rule(text, &self.workspace.root());
            let rule = filled.map_err(|error| error.to_string()).and_then(|text| {
                Rule::parse(&text, origin.clone()).map_err(|error| error.to_string())
            });
            match rule {
                Ok(rule) => rules.push(rule),
                Err(reason) => {
                    self.inform("warning", format!("skill `{}`: {reason}", skill.name));
                }
            }
        }
        rules
    }

    /// Registers the hooks of a skill, once.
    fn register_skill_hooks(&self, skill: &SkillDefinition) {
        let (Some(brought), Some(shared)) = (&skill.hooks, self.shared.upgrade()) else { return };
        let builder = &shared.delegation.builder;
        let mut state = self.skills.state.lock();
        if state.hooks.contains_key(&skill.name) {
            return;
        }
        if let Some(reason) = builder.sources.skill_hooks_refusal(skill) {
            self.inform("warning", format!("hooks of skill `{}`: {reason}", skill.name));
            return;
        }
        let source = HookSource::Skill(skill.name.as_str().into());
        let origin = HookOrigin::in_file(source, skill.origin.path.clone(), None);
        let set = HookSet::from_frontmatter(&brought.value, &origin, Frontmatter::Skill);
        for problem in set.problems() {
            self.inform("warning", format!("skill `{}`: {problem}", skill.name));
        }
        let set = if self.identity.is_main() { set } else { set.as_subagent() };
        let registration = builder.hooks.add(HookScope::Agent(self.identity.id.clone()), set);
        state.hooks.insert(skill.name.clone(), registration);
    }

    /// Ends the skills in force: the next input is something else.
    pub(crate) fn end_skills(&self) {
        let mut state = self.skills.state.lock();
        state.requests = SkillRequests::default();
        state.freed.clear();
        if let Some(role) = state.own_role.take() {
            state.denied.clear();
            self.permissions.confine(role);
        }
    }

    /// Takes back the hooks of skills whose names are not among these: nothing in the conversation invoked them.
    pub(crate) fn keep_skill_hooks(&self, names: impl FnOnce() -> HashSet<String>) {
        let mut state = self.skills.state.lock();
        if !state.hooks.is_empty() {
            let names = names();
            state.hooks.retain(|name, _| names.contains(name));
        }
    }

    /// Notes the rules of the skills in force. Those that come while this is held go with it, also where the work in
    /// between is dropped.
    pub(crate) fn hold_skill_rules(&self) -> SkillRules<'_> {
        let state = self.skills.state.lock();
        let (freed, denied) = (state.freed.clone(), state.denied.clone());
        let has_own = state.own_role.is_some();
        SkillRules { agent: self, role: self.permissions.role(), has_own, freed, denied }
    }

    /// The request settings of the skills in force.
    pub(crate) fn skill_requests(&self) -> SkillRequests {
        self.skills.state.lock().requests.clone()
    }

    /// Notes that the agent is told the text of a skill; `false` if exactly that text is in its conversation.
    pub(crate) fn note_skill_text(&self, name: &str, text: &str) -> bool {
        let mut state = self.skills.state.lock();
        let is_new = state.told.insert(hash_of(name, text));
        if is_new {
            state.unrecorded.push(UsedSkill { name: name.to_owned(), text: text.to_owned() });
        }
        is_new
    }

    /// Tells whether exactly that text of a skill is in the agent's conversation.
    pub(crate) fn knows_skill_text(&self, name: &str, text: &str) -> bool {
        self.skills.state.lock().told.contains(&hash_of(name, text))
    }

    /// Takes the skills whose texts are told and not recorded.
    pub(crate) fn take_unrecorded_skills(&self) -> Vec<UsedSkill> {
        std::mem::take(&mut self.skills.state.lock().unrecorded)
    }

    /// The conversation begins anew: no text of a skill is in it but those that are told again.
    pub(crate) fn forget_skill_texts(&self) {
        self.skills.state.lock().told.clear();
    }
}

fn hash_of(name: &str, text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, text).hash(&mut hasher);
    hasher.finish()
}
