//! The reasons that a hook cannot run.

use thiserror::Error;

use crate::condition::ConditionError;
use crate::event::Event;
use crate::handler::HandlerType;

#[derive(Debug, Error)]
pub(super) enum HandlerError {
    #[error("`{name}` is no type of hook; help: use one of {}", types())]
    UnknownType { name: String },
    #[error("has no `type`; help: use one of {}", types())]
    NoType,
    #[error("a hook of type {kind} cannot run at {event}")]
    WrongEvent { kind: HandlerType, event: Event },
    #[error("has no `{name}`: {what}")]
    Lacks { name: &'static str, what: &'static str },
    #[error(
        "`if` counts only where a tool is called, so that this hook never runs at {event}; help: leave it out"
    )]
    NeedlessCondition { event: Event },
    #[error("its `if` is no use: {0}")]
    Condition(#[source] ConditionError),
    #[error("only a host has functions to call")]
    Callback,
    #[error("`{name}` is no shell; help: use bash or powershell")]
    UnknownShell { name: String },
    #[error(
        "`${{user_config.…}}` is not safe in a command line; help: put the arguments into `args`"
    )]
    UnsafeSetting,
    #[error("`url` must begin with http or https, not with {scheme}")]
    OtherScheme { scheme: String },
    #[error("`url` is no address: {0}")]
    NoAddress(#[source] url::ParseError),
}

fn types() -> String {
    HandlerType::WRITTEN.map(HandlerType::name).join(", ")
}
