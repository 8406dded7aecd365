//! `centurion`: flags, headless printers, the SDK control channel, subcommands and exit codes.
//!
//! The only crate that reads the environment, the home directory and the terminal, or exits.

mod absent_model;
mod agents;
mod args;
mod configuration;
mod control;
mod delegation;
mod demo;
mod doctor;
mod explain;
mod extensions;
mod headless;
mod input;
mod key_helper;
mod mcp;
mod models;
mod output;
mod plugin;
mod policy;
mod prompt_tool;
mod remember;
mod retention;
mod sandbox;
mod sessions;
mod setup;
mod signals;
mod stdin;
mod surroundings;
mod trust;

use std::ffi::OsStr;
use std::process::ExitCode;

use clap::Parser;

use crate::args::RunArgs;

/// A thousand agents make and drop a great many small things: this allocator needs a sixth less of a whole run's
/// time for them than the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code for a command line that cannot be understood.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    // Shell commands run below a guard, which is this program again: before anything else is set up.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == centurion_tools::guard::ARGUMENT) {
        return centurion_tools::guard::run(arguments);
    }
    if let Err(error) = rustls::crypto::ring::default_provider().install_default() {
        tracing::debug!(?error, "a TLS provider is installed already");
    }
    match run() {
        Ok(code) => code,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// A word in the first place is a command; everything else is a run.
fn run() -> anyhow::Result<ExitCode> {
    let arguments = || std::env::args_os().skip(1);
    match arguments().next().as_deref().and_then(OsStr::to_str) {
        Some("agents") => block_on(agents::run(agents::AgentsCommandArgs::parse_from(arguments()))),
        Some("demo") => block_on(demo::run(demo::DemoArgs::parse_from(arguments()))),
        Some("doctor") => doctor::run(&doctor::DoctorArgs::parse_from(arguments())),
        Some("mcp") => block_on(mcp::run(mcp::McpCommandArgs::parse_from(arguments()))),
        Some("plugin") => plugin::run(plugin::PluginCommandArgs::parse_from(arguments())),
        Some("permissions") => explain::run(&explain::PermissionsArgs::parse_from(arguments())),
        Some("trust") => trust::run(&trust::TrustArgs::parse_from(arguments())),
        Some("sessions") => sessions::run(&sessions::SessionsArgs::parse_from(arguments())),
        _ => {
            let args = RunArgs::parse();
            if let Err(message) = args.check() {
                output::complain(&anyhow::anyhow!("{message}\nhelp: centurion --help"));
                return Ok(ExitCode::from(USAGE));
            }
            block_on(headless::run(args))
        }
    }
}

/// Runs on one thread: agents wait far more than they compute, and what blocks goes to threads of its own.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(future);
    // A read of standard input that never ends must not keep the program alive.
    runtime.shutdown_background();
    result
}
