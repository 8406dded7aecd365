//! A folder with everything that it may bring, and what of it is in force.

use std::collections::{BTreeMap, BTreeSet};

use centurion_protocol::Env;
use serde_json::{Value, json};

use super::*;
use crate::agents::{AgentLoader, AgentSources, ProjectFolders};
use crate::mcp::{McpApproval, McpConfiguration, McpPlaces, McpSources};
use crate::paths::Dirs;
use crate::settings::{Settings, SettingsSources};
use crate::skills::{SkillLoader, SkillSources};

pub(super) const FOLDER: &str = "home/repo";

pub(super) struct Folder {
    pub(super) machine: Machine,
    pub(super) trust: Arc<Trust>,
}

impl Folder {
    pub(super) fn new() -> Self {
        let machine = Machine::new();
        let trust = Arc::new(machine.open());
        Self { machine, trust }
    }

    pub(super) fn write(&self, relative: &str, text: &str) -> &Self {
        let path = self.machine.path(FOLDER).join(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(super) fn json(&self, relative: &str, value: &Value) -> &Self {
        self.write(relative, &value.to_string())
    }

    pub(super) fn servers_file(&self, servers: &Value) {
        self.json(".mcp.json", &json!({ "mcpServers": servers }));
    }

    /// Trusts the folder as it is now, and starts anew.
    pub(super) fn grant(&mut self) {
        self.grant_in(FOLDER);
    }

    pub(super) fn grant_in(&mut self, folder: &str) {
        self.machine.grant(&mut self.machine.open(), folder).unwrap();
        self.trust = Arc::new(self.machine.open());
    }

    pub(super) fn difference(&self) -> Result<Difference, TrustError> {
        let found = survey(&self.machine.path(FOLDER), None, &SystemWorld);
        self.trust.difference(&self.machine.key(FOLDER), &found, &str::to_owned)
    }

    pub(super) fn settings_in(&self, start: &str) -> Settings {
        let start_dir = self.machine.path(start);
        let sources = SettingsSources {
            checkout: Some(start_dir.clone()),
            start_dir,
            home: Some(self.machine.path("home")),
            ..SettingsSources::default()
        };
        Settings::load(sources, self.trust.folder(&self.machine.key(start)))
    }

    pub(super) fn settings(&self) -> Settings {
        self.settings_in(FOLDER)
    }

    pub(super) fn servers(&self) -> McpConfiguration {
        let (settings, env) = (self.settings(), Env::default());
        let dirs = Dirs::new(&env, Some(&self.machine.path("home"))).unwrap();
        McpConfiguration::load(&McpSources {
            managed_dir: None,
            flags: Vec::new(),
            is_strict: false,
            places: McpPlaces::new(&dirs, &self.machine.path(FOLDER)),
            settings: &settings,
            approval: McpApproval::Folder,
            env: &env,
            variables: BTreeMap::new(),
        })
    }

    /// The reasons why the parts of each agent and skill that act for the user are off.
    pub(super) fn withheld(&self) -> Vec<(String, Option<Unaccepted>)> {
        let content = ContentTrust::remembered(Arc::clone(&self.trust));
        let cwd = self.machine.path(FOLDER);
        let folders = ProjectFolders { cwd, ..ProjectFolders::default() };
        let (of_agents, of_skills) = (folders.clone(), content.clone());
        let sources = AgentSources { folders: of_agents, content, ..AgentSources::default() };
        let agents = AgentLoader::new().load(&sources, &SystemWorld);
        let sources = SkillSources { folders, content: of_skills, ..SkillSources::default() };
        let skills = SkillLoader::new().load(&sources, &SystemWorld);
        let agents = agents.active.iter().map(|it| &it.definition);
        let agents = agents.map(|it| (it.name.value.clone(), it.withheld.clone()));
        let skills = skills.check().active.into_iter().map(|it| it.definition);
        let skills = skills.map(|it| (it.name, it.withheld));
        agents.chain(skills).collect()
    }

    /// Everything that is in force and acts for the user, as text.
    pub(super) fn power(&self) -> BTreeSet<String> {
        let settings = self.settings();
        let mut power = BTreeSet::new();
        let allow = settings.permissions().allow.iter();
        power.extend(allow.map(|rule| format!("allow {:?}", rule.form)));
        let env = settings.env().into_iter();
        power.extend(env.map(|(name, value)| format!("env {name}={}", value.value)));
        let hooks = settings.hooks().into_iter().filter(|it| it.off.is_none());
        power.extend(hooks.map(|it| format!("hooks {}", it.value)));
        power.extend(settings.api_key_helper().map(|it| format!("helper {}", it.value)));
        let transport = |it: &McpServer| serde_json::to_value(&it.transport).unwrap();
        let servers = self.servers();
        power.extend(servers.active().map(|it| format!("server {} {}", it.name, transport(it))));
        let definitions = self.withheld().into_iter().filter(|(_, why)| why.is_none());
        power.extend(definitions.map(|(name, _)| {
            let path = self.machine.path(FOLDER).join(format!(".claude/agents/{name}.md"));
            format!("agent {name} {}", fs::read_to_string(path).unwrap_or_default())
        }));
        power
    }
}

pub(super) fn hook(command: &str) -> Value {
    json!({"hooks": [{"type": "command", "command": command}]})
}

/// An agent or skill with a hook.
pub(super) fn agent(name: &str, command: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: d\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          \
         command: {command}\n---\nWork.\n"
    )
}
