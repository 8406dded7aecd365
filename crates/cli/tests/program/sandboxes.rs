//! What sandbox this machine can give commands, for the tests that need one.

use centurion_sandbox::{Sandbox, Support};
use centurion_testkit::needs;
use centurion_tools::{SandboxPolicy, SandboxSettings};

fn policy() -> SandboxPolicy {
    SandboxPolicy::new(Sandbox::default(), &Support::detect(), SandboxSettings::default())
}

/// Whether commands can be confined at all. A skip is named, and no skip in continuous integration.
pub(crate) fn can_confine() -> bool {
    needs("a sandbox", policy().unavailable().is_none())
}

/// Whether commands can be confined without a gap.
pub(crate) fn can_confine_completely() -> bool {
    let policy = policy();
    let is_complete = policy.unavailable().is_none() && policy.gaps().is_empty();
    needs("a sandbox without gaps", is_complete)
}
