//! `cargo xtask test` and `cargo xtask lint`: what the CI runs, and nothing else decides.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::components;
use crate::fuzz;
use crate::needs;
use crate::run::{cargo, root, run};

/// How long each fuzz target runs as part of the tests.
const FUZZ_SECONDS: u32 = 10;

/// Runs every test there is.
pub(crate) fn test() -> Result<()> {
    needs::install()?;
    let mut tests = cargo(&["nextest", "run", "--workspace"]);
    run(tests.env(components::VARIABLE, components::directory()))?;
    if has_doc_tests(&root().join("crates"))? {
        run(&mut cargo(&["test", "--workspace", "--doc", "--quiet"]))?;
    }
    fuzz::fuzz(&fuzz::Options { seconds: FUZZ_SECONDS, target: None })
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
