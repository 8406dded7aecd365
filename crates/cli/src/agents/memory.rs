//! `centurion agents memory`: what an agent remembers of the user, into the project and out of it.

use std::process::ExitCode;

use anyhow::Context;
use centurion_config::agent_memory::{AgentMemory, Laid, MemoryPlaces};
use centurion_protocol::SystemWorld;
use clap::{Args, Subcommand};

use super::{AgentSourceArgs, KnownAgents};
use crate::output::{Output, note, printable};

#[derive(Debug, Args)]
pub(super) struct MemoryArgs {
    #[command(subcommand)]
    action: MemoryAction,
    #[command(flatten)]
    sources: AgentSourceArgs,
}

#[derive(Debug, Subcommand)]
enum MemoryAction {
    /// Write a snapshot of what the agent remembers into this project
    Export { name: String },
    /// Import this project's snapshot; the files that it replaces are kept beside the new ones
    Import { name: String },
    /// Print where the agent's memory is
    Path { name: String },
}

pub(super) fn run(args: &MemoryArgs) -> anyhow::Result<ExitCode> {
    let (MemoryAction::Export { name }
    | MemoryAction::Import { name }
    | MemoryAction::Path { name }) = &args.action;
    let agents = KnownAgents::load(&args.sources)?;
    let found = agents.catalog.find(name);
    let agent = found.with_context(|| format!("there is no agent named `{name}`"))?;
    let definition = &agent.definition;
    let scope = definition.memory.as_ref();
    let scope = scope.with_context(|| format!("agent `{name}` keeps no memory"))?.value;
    let surroundings = &agents.places.surroundings;
    let settings = &agents.places.settings;
    let env = settings.overlay(&surroundings.env);
    let places = MemoryPlaces::new(
        &surroundings.dirs,
        surroundings.home.as_deref(),
        &surroundings.cwd,
        settings,
        &[&surroundings.env, &env],
    );
    let memory = AgentMemory::locate(scope, &definition.name, &places);
    let memory = memory.context("memories are switched off")?;
    let snapshot = || {
        memory.snapshot().context(
            "snapshots are for `memory: user`, in a trusted folder, with \"subagents\": \
             {\"memorySnapshot\": true} in the settings",
        )
    };
    match &args.action {
        MemoryAction::Export { .. } => tell(&snapshot()?.export(&SystemWorld)?),
        MemoryAction::Import { .. } => tell(&snapshot()?.import()?),
        MemoryAction::Path { .. } => {
            let place = printable(&memory.directory().display().to_string());
            Output::default().write(format!("{place}\n").as_bytes());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the files that were written, and where the replaced ones are kept.
fn tell(laid: &Laid) {
    let written = laid.written.iter().map(|path| format!("wrote {}", path.display()));
    let kept = laid.kept.iter().map(|(path, kept)| {
        format!("what {} said before is in {}", path.display(), kept.display())
    });
    let lines: Vec<String> = written.chain(kept).map(|line| printable(&line) + "\n").collect();
    Output::default().write(lines.concat().as_bytes());
    for problem in &laid.problems {
        note(&format!("warning: {problem}"));
    }
}
