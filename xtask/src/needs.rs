//! Programs that the tests need on a machine, and their installation.

use std::process::Command;

use anyhow::{Result, bail};

use crate::components;
use crate::run::{cargo, run, works};

/// A program that tests start, and the package that brings it.
struct Program {
    name: &'static str,
    /// Arguments of a call that shows that it is there.
    trial: &'static [&'static str],
    package: &'static str,
    why: &'static str,
}

const VERSION: &[&str] = &["--version"];

const READER: &str = "is a command that runs without a question, and is tried with all its options";

const PROGRAMS: [Program; 14] = [
    Program {
        name: "bash",
        trial: VERSION,
        package: "bash",
        why: "runs the commands of the Bash tool",
    },
    Program {
        name: "bwrap",
        trial: VERSION,
        package: "bubblewrap",
        why: "confines commands where the kernel alone cannot",
    },
    Program {
        name: "git",
        trial: VERSION,
        package: "git",
        why: "holds the repositories that tests work in",
    },
    Program {
        name: "cc",
        trial: VERSION,
        package: "gcc",
        why: "builds the native parts of dependencies",
    },
    Program { name: "c++", trial: VERSION, package: "g++", why: "builds the fuzzing engine" },
    Program {
        name: "python3",
        // Some systems split what makes environments off the language.
        trial: &["-c", "import ensurepip, venv"],
        package: "python3-venv",
        why: "runs servers and hosts that are written in Python",
    },
    Program {
        name: "npm",
        trial: VERSION,
        package: "npm",
        why: "brings the conformance suite and a server of the protocol",
    },
    Program {
        name: "perl",
        trial: VERSION,
        package: "perl",
        why: "attacks guards in ways that a shell cannot",
    },
    Program {
        name: "pgrep",
        trial: VERSION,
        package: "procps",
        why: "finds what was left running",
    },
    Program { name: "rg", trial: VERSION, package: "ripgrep", why: READER },
    Program {
        name: "tmux",
        trial: &["-V"],
        package: "tmux",
        why: "shows members of teams in its panes",
    },
    Program { name: "tree", trial: VERSION, package: "tree", why: READER },
    Program { name: "jq", trial: VERSION, package: "jq", why: READER },
    Program { name: "file", trial: VERSION, package: "file", why: READER },
];

/// Installs whatever is missing, or says what to install.
pub(crate) fn install() -> Result<()> {
    let missing: Vec<&Program> =
        PROGRAMS.iter().filter(|program| !works(program.name, program.trial)).collect();
    if !missing.is_empty() {
        install_packages(&missing)?;
    }
    if !works_as_subcommand("nextest") {
        run(&mut cargo(&["install", "cargo-nextest", "--locked"]))?;
    }
    components::install()
}

fn works_as_subcommand(name: &str) -> bool {
    cargo(&[name, "--version"]).output().is_ok_and(|output| output.status.success())
}

fn install_packages(missing: &[&Program]) -> Result<()> {
    for program in missing {
        println!("missing: {} ({})", program.name, program.why);
    }
    let packages: Vec<&str> = missing.iter().map(|program| program.package).collect();
    let names = packages.join(" ");
    if !works("apt-get", VERSION) {
        bail!("the tests need {names}: install them with the package manager of this system");
    }
    let mut install: Vec<&str> = vec!["apt-get", "install", "--yes", "--no-install-recommends"];
    install.extend(&packages);
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    for words in [&["apt-get", "update"][..], &install] {
        let words: Vec<&str> = if is_root { words.to_vec() } else { [&["sudo"], words].concat() };
        if let Some((program, arguments)) = words.split_first() {
            run(Command::new(program).args(arguments))?;
        }
    }
    Ok(())
}
