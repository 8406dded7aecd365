//! The listing of agents that a model can start.
//!
//! The same agents give the same bytes: they stand in every request, and providers cache them.

use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use centurion_config::agents::{ActiveAgent, AgentCatalog, AgentDefinition};
use centurion_protocol::markup::contain;
use parking_lot::Mutex;

use crate::agent::delegation::Delegation;
use crate::agent::name_lookup;
use crate::agent::{Agent, ToolScope};
use crate::definition::builtin::{FORK, USUAL};
use crate::definition::rules::{DelegationRules, SessionMode};
use crate::policy::permissions::Permissions;
use crate::toolset::servers::Servers;

/// The advice for all agents.
const ADVICE: &str = "; what you can do in a few calls, do yourself. Start several in one message and they work \
                      at the same time. Only you see an agent's report: check what matters, and tell the \
                      user what they need of it. SendMessage with an agent's id or name resumes it with its \
                      whole conversation: better than a new agent for the same subject.";
/// The line about forks, where they are on.
const FORK_LINE: &str = "- fork: A copy of you that continues this conversation with one task. It knows all that \
                         you know, so its prompt is only the task. For branches of the current work; not for a \
                         specialist's role. (Tools: yours)\n";
/// For an agent that may choose.
const CHOICE: &str = " Wait for an agent whose report you need next; put an agent in the background if you can work \
                      meanwhile.";
const PATIENCE: &str = " You are told when an agent in the background has ended: do something else meanwhile, \
                        do not do its work, and do not wait for it by polling.";

/// The agents on offer, as text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) text: String,
    /// Their types, in the order of the text.
    pub(crate) types: Vec<String>,
}

/// The last listing, and what it was made from.
#[derive(Default)]
pub(crate) struct LastListing(Mutex<Option<(Key, Arc<Listing>)>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    definitions: u64,
    rules: u64,
    servers: u64,
    startable: Option<String>,
}

impl Listing {
    /// A hash of what the tools say about agents.
    pub(crate) fn hash(listing: Option<&Arc<Self>>) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        listing.map(|listing| &listing.text).hash(&mut hasher);
        hasher.finish()
    }

    /// The agents that an agent may start; `None` where it can start none.
    pub(crate) fn of(delegation: &Delegation, scope: &ToolScope<'_>) -> Option<Arc<Self>> {
        if delegation.slots.is_closed() || delegation.rules.limits.depth == 0 {
            return None;
        }
        let known = delegation.definitions.known();
        let key = Key {
            definitions: known.version,
            rules: scope.permissions.version(),
            servers: scope.servers.version(),
            startable: scope.startable.map(str::to_owned),
        };
        let mut last = delegation.listing.0.lock();
        if let Some((_, listing)) = last.as_ref().filter(|(known, _)| *known == key) {
            return Some(Arc::clone(listing));
        }
        let is_offered = |agent: &&ActiveAgent| {
            is_startable(&agent.definition, scope.startable)
                && is_allowed(&agent.definition, &known.agents, scope.permissions)
                && is_met(&agent.definition, scope.servers)
        };
        let agents: Vec<&ActiveAgent> = known.agents.active.iter().filter(is_offered).collect();
        let is_listed = |types: &str| types.split(',').any(|it| it.trim() == FORK);
        let forks = delegation.rules.forks
            && scope.startable.is_none_or(is_listed)
            && !scope.permissions.denies_agent(&[FORK.to_owned()]);
        if agents.is_empty() && !forks {
            return None;
        }
        let listing = Arc::new(Self::render(&agents, &delegation.rules, forks));
        *last = Some((key, Arc::clone(&listing)));
        Some(listing)
    }

    fn render(agents: &[&ActiveAgent], rules: &DelegationRules, forks: bool) -> Self {
        let mut text = String::from("Types of agents:\n");
        if forks {
            text.push_str(FORK_LINE);
        }
        for agent in agents {
            text.push_str(&line(&agent.definition));
            text.push('\n');
        }
        text.push_str("\nTake the type whose line fits the task");
        if forks {
            text.push_str("; without a type the agent is a fork");
        } else if agents.iter().any(|agent| agent.definition.name.value == USUAL) {
            // Writing to a string cannot fail.
            let _ = write!(text, ", and {USUAL} where none does");
        }
        text.push_str(ADVICE);
        if !rules.background_is_off {
            if rules.mode == SessionMode::Normal && !rules.forks {
                text.push_str(CHOICE);
            }
            text.push_str(PATIENCE);
        }
        let types = agents.iter().map(|agent| agent.definition.name.value.clone()).collect();
        Self { text, types }
    }
}

/// One agent on one line.
fn line(definition: &AgentDefinition) -> String {
    let mut text = format!("- {}: ", definition.name.value);
    for (n, word) in definition.description.split_whitespace().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{word}", if n == 0 { "" } else { " " });
    }
    let sees_context = definition.fork_context.as_ref().is_some_and(|it| it.value);
    let properties = if sees_context { "Properties: access to current context; " } else { "" };
    let _ = write!(text, " ({properties}Tools: {})", tools(definition));
    // A repository brings definitions: none of them speaks for the program.
    contain(&text).into_owned()
}

fn tools(definition: &AgentDefinition) -> String {
    let taken = definition.disallowed_tools.as_ref().filter(|taken| !taken.is_empty());
    match (&definition.tools, taken) {
        (Some(listed), taken) if !definition.has_all_tools() => {
            let is_taken = |name: &&String| taken.is_some_and(|taken| taken.contains(name));
            let names: Vec<&str> =
                listed.iter().filter(|name| !is_taken(name)).map(String::as_str).collect();
            names.join(", ")
        }
        (_, Some(taken)) => format!("All tools except {}", taken.join(", ")),
        (_, None) => "All tools".to_owned(),
    }
}

/// Tells whether the list of the agent that starts it names its type.
pub(crate) fn is_startable(definition: &AgentDefinition, startable: Option<&str>) -> bool {
    let clean = centurion_config::agents::folded;
    let is_named = |types: &str| {
        let name = clean(&definition.name);
        types.split(',').any(|it| clean(it.trim()) == name)
    };
    // A fork is no type that a call can ask for.
    definition.name.value != FORK && startable.is_none_or(is_named)
}

pub(crate) fn is_allowed(
    definition: &AgentDefinition,
    catalog: &AgentCatalog,
    permissions: &Permissions,
) -> bool {
    !permissions.denies_agent(&name_lookup::names(catalog, &definition.name))
}

/// Tells whether the servers that it requires are there, or may still come.
fn is_met(definition: &AgentDefinition, servers: &Servers) -> bool {
    definition.required_mcp_servers.as_ref().is_none_or(|required| servers.may_meet(required))
}

/// The types that a caller could start, for an error about one that it cannot.
pub(crate) fn startable_types(delegation: &Delegation, caller: &Agent) -> String {
    Listing::of(delegation, &caller.tool_scope())
        .map(|listing| listing.types.join(", "))
        .unwrap_or_default()
}
