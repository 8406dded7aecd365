//! The replacement of the Edit tool.

#[path = "../../crates/tools/src/edit/apply.rs"]
mod apply;
#[path = "../../crates/tools/src/edit/mismatch.rs"]
mod mismatch;

pub use apply::{Applied, EditError, apply};
pub use mismatch::{Excerpt, Mismatch};
