//! May this call run? `decide(policy, call)` is a pure function of rules, mode and the call's access. No I/O: paths
//! arrive resolved, and the caller passes a lookup of links.

mod access;
mod apart;
mod beginnings;
mod confinement;
mod copies;
mod decide;
mod domain_pattern;
mod links;
mod mode;
mod names;
mod origin;
mod parameter;
mod path_pattern;
mod paths;
mod policy;
mod powershell;
mod protected;
mod query;
mod reason;
mod rule;
mod rule_set;
mod scene;
mod shell;
mod shell_verdict;
mod stance;
mod suggest;
mod tool_name;
mod tool_selector;
mod wildcard;

pub use access::Access;
pub use apart::Apart;
pub use copies::{CheckoutCopy, WORKTREES};
pub use decide::{Decision, Verdict, decide};
pub use links::{Links, NoLinks, PathKind};
pub use mode::{Mode, UnknownMode};
pub use origin::{RuleLevel, RuleOrigin, RuleSource};
pub use policy::{Call, DeniedPlaces, GitCheck, HostRule, Layer, Policy, Role, Sharer};
pub use reason::{MayMatch, Reason};
pub use rule::{Rule, RuleError, RuleKind, RuleWarning};
pub use rule_set::RuleSet;
pub use shell::{Readings, Unclear, simple_command};
pub use stance::{Bounds, OwnMode, Skipping, Stance};
pub use suggest::{Destination, SuggestedRule, Suggestion, suggest};
pub use tool_name::{all_names as all_tool_names, canonical as canonical_tool_name};
pub use tool_selector::ToolSelector;
