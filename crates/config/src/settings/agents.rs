//! The agents that settings define, file by file.
//!
//! The definition of an agent is not known here.

use serde_json::Value;

use super::Settings;
use super::level::Origin;
use super::merge::Off;

/// One agent of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredAgent {
    pub name: String,
    pub value: Value,
    pub origin: Origin,
    /// The reason why it does not count, if so. One that a stronger file overrides is there, too.
    pub off: Option<Off>,
}

impl Settings {
    /// The entries of each file under `agents`, the strongest first.
    pub fn agents(&self) -> Vec<DeclaredAgent> {
        let judged = self.merged.values.iter().filter(|judged| judged.entry.key.path == "agents");
        let agents = judged.filter_map(|judged| {
            Some(DeclaredAgent {
                name: judged.entry.name.clone()?,
                value: judged.entry.value.clone(),
                origin: judged.origin.clone(),
                off: judged.off.clone(),
            })
        });
        agents.collect()
    }
}
