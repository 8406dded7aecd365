//! `centurion permissions explain`: what would be decided about a call, and why.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use centurion_permissions::{Access, Call, Decision, Mode, Verdict, decide};
use centurion_tools::{DiskLinks, resolve};
use clap::{Parser, Subcommand};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::args::RunArgs;
use crate::configuration::Configuration;
use crate::output::Output;
use crate::policy;
use crate::surroundings::Surroundings;

/// Shows what the permissions decide.
#[derive(Debug, Parser)]
#[command(name = "centurion permissions")]
pub(crate) struct PermissionsArgs {
    #[command(subcommand)]
    action: PermissionsAction,
}

#[derive(Debug, Subcommand)]
enum PermissionsAction {
    /// Say what would be decided about a call such as `Bash(git push --force)` or `Edit(src/main.rs)`
    Explain {
        call: String,
        #[command(flatten)]
        run: Box<RunArgs>,
    },
}

pub(crate) fn run(args: &PermissionsArgs) -> anyhow::Result<ExitCode> {
    let PermissionsAction::Explain { call, run } = &args.action;
    let surroundings = Surroundings::observe()?;
    let configuration = Configuration::load(&surroundings, &run.settings)?;
    configuration.warn();
    let (mut policy, _) =
        policy::policy(run, &surroundings, &configuration.settings, &run.add_dir)?;
    policy::check_git(&mut policy, &configuration.trust);
    let mode = policy.mode;
    let decide = |asked: &Call<'_>| Some(decide(&policy, asked));
    Output::default().write_text(&explained(call, mode, &surroundings, decide)?);
    Ok(ExitCode::SUCCESS)
}

/// Says what is decided about a call that a person wrote.
pub(crate) fn explained(
    call: &str,
    mode: Mode,
    surroundings: &Surroundings,
    decide: impl FnOnce(&Call<'_>) -> Option<Decision>,
) -> anyhow::Result<String> {
    let ExplainedCall { tool, named, access, input } = parse(call, surroundings)?;
    let asked = Call {
        named: named.as_deref(),
        input: input.as_deref(),
        links: &DiskLinks,
        ..Call::new(tool, &access)
    };
    let decision = decide(&asked).context("the session has ended")?;
    let verdict = match decision.verdict {
        Verdict::Allow => "allowed",
        Verdict::Ask => "asked about",
        Verdict::Deny => "denied",
    };
    let rule = decision.rule.as_ref().map_or_else(String::new, |rule| {
        format!("  rule: {} ({}, {})\n", rule.text, rule.origin.level(), rule.origin)
    });
    Ok(format!(
        "{call}: {verdict}\n  because {}\n  layer: {:?}, mode: {mode}\n{rule}",
        decision.reason, decision.layer
    ))
}

/// A call as a person wrote it.
struct ExplainedCall<'a> {
    tool: &'a str,
    named: Option<PathBuf>,
    access: Access,
    input: Option<Box<RawValue>>,
}

/// Reads `Tool(what)` into what the call would touch.
fn parse<'a>(call: &'a str, surroundings: &Surroundings) -> anyhow::Result<ExplainedCall<'a>> {
    let (tool, what) = call.strip_suffix(')').and_then(|call| call.split_once('(')).context(
        "a call looks like Bash(git status), Edit(src/main.rs), WebFetch(https://example.org) or \
         Agent(Explore)",
    )?;
    let path = || surroundings.cwd.join(what);
    let access = match tool {
        "Bash" | "PowerShell" => Access::Shell(what.to_owned()),
        "Read" | "Glob" | "Grep" | "Cd" => Access::Read(resolve(&path())),
        "Write" | "Edit" | "NotebookEdit" => Access::Write(resolve(&path())),
        "WebFetch" => Access::Network(what.to_owned()),
        // Another session is outside of this one.
        "SendMessage" if what.starts_with("uds:") => Access::External { only_reads: false },
        "Agent" | "Task" | "ListAgents" | "SendMessage" | "TodoWrite" | "AskUserQuestion"
        | "TaskOutput" | "TaskStop" | "TaskCreate" | "TaskGet" | "TaskList" | "TaskUpdate" => {
            Access::Session
        }
        _ => bail!("there is no tool named {tool}"),
    };
    let named = matches!(access, Access::Read(_) | Access::Write(_)).then(path);
    let input = match tool {
        "Agent" | "Task" => Some(to_raw_value(&json!({"subagent_type": what}))?),
        "SendMessage" => Some(to_raw_value(&json!({"to": what}))?),
        _ => None,
    };
    Ok(ExplainedCall { tool, named, access, input })
}
