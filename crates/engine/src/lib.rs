//! Everything between a prompt and its outcome: session, agent driver, dispatch, broker, queue, budget
//! and journal.
//!
//! Knows nothing of HTTP, terminals or command lines, and reads neither the environment nor the home
//! directory: the binary hands in what it found there.

mod broker;
mod budget;
mod dispatch;
mod driver;
mod elicitation;
mod environment;
mod hooks;
mod host;
mod journal;
mod ledger;
mod markup;
mod notification;
mod permissions;
mod private_file;
mod prompt;
mod queue;
mod redact;
mod report;
mod servers;
mod session;
mod structured;
mod toolbox;
pub mod transcript;

pub use broker::{Answerer, Ask, ElicitFuture, Reply, ReplyFuture};
pub use driver::RequestSettings;
pub use elicitation::Elicitations;
pub use hooks::HookHost;
pub use journal::{JournalError, Redaction};
pub use permissions::{
    Bypass, Change, Destination, Remember, Remembered, RuleSource, RuleStore, Rules,
};
pub use prompt::PromptOptions;
pub use queue::Priority;
pub use servers::REQUIRED_PATIENCE;
pub use session::{
    Extensions, Handle, NotOffered, OpenError, Options, PROTOCOL_VERSION, Session, Start, Storage,
    ToolReply, ToolServer, View,
};
pub use structured::{SchemaError, StructuredOutput};
pub use toolbox::{ToolChoice, ToolboxError};
