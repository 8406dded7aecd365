//! Which calls a rule means.
//!
//! Allow rules must be sure, ask and deny rules must not be escaped: the same rule therefore matches
//! more when it takes than when it gives.

use std::path::Path;

use crate::access::Access;
use crate::path_pattern::PathPattern;
use crate::policy::{Call, Policy};
use crate::rule::{Rule, RuleKind, Specifier};
use crate::shell;
use crate::tool_name::canonical;

impl Rule {
    pub(crate) fn matches(&self, kind: RuleKind, call: &Call<'_>, policy: &Policy) -> bool {
        match (&self.specifier, call.access) {
            (Specifier::Every, _) => self.tool.matches(kind, call.tool),
            (Specifier::Command(pattern), Access::Shell(command)) => {
                self.tool.matches(kind, call.tool)
                    && if kind == RuleKind::Allow {
                        pattern.allows(command)
                    } else {
                        pattern.catches(command)
                    }
            }
            (Specifier::Domain(pattern), Access::Network(url)) => {
                self.tool.matches(kind, call.tool) && pattern.matches(url)
            }
            (Specifier::Path(pattern), access) => match access {
                Access::Read(path) | Access::Write(path) => {
                    self.covers(kind, call) && pattern.matches(kind, path, policy)
                }
                Access::Shell(command) => {
                    kind != RuleKind::Allow && self.catches_in_shell(kind, pattern, command, policy)
                }
                Access::Session | Access::Network(_) => false,
            },
            _ => false,
        }
    }

    /// Whether this deny rule keeps a path from being read by one of the tools that read files.
    pub(crate) fn denies_reading(&self, path: &Path, policy: &Policy) -> bool {
        match &self.specifier {
            Specifier::Path(pattern) => {
                matches!(self.tool.name(), Some("Read" | "Grep" | "Glob"))
                    && pattern.matches(RuleKind::Deny, path, policy)
            }
            _ => false,
        }
    }

    /// Whether a path rule of one tool speaks about this call. `Edit` speaks for everything that
    /// writes, `Read` for everything that reads; who may edit may read, who may not read may not edit.
    fn covers(&self, kind: RuleKind, call: &Call<'_>) -> bool {
        let gives = kind == RuleKind::Allow;
        let tool = canonical(call.tool);
        match (self.tool.name(), call.access) {
            (Some("Edit"), Access::Write(_)) | (Some("Read"), Access::Read(_)) => true,
            (Some("Edit"), Access::Read(_)) => gives,
            (Some("Read"), Access::Write(_)) => !gives && tool != "NotebookEdit",
            (Some(name), _) => name == tool,
            (None, _) => false,
        }
    }

    /// Whether a shell command names a path that this ask or deny rule guards.
    fn catches_in_shell(
        &self,
        kind: RuleKind,
        pattern: &PathPattern,
        command: &str,
        policy: &Policy,
    ) -> bool {
        let concerned = match self.tool.name() {
            Some("Read") => true,
            Some("Edit") => !shell::is_read_only(command, policy),
            _ => false,
        };
        concerned
            && shell::mentioned_paths(command).iter().any(|word| {
                let path = match (word.strip_prefix("~/"), &policy.home) {
                    (Some(rest), Some(home)) => home.join(rest),
                    _ => policy.cwd.join(Path::new(word)),
                };
                pattern.matches(kind, &path, policy)
            })
    }
}
