//! What the fuzz targets share.
//!
//! Pure modules of large crates are taken in by their files: with counters in every dependency, building
//! a whole crate for one function would take most of the time there is for fuzzing.
//!
//! To add a target: a file in `fuzz_targets/` that opens with `//!`, a `[[bin]]` for it in `Cargo.toml`,
//! and, where random bytes get nowhere, a few good inputs in `seeds/<target>/`. `cargo xtask fuzz`
//! finds it by the name of its file.

pub mod edit;
#[path = "../../crates/journal/src"]
pub mod journal {
    #[expect(dead_code, reason = "the other half is for the journal's writer")]
    mod round;
    #[expect(dead_code, reason = "one half is for the reader of a transcript's file")]
    pub mod transcript;
}
pub mod well_formed;
#[path = "../../crates/tui/src"]
mod tui {
    #![expect(unused_imports, reason = "the other half is for the program around it")]
    pub mod frame;
    pub mod input;
    pub mod look;
    pub mod surface;
    pub mod text;
}
// These modules name each other by their paths in the crate that they belong to.
pub use tui::{frame, input, look, surface, text};

/// Output of a command with its colours: the terminal keeps this function to itself.
pub fn coloured(line: &str) -> frame::Line {
    text::coloured(line)
}

/// The beginning of a difference: the terminal keeps this function to itself.
pub fn diff_beginning(old: &str, new: &str, most: usize) -> Vec<frame::Line> {
    text::diff_beginning(old, new, most).0
}
