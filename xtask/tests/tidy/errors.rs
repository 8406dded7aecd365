//! Errors are types, with their sources: a caller can tell them apart without reading their text.

use crate::sources::before_tests;
use crate::tree::{self, File, assert_none};

/// The crates whose interfaces others build on.
const CRATES: [&str; 5] = ["engine", "host", "journal", "mcp", "tools"];

/// What an error type must not be.
const TEXTS: [&str; 4] = ["String", "&'static str", "&str", "Box<str>"];

#[test]
fn no_error_of_the_engine_and_its_parts_is_a_text() {
    let complaints: Vec<String> = tree::sources()
        .iter()
        .filter(|file| {
            CRATES.iter().any(|name| file.path.starts_with(&format!("crates/{name}/src/")))
        })
        .filter(|file| !file.path.contains("/tests"))
        .flat_map(textual)
        .collect();
    assert_none(&complaints);
}

/// The lines that name a result whose error is a text.
fn textual(file: &File) -> Vec<String> {
    let lines = before_tests(&file.text).lines().enumerate();
    let results = lines.filter(|(_, line)| error_types(line).any(|error| TEXTS.contains(&error)));
    results.map(|(number, line)| format!("{}:{}: {}", file.path, number + 1, line.trim())).collect()
}

/// The error types of the results that a line names.
fn error_types(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("Result<").filter_map(|(place, name)| {
        let arguments = &line[place + name.len()..];
        let (mut depth, mut comma) = (0_usize, None);
        for (place, letter) in arguments.char_indices() {
            match letter {
                '<' | '(' | '[' => depth += 1,
                '>' if arguments[..place].ends_with('-') => {}
                '>' if depth == 0 => return Some(arguments[comma? + 1..place].trim()),
                '>' | ')' | ']' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => comma = Some(place),
                _ => {}
            }
        }
        None
    })
}

#[test]
fn error_types_are_read_from_signatures() {
    let of = |line| error_types(line).collect::<Vec<_>>();
    assert_eq!(of("fn f() -> Result<HashMap<A, (B, C)>, String> {"), ["String"]);
    assert_eq!(
        of("fn f(g: impl Fn(u8) -> Result<(), &'static str>) -> Result<X, E> {"),
        ["&'static str", "E"]
    );
    assert_eq!(of("-> HostFuture<'a, Option<Result<Vec<String>, Refusal>>>;"), ["Refusal"]);
    assert_eq!(of("fn f() -> io::Result<String> {"), [""; 0]);
}
