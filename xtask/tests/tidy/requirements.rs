//! The table of requirements and the tests are in step.
//!
//! A test names the requirements it holds in a comment: above it, on its line, or first in its body.
//! `docs/requirements.md` has a row for each such number with the tests that hold it; invariants have
//! theirs in `ARCHITECTURE.md`. A number without a row, and a row without a test, both fail. Whether the tests of a
//! row exist is known to the test runner: `cargo xtask names` asks it.

use std::collections::BTreeSet;
use std::fs;

use crate::tree::{self, File, assert_none, root};

/// A row: a number, what must hold, and in backticks the tests that hold it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    number: String,
    tests: Vec<String>,
}

#[test]
fn requirements_and_tests_are_in_step() {
    let requirements = read("docs/requirements.md");
    assert!(requirements.contains("|---|"), "docs/requirements.md has no table");
    let architecture = read("ARCHITECTURE.md");
    let mut sources = tree::sources();
    // The samples below are no tests of the program.
    sources.retain(|file| !file.path.starts_with("xtask/"));
    assert_none(&complaints(&sources, &requirements, &architecture));
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn complaints(sources: &[File], requirements: &str, architecture: &str) -> Vec<String> {
    let rows: Vec<Row> = [requirements, architecture].into_iter().flat_map(rows_of).collect();
    let listed: BTreeSet<&str> = rows.iter().map(|row| row.number.as_str()).collect();
    let tests: Vec<TestFunction> = sources.iter().flat_map(test_functions).collect();

    let mut complaints = Vec::new();
    for test in &tests {
        for number in &test.numbers {
            let known = listed.contains(number.as_str())
                || (number.starts_with('I') && numbers(architecture).contains(number));
            if !known {
                complaints
                    .push(format!("{}: {} names {number}, which has no row", test.path, test.name));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for row in &rows {
        if !seen.insert(&row.number) {
            complaints.push(format!("{} has two rows", row.number));
        }
        if row.tests.is_empty() {
            complaints.push(format!("{} has a row without a test", row.number));
        }
    }
    complaints
}

fn rows_of(document: &str) -> Vec<Row> {
    document
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> =
                line.trim().strip_prefix('|')?.split('|').map(str::trim).collect();
            let number = cells.first()?;
            if numbers(number).iter().next()? != number {
                return None;
            }
            let tests = cells.get(2).copied().unwrap_or_default();
            Some(Row { number: (*number).to_owned(), tests: in_backticks(tests) })
        })
        .collect()
}

/// The words of a cell that stand in backticks.
pub(crate) fn in_backticks(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A test, and the numbers that it names.
struct TestFunction {
    path: String,
    name: String,
    numbers: BTreeSet<String>,
}

fn test_functions(file: &File) -> Vec<TestFunction> {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (index, _) in lines.iter().enumerate().filter(|(_, line)| is_test_attribute(line)) {
        let above = lines[..index].iter().rev().take_while(|line| line.starts_with("//"));
        let mut named: BTreeSet<String> = above.flat_map(|line| numbers(line)).collect();
        let Some(distance) = lines[index..].iter().position(|line| function_name(line).is_some())
        else {
            continue;
        };
        let function = index + distance;
        for line in &lines[index..function] {
            named.extend(numbers(line));
        }
        named.extend(lines[function].split_once("//").map(|(_, c)| numbers(c)).unwrap_or_default());
        let body = lines[function + 1..].iter().take_while(|line| line.starts_with("//"));
        named.extend(body.flat_map(|line| numbers(line)));
        if let Some(name) = function_name(lines[function]) {
            found.push(TestFunction {
                path: file.path.clone(),
                name: name.to_owned(),
                numbers: named,
            });
        }
    }
    found
}

fn is_test_attribute(line: &str) -> bool {
    line == "#[test]" || line.starts_with("#[tokio::test")
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = line.strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

/// Every `S-1`, `D-5a` and `I-3` in a text.
fn numbers(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| {
            let digits = ["S-", "D-", "I-"].iter().find_map(|kind| word.strip_prefix(kind));
            digits.is_some_and(|digits| {
                digits.starts_with(|c: char| c.is_ascii_digit())
                    && digits
                        .trim_end_matches(|c: char| c.is_ascii_lowercase())
                        .chars()
                        .all(|c| c.is_ascii_digit())
            })
        })
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
/// Says so (S-1).
#[test]
fn first() {}

#[tokio::test(start_paused = true)]
async fn second() {
    // D-5a, I-3
    // and S-2
    let x = 1; // S-99
}

// S-98 is not about a test.
fn helper() {}
";

    fn check(requirements: &str, architecture: &str) -> Vec<String> {
        let sources = [File { path: "a.rs".to_owned(), text: SOURCE.to_owned() }];
        complaints(&sources, requirements, architecture)
    }

    const TABLE: &str = "| S-1 | a | `a::first` |\n| S-2 | b | `a::second`, `a::first` |\n\
                         | D-5a | c | `a::second` |\n";

    #[test]
    fn a_table_in_step_is_fine() {
        assert_eq!(check(TABLE, "- **I-3** never"), Vec::<String>::new());
        assert_eq!(check(TABLE, "| I-3 | never | `a::second` |"), Vec::<String>::new());
    }

    #[test]
    fn a_number_without_a_row_is_found() {
        let complaints = check(TABLE, "");
        assert_eq!(complaints, ["a.rs: second names I-3, which has no row"]);
        assert_eq!(check("", "I-3").len(), 3);
    }

    #[test]
    fn a_row_without_a_test_and_a_second_row_are_found() {
        let table = format!("{TABLE}| S-4 | e | |\n| S-1 | f | `a::first` |\n");
        assert_eq!(check(&table, "I-3"), ["S-4 has a row without a test", "S-1 has two rows"]);
    }

    #[test]
    fn only_whole_numbers_count() {
        let found = numbers("S-011, (D-5a) I-3. AS-1 S-x S- I-3b4 utf-8 D-12");
        let expected: BTreeSet<String> =
            ["S-011", "D-5a", "I-3", "D-12"].map(str::to_owned).into_iter().collect();
        assert_eq!(found, expected);
    }
}
