//! Hooks: the actions that people run at events of an agent, and their effects.
//!
//! A [`HookSet`] is parsed from settings, a plugin, a definition or a host, and lists its problems. [`Hooks`] holds the
//! sets of a session; [`Hooks::fire`] runs the hooks for an event in parallel and folds their replies into one typed
//! verdict.
//!
//! Knows no sessions and no models: hooks that need one go through a [`Delegate`].

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
pub use effects::{Effects, HookError, HookResult, StopRun};
pub use event::{Event, ExitTwo, UnknownEvent};
pub use handler::{
    Action, CallbackAction, CommandAction, Handler, HandlerType, HookShell, HttpAction, OnFailure,
    PromptAction, Waiting,
};
pub use hook_set::{Frontmatter, HookSet};
pub use hooks::{HookScope, Hooks, ListedHook, Registration, Surroundings};
pub use input::{Common, EffortLevel, EventInput, McpServer, ToolCall};
pub use origin::{HookOrigin, HookProblem, HookSource, PluginSource};
pub use output::{
    ElicitationAction, PermissionUpdate, RequestDecision, RuleBehavior, RuleValue, ToolDecision,
    UpdateDestination,
};
pub use reply::Reply;
pub use rules::{HookJudge, HookRules};
pub use watch_list::FileChange;
pub use watcher::{HookOutcome, HookProgress, HookResponse, HookStarted, HookWatcher, LateReply};
