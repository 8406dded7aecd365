//! The public surface of the library: a list in a file, so that every change of it is seen in review, and no type of the
//! engine in it.

use std::collections::BTreeSet;
use std::fs;

use crate::sources::before_tests;
use crate::tree::{self, File, assert_none, root};

const SOURCES: &str = "crates/embed/src/";
const LIST: &str = "crates/embed/public-api.txt";

#[test]
fn the_public_surface_is_the_one_that_is_listed() {
    let found = surface(&library());
    let listed = fs::read_to_string(root().join(LIST)).unwrap_or_default();
    if found != listed {
        let written = root().join("target/public-api.txt");
        fs::write(&written, &found).expect("the list is written");
        let (now, before): (BTreeSet<&str>, BTreeSet<&str>) =
            (found.lines().collect(), listed.lines().collect());
        let added = now.difference(&before).map(|line| format!("+ {line}"));
        let removed = before.difference(&now).map(|line| format!("- {line}"));
        let changes: Vec<String> = removed.chain(added).collect();
        panic!(
            "{LIST} lists another surface; if this one is meant, copy {} there:\n{}",
            written.display(),
            changes.join("\n")
        );
    }
}

#[test]
fn no_type_of_the_engine_is_in_the_public_surface() {
    assert_none(&library().iter().flat_map(leaks).collect::<Vec<_>>());
}

fn library() -> Vec<File> {
    let files: Vec<File> =
        tree::sources().into_iter().filter(|file| file.path.starts_with(SOURCES)).collect();
    assert!(files.len() > 5, "the library was not found");
    files
}

/// The public items of all files, one a line.
fn surface(files: &[File]) -> String {
    let mut lines = String::new();
    for file in files {
        let items = items(&file.text);
        if !items.is_empty() {
            lines += "# ";
            lines += file.path.trim_start_matches(SOURCES);
            lines.push('\n');
            lines.extend(items.into_iter().map(|item| item + "\n"));
        }
    }
    lines
}

/// The public items of a file: each declaration up to its body, with the attributes that programs can tell, and what is
/// public without a word: the members of enums and traits, and traits of public types.
fn items(text: &str) -> Vec<String> {
    let lines: Vec<&str> = before_tests(text).lines().collect();
    let mut items = Vec::new();
    let mut owner = "";
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        if line.starts_with("impl") {
            owner = line.trim_end_matches(" {");
            items.extend(of_public_type(owner, &lines).then(|| owner.to_owned()));
        }
        let code = line.trim_start();
        if !code.starts_with("pub ") {
            index += 1;
            continue;
        }
        let (declared, after) = declaration(&lines, index);
        let is_method = code != line && code.contains("fn ");
        let place = if is_method { format!("{owner}: ") } else { String::new() };
        items.push(format!("{}{place}{declared}", attributes(&lines[..index])));
        index = after;
        if code.starts_with("pub enum") || code.starts_with("pub trait") {
            let members = lines[index..].iter().take_while(|it| **it != "}").map(|it| it.trim());
            let is_code = |member: &&str| !member.is_empty() && !member.starts_with(['/', '#']);
            items.extend(members.filter(is_code).map(|member| format!("    {member}")));
        }
    }
    items
}

/// True for `impl Trait for Type` where the type is public.
fn of_public_type(implementation: &str, lines: &[&str]) -> bool {
    let Some((_, kind)) = implementation.split_once(" for ") else { return false };
    let name: String = kind.chars().take_while(char::is_ascii_alphanumeric).collect();
    let declares = |line: &&str| {
        let rest = ["pub struct ", "pub enum "].iter().find_map(|it| line.strip_prefix(it));
        rest.and_then(|rest| rest.strip_prefix(name.as_str()))
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    lines.iter().any(declares)
}

/// The attributes above a declaration that change what programs can do with it.
fn attributes(above: &[&str]) -> String {
    let attributes = above.iter().rev().take_while(|line| line.starts_with("#["));
    let mut told: Vec<&str> = attributes
        .filter(|line| line.starts_with("#[derive") || line.starts_with("#[non_exhaustive"))
        .copied()
        .collect();
    told.reverse();
    told.iter().flat_map(|line| [line, " "]).collect()
}

/// A declaration in one line, without its body and private fields, and the line behind it.
fn declaration(lines: &[&str], first: usize) -> (String, usize) {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate().skip(first) {
        let line = line.trim();
        text = if text.is_empty() { line.to_owned() } else { format!("{text} {line}") };
        let is_field = line.ends_with(',') && !text.contains("fn ") && is_closed(&text);
        let end = if line.ends_with(['{', ';']) || is_field {
            text.trim_end_matches(['{', ';', ',']).trim_end().len()
        } else if line.ends_with('}') && is_closed(&text) {
            // A body in the same line.
            text.find(" {").unwrap_or(text.len())
        } else {
            continue;
        };
        text.truncate(end);
        if text.starts_with("pub struct") && !text.contains("(pub ") {
            text.truncate(text.find('(').unwrap_or(end));
        }
        return (text, index + 1);
    }
    (text, lines.len())
}

/// True if every bracket in a text is closed.
fn is_closed(text: &str) -> bool {
    [('(', ')'), ('{', '}')]
        .iter()
        .all(|(open, close)| text.matches(*open).count() == text.matches(*close).count())
}

/// Public items that name something of another crate of the project.
fn leaks(file: &File) -> Vec<String> {
    let foreign = foreign_names(&file.text);
    let words = |item: &str| {
        let split = item.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        split.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    items(&file.text)
        .iter()
        .filter_map(|item| {
            let own = ["centurion_embed", "centurion_embed_derive"];
            let is_foreign = |word: &&String| {
                foreign.contains(*word)
                    || (word.starts_with("centurion_") && !own.contains(&word.as_str()))
            };
            let words = words(item);
            let word = words.iter().find(is_foreign)?;
            Some(format!("{}: `{word}` is of another crate: {item}", file.path))
        })
        .collect()
}

/// The names that a file imports from other crates of the project.
fn foreign_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for statement in text.split("\nuse ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        if !statement.starts_with("centurion_") || statement.starts_with("centurion_embed") {
            continue;
        }
        let after = statement.split_once("::").map_or("", |(_, after)| after);
        for part in after.split([',', '{', '}']) {
            let name = part.rsplit(" as ").next().unwrap_or_default().trim();
            let name = name.rsplit("::").next().unwrap_or_default();
            if name.chars().next().is_some_and(char::is_uppercase) {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! a\nuse centurion_engine::{Handle, View as EngineView};\n\npub struct A {\n    \
        pub name: String,\n    handle: Handle,\n}\n\nimpl A {\n    /// Says.\n    pub fn say(\n        &self,\n        \
        to: &str,\n    ) -> bool {\n        true\n    }\n\n    pub(crate) fn inner(&self) {}\n}\n\n\
        #[derive(Clone)]\npub enum B {\n    /// One.\n    One { a: u8 },\n    Two,\n}\n\nimpl Drop for A {\n    fn drop(&mut self) {}\n}\n\
        pub fn short() -> u8 { 1 }\npub struct D(u8);\nstruct E;\nimpl Clone for E {\n}\n";

    #[test]
    fn public_items_are_listed_with_their_place() {
        assert_eq!(
            items(SOURCE),
            [
                "pub struct A",
                "pub name: String",
                "impl A: pub fn say( &self, to: &str, ) -> bool",
                "#[derive(Clone)] pub enum B",
                "    One { a: u8 },",
                "    Two,",
                "impl Drop for A",
                "pub fn short() -> u8",
                "pub struct D",
            ]
        );
    }

    #[test]
    fn a_type_of_another_crate_is_found_in_the_surface_alone() {
        let file = |text: String| File { path: "a.rs".to_owned(), text };
        assert!(leaks(&file(SOURCE.to_owned())).is_empty());
        let handed = SOURCE.replace("pub name: String", "pub handle: Handle");
        assert_eq!(leaks(&file(handed)).len(), 1);
        let renamed = SOURCE.replace("to: &str", "to: &dyn EngineView");
        assert_eq!(leaks(&file(renamed)).len(), 1);
        let turned = SOURCE.replace("impl Drop for A", "impl From<Handle> for A");
        assert_eq!(leaks(&file(turned)).len(), 1);
        let named = SOURCE.replace("-> u8", "-> centurion_model::Model");
        assert_eq!(leaks(&file(named)).len(), 1);
    }
}
