//! The cost of a session's knowledge of its skills: 300, against a target of 1.5 ms of CPU, and 5,000, of which not
//! all are listed, against 3 ms.
//!
//! `cargo bench -p centurion-config --bench skills` prints the times.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use centurion_config::skills::{SkillLoader, SkillSources};
use centurion_protocol::SystemWorld;

const BATCHES: u32 = 8;

const ROUNDS: u32 = 100;

fn skill(n: usize) -> String {
    let front = match n % 10 {
        0 => format!("description: >\n  Looks after part {n}.\n  Knows it well."),
        1 => format!(
            "description: \"Part {n}: use it when tests fail\"\nallowed-tools: [Read, Grep]"
        ),
        _ => format!(
            "description: Does part {n} of the work. Use it when that part is to be changed.\n\
             allowed-tools: Bash(git add:*), Read\nargument-hint: [file]"
        ),
    };
    let body = "Look at the part, find what is wrong with it, and say so.\n".repeat(60);
    format!("---\nname: skill-{n}\n{front}\n---\n\n{body}")
}

fn generate(directory: &Path, count: usize) {
    for n in 0..count {
        let folder = directory.join(format!(".claude/skills/skill-{n}"));
        fs::create_dir_all(&folder).expect("a directory");
        fs::write(folder.join("SKILL.md"), skill(n)).expect("a file");
    }
}

/// The time that this thread has had a processor for, as Linux tells it; elsewhere, all time. Linux counts it only every
/// few milliseconds.
fn cpu_time(begin: Instant) -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|it| it.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| begin.elapsed(), Duration::from_nanos)
}

/// The cost of one round: the mean of many, for the clock is coarse, in the best of a few batches, for other programs
/// run, too.
fn measure(name: &str, target: Duration, mut once: impl FnMut()) {
    let begin = Instant::now();
    let batches = (0..BATCHES).map(|_| {
        let started = cpu_time(begin);
        (0..ROUNDS).for_each(|_| once());
        cpu_time(begin).saturating_sub(started) / ROUNDS
    });
    let spent = batches.min().unwrap_or_default();
    let share = spent.as_secs_f64() / target.as_secs_f64() * 100.0;
    println!("{name:<52} {:>7.2} ms, {share:>4.0} % of the target", spent.as_secs_f64() * 1e3);
}

fn main() {
    for (count, target) in [(300, 1.5), (5_000, 3.0)] {
        let directory = tempfile::tempdir().expect("a directory");
        generate(directory.path(), count);
        let mut sources = SkillSources::default();
        directory.path().clone_into(&mut sources.folders.cwd);
        let target = Duration::from_secs_f64(target / 1e3);
        measure(&format!("{count} skills, seen for the first time"), target, || {
            black_box(SkillLoader::new().load(&sources, &SystemWorld));
        });
        // A file that has just been written may be written again within the same tick of the clock.
        std::thread::sleep(Duration::from_secs(4));
        let kept = tempfile::tempdir().expect("a directory");
        sources.index_dir = Some(kept.path().join("index"));
        measure(&format!("{count} skills, seen by an earlier process"), target, || {
            black_box(SkillLoader::new().load(&sources, &SystemWorld));
        });
        let mut loader = SkillLoader::new();
        measure(&format!("{count} skills, seen again"), target, || {
            black_box(loader.load(&sources, &SystemWorld));
        });
    }
}
