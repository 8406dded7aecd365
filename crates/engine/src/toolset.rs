//! The tools of an agent: those of the program, of servers, and the one for structured answers.

pub(crate) mod servers;
pub(crate) mod structured;
pub(crate) mod toolbox;
