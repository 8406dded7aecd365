//! The tools of one agent: what is advertised is exactly what can be called (invariant I-2).

use std::collections::HashMap;
use std::sync::Arc;

use centurion_permissions::Policy;
use centurion_protocol::ToolSpecs;
use centurion_tools::DynTool;
use indexmap::IndexMap;

/// Tools that need somebody who answers.
const NEED_A_PERSON: [&str; 3] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

/// Which of the built-in tools a run wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    #[default]
    All,
    Only(Vec<String>),
}

pub(crate) struct Toolbox {
    tools: IndexMap<String, Arc<dyn DynTool>>,
    /// Why a tool that exists is not here.
    withheld: HashMap<String, String>,
    specs: ToolSpecs,
}

impl Toolbox {
    /// Picks the tools of an agent, in the order of `all`.
    pub(crate) fn new(
        all: Vec<Arc<dyn DynTool>>,
        choice: &ToolChoice,
        policy: &Policy,
        has_answerer: bool,
    ) -> Self {
        let mut tools = IndexMap::new();
        let mut withheld = HashMap::new();
        for tool in all {
            let name = tool.name().to_owned();
            let reason = if matches!(choice, ToolChoice::Only(names) if !names.contains(&name)) {
                Some("this run was started without it".to_owned())
            } else if !has_answerer && NEED_A_PERSON.contains(&&*name) {
                Some(
                    "nobody is there to answer; decide yourself and say what you assumed"
                        .to_owned(),
                )
            } else if !policy.is_offered(&name) {
                Some("a deny rule takes it away".to_owned())
            } else {
                None
            };
            match reason {
                Some(reason) => drop(withheld.insert(name, reason)),
                None => drop(tools.insert(name, tool)),
            }
        }
        let specs = ToolSpecs::new(tools.values().map(|tool| tool.spec()).collect());
        Self { tools, withheld, specs }
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
