//! `cargo xtask fuzz`: coverage-guided fuzzing with the stable compiler.
//!
//! The targets stand in a workspace of their own, because everything below them is built with
//! counters for libFuzzer. No sanitizer: those need a nightly compiler, and the code is safe Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::{cargo, root, run};

pub(crate) const MANIFEST: &str = "fuzz/Cargo.toml";

const COUNTERS: [&str; 6] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub seconds: u32,
    /// One target instead of all.
    pub target: Option<String>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self { seconds: 60, target: None };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--seconds" => {
                    let number = words.next().context("--seconds needs a number")?;
                    options.seconds = number
                        .parse()
                        .with_context(|| format!("`{number}` is no number of seconds"))?;
                }
                flag if flag.starts_with('-') => bail!("unknown option `{flag}`"),
                name if options.target.is_none() => options.target = Some(name.to_owned()),
                extra => bail!("one target at a time: `{extra}` is too much"),
            }
        }
        Ok(options)
    }
}

/// Builds the targets and runs each for a while. A crash fails, and leaves its input in
/// `fuzz/artifacts`.
pub(crate) fn fuzz(options: &Options) -> Result<()> {
    let known = targets()?;
    let chosen: Vec<&String> = match &options.target {
        Some(name) => known.iter().filter(|target| *target == name).collect(),
        None => known.iter().collect(),
    };
    if chosen.is_empty() {
        bail!("there is no such fuzz target; there are: {}", known.join(", "));
    }
    let programs = build()?;
    for target in chosen {
        run_target(target, &programs, options.seconds)?;
    }
    Ok(())
}

/// Builds every target and says where the programs are.
fn build() -> Result<PathBuf> {
    let host = host()?;
    let target_directory = root().join("fuzz/target");
    let mut build = cargo(&["build", "--release", "--manifest-path", MANIFEST]);
    // With a target named, build scripts and macros are built without the counters.
    build.args(["--target", &host]).arg("--target-dir").arg(&target_directory);
    build.env_remove("CARGO_TARGET_DIR").env("RUSTFLAGS", COUNTERS.join(" "));
    run(&mut build)?;
    Ok(target_directory.join(host).join("release"))
}

fn run_target(target: &str, programs: &Path, seconds: u32) -> Result<()> {
    println!("==> fuzzing {target} for {seconds} s");
    let directory = root().join("fuzz");
    let corpus = format!("corpus/{target}");
    let artifacts = format!("artifacts/{target}");
    fs::create_dir_all(directory.join(&corpus))?;
    fs::create_dir_all(directory.join(&artifacts))?;
    let mut fuzzer = Command::new(programs.join(target));
    fuzzer
        .current_dir(&directory)
        .arg(format!("-artifact_prefix={artifacts}/"))
        .arg(format!("-max_total_time={seconds}"))
        .args(["-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"])
        .arg(corpus);
    let seeds = format!("seeds/{target}");
    if directory.join(&seeds).is_dir() {
        fuzzer.arg(seeds);
    }
    let output = fuzzer.output().with_context(|| format!("cannot start {target}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let report = without_progress(&report);
        bail!("{report}\n{target} failed: {}; the input is in fuzz/{artifacts}", output.status);
    }
    let runs = report.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    println!("    {} runs, no failure", runs.unwrap_or("0").trim());
    Ok(())
}

/// The report of a fuzzer without its thousands of lines about new coverage.
fn without_progress(report: &str) -> String {
    let told = |line: &&str| !line.starts_with('#') && !line.starts_with("\tNEW_FUNC");
    report.lines().filter(told).collect::<Vec<_>>().join("\n")
}

/// The targets, by the names of their files.
pub(crate) fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The kind of machine that this is, as the compiler calls it.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say which machine it builds for")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order() {
        let expected = Options { seconds: 5, target: Some("edit".to_owned()) };
        assert_eq!(Options::parse(&["--seconds", "5", "edit"]).unwrap(), expected);
        assert_eq!(Options::parse(&["edit", "--seconds", "5"]).unwrap(), expected);
        assert_eq!(Options::parse(&[]).unwrap(), Options { seconds: 60, target: None });
    }

    #[test]
    fn wrong_options_are_refused() {
        for words in [&["--seconds"][..], &["--seconds", "x"], &["--secs", "5"], &["a", "b"]] {
            assert!(Options::parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_report_is_about_the_failure() {
        let report =
            "#12\tNEW cov: 3\n\tNEW_FUNC[1/2]: 0x1\nthread panicked\nSUMMARY: deadly signal";
        assert_eq!(without_progress(report), "thread panicked\nSUMMARY: deadly signal");
    }

    #[test]
    fn an_unknown_target_is_refused_before_anything_is_built() {
        let options = Options { seconds: 1, target: Some("nothing".to_owned()) };
        let error = fuzz(&options).unwrap_err().to_string();
        assert!(error.starts_with("there is no such fuzz target"), "{error}");
    }
}
