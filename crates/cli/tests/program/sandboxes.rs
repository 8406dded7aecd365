//! The sandbox that this machine can give commands, for the tests that need one.

use centurion_sandbox::{Sandbox, Support};
use centurion_tools::{SandboxPolicy, SandboxSettings};

fn policy() -> SandboxPolicy {
    SandboxPolicy::new(Sandbox::default(), &Support::detect(), SandboxSettings::default())
}

/// Whether commands can be confined at all.
pub(crate) fn can_confine() -> bool {
    policy().unavailable().is_none()
}

/// Whether commands can be confined without a gap.
pub(crate) fn can_confine_completely() -> bool {
    let policy = policy();
    policy.unavailable().is_none() && policy.gaps().is_empty()
}
