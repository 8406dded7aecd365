//! `centurion doctor`: what was found on this machine and in the settings, and what is not in force.

use std::process::ExitCode;

use centurion_config::skills::{ListingBudget, SkillListing, SkillLoader};
use centurion_protocol::SystemWorld;
use centurion_sandbox::Support;
use centurion_tools::guard::{CommandLimits, can_bound_whole_commands};
use clap::Parser;

use crate::agents::{self, sources::FlagSources};
use crate::configuration::{Configuration, SettingsArgs};
use crate::delegation;
use crate::extensions;
use crate::mcp::{self, McpArgs};
use crate::output::Output;
use crate::setup;
use crate::skills;
use crate::surroundings::Surroundings;
use crate::trust;

/// Shows settings, their problems, and what this machine can do.
#[derive(Debug, Parser)]
#[command(name = "centurion doctor")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    mcp: McpArgs,
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let surroundings = Surroundings::observe()?;
    let configuration = Configuration::load(&surroundings, &args.settings)?;
    let settings = &configuration.settings;
    let files: Vec<String> =
        settings.files().map(|(level, path)| format!("{level}: {}", path.display())).collect();
    let problems: Vec<String> = settings.problems().map(ToString::to_string).collect();
    let idle: Vec<String> = settings
        .keys()
        .iter()
        .filter(|key| !key.in_force())
        .map(|key| format!("{} ({}:{}) {}", key.key, key.file.display(), key.line, key.why()))
        .collect();
    let folder = configuration.folder.path().display();
    let trust = format!("{folder}: {}", trust::describe(&configuration.trust_state()));
    let unaccepted = trust::differences(&configuration.trust, &surroundings)?;
    let (servers, server_problems) =
        mcp::summary(&mcp::configuration(&surroundings, &configuration, &args.mcp)?);
    let hooks = extensions::hook_summary(settings);
    let skills = cut_skills(&surroundings, &configuration)?;
    let support = Support::detect().to_string();
    let bounds = bounds(setup::command_limits(settings));
    let output = Output::default();
    output.write(format!("centurion {}\n", env!("CARGO_PKG_VERSION")).as_bytes());
    for (title, lines) in [
        ("Settings files, the strongest first", &files),
        ("Problems in them", &problems),
        ("Not in force", &idle),
        ("MCP servers", &servers),
        ("Problems with them", &server_problems),
        ("Hooks", &hooks.hooks),
        ("Hooks that are kept off", &hooks.off),
        ("Problems with hooks", &hooks.problems),
        ("Skills that models are not told all of", &skills),
        ("This folder", &vec![trust]),
        ("Not accepted in it", &unaccepted),
        ("Sandbox on this machine", &support.lines().map(str::to_owned).collect()),
        ("Bounds on commands", &bounds),
    ] {
        output.write_text(&section(title, lines));
    }
    Ok(if problems.is_empty() && server_problems.is_empty() && hooks.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The window that the list of skills is measured by here. What a model's own is, a session knows.
const WINDOW: u64 = 200_000;

/// Skills that the list for models names alone or leaves out, for want of room.
fn cut_skills(
    surroundings: &Surroundings,
    configuration: &Configuration,
) -> anyhow::Result<Vec<String>> {
    let settings = &configuration.settings;
    let plugins = delegation::plugins(surroundings, settings, &[], &SystemWorld)?;
    let brought = FlagSources::default();
    let agents = agents::sources::sources(surroundings, configuration, brought)?;
    let sources = skills::sources::sources(&agents, settings, &plugins);
    let catalog = SkillLoader::new().load(&sources, &SystemWorld);
    let said = settings.skills();
    let budget = ListingBudget::new(WINDOW, said.listing_fraction, said.most_description);
    let listing = SkillListing::new(&catalog, &[], budget);
    let told = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
    };
    let unlisted = catalog.unlisted.iter();
    let unlisted =
        unlisted.map(|(path, count)| format!("{}: {count} more are not looked at", path.display()));
    let cut = [told("by name alone", &listing.shortened), told("not at all", &listing.left_out)];
    Ok(cut.into_iter().flatten().chain(unlisted).collect())
}

/// The limits of commands, and the means that hold them.
fn bounds(limits: CommandLimits) -> Vec<String> {
    const MEGABYTE: u64 = 1 << 20;
    let megabytes = |bytes: u64| format!("{} MB", bytes / MEGABYTE);
    let (of_memory, of_processes) = if can_bound_whole_commands() {
        ("of a whole command, by a control group", "of a whole command, by a control group")
    } else {
        ("of each process: no control group can be made here", "of the user, all programs together")
    };
    let memory = limits.memory.map(|bytes| format!("memory: {} {of_memory}", megabytes(bytes)));
    let processes = limits.processes.map(|count| format!("processes: {count} {of_processes}"));
    let file = limits.file.map(|bytes| format!("file: {}", megabytes(bytes)));
    [memory, processes, file].into_iter().flatten().collect()
}

fn section(title: &str, lines: &[String]) -> String {
    let none = ["(none)".to_owned()];
    let lines = if lines.is_empty() { &none } else { lines };
    format!("\n{title}:\n  {}\n", lines.join("\n  "))
}
