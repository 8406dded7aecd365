//! The standing of each declared server, with its reason.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use super::policy::Policy;
use super::sources::{Choices, FoundServers};
use super::{Declared, McpApproval, McpOrigin, McpScope, McpServer, McpSources};
use crate::Problem;
use crate::agents::AgentSource;
use crate::settings::{Level, McpSettings, Origin, RepositoryTrust};
use crate::trust::Unaccepted;

/// Whether a server runs, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpStanding {
    Active,
    /// It was switched off.
    Disabled(McpDisabled),
    /// It is what the repository brought, and it was not accepted.
    Untrusted(Unaccepted),
    /// It may not run.
    Denied(McpDenial),
    /// A stronger declaration has its name.
    Shadowed(McpOrigin),
    /// It is what the repository brought, and the user has not decided yet whether it runs.
    Pending,
}

/// The setting that switched a server off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpDisabled {
    /// The user, for this project; it is kept in this file.
    Choice(PathBuf),
    /// `disabledMcpjsonServers` of the settings.
    Settings(Origin),
    /// `--strict-mcp-config`.
    Strict,
}

/// The rule that keeps a server from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpDenial {
    /// There is a file of managed servers, and only those run.
    ManagedOnly(PathBuf),
    /// `deniedMcpServers`.
    Listed(Origin),
    /// There is an `allowedMcpServers`, and it is not on it.
    NotListed(Option<Origin>),
    /// The administrator leaves servers to plugins and managed files.
    PluginOnly(Origin),
}

impl McpStanding {
    pub fn is_active(&self) -> bool {
        *self == Self::Active
    }

    /// The standing in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled(_) => "disabled",
            Self::Untrusted(_) => "untrusted",
            Self::Denied(_) => "denied",
            Self::Shadowed(_) => "shadowed",
            Self::Pending => "pending",
        }
    }
}

impl fmt::Display for McpStanding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())?;
        match self {
            Self::Active => Ok(()),
            Self::Disabled(McpDisabled::Choice(file)) => {
                write!(formatter, ": switched off for this project in {}", file.display())
            }
            Self::Disabled(McpDisabled::Settings(origin)) => {
                write!(formatter, ": `disabledMcpjsonServers` names it, {origin}")
            }
            Self::Disabled(McpDisabled::Strict) => formatter.write_str(": --strict-mcp-config"),
            Self::Untrusted(Unaccepted::Untrusted) => formatter.write_str(
                ": the repository brings it, and this folder is not trusted; \
                 `centurion trust grant` trusts it",
            ),
            Self::Untrusted(reason) => write!(formatter, ": {reason}"),
            Self::Denied(denial) => write!(formatter, ": {denial}"),
            Self::Shadowed(by) => write!(formatter, ": {by} has the same name"),
            Self::Pending => formatter.write_str(
                ": the repository brings it, and the user has not approved it yet; \
                 `centurion mcp enable` approves it",
            ),
        }
    }
}

impl fmt::Display for McpDenial {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManagedOnly(file) => {
                write!(formatter, "only the managed servers of {} run", file.display())
            }
            Self::Listed(origin) => write!(formatter, "`deniedMcpServers` names it, {origin}"),
            Self::NotListed(Some(origin)) => {
                write!(formatter, "`allowedMcpServers` does not name it, {origin}")
            }
            Self::PluginOnly(origin) => {
                write!(formatter, "only managed servers and those of plugins run, {origin}")
            }
            Self::NotListed(None) => formatter.write_str("`allowedMcpServers` names no server"),
        }
    }
}

/// All that decides about servers.
#[derive(Clone, Debug)]
pub(super) struct ServerPolicy {
    managed: Option<PathBuf>,
    is_strict: bool,
    policy: Policy,
    /// The setting that leaves servers to plugins and managed files.
    plugin_only: Option<Origin>,
    /// The strongest file first.
    choices: Vec<Choices>,
    settings: McpSettings,
    folder: RepositoryTrust,
    approval: McpApproval,
}

impl ServerPolicy {
    pub(super) fn new(
        sources: &McpSources<'_>,
        found: &mut FoundServers,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let settings = sources.settings.mcp();
        Self {
            managed: found.managed.take(),
            is_strict: sources.is_strict,
            policy: Policy::new(&settings, problems),
            plugin_only: sources.settings.plugin_only().mcp,
            choices: std::mem::take(&mut found.choices),
            settings,
            folder: sources.settings.standing(),
            approval: sources.approval,
        }
    }

    /// The standing of a server, if none of the same name is stronger. `content` says whether a server of the project
    /// was accepted as it is.
    pub(super) fn standing(
        &self,
        server: &McpServer,
        content: Result<(), Unaccepted>,
    ) -> McpStanding {
        let is_left = matches!(server.origin.scope, McpScope::Managed | McpScope::Plugin(_));
        self.standing_of(server, is_left, content)
    }

    /// The standing of a server that an agent declares: it comes from the agent's source.
    pub(super) fn standing_for(&self, server: &McpServer, agent: AgentSource) -> McpStanding {
        use AgentSource::{BuiltIn, Plugin, Policy};
        let is_left = matches!(agent, Plugin | Policy | BuiltIn);
        self.standing_of(server, is_left, Err(Unaccepted::Untrusted))
    }

    /// `is_left`: whether it is what a policy of plugins alone leaves.
    fn standing_of(
        &self,
        server: &McpServer,
        is_left: bool,
        content: Result<(), Unaccepted>,
    ) -> McpStanding {
        let plugin_only = self.plugin_only.as_ref().filter(|_| !is_left);
        let plugin_only = plugin_only.map(|origin| McpDenial::PluginOnly(origin.clone()));
        if let Some(denial) = self.denial(server).or(plugin_only) {
            return McpStanding::Denied(denial);
        }
        match &server.origin.scope {
            // A server that is asked for by name for this very run was not switched off.
            McpScope::Flag | McpScope::Host => McpStanding::Active,
            scope => match self.disabled(scope, server) {
                Some(disabled) => McpStanding::Disabled(disabled),
                None if *scope == McpScope::Project => self.approval(server, content),
                None => McpStanding::Active,
            },
        }
    }

    fn denial(&self, server: &McpServer) -> Option<McpDenial> {
        let managed = self.managed.as_ref().filter(|_| server.origin.scope != McpScope::Managed);
        managed
            .map(|file| McpDenial::ManagedOnly(file.clone()))
            .or_else(|| self.policy.denial(server))
    }

    fn disabled(&self, scope: &McpScope, server: &McpServer) -> Option<McpDisabled> {
        if self.is_strict && matches!(scope, McpScope::Local | McpScope::Project | McpScope::User) {
            return Some(McpDisabled::Strict);
        }
        if let Some((Choice::Disabled, file)) = self.choice(&server.name) {
            return Some(McpDisabled::Choice(file.clone()));
        }
        let named = self.settings.disabled_of_project.iter().find(|it| it.value == server.name);
        let named = named.filter(|_| *scope == McpScope::Project);
        named.map(|it| McpDisabled::Settings(it.origin.clone()))
    }

    /// A server that the repository brought: whether it was accepted as it is, and is wanted. The user's own
    /// settings may vouch for a name, whatever a repository has under it.
    fn approval(&self, server: &McpServer, content: Result<(), Unaccepted>) -> McpStanding {
        let is_own = |origin: &Origin| !matches!(origin.level, Level::Project | Level::Local);
        let named = || {
            let names = self.settings.enabled_of_project.iter();
            names.filter(|it| it.value == server.name).map(|it| &it.origin)
        };
        let all = || self.settings.enable_all_of_project.iter();
        let is_chosen = matches!(self.choice(&server.name), Some((Choice::Enabled, _)));
        let is_approved = is_chosen || named().chain(all()).next().is_some();
        // A helper is a command beside the server: a name does not vouch for it.
        let has_helper =
            server.transport.remote().is_some_and(|remote| remote.headers_helper.is_some());
        let is_vouched = !has_helper && named().chain(all()).any(is_own);
        match (content, self.approval) {
            (Err(_), _) if is_vouched => McpStanding::Active,
            (Err(reason), _) => McpStanding::Untrusted(reason),
            (Ok(()), _) if is_approved => McpStanding::Active,
            (Ok(()), _) if self.folder != RepositoryTrust::Full => {
                McpStanding::Untrusted(Unaccepted::Untrusted)
            }
            (Ok(()), McpApproval::EachServer) => McpStanding::Pending,
            (Ok(()), McpApproval::Folder) => McpStanding::Active,
        }
    }

    /// The user's choice: the strongest file that says anything about the name decides.
    fn choice(&self, name: &str) -> Option<(Choice, &PathBuf)> {
        self.choices.iter().find_map(|choices| {
            let has = |names: &[String]| names.iter().any(|it| it == name);
            let choice = if has(&choices.disabled) {
                Choice::Disabled
            } else if has(&choices.enabled) {
                Choice::Enabled
            } else {
                return None;
            };
            Some((choice, &choices.file))
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Enabled,
    Disabled,
}

/// Of several servers that would run under one name, lets the first one run. One that does not run takes
/// no name from another: a repository that is not trusted cannot put itself before the user's servers.
pub(super) fn shadow(servers: &mut [Declared]) {
    let mut taken: HashMap<String, McpOrigin> = HashMap::new();
    for declared in servers.iter_mut().filter(|declared| declared.standing.is_active()) {
        let server = &declared.server;
        match taken.get(&server.name) {
            Some(by) => declared.standing = McpStanding::Shadowed(by.clone()),
            None => {
                taken.insert(server.name.clone(), server.origin.clone());
            }
        }
    }
}
