//! Measures decisions: 10,000 of them with 1,000 rules, against a target of 15 ms for calls of all kinds and of 100 ms
//! for repeated compound lines.
//!
//! `cargo bench -p centurion-permissions` prints the times, and fails above the targets. 10,000 different compound
//! lines are measured as well, without a limit: no session has that many.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use centurion_permissions::{Access, Call, Policy, Readings, Rule, RuleOrigin, RuleSet, decide};

const DECISIONS: usize = 10_000;
const ROUNDS: usize = 5;
const LONGEST: Duration = Duration::from_millis(15);
const LONGEST_OF_LINES: Duration = Duration::from_millis(100);

fn rules(count: usize, make: impl Fn(usize) -> String) -> RuleSet {
    let rules = (0..count).map(|n| Rule::parse(&make(n), RuleOrigin::Flag).expect("a good rule"));
    rules.collect()
}

/// A thousand rules of all kinds, most of them irrelevant to the call at hand.
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
        trusted_repository: Some("/home/ada/project".into()),
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
        ("mcp__server4__get_x", Access::External { only_reads: false }),
        ("TodoWrite", Access::Session),
        shell("npm run task6 -- --watch"),
        shell("git status"),
        shell("danger9 now"),
        shell("cargo test --workspace"),
    ]
}

/// Judges 10,000 calls a few times and returns the best time: other programs run, too.
fn measure(name: &str, policy: &Policy, calls: &[(&str, Access)]) -> Duration {
    let once = || {
        // An empty cache: this round knows no lines of an earlier one.
        let policy = Policy { readings: Readings::default(), ..policy.clone() };
        let started = Instant::now();
        for (tool, access) in calls.iter().cycle().take(DECISIONS) {
            black_box(decide(&policy, &Call::new(tool, access)));
        }
        started.elapsed()
    };
    let spent = (0..ROUNDS).map(|_| once()).min().unwrap_or_default();
    println!("{name:<52} {:>7.1} ms", spent.as_secs_f64() * 1e3);
    spent
}

/// Lines of plain commands: most of the lines that agents write.
fn plain_line(n: usize) -> String {
    match n % 4 {
        0 => format!("git log --oneline -n {n} | head -n 5"),
        1 => format!("cd packages/p{n} && npm run task6 && git status"),
        2 => format!("cargo test case_{n} 2>&1 | tail -n 20"),
        _ => format!("git add -A && git commit -m 'change {n}: more; better' > out/{n}.txt"),
    }
}

/// Lines with loops, expansions and substitutions.
fn grammar_line(n: usize) -> String {
    match n % 3 {
        0 => {
            format!("for f in a{n} b; do echo \"$f\" $(git log -1 -- \"$f\"); done > out.txt 2>&1")
        }
        1 => format!("test -f a{n} && {{ echo \"$HOME\"; npm run task6; }}"),
        _ => format!("ls *.rs{n} | wc -l"),
    }
}

fn main() {
    let started = Instant::now();
    let policy = policy();
    println!("1,000 rules put in order in {:?}; then 10,000 decisions each:", started.elapsed());
    let lines = |count: usize, line: fn(usize) -> String| -> Vec<(&str, Access)> {
        (0..count).map(|n| ("Bash", Access::Shell(line(n)))).collect()
    };
    let mixed = measure("calls of all kinds", &policy, &calls());
    let plain = lines(60, plain_line);
    let plain = measure("compound lines of plain commands, 60 in turn", &policy, &plain);
    let grammar = lines(60, grammar_line);
    let grammar = measure("compound lines with expansions, 60 in turn", &policy, &grammar);
    for (name, line) in [
        ("compound lines of plain commands, all different", plain_line as fn(usize) -> String),
        ("compound lines with expansions, all different", grammar_line),
    ] {
        measure(name, &policy, &lines(DECISIONS, line));
    }
    for (spent, longest) in
        [(mixed, LONGEST), (plain, LONGEST_OF_LINES), (grammar, LONGEST_OF_LINES)]
    {
        assert!(spent < longest, "{spent:?} is more than {longest:?}");
    }
}
