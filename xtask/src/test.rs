//! `cargo xtask test` and `cargo xtask lint`: what the CI runs, and nothing else decides.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::components;
use crate::fuzz;
use crate::names::{self, Wrong};
use crate::needs;
use crate::run::{cargo, root, run, target};

/// The time for which each fuzz target runs as part of the tests, in seconds.
const FUZZ_SECONDS: u32 = 10;

/// Tells the tests where to write what they skip, and why.
const SKIPS: &str = "CENTURION_TEST_SKIPS";

/// Runs every test there is, and lists those that could not run on this machine.
pub(crate) fn test() -> Result<()> {
    needs::install()?;
    let skips = target().join("skipped-tests");
    if skips.exists() {
        fs::remove_file(&skips)?;
    }
    let tested = run_all(&skips);
    if skips.exists() {
        print!("{}", listed(&fs::read_to_string(&skips)?));
    }
    tested
}

fn run_all(skips: &Path) -> Result<()> {
    names::check(Wrong::Tell)?;
    let mut tests = cargo(&["nextest", "run", "--workspace"]);
    tests.env(components::VARIABLE, components::directory()).env(SKIPS, skips);
    run(&mut tests)?;
    if has_doc_tests(&root().join("crates"))? {
        run(&mut cargo(&["test", "--workspace", "--doc", "--quiet"]))?;
    }
    fuzz::fuzz(&fuzz::Options { seconds: FUZZ_SECONDS, target: None })
}

/// The skips that tests wrote down, each once: a test may lack the same thing in several places.
fn listed(skips: &str) -> String {
    let skips: BTreeSet<&str> = skips.lines().collect();
    let lines = skips.iter().map(|skip| format!("    {skip}\n"));
    format!("==> {} skipped, in whole or in part:\n{}", skips.len(), lines.collect::<String>())
}

/// Checks formatting and lints.
pub(crate) fn lint() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    run(&mut cargo(&["fmt", "--check", "--manifest-path", fuzz::MANIFEST]))?;
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Whether a doc comment somewhere holds a code block. Nextest does not run those, and building the
/// documentation tests of every crate to find none takes its time.
fn has_doc_tests(directory: &Path) -> Result<bool> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let found = if path.is_dir() {
            has_doc_tests(&path)?
        } else {
            path.extension().is_some_and(|extension| extension == "rs")
                && fs::read_to_string(&path)?.lines().any(opens_code)
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn opens_code(line: &str) -> bool {
    let line = line.trim_start();
    let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
    comment.is_some_and(|text| text.trim_start().starts_with("```"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skip_is_listed_once_with_its_reason() {
        let skips = "a::b c: no corpus\na::b d: no sandbox\na::b c: no corpus\n";
        let expected =
            "==> 2 skipped, in whole or in part:\n    a::b c: no corpus\n    a::b d: no sandbox\n";
        assert_eq!(listed(skips), expected);
    }

    #[test]
    fn code_blocks_in_doc_comments_are_found() {
        for (line, expected) in [
            ("/// ```", true),
            ("    //! ```rust", true),
            ("/// text with ``` in it", false),
            ("// ```", false),
            ("let fence = \"```\";", false),
        ] {
            assert_eq!(opens_code(line), expected, "{line}");
        }
    }
}
