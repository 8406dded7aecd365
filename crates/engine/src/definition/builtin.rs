//! The agents that are part of the program: which there are, and what switches them off.
//!
//! They are Markdown like all others, read by the same loader, and a file of the user's with the same name takes
//! their place. What they do is in their texts; nothing here runs one.

mod facts;

use centurion_config::agents::{
    AgentDefinition, AgentSource, BuiltInAgent, folded, is_read_only_name,
};
use centurion_protocol::Env;

pub use facts::{PromptFacts, fill, prompt};

/// One of them, with what the program must know besides its text.
struct BuiltinAgent {
    name: &'static str,
    agent: BuiltInAgent,
    kind: Kind,
}

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Usual,
    /// Looks around before work begins, and changes nothing.
    Scout,
    /// Explains this program to a person who sits before it, and changes nothing.
    Guide,
    /// Checks finished work.
    Verifier,
    /// Started by the program; no list offers it.
    Internal,
}

/// An entry whose text lies beside this file.
macro_rules! entry {
    ($name:literal, $file:literal, $kind:ident) => {
        BuiltinAgent {
            name: $name,
            agent: BuiltInAgent {
                path: concat!("built-in/", $file),
                text: include_str!(concat!("builtin/", $file)),
            },
            kind: Kind::$kind,
        }
    };
}

static ENTRIES: [BuiltinAgent; 8] = [
    entry!("general-purpose", "general-purpose.md", Usual),
    entry!("Explore", "explore.md", Scout),
    entry!("Plan", "plan.md", Scout),
    entry!("verification", "verification.md", Verifier),
    entry!("Bash", "bash.md", Usual),
    entry!("statusline-setup", "statusline-setup.md", Usual),
    entry!("centurion-guide", "centurion-guide.md", Guide),
    entry!("fork", "fork.md", Internal),
];

/// Names by which a built-in agent is asked for, too.
const ALIASES: [(&str, &str); 2] =
    [("claude-code-guide", "centurion-guide"), ("worker", "general-purpose")];

/// Agents whose answer is all there is to them: they are not resumed.
const ONE_SHOT: [&str; 4] = ["Explore", "Plan", "centurion-guide", "statusline-setup"];

/// Entry points of hosts, which explain themselves.
const SDK_ENTRYPOINTS: [&str; 3] = ["sdk-ts", "sdk-py", "sdk-cli"];

/// True if a person sits before the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Interactive,
    Headless,
}

/// The parts that are switched off; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Switches {
    /// There are no built-in agents at all.
    pub all_off: bool,
    /// Explore and Plan are not there.
    pub explore_plan_off: bool,
    /// verification is not there.
    pub verification_off: bool,
    /// A host's SDK started the program, and no guide is there.
    pub sdk_entrypoint: bool,
    /// Names of others that are not there, in any spelling.
    pub off: Vec<String>,
}

impl Switches {
    /// Reads the switches of the environment, and the names in the setting `subagents.disabled`.
    pub fn from(env: &Env, off: Vec<String>, presence: Presence) -> Self {
        let is_headless = presence == Presence::Headless;
        Self {
            all_off: is_headless && env.is_on("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS"),
            explore_plan_off: env.is_on("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS"),
            verification_off: env.is_on("CENTURION_DISABLE_VERIFICATION_AGENT"),
            sdk_entrypoint: env
                .get("CLAUDE_CODE_ENTRYPOINT")
                .is_some_and(|entrypoint| SDK_ENTRYPOINTS.contains(&entrypoint)),
            off,
        }
    }

    fn has(&self, entry: &BuiltinAgent) -> bool {
        let is_off = match entry.kind {
            Kind::Usual | Kind::Internal => false,
            Kind::Scout => self.explore_plan_off,
            Kind::Guide => self.sdk_entrypoint,
            Kind::Verifier => self.verification_off,
        };
        let is_named = || {
            self.off.iter().any(|name| {
                let name = alias(name).unwrap_or(name);
                folded(name) == folded(entry.name)
            })
        };
        !self.all_off && !is_off && !is_named()
    }
}

/// The type of forks.
pub(crate) const FORK: &str = "fork";

/// The type of an agent whose call names none.
pub(crate) const USUAL: &str = "general-purpose";

/// The built-in agents that are not switched off.
pub fn agents(switches: &Switches) -> Vec<BuiltInAgent> {
    ENTRIES.iter().filter(|entry| switches.has(entry)).map(|entry| entry.agent).collect()
}

/// The built-in agent that is meant by another name. An agent that has the name itself goes before it.
pub fn alias(name: &str) -> Option<&'static str> {
    let name = folded(name);
    ALIASES.iter().find(|(other, _)| *other == name).map(|(_, agent)| *agent)
}

/// The other names that agents of this name are asked for by, as far as no agent has one of them itself.
pub fn other_names(name: &str) -> impl Iterator<Item = &'static str> {
    let name = folded(name);
    ALIASES.into_iter().filter(move |(_, agent)| folded(agent) == name).map(|(other, _)| other)
}

/// Tells whether the built-in agent of this name answers once and is not resumed.
pub fn is_one_shot(name: &str) -> bool {
    ONE_SHOT.contains(&name)
}

/// Tells whether an agent changes nothing by what the program makes of it, not only by what its prompt says. A
/// file of the user's that takes the place of such an agent is the user's own; one that a repository puts there has
/// to be accepted.
pub fn only_reads(definition: &AgentDefinition) -> bool {
    is_scout(&definition.origin.source.to_string(), &definition.name)
        || (is_read_only_name(&definition.name) && definition.withheld.is_some())
}

/// Tells whether an agent of this source and name is a built-in one that changes nothing.
pub(crate) fn is_scout(source: &str, name: &str) -> bool {
    source == AgentSource::BuiltIn.to_string() && is_read_only_name(name)
}

/// Tells whether no person or model can choose the agent: it is in no list.
pub fn is_hidden(definition: &AgentDefinition) -> bool {
    let is_internal = |entry: &BuiltinAgent| {
        entry.kind == Kind::Internal && entry.name == definition.name.value.as_str()
    };
    definition.origin.source == AgentSource::BuiltIn && ENTRIES.iter().any(is_internal)
}

#[cfg(test)]
mod tests;
