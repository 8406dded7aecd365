//! The whole program: the real binary, real files, real processes, a loopback server for the model.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "program/crash.rs"]
mod crash;
#[path = "program/demo.rs"]
mod demo;
#[path = "program/faults.rs"]
mod faults;
#[path = "program/flags.rs"]
mod flags;
#[path = "program/host.rs"]
mod host;
#[path = "program/output.rs"]
mod output;
#[path = "program/processes.rs"]
mod processes;
#[path = "program/program.rs"]
mod program;
#[path = "program/sessions.rs"]
mod sessions;
#[path = "program/settings.rs"]
mod settings;
