//! How long decisions take: 10,000 of them with 1,000 rules, and command lines that need the grammar.
//!
//! `cargo bench -p centurion-permissions` prints the time; more than 100 ms for the former is a failure.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use centurion_permissions::{Access, Call, Policy, Rule, RuleOrigin, RuleSet, decide};

const DECISIONS: usize = 10_000;
const LONGEST: Duration = Duration::from_millis(100);

fn rules(count: usize, make: impl Fn(usize) -> String) -> RuleSet {
    let rules = (0..count).map(|n| Rule::parse(&make(n), RuleOrigin::Flag).expect("a good rule"));
    rules.collect()
}

/// A thousand rules of all kinds, most of them about other things than the call at hand.
fn policy() -> Policy {
    Policy {
        allow: rules(500, |n| match n % 5 {
            0 => format!("Bash(tool{n} run *)"),
            1 => format!("Bash(npm run task{n}:*)"),
            2 => format!("Edit(packages/p{n}/**)"),
            3 => format!("WebFetch(domain:host{n}.example.com)"),
            _ => format!("mcp__server{n}__get_*"),
        }),
        ask: rules(100, |n| format!("Bash(git push origin branch{n} *)")),
        deny: rules(400, |n| match n % 4 {
            0 => format!("Read(secrets/s{n}/**)"),
            1 => format!("Bash(danger{n} *)"),
            2 => format!("Read(**/*.key{n})"),
            _ => format!("Agent(type{n})"),
        }),
        cwd: "/home/ada/project".into(),
        project_root: "/home/ada/project".into(),
        home: Some("/home/ada".into()),
        directories: vec!["/home/ada/project".into()],
        repository: Some("/home/ada/project".into()),
        ..Policy::default()
    }
}

fn calls() -> Vec<(&'static str, Access)> {
    let shell = |command: &str| ("Bash", Access::Shell(command.to_owned()));
    let path = |path: &str| PathBuf::from(format!("/home/ada/project/{path}"));
    vec![
        ("Read", Access::Read(path("src/main.rs"))),
        ("Read", Access::Read(path("secrets/s8/key"))),
        ("Edit", Access::Write(path("packages/p7/lib.rs"))),
        ("Write", Access::Write(path("docs/notes.md"))),
        ("Grep", Access::Read(path("src"))),
        ("WebFetch", Access::Network("https://host3.example.com/a".to_owned())),
        ("mcp__server4__get_x", Access::Network("stdio:server4".to_owned())),
        ("TodoWrite", Access::Session),
        shell("npm run task6 -- --watch"),
        shell("git status"),
        shell("danger9 now"),
        shell("cargo test --workspace"),
    ]
}

fn measure(name: &str, policy: &Policy, calls: &[(&str, Access)]) -> Duration {
    let started = Instant::now();
    for (tool, access) in calls.iter().cycle().take(DECISIONS) {
        black_box(decide(policy, &Call::new(tool, access)));
    }
    let spent = started.elapsed();
    println!("{name}: {DECISIONS} decisions with 1,000 rules in {spent:?}");
    spent
}

fn main() {
    let started = Instant::now();
    let policy = policy();
    println!("1,000 rules put in order in {:?}", started.elapsed());
    let spent = measure("calls of all kinds", &policy, &calls());
    let composed = [
        "git log --oneline | head -n 5",
        "cd packages/p7 && npm run task6 && git status",
        "for f in a b; do echo \"$f\" $(git log -1 -- \"$f\"); done > out.txt 2>&1",
    ];
    let composed = composed.map(|command| ("Bash", Access::Shell(command.to_owned())));
    measure("command lines that need the grammar", &policy, &composed);
    assert!(spent < LONGEST, "{spent:?} is more than {LONGEST:?}");
}
