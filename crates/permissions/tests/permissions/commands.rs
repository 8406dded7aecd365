//! The table of shell commands in `tests/commands.txt`: each gets the verdict that stands before it.

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
