//! Messages to an agent between its turns: the queue, mail, and their records.

pub(crate) mod life_records;
pub(crate) mod mail;
pub(crate) mod manner;
pub(crate) mod queue;
pub(crate) mod teammate_message;
pub(crate) mod titles;
mod waiting;
