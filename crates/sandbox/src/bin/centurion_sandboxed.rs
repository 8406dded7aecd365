//! Enters a sandbox and becomes a command: for the tests of this crate.
//!
//! The first argument is the plan, the second the place, both as JSON; the command follows. Without any, it prints the
//! capabilities of this machine for this user.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use centurion_sandbox::{CommandPlace, Plan, Support};

fn main() -> ExitCode {
    if std::env::args_os().len() == 1 {
        let support = serde_json::to_writer(std::io::stdout(), &Support::detect());
        return support.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS);
    }
    let Err(error) = run();
    let _ = writeln!(std::io::stderr(), "sandboxed: {error}");
    ExitCode::from(126)
}

fn run() -> Result<std::convert::Infallible, Box<dyn std::error::Error>> {
    const INSIDE: &str = "inside";
    let args: Vec<OsString> = std::env::args_os().collect();
    let [own, plan, place, rest @ ..] = args.as_slice() else {
        return Err("too few arguments".into());
    };
    let read = |text: &OsString| text.to_str().ok_or("not text").map(str::to_owned);
    let (plan_text, place_text) = (read(plan)?, read(place)?);
    let plan: Plan = serde_json::from_str(&plan_text)?;
    let place: CommandPlace = serde_json::from_str(&place_text)?;
    let command = match rest.split_first() {
        Some((first, command)) if first == INSIDE => command,
        _ => {
            let mut again = vec![own.clone(), plan_text.into(), place_text.into(), INSIDE.into()];
            again.extend(rest.iter().cloned());
            if let Some(mut wrapped) = plan.wrapped(&place, &again)? {
                return Err(wrapped.exec().into());
            }
            rest
        }
    };
    let variables = plan.apply(&place, None)?;
    let (program, args) = command.split_first().ok_or("no command")?;
    Err(Command::new(program).args(args).envs(variables).exec().into())
}
