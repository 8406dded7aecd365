//! The findings of a check of definitions, as lines with file and line number or as data, and the exit code.

use std::process::ExitCode;

use centurion_config::Problem;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

use super::listing::Form;
use crate::output::printable;

/// The paths that are checked, and the strictness.
#[derive(Debug, Args)]
pub(crate) struct CheckedPaths {
    /// Files and directories to check; without any, all places that are looked at
    pub(crate) paths: Vec<PathBuf>,

    /// Fail for warnings, too
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The result of a check.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The number of definitions that can be used.
    pub(crate) good: usize,
    pub(crate) failed: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

impl Findings {
    /// Prints everything. The check fails for what cannot be used, and for warnings where it is strict.
    pub(crate) fn print(&self, noun: &str, checked: &CheckedPaths) -> ExitCode {
        Form::new(checked.json).print(|| self.report(noun), || self.data());
        let has_failed = !self.failed.is_empty() || checked.strict && !self.warnings.is_empty();
        if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Everything as data.
    fn data(&self) -> Value {
        let list = |problems: &[Problem]| -> Vec<Value> {
            in_order(problems.iter().collect()).into_iter().map(problem_data).collect()
        };
        json!({
            "good": self.good,
            "failed": list(&self.failed),
            "warnings": list(&self.warnings),
        })
    }

    /// Everything in the order of the files, and a summary.
    fn report(&self, noun: &str) -> String {
        let all = in_order(self.failed.iter().chain(&self.warnings).collect());
        let mut lines: Vec<String> =
            all.iter().map(|problem| printable(&problem.to_string())).collect();
        let good = match self.good {
            1 => format!("1 {noun} is good"),
            number => format!("{number} {noun}s are good"),
        };
        let warnings = match self.warnings.len() {
            1 => "1 warning".to_owned(),
            number => format!("{number} warnings"),
        };
        lines.push(format!("{good}, {} cannot be used, {warnings}\n", self.failed.len()));
        lines.join("\n")
    }
}

/// Problems by file and line.
fn in_order(mut problems: Vec<&Problem>) -> Vec<&Problem> {
    problems.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    problems
}

/// A problem as data; `line` is null where the file as a whole is meant.
pub(crate) fn problem_data(problem: &Problem) -> Value {
    json!({"path": problem.path, "line": problem.line, "message": problem.message})
}
