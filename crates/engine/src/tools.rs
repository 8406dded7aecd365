//! The tools that need the engine: they reach agents, tasks, schedules and worktrees.

pub(crate) mod agent_tool;
pub(crate) mod cron_create;
pub(crate) mod cron_delete;
pub(crate) mod cron_list;
pub(crate) mod enter_worktree;
pub(crate) mod exit_worktree;
pub(crate) mod list_agents;
pub(crate) mod send_message;
pub(crate) mod skill_tool;
pub(crate) mod task_create;
pub(crate) mod task_get;
pub(crate) mod task_list;
pub(crate) mod task_update;
pub(crate) mod team_create;
pub(crate) mod team_delete;
pub(crate) mod web_search;
pub(crate) mod worktrees_tool;

use std::sync::Arc;

use centurion_tools::erase;

use crate::agent::builder::EngineTools;
use crate::tools::agent_tool::AgentTool;
use crate::tools::cron_create::CronCreate;
use crate::tools::cron_delete::CronDelete;
use crate::tools::cron_list::CronList;
use crate::tools::enter_worktree::EnterWorktree;
use crate::tools::exit_worktree::ExitWorktree;
use crate::tools::list_agents::ListAgents;
use crate::tools::send_message::SendMessage;
use crate::tools::skill_tool::SkillTool;
use crate::tools::task_create::TaskCreate;
use crate::tools::task_get::TaskGet;
use crate::tools::task_list::TaskListTool;
use crate::tools::task_update::TaskUpdate;
use crate::tools::team_create::TeamCreate;
use crate::tools::team_delete::TeamDelete;
use crate::tools::web_search::WebSearch;
use crate::tools::worktrees_tool::WorktreesTool;

pub(crate) const ENGINE_TOOLS: EngineTools = EngineTools {
    starting: |agent, listing| erase(AgentTool::new(agent, listing)),
    reaching: |agent| {
        vec![erase(ListAgents(Arc::clone(agent))), erase(SendMessage(Arc::clone(agent)))]
    },
    invoking: |agent| erase(SkillTool(Arc::clone(agent))),
    moving: |agent| {
        vec![erase(EnterWorktree(Arc::clone(agent))), erase(ExitWorktree(Arc::clone(agent)))]
    },
    sharing: |agent| {
        vec![
            erase(TaskCreate(Arc::clone(agent))),
            erase(TaskGet(Arc::clone(agent))),
            erase(TaskListTool(Arc::clone(agent))),
            erase(TaskUpdate(Arc::clone(agent))),
        ]
    },
    leading: |agent| {
        vec![erase(TeamCreate(Arc::clone(agent))), erase(TeamDelete(Arc::clone(agent)))]
    },
    merging: |agent| erase(WorktreesTool(Arc::clone(agent))),
    searching: |agent| erase(WebSearch(Arc::clone(agent))),
    scheduling: |agent| {
        vec![
            erase(CronCreate(Arc::clone(agent))),
            erase(CronDelete(Arc::clone(agent))),
            erase(CronList(Arc::clone(agent))),
        ]
    },
};
