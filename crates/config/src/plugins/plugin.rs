//! A plugin that is switched on: what it brings, in the form in which callers use it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_files::private;
use centurion_protocol::Env;

use super::accepted::AcceptedTree;
use super::bundle::{Bundle, MainAgent, PluginHooks};
use super::manifest::Manifest;
use super::name::PluginId;
use super::variables::PluginVariables;
use crate::agents::PluginAgents;
use crate::mcp::{McpOrigin, McpScope, McpTransport, McpVariables, ParsedServer, parse_server};
use crate::settings::{Level, Origin};
use crate::skills::PluginSkills;
use crate::trust::Unaccepted;

/// The power of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Power {
    /// The user brought it in: all that it has counts.
    #[default]
    Full,
    /// Only a repository that is not trusted switches it on: all that acts for the user in it is off, as in a
    /// definition of that repository. Its texts count: the user has installed them.
    Limited { reason: String },
    /// A repository brings it: all that acts for the user in it is off unless the whole of it was accepted.
    Repository(AcceptedTree),
}

impl Power {
    /// The reason why not all of the plugin counts, as it is now.
    pub fn limit(&self) -> Option<Unaccepted> {
        match self {
            Self::Full => None,
            Self::Limited { reason } => Some(Unaccepted::Plugin(reason.clone())),
            Self::Repository(tree) => tree.judge().err(),
        }
    }
}

/// The place in which a plugin was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginPlace {
    /// `--plugin-dir`.
    Flag,
    /// It is installed; this is the directory that keeps what is.
    Store(PathBuf),
    /// A directory of skills.
    SkillsDir(PathBuf),
}

/// The setting or flag that switched a plugin on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnabledBy {
    /// `--plugin-dir`.
    Flag,
    Settings(Origin),
    /// No setting: the user installed it, and it is on by default.
    Default,
}

/// A plugin that is switched on.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    pub id: PluginId,
    pub place: PluginPlace,
    pub enabled_by: EnabledBy,
    pub power: Power,
    /// The directory for data that outlives its versions; see [`Plugin::make_data_dir`].
    pub data: PathBuf,
    /// The configured values, by their keys.
    pub options: BTreeMap<String, String>,
    pub(super) bundle: Arc<Bundle>,
    pub(super) variables: PluginVariables,
}

impl Plugin {
    /// By which its agents, skills and servers are called.
    pub fn name(&self) -> &str {
        &self.bundle.manifest.name
    }

    pub fn manifest(&self) -> &Manifest {
        &self.bundle.manifest
    }

    /// The directory that it lies in.
    pub fn root(&self) -> &Path {
        &self.bundle.root
    }

    /// Whether the administrator of the machine switched it on.
    pub fn is_managed(&self) -> bool {
        matches!(&self.enabled_by, EnabledBy::Settings(origin) if origin.level == Level::Managed)
    }

    fn is_full(&self) -> bool {
        self.power.limit().is_none()
    }

    pub fn agents(&self) -> PluginAgents {
        PluginAgents {
            plugin: self.name().to_owned(),
            root: self.root().to_owned(),
            paths: self.bundle.agents.clone(),
            variables: self.variables.clone(),
            power: self.power.clone(),
        }
    }

    pub fn skills(&self) -> PluginSkills {
        PluginSkills {
            plugin: self.name().to_owned(),
            root: self.root().to_owned(),
            skills: self.bundle.skills.clone(),
            commands: self.bundle.commands.clone(),
            variables: self.variables.clone(),
            power: self.power.clone(),
        }
    }

    /// Its hooks, none where its power is limited. Their variables are as they were written: the hook
    /// runner puts them into the environment.
    pub fn hooks(&self) -> &[PluginHooks] {
        if self.is_full() { &self.bundle.hooks } else { &[] }
    }

    /// Its servers, none where its power is limited, each as far as it can be used.
    pub fn servers(&self, env: &Env) -> Vec<ParsedServer> {
        if self.is_full() { servers(&self.bundle, &self.variables, env) } else { Vec::new() }
    }

    /// The agent that the main conversation runs as by default; none where the plugin's power is limited.
    pub fn main_agent(&self) -> Option<&MainAgent> {
        self.bundle.agent.as_ref().filter(|_| self.is_full())
    }

    /// The variables that its texts may name.
    pub fn variables(&self) -> &PluginVariables {
        &self.variables
    }

    /// Makes the directory for its data, which only the user can enter. The caller makes it before it
    /// starts a hook or a server of the plugin: they expect it to be there.
    pub fn make_data_dir(&self) -> io::Result<()> {
        private::create_directory(&self.data)
    }
}

/// The servers of a plugin's directory, checked and with their variables expanded.
pub(super) fn servers(
    bundle: &Bundle,
    variables: &PluginVariables,
    env: &Env,
) -> Vec<ParsedServer> {
    let known = McpVariables { env, known: variables.known() };
    let parse = |server: &super::bundle::BundledServer| {
        let origin = McpOrigin {
            scope: McpScope::Plugin(bundle.manifest.name.clone()),
            file: Some(server.file.clone()),
            line: Some(server.line),
        };
        let mut parsed = parse_server(&server.name, &server.value, &origin, &known);
        if let Some(McpTransport::Stdio { env, .. }) =
            parsed.server.as_mut().map(|server| &mut server.transport)
        {
            for (name, value) in variables.environment() {
                env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        parsed
    };
    bundle.servers.iter().map(parse).collect()
}
