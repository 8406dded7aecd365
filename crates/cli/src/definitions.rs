//! The common part of the commands about agents and the commands about skills: where both are looked for, how they
//! are listed, checked, explained and written.

pub(crate) mod explained;
pub(crate) mod findings;
pub(crate) mod listing;
pub(crate) mod new_file;
pub(crate) mod places;
