//! Errors are types, with their sources: a caller can tell them apart without reading their text.

use crate::code::code;
use crate::sources::{before_tests, product};
use crate::tree::{self, File, assert_none};

/// Types that an error must not have.
const TEXTS: [&str; 4] = ["String", "&'static str", "&str", "Box<str>"];

#[test]
fn no_error_of_a_crate_is_a_text() {
    let product = product();
    let crates = product.iter().filter(|file| !file.path.starts_with("crates/testkit/"));
    assert_none(&crates.flat_map(textual).collect::<Vec<_>>());
}

/// The programs, which tell a person about an error and do not act on it.
const PROGRAMS: [&str; 2] = ["crates/cli/Cargo.toml", "xtask/Cargo.toml"];

#[test]
fn no_library_forgets_the_types_of_errors() {
    let libraries = tree::files(&["toml"]).into_iter().filter(|file| {
        file.path.ends_with("/Cargo.toml") && !PROGRAMS.contains(&file.path.as_str())
    });
    let forgets = |file: &File| file.text.lines().any(|line| line.starts_with("anyhow"));
    let complaints = libraries.filter(forgets).map(|file| format!("{}: anyhow", file.path));
    assert_none(&complaints.collect::<Vec<_>>());
}

/// Heads of public functions may have several lines.
#[test]
fn no_error_of_a_public_function_or_type_is_a_text() {
    assert_none(&product().iter().flat_map(public_texts).collect::<Vec<_>>());
}

/// The public functions and types of a file that name a result whose error is a text.
fn public_texts(file: &File) -> Vec<String> {
    // Bodies and values begin with a bracket, an `=` or end with the item.
    let code = code(&file.text);
    let places = ["pub fn ", "pub async fn ", "pub type "].map(|item| code.match_indices(item));
    let heads = places.into_iter().flatten().map(|(at, _)| {
        let end = code[at..].find(['{', ';']).map_or(code.len(), |length| at + length);
        (at, &code[at..end])
    });
    let textual = heads.filter(|(_, head)| {
        let head = head.split_whitespace().collect::<Vec<_>>().join(" ").replace(", >", ">");
        error_types(&head).any(|error| TEXTS.contains(&error))
    });
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    textual.map(|(at, _)| format!("{}:{}: give the error a type", file.path, line(at))).collect()
}

#[test]
fn public_heads_are_read_over_several_lines() {
    let text = "pub fn a() -> Result<(), String> {}\npub(crate) fn b() -> Result<(), String> {}\n\
                pub async fn c(\n    d: D,\n) -> Result<\n    E,\n    &'static str,\n> {}\n\
                pub type F = Box<dyn Fn() -> Result<(), String>>;\npub fn g() -> Result<String, H>;\n";
    let found = public_texts(&File { path: "a.rs".to_owned(), text: text.to_owned() });
    let lines: Vec<&str> = found.iter().filter_map(|it| it.split(':').nth(1)).collect();
    assert_eq!(lines, ["1", "3", "9"]);
}

/// Names of fields that tell why something failed. Such a field of an error is a typed source; a text that comes from
/// outside has the name of what it is, such as `output`.
const REASONS: [&str; 3] = ["cause", "reason", "why"];

#[test]
fn no_error_of_the_engine_keeps_its_reason_as_a_text() {
    let sources = tree::sources();
    let engine = sources.iter().filter(|file| file.path.starts_with("crates/engine/src/"));
    assert_none(&engine.flat_map(reason_texts).collect::<Vec<_>>());
}

/// The lines of error types that declare a reason as a text.
fn reason_texts(file: &File) -> Vec<String> {
    let mut is_error = false;
    let mut complaints = Vec::new();
    for (number, line) in before_tests(&file.text).lines().enumerate() {
        if let Some(derived) = line.strip_prefix("#[derive(") {
            is_error = derived.split([',', ')', ' ', ':']).any(|name| name == "Error");
        }
        let is_text = |reason: &str| TEXTS.iter().any(|text| declares(line, reason, text));
        if is_error && !line.trim_start().starts_with("//") && REASONS.iter().any(|it| is_text(it))
        {
            complaints.push(format!("{}:{}: keep the error itself", file.path, number + 1));
        }
        is_error &= !line.starts_with('}') && !line.ends_with(';');
    }
    complaints
}

/// Tells whether a line declares a field of this name and type, which may be optional.
fn declares(line: &str, name: &str, kind: &str) -> bool {
    [format!("{name}: {kind}"), format!("{name}: Option<{kind}>")].iter().any(|field| {
        line.match_indices(field.as_str()).any(|(place, _)| {
            let before = line[..place].chars().next_back().unwrap_or(' ');
            let after = line[place + field.len()..].chars().next().unwrap_or(' ');
            !before.is_alphanumeric() && before != '_' && ", }".contains(after)
        })
    })
}

#[test]
fn reasons_are_found_in_error_types_alone() {
    let text = "//! A.\n#[derive(Clone, Debug)]\nstruct A {\n    reason: String,\n}\n\
                #[derive(Debug, Error)]\nenum B {\n    #[error(\"b\")]\n    C { name: String, reason: String },\n\
                    D { reason: Unaccepted, no_reason: String },\n}\nstruct E {\n    why: String,\n}\n\
                #[derive(Debug, thiserror::Error)]\nstruct F {\n    pub why: Option<&'static str>,\n}\n";
    let complaints = reason_texts(&File { path: "a.rs".to_owned(), text: text.to_owned() });
    let lines: Vec<&str> = complaints.iter().filter_map(|it| it.split(':').nth(1)).collect();
    assert_eq!(lines, ["9", "17"]);
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
