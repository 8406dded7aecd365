//! `centurion agents check`: all that is wrong with files of agents, with file and line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::ensure;
use centurion_config::Problem;
use centurion_config::agents::{AgentSource, FailedAgent, Vocabulary, read_place};
use centurion_protocol::SystemWorld;
use clap::Args;

use super::{AgentSourceArgs, KnownAgents};
use crate::definitions::findings::{CheckedPaths, Findings};

#[derive(Debug, Args)]
pub(super) struct CheckAgentsArgs {
    #[command(flatten)]
    checked: CheckedPaths,

    #[command(flatten)]
    sources: AgentSourceArgs,
}

pub(super) fn run(args: &CheckAgentsArgs) -> anyhow::Result<ExitCode> {
    let agents = KnownAgents::load(&args.sources)?;
    let findings = if args.checked.paths.is_empty() {
        everywhere(&agents)
    } else {
        let mut findings = Findings::default();
        for path in &args.checked.paths {
            let path = agents.places.surroundings.cwd.join(path);
            ensure!(path.exists(), "there is nothing at {}", path.display());
            add(&mut findings, &path, &agents.places.agents.vocabulary);
        }
        findings
    };
    Ok(findings.print("agent", &args.checked))
}

/// All that the loader says about the places that it looks at.
fn everywhere(agents: &KnownAgents) -> Findings {
    let catalog = &agents.catalog;
    Findings {
        good: agents.all().filter(|it| it.origin.source != AgentSource::BuiltIn).count(),
        failed: catalog.failed.iter().map(finding).collect(),
        warnings: catalog.problems.clone(),
    }
}

/// A file that cannot be used, as a line of a report.
pub(super) fn finding(failed: &FailedAgent) -> Problem {
    let FailedAgent { path, line, reason, .. } = failed;
    Problem { path: path.clone(), line: *line, message: reason.clone() }
}

/// Checks a file or a directory.
fn add(findings: &mut Findings, path: &Path, vocabulary: &Vocabulary) {
    let read = read_place(path, vocabulary, &SystemWorld);
    findings.good += read.agents.len();
    findings.failed.extend(read.failed.iter().map(finding));
    findings.warnings.extend(read.agents.into_iter().flat_map(|agent| agent.problems));
    // In a directory there may be texts about agents; a file that was named is meant to be one.
    if !path.is_dir() {
        findings.failed.extend(read.others.into_iter().map(|path| Problem {
            path,
            line: Some(1),
            message: "has no frontmatter and is no agent".to_owned(),
        }));
    }
}
