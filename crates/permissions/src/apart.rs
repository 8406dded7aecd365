//! An agent that works apart: its file tools reach its own checkout, and not those that it is kept out of.

use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::query::Query;
use crate::reason::Reason;

/// What of a checkout serves all of its agents: definitions, skills and memories.
const SHARED: [&str; 2] = [".claude", ".centurion"];

/// Where an agent works, and what is around that, with links resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    pub root: PathBuf,
    /// The checkouts that it works apart from: the repository's, and its caller's.
    pub checkouts: Vec<PathBuf>,
    /// What else stays as it is: git directories and configuration, and what git obeys in its own.
    pub kept: Vec<PathBuf>,
    /// What of the checkouts the agent reads through links in its own.
    pub readable: Vec<PathBuf>,
}

impl Apart {
    /// Where the agent has what is at a path of another checkout.
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

    /// Whether a path stays as it is, although it is in no checkout that the agent works apart from.
    fn keeps(&self, path: &Path) -> bool {
        // Its own place lies in some of them.
        let others = self.kept.iter().filter(|kept| !self.root.starts_with(kept));
        others.into_iter().any(|kept| path.starts_with(kept))
    }
}

/// Why the file tools of an agent that works apart do not reach a path.
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
