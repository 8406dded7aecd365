//! Functions and structs that a reader can hold in mind.

use crate::code::{closing, code, parts};
use crate::sources::product;
use crate::tree::{File, assert_none};

/// The longest function, in lines from its `fn` to its last brace.
const MOST_LINES: usize = 80;
/// The most arguments of a function, `self` among them.
const MOST_ARGUMENTS: usize = 7;
/// The most fields of a struct.
const MOST_FIELDS: usize = 20;

/// Structs that are what a file, a record or an event holds: the format has as many fields as it has.
const FORMATS: [&str; 5] =
    ["AgentDefinition", "AgentSpec", "EffectiveAgent", "RunResult", "SkillDefinition"];

#[test]
fn no_function_is_longer_than_a_page() {
    let functions = items(functions);
    assert!(functions.len() > 8_000, "the functions were not read: {}", functions.len());
    assert_none(&above(&functions, MOST_LINES, "lines", |it| it.lines));
}

#[test]
fn no_function_has_more_arguments_than_a_reader_can_hold() {
    assert_none(&above(&items(functions), MOST_ARGUMENTS, "arguments", |it| it.parts));
}

#[test]
fn no_struct_has_more_fields_than_a_reader_can_hold() {
    let mut structs = items(structs);
    assert!(structs.len() > 1_000, "the structs were not read: {}", structs.len());
    structs.retain(|it| !FORMATS.contains(&it.name.as_str()));
    assert_none(&above(&structs, MOST_FIELDS, "fields", |it| it.parts));
}

/// A function or a struct.
struct Item {
    path: String,
    line: usize,
    name: String,
    lines: usize,
    /// Its arguments or fields.
    parts: usize,
}

/// The items of all crates, tests aside.
fn items(read: impl Fn(&File) -> Vec<Item>) -> Vec<Item> {
    product().iter().flat_map(read).collect()
}

fn above(items: &[Item], most: usize, what: &str, size: impl Fn(&Item) -> usize) -> Vec<String> {
    let items = items.iter().filter(|item| size(item) > most);
    let complaint = |item: &Item| {
        let Item { path, line, name, .. } = item;
        format!("{path}:{line}: `{name}` has {} {what}, more than {most}", size(item))
    };
    items.map(complaint).collect()
}

/// The functions of a file that have a body, from `fn` to the last brace.
fn functions(file: &File) -> Vec<Item> {
    let code = code(&file.text);
    let found = named(&code, "fn").filter_map(|(at, name, rest)| {
        let open = if code[rest..].starts_with('<') { end_of_generics(&code, rest)? } else { rest };
        let open = open + code[open..].find(|letter: char| !letter.is_whitespace())?;
        let close = code[open..].starts_with('(').then(|| closing(&code, open))??;
        let body = close + code[close..].find(['{', ';'])?;
        let end = if code[body..].starts_with('{') { closing(&code, body)? } else { body };
        Some(item(file, &code, name, at..end, parts(&code[open + 1..close])))
    });
    found.collect()
}

/// The structs of a file.
fn structs(file: &File) -> Vec<Item> {
    let code = code(&file.text);
    let found = named(&code, "struct").filter_map(|(at, name, rest)| {
        let open = rest + code[rest..].find(['{', '(', ';'])?;
        if code[open..].starts_with(';') {
            return Some(item(file, &code, name, at..open, 0));
        }
        let close = closing(&code, open)?;
        Some(item(file, &code, name, at..close, parts(&code[open + 1..close])))
    });
    found.collect()
}

fn item(file: &File, code: &str, name: &str, place: std::ops::Range<usize>, parts: usize) -> Item {
    Item {
        path: file.path.clone(),
        line: code[..place.start].matches('\n').count() + 1,
        name: name.to_owned(),
        lines: code[place].matches('\n').count() + 1,
        parts,
    }
}

/// The names behind a keyword, each with the place of the keyword and the place behind the name.
fn named<'c>(
    code: &'c str,
    keyword: &'static str,
) -> impl Iterator<Item = (usize, &'c str, usize)> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.match_indices(keyword).filter_map(move |(at, keyword)| {
        let behind = &code[at + keyword.len()..];
        let name = behind.trim_start();
        let begins = !code[..at].ends_with(is_word) && behind.starts_with(char::is_whitespace);
        let length = name.find(|letter| !is_word(letter)).unwrap_or(name.len());
        let rest = code.len() - name.len() + length;
        (begins && length > 0).then(|| (at, &name[..length], rest))
    })
}

/// The place behind the bracket that closes generic parameters.
fn end_of_generics(code: &str, open: usize) -> Option<usize> {
    let (mut depth, mut before) = (0_usize, ' ');
    for (at, letter) in code[open..].char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + at + 1);
        }
        before = letter;
    }
    None
}

#[test]
fn heads_bodies_attributes_and_texts_are_counted_as_what_they_are() {
    let text = "//! A.\nimpl A {\n    #[expect(a)]\n    pub(crate) async fn f<F: Fn(A) -> B>(\n        &self,\n        \
                #[b] a: HashMap<A, B>,\n    ) -> B\n    where\n        A: B,\n    {\n        let a = \"}\";\n        // }\n        \
                g();\n    }\n    fn short() {}\n}\ntrait C {\n    fn none(a: A);\n}\nfn(a)\n";
    let file = |text: &str| File { path: "a.rs".to_owned(), text: text.to_owned() };
    let found = functions(&file(text));
    let found: Vec<_> =
        found.iter().map(|it| (it.name.as_str(), it.line, it.lines, it.parts)).collect();
    assert_eq!(found, [("f", 4, 11, 2), ("short", 15, 1, 0), ("none", 18, 1, 1)]);
    let text = "pub struct A<T> {\n    /// B, c: d,\n    #[serde(default, rename = \"x, y\")]\n    pub a: HashMap<\n        \
                A,\n        B,\n    >,\n    b: fn(A, B) -> C,\n}\nstruct D(A, pub B);\nstruct E;\n";
    let found = structs(&file(text));
    let found: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.parts)).collect();
    assert_eq!(found, [("A", 2), ("D", 2), ("E", 0)]);
}
