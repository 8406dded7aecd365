//! An agent that works apart: its file tools reach its own checkout, and not the one that it is kept out of.

use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::query::Query;
use crate::reason::Reason;

/// What of a checkout serves all of its agents: definitions, skills and memories.
const SHARED: [&str; 2] = [".claude", ".centurion"];

/// Where an agent works, and the checkout around that, with links resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    pub root: PathBuf,
    pub checkout: PathBuf,
    /// What of the checkout the agent reads through links in its own.
    pub readable: Vec<PathBuf>,
}

impl Apart {
    /// Where the agent has what is at a path of the other checkout.
    fn instead_of(&self, path: &Path) -> Option<PathBuf> {
        let inner = path.strip_prefix(&self.checkout).ok()?;
        (!path.starts_with(&self.root)).then(|| self.root.join(inner))
    }

    fn may_read(&self, path: &Path) -> bool {
        SHARED.iter().any(|name| path.starts_with(self.checkout.join(name)))
            || self.readable.iter().any(|place| path.starts_with(place))
    }
}

/// Why the file tools of an agent that works apart do not reach a path.
pub(crate) fn refusal(query: &Query<'_>) -> Option<Reason> {
    let apart = query.policy.role.apart.as_ref()?;
    let path = match query.call.access {
        Access::Write(path) => path,
        Access::Read(path) if !apart.may_read(path) => path,
        _ => return None,
    };
    let instead = apart.instead_of(path)?;
    Some(Reason::Apart { path: path.clone(), instead })
}
