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

/// The protocol's conformance suite in two versions, its Inspector, and the server that shows all of the protocol.
const NPM: [&str; 4] = [
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "conformance-older@npm:@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
];

/// Clients that drive the program: the SDK for TypeScript with what it leaves to its users, the adapters of editors with
/// the library that drives them, and a reader of transcripts in two versions. What they bring besides for one kind of
/// machine is another program, and is left out.
const CLIENTS: [&str; 8] = [
    "@anthropic-ai/claude-agent-sdk@0.3.325",
    "zod@4.6.7",
    "@modelcontextprotocol/sdk@1.29.0",
    "@agentclientprotocol/sdk@2.4.0",
    "@agentclientprotocol/claude-agent-acp@0.100.0",
    "@zed-industries/claude-code-acp@0.16.2",
    "ccusage18@npm:ccusage@18.0.11",
    "ccusage@20.0.24",
];

/// The part of a client that is for one kind of machine and is needed.
const NATIVE: &str = "@ccusage/ccusage";

/// A program that an older client brings in its own package; tests must not start it.
const FOREIGN_PROGRAM: &str =
    "@zed-industries/claude-code-acp/node_modules/@anthropic-ai/claude-agent-sdk/cli.js";

/// Servers are written with the first, hosts with the second; the others read transcripts.
const PYTHON: [&str; 4] =
    ["mcp==2.3.0", "claude-agent-sdk==0.2.182", "claude-code-log==1.7.0", "claude-monitor==4.0.0"];

/// Packages that are built from their sources: what is built beforehand brings a whole other program along.
const FROM_SOURCE: &str = "claude-agent-sdk";

/// The directory of the components.
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
    let venv = directory.join("python");
    let all: Vec<&str> = std::iter::once(node.as_str()).chain(NPM).collect();
    install_npm(&directory.join("npm"), &[], &all)?;
    let clients = directory.join("clients");
    let native = native()?;
    let all: Vec<&str> = CLIENTS.into_iter().chain([native.as_str()]).collect();
    install_npm(&clients, &["--omit=optional"], &all)?;
    // It may be gone in a later version.
    let _ = fs::remove_file(clients.join("node_modules").join(FOREIGN_PROGRAM));
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(install.args(["--no-binary", FROM_SOURCE]).args(PYTHON))?;
    link(&node_program, &directory.join("node"))?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Installs packages below a directory.
fn install_npm(directory: &Path, flags: &[&str], packages: &[&str]) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut install = Command::new("npm");
    install.args(["install", "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit"]);
    install.args(["--no-fund", "--loglevel=error", "--prefix"]).arg(directory);
    run(install.args(flags).args(packages))
}

/// All that is to be installed, one a line.
fn wanted(node: &str) -> String {
    let mut all = vec![node];
    all.extend(NPM);
    all.extend(CLIENTS);
    all.extend(PYTHON);
    all.join("\n")
}

/// The package that holds the native part of a client for this machine.
fn native() -> Result<String> {
    let version = CLIENTS.iter().find_map(|it| it.strip_prefix("ccusage@")).unwrap_or_default();
    Ok(format!("{NATIVE}-{}@{version}", machine()?))
}

/// The package that holds node for this machine.
fn node() -> Result<String> {
    Ok(format!("node-{}@{NODE}", machine()?))
}

/// This machine, as packages name it.
fn machine() -> Result<String> {
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
    Ok(format!("{system}-{machine}"))
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
