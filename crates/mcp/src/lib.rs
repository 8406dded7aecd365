//! MCP clients: connections to servers, shared by configuration, and the offers of the servers.
//!
//! A [`Pool`] owns every connection and every process behind one. A [`Connection`] is a handle: it tells the state of
//! its server, offers its tools, prompts and resources, and calls them. Knows nothing of agents, rules or models; the
//! caller passes the services that answer a server's questions.

mod auth;
mod bytes;
mod call;
mod catalog;
mod client;
mod connection;
mod content;
mod headers;
mod host;
mod limits;
mod link;
mod name;
mod open;
mod output;
mod pool;
mod process;
mod progress;
mod schema;
mod state;
mod supervisor;
mod tool;
mod transport;

pub use auth::{LoginError, login, logout};
pub use call::{CallError, CallOptions, CallOutput};
pub use catalog::{
    Prompt, PromptArgument, PromptMessage, PromptText, Resource, ResourceContent, ResourceTemplate,
    ServerInfo, ToolInfo,
};
pub use connection::Connection;
pub use host::{
    Elicitation, ElicitationAnswer, ElicitationKind, Elicitor, HostError, HostFuture, Sampler,
    SdkChannel, SdkInbox,
};
pub use name::{prompt_name, tool_name};
pub use pool::{Pool, PoolOptions, ServerJudge};
pub use progress::Progress;
pub use state::State;
pub use transport::ThrottledTransport;
