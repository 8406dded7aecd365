//! An agent that works apart: its file tools reach its own checkout, and not the checkouts of others.

use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::query::Query;
use crate::reason::Reason;

/// The parts of a checkout that serve all of its agents: definitions, skills and memories.
const SHARED: [&str; 2] = [".claude", ".centurion"];

/// The checkout of an agent, and the paths around it, with links resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    pub root: PathBuf,
    /// The checkouts from which it works apart: the repository's, and its caller's.
    pub checkouts: Vec<PathBuf>,
    /// Other paths that must not change: git directories and configuration, and the files in its own git directory that
    /// git obeys.
    pub kept: Vec<PathBuf>,
    /// The paths of those checkouts that the agent reads through links in its own.
    pub readable: Vec<PathBuf>,
    /// Tools of servers that change something are asked about in every mode, unless a rule allows them: a server works
    /// wherever it likes.
    pub asks_about_servers: bool,
}

impl Apart {
    /// The path in the agent's checkout that corresponds to a path of another checkout.
    fn instead_of(&self, path: &Path) -> Option<PathBuf> {
        if path.starts_with(&self.root) {
            return None;
        }
        // The nearest one: a checkout may lie in another.
        let around = self.checkouts.iter().filter(|checkout| path.starts_with(checkout));
        let nearest = around.max_by_key(|checkout| checkout.components().count())?;
        Some(self.root.join(path.strip_prefix(nearest).ok()?))
    }

    fn may_read(&self, path: &Path) -> bool {
        let is_shared =
            |checkout: &PathBuf| SHARED.iter().any(|name| path.starts_with(checkout.join(name)));
        self.checkouts.iter().any(is_shared)
            || self.readable.iter().any(|place| path.starts_with(place))
    }

    /// Whether a path must not change, although it is in no checkout from which the agent works apart.
    fn keeps(&self, path: &Path) -> bool {
        // The agent's own checkout lies in some of them.
        let is_own = |kept: &PathBuf| path.starts_with(&self.root) && self.root.starts_with(kept);
        self.kept.iter().any(|kept| path.starts_with(kept) && !is_own(kept))
    }
}

/// Whether a call has a server change something that may be in a checkout from which the agent works apart.
pub(crate) fn is_asked_about(query: &Query<'_>) -> bool {
    let asks = query.policy.role.apart.as_ref().is_some_and(|apart| apart.asks_about_servers);
    asks && matches!(query.call.access, Access::External { only_reads: false })
}

/// The reason that the file tools of an agent that works apart do not reach a path.
pub(crate) fn refusal(query: &Query<'_>) -> Option<Reason> {
    let apart = query.policy.role.apart.as_ref()?;
    match query.call.access {
        Access::Write(path) => match apart.instead_of(path) {
            Some(instead) => Some(Reason::Apart { path: path.clone(), instead }),
            None => apart.keeps(path).then(|| Reason::Kept(path.clone())),
        },
        Access::Read(path) if !apart.may_read(path) => {
            let instead = apart.instead_of(path)?;
            Some(Reason::Apart { path: path.clone(), instead })
        }
        _ => None,
    }
}
