//! Stories: an agent against a scripted model, in process, with real tools in a scratch directory.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "story/agent_calls.rs"]
mod agent_calls;
#[path = "story/agent_crowds.rs"]
mod agent_crowds;
#[path = "story/agent_ends.rs"]
mod agent_ends;
#[path = "story/agent_forks.rs"]
mod agent_forks;
#[path = "story/agent_freedom.rs"]
mod agent_freedom;
#[path = "story/agent_hooks.rs"]
mod agent_hooks;
#[path = "story/agent_mail.rs"]
mod agent_mail;
#[path = "story/agent_mischief.rs"]
mod agent_mischief;
#[path = "story/agent_names.rs"]
mod agent_names;
#[path = "story/agent_parameters.rs"]
mod agent_parameters;
#[path = "story/agent_results.rs"]
mod agent_results;
#[path = "story/agent_servers.rs"]
mod agent_servers;
#[path = "story/agent_stage.rs"]
mod agent_stage;
#[path = "story/agent_storms.rs"]
mod agent_storms;
#[path = "story/agent_waits.rs"]
mod agent_waits;
#[path = "story/auto_memory.rs"]
mod auto_memory;
#[path = "story/bench.rs"]
mod bench;
#[path = "story/compaction.rs"]
mod compaction;
#[path = "story/compaction_bounds.rs"]
mod compaction_bounds;
#[path = "story/compaction_histories.rs"]
mod compaction_histories;
#[path = "story/compaction_records.rs"]
mod compaction_records;
#[path = "story/compaction_state.rs"]
mod compaction_state;
#[path = "story/compaction_work.rs"]
mod compaction_work;
#[path = "story/contract.rs"]
mod contract;
#[path = "story/deferred.rs"]
mod deferred;
#[path = "story/delegation.rs"]
mod delegation;
#[path = "story/explain.rs"]
mod explain;
#[path = "story/faults.rs"]
mod faults;
#[path = "story/foreign_members.rs"]
mod foreign_members;
#[path = "story/fork_histories.rs"]
mod fork_histories;
#[path = "story/hook_fields.rs"]
mod hook_fields;
#[path = "story/hook_handlers.rs"]
mod hook_handlers;
#[path = "story/hook_outputs.rs"]
mod hook_outputs;
#[path = "story/hook_stage.rs"]
mod hook_stage;
#[path = "story/hooks.rs"]
mod hooks;
#[path = "story/limits.rs"]
mod limits;
#[path = "story/listing.rs"]
mod listing;
#[path = "story/main_agent.rs"]
mod main_agent;
#[path = "story/main_faults.rs"]
mod main_faults;
#[path = "story/new_conversations.rs"]
mod new_conversations;
#[path = "story/outcomes.rs"]
mod outcomes;
#[path = "story/over_clear.rs"]
mod over_clear;
#[path = "story/permissions.rs"]
mod permissions;
#[path = "story/person_commands.rs"]
mod person_commands;
#[path = "story/prefix_changes.rs"]
mod prefix_changes;
#[path = "story/refusals.rs"]
mod refusals;
#[path = "story/resume.rs"]
mod resume;
#[path = "story/rewind.rs"]
mod rewind;
#[path = "story/rewind_histories.rs"]
mod rewind_histories;
#[path = "story/scenarios.rs"]
mod scenarios;
#[path = "story/schedules.rs"]
mod schedules;
#[path = "story/side_questions.rs"]
mod side_questions;
#[path = "story/skill_changes.rs"]
mod skill_changes;
#[path = "story/skill_forks.rs"]
mod skill_forks;
#[path = "story/skill_keys.rs"]
mod skill_keys;
#[path = "story/skill_rules.rs"]
mod skill_rules;
#[path = "story/skill_texts.rs"]
mod skill_texts;
#[path = "story/skills.rs"]
mod skills;
#[path = "story/summaries.rs"]
mod summaries;
#[path = "story/team_attacks.rs"]
mod team_attacks;
#[path = "story/team_definitions.rs"]
mod team_definitions;
#[path = "story/teams.rs"]
mod teams;
#[path = "story/tools.rs"]
mod tools;
#[path = "story/typed_commands.rs"]
mod typed_commands;
