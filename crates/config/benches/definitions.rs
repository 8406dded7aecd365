//! The time to load 5,000 definitions of agents from disk, against a target of 150 ms of CPU, and to load them again
//! when nothing has changed.
//!
//! `cargo bench -p centurion-config` prints the times. Half of the files are plain YAML, the others are
//! what people write: long texts with examples, lists, and frontmatter that is no YAML.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_config::agents::{AgentCatalog, AgentLoader, AgentSources};
use centurion_protocol::SystemWorld;

const DEFINITIONS: usize = 5_000;
const ROUNDS: usize = 5;
const LONGEST: Duration = Duration::from_millis(150);
const LONGEST_AGAIN: Duration = Duration::from_millis(50);

fn definition(n: usize) -> String {
    let front = match n % 10 {
        // No YAML: a colon in a text, and a value that begins with a star.
        0 => format!("description: Use when: the tests of part {n} fail\ntools: *"),
        1 => format!(
            "description: Reviews part {n}. <example>Context: a change. user: \"look\" \
             assistant: \"I ask the reviewer\"</example>\nmodel: opus"
        ),
        2 => format!("description: |\n  Looks after part {n}.\n  Knows it well.\ncolor: blue"),
        3 => format!(
            "description: Part {n}\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        \
             - type: command\n          command: ./check.sh"
        ),
        4 => format!("description: Part {n}\ntools:\n  - Read\n  - Grep\n  - Bash(git log:*)"),
        _ => format!(
            "description: Does part {n} of the work\ntools: Read, Grep, Glob\nmodel: sonnet"
        ),
    };
    let prompt = "You look after one part of the program and report what you find.\n".repeat(40);
    format!("---\nname: agent-{n}\n{front}\n---\n\n{prompt}")
}

fn generate(directory: &Path) {
    for n in 0..DEFINITIONS {
        let folder = directory.join(".claude/agents").join(format!("team-{}", n % 20));
        fs::create_dir_all(&folder).expect("a directory");
        fs::write(folder.join(format!("agent-{n}.md")), definition(n)).expect("a file");
    }
}

/// The time that this thread has had a processor for, as Linux tells it; elsewhere, all time.
fn cpu_time(begin: Instant) -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|it| it.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| begin.elapsed(), Duration::from_nanos)
}

/// The least of a few rounds: other programs run, too.
fn measure(name: &str, longest: Duration, mut once: impl FnMut() -> Arc<AgentCatalog>) {
    let begin = Instant::now();
    let spent = (0..ROUNDS).map(|_| {
        let started = cpu_time(begin);
        let catalog = black_box(once());
        let spent = cpu_time(begin).saturating_sub(started);
        assert_eq!((catalog.active.len(), catalog.failed.len()), (DEFINITIONS, 0));
        spent
    });
    let spent = spent.min().unwrap_or_default();
    let share = spent.as_secs_f64() / longest.as_secs_f64() * 100.0;
    println!("{name:<52} {:>7.1} ms, {share:>4.0} % of the target", spent.as_secs_f64() * 1e3);
}

fn main() {
    let directory = tempfile::tempdir().expect("a directory");
    generate(directory.path());
    let mut sources = AgentSources::default();
    directory.path().clone_into(&mut sources.folders.cwd);
    let world = SystemWorld;
    measure("5,000 definitions, read for the first time", LONGEST, || {
        AgentLoader::new().load(&sources, &world)
    });
    // A file that has just been written may be written again within the same tick of the clock.
    std::thread::sleep(Duration::from_secs(4));
    let mut loader = AgentLoader::new();
    let first = loader.load(&sources, &world);
    measure("5,000 definitions, again, nothing changed", LONGEST_AGAIN, || {
        let again = loader.load(&sources, &world);
        assert!(Arc::ptr_eq(&first, &again), "nothing is read again");
        again
    });
}
