//! What the settings say about agents that other agents start, and the defaults. What a value means while
//! agents run is the engine's business.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::keys::{DEPTH, RUNNING};
use super::level::Sourced;
use super::merge::Merged;

/// The `subagents` of all levels together. Switches and numbers come from the strongest level, the
/// models type by type, and the list from all.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct SubagentSettings {
    /// Models by the type of agent, as they were written.
    pub models: BTreeMap<String, Sourced<String>>,
    /// What a started agent takes its permission mode from.
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
    /// What kind of session the main agent leads.
    pub mode: Option<Sourced<SessionMode>>,
    /// After how long an agent that is waited for goes on in the background; zero is never.
    pub auto_background: Option<Duration>,
    /// After how long without a sign of life an agent counts as stalled; zero is never.
    pub stall: Option<Duration>,
    pub limits: SubagentLimits,
}

/// The limits of agents. Zero means that none may; `None` means that no setting says anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubagentLimits {
    /// How many agents may stand above each other below the main one.
    pub depth: Option<Sourced<u32>>,
    /// How many may compute at once.
    pub running: Option<Sourced<u32>>,
    /// How many may be started in a session.
    pub spawns: Option<Sourced<u64>>,
    pub spawns_per_minute: Option<Sourced<u64>>,
    /// What one agent may spend with everything below it.
    pub budget_usd: Option<Sourced<f64>>,
    /// The same in tokens.
    pub tokens: Option<Sourced<u64>>,
    /// How many requests one agent may send.
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

/// What kind of session the main agent leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionMode {
    Normal,
    Coordinator,
    Assistant,
    Proactive,
}

impl SubagentLimits {
    /// How deep agents may start others by default.
    pub const DEPTH: u32 = DEPTH;
    /// How many agents may compute at once by default.
    pub const RUNNING: u32 = RUNNING;

    fn new(merged: &Merged) -> Self {
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
    merged: &Merged,
    name: &str,
    read: impl Fn(&Value) -> Option<N>,
) -> Option<Sourced<N>> {
    let judged = merged.first(&format!("subagents.limits.{name}"))?;
    Some(Sourced { value: read(&judged.entry.value)?, origin: judged.origin.clone() })
}

impl SubagentSettings {
    pub(super) fn new(merged: &Merged) -> Self {
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

/// One of the words that the table of keys lets through.
fn choice<T>(merged: &Merged, path: &str, read: impl Fn(&str) -> Option<T>) -> Option<Sourced<T>> {
    let Sourced { value, origin } = merged.text(path)?;
    Some(Sourced { value: read(&value)?, origin })
}

fn models(merged: &Merged) -> BTreeMap<String, Sourced<String>> {
    let named = merged.all("subagents.models").filter_map(|judged| {
        let (name, model) = (judged.entry.name.as_deref()?, judged.entry.value.as_str()?);
        let model = Sourced { value: model.trim().to_owned(), origin: judged.origin.clone() };
        Some((name.trim().to_owned(), model))
    });
    named.filter(|(name, model)| !name.is_empty() && !model.value.is_empty()).collect()
}
