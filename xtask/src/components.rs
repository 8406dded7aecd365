//! The programs of others that tests work with: each at one exact version, kept below the target directory.

use std::env::consts::{ARCH, OS};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{run, target};

/// Tells the tests where the components are.
pub(crate) const VARIABLE: &str = "CENTURION_TEST_NEEDS";

/// Runs the others: the conformance suite needs a newer one than systems bring.
const NODE: &str = "24.21.0";

/// The client side of the protocol's conformance suite, and the server that shows all of the protocol.
const NPM: [&str; 2] = [
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/server-everything@2026.8.31",
];

/// Servers are written with the first, hosts with the second.
const PYTHON: [&str; 2] = ["mcp==2.3.0", "claude-agent-sdk==0.2.182"];

/// Packages that are built from their sources: what is built beforehand brings a whole other program along.
const FROM_SOURCE: &str = "claude-agent-sdk";

/// Where the components are.
pub(crate) fn directory() -> PathBuf {
    target().join("needs")
}

/// Installs the components, unless exactly these are there and start.
pub(crate) fn install() -> Result<()> {
    let directory = directory();
    let node = node()?;
    let wanted = wanted(&node);
    let stamp = directory.join("installed");
    let is_there = fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted);
    let (node_program, python) = (node_program(&directory, &node), python(&directory));
    if is_there && starts(&node_program) && starts(&python) {
        return Ok(());
    }
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    let (npm, venv) = (directory.join("npm"), directory.join("python"));
    fs::create_dir_all(&npm).with_context(|| format!("cannot make {}", npm.display()))?;
    let mut install = Command::new("npm");
    install.args(["install", "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit"]);
    install.args(["--no-fund", "--loglevel=error", "--prefix"]).arg(&npm);
    run(install.arg(&node).args(NPM))?;
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(install.args(["--no-binary", FROM_SOURCE]).args(PYTHON))?;
    link(&node_program, &directory.join("node"))?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// All that is to be installed, one a line.
fn wanted(node: &str) -> String {
    let mut all = vec![node];
    all.extend(NPM);
    all.extend(PYTHON);
    all.join("\n")
}

/// The package that holds node for this machine.
fn node() -> Result<String> {
    let system = match OS {
        "linux" => "linux",
        "macos" => "darwin",
        other => bail!("the tests know no node for {other}"),
    };
    let machine = match ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => bail!("the tests know no node for {other}"),
    };
    Ok(format!("node-{system}-{machine}@{NODE}"))
}

fn node_program(directory: &Path, package: &str) -> PathBuf {
    let name = package.split_once('@').map_or(package, |(name, _)| name);
    directory.join("npm/node_modules").join(name).join("bin/node")
}

fn python(directory: &Path) -> PathBuf {
    directory.join("python/bin/python")
}

fn starts(program: &Path) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Gives a program a name that is the same on every machine.
fn link(program: &Path, name: &Path) -> Result<()> {
    std::os::unix::fs::symlink(program, name)
        .with_context(|| format!("cannot link {} to {}", name.display(), program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_one_exact_version() {
        let node = node().unwrap();
        for component in wanted(&node).lines() {
            let version = component.rsplit(['@', '=']).next().unwrap();
            assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{component}");
            assert!(!version.contains(['^', '~', '*', '<', '>']), "{component}");
        }
    }
}
