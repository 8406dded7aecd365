//! Shell commands, as far as permission can be certain of them.
//!
//! The parsers (`command_parser`, `word_parser`) read a text as bash does, or not at all. `walker` finds every command
//! in it: allow rules depend on these. `views` finds, beyond them, every text that a command may run, and `mentions`
//! every path that it may touch: ask and deny rules depend on these.

mod analysis;
mod ansi_c;
mod braces;
mod builtins;
mod characters;
mod command_parser;
mod edits;
mod expansion;
mod find;
mod free_programs;
mod git;
mod git_runs;
mod jq;
mod mentions;
mod names;
mod options;
mod outline;
mod pattern;
mod places;
mod programs;
mod read_only;
mod reader;
mod readings;
mod removal;
mod script;
mod sed;
mod shape;
mod simple;
mod syntax;
mod told_programs;
mod told_words;
mod tree_moves;
mod variables;
mod views;
mod walker;
mod word_parser;
mod wrappers;
mod writes;

pub(crate) use analysis::{Analysis, Part};
pub(crate) use edits::{edits_inside, is_sink};
pub(crate) use mentions::TreeUse;
pub(crate) use outline::Outline;
pub(crate) use pattern::CommandPattern;
pub(crate) use programs::{is_interpreter, is_package_runner};
pub(crate) use read_only::{changes_nothing, is_free};
pub use readings::Readings;
pub use script::Unclear;
pub(crate) use script::{Command, Redirection};
pub(crate) use shape::{Shape, ShapeRest, Step, of_glob};
pub use simple::simple_command;
