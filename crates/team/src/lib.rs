//! The shared state of a team's members, in files that several processes use at once.
//!
//! A [`TaskList`] is an append-only log of changes. The rules judge a change, and the log records it, under one lock:
//! of two members that claim a task, one gets it and the other is told the owner. The state is the replayed log; a
//! process that dies leaves at most a torn last line, which counts as never written. Beside the log are views, one file
//! for each task in the form that other programs read. Nothing here reads them.
//!
//! Nothing here knows of models, running agents or permissions.

mod back_end;
mod frames;
mod log;
mod names;
pub mod peers;
pub mod socket;
mod tasks;
mod view;

pub use back_end::{
    BackEnd, BackEndError, BackEndFuture, Execution, MemberCommand, MemberPlace, MemberProcess,
    PanePlace,
};
pub use frames::Frame;
pub use log::LogError;
pub use names::{LEAD, MemberName, TeamName, TeamNameError};
pub use tasks::{
    Actor, ListName, ListNameError, LogEntry, NewTask, Status, Task, TaskChange, TaskList,
    TaskListError, TaskNumber, TaskRefusal, TaskRequest, TeamTaskViews, UpdatedTask,
};
pub use view::{AppendedMessage, InboxEntry, TeamFiles};
