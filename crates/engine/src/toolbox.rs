//! The tools of one agent: what is advertised is exactly what can be called (invariant I-2).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use centurion_protocol::ToolSpecs;
use centurion_tools::DynTool;
use indexmap::IndexMap;
use thiserror::Error;

use crate::permissions::Permissions;

/// Tools that need somebody who answers.
const NEED_A_PERSON: [&str; 3] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

/// Which of the built-in tools a run wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    #[default]
    All,
    Only(Vec<String>),
}

/// A choice of tools that leaves none.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no tool named {}; the tools are {}", .unknown.join(", "), .known.join(", "))]
pub struct ToolboxError {
    unknown: Vec<String>,
    known: Vec<String>,
}

impl ToolChoice {
    fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|chosen| chosen == name),
        }
    }

    /// The names that are no tools. Lists are shared between programs whose tools differ, so that an
    /// unknown name is only a mistake when nothing else is left.
    pub fn unknown(&self, all: &[Arc<dyn DynTool>]) -> Vec<String> {
        let Self::Only(names) = self else { return Vec::new() };
        let is_unknown = |name: &&String| all.iter().all(|tool| tool.name() != *name);
        names.iter().filter(is_unknown).cloned().collect()
    }

    fn check(&self, all: &[Arc<dyn DynTool>]) -> Result<(), ToolboxError> {
        let unknown = self.unknown(all);
        match self {
            Self::Only(names) if !names.is_empty() && unknown.len() == names.len() => {
                let known = all.iter().map(|tool| tool.name().to_owned()).collect();
                Err(ToolboxError { unknown, known })
            }
            _ => Ok(()),
        }
    }
}

pub(crate) struct Toolbox {
    /// What the program and the run itself bring.
    own: IndexMap<String, Arc<dyn DynTool>>,
    /// What servers bring. It comes after the others: a server that comes or goes moves none of them.
    served: Served,
    /// Why a tool that exists is not here.
    withheld: HashMap<String, &'static str>,
    specs: ToolSpecs,
}

/// The tools of servers at one moment.
#[derive(Default)]
pub(crate) struct Served {
    pub(crate) offered: IndexMap<String, Arc<dyn DynTool>>,
    /// Named to the model, but not offered before it asks for them.
    pub(crate) deferred: BTreeSet<String>,
    /// Offered ones that no rule or mode may let run without a person.
    pub(crate) personal: BTreeSet<String>,
}

impl Toolbox {
    /// Picks the tools of an agent, in the order of `all`.
    pub(crate) fn new(
        all: Vec<Arc<dyn DynTool>>,
        choice: &ToolChoice,
        permissions: &Permissions,
        has_answerer: bool,
    ) -> Result<Self, ToolboxError> {
        choice.check(&all)?;
        let mut own = IndexMap::new();
        let mut withheld = HashMap::new();
        for tool in all {
            let name = tool.name().to_owned();
            let reason = if !choice.contains(&name) {
                "this run was started without it"
            } else if !has_answerer && NEED_A_PERSON.contains(&&*name) {
                "nobody is there to answer; decide yourself and say what you assumed"
            } else if !permissions.is_offered(&name) {
                "a deny rule takes it away"
            } else {
                own.insert(name, tool);
                continue;
            };
            withheld.insert(name, reason);
        }
        let specs = ToolSpecs::new(own.values().map(|tool| tool.spec()).collect());
        Ok(Self { own, served: Served::default(), withheld, specs })
    }

    /// Adds a tool that the run itself brings.
    pub(crate) fn with(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.own.insert(tool.name().to_owned(), tool);
        self.render();
        self
    }

    /// Takes up what servers bring now.
    pub(crate) fn serve(&mut self, served: Served) {
        self.served = served;
        self.render();
    }

    pub(crate) fn served(&self) -> &Served {
        &self.served
    }

    fn render(&mut self) {
        self.specs = ToolSpecs::new(self.tools().map(|tool| tool.spec()).collect());
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Arc<dyn DynTool>, String> {
        self.own.get(name).or_else(|| self.served.offered.get(name)).ok_or_else(|| {
            if self.served.deferred.contains(name) {
                return format!(
                    "{name} is not loaded: call ToolSearch with the query \"select:{name}\" first."
                );
            }
            if let Some(reason) = self.withheld.get(name) {
                return format!("{name} is not available: {reason}.");
            }
            let names: Vec<&str> = self.names().collect();
            format!("No such tool available: {name}. The tools are: {}.", names.join(", "))
        })
    }

    /// Whether a person decides about every call of a tool, whatever rules and modes say.
    pub(crate) fn needs_a_person(&self, name: &str) -> bool {
        self.served.personal.contains(name)
    }

    fn tools(&self) -> impl Iterator<Item = &Arc<dyn DynTool>> {
        self.own.values().chain(self.served.offered.values())
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools().map(|tool| tool.name())
    }

    /// The names of all tools, with those that have to be searched for.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &str> {
        self.names().chain(self.served.deferred.iter().map(String::as_str))
    }

    pub(crate) fn specs(&self) -> &ToolSpecs {
        &self.specs
    }
}
