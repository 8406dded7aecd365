//! Delegation of work to other agents: start, resume, report, stop.

pub(crate) mod build;
pub(crate) mod host;
pub(crate) mod inherit;
pub(crate) mod interrupted;
pub(crate) mod notification;
pub(crate) mod outcome;
pub(crate) mod powers;
pub(crate) mod preload;
pub(crate) mod recall;
pub(crate) mod spawn;
pub(crate) mod spending;
pub(crate) mod stop_all;
pub(crate) mod summary;
pub(crate) mod teammate;
