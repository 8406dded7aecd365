//! The sandbox that the settings ask for, as this machine can give it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use centurion_config::settings::{Settings, Sourced};
use centurion_sandbox::{Domains, Network, Proxy, Routes, Sandbox, Support, UnixSockets};
use centurion_tools::{SandboxPolicy, SandboxSettings};

use crate::output::note;
use crate::surroundings::Surroundings;

/// What commands must not change even where they may write: what runs later without anybody being asked.
const KEPT: [&str; 6] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".centurion/settings.json",
    ".centurion/settings.local.json",
    ".git/hooks/",
    ".git/config",
];

/// A sandbox that is ready, with what must live as long as it.
pub(crate) struct Confinement {
    pub(crate) policy: Arc<SandboxPolicy>,
    /// Lets sandboxed commands reach the domains and sockets that are allowed.
    pub(crate) proxy: Option<Proxy>,
    /// Sandboxed commands need no question.
    pub(crate) is_trusted: bool,
}

/// Makes the sandbox, if the settings want one. Needs a runtime.
pub(crate) fn confinement(
    settings: &Settings,
    surroundings: &Surroundings,
    directories: &[PathBuf],
) -> anyhow::Result<Option<Confinement>> {
    let wanted = settings.sandbox();
    if !wanted.enabled {
        return Ok(None);
    }
    let routes = routes(settings, surroundings.home.as_deref());
    let proxy = proxy(&routes, surroundings)?;
    let outside = proxy.as_ref().map(|proxy| (&routes, proxy));
    let sandbox = description(settings, surroundings, directories, outside);
    let policy = SandboxPolicy::new(
        sandbox,
        &Support::detect(),
        SandboxSettings {
            fail_if_unavailable: wanted.fail_if_unavailable,
            allow_unsandboxed_commands: wanted.allow_unsandboxed_commands,
            excluded_commands: texts(&wanted.excluded_commands),
        },
    );
    match (policy.unavailable(), policy.gaps()) {
        (Some(reason), _) if wanted.fail_if_unavailable => {
            bail!(
                "the sandbox is not available: {reason}\nhelp: centurion doctor says what this machine can do"
            );
        }
        (None, gaps @ [_, ..]) if wanted.fail_if_unavailable => {
            bail!("the sandbox cannot guarantee all that is asked of it: {}", join(gaps));
        }
        (Some(reason), _) => note(&format!("warning: commands run without a sandbox: {reason}")),
        (None, []) => {}
        (None, gaps) => note(&format!("warning: the sandbox has gaps here: {}", join(gaps))),
    }
    Ok(Some(Confinement { policy: Arc::new(policy), proxy, is_trusted: wanted.auto_allow_bash }))
}

/// What commands may touch.
fn description(
    settings: &Settings,
    surroundings: &Surroundings,
    directories: &[PathBuf],
    outside: Option<(&Routes, &Proxy)>,
) -> Sandbox {
    let (files, network) = (&settings.sandbox().filesystem, &settings.sandbox().network);
    let places = |list: &[Sourced<String>]| -> Vec<PathBuf> {
        list.iter().map(|text| place(text, surroundings.home.as_deref())).collect()
    };
    let write = if files.disabled {
        vec![PathBuf::from("/")]
    } else {
        let own = directories.iter().cloned().chain([std::env::temp_dir()]);
        own.chain(places(&files.allow_write)).collect()
    };
    let kept =
        directories.iter().flat_map(|directory| KEPT.iter().map(|name| directory.join(name)));
    Sandbox {
        write,
        deny_write: kept
            .chain(surroundings.dirs.config_dirs().iter().cloned())
            .chain(places(&files.deny_write))
            .collect(),
        deny_read: places(&files.deny_read),
        allow_read: places(&files.allow_read),
        network: match outside {
            Some((routes, proxy)) if !routes.ways().is_empty() => {
                Network::Proxied { socket: proxy.socket().to_owned(), ways: routes.ways() }
            }
            _ if network.allow_local_binding => Network::Loopback,
            _ => Network::Off,
        },
        unix_sockets: match outside {
            _ if network.allow_all_unix_sockets => UnixSockets::Allowed,
            Some((routes, proxy)) if !routes.unix_sockets.is_empty() => {
                UnixSockets::Listed { socket: proxy.socket().to_owned() }
            }
            _ => UnixSockets::Denied,
        },
    }
}

/// What commands can reach outside.
fn routes(settings: &Settings, home: Option<&Path>) -> Routes {
    let network = &settings.sandbox().network;
    let sockets = network.allow_unix_sockets.iter().filter(|_| !network.allow_all_unix_sockets);
    Routes {
        domains: Domains {
            allowed: texts(&network.allowed_domains),
            denied: texts(&network.denied_domains),
        },
        http: network.http_proxy_port,
        socks: network.socks_proxy_port,
        unix_sockets: sockets.map(|socket| place(socket, home)).collect(),
    }
}

/// A path of the settings: absolute, at home, or relative to what its file speaks of.
fn place(text: &Sourced<String>, home: Option<&Path>) -> PathBuf {
    match (text.value.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if text.value.starts_with('/') => {
            PathBuf::from(format!("/{}", text.value.trim_start_matches('/')))
        }
        _ => text.origin.root.join(&text.value),
    }
}

fn proxy(routes: &Routes, surroundings: &Surroundings) -> anyhow::Result<Option<Proxy>> {
    if routes.ways().is_empty() && routes.unix_sockets.is_empty() {
        return Ok(None);
    }
    surroundings
        .make_scratch()
        .context("cannot make a private directory for the sandbox's proxy")?;
    Proxy::start(surroundings.scratch.join("proxy"), routes.clone())
        .map(Some)
        .context("the sandbox's proxy could not be started")
}

fn texts(list: &[Sourced<String>]) -> Vec<String> {
    list.iter().map(|text| text.value.clone()).collect()
}

fn join(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
