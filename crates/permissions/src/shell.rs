//! Shell commands as far as permission can be sure of them.
//!
//! Two readings, for two purposes. The strict one follows the shell's grammar into every list, pipe,
//! group and substitution, and says so when it does not understand: what gives permission rests on it.
//! `rough` is generous: it finds everything that might be a command somewhere inside; what takes
//! permission rests on both.

mod analysis;
mod ansi_c;
mod chain;
mod edits;
mod git;
mod literal;
mod names;
mod parse;
mod pattern;
mod places;
mod programs;
mod read_only;
mod readings;
mod removal;
mod rough;
mod script;
mod second_reading;
mod sed;
mod walker;
mod words;
mod wrappers;

pub(crate) use analysis::{Analysis, Part};
pub(crate) use edits::{edits_inside, is_sink, protected_write};
pub(crate) use pattern::{CommandPattern, opening};
pub(crate) use programs::{is_interpreter, is_package_runner};
pub(crate) use read_only::is_free;
pub use readings::Readings;
pub use script::Unclear;
pub(crate) use script::{Command, Redirection};
pub use words::simple_command;
