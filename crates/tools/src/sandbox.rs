//! Which commands of an agent are confined, and what the model is told about it.

mod denied;

use std::path::Path;

pub use denied::{DeniedFiles, DeniedSearch};

use centurion_permissions::simple_command;
use centurion_sandbox::{Gap, Method, Network, Plan, Sandbox, Support, Unavailable};
use thiserror::Error;

/// What a person has decided about confinement.
#[derive(Clone, Debug, Default)]
pub struct SandboxSettings {
    /// Nothing runs when the sandbox cannot be had, or not all of it.
    pub fail_if_unavailable: bool,
    /// The model may ask for a command to run outside.
    pub allow_unsandboxed_commands: bool,
    /// Commands that run outside: their first words, as in `docker` or `docker compose`.
    pub excluded_commands: Vec<String>,
}

/// How the commands of one agent are confined on this machine.
#[derive(Clone, Debug)]
pub struct SandboxPolicy {
    plan: Result<Plan, Unavailable>,
    settings: SandboxSettings,
}

/// Why a command cannot run: this is told the model.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum SandboxRefusal {
    #[error("the sandbox cannot be switched off here: leave out dangerouslyDisableSandbox")]
    Disabled,
    #[error(
        "commands may run only in a complete sandbox, which this machine does not have: {gaps}. Tell the user; do \
         not try again"
    )]
    Incomplete { gaps: String },
    #[error(
        "commands may run only in a sandbox, which cannot be had: {0}. Tell the user; do not try again"
    )]
    Unavailable(Unavailable),
}

/// What becomes of one command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Confined {
    By(Box<Plan>),
    /// Not at all; the note says why, where that was not wanted.
    Not {
        note: Option<String>,
    },
}

impl SandboxPolicy {
    pub fn new(sandbox: Sandbox, support: &Support, settings: SandboxSettings) -> Self {
        Self { plan: Plan::new(sandbox, support), settings }
    }

    /// By what means commands are confined.
    pub fn method(&self) -> Option<&Method> {
        self.plan.as_ref().ok().map(|plan| &plan.method)
    }

    /// What of the sandbox this machine cannot guarantee.
    pub fn gaps(&self) -> &[Gap] {
        self.plan.as_ref().map_or(&[], |plan| &plan.gaps)
    }

    /// Why there is no sandbox at all, if there is none.
    pub fn unavailable(&self) -> Option<&Unavailable> {
        self.plan.as_ref().err()
    }

    /// Whether the model may ask for a command to run outside.
    pub fn allows_unsandboxed(&self) -> bool {
        self.settings.allow_unsandboxed_commands
    }

    /// Whether a command will be confined, and held to every rule about files: for the decision if it may run.
    pub fn confines(&self, command: &str, disabled: bool, denied: &DeniedFiles) -> bool {
        const OF_FILES: [Gap; 2] = [Gap::DeniedReads, Gap::DeniedWrites];
        match self.decide(command, disabled, denied) {
            Ok(Confined::By(plan)) => {
                let is_open = |gap: &Gap| OF_FILES.contains(gap) && !denied.is_empty();
                denied.is_complete && !plan.gaps.iter().any(is_open)
            }
            _ => false,
        }
    }

    /// What becomes of a command.
    pub(crate) fn decide(
        &self,
        command: &str,
        disabled: bool,
        denied: &DeniedFiles,
    ) -> Result<Confined, SandboxRefusal> {
        if disabled && !self.settings.allow_unsandboxed_commands {
            return Err(SandboxRefusal::Disabled);
        }
        if disabled || self.is_excluded(command) {
            return Ok(Confined::Not { note: None });
        }
        let plan = self.plan.as_ref().map(|plan| plan.denying(&denied.read, &denied.write));
        match plan {
            Ok(plan) if plan.gaps.is_empty() || !self.settings.fail_if_unavailable => {
                Ok(Confined::By(Box::new(plan)))
            }
            Ok(plan) => {
                let gaps: Vec<_> = plan.gaps.iter().map(Gap::to_string).collect();
                Err(SandboxRefusal::Incomplete { gaps: gaps.join("; ") })
            }
            Err(reason) if self.settings.fail_if_unavailable => {
                Err(SandboxRefusal::Unavailable(reason.clone()))
            }
            Err(reason) => Ok(Confined::Not {
                note: Some(format!("This ran without a sandbox, which cannot be had: {reason}.")),
            }),
        }
    }

    /// Whether a command is one of those that run outside. Only a single command can be: of several, one
    /// could use another's freedom.
    fn is_excluded(&self, command: &str) -> bool {
        let excluded_commands = &self.settings.excluded_commands;
        if excluded_commands.is_empty() {
            return false;
        }
        let Some(command) = simple_command(command) else { return false };
        excluded_commands.iter().any(|excluded| {
            let excluded = excluded.trim().trim_end_matches('*').trim_end_matches([':', ' ']);
            let mut words = command.iter();
            !excluded.is_empty()
                && excluded
                    .split(' ')
                    .filter(|word| !word.is_empty())
                    .all(|word| words.next().is_some_and(|next| next == word))
        })
    }

    /// A line for a command that failed in the way that commands fail in a sandbox.
    pub(crate) fn hint(&self, plan: &Plan, output: &str) -> Option<String> {
        /// What programs say when the sandbox holds them back.
        const SIGNS: [&str; 10] = [
            "device or resource busy",
            "read-only file system",
            "permission denied",
            "operation not permitted",
            "network is unreachable",
            "could not resolve",
            "couldn't connect",
            "name resolution",
            "from proxy",
            "tunnel failed",
        ];
        let said = output.to_lowercase();
        if !SIGNS.iter().any(|sign| said.contains(sign)) {
            return None;
        }
        let places: Vec<_> = plan.sandbox.write.iter().map(|path| shown(path)).collect();
        let mut kept = plan.sandbox.deny_write.iter();
        let kept = kept
            .clone()
            .find(|it| output.contains(&shown(it)))
            .or_else(|| kept.find(|it| is_named(it, output)));
        let kept = kept.map_or_else(String::new, |kept| format!(", but not to {}", shown(kept)));
        let network = match plan.sandbox.network {
            Network::Open => "",
            Network::Off | Network::Loopback => " and have no network",
            Network::Proxied { .. } => " and reach only some hosts",
        };
        let way_out = if self.settings.allow_unsandboxed_commands {
            " If that is why and the task needs it, set dangerouslyDisableSandbox."
        } else {
            ""
        };
        Some(format!(
            "The sandbox may be the reason: commands write only to {}{kept}{network}.{way_out}",
            places.join(", ")
        ))
    }
}

/// Whether a program said the last names of a path.
fn is_named(path: &Path, said: &str) -> bool {
    let mut names = path.iter().rev().filter_map(|name| name.to_str());
    let (Some(name), Some(above)) = (names.next(), names.next()) else { return false };
    said.contains(&format!("{above}/{name}"))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
