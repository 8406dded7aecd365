//! The scratch repository of the demo: a script, a test that fails, and a README without an example.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use centurion_protocol::Env;
use centurion_tools::InstalledGit;

const SUM: &str = r#"#!/usr/bin/env bash
# Adds up its arguments.
total=0
for number in "${@:2}"; do
  total=$((total + number))
done
echo "$total"
"#;
const TEST: &str = r#"#!/usr/bin/env bash
# With --wait: tries again until it passes.
while true; do
  result=$(./sum.sh 1 2 3)
  if [ "$result" = 6 ]; then
    echo "ok: 1 + 2 + 3 = $result"
    exit 0
  fi
  [ "$1" = --wait ] || break
  sleep 0.1
done
echo "FAILED: 1 + 2 + 3 = $result, expected 6"
exit 1
"#;
const README: &str = "# sum.sh\n\nAdds up numbers.\n";

/// Makes the repository.
pub(super) fn prepare(env: &Env, project: &Path) -> anyhow::Result<()> {
    std::fs::create_dir(project)?;
    for (name, content, mode) in
        [("sum.sh", SUM, 0o755), ("test.sh", TEST, 0o755), ("README.md", README, 0o644)]
    {
        let path = project.join(name);
        std::fs::write(&path, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    git(env, project, &["init", "--quiet", "--initial-branch=main"])?;
    git(env, project, &["add", "."])?;
    git(env, project, &["commit", "--quiet", "--message", "Add up numbers"])
}

/// Whether the test passes and the README has the example, as files and commands say and not as agents do.
pub(super) fn is_done(project: &Path) -> bool {
    let test = Command::new("./test.sh").current_dir(project).stdin(Stdio::null()).output();
    let readme = std::fs::read_to_string(project.join("README.md")).unwrap_or_default();
    test.is_ok_and(|it| it.status.success()) && readme.contains("$ ./sum.sh 10 20 30\n    60\n")
}

/// Whether the work of both agents that worked apart is in the branch, beside changes that are not committed.
pub(super) fn is_merged(project: &Path) -> bool {
    let says = |script: &str, arguments: &[&str]| {
        let said = Command::new("bash").arg(script).args(arguments).current_dir(project).output();
        said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    says("product.sh", &["2", "3", "7"]).is_ok_and(|said| said == "42")
        && says("count.sh", &["a", "b"]).is_ok_and(|said| said == "2")
}

fn git(env: &Env, project: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    // The user's own git configuration (signing, hooks, templates) stays out of the demo.
    let status = InstalledGit::fetching(env, project)
        .context("git is needed for the demo")?
        .args(["-c", "user.name=Demo", "-c", "user.email=demo@localhost"])
        .args(arguments)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .status()
        .context("git is needed for the demo and could not be started")?;
    ensure!(status.success(), "git {} failed", arguments.join(" "));
    Ok(())
}
