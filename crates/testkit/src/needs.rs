//! What a test needs of its machine.

/// Whether a test can go on: it can where the machine has what it needs. Where not, the skip is named.
///
/// Whether the machine has it must be asked of the machine, never of the program that is tested: a program that
/// stops to do something must fail its tests, not skip them.
///
/// # Panics
/// In continuous integration (`CI` is set), where nothing may be skipped.
#[expect(clippy::print_stderr, reason = "a skip is told to whoever reads the test's output")]
pub fn needs(what: &str, is_there: bool) -> bool {
    assert!(is_there || std::env::var_os("CI").is_none(), "this machine lacks {what}");
    if !is_there {
        eprintln!("skipped: this machine lacks {what}");
    }
    is_there
}
