//! May this call run? `decide(policy, call)` is a pure function of rules, mode and what the call
//! would touch. No I/O: paths arrive resolved.

mod access;
mod decide;
mod domain_pattern;
mod matching;
mod mode;
mod parameter;
mod path_pattern;
mod paths;
mod policy;
mod protected;
mod reason;
mod rule;
mod shell;
mod tool_name;
mod wildcard;

pub use access::Access;
pub use decide::{Decision, Verdict, decide};
pub use mode::{Mode, UnknownMode};
pub use policy::{Call, Policy};
pub use reason::Reason;
pub use rule::{Rule, RuleError, RuleKind, RuleOrigin, RuleSource, RuleWarning};
pub use shell::simple_command;
pub use tool_name::canonical as canonical_tool_name;
