//! Hooks that really run: processes below the guard, requests to a server, delegated answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "hooks/commands.rs"]
mod commands;
#[path = "hooks/delegated.rs"]
mod delegated;
#[path = "hooks/http.rs"]
mod http;
#[path = "hooks/late.rs"]
mod late;
#[path = "hooks/scopes.rs"]
mod scopes;
#[path = "hooks/stage.rs"]
mod stage;
