//! Tests that cannot run on a machine: each says so and why, and continuous integration lets only a few.

use std::io::Write as _;

/// Names the file that every skip is written to. `cargo xtask test` reads it and lists them at its end.
const VARIABLE: &str = "CENTURION_TEST_SKIPS";

/// The thing that a test lacks. This is the one list of reasons to skip.
///
/// A test must look for it on the machine, never ask the tested program: a program that
/// stops doing something must fail its tests, not skip them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Definitions that strangers wrote: `CENTURION_CORPUS` names no directory of them.
    Corpus,
    /// Anything that confines commands.
    Sandbox,
    /// A sandbox without gaps.
    CompleteSandbox,
    /// Namespaces in which an ordinary user may mount file systems.
    Namespaces,
    /// A kernel that lists the children of a process.
    ChildLists,
    /// A kernel that runs system calls of 32-bit programs.
    Calls32,
    /// A git that keeps refs in tables, which not every distribution has yet.
    Reftable,
    /// A process that may become one of another user.
    OtherUsers,
    /// A user who may trace processes that are not below the tracer.
    Tracing,
    /// A machine on which no model server listens.
    NoModelServer,
    /// The test that starts this one as a process: it is the other half of that test, and proves nothing alone.
    OtherHalf,
}

impl Lack {
    fn reason(self) -> &'static str {
        match self {
            Self::Corpus => "`CENTURION_CORPUS` names no corpus of definitions",
            Self::Sandbox => "this machine cannot confine commands",
            Self::CompleteSandbox => "this machine has no sandbox without gaps",
            Self::Namespaces => "this user gets no namespaces to mount file systems in",
            Self::ChildLists => "this kernel does not list the children of a process",
            Self::Calls32 => "this kernel runs no 32-bit system calls",
            Self::Reftable => "this git keeps no refs in tables",
            Self::OtherUsers => "only root starts processes of other users",
            Self::Tracing => "this user may trace no process that is not below the tracer",
            Self::NoModelServer => "a model server runs on this machine",
            Self::OtherHalf => "it is the process that another test starts",
        }
    }

    /// Whether continuous integration may go without it: the corpus is no part of the project, what a kernel does not
    /// do at all needs no guard, and the tests run as an ordinary user, too.
    fn is_allowed_in_ci(self) -> bool {
        let is_of_machine =
            matches!(self, Self::Calls32 | Self::Reftable | Self::OtherUsers | Self::Tracing);
        is_of_machine || matches!(self, Self::Corpus | Self::OtherHalf)
    }
}

/// Says that a test, or a part of it, does not run here: `return skip(Lack::Sandbox)`.
///
/// # Panics
/// In continuous integration (`CI` is set), unless the reason is one that it may have.
#[expect(clippy::print_stderr, reason = "a skip is told to the reader of the test's output")]
pub fn skip(lack: Lack) {
    let reason = judge(lack, std::env::var_os("CI").is_some());
    let reason = reason.unwrap_or_else(|refusal| panic!("{refusal}"));
    eprintln!("skipped: {reason}");
    if let Some(path) = std::env::var_os(VARIABLE) {
        let mut file =
            std::fs::File::options().create(true).append(true).open(path).expect("a file");
        // One write: tests that run at the same time do not mix their lines.
        file.write_all(format!("{}: {reason}\n", this_test()).as_bytes()).expect("a line");
    }
}

fn judge(lack: Lack, is_ci: bool) -> Result<&'static str, String> {
    let reason = lack.reason();
    if is_ci && !lack.is_allowed_in_ci() {
        return Err(format!("continuous integration skips no test because {reason}"));
    }
    Ok(reason)
}

/// The test that runs, as the test runner names it.
fn this_test() -> String {
    let parts = ["NEXTEST_BINARY_ID", "NEXTEST_TEST_NAME"].map(std::env::var);
    match parts {
        [Ok(binary), Ok(test)] => format!("{binary} {test}"),
        _ => std::thread::current().name().unwrap_or("a test").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuous_integration_skips_only_what_it_may() {
        assert!(judge(Lack::Corpus, true).is_ok());
        for lack in [Lack::Sandbox, Lack::CompleteSandbox, Lack::Namespaces, Lack::ChildLists] {
            let refusal = judge(lack, true).unwrap_err();
            assert!(refusal.contains(lack.reason()), "{refusal}");
            assert_eq!(judge(lack, false), Ok(lack.reason()));
        }
    }
}
