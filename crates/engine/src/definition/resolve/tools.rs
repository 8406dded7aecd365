//! The tools of an agent: a pipeline in which a tool that is left out is left out for one reason.
//!
//! The steps: tools that no agent below the main one gets, tools that no background agent gets, tools that the definition
//! takes away, tools that it lists, in this order; tools of its memory come back at the end.

use std::sync::Arc;

use centurion_config::agents::AgentDefinition;
use centurion_permissions::{Rule, RuleError, RuleOrigin, RuleSet, ToolSelector};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Tools that only the main agent has: they speak to a person, wake it later, or look after what it started.
const MAIN_ONLY: [&str; 6] =
    ["AskUserQuestion", "CronCreate", "CronDelete", "CronList", "EnterPlanMode", "TaskOutput"];

/// The built-in tools that an agent in the background may have. Tools of servers it may have all.
const IN_BACKGROUND: [&str; 26] = [
    "Agent",
    "Bash",
    "Edit",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "ListMcpResourcesTool",
    "NotebookEdit",
    "PowerShell",
    "Read",
    "ReadMcpResourceTool",
    "SendMessage",
    "Skill",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Worktrees",
    "Write",
];

/// The tools of a main agent that only directs others.
const ORCHESTRATION: [&str; 5] = ["Agent", "ListAgents", "SendMessage", "TaskOutput", "TaskStop"];

/// The tools with which an agent keeps its memory.
pub(crate) const MEMORY_TOOLS: [&str; 3] = ["Edit", "Read", "Write"];

/// The tools with which a team member works with the others.
pub(crate) const TEAM_TOOLS: [&str; 5] =
    ["SendMessage", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

/// The kind of agent that has the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reach {
    Main,
    /// A main agent that has others do all the work.
    Coordinator,
    #[serde(rename_all = "camelCase")]
    Child {
        in_background: bool,
        /// True if it may start agents of its own: they would not be too deep.
        may_delegate: bool,
        is_planning: bool,
    },
}

/// The tools of one agent, whatever tools there are at a moment: servers come and go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolView {
    /// The tools that pass the pipeline.
    #[serde(rename_all = "camelCase")]
    Chosen {
        reach: Reach,
        /// `None` is all.
        listed: Option<Vec<ToolSelector>>,
        taken: Vec<ToolSelector>,
        /// Given for the agent's memory or its team, though it would not have them otherwise.
        given: Vec<String>,
    },
    /// Exactly these.
    Exact(Arc<[String]>),
    /// The tools of the agent that it was forked from, whose record names them.
    Inherited,
}

/// The reason why an agent does not have a tool.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LeftOut {
    #[error("only the main agent has it")]
    MainOnly,
    #[error("agents in the background do not have it")]
    NotInBackground,
    #[error("agents of this depth start no others")]
    TooDeep,
    #[error("it is for agents that plan")]
    NotPlanning,
    #[error("a coordinator has others do the work: start an agent")]
    NotForCoordinators,
    /// By this entry of `disallowedTools`.
    #[error("`disallowedTools` has `{0}`")]
    Taken(String),
    #[error("`tools` does not list it")]
    NotListed,
}

impl ToolView {
    /// Tells whether an agent may set up prompts for later: the main agent, and its forks.
    pub(crate) fn admits_scheduling(&self, is_main: bool) -> bool {
        is_main || matches!(self, Self::Exact(_) | Self::Inherited)
    }

    /// The tools of an agent that inherits none: a record that says otherwise gives it nothing.
    pub(crate) fn own(&self) -> Self {
        match self {
            Self::Inherited => Self::Exact(Arc::default()),
            own => own.clone(),
        }
    }

    /// The view that a definition asks for.
    pub(crate) fn new(definition: &AgentDefinition, reach: Reach) -> Self {
        let listed = definition.tools.as_ref().filter(|_| !definition.has_all_tools());
        let taken = definition.disallowed_tools.as_ref();
        Self::Chosen {
            reach,
            listed: listed.map(|tools| selectors(tools)),
            taken: taken.map(|tools| selectors(tools)).unwrap_or_default(),
            given: Vec::new(),
        }
    }

    /// All tools that an agent of this reach may have.
    pub(crate) fn all(reach: Reach) -> Self {
        Self::Chosen { reach, listed: None, taken: Vec::new(), given: Vec::new() }
    }

    /// Tells whether the agent has a tool of this name.
    pub fn admits(&self, tool: &str) -> Result<(), LeftOut> {
        let (reach, listed, taken, given) = match self {
            Self::Exact(names) if names.iter().any(|name| name == tool) => return Ok(()),
            Self::Exact(_) => return Err(LeftOut::NotListed),
            // The forking agent has the tool that starts agents, and so has the fork; the others are in its toolbox or not.
            Self::Inherited => return Ok(()),
            Self::Chosen { reach, listed, taken, given } => (reach, listed, taken, given),
        };
        if given.iter().any(|name| name == tool) {
            return Ok(());
        }
        reach.admits(tool)?;
        if let Some(entry) = taken.iter().find(|entry| entry.selects(tool)) {
            return Err(LeftOut::Taken(entry.to_string()));
        }
        match listed {
            Some(listed) if !listed.iter().any(|entry| entry.selects(tool)) => {
                Err(LeftOut::NotListed)
            }
            _ => Ok(()),
        }
    }

    /// Gives the agent tools; returns those that it would not have had.
    pub(crate) fn give(&mut self, tools: &[&str]) -> Vec<String> {
        let is_missing = |tool: &&&str| self.admits(tool).is_err();
        let missing: Vec<String> =
            tools.iter().filter(is_missing).map(|it| (*it).to_owned()).collect();
        if let Self::Chosen { given, .. } = self {
            given.extend(missing.iter().cloned());
        }
        missing
    }

    /// The entries that name no tool of the pool, and those whose tools the agent cannot have.
    pub(crate) fn unresolved(&self, pool: &[String]) -> Vec<String> {
        let Self::Chosen { listed: Some(listed), .. } = self else { return Vec::new() };
        let is_met = |entry: &ToolSelector| {
            pool.iter().any(|tool| entry.selects(tool) && self.admits(tool).is_ok())
        };
        let unmet = listed.iter().filter(|entry| !is_met(entry));
        unmet
            .map(|entry| match pool.iter().find(|tool| entry.selects(tool)) {
                Some(tool) => match self.admits(tool) {
                    Err(why) => format!("{entry} ({why})"),
                    Ok(()) => entry.to_string(),
                },
                None => format!("{entry} (there is no such tool)"),
            })
            .collect()
    }

    /// The types of agents that the list lets it start: `Agent(a, b)`; `None` is all.
    pub(crate) fn startable(&self) -> Option<&str> {
        let Self::Chosen { listed: Some(listed), .. } = self else { return None };
        let entries = || listed.iter().filter(|entry| entry.name() == Some("Agent"));
        if entries().any(|entry| entry.specifier().is_none()) {
            return None;
        }
        entries().find_map(ToolSelector::specifier)
    }

    /// The rules of entries with a part in parentheses. The types that may be started are not
    /// among them: those are no rule about a call's permission.
    pub(crate) fn confinement(&self, origin: &RuleOrigin) -> Result<RuleSet, RuleError> {
        let mut rules = RuleSet::default();
        let Self::Chosen { listed: Some(listed), .. } = self else { return Ok(rules) };
        let limits = |entry: &&ToolSelector| entry.specifier().is_some();
        for entry in listed.iter().filter(limits).filter(|entry| entry.name() != Some("Agent")) {
            let is_lifted = |other: &ToolSelector| {
                other.specifier().is_none() && entry.name().is_some_and(|name| other.selects(name))
            };
            if !listed.iter().any(is_lifted) {
                rules.extend([Rule::parse(entry.as_str(), origin.clone())?]);
            }
        }
        if rules.iter().next().is_some() {
            // A tool that is listed without a limit has none, also where a command does the same.
            let plain = listed.iter().filter(|entry| entry.specifier().is_none());
            let names = plain.filter_map(ToolSelector::name);
            rules.extend(names.filter_map(|name| Rule::parse(name, origin.clone()).ok()));
        }
        Ok(rules)
    }
}

fn selectors(names: &[String]) -> Vec<ToolSelector> {
    names.iter().cloned().map(ToolSelector::from).collect()
}

impl Reach {
    fn admits(self, tool: &str) -> Result<(), LeftOut> {
        match self {
            Self::Coordinator if !ORCHESTRATION.contains(&tool) => Err(LeftOut::NotForCoordinators),
            Self::Child { .. } if MAIN_ONLY.contains(&tool) => Err(LeftOut::MainOnly),
            Self::Child { may_delegate: false, .. } if tool == "Agent" => Err(LeftOut::TooDeep),
            Self::Child { is_planning: false, .. } if tool == "ExitPlanMode" => {
                Err(LeftOut::NotPlanning)
            }
            Self::Child { in_background: true, .. }
                if !tool.starts_with("mcp__") && !IN_BACKGROUND.contains(&tool) =>
            {
                Err(LeftOut::NotInBackground)
            }
            Self::Main | Self::Coordinator | Self::Child { .. } => Ok(()),
        }
    }
}
