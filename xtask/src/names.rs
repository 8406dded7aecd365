//! The tests that the documents name, held against what the test runner lists.
//!
//! A document names tests in the last column of every table whose head calls that column `tests`. A name is the end
//! of a test's path as the runner knows it (package, binary, modules, function): at least a module and the function,
//! and as much before them as makes it the only one. A fuzz target is `fuzz::` and its name. What is not compiled is
//! not listed, and so does not count; neither does a test that is ignored.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::fuzz;
use crate::run::{cargo, root};

/// Every document whose tables name tests.
const DOCUMENTS: [&str; 3] = ["docs/requirements.md", "docs/security.md", "ARCHITECTURE.md"];

/// The handling of names that are wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    Tell,
    /// Write the right name in its place, where there is exactly one test that can be meant.
    Correct,
}

/// Builds the tests, and holds the documents against the list of them.
pub(crate) fn check(wrong: Wrong) -> Result<()> {
    let tests = Tests::of_the_workspace()?;
    let mut complaints = Vec::new();
    let mut count = 0;
    for path in DOCUMENTS {
        let file = root().join(path);
        let mut document =
            fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
        if wrong == Wrong::Correct {
            document = tests.corrected(&document);
            fs::write(&file, &document).with_context(|| format!("cannot write {path}"))?;
        }
        count += named(&document).len();
        complaints.extend(tests.complaints(path, &document));
    }
    if !complaints.is_empty() {
        bail!("the documents name tests that are not there:\n{}", complaints.join("\n"));
    }
    println!("==> the documents name {count} tests, and the test runner knows each of them");
    Ok(())
}

/// All tests by their whole paths.
#[derive(Debug, Default)]
struct Tests(BTreeSet<String>);

/// The reason why a name names no test.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// A function alone, or one in a module that is called `tests`: others may be called the same at any time.
    TooShort,
    Unknown,
    /// The names of all tests that it could mean.
    Ambiguous(Vec<String>),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => formatter.write_str("which lacks the module of the test"),
            Self::Unknown => formatter.write_str("which is no test that the runner knows"),
            Self::Ambiguous(all) => write!(formatter, "which may be {}", all.join(" or ")),
        }
    }
}

impl Tests {
    fn of_the_workspace() -> Result<Self> {
        let mut list = cargo(&["nextest", "list", "--workspace", "--message-format", "json"]);
        let output = list.stderr(std::process::Stdio::inherit()).output()?;
        if !output.status.success() {
            bail!("`cargo nextest list` failed: {}", output.status);
        }
        let list = serde_json::from_slice(&output.stdout).context("the list of the tests")?;
        Ok(Self::listed(&list, &fuzz::targets()?))
    }

    /// The tests in what the runner lists, and the fuzz targets.
    fn listed(list: &Value, targets: &[String]) -> Self {
        let suites = list["rust-suites"].as_object().into_iter().flatten();
        let tests = suites.flat_map(|(suite, about)| {
            let cases = about["testcases"].as_object().into_iter().flatten();
            let run = cases.filter(|(_, about)| about["ignored"] == false);
            run.map(move |(case, _)| format!("{suite}::{case}"))
        });
        Self(tests.chain(targets.iter().map(|target| format!("fuzz::{target}"))).collect())
    }

    /// The tests whose paths end so.
    fn ending(&self, name: &str) -> Vec<String> {
        let is_meant = |test: &&String| {
            test.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
        };
        self.0.iter().filter(is_meant).cloned().collect()
    }

    fn fault(&self, name: &str) -> Option<Fault> {
        if !is_long_enough(name) {
            return Some(Fault::TooShort);
        }
        let mut meant = self.ending(name);
        match meant.len() {
            0 => Some(Fault::Unknown),
            1 => None,
            _ => {
                meant = meant.iter().map(|test| format!("`{}`", self.shortest(test))).collect();
                Some(Fault::Ambiguous(meant))
            }
        }
    }

    /// The shortest name that means this test and no other.
    fn shortest<'a>(&self, test: &'a str) -> &'a str {
        let starts = test.rmatch_indices("::").map(|(at, _)| at + 2).chain([0]);
        let mut names = starts.filter_map(|at| test.get(at..));
        names.find(|name| self.fault_free(name)).unwrap_or(test)
    }

    fn fault_free(&self, name: &str) -> bool {
        is_long_enough(name) && self.ending(name).len() == 1
    }

    /// The name to write instead, if only one test has this function, or this function in these last modules.
    fn correction(&self, name: &str) -> Option<String> {
        let starts = [0].into_iter().chain(name.match_indices("::").map(|(at, _)| at + 2));
        let ends = starts.filter_map(|at| name.get(at..)).map(|end| self.ending(end));
        match &ends.into_iter().find(|meant| !meant.is_empty())?[..] {
            [test] => Some(self.shortest(test).to_owned()),
            _ => None,
        }
    }

    fn complaints(&self, path: &str, document: &str) -> Vec<String> {
        let wrong = named(document).into_iter().filter_map(|(line, name)| {
            let fault = self.fault(name)?;
            let instead = self.correction(name).filter(|_| !matches!(fault, Fault::Ambiguous(_)));
            let instead = instead.map(|name| format!("; is it `{name}`?")).unwrap_or_default();
            Some(format!("{path}:{line}: `{name}`, {fault}{instead}"))
        });
        wrong.collect()
    }

    fn corrected(&self, document: &str) -> String {
        let mut corrected = document.to_owned();
        for (_, name) in named(document) {
            if self.fault(name).is_some()
                && let Some(instead) = self.correction(name)
            {
                corrected = corrected.replace(&format!("`{name}`"), &format!("`{instead}`"));
            }
        }
        corrected
    }
}

/// Whether a name has a module before the function that says something.
fn is_long_enough(name: &str) -> bool {
    let modules = name.rsplit("::").skip(1);
    modules.into_iter().any(|module| !matches!(module, "" | "tests"))
}

/// The names in the last cells of all tables of tests, with their lines.
fn named(document: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut names_tests = None;
    for (index, line) in document.lines().enumerate() {
        let row = line.trim().strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
        let last = row.and_then(|row| row.rsplit('|').next()).map(str::trim);
        match (last, names_tests) {
            (None, _) => names_tests = None,
            (Some(head), None) => names_tests = Some(head == "tests"),
            (Some(cell), Some(true)) => {
                let names = cell.split('`').skip(1).step_by(2);
                found.extend(names.map(|name| (index + 1, name)));
            }
            (Some(_), Some(false)) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Two packages; `stays` is twice, `hangs` is ignored, and `forgotten` stands in a file that no `mod` names: the
    /// runner does not list it.
    fn tests() -> Tests {
        let run = || json!({"ignored": false});
        let list = json!({"rust-suites": {
            "one": {"testcases": {"mail::tests::arrives": run(), "mail::tests::stays": run()}},
            "one::main": {"testcases": {"mail::stays": run(), "mail::hangs": {"ignored": true}}},
            "two::main": {"testcases": {"mail::waits": run(), "post::arrives_late": run()}},
        }});
        Tests::listed(&list, &["settings".to_owned()])
    }

    fn document(names: &str) -> String {
        format!("| number | tests |\n|---|---|\n| S-1 | {names} |\n")
    }

    fn complaints(names: &str) -> Vec<String> {
        tests().complaints("a.md", &document(names))
    }

    #[test]
    fn the_end_of_a_path_names_a_test() {
        let names =
            "`mail::tests::arrives`, `one::main::mail::stays`, `mail::tests::stays`, `mail::waits`";
        assert_eq!(complaints(names), Vec::<String>::new());
        assert_eq!(complaints("`fuzz::settings`, `post::arrives_late`"), Vec::<String>::new());
    }

    #[test]
    fn a_misspelt_name_is_found() {
        let unknown = "which is no test that the runner knows";
        assert_eq!(complaints("`mail::wait`"), [format!("a.md:3: `mail::wait`, {unknown}")]);
        assert_eq!(complaints("`ail::waits`").len(), 1, "whole parts are compared");
        assert_eq!(
            complaints("`mail::waits`, `mail::arrives_late`"),
            [format!("a.md:3: `mail::arrives_late`, {unknown}; is it `post::arrives_late`?")]
        );
    }

    #[test]
    fn a_test_that_the_runner_does_not_run_does_not_count() {
        let unknown = "which is no test that the runner knows";
        for name in ["mail::forgotten", "mail::hangs", "fuzz::forgotten"] {
            assert_eq!(complaints(&format!("`{name}`")), [format!("a.md:3: `{name}`, {unknown}")]);
        }
    }

    #[test]
    fn a_name_that_two_tests_have_is_an_error() {
        let two = Tests::listed(
            &json!({"rust-suites": {
                "one": {"testcases": {"mail::stays": {"ignored": false}}},
                "two": {"testcases": {"mail::stays": {"ignored": false}}},
            }}),
            &[],
        );
        assert_eq!(
            two.complaints("a.md", &document("`mail::stays`")),
            ["a.md:3: `mail::stays`, which may be `one::mail::stays` or `two::mail::stays`"]
        );
        assert!(two.complaints("a.md", &document("`two::mail::stays`")).is_empty());
    }

    #[test]
    fn a_function_alone_is_no_name() {
        let short = "which lacks the module of the test";
        assert_eq!(complaints("`stays`"), [format!("a.md:3: `stays`, {short}")]);
        assert_eq!(
            complaints("`waits`, `tests::arrives`"),
            [
                format!("a.md:3: `waits`, {short}; is it `mail::waits`?"),
                format!("a.md:3: `tests::arrives`, {short}; is it `mail::tests::arrives`?"),
            ]
        );
    }

    #[test]
    fn a_wrong_name_is_corrected_where_one_test_can_be_meant() {
        for (wrong, right) in [
            ("`waits`, `stays`", "`mail::waits`, `stays`"),
            ("`main::mail::stays`", "`main::mail::stays`"),
            (
                "`old::place::arrives`, `old::mail::tests::stays`",
                "`mail::tests::arrives`, `mail::tests::stays`",
            ),
        ] {
            assert_eq!(tests().corrected(&document(wrong)), document(right));
        }
    }

    #[test]
    fn only_tables_of_tests_name_tests() {
        let text = "`a::b` in a sentence\n\n| what | how |\n|---|---|\n| `a::b` | `a::c` |\n\n\
                    | promise | tests |\n|---|---|\n| `a::d` holds | `a::e`, `a::f` |\n";
        assert_eq!(named(text), [(9, "a::e"), (9, "a::f")]);
    }

    #[test]
    fn every_name_in_the_documents_has_the_form() {
        for path in DOCUMENTS {
            let document = fs::read_to_string(root().join(path)).unwrap();
            let names = named(&document);
            assert!(!names.is_empty(), "{path} names no tests");
            let short: Vec<_> = names.iter().filter(|(_, name)| !is_long_enough(name)).collect();
            assert!(short.is_empty(), "{path}: a module stands before the function: {short:?}");
        }
    }
}
