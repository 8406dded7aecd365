//! Shell commands as far as permission can be sure of them.
//!
//! Two readings, for two purposes. [`simple_command`] is strict: it splits a command into words only
//! if any shell would read the same words and run nothing else; what gives permission rests on it.
//! `rough` is generous: it finds everything that might be a command somewhere inside; what
//! takes permission rests on it.

mod edits;
mod pattern;
mod read_only;
mod removal;
mod rough;
mod words;

pub(crate) use edits::edits_inside;
pub(crate) use pattern::CommandPattern;
pub(crate) use read_only::is_read_only;
pub(crate) use removal::critical_removal;
pub(crate) use rough::mentioned_paths;
pub use words::simple_command;
