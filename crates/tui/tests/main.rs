//! Tests of the application side: happenings in, effects and frames out, under a virtual clock.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "app/asks.rs"]
mod asks;
#[path = "app/failures.rs"]
mod failures;
#[path = "app/features.rs"]
mod features;
#[path = "app/frames.rs"]
mod frames;
#[path = "app/hostile.rs"]
mod hostile;
#[path = "app/keys.rs"]
mod keys;
#[path = "app/mouse.rs"]
mod mouse;
#[path = "app/plain.rs"]
mod plain;
#[path = "app/recorded.rs"]
mod recorded;
#[path = "app/screens.rs"]
mod screens;
#[path = "app/stage.rs"]
mod stage;
#[path = "app/tables.rs"]
mod tables;
#[path = "app/tables_shown.rs"]
mod tables_shown;
#[path = "app/viewer.rs"]
mod viewer;
#[path = "app/window.rs"]
mod window;
