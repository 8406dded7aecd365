//! The sandbox that the settings ask for, as this machine can give it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use centurion_config::paths::repo_root;
use centurion_config::repository::USERS_GIT_CONFIGURATION;
use centurion_config::settings::{Settings, Sourced};
use centurion_config::trust::Trust;
use centurion_sandbox::{Domains, Network, Proxy, Routes, Sandbox, Support, UnixSockets};
use centurion_tools::{SandboxPolicy, SandboxSettings};

use crate::output::note;
use crate::protected_files::kept_paths;
use crate::surroundings::Surroundings;

/// A sandbox that is ready, with what must live as long as it.
pub(crate) struct Confinement {
    pub(crate) policy: Arc<SandboxPolicy>,
    /// Lets sandboxed commands reach the domains and sockets that are allowed.
    pub(crate) proxy: Option<Proxy>,
    /// Sandboxed commands need no question.
    pub(crate) is_trusted: bool,
}

impl Confinement {
    /// The policy, whether sandboxed commands need no question, and the proxy, where there is a sandbox.
    pub(crate) fn split(
        confinement: Option<Self>,
    ) -> (Option<Arc<SandboxPolicy>>, bool, Option<Proxy>) {
        match confinement {
            Some(Self { policy, proxy, is_trusted }) => (Some(policy), is_trusted, proxy),
            None => (None, false, None),
        }
    }
}

/// Makes the sandbox, if the settings want one. `used` is what hooks, servers and plugins of this run are made
/// of. Needs a runtime.
pub(crate) fn confinement(
    settings: &Settings,
    surroundings: &Surroundings,
    directories: &[PathBuf],
    used: &[PathBuf],
    trust: &Trust,
) -> anyhow::Result<Option<Confinement>> {
    let wanted = settings.sandbox();
    if !wanted.enabled {
        return Ok(None);
    }
    // Made before any command runs, so that it can be kept from them.
    surroundings.make_scratch().context("cannot make a private directory for the sandbox")?;
    let routes = routes(settings, surroundings.home.as_deref());
    let proxy = proxy(&routes, surroundings)?;
    let outside = proxy.as_ref().map(|proxy| (&routes, proxy));
    let (kept, is_whole) = {
        let roots = looked_at(settings, surroundings, directories, trust);
        kept_paths(&roots, surroundings.home.as_deref())
    };
    if !is_whole {
        note(
            "warning: there are too many directories to keep all of their definitions and repositories \
             from commands; those near the top are kept",
        );
    }
    let kept: Vec<PathBuf> = kept.into_iter().chain(used.iter().cloned()).collect();
    let sandbox = description(settings, surroundings, (directories, &kept), outside);
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

/// The directories in which commands may write.
fn writable(
    settings: &Settings,
    surroundings: &Surroundings,
    directories: &[PathBuf],
) -> Vec<PathBuf> {
    let files = &settings.sandbox().filesystem;
    if files.disabled {
        return vec![PathBuf::from("/")];
    }
    let own = directories.iter().cloned().chain([std::env::temp_dir()]);
    own.chain(places(&files.allow_write, surroundings.home.as_deref())).collect()
}

/// The directories that are looked through for what is kept: those that commands work in, the repositories around
/// them, and whatever else can be written of what the user gave leave for or trusts.
fn looked_at(
    settings: &Settings,
    surroundings: &Surroundings,
    directories: &[PathBuf],
    trust: &Trust,
) -> Vec<PathBuf> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let writable: Vec<PathBuf> =
        writable(settings, surroundings, directories).iter().map(|path| real(path)).collect();
    let around = directories.iter().filter_map(|directory| repo_root(directory));
    let trusted = trust.list().into_iter().map(|(folder, _)| folder.to_owned());
    let others = around
        .chain(trusted)
        .filter(|path| path.is_dir() && writable.iter().any(|root| path.starts_with(root)));
    let given = places(&settings.sandbox().filesystem.allow_write, surroundings.home.as_deref());
    let given = given.into_iter().filter(|path| path.is_dir());
    let mut all: Vec<PathBuf> =
        directories.iter().cloned().chain(given).chain(others).map(|path| real(&path)).collect();
    all.sort();
    all.dedup();
    all
}

/// The places in which the session itself or a sandboxed command may write, with links resolved.
pub(crate) fn reachable(
    settings: &Settings,
    surroundings: &Surroundings,
    added: &[PathBuf],
) -> Vec<PathBuf> {
    let directories: Vec<PathBuf> =
        std::iter::once(&surroundings.cwd).chain(added).cloned().collect();
    let places = writable(settings, surroundings, &directories).into_iter().chain(directories);
    places.filter_map(|place| place.canonicalize().ok()).collect()
}

fn places(list: &[Sourced<String>], home: Option<&Path>) -> Vec<PathBuf> {
    list.iter().map(|text| place(text, home)).collect()
}

/// The description of what commands may touch.
fn description(
    settings: &Settings,
    surroundings: &Surroundings,
    (directories, kept): (&[PathBuf], &[PathBuf]),
    outside: Option<(&Routes, &Proxy)>,
) -> Sandbox {
    let (files, network) = (&settings.sandbox().filesystem, &settings.sandbox().network);
    let places = |list: &[Sourced<String>]| places(list, surroundings.home.as_deref());
    // Files that tell this program or git at its next start what to run, wherever they are.
    let state = surroundings.home.iter().flat_map(|home| {
        [".claude.json"].iter().chain(&USERS_GIT_CONFIGURATION).map(|name| home.join(name))
    });
    Sandbox {
        write: writable(settings, surroundings, directories),
        deny_write: kept
            .iter()
            .cloned()
            .chain(state)
            .chain(surroundings.dirs.config_dirs().iter().cloned())
            // It lies where commands keep their temporary files: a link there would be written through by us.
            .chain([surroundings.scratch.clone()])
            .chain(places(&files.deny_write))
            .collect(),
        write_within: Vec::new(),
        deny_read: places(&files.deny_read),
        allow_read: places(&files.allow_read),
        // The files that rules deny are looked for when a command starts.
        forbidden: Vec::new(),
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

/// The routes by which commands reach outside.
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
