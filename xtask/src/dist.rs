//! The shipped program: its size, and the time that it takes to start.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::run::{cargo, root, run, target};

/// The most bytes that the program may have, with everything in it.
const LARGEST: u64 = 27_000_000;

/// Starts that are measured, after a few that warm the caches.
const STARTS: usize = 40;
const WARM_UP: usize = 5;

/// Has the linker keep one of functions that are the same. Only where the toolchain brings a linker that can.
const FOLD: &[&str] = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    &["-C", "link-arg=-Wl,--icf=all"]
} else {
    &[]
};

/// Builds the program as it is shipped, and fails if it has grown too large.
pub(crate) fn dist() -> Result<PathBuf> {
    let mut build = cargo(&["rustc", "--profile", "dist", "--package", "centurion"]);
    run(build.args(["--bin", "centurion", "--"]).args(FOLD))?;
    let program = target().join("dist").join("centurion");
    let size = fs::metadata(&program)
        .with_context(|| format!("the build left no program at {}", program.display()))?
        .len();
    println!("{} is {} large", program.display(), megabytes(size));
    if size > LARGEST {
        bail!(
            "the program is {}, more than the {} that it may be",
            megabytes(size),
            megabytes(LARGEST)
        );
    }
    Ok(program)
}

/// Prints how long the shipped program takes to start and end. Fails where skills add more CPU to that than they may.
pub(crate) fn bench() -> Result<()> {
    let program = dist()?;
    for arguments in [&["--version"][..], &["--help"]] {
        let mut times = Vec::with_capacity(STARTS);
        for start in 0..WARM_UP + STARTS {
            let clock = Instant::now();
            let output = Command::new(&program).args(arguments).output()?;
            if !output.status.success() {
                bail!("`centurion {}` failed: {}", arguments.join(" "), output.status);
            }
            if start >= WARM_UP {
                times.push(clock.elapsed());
            }
        }
        times.sort_unstable();
        println!(
            "centurion {}: {} at best, {} in the middle, {} at worst, of {STARTS} starts",
            arguments.join(" "),
            milliseconds(times.first()),
            milliseconds(times.get(STARTS / 2)),
            milliseconds(times.last()),
        );
    }
    let script = root().join("xtask/perf/skills.py");
    run(Command::new("python3").arg(script).arg(&program))
}

fn milliseconds(time: Option<&Duration>) -> String {
    format!("{:.1} ms", time.map_or(0.0, Duration::as_secs_f64) * 1000.0)
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_in_megabytes() {
        assert_eq!(megabytes(27_000_000), "27.0 MB");
        assert_eq!(megabytes(1_970_000), "1.9 MB");
    }
}
