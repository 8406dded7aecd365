//! The tools of one agent: what is advertised is exactly what can be called (invariant I-2).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use centurion_permissions::canonical_tool_name;
use centurion_protocol::{ToolSpec, ToolSpecs};
use centurion_tools::DynTool;
use indexmap::IndexMap;
use parking_lot::Mutex;
use thiserror::Error;

use crate::definition::resolve::{LeftOut, ToolView};
use crate::policy::permissions::Permissions;

/// The tool by which an agent puts its plan to a person, or to the lead of its team.
const PLAN_TOOL: &str = "ExitPlanMode";

/// The tool that needs a provider which searches.
pub(crate) const SEARCH_TOOL: &str = "WebSearch";

/// Tools that need a person who answers.
const NEED_A_PERSON: [&str; 3] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"];

/// The choice of built-in tools for a run.
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

/// The reason why an agent cannot call a tool.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ToolUnavailable {
    #[error("{name} is not loaded: call ToolSearch with the query \"select:{name}\" first.")]
    Deferred { name: String },
    #[error("{name} is not available: {source}.")]
    Withheld { name: String, source: ToolWithheld },
    #[error("No such tool available: {name}. The tools are: {known}.")]
    Unknown { name: String, known: String },
}

/// The reason why an agent does not have a tool that the program has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ToolWithheld {
    #[error("this run was started without it")]
    NotChosen,
    #[error("no user can answer; decide yourself and say what you assumed")]
    NeedsPerson,
    #[error(
        "the provider of this model does not search the web; WebFetch reads pages whose addresses you know"
    )]
    NoSearch,
    #[error("a deny rule takes it away")]
    Denied,
    #[error(transparent)]
    LeftOut(#[from] LeftOut),
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
    /// The tools of the program and of the run itself.
    own: IndexMap<String, Arc<dyn DynTool>>,
    /// The tools of servers. They come after the others: a server that comes or goes moves none of them.
    served: ServerTools,
    /// The view that selects the agent's tools.
    view: ToolView,
    /// The reason why a tool that exists is not here.
    withheld: HashMap<String, ToolWithheld>,
    specs: ToolSpecs,
    /// The definitions that a fork was started with: they are sent as they were, whatever the tools would say now.
    fixed: Option<ToolSpecs>,
    /// Rendered definitions, shared by agents with the same tools.
    cache: Option<Arc<SpecCache>>,
    /// The hash of the agent listing, which tells tools of the same names apart.
    listing_hash: u64,
}

/// The conditions for offering a tool, beside the agent's own view.
pub(crate) struct Offer<'a> {
    pub(crate) choice: &'a ToolChoice,
    pub(crate) permissions: &'a Permissions,
    pub(crate) has_answerer: bool,
    /// True if the provider of the models searches the web.
    pub(crate) searches_web: bool,
    /// True if the lead of the agent's team answers its plan in a person's place.
    pub(crate) plans_for_lead: bool,
}

impl Offer<'_> {
    /// Refuses a tool that is not on offer.
    fn check(&self, name: &str) -> Result<(), ToolWithheld> {
        if !self.choice.contains(name) {
            Err(ToolWithheld::NotChosen)
        } else if !self.has_answerer
            && NEED_A_PERSON.contains(&name)
            && !(self.plans_for_lead && name == PLAN_TOOL)
        {
            Err(ToolWithheld::NeedsPerson)
        } else if name == SEARCH_TOOL && !self.searches_web {
            Err(ToolWithheld::NoSearch)
        } else if !self.permissions.is_offered(name) {
            Err(ToolWithheld::Denied)
        } else {
            Ok(())
        }
    }

    /// The names of the tools that an agent could have.
    pub(crate) fn names<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<String> {
        names.filter(|name| self.check(name).is_ok()).map(str::to_owned).collect()
    }
}

/// Definitions of tools that were rendered before: a thousand agents with the same tools share one text.
#[derive(Default)]
pub(crate) struct SpecCache(Mutex<HashMap<(String, u64), ToolSpecs>>);

impl SpecCache {
    /// More than any session has in use at once; beyond it the cache begins anew.
    const MOST: usize = 64;

    fn get(&self, key: (String, u64), make: impl FnOnce() -> ToolSpecs) -> ToolSpecs {
        let mut known = self.0.lock();
        if known.len() >= Self::MOST && !known.contains_key(&key) {
            known.clear();
        }
        known.entry(key).or_insert_with(make).clone()
    }
}

/// The tools of servers at one moment.
#[derive(Default)]
pub(crate) struct ServerTools {
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
        view: ToolView,
        offer: &Offer<'_>,
        cache: Option<Arc<SpecCache>>,
        listing_hash: u64,
    ) -> Result<Self, ToolboxError> {
        offer.choice.check(&all)?;
        let mut own = IndexMap::with_capacity(all.len());
        let mut withheld = HashMap::new();
        for tool in all {
            let name = tool.name().to_owned();
            match offer.check(&name).and_then(|()| Ok(view.admits(&name)?)) {
                Err(reason) => {
                    withheld.insert(name, reason);
                }
                Ok(()) => {
                    own.insert(name, tool);
                }
            }
        }
        let specs = ToolSpecs::new(Vec::new());
        let served = ServerTools::default();
        let mut toolbox =
            Self { own, served, view, withheld, specs, fixed: None, cache, listing_hash };
        toolbox.render();
        Ok(toolbox)
    }

    /// A toolbox for calls that no model makes: nothing of it is sent.
    pub(crate) fn holding(tools: &[Arc<dyn DynTool>]) -> Self {
        let own = tools.iter().map(|tool| (tool.name().to_owned(), Arc::clone(tool))).collect();
        Self {
            own,
            served: ServerTools::default(),
            view: ToolView::Exact(Arc::default()),
            withheld: HashMap::new(),
            specs: ToolSpecs::new(Vec::new()),
            fixed: None,
            cache: None,
            listing_hash: 0,
        }
    }

    /// A toolbox for one call of a server's tool that no model makes.
    pub(crate) fn of_server(tool: Arc<dyn DynTool>, needs_a_person: bool) -> Self {
        let mut toolbox = Self::holding(&[]);
        let name = tool.name().to_owned();
        toolbox.served.personal.extend(needs_a_person.then(|| name.clone()));
        toolbox.served.offered.insert(name, tool);
        toolbox
    }

    /// The sizes in bytes of the definitions that are sent: the program's tools, and those of servers.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let size = |tool: &Arc<dyn DynTool>| {
            let spec = tool.spec();
            spec.name.len() + spec.description.len() + spec.input_schema.get().len()
        };
        let served = self.served.offered.values().map(size).sum();
        (self.specs.wire().len().saturating_sub(served), served)
    }

    /// Has these definitions sent as they are. Tools that are loaded later come behind them.
    pub(crate) fn fix(&mut self, specs: ToolSpecs) {
        self.fixed = Some(specs);
        self.render();
    }

    /// Adds a tool that the run itself brings.
    pub(crate) fn with(mut self, tool: Arc<dyn DynTool>) -> Self {
        self.own.insert(tool.name().to_owned(), tool);
        self.cache = None;
        self.render();
        self
    }

    /// Puts a tool in the place of the one with its name, if the agent has it.
    pub(crate) fn replace(&mut self, tool: Arc<dyn DynTool>, listing_hash: u64) {
        if self.listing_hash == listing_hash {
            return;
        }
        if let Some(own) = self.own.get_mut(tool.name()) {
            *own = tool;
            self.listing_hash = listing_hash;
            self.render();
        }
    }

    /// Adds a tool that came while the agent is there, at its place among the others, if the agent may have it. A fork
    /// keeps to the definitions that it was started with.
    pub(crate) fn admit(&mut self, tool: Arc<dyn DynTool>, offer: &Offer<'_>) {
        let name = tool.name();
        if self.fixed.is_some() || self.own.contains_key(name) || self.withheld.contains_key(name) {
            return;
        }
        if let Err(reason) = offer.check(name).and_then(|()| Ok(self.view.admits(name)?)) {
            self.withheld.insert(name.to_owned(), reason);
            return;
        }
        let place = self.own.keys().position(|other| other.as_str() > name);
        let place = place.unwrap_or(self.own.len());
        self.own.shift_insert(place, name.to_owned(), tool);
        self.render();
    }

    /// Tells whether the agent may not have a tool that there is.
    pub(crate) fn withholds(&self, name: &str) -> bool {
        self.withheld.contains_key(name)
    }

    /// Updates the tools of servers, as far as the agent has them.
    pub(crate) fn serve(&mut self, mut served: ServerTools) {
        served.offered.retain(|name, _| self.view.admits(name).is_ok());
        served.deferred.retain(|name| self.view.admits(name).is_ok());
        if served.offered.is_empty() && self.served.offered.is_empty() {
            self.served = served;
            return;
        }
        self.served = served;
        // The description of a server's tool may change while its name stays.
        self.cache = None;
        self.render();
    }

    /// The view that selects the tools.
    pub(crate) fn view(&self) -> &ToolView {
        &self.view
    }

    pub(crate) fn served(&self) -> &ServerTools {
        &self.served
    }

    fn render(&mut self) {
        if let Some(fixed) = &self.fixed {
            let is_new = |tool: &&Arc<dyn DynTool>| !fixed.iter().any(|it| it.name == tool.name());
            let new: Vec<ToolSpec> = self.tools().filter(is_new).map(|tool| tool.spec()).collect();
            self.specs = if new.is_empty() {
                fixed.clone()
            } else {
                ToolSpecs::new(fixed.iter().cloned().chain(new).collect())
            };
            return;
        }
        let make = || ToolSpecs::new(self.tools().map(|tool| tool.spec()).collect());
        let specs = match &self.cache {
            Some(cache) => {
                let names: Vec<&str> = self.names().collect();
                cache.get((names.join(" "), self.listing_hash), make)
            }
            None => make(),
        };
        self.specs = specs;
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Arc<dyn DynTool>, ToolUnavailable> {
        let own = self.own.get(name).or_else(|| self.own.get(canonical_tool_name(name)));
        own.or_else(|| self.served.offered.get(name)).ok_or_else(|| {
            if self.served.deferred.contains(name) {
                return ToolUnavailable::Deferred { name: name.to_owned() };
            }
            if let Some(source) = self.withheld.get(name).cloned() {
                return ToolUnavailable::Withheld { name: name.to_owned(), source };
            }
            let names: Vec<&str> = self.names().collect();
            ToolUnavailable::Unknown { name: name.to_owned(), known: names.join(", ") }
        })
    }

    /// Tells whether a person decides about every call of a tool, whatever rules and modes say.
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
