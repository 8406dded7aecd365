//! The method by which a machine confines a command, and its gaps.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Bubblewrap, Namespaces, Network, Sandbox, Support};

/// A sandbox with a method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Plan {
    pub sandbox: Sandbox,
    pub method: Method,
    /// Whether the command sees only processes of its own.
    pub own_processes: bool,
    /// The requirements of the sandbox that this method does not meet.
    pub gaps: Vec<Gap>,
}

/// The methods, best first. All of them filter system calls, and use Landlock if available.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Method {
    /// Namespaces of the command's own: another view of the file system, another network.
    Namespaces,
    /// The same through this helper program.
    Bubblewrap(PathBuf),
    /// Landlock alone.
    Landlock,
}

/// A part of a sandbox that is not guaranteed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, Error)]
#[serde(rename_all = "camelCase")]
pub enum Gap {
    #[error("commands can send signals to other processes of the user")]
    Signals,
    #[error("commands can change permissions, owners and times of files that they cannot write")]
    Attributes,
    #[error("commands can empty files that they cannot write")]
    Truncation,
    #[error(
        "files that must not be changed can be, where they are in a directory that may be written"
    )]
    DeniedWrites,
    #[error("files that must not be read can be")]
    DeniedReads,
    #[error("links on the way to files that must not be changed can be replaced")]
    Links,
}

/// The reason that a sandbox is not available.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unavailable {
    #[error("the kernel cannot filter system calls")]
    Filter,
    #[error(
        "the kernel has no Landlock, this user may not have namespaces ({namespaces}), and bubblewrap \
         {bubblewrap}"
    )]
    Nothing { namespaces: String, bubblewrap: String },
    #[error("domains cannot be allowed one by one without a network namespace ({0})")]
    Domains(String),
}

impl Plan {
    /// The best plan on this machine. A caller that accepts no gaps checks them.
    pub fn new(sandbox: Sandbox, support: &Support) -> Result<Self, Unavailable> {
        if !support.seccomp {
            return Err(Unavailable::Filter);
        }
        let method = method(support)?;
        if let (Method::Landlock, Network::Proxied { .. }, Namespaces::Missing(reason)) =
            (&method, &sandbox.network, &support.namespaces)
        {
            return Err(Unavailable::Domains(reason.clone()));
        }
        let own_processes = match method {
            Method::Namespaces => support.process_namespace,
            Method::Bubblewrap(_) => true,
            Method::Landlock => false,
        };
        let gaps = gaps(&sandbox, &method, own_processes, support.landlock);
        Ok(Self { sandbox, method, own_processes, gaps })
    }
}

impl Plan {
    /// The same plan with more forbidden paths and more write-denied ones, and the resulting gaps.
    #[must_use]
    pub fn denying(&self, forbidden: &[PathBuf], deny_write: &[PathBuf]) -> Self {
        let mut plan = self.clone();
        plan.sandbox.forbidden.extend_from_slice(forbidden);
        plan.sandbox.deny_write.extend_from_slice(deny_write);
        let more = [
            (Gap::DeniedReads, self.method == Method::Landlock && !forbidden.is_empty()),
            (Gap::DeniedWrites, self.method == Method::Landlock && !deny_write.is_empty()),
            (Gap::Links, matches!(self.method, Method::Bubblewrap(_)) && !deny_write.is_empty()),
        ];
        for (gap, is_open) in more {
            if is_open && !plan.gaps.contains(&gap) {
                plan.gaps.push(gap);
            }
        }
        plan
    }
}

fn method(support: &Support) -> Result<Method, Unavailable> {
    let namespaces = match &support.namespaces {
        Namespaces::Available => return Ok(Method::Namespaces),
        Namespaces::Missing(reason) => reason.clone(),
    };
    let bubblewrap = match &support.bubblewrap {
        Bubblewrap::Works(path) => return Ok(Method::Bubblewrap(path.clone())),
        Bubblewrap::Broken { reason, .. } => format!("does not work: {reason}"),
        Bubblewrap::Missing => "is not installed".to_owned(),
    };
    match support.landlock {
        Some(_) => Ok(Method::Landlock),
        None => Err(Unavailable::Nothing { namespaces, bubblewrap }),
    }
}

fn gaps(
    sandbox: &Sandbox,
    method: &Method,
    own_processes: bool,
    landlock: Option<u32>,
) -> Vec<Gap> {
    /// The versions of Landlock that introduced these.
    const TRUNCATION: u32 = 3;
    const SIGNALS: u32 = 6;

    let has = |version| landlock.is_some_and(|known| known >= version);
    let denies_writes = !sandbox.deny_write.is_empty();
    let is_bare = *method == Method::Landlock;
    let is_wrapped = matches!(method, Method::Bubblewrap(_));
    let gaps = [
        // A process that is not visible cannot be signalled.
        (Gap::Signals, !has(SIGNALS) && !own_processes),
        (Gap::Attributes, is_bare),
        (Gap::Truncation, is_bare && !has(TRUNCATION)),
        (Gap::DeniedWrites, is_bare && denies_writes),
        (
            Gap::DeniedReads,
            is_bare && !(sandbox.deny_read.is_empty() && sandbox.forbidden.is_empty()),
        ),
        (Gap::Links, is_wrapped && denies_writes),
    ];
    gaps.into_iter().filter(|(_, is_open)| *is_open).map(|(gap, _)| gap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProxyProtocol;

    fn support(namespaces: bool, bubblewrap: bool, landlock: Option<u32>) -> Support {
        Support {
            landlock,
            seccomp: true,
            process_namespace: false,
            namespaces: if namespaces {
                Namespaces::Available
            } else {
                Namespaces::Missing("not here".to_owned())
            },
            bubblewrap: if bubblewrap {
                Bubblewrap::Works("/usr/bin/bwrap".into())
            } else {
                Bubblewrap::Missing
            },
        }
    }

    fn full() -> Sandbox {
        Sandbox {
            deny_write: vec!["/w".into()],
            deny_read: vec!["/r".into()],
            ..Sandbox::default()
        }
    }

    #[test]
    fn the_best_means_is_taken_and_its_gaps_are_named() {
        let plan = |namespaces, bubblewrap, landlock| {
            let plan = Plan::new(full(), &support(namespaces, bubblewrap, landlock)).unwrap();
            (plan.method, plan.gaps)
        };
        assert_eq!(plan(true, true, Some(6)), (Method::Namespaces, vec![]));
        assert_eq!(plan(true, false, None), (Method::Namespaces, vec![Gap::Signals]));
        let wrapped = Method::Bubblewrap("/usr/bin/bwrap".into());
        assert_eq!(plan(false, true, None), (wrapped, vec![Gap::Links]));
        assert_eq!(
            plan(false, false, Some(2)),
            (
                Method::Landlock,
                vec![
                    Gap::Signals,
                    Gap::Attributes,
                    Gap::Truncation,
                    Gap::DeniedWrites,
                    Gap::DeniedReads
                ]
            )
        );
    }

    #[test]
    fn what_cannot_be_had_is_refused_with_a_reason() {
        let refused =
            |sandbox, support: &Support| Plan::new(sandbox, support).unwrap_err().to_string();
        let nothing = refused(full(), &support(false, false, None));
        assert!(nothing.contains("not here") && nothing.contains("not installed"), "{nothing}");
        let blind = Support { seccomp: false, ..support(true, true, Some(7)) };
        assert!(refused(full(), &blind).contains("filter"));
        let network = Network::Proxied { socket: "/s".into(), ways: vec![ProxyProtocol::Http] };
        let proxied = Sandbox { network, ..full() };
        assert!(refused(proxied.clone(), &support(false, false, Some(7))).contains("domains"));
        assert!(Plan::new(proxied, &support(true, false, None)).is_ok());
    }
}
