//! Stories: an agent against a scripted model, in process, with real tools in a scratch directory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "story/bench.rs"]
mod bench;
#[path = "story/deferred.rs"]
mod deferred;
#[path = "story/faults.rs"]
mod faults;
#[path = "story/hook_handlers.rs"]
mod hook_handlers;
#[path = "story/hook_outputs.rs"]
mod hook_outputs;
#[path = "story/hook_stage.rs"]
mod hook_stage;
#[path = "story/hooks.rs"]
mod hooks;
#[path = "story/limits.rs"]
mod limits;
#[path = "story/outcomes.rs"]
mod outcomes;
#[path = "story/permissions.rs"]
mod permissions;
#[path = "story/resume.rs"]
mod resume;
#[path = "story/tools.rs"]
mod tools;
