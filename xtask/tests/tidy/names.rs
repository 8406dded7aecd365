//! A type name has one meaning in a crate.

use std::collections::BTreeMap;

use crate::sources::before_tests;
use crate::tree::{assert_none, sources};

#[test]
fn a_type_name_has_one_meaning_in_its_crate() {
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for file in sources() {
        let is_test = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
        let Some((its_crate, _)) = file.path.split_once("/src/").filter(|_| !is_test) else {
            continue;
        };
        for name in types(&file.text) {
            let key = (its_crate.to_owned(), name.to_owned());
            places.entry(key).or_default().push(file.path.clone());
        }
    }
    let is_known =
        |its_crate: &str, name: &str| places.contains_key(&(its_crate.to_owned(), name.to_owned()));
    assert!(is_known("crates/engine", "Agent") && is_known("crates/config", "Settings"));
    let twice = places.iter().filter(|(_, files)| files.len() > 1);
    let complaints = twice.map(|((_, name), files)| format!("{name}: {}", files.join(", ")));
    assert_none(&complaints.collect::<Vec<_>>());
}

/// The structs, enums and traits that a module declares, tests aside. Those inside of a function are its own.
fn types(source: &str) -> impl Iterator<Item = &str> {
    before_tests(source).lines().filter_map(|line| {
        let line = line
            .strip_prefix("pub")
            .map_or(line, |rest| rest.split_once(' ').map_or(rest, |(_, declared)| declared));
        let rest =
            ["struct ", "enum ", "trait "].iter().find_map(|kind| line.strip_prefix(kind))?;
        rest.split(|c: char| !c.is_ascii_alphanumeric()).next()
    })
}

#[test]
fn declared_types_are_found() {
    let source = "pub(crate) struct A {\nenum B\npub trait C<T>\n// struct D\n    struct E";
    assert_eq!(types(source).collect::<Vec<_>>(), ["A", "B", "C"]);
}
