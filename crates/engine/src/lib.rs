//! Everything between a prompt and its outcome: session, agent driver, dispatch, broker, queue, budget
//! and journal.
//!
//! Knows nothing of HTTP, terminals or command lines, and reads neither the environment nor the home
//! directory: the binary hands in what it found there.

mod broker;
mod budget;
mod dispatch;
mod driver;
mod environment;
mod host;
mod journal;
mod ledger;
mod notification;
mod permissions;
mod private_file;
mod prompt;
mod queue;
mod redact;
mod report;
mod session;
mod structured;
mod toolbox;
pub mod transcript;

pub use broker::{Answerer, Ask, Reply, ReplyFuture};
pub use driver::RequestSettings;
pub use journal::{JournalError, Redaction};
pub use permissions::{Bypass, Destination, Remember, Remembered, RuleSource, RuleStore, Rules};
pub use prompt::PromptOptions;
pub use queue::Priority;
pub use session::{Handle, OpenError, Options, PROTOCOL_VERSION, Session, Start, Storage, View};
pub use structured::{SchemaError, StructuredOutput};
pub use toolbox::{ToolChoice, ToolboxError};
