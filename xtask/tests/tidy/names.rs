//! A type name has one meaning in a crate, and says what a value of the type is.

use std::collections::BTreeMap;

use crate::sources::before_tests;
use crate::tree::{File, assert_none, sources};

#[test]
fn a_type_name_has_one_meaning_in_its_crate() {
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for file in sources() {
        let Some((its_crate, _)) = file.path.split_once("/src/").filter(|_| !is_test(&file)) else {
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

/// Words that name no thing: they say what happened to one, or where or how it is.
const NO_NOUNS: [&str; 28] = [
    "Above", "After", "Around", "Aside", "Before", "Below", "Brought", "Chosen", "Found", "Given",
    "Half", "Held", "Here", "Known", "Left", "Made", "Meant", "Noted", "Put", "Said", "Seen",
    "Shown", "Taken", "Told", "Wanted", "Way", "Who", "Whole",
];

#[test]
fn a_type_is_named_by_a_noun() {
    let complaints = |file: &File| {
        let no_nouns = types(&file.text).filter(|name| NO_NOUNS.contains(name));
        no_nouns.map(|name| format!("{}: `{name}`: say what it is", file.path)).collect::<Vec<_>>()
    };
    let sources = sources();
    let product = sources.iter().filter(|file| file.path.contains("/src/") && !is_test(file));
    assert_none(&product.flat_map(complaints).collect::<Vec<_>>());
}

fn is_test(file: &File) -> bool {
    file.path.contains("/tests/") || file.path.ends_with("/tests.rs")
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
