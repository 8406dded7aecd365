//! A copy of what the program prints for hosts that others wrote: it is checked against the declarations. The flags that
//! they pass are checked against the decisions about flags.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use centurion_testkit::Scratch;
use serde_json::Value;

use crate::{decided, declared};

/// A stand-in for the program that keeps a copy of its output, a file for each process.
pub(crate) struct Recorder {
    program: PathBuf,
    copies: PathBuf,
    /// The arguments of all processes that run no subcommand, one a line.
    arguments: PathBuf,
}

impl Recorder {
    pub(crate) fn new(scratch: &Scratch) -> Self {
        let copies = scratch.root().join("recorded");
        fs::create_dir(&copies).unwrap();
        let program = scratch.root().join("centurion");
        let arguments = scratch.root().join("arguments");
        // The program takes the place of the shell, so that hosts end and await the program itself.
        let script = format!(
            "#!/bin/bash\n[[ $1 == -* ]] && printf '%s\\n' \"$@\" >> '{}'\nexec '{}' \"$@\" > >(exec tee '{}'/$$)\n",
            arguments.display(),
            env!("CARGO_BIN_EXE_centurion"),
            copies.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { program, copies, arguments }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Checks all lines of all processes.
    ///
    /// # Panics
    /// If one is not as it is declared, or none was printed.
    pub(crate) fn check(&self) {
        let mut count = 0;
        for copy in fs::read_dir(&self.copies).unwrap() {
            let text = fs::read_to_string(copy.unwrap().path()).unwrap();
            // The last line of a process that was killed may be cut off; versions are told in plain words.
            let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            for line in whole.filter(|line| line.starts_with('{')) {
                let event: Value = serde_json::from_str(line).unwrap();
                // Adapters also ask who is logged in, by a command of its own.
                if event.get("type").is_some() {
                    declared::check(&event);
                    count += 1;
                }
            }
        }
        assert!(count > 0, "nothing was printed");
        let arguments = fs::read_to_string(&self.arguments).unwrap();
        for flag in arguments.lines().filter_map(|word| word.strip_prefix("--")) {
            let flag = flag.split('=').next().unwrap();
            assert!(decided::is_decided(flag), "--{flag} is undecided");
        }
    }
}
