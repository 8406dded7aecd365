//! `centurion`: flags, headless printers, standard input of hosts, subcommands and exit codes.
//!
//! The only crate that reads the environment, the home directory and the terminal, or exits.

mod absent_model;
mod agents;
mod args;
mod auth;
mod commands;
mod configuration;
mod definitions;
mod delegation;
mod demo;
mod doctor;
mod explain;
mod extensions;
mod headless;
mod init;
mod initialize_request;
mod input;
mod interactive;
mod key_helper;
mod live_settings;
mod log;
mod mcp;
mod output;
mod own_commands;
mod plugin;
mod plugin_reload;
mod policy;
mod prompt_tool;
mod protected_files;
mod refused_resume;
mod remember;
mod retention;
mod sandbox;
mod sessions;
mod setup;
mod signals;
mod skills;
mod slow_servers;
mod stdin;
mod surroundings;
mod tasks;
mod teammates;
mod trust;
mod used_files;
mod users_files;
mod worktrees;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
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
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments.next().is_some_and(|first| first == centurion_tools::guard::ARGUMENT) {
        // The keeper of the terminal outlives us in the same way.
        if arguments.peek().is_some_and(|role| role == centurion_tui::KEEPER_ARGUMENT) {
            return centurion_tui::run_keeper(|| {
                centurion_sandbox::forget_used_pages();
            });
        }
        return centurion_tools::guard::run(arguments);
    }
    // A file that may not grow is a failed write, which is told, and not a sudden end.
    centurion_sandbox::survive_file_size_limit();
    if let Err(error) = rustls::crypto::ring::default_provider().install_default() {
        tracing::debug!(?error, "a TLS provider is installed already");
    }
    match run() {
        Ok(ExitCode::SUCCESS) if output::has_failed() => ExitCode::FAILURE,
        Ok(code) => code,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}

/// A word in the first place is a command; everything else is a run.
fn run() -> anyhow::Result<ExitCode> {
    if centurion_sandbox::was_stdout_closed() {
        anyhow::bail!(
            "standard output is closed: what the program says would be lost\n\
             help: redirect standard output to a file, or to /dev/null"
        );
    }
    match std::env::args_os().nth(1).as_deref().and_then(OsStr::to_str) {
        Some("auth") => command(|args| auth::run(&args)),
        Some("agents") => command(|args| block_on(agents::run(args))),
        Some("commands") => command(|args| commands::run(&args)),
        Some("demo") => command(|args| block_on(demo::run(args))),
        Some("doctor") => command(|args| doctor::run(&args)),
        Some("init") => command(|args| init::run(&args)),
        Some("mcp") => command(|args| block_on(mcp::run(args))),
        Some("plugin") => command(plugin::run),
        Some("permissions") => command(|args| explain::run(&args)),
        Some("trust") => command(|args| trust::run(&args)),
        Some("skills") => command(skills::run),
        Some("sessions") => command(|args| sessions::run(&args)),
        Some("tasks") => command(|args| tasks::run(&args)),
        Some(teammates::PANE_ARGUMENT) => {
            block_on(teammates::become_member(std::env::args_os().skip(2)))
        }
        Some("worktrees") => command(|args| block_on(worktrees::run(args))),
        _ => parsed(std::env::args_os(), |args: RunArgs| {
            if let Err(conflict) = args.check() {
                output::complain(&anyhow::anyhow!("{conflict}\nhelp: centurion --help"));
                return Ok(ExitCode::from(USAGE));
            }
            if args.member.is_member() {
                return block_on(teammates::run_member(args));
            }
            if interactive::is_wanted(&args) {
                return block_on_keys(headless::run(args));
            }
            block_on(headless::run(args))
        }),
    }
}

fn command<A: Parser>(run: impl FnOnce(A) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    parsed(std::env::args_os().skip(1), run)
}

/// Runs with what was typed, or prints the help that was asked for, or what is wrong.
fn parsed<A: Parser>(
    words: impl Iterator<Item = OsString>,
    run: impl FnOnce(A) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let told = match A::try_parse_from(words) {
        Ok(args) => return run(args),
        Err(told) => told,
    };
    if let Err(error) = told.print().and_then(|()| io::stdout().flush()) {
        output::fail(&error);
    }
    Ok(u8::try_from(told.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The steps of agents after which the terminal is looked at. Many agents may all have something to do at once: a key waits for
/// so many of them at most, and not for the 61 that are usual.
const STEPS: u32 = 4;

/// The same where a person waits for the echo of each key.
fn block_on_keys<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    finish(builder.enable_all().event_interval(STEPS).build()?, future)
}

/// Runs on one thread: agents wait far more than they compute, and what blocks goes to threads of its own.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    finish(runtime, future)
}

/// Runs to the end.
fn finish<T>(
    runtime: tokio::runtime::Runtime,
    future: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let result = runtime.block_on(future);
    // A read of standard input that never ends must not keep the program alive.
    runtime.shutdown_background();
    result
}
