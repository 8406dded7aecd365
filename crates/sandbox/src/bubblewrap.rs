//! The same view of the machine through bubblewrap, where namespaces need a helper.
//!
//! Bubblewrap makes the namespaces and starts this program again, which then does the rest in there.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::apply::{ApplyError, CommandPlace};
use crate::view::{Mode, View};
use crate::{Network, Plan};

/// Everything read-only, with devices and processes of its own; it ends with its parent.
pub(crate) const BASE: [&str; 11] = base("--ro-bind");

/// The same with all files unchanged.
const OPEN_BASE: [&str; 11] = base("--bind");

const fn base(root: &'static str) -> [&'static str; 11] {
    [
        "--die-with-parent",
        "--unshare-ipc",
        "--unshare-pid",
        root,
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-user-try",
    ]
}

/// The command that runs `program` with bubblewrap, in the directory and with the view of the plan.
pub(crate) fn command(
    bubblewrap: &Path,
    plan: &Plan,
    place: &CommandPlace,
    program: &[OsString],
) -> Result<Command, ApplyError> {
    let view = View::of(&plan.sandbox, place)?;
    let mut command = Command::new(bubblewrap);
    command.args(if view.is_open() { OPEN_BASE } else { BASE });
    if plan.sandbox.network != Network::Open {
        command.arg("--unshare-net");
    }
    // A second mount of the root would cover the devices and processes of its own.
    for (path, mode) in view.iter().filter(|(path, _)| *path != Path::new("/")) {
        match mode {
            // Links cannot be mounted: the plan has named that gap.
            Mode::Anchored if path.is_symlink() => &mut command,
            Mode::Writable | Mode::Anchored => command.arg("--bind").args([path, path]),
            Mode::ReadOnly | Mode::Shown => command.arg("--ro-bind").args([path, path]),
            Mode::Hidden if path.is_dir() => {
                let permissions = if view.has_within(path) { "0755" } else { "0000" };
                command.args(["--perms", permissions, "--tmpfs"]).arg(path)
            }
            Mode::Hidden => command.args(["--ro-bind", "/dev/null"]).arg(path),
        };
    }
    // Only now: otherwise nothing could have been mounted within it.
    for (path, mode) in view.iter() {
        if mode == Mode::Hidden && path.is_dir() {
            command.arg("--remount-ro").arg(path);
        }
    }
    command.arg("--chdir").arg(&place.cwd).arg("--").args(program);
    Ok(command)
}
