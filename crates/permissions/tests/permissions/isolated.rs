//! Real programs in a fixed environment.

use std::path::Path;
use std::process::{Command, Stdio};

/// A `program` in a fixed environment, so that a text does the same from a terminal and from CI. `SHELL` is set:
/// without it, `make` cannot run `$(shell …)` in its options.
pub(crate) fn isolated_command(program: &str, home: &Path, cwd: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("SHELL", "/bin/bash")
        .env("TERM", "dumb")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("npm_config_update_notifier", "false")
        .current_dir(cwd)
        .stdin(Stdio::null());
    command
}
