//! Confines a command: the files that it may write, the files that it may not read, and the network that it can reach.
//!
//! A [`Sandbox`] describes the wanted confinement, [`Support`] the capabilities of the machine, and a [`Plan`] the
//! method with its gaps. The process that becomes the command applies the plan, and its guard [holds](Hold) it. Nothing
//! here knows of settings, agents or tools.

mod apply;
mod bubblewrap;
mod capabilities;
mod description;
mod devices;
mod filter;
mod hold;
mod mounts;
mod namespaces;
mod pages;
mod placeholders;
mod plan;
mod processes;
mod proxy;
mod reader;
mod resolve;
mod rules;
mod support;
mod system;
mod view;

pub use apply::{ApplyError, CommandPlace};
pub use description::{Network, ProxyProtocol, Sandbox, UnixSockets};
pub use hold::Hold;
pub use pages::forget_used_pages;
pub use placeholders::is_placeholder;
pub use plan::{Gap, Method, Plan, Unavailable};
pub use proxy::{Domains, Proxy, Routes};
pub use reader::{Reader, ReaderError};
pub use support::{Bubblewrap, Namespaces, Support};
pub use system::{
    awaitable, bind_to_starter, fork_alone, inherited, session_of, survive_file_size_limit,
    survive_signals, was_stdout_closed,
};
