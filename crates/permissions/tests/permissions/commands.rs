//! The table of shell commands in `tests/commands.txt`: each gets the verdict before it.

use centurion_permissions::{Mode, Verdict, decide};

use crate::fixture::{self, call, policy, shell};

const TABLE: &str = include_str!("../commands.txt");

/// The rules of one kind, from all lines that begin with its name.
fn rules(kind: &str) -> String {
    let lines = TABLE.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix(':'));
    lines.collect::<Vec<_>>().join(" ")
}

fn rows() -> impl Iterator<Item = (Verdict, String)> {
    TABLE.lines().filter_map(|line| {
        let (verdict, command) = line.split_once(' ')?;
        let verdict = match verdict {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            "deny" => Verdict::Deny,
            _ => return None,
        };
        Some((verdict, decode(command)))
    })
}

fn decode(command: &str) -> String {
    let mut decoded = command.replace('␤', "\n").replace('␉', "\t");
    for code in [0x2028, 0xa0, 0xd, 0x200b] {
        let character = char::from_u32(code).expect("a character");
        decoded = decoded.replace(&format!("<U+{code:X}>"), &character.to_string());
    }
    decoded
}

#[test]
fn every_command_of_the_table_gets_its_verdict() {
    let mut policy = policy(Mode::Default);
    policy.allow = fixture::rules(&rules("allow"));
    policy.ask = fixture::rules(&rules("ask"));
    policy.deny = fixture::rules(&rules("deny"));
    let mut wrong = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (expected, command) in rows() {
        let decision = decide(&policy, &call(&shell(&command)));
        if decision.verdict != expected {
            wrong.push(format!(
                "{command:?}: expected {expected:?}, got {:?}: {}",
                decision.verdict, decision.reason
            ));
        }
        assert!(seen.insert(command.clone()), "{command:?} is there twice");
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen.len() >= 300, "only {} commands", seen.len());
}

/// A backtracking grammar must not be given much to try: each of these would take hours, or the whole stack.
#[test]
fn hostile_lines_are_judged_at_once() {
    let mut policy = policy(Mode::Default);
    policy.allow = fixture::rules("Bash(echo *) Bash(cat *)");
    policy.deny = fixture::rules("Bash(curl *) Read(.env)");
    let deep = |piece: &str| piece.repeat(40);
    let closed = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(40), close.repeat(40))
    };
    for command in [
        deep("("),
        deep("(("),
        deep("( "),
        deep("(a;"),
        deep("a | ("),
        deep("case a in a) "),
        deep("case a in (a) "),
        deep("f() { "),
        deep("f() ( "),
        deep("echo $("),
        deep("cat <("),
        format!("cat <<X\n{}\nX", deep("$(")),
        format!("cat <<X\n{}\nX", deep("${x:-$(")),
        format!("echo $(({}1))", deep("(")),
        closed("(", "select x in a; do ls; done", ")"),
        closed("echo \"$(", "select x in a; do ls; done", ")\""),
        closed("${x:-", "a", "}"),
        "{ ".repeat(4_000),
        "if ".repeat(3_000),
        "! ".repeat(4_000),
        "time ".repeat(1_900),
        "coproc ".repeat(1_300),
        "while a; do ".repeat(800),
        "a | ".repeat(2_400),
        "a;".repeat(4_900),
        "bash -c ".repeat(1_200),
        format!("sudo {}", "x ".repeat(40_000)),
        "echo 99999999999999999999> x".to_owned(),
        "echo ${99999999999999999999} ~99999999999999999999999".to_owned(),
        "echo {1..99999999999999999999999999}".to_owned(),
    ] {
        let start: String = command.chars().take(40).collect();
        let verdict = decide(&policy, &call(&shell(&command))).verdict;
        let harmless = ["echo ${9", "echo {1", "time "].iter().any(|text| start.starts_with(text));
        assert!(verdict == Verdict::Ask || harmless, "{start}: {verdict:?}");
    }
}
