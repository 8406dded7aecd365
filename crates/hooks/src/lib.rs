//! Hooks: what people run at events of an agent, and what it may change.
//!
//! A [`HookSet`] is read from settings, a plugin, a definition or a host, and says what in it cannot run.
//! [`Hooks`] holds the sets of a session; [`Hooks::fire`] tells those that an event means, side by side,
//! and folds what they say into one typed verdict.
//!
//! Knows no sessions and no models: what needs one goes through a [`Delegate`].

mod background;
mod condition;
mod delegate;
mod effects;
mod event;
pub mod events;
mod handler;
mod hook_set;
mod hooks;
mod input;
mod matcher;
mod origin;
mod output;
mod parse;
mod reply;
mod rules;
mod run;
mod terminal;
mod watch_list;
mod watcher;

pub use condition::{Condition, ConditionError};
pub use delegate::{AGENT_HOOK_TURNS, Delegate, DelegateError, DelegateFuture, ModelRequest};
pub use effects::{Effects, Fired, HookError, StopRun};
pub use event::{Event, ExitTwo, UnknownEvent};
pub use handler::{
    Action, CommandAction, Handler, HandlerType, HookShell, HttpAction, PromptAction, Waiting,
};
pub use hook_set::{Frontmatter, HookSet};
pub use hooks::{Hooks, Registration, Scope, Surroundings};
pub use input::{Common, EffortLevel, EventInput, McpServer, ToolCall};
pub use origin::{HookOrigin, HookProblem, HookSource, PluginSource};
pub use output::{
    ElicitationAction, PermissionUpdate, RequestDecision, RuleBehavior, RuleValue, ToolDecision,
    UpdateDestination,
};
pub use reply::Reply;
pub use rules::{HookJudge, HookRules};
pub use watch_list::FileChange;
pub use watcher::{HookOutcome, HookResponse, HookStarted, HookWatcher, LateReply};
