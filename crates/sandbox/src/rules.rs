//! Landlock: a second barrier for writing, and the only one that keeps signals inside.

use std::path::Path;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use crate::UnixSockets;

/// Confines this process and its descendants: writing only to these paths, and no signals and no abstract sockets to
/// the outside. Returns whether the kernel enforces any of it.
pub(crate) fn restrict<'a>(
    writable: impl Iterator<Item = &'a Path>,
    unix_sockets: &UnixSockets,
) -> Result<bool, RulesetError> {
    // Rights that older kernels lack are left out.
    let writing = AccessFs::from_write(ABI::V5);
    let scope = match unix_sockets {
        UnixSockets::Denied | UnixSockets::Listed { .. } => {
            Scope::Signal | Scope::AbstractUnixSocket
        }
        UnixSockets::Allowed => Scope::Signal.into(),
    };
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writing)?
        .scope(scope)?
        .create()?
        .add_rules(path_beneath_rules(writable, writing))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}
