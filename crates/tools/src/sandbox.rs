//! Decides which commands of an agent are confined, and tells the model.

mod denied;
mod isolated;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use denied::{DeniedFiles, DeniedSearch};
pub use isolated::{IsolatedPlaces, WorktreePaths};

use centurion_permissions::simple_command;
use centurion_sandbox::{Gap, Method, Network, Plan, Sandbox, Support, Unavailable};
use thiserror::Error;

/// A person's settings about confinement.
#[derive(Clone, Debug, Default)]
pub struct SandboxSettings {
    /// Nothing runs when the sandbox is not available, or only in part.
    pub fail_if_unavailable: bool,
    /// The model may ask for a command to run outside.
    pub allow_unsandboxed_commands: bool,
    /// Commands that run outside: their first words, as in `docker` or `docker compose`.
    pub excluded_commands: Vec<String>,
}

/// The confinement of one agent's commands on this machine.
#[derive(Clone, Debug)]
pub struct SandboxPolicy {
    /// The user's sandbox, if the user wants one; for an isolated agent narrowed to its places.
    plan: Option<Result<Plan, Unavailable>>,
    settings: SandboxSettings,
    isolation: Option<Isolation>,
}

/// The restriction of every command of an isolated agent, also outside of the user's sandbox.
#[derive(Clone, Debug)]
struct Isolation {
    plan: Result<Plan, Unavailable>,
    guarantee: Guarantee,
    root: PathBuf,
    checkout: PathBuf,
    /// Whether a link leads to a kept path.
    has_links: bool,
    /// Whether the model has been told of the missing guarantees.
    is_told: Arc<AtomicBool>,
}

/// The treatment of an isolated agent's commands where the machine cannot keep them out of the parent's checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// They run, and the model receives a note.
    Wanted,
    /// They do not run.
    Required,
}

/// The reason that a command cannot run, for the model.
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
    #[error(
        "commands of an isolated agent may run only where {} can be kept from them, and here it cannot: {fault}. \
         Tell the user; do not try again", .checkout.display()
    )]
    Isolation { checkout: PathBuf, fault: String },
}

/// The decision about one command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfinementDecision {
    pub(crate) by: ConfinedBy,
    /// Notes for the model.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConfinedBy {
    /// The user's sandbox.
    Sandbox(Box<Plan>),
    /// Only the restriction that keeps the command of an isolated agent out of its parent's checkout.
    Isolation(Box<Plan>),
    Nothing,
}

/// The confinement that a command would run in, for a person who decides about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandConfinement {
    Sandbox {
        writes: Vec<PathBuf>,
        network: Network,
    },
    Nothing,
    /// It would not run, because it may run only in a sandbox that cannot be had.
    Refused,
}

impl ConfinedBy {
    pub(crate) fn plan(&self) -> Option<&Plan> {
        match self {
            Self::Sandbox(plan) | Self::Isolation(plan) => Some(plan),
            Self::Nothing => None,
        }
    }
}

impl SandboxPolicy {
    pub fn new(sandbox: Sandbox, support: &Support, settings: SandboxSettings) -> Self {
        Self { plan: Some(Plan::new(sandbox, support)), settings, isolation: None }
    }

    /// The policy of an agent in a worktree of its own: no command runs without the restriction that protects the kept
    /// places. `user` is the policy of the other agents.
    pub fn isolated(
        user: Option<&Self>,
        places: &IsolatedPlaces,
        guarantee: Guarantee,
        support: &Support,
    ) -> Self {
        let narrowed = |plan: &Result<Plan, Unavailable>| {
            let plan = plan.as_ref().map_err(Clone::clone)?;
            Plan::new(places.narrow(plan.sandbox.clone()), support)
        };
        Self {
            plan: user.and_then(|user| user.plan.as_ref()).map(narrowed),
            settings: user.map(|user| user.settings.clone()).unwrap_or_default(),
            isolation: Some(Isolation {
                plan: Plan::new(places.open_sandbox(), support),
                guarantee,
                root: places.root.clone(),
                checkout: places.checkout.clone(),
                has_links: places.is_kept_behind_links(),
                is_told: Arc::default(),
            }),
        }
    }

    /// The user's sandbox, or else the isolation of the agent.
    fn main_plan(&self) -> Option<&Result<Plan, Unavailable>> {
        self.plan.as_ref().or(self.isolation.as_ref().map(|isolation| &isolation.plan))
    }

    /// The method of confinement.
    pub fn method(&self) -> Option<&Method> {
        self.main_plan()?.as_ref().ok().map(|plan| &plan.method)
    }

    /// The guarantees of the sandbox that this machine cannot give.
    pub fn gaps(&self) -> &[Gap] {
        self.main_plan().and_then(|plan| plan.as_ref().ok()).map_or(&[], |plan| &plan.gaps)
    }

    /// The reason that there is no sandbox at all, if there is none.
    pub fn unavailable(&self) -> Option<&Unavailable> {
        self.main_plan()?.as_ref().err()
    }

    /// The reason that an isolated agent's commands can reach its parent's checkout, if they can.
    pub fn isolation_fault(&self) -> Option<String> {
        self.isolation.as_ref()?.fault()
    }

    /// Whether the user wants a sandbox, in which rules about files hold.
    pub(crate) fn is_users(&self) -> bool {
        self.plan.is_some()
    }

    /// Whether the model may ask for a command to run outside.
    pub fn allows_unsandboxed(&self) -> bool {
        self.settings.allow_unsandboxed_commands
    }

    /// Whether a command will be confined, and held to every rule about files. The permission decision asks this.
    /// Isolation alone spares no command a question.
    pub fn confines(&self, command: &str, disabled: bool, denied: &DeniedFiles) -> bool {
        const OF_FILES: [Gap; 2] = [Gap::DeniedReads, Gap::DeniedWrites];
        match self.judge(command, disabled, denied) {
            Ok(ConfinementDecision { by: ConfinedBy::Sandbox(plan), .. }) => {
                let is_open = |gap: &Gap| OF_FILES.contains(gap) && !denied.is_empty();
                denied.is_complete && !plan.gaps.iter().any(is_open)
            }
            _ => false,
        }
    }

    /// The confinement that a command would run in.
    pub fn confinement(&self, command: &str, disabled: bool) -> CommandConfinement {
        match self.judge(command, disabled, &DeniedFiles::default()) {
            Err(_) => CommandConfinement::Refused,
            Ok(confined) => confined.by.plan().map_or(CommandConfinement::Nothing, |plan| {
                let Sandbox { write, network, .. } = &plan.sandbox;
                CommandConfinement::Sandbox { writes: write.clone(), network: network.clone() }
            }),
        }
    }

    /// Decides about a command, with the notes that the model has not had yet.
    pub(crate) fn decide(
        &self,
        command: &str,
        disabled: bool,
        denied: &DeniedFiles,
    ) -> Result<ConfinementDecision, SandboxRefusal> {
        let mut confined = self.judge(command, disabled, denied)?;
        if let Some(isolation) = &self.isolation {
            confined.notes.extend(isolation.tell());
        }
        Ok(confined)
    }

    fn judge(
        &self,
        command: &str,
        disabled: bool,
        denied: &DeniedFiles,
    ) -> Result<ConfinementDecision, SandboxRefusal> {
        if let Some(isolation) = &self.isolation {
            isolation.check()?;
        }
        let Some(plan) = &self.plan else { return Ok(self.outside(Vec::new())) };
        if disabled && !self.settings.allow_unsandboxed_commands {
            return Err(SandboxRefusal::Disabled);
        }
        if disabled || self.is_excluded(command) {
            return Ok(self.outside(Vec::new()));
        }
        let plan = plan.as_ref().map(|plan| plan.denying(&denied.read, &denied.write));
        match plan {
            Ok(plan) if plan.gaps.is_empty() || !self.settings.fail_if_unavailable => {
                Ok(ConfinementDecision {
                    by: ConfinedBy::Sandbox(Box::new(plan)),
                    notes: Vec::new(),
                })
            }
            Ok(plan) => Err(SandboxRefusal::Incomplete { gaps: joined(&plan.gaps) }),
            Err(reason) if self.settings.fail_if_unavailable => {
                Err(SandboxRefusal::Unavailable(reason.clone()))
            }
            Err(reason) => Ok(self.outside(vec![format!(
                "This ran without a sandbox, which cannot be had: {reason}."
            )])),
        }
    }

    /// A command outside of the user's sandbox.
    fn outside(&self, notes: Vec<String>) -> ConfinementDecision {
        let isolation = self.isolation.as_ref().and_then(|isolation| isolation.plan.as_ref().ok());
        let by = match isolation {
            Some(plan) => ConfinedBy::Isolation(Box::new(plan.clone())),
            None => ConfinedBy::Nothing,
        };
        ConfinementDecision { by, notes }
    }

    /// Whether a command is excluded from the sandbox. Only a single command can be: of several, one could use the
    /// freedom of another.
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

    /// Hints for a command whose failure looks like the work of the sandbox.
    pub(crate) fn hints(&self, confined: &ConfinedBy, output: &str) -> Vec<String> {
        let isolation = self.isolation.as_ref().filter(|_| *confined != ConfinedBy::Nothing);
        let isolation = isolation.and_then(|isolation| isolation.hint(output));
        let sandbox = match confined {
            ConfinedBy::Sandbox(plan) => self.sandbox_hint(plan, output),
            ConfinedBy::Isolation(_) | ConfinedBy::Nothing => None,
        };
        isolation.into_iter().chain(sandbox).collect()
    }

    fn sandbox_hint(&self, plan: &Plan, output: &str) -> Option<String> {
        /// Phrases in the output of programs that a sandbox restricts.
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

impl Isolation {
    /// Whether a command could change a kept path through a gap. Where no link leads there, no command can replace one.
    fn concerns(&self, gap: Gap) -> bool {
        match gap {
            Gap::Attributes | Gap::Truncation | Gap::DeniedWrites => true,
            Gap::Links => self.has_links,
            Gap::Signals | Gap::DeniedReads => false,
        }
    }

    /// The missing guarantees.
    fn fault(&self) -> Option<String> {
        match &self.plan {
            Ok(plan) => {
                let gaps = plan.gaps.iter().copied();
                let gaps: Vec<Gap> = gaps.filter(|gap| self.concerns(*gap)).collect();
                (!gaps.is_empty()).then(|| joined(&gaps))
            }
            Err(reason) => Some(reason.to_string()),
        }
    }

    fn check(&self) -> Result<(), SandboxRefusal> {
        match (self.guarantee, self.fault()) {
            (Guarantee::Required, Some(fault)) => {
                Err(SandboxRefusal::Isolation { checkout: self.checkout.clone(), fault })
            }
            _ => Ok(()),
        }
    }

    /// The note that the model receives once.
    fn tell(&self) -> Option<String> {
        let fault = self.fault()?;
        let is_new = !self.is_told.swap(true, Ordering::Relaxed);
        is_new.then(|| {
            format!(
                "This machine cannot keep {} from your commands: {fault}. Change nothing there.",
                self.checkout.display()
            )
        })
    }

    fn hint(&self, output: &str) -> Option<String> {
        const SIGNS: [&str; 4] = [
            "device or resource busy",
            "read-only file system",
            "permission denied",
            "invalid cross-device link",
        ];
        let said = output.to_lowercase();
        SIGNS.iter().any(|sign| said.contains(sign)).then(|| {
            format!(
                "Isolation may be the reason: you work in {}, and {}, its git data, and git's configuration \
                 and hooks stay as they are.",
                self.root.display(),
                self.checkout.display()
            )
        })
    }
}

fn joined(gaps: &[Gap]) -> String {
    let gaps: Vec<_> = gaps.iter().map(Gap::to_string).collect();
    gaps.join("; ")
}

/// Whether the output of a program names the last parts of a path.
fn is_named(path: &Path, said: &str) -> bool {
    let mut names = path.iter().rev().filter_map(|name| name.to_str());
    let (Some(name), Some(above)) = (names.next(), names.next()) else { return false };
    said.contains(&format!("{above}/{name}"))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
