//! Functions and structs that a reader can hold in mind.

use crate::sources::before_tests;
use crate::tree::{self, File, assert_none};

/// The longest function, in lines from its `fn` to its last brace.
const MOST_LINES: usize = 80;
/// The most fields of a struct.
const MOST_FIELDS: usize = 20;

/// Structs that are what a file, a record or an event holds: the format has as many fields as it has.
const FORMATS: [&str; 5] =
    ["AgentDefinition", "AgentSpec", "EffectiveAgent", "RunResult", "SkillDefinition"];

#[test]
fn no_function_is_longer_than_a_page() {
    let complaints: Vec<String> = tree::sources()
        .iter()
        .filter(|file| file.path.contains("/src/") && !file.path.contains("/tests"))
        .flat_map(|file| long(file, "fn ", MOST_LINES, |lines| lines.len()))
        .collect();
    assert_none(&complaints);
}

#[test]
fn no_struct_has_more_fields_than_a_reader_can_hold() {
    let is_field = |line: &&&str| {
        let line = line.trim_start_matches("    ");
        let name = line.rsplit_once(": ").map_or("", |(before, _)| before);
        !line.starts_with(['/', '#', ' ']) && !name.is_empty() && line.ends_with(',')
    };
    let complaints: Vec<String> = tree::sources()
        .iter()
        .filter(|file| file.path.contains("/src/"))
        .flat_map(|file| {
            long(file, "struct ", MOST_FIELDS, |lines| lines.iter().filter(is_field).count())
        })
        .filter(|complaint| !FORMATS.iter().any(|name| complaint.contains(&format!("`{name}`"))))
        .collect();
    assert_none(&complaints);
}

/// The items of a kind in a file whose size is above a limit. The size is taken of all lines of an item, its head too.
fn long(file: &File, keyword: &str, most: usize, size: impl Fn(&[&str]) -> usize) -> Vec<String> {
    let lines: Vec<&str> = before_tests(&file.text).lines().collect();
    let mut complaints = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let Some((before, after)) = text.split_once(keyword) else { continue };
        let is_item = before
            .split_whitespace()
            .all(|word| matches!(word, "async" | "const" | "unsafe") || word.starts_with("pub"));
        if !is_item || text.starts_with("//") || text.ends_with('}') {
            continue;
        }
        let indent = &line[..line.len() - text.len()];
        // A body begins where a line ends with a brace, and ends where one stands at the same depth.
        let head = lines[number..].iter().take_while(|it| !it.ends_with(';'));
        let Some(open) = head.clone().position(|it| it.ends_with('{')) else { continue };
        let end = format!("{indent}}}");
        let Some(close) = lines[number + open..].iter().position(|it| **it == end) else {
            continue;
        };
        let found = size(&lines[number..=number + open + close]);
        if found > most {
            let name: String =
                after.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
            complaints.push(format!(
                "{}:{}: `{name}` has {found}, more than {most}",
                file.path,
                number + 1
            ));
        }
    }
    complaints
}

#[test]
fn the_head_of_a_function_counts() {
    let head = "    pub(crate) async fn f(\n        a: A,\n    ) -> B {\n";
    let of = |body: usize| {
        let text = format!("//! A.\nimpl A {{\n{head}{}    }}\n}}\n", "        a;\n".repeat(body));
        long(&File { path: "a.rs".to_owned(), text }, "fn ", 10, |lines| lines.len())
    };
    assert_eq!(of(6), [""; 0]);
    assert_eq!(of(7), ["a.rs:3: `f` has 11, more than 10"]);
}
