//! Everything between a prompt and its outcome: session, agent driver, dispatch, broker, queue, budget
//! and journal.
//!
//! Knows nothing of HTTP, terminals or command lines, and reads neither the environment nor the home
//! directory: the binary hands in what it found there.

mod agent;
mod agent_tool;
mod background_tasks;
mod broker;
mod budget;
mod builder;
pub mod builtin;
mod bulk_stop;
mod definitions;
mod delegation;
mod dispatch;
mod driver;
mod elicitation;
mod environment;
mod evidence;
mod hooks;
mod host;
mod identity;
mod ledger;
mod limits;
mod list_agents;
mod mail;

mod notification;
mod permissions;
mod places;
mod powers;
mod preload;
mod prompt;
mod pulse;
mod queue;
mod recall;
mod report;
mod resolve;
mod rule_text;
mod schedule;
mod send_message;
mod servers;
mod session;
mod spawn;
mod spec;
mod spending;
mod structured;
mod summary;
mod task;
mod titles;
mod toolbox;

pub use agent_tool::Explanation;
pub use broker::{Answerer, Ask, AskingAgent, ElicitFuture, Reply, ReplyFuture};
pub use budget::Limit;
pub use builder::{AgentServers, BroughtBy, ModelRefusal};
pub use centurion_journal::{JournalError, Redaction};
pub use definitions::Definitions;
pub use delegation::{DelegationRules, SessionMode};
pub use driver::RequestSettings;
pub use elicitation::Elicitations;
pub use hooks::HookHost;
pub use limits::{LimitError, Limits};
pub use permissions::{
    Bypass, Change, Destination, Remember, Remembered, RuleChange, RuleSource, RuleStore, Rules,
};
pub use prompt::{PromptOptions, Section};
pub use queue::Priority;
pub use resolve::{
    Decided, EffectiveAgent, LaunchError, LeftOut, MainFlags, Provenance, Reach, ToolView,
};
pub use rule_text::{UnreadRule, read_rule};
pub use servers::{REQUIRED_PATIENCE, WithheldServer};
pub use session::{
    AgentOptions, Extensions, Handle, NotOffered, OpenError, Options, PROTOCOL_VERSION, Session,
    Start, Storage, ToolReply, ToolServer, View,
};
pub use structured::{SchemaError, StructuredOutput};
pub use toolbox::{ToolChoice, ToolboxError};
