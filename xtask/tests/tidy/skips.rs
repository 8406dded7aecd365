//! No test ends early in silence.
//!
//! A test that cannot run on a machine says so with `return skip(Lack::…)` of the test kit, which continuous
//! integration refuses for most reasons. A `return` of nothing, or of `Ok(())`, would count as passed.

use crate::tree::{self, File, assert_none};

#[test]
fn no_test_ends_early_in_silence() {
    let sources = tree::sources();
    let complaints: Vec<String> = sources.iter().flat_map(silent_ends).collect();
    assert_none(&complaints);
}

fn silent_ends(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let attributes = (0..lines.len()).filter(|at| is_test_attribute(lines[*at].trim()));
    let bodies = attributes.map(|at| (at, end_of_body(&lines, at)));
    let lines = bodies.flat_map(|(start, end)| (start..end).map(|at| (at, lines[at])));
    lines
        .filter(|(_, line)| ends_in_silence(line))
        .map(|(at, _)| {
            format!("{}:{}: a test that ends here counts as passed: use `skip`", file.path, at + 1)
        })
        .collect()
}

fn is_test_attribute(line: &str) -> bool {
    line == "#[test]" || line.starts_with("#[tokio::test")
}

/// The line that closes what stands below an attribute: rustfmt indents it as far as the attribute.
fn end_of_body(lines: &[&str], attribute: usize) -> usize {
    let indent = lines[attribute].len() - lines[attribute].trim_start().len();
    let closes = |line: &&str| line.get(indent..) == Some("}") && line.trim() == "}";
    lines[attribute..].iter().position(closes).map_or(lines.len(), |length| attribute + length)
}

fn ends_in_silence(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let mut rest = code.split("return");
    let before = rest.next().unwrap_or_default();
    let is_word = |text: &str| !text.ends_with(|c: char| c.is_alphanumeric() || "_\"".contains(c));
    let says_nothing = |text: &str| {
        let value = text.trim_start();
        let is_empty = value.is_empty() || value.starts_with([';', '}', ',']);
        is_empty || value.starts_with("Ok(())")
    };
    is_word(before) && rest.any(says_nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `leave` stands for `return`, or this file would complain about itself.
    const SAMPLE: &str = "\
#[test]
fn one() {
    if cannot() {
        leave;
    }
    let Some(x) = find() else { leave };
    let Some(y) = find() else { leave skip(Lack::Corpus) };
    let reply = |asked: &str| {
        if asked.is_empty() {
            leave \"nothing\"; // not a leave;
        }
        \"something\"
    };
}

fn helper() {
    leave;
}

mod inner {
    #[tokio::test(start_paused = true)]
    async fn two() -> Result<()> {
        if cannot() {
            leave Ok(());
        }
        let left = leaves;
        Ok(())
    }
}
";

    #[test]
    fn a_silent_end_is_found_in_tests_only() {
        let file = File { path: "a.rs".to_owned(), text: SAMPLE.replace("leave", "return") };
        let found = silent_ends(&file);
        let lines: Vec<&str> = found.iter().filter_map(|it| it.split(':').nth(1)).collect();
        assert_eq!(lines, ["4", "6", "24"], "{found:?}");
    }
}
