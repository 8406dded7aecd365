//! The documents that a reader expects.

use std::fs;
use std::path::{Path, PathBuf};

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

/// The most modules that a reader passes with a prompt, a delegation and a question.
const LONGEST_WAYS: [(&str, usize); 3] = [("prompt", 30), ("delegation", 26), ("question", 12)];

#[test]
fn the_ways_through_the_program_are_short() {
    let text = read("ARCHITECTURE.md");
    for (name, most) in LONGEST_WAYS {
        let (_, way) = text.split_once(&format!("- **A {name}**")).expect("the way");
        let way = way.split("\n- **").next().unwrap_or_default();
        let way = way.split("\n\n").next().unwrap_or_default();
        let modules = sources_in(way).count();
        assert!((3..most).contains(&modules), "{name}: {modules} modules");
    }
}

#[test]
fn the_architecture_names_files_that_are_there() {
    let crates = fs::read_dir(root().join("crates")).expect("crates");
    let crates = crates.map(|entry| entry.expect("a crate").path().join("src"));
    let places: Vec<PathBuf> = crates.chain([root().to_owned(), root().join("crates")]).collect();
    let text = read("ARCHITECTURE.md");
    let (text, _) = text.split_once("## Invariants").expect("invariants");
    let is_there = |file: &&str| places.iter().any(|place| place.join(file).exists());
    let lost: Vec<&str> = sources_in(text).filter(|file| !is_there(file)).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

/// The source files that a text names.
fn sources_in(text: &str) -> impl Iterator<Item = &str> {
    let is_source = |name: &&str| Path::new(name).extension().is_some_and(|it| it == "rs");
    text.split('`').skip(1).step_by(2).filter(is_source)
}

fn read(name: &str) -> String {
    let path = root().join(Path::new(name));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}
