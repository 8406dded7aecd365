//! The tools of one agent: what is advertised is exactly what can be called (invariant I-2).

use std::collections::HashMap;
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
    tools: IndexMap<String, Arc<dyn DynTool>>,
    /// Why a tool that exists is not here.
    withheld: HashMap<String, &'static str>,
    specs: ToolSpecs,
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
        let mut tools = IndexMap::new();
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
                tools.insert(name, tool);
                continue;
            };
            withheld.insert(name, reason);
        }
        let specs = ToolSpecs::new(tools.values().map(|tool| tool.spec()).collect());
        Ok(Self { tools, withheld, specs })
    }

    /// Adds a tool that the run itself brings.
    pub(crate) fn with(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.tools.insert(tool.name().to_owned(), tool);
        self.specs = ToolSpecs::new(self.tools.values().map(|tool| tool.spec()).collect());
        self
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Arc<dyn DynTool>, String> {
        self.tools.get(name).ok_or_else(|| {
            if let Some(reason) = self.withheld.get(name) {
                return format!("{name} is not available: {reason}.");
            }
            let names: Vec<&str> = self.names().collect();
            format!("No such tool available: {name}. The tools are: {}.", names.join(", "))
        })
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    pub(crate) fn specs(&self) -> &ToolSpecs {
        &self.specs
    }
}
