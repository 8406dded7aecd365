//! Agents of Centurion inside another Rust program.
//!
//! [`Session::builder`] takes a model and what its agents may use; a [`Session`] is one conversation. This crate is the
//! whole public surface: types of the engine appear nowhere in it, so that an update of the engine changes no program
//! that embeds it. It reads neither the environment nor the home directory: the program hands in what counts.
//!
//! # One prompt
//!
//! ```
//! use centurion_embed::{Model, Session};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), centurion_embed::Error> {
//! // A script plays the model, so that this needs no key and no network; `Model::named("sonnet")` asks a provider.
//! let model = Model::script("default: You said ${re:(\\w+)}.");
//! let mut session = Session::builder(model).open().await?;
//! let answer = session.ask("hello").await?;
//! assert_eq!(answer.text, "You said hello.");
//! # Ok(())
//! # }
//! ```
//!
//! # A tool of your own
//!
//! The doc comments are what the model reads, the fields are the schema, and `run` does the work. A call passes the same
//! rules, hooks and bounds as a call of a built-in tool, so that it needs a rule or an answer.
//!
//! ```
//! use centurion_embed::{Model, Session, Tool, ToolError};
//!
//! /// Adds two numbers.
//! #[derive(Tool)]
//! struct Add {
//!     /// The first number.
//!     one: i64,
//!     /// The second number.
//!     other: i64,
//! }
//!
//! impl Add {
//!     async fn run(self) -> Result<String, ToolError> {
//!         let sum = self.one.checked_add(self.other).ok_or(ToolError::new("too large"))?;
//!         Ok(sum.to_string())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), centurion_embed::Error> {
//! let script = "
//! default:
//!   - {tool: Add, input: {one: 2, other: 3}}
//!   - The sum is ${re:(\\d+)}.
//! ";
//! let mut session =
//!     Session::builder(Model::script(script)).tool::<Add>().allow("Add").open().await?;
//! assert_eq!(session.ask("What is 2 + 3?").await?.text, "The sum is 5.");
//! # Ok(())
//! # }
//! ```
//!
//! # Events
//!
//! [`Session::send`] gives the events of a prompt one by one, as a stream.
//!
//! ```
//! use centurion_embed::{Event, Model, Session};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), centurion_embed::Error> {
//! let mut session = Session::builder(Model::script("default: Hello.")).open().await?;
//! let mut turn = session.send("Say hello.");
//! let mut said = Vec::new();
//! while let Some(event) = turn.next().await {
//!     if let Event::Text { text, .. } = event {
//!         said.push(text);
//!     }
//! }
//! assert_eq!(said, ["Hello."]);
//! # Ok(())
//! # }
//! ```
//!
//! # Commands
//!
//! Shell commands run below a guard, which ends them when the program dies. The guard is the program itself, started
//! again: [`Guard::enter`] is the first line of its `main`. A session without a guard has no shell.

// The derive names this crate by its name, also in its own tests.
extern crate self as centurion_embed;

mod agent;
mod answer;
mod builder;
mod error;
mod event;
mod guard;
mod hook;
mod inbox;
mod model;
mod permission;
mod session;
mod storage;
mod tool;

pub use centurion_embed_derive::Tool;

pub use agent::Agent;
pub use answer::{Answer, Denial, Outcome};
pub use builder::SessionBuilder;
pub use error::{Error, ErrorKind};
pub use event::Event;
pub use guard::Guard;
pub use hook::{HookCall, HookEvent, HookReply};
pub use model::Model;
pub use permission::{Mode, PermissionAsk, PermissionReply};
pub use session::{Interrupter, Session, Turn};
pub use tool::{Tool, ToolError, ToolOutput};

/// Crates that the derive names. No part of the surface.
#[doc(hidden)]
pub mod derive_support {
    pub use schemars;
    pub use serde;
}

/// The code of the guide, which has to compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/library.md")]
struct Guide;
