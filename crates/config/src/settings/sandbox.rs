//! Settings about the sandbox of commands.

use serde_json::Value;

use super::level::{Level, Sourced};
use super::merge::MergedValues;

/// The `sandbox` of all levels together. Switches come from the strongest level, lists from all.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
pub struct Sandbox {
    pub enabled: bool,
    /// Whether a machine without a sandbox is an error.
    pub fail_if_unavailable: bool,
    /// Whether commands in the sandbox run without asking.
    pub auto_allow_bash: bool,
    /// Commands that run outside of it.
    pub excluded_commands: Vec<Sourced<String>>,
    /// Whether a command may ask to run outside of it.
    pub allow_unsandboxed_commands: bool,
    pub filesystem: SandboxFiles,
    pub network: SandboxNetwork,
    /// The rule for credentials, as it was written.
    pub credentials: Option<Value>,
}

/// Paths as they were written; each knows the directory that it may be relative to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxFiles {
    pub allow_write: Vec<Sourced<String>>,
    pub deny_write: Vec<Sourced<String>>,
    pub deny_read: Vec<Sourced<String>>,
    pub allow_read: Vec<Sourced<String>>,
    /// Whether files are left out of the sandbox's business.
    pub disabled: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxNetwork {
    pub allowed_domains: Vec<Sourced<String>>,
    pub denied_domains: Vec<Sourced<String>>,
    /// Whether what is not allowed is refused without asking.
    pub strict_allowlist: bool,
    pub allow_unix_sockets: Vec<Sourced<String>>,
    pub allow_all_unix_sockets: bool,
    pub allow_local_binding: bool,
    pub http_proxy_port: Option<u16>,
    pub socks_proxy_port: Option<u16>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new(&MergedValues::default())
    }
}

impl Sandbox {
    pub(super) fn new(merged: &MergedValues) -> Self {
        let path = |name: &str| format!("sandbox.{name}");
        let switch = |name: &str, default| merged.bool(&path(name)).unwrap_or(default);
        let texts = |name: &str| merged.texts(&path(name));
        let port = |name: &str| {
            let value = merged.first(&path(name))?.entry.value.as_u64()?;
            u16::try_from(value).ok()
        };
        // A repository that confines commands must not free them of questions by it.
        let is_folders = merged
            .first("sandbox.enabled")
            .is_some_and(|it| matches!(it.origin.level, Level::Project | Level::Local));
        Self {
            enabled: switch("enabled", false),
            fail_if_unavailable: switch("failIfUnavailable", false),
            auto_allow_bash: switch("autoAllowBashIfSandboxed", !is_folders),
            excluded_commands: texts("excludedCommands"),
            allow_unsandboxed_commands: switch("allowUnsandboxedCommands", true),
            filesystem: SandboxFiles {
                allow_write: texts("filesystem.allowWrite"),
                deny_write: texts("filesystem.denyWrite"),
                deny_read: texts("filesystem.denyRead"),
                allow_read: texts("filesystem.allowRead"),
                disabled: switch("filesystem.disabled", false),
            },
            network: SandboxNetwork {
                allowed_domains: texts("network.allowedDomains"),
                denied_domains: texts("network.deniedDomains"),
                strict_allowlist: switch("network.strictAllowlist", false),
                allow_unix_sockets: texts("network.allowUnixSockets"),
                allow_all_unix_sockets: switch("network.allowAllUnixSockets", false),
                allow_local_binding: switch("network.allowLocalBinding", false),
                http_proxy_port: port("network.httpProxyPort"),
                socks_proxy_port: port("network.socksProxyPort"),
            },
            credentials: merged.value("sandbox.credentials"),
        }
    }
}
