//! `cargo xtask fuzz`: coverage-guided fuzzing with the stable compiler.
//!
//! The targets stand in a workspace of their own, because everything below them is built with
//! counters for libFuzzer. No sanitizer: those need a nightly compiler, and the code is safe Rust.

use std::fs;
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
    let host = host()?;
    let directory = root().join("fuzz");
    let mut build = cargo(&["build", "--release", "--manifest-path", MANIFEST]);
    // With a target named, build scripts and macros are built without the counters.
    build.args(["--target", &host]).arg("--target-dir").arg(directory.join("target"));
    build.env_remove("CARGO_TARGET_DIR").env("RUSTFLAGS", COUNTERS.join(" "));
    run(&mut build)?;
    for target in chosen {
        let corpus = directory.join("corpus").join(target);
        let artifacts = directory.join("artifacts").join(target);
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&artifacts)?;
        let program = directory.join("target").join(&host).join("release").join(target);
        let mut fuzzer = Command::new(program);
        fuzzer
            .arg(&corpus)
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .arg(format!("-max_total_time={}", options.seconds))
            .args([
                "-rss_limit_mb=2048",
                "-timeout=10",
                "-verbosity=0",
                "-print_final_stats=1",
                "-print_funcs=0",
            ]);
        let seeds = directory.join("seeds").join(target);
        if seeds.is_dir() {
            fuzzer.arg(seeds);
        }
        run(&mut fuzzer).with_context(|| format!("the input is in {}", artifacts.display()))?;
    }
    Ok(())
}

/// The targets, by the names of their files.
fn targets() -> Result<Vec<String>> {
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
    fn an_unknown_target_is_refused_before_anything_is_built() {
        let options = Options { seconds: 1, target: Some("nothing".to_owned()) };
        let error = fuzz(&options).unwrap_err().to_string();
        assert!(error.starts_with("there is no such fuzz target"), "{error}");
    }
}
