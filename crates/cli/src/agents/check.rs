//! `centurion agents check`: all that is wrong with files of agents, with file and line.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::ensure;
use centurion_config::Problem;
use centurion_config::agents::{AgentSource, FailedAgent, Vocabulary, read_place};
use centurion_protocol::SystemWorld;
use clap::Args;

use super::{Agents, SourceArgs};
use crate::output::{Output, printable};

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Files and directories to check; without any, all places where agents are looked for
    paths: Vec<PathBuf>,

    /// Fail for warnings, too
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    sources: SourceArgs,
}

/// What was found.
#[derive(Debug, Default)]
struct Findings {
    /// How many agents can be used.
    good: usize,
    failed: Vec<Problem>,
    warnings: Vec<Problem>,
}

pub(super) fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let agents = Agents::load(&args.sources)?;
    let findings = if args.paths.is_empty() {
        everywhere(&agents)
    } else {
        let mut findings = Findings::default();
        for path in &args.paths {
            let path = agents.surroundings.cwd.join(path);
            ensure!(path.exists(), "there is nothing at {}", path.display());
            findings.add(&path, &agents.sources.vocabulary);
        }
        findings
    };
    Output::default().write_text(&findings.report());
    let has_failed = !findings.failed.is_empty() || args.strict && !findings.warnings.is_empty();
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// All that the loader says about the places that it looks at.
fn everywhere(agents: &Agents) -> Findings {
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

impl Findings {
    /// Checks a file or a directory.
    fn add(&mut self, path: &Path, vocabulary: &Vocabulary) {
        let read = read_place(path, vocabulary, &SystemWorld);
        self.good += read.agents.len();
        self.failed.extend(read.failed.iter().map(finding));
        self.warnings.extend(read.agents.into_iter().flat_map(|agent| agent.problems));
        // In a directory there may be texts about agents; a file that was named is meant to be one.
        if !path.is_dir() {
            self.failed.extend(read.others.into_iter().map(|path| Problem {
                path,
                line: Some(1),
                message: "has no frontmatter and is no agent".to_owned(),
            }));
        }
    }

    /// Everything in the order of the files, and a summary.
    fn report(&self) -> String {
        let mut all: Vec<&Problem> = self.failed.iter().chain(&self.warnings).collect();
        all.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
        let mut lines: Vec<String> =
            all.iter().map(|problem| printable(&problem.to_string())).collect();
        let count = |number: usize, one: &str, many: &str| match number {
            1 => format!("1 {one}"),
            number => format!("{number} {many}"),
        };
        lines.push(format!(
            "{}, {} cannot be used, {}\n",
            count(self.good, "agent is good", "agents are good"),
            self.failed.len(),
            count(self.warnings.len(), "warning", "warnings"),
        ));
        lines.join("\n")
    }
}
