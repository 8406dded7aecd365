//! What the members of a team share, in files that several processes use at once.
//!
//! A [`TaskList`] is an append-only log of changes. A change is judged by the rules and written down under one
//! lock: of two that claim a task, one gets it and the other is told who has it. State is what the log says,
//! replayed; a process that dies leaves nothing to mend but a torn last line, which counts as never written.
//! Beside the log stand views, one file for each task in the form that other programs read. Nothing here
//! reads them.
//!
//! Nothing here knows of models, agents at work or permissions.

mod frames;
mod log;
mod names;
pub mod peers;
pub mod socket;
mod tasks;

pub use frames::Frame;
pub use log::LogError;
pub use names::{LEAD, MemberName, TeamName, TeamNameError};
pub use tasks::{
    Actor, Happened, ListName, ListNameError, LogEntry, NewTask, Refusal, Status, Task, TaskList,
    TaskListError, TaskNumber, Updated, Wish,
};
