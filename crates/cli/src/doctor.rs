//! `centurion doctor`: what was found on this machine and in the settings, and what is not in force.

use std::process::ExitCode;

use clap::Parser;

use crate::configuration::{Configuration, SettingsArgs};
use crate::output::Output;
use crate::surroundings::Surroundings;
use crate::trust;

/// Shows settings, their problems, and what this machine can do.
#[derive(Debug, Parser)]
#[command(name = "centurion doctor")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::observe()?;
    let configuration = Configuration::load(&surroundings, &args.settings)?;
    let settings = &configuration.settings;
    let mut text = format!(
        "centurion {}\n\nSettings files, the strongest first:\n",
        env!("CARGO_PKG_VERSION")
    );
    let files: Vec<String> =
        settings.files().map(|(level, path)| format!("  {level}: {}\n", path.display())).collect();
    text += &or_none(&files);
    let problems: Vec<String> =
        settings.problems().map(|problem| format!("  {problem}\n")).collect();
    text += &format!("\nProblems in them:\n{}", or_none(&problems));
    let idle: Vec<String> = settings
        .keys()
        .iter()
        .filter(|key| !key.in_force())
        .map(|key| format!("  {} ({}:{}) {}\n", key.key, key.file.display(), key.line, key.why()))
        .collect();
    text += &format!("\nNot in force:\n{}", or_none(&idle));
    let state = configuration.trust_state();
    let folder = configuration.folder.path().display();
    text += &format!("\nThis folder:\n  {folder}: {}\n", trust::describe(&state));
    Output::default().write(text.as_bytes());
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn or_none(lines: &[String]) -> String {
    if lines.is_empty() { "  (none)\n".to_owned() } else { lines.concat() }
}
