//! The documents that a reader expects.

use std::fs;
use std::path::Path;

use crate::tree::root;

/// The most lines of the page that explains the shape of the program.
const LONGEST_ARCHITECTURE: usize = 300;

#[test]
fn the_documents_are_there() {
    for name in [
        "README.md",
        "CHANGELOG.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        ".github/workflows/ci.yml",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ] {
        let text = read(name);
        assert!(text.trim().len() > 100, "{name} says nothing");
    }
    assert!(read("README.md").contains("cargo xtask test"), "README.md does not say how to test");
    assert!(read("CHANGELOG.md").contains("## [Unreleased]"), "CHANGELOG.md has no standing head");
}

#[test]
fn the_architecture_can_be_read_in_one_sitting() {
    let lines = read("ARCHITECTURE.md").lines().count();
    assert!(lines <= LONGEST_ARCHITECTURE, "ARCHITECTURE.md has {lines} lines");
}

fn read(name: &str) -> String {
    let path = root().join(Path::new(name));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}
