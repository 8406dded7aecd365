//! Code of other people that is built in: its amount, its licences, its repetitions.
//!
//! docs/dependencies.md says why.

use std::collections::{BTreeMap, BTreeSet};
use std::env::consts::ARCH;
use std::process::Command;

use serde_json::Value;

use crate::tree::{assert_none, root};

/// The most packages in Cargo.lock, for all platforms. Going up is a decision: say in docs/dependencies.md what for.
const MOST_LOCKED: usize = 358;

/// Room for crates of our own: more than that below the bound, and the bound can go down.
const ROOM: usize = 5;

/// Licences that ask for no more than a notice.
const LICENCES: [&str; 9] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that only tests may be built with.
const FOR_TESTS: [&str; 6] = ["avt", "centurion-testkit", "insta", "proptest", "vt100", "xtask"];

const OAUTH2: &str = "oauth2, through rmcp, is a generation behind";
const RING: &str = "ring is a generation behind";
const OTHER_PLATFORMS: &str = "for a platform that is not built";

/// Crates that are there more than once: the number of versions, and the reason.
const REPEATED: [(&str, usize, &str); 16] = [
    ("base64", 2, OAUTH2),
    ("bitflags", 2, OTHER_PLATFORMS),
    ("block-buffer", 2, OAUTH2),
    ("cpufeatures", 2, OAUTH2),
    ("crypto-common", 2, OAUTH2),
    ("digest", 2, OAUTH2),
    ("getrandom", 3, "ring, ahash and rand are each a generation apart"),
    ("r-efi", 2, OTHER_PLATFORMS),
    ("rand", 2, OAUTH2),
    ("rand_core", 2, OAUTH2),
    ("sha2", 2, OAUTH2),
    ("sse-stream", 2, "0.2 is a part of rmcp's interface, and only 0.3 reads every stream"),
    ("syn", 2, "macros go over to syn 3 one by one"),
    ("thiserror", 2, OAUTH2),
    ("thiserror-impl", 2, OAUTH2),
    ("windows-sys", 2, RING),
];

#[test]
fn the_lock_file_does_not_grow_unseen() {
    let locked = locked("Cargo.lock").len();
    assert!(
        locked <= MOST_LOCKED,
        "Cargo.lock has {locked} packages, more than {MOST_LOCKED}: do without, or raise the bound"
    );
    assert!(locked + ROOM > MOST_LOCKED, "Cargo.lock has {locked} packages: lower the bound");
}

#[test]
fn nothing_is_built_twice_without_a_reason() {
    assert_none(&repetitions(&locked("Cargo.lock"), &REPEATED));
}

#[test]
fn fuzzing_is_built_with_what_the_program_is_built_with() {
    let ours = locked("Cargo.lock");
    let known: BTreeSet<&str> = ours.iter().map(|(name, _)| name.as_str()).collect();
    let complaints: Vec<String> = locked("fuzz/Cargo.lock")
        .into_iter()
        .filter(|package| known.contains(package.0.as_str()) && !ours.contains(package))
        .map(|(name, version)| format!("fuzz/Cargo.lock has {name} {version}, Cargo.lock has not"))
        .collect();
    assert_none(&complaints);
}

#[test]
fn every_licence_is_one_that_we_can_meet() {
    let metadata = metadata();
    let complaints: Vec<String> = list(&metadata["packages"])
        .filter_map(|package| {
            let licence = package["license"].as_str().unwrap_or("no licence");
            (!is_allowed(licence)).then(|| format!("{}: {licence}", package["name"]))
        })
        .collect();
    assert_none(&complaints);
}

#[test]
fn the_program_is_built_without_what_is_for_tests() {
    let metadata = metadata();
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let names: BTreeMap<&str, &str> = list(&metadata["packages"])
        .filter_map(|package| Some((package["id"].as_str()?, package["name"].as_str()?)))
        .collect();
    let program = names.iter().find(|(_, name)| **name == "centurion").map(|(id, _)| *id);
    let mut built = BTreeSet::new();
    let mut open: Vec<&str> = program.into_iter().collect();
    while let Some(id) = open.pop() {
        if built.insert(id)
            && let Some(node) = nodes.get(id)
        {
            open.extend(list(&node["deps"]).filter(|used| is_built(used)).filter_map(package));
        }
    }
    assert!(built.len() > 100, "the graph was not read");
    let built: BTreeSet<&str> = built.iter().filter_map(|id| names.get(id).copied()).collect();
    let complaints: Vec<String> = FOR_TESTS
        .iter()
        .filter(|name| built.contains(*name))
        .map(|name| format!("the program is built with {name}"))
        .collect();
    assert_none(&complaints);
}

/// Whether a dependency is more than one of tests.
fn is_built(dependency: &Value) -> bool {
    list(&dependency["dep_kinds"]).any(|kind| kind["kind"] != "dev")
}

fn package(dependency: &Value) -> Option<&str> {
    dependency["pkg"].as_str()
}

/// Whether of each choice one licence is allowed. Choices within choices are not read, and so not allowed.
fn is_allowed(licence: &str) -> bool {
    let plain = licence.replace(" / ", " OR ").replace('/', " OR ");
    let is_one_allowed = |choice: &str| {
        let choice = choice.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(choice);
        choice.split(" OR ").any(|licence| LICENCES.contains(&licence))
    };
    plain.split(" AND ").all(is_one_allowed)
}

/// Crates that are there more often than the table says, and entries of the table without need.
fn repetitions(locked: &[(String, String)], table: &[(&str, usize, &str)]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, _) in locked {
        *counts.entry(name).or_default() += 1;
    }
    let allowed = |name: &str| {
        table.iter().find(|(known, ..)| *known == name).map_or(1, |(_, count, _)| *count)
    };
    let more = counts
        .iter()
        .filter(|(name, count)| **count > allowed(name))
        .map(|(name, count)| format!("{name} is in Cargo.lock in {count} versions"));
    let less = table
        .iter()
        .filter(|(name, count, _)| counts.get(name).copied().unwrap_or_default() < *count)
        .map(|(name, count, _)| {
            format!("{name} is not there {count} times any more: correct the table")
        });
    more.chain(less).collect()
}

/// The packages of a lock file, with their versions.
fn locked(path: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join(path)).expect("a lock file");
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_matches('"').to_owned())
    };
    let packages: Vec<_> = text
        .split("[[package]]\n")
        .filter_map(|block| Some((value(block, "name = ")?, value(block, "version = ")?)))
        .collect();
    assert!(packages.len() > 100, "{path} was not read");
    packages
}

/// The graph of what is built here. What is for other platforms need not be on this machine.
fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let platform = format!("{ARCH}-unknown-linux-gnu");
    let output = Command::new(cargo)
        .args(["metadata", "--offline", "--locked", "--format-version=1"])
        .args(["--filter-platform", &platform])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_that_asks_for_more_is_found() {
        for (licence, expected) in [
            ("MIT", true),
            ("MIT/Apache-2.0", true),
            ("MIT OR LGPL-2.1-or-later", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("GPL-3.0-only", false),
            ("MIT AND GPL-3.0-only", false),
            ("MPL-2.0", false),
            ("MIT OR (Apache-2.0 AND GPL-3.0-only)", false),
            ("(GPL-3.0-only AND MIT) OR LGPL-2.1-only", false),
            ("no licence", false),
        ] {
            assert_eq!(is_allowed(licence), expected, "{licence}");
        }
    }

    #[test]
    fn a_second_version_and_a_reason_that_is_gone_are_found() {
        let locked: Vec<_> = [("a", "1"), ("a", "2"), ("b", "1"), ("c", "1"), ("c", "2")]
            .map(|(name, version)| (name.to_owned(), version.to_owned()))
            .into();
        let table = [("a", 2, "a reason"), ("b", 2, "a reason that is gone")];
        let complaints = repetitions(&locked, &table);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints.iter().any(|complaint| complaint.starts_with("c is in")));
        assert!(complaints.iter().any(|complaint| complaint.starts_with("b is not")));
    }
}
