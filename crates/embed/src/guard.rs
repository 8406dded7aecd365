//! The guard of shell commands: the embedding program, started again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use centurion_tools::guard::{self, GuardProgram};

/// This program's own file, where the kernel cannot name it.
const THIS: &str = "/proc/self/exe";

/// The program that shell commands run below. It ends them when the embedding program dies, however it dies.
#[derive(Clone, Debug)]
pub struct Guard(GuardProgram);

impl Guard {
    /// Makes this program a guard if its arguments say so: the first line of `main`, before anything else happens.
    ///
    /// `Err` is the exit code of a program that was started as a guard and has done its work.
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    ///
    /// use centurion_embed::Guard;
    ///
    /// fn main() -> ExitCode {
    ///     let guard = match Guard::enter(std::env::args_os()) {
    ///         Ok(guard) => guard,
    ///         Err(code) => return code,
    ///     };
    ///     // … `Session::builder(model).guard(guard)` …
    ///     ExitCode::SUCCESS
    /// }
    /// ```
    pub fn enter(args: impl IntoIterator<Item = OsString>) -> Result<Self, ExitCode> {
        let mut args = args.into_iter();
        args.next();
        match args.next() {
            Some(argument) if argument == guard::ARGUMENT => Err(guard::run(args)),
            _ => Ok(Self::program(std::env::current_exe().unwrap_or_else(|_| THIS.into()))),
        }
    }

    /// Another program that is a guard, such as an installed `centurion`.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self(GuardProgram::new(path))
    }

    pub(crate) fn into_program(self) -> GuardProgram {
        self.0
    }
}
