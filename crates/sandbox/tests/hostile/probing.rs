//! The detection of capabilities leaves the machine as it was.

use std::path::Path;
use std::process::Command;

use centurion_sandbox::{Namespaces, Support};
use centurion_testkit::{Lack, skip};

use crate::cell::{User, program_in, run_as, scratch};

/// Root without a user namespace: the attempt would change root's mounts instead of its own.
///
/// Here root's mounts are those of a namespace made for this test: the machine's own are never at stake.
#[test]
fn the_attempt_does_not_touch_the_mounts_of_a_root_without_namespaces() {
    let scratch = scratch();
    let program = program_in(scratch.path());
    let available = Command::new("unshare").args(["-U", "-r", "-m", "true"]).status();
    if !available.is_ok_and(|status| status.success()) {
        return skip(Lack::Namespaces);
    }
    let script = r#"
        set -e
        mount -t proc proc /proc
        echo 0 > /proc/sys/user/max_user_namespaces
        cd "$1"
        touch before; ls -A /dev > devices-before; mount > mounts-before
        ./sandboxed > support
        touch after; ls -A /dev > devices-after; mount > mounts-after
        cmp devices-before devices-after
        cmp mounts-before mounts-after
    "#;
    let mut attempt = run_as(User::Own, Path::new("unshare"));
    attempt.args(["-U", "-r", "-m", "-p", "-f", "sh", "-c", script, "sh"]).arg(scratch.path());
    let said = attempt.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    assert!(program.exists());
    let support = std::fs::read(scratch.path().join("support")).unwrap();
    let support: Support = serde_json::from_slice(&support).unwrap();
    assert!(matches!(support.namespaces, Namespaces::Missing(_)), "{support:?}");
    assert!(!support.process_namespace, "{support:?}");
}
