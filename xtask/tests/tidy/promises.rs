//! Every promise of `docs/security.md` names tests. Whether they exist is known to the test runner: `cargo xtask names`
//! asks it.

use std::fs;

use crate::requirements::in_backticks;
use crate::tree::{assert_none, root};

/// The head of a table of promises.
const HEAD: &str = "| promise | tests |";

#[test]
fn every_promise_about_security_has_a_test() {
    let path = root().join("docs/security.md");
    let document = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}"));
    assert!(document.contains(HEAD), "docs/security.md promises nothing");
    assert_none(&complaints(&document));
}

fn complaints(document: &str) -> Vec<String> {
    let mut complaints = stray_rows(document);
    let empty = promises(document).into_iter().filter(|(_, names)| names.is_empty());
    complaints.extend(empty.map(|(promise, _)| format!("\"{promise}\" has no test")));
    complaints
}

/// Rows without the head of a table above them: nothing checks those.
fn stray_rows(document: &str) -> Vec<String> {
    let lines: Vec<&str> = document.lines().map(str::trim).collect();
    let is_row = |line: &str| line.starts_with('|') && !line.starts_with("|---");
    let begins = |at: usize| at == 0 || !lines[at - 1].starts_with('|');
    let has_head = |at: usize| lines.get(at + 1).is_some_and(|next| next.starts_with("|---"));
    let stray = (0..lines.len()).filter(|at| is_row(lines[*at]) && begins(*at) && !has_head(*at));
    stray.map(|at| format!("line {}: a row of no table", at + 1)).collect()
}

/// The rows of all tables of promises, each with the tests that it names.
fn promises(document: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in document.lines().map(str::trim) {
        match line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) {
            Some(_) if line == HEAD => inside = true,
            Some(row) if inside && !row.starts_with("---") => {
                let (promise, tests) = row.rsplit_once('|').unwrap_or((row, ""));
                found.push((promise.trim().to_owned(), in_backticks(tests)));
            }
            Some(_) => {}
            None => inside = false,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_without_a_test_is_found() {
        let document = "| who | what |\n|---|---|\n| a | b |\n\n| promise | tests |\n|---|---|\n\
                        | held | `a::one`, `a::two` |\n| empty | |\n| more | `a::three` |\n";
        assert_eq!(complaints(document), ["\"empty\" has no test"]);
        let parted = document.replace("| more", "\n| more");
        assert_eq!(complaints(&parted), ["line 10: a row of no table", "\"empty\" has no test"]);
    }
}
