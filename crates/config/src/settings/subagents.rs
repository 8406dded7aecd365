//! Settings about agents that other agents start, and the defaults. The engine decides on the effect of a value while
//! agents run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::keys::{DEPTH, RUNNING};
use super::level::Sourced;
use super::merge::MergedValues;

/// The `subagents` of all levels together. Switches and numbers come from the strongest level, the
/// models type by type, and the list from all.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct SubagentSettings {
    /// Models by the type of agent, as they were written.
    pub models: BTreeMap<String, Sourced<String>>,
    /// The source of a started agent's permission mode.
    pub permission_mode: Option<Sourced<ChildMode>>,
    /// Whether agents run in the background unless the call says otherwise.
    pub background: bool,
    /// When an agent may start another with its own conversation.
    pub fork: Option<Sourced<ForkGate>>,
    /// Whether agents with a name join a team.
    pub teams: bool,
    /// Whether stopping a turn stops the agents in the background, too.
    pub esc_stops_background: bool,
    /// Built-in agents that are switched off, by name.
    pub disabled: Vec<Sourced<String>>,
    /// Whether what agents remember may be carried between projects in snapshots.
    pub memory_snapshot: bool,
    /// Whether a small model says now and then what agents in the background are doing.
    pub summaries: bool,
    /// The kind of session that the main agent leads.
    pub mode: Option<Sourced<SessionMode>>,
    /// After how long an agent that is waited for continues in the background; zero is never.
    pub auto_background: Option<Duration>,
    /// After how long without a sign of life an agent counts as stalled; zero is never.
    pub stall: Option<Duration>,
    pub limits: SubagentLimits,
}

/// The limits of agents. Zero means that none may; `None` means that no setting says anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubagentLimits {
    /// The most agents that may stand above each other below the main one.
    pub depth: Option<Sourced<u32>>,
    /// The most that may compute at once.
    pub running: Option<Sourced<u32>>,
    /// The most that may be started in a session.
    pub spawns: Option<Sourced<u64>>,
    pub spawns_per_minute: Option<Sourced<u64>>,
    /// The most that one agent may spend with everything below it.
    pub budget_usd: Option<Sourced<f64>>,
    /// The same in tokens.
    pub tokens: Option<Sourced<u64>>,
    /// The most requests that one agent may send.
    pub turns: Option<Sourced<u32>>,
}

/// The permission mode of an agent whose definition names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildMode {
    /// That of the agent that starts it.
    Inherit,
    /// It edits files without a question.
    AcceptEdits,
}

/// When an agent may start another with its own conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkGate {
    Off,
    /// In sessions that a person sits at.
    Interactive,
    Always,
}

/// The kind of session that the main agent leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionMode {
    Normal,
    Coordinator,
    Assistant,
    Proactive,
}

impl SubagentLimits {
    /// The depth to which agents may start others by default.
    pub const DEPTH: u32 = DEPTH;
    /// The most agents that may compute at once by default.
    pub const RUNNING: u32 = RUNNING;

    fn new(merged: &MergedValues) -> Self {
        let whole = |name: &str| number(merged, name, Value::as_u64);
        let small = |name: &str| number(merged, name, |it| u32::try_from(it.as_u64()?).ok());
        Self {
            depth: small("depth"),
            running: small("running"),
            spawns: whole("spawns"),
            spawns_per_minute: whole("spawnsPerMinute"),
            budget_usd: number(merged, "budgetUsd", Value::as_f64),
            tokens: whole("tokens"),
            turns: small("turns"),
        }
    }
}

fn number<N>(
    merged: &MergedValues,
    name: &str,
    read: impl Fn(&Value) -> Option<N>,
) -> Option<Sourced<N>> {
    let judged = merged.first(&format!("subagents.limits.{name}"))?;
    Some(Sourced { value: read(&judged.entry.value)?, origin: judged.origin.clone() })
}

impl SubagentSettings {
    pub(super) fn new(merged: &MergedValues) -> Self {
        let path = |name: &str| format!("subagents.{name}");
        let switch = |name: &str| merged.bool(&path(name)).unwrap_or(false);
        let seconds = |name: &str| {
            let value = &merged.first(&path(name))?.entry.value;
            value.as_u64().map(Duration::from_secs)
        };
        Self {
            models: models(merged),
            permission_mode: choice(merged, &path("permissionMode"), |word| match word {
                "inherit" => Some(ChildMode::Inherit),
                "acceptEdits" => Some(ChildMode::AcceptEdits),
                _ => None,
            }),
            background: switch("background"),
            fork: choice(merged, &path("fork"), |word| match word {
                "off" => Some(ForkGate::Off),
                "interactive" => Some(ForkGate::Interactive),
                "always" => Some(ForkGate::Always),
                _ => None,
            }),
            teams: switch("teams"),
            esc_stops_background: switch("escStopsBackground"),
            disabled: merged.texts(&path("disabled")),
            memory_snapshot: switch("memorySnapshot"),
            summaries: switch("summaries"),
            mode: choice(merged, &path("mode"), |word| match word {
                "normal" => Some(SessionMode::Normal),
                "coordinator" => Some(SessionMode::Coordinator),
                "assistant" => Some(SessionMode::Assistant),
                "proactive" => Some(SessionMode::Proactive),
                _ => None,
            }),
            auto_background: seconds("autoBackgroundSeconds"),
            stall: seconds("stallSeconds"),
            limits: SubagentLimits::new(merged),
        }
    }
}

/// The processes in which members of a team run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TeammateMode {
    /// In the process of their lead.
    InProcess,
    /// Each in a process of its own.
    Process,
    /// Each in a pane of tmux.
    Tmux,
    /// In panes where the lead is in one, and else in its process.
    Auto,
}

impl TeammateMode {
    /// The mode of a word.
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "in-process" => Self::InProcess,
            "process" => Self::Process,
            "tmux" => Self::Tmux,
            "auto" => Self::Auto,
            _ => return None,
        })
    }
}

/// The treatment of messages of the user's other sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerPolicy {
    /// The agent reads them.
    Accept,
    /// The user decides about each.
    Hold,
    /// There is no socket for them.
    #[default]
    Refuse,
}

impl PeerPolicy {
    /// The policy of a word.
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "accept" => Self::Accept,
            "hold" => Self::Hold,
            "refuse" => Self::Refuse,
            _ => return None,
        })
    }
}

/// One of the words that the table of keys lets through.
fn choice<T>(
    merged: &MergedValues,
    path: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Option<Sourced<T>> {
    let Sourced { value, origin } = merged.text(path)?;
    Some(Sourced { value: read(&value)?, origin })
}

fn models(merged: &MergedValues) -> BTreeMap<String, Sourced<String>> {
    let named = merged.all("subagents.models").filter_map(|judged| {
        let (name, model) = (judged.entry.name.as_deref()?, judged.entry.value.as_str()?);
        let model = Sourced { value: model.trim().to_owned(), origin: judged.origin.clone() };
        Some((name.trim().to_owned(), model))
    });
    named.filter(|(name, model)| !name.is_empty() && !model.value.is_empty()).collect()
}
