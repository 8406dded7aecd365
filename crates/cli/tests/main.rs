//! The whole program: the real binary, real files, real processes, a loopback server for the model.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "program/agent_contract.rs"]
mod agent_contract;
#[path = "program/agent_ends.rs"]
mod agent_ends;
#[path = "program/agent_extras.rs"]
mod agent_extras;
#[path = "program/agent_storms.rs"]
mod agent_storms;
#[path = "program/agents.rs"]
mod agents;
#[path = "program/apart_failures.rs"]
mod apart_failures;
#[path = "program/around.rs"]
mod around;
#[path = "program/at_terminal.rs"]
mod at_terminal;
#[path = "program/bounds.rs"]
mod bounds;
#[path = "program/cache.rs"]
mod cache;
#[path = "program/clients.rs"]
mod clients;
#[path = "program/compaction.rs"]
mod compaction;
#[path = "program/components.rs"]
mod components;
#[path = "program/config_root.rs"]
mod config_root;
#[path = "program/conformance.rs"]
mod conformance;
#[path = "program/crash.rs"]
mod crash;
#[path = "program/decided.rs"]
mod decided;
#[path = "program/declared.rs"]
mod declared;
#[path = "program/delegation.rs"]
mod delegation;
#[path = "program/demo.rs"]
mod demo;
#[path = "program/early_blocks.rs"]
mod early_blocks;
#[path = "program/entering.rs"]
mod entering;
#[path = "program/faults.rs"]
mod faults;
#[path = "program/flags.rs"]
mod flags;
#[path = "program/forks.rs"]
mod forks;
#[path = "program/hook_events.rs"]
mod hook_events;
#[path = "program/hooks.rs"]
mod hooks;
#[path = "program/host.rs"]
mod host;
#[path = "program/host_again.rs"]
mod host_again;
#[path = "program/host_beginnings.rs"]
mod host_beginnings;
#[path = "program/host_denials.rs"]
mod host_denials;
#[path = "program/host_flags.rs"]
mod host_flags;
#[path = "program/host_messages.rs"]
mod host_messages;
#[path = "program/host_news.rs"]
mod host_news;
#[path = "program/host_notices.rs"]
mod host_notices;
#[path = "program/host_requests.rs"]
mod host_requests;
#[path = "program/host_restrictions.rs"]
mod host_restrictions;
#[path = "program/hostile.rs"]
mod hostile;
#[path = "program/hostile_skills.rs"]
mod hostile_skills;
#[path = "program/inspector.rs"]
mod inspector;
#[path = "program/interactive.rs"]
mod interactive;
#[path = "program/isolation.rs"]
mod isolation;
#[path = "program/killed_apart.rs"]
mod killed_apart;
#[path = "program/killed_at_steps.rs"]
mod killed_at_steps;
#[path = "program/killed_in_conversations.rs"]
mod killed_in_conversations;
#[path = "program/laid_down.rs"]
mod laid_down;
#[path = "program/mcp.rs"]
mod mcp;
#[path = "program/member_deaths.rs"]
mod member_deaths;
#[path = "program/member_mail.rs"]
mod member_mail;
#[path = "program/members.rs"]
mod members;
#[path = "program/members_places.rs"]
mod members_places;
#[path = "program/members_rules.rs"]
mod members_rules;
#[path = "program/memory.rs"]
mod memory;
#[path = "program/merging.rs"]
mod merging;
#[path = "program/network.rs"]
mod network;
#[path = "program/not_understood.rs"]
mod not_understood;
#[path = "program/others_text.rs"]
mod others_text;
#[path = "program/output.rs"]
mod output;
#[path = "program/over_clear.rs"]
mod over_clear;
#[path = "program/panes.rs"]
mod panes;
#[path = "program/peers.rs"]
mod peers;
#[path = "program/plugins.rs"]
mod plugins;
#[path = "program/processes.rs"]
mod processes;
#[path = "program/program.rs"]
mod program;
#[path = "program/prompt_tool.rs"]
mod prompt_tool;
#[path = "program/protocol_fuzz.rs"]
mod protocol_fuzz;
#[path = "program/pseudo_terminal.rs"]
mod pseudo_terminal;
#[path = "program/python_host.rs"]
mod python_host;
#[path = "program/reach.rs"]
mod reach;
#[path = "program/read_rules.rs"]
mod read_rules;
#[path = "program/readers.rs"]
mod readers;
#[path = "program/real_servers.rs"]
mod real_servers;
#[path = "program/recorder.rs"]
mod recorder;
#[path = "program/records.rs"]
mod records;
#[path = "program/retention.rs"]
mod retention;
#[path = "program/rewind.rs"]
mod rewind;
#[path = "program/sandboxes.rs"]
mod sandboxes;
#[path = "program/secrets.rs"]
mod secrets;
#[path = "program/serve.rs"]
mod serve;
#[path = "program/serve_tasks.rs"]
mod serve_tasks;
#[path = "program/servers.rs"]
mod servers;
#[path = "program/sessions.rs"]
mod sessions;
#[path = "program/settings.rs"]
mod settings;
#[path = "program/sharing.rs"]
mod sharing;
#[path = "program/skill_runs.rs"]
mod skill_runs;
#[path = "program/skills.rs"]
mod skills;
#[path = "program/stage.rs"]
mod stage;
#[path = "program/tasks.rs"]
mod tasks;
#[path = "program/team_views.rs"]
mod team_views;
#[path = "program/terminal.rs"]
mod terminal;
#[path = "program/troubleshooting.rs"]
mod troubleshooting;
#[path = "program/trust.rs"]
mod trust;
#[path = "program/typed_commands.rs"]
mod typed_commands;
#[path = "program/users_files.rs"]
mod users_files;
#[path = "program/waiting.rs"]
mod waiting;
#[path = "program/web_search.rs"]
mod web_search;
#[path = "program/whose_events.rs"]
mod whose_events;
#[path = "program/window.rs"]
mod window;
#[path = "program/worktrees.rs"]
mod worktrees;
