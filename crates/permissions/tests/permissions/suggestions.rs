//! The suggestions for the person who is asked, and their effect.

use centurion_permissions::{
    Access, Call, Mode, Policy, Rule, RuleOrigin, Suggestion, Verdict, decide, suggest,
};
use serde_json::{Value, json};

use crate::fixture::{self, call, network, policy, read, shell, write};

fn suggested(policy: &Policy, access: &Access) -> Value {
    serde_json::to_value(suggest(policy, &call(access))).expect("plain data")
}

fn bash_rules(contents: &[&str]) -> Value {
    let rule = |content: &&str| json!({"toolName": "Bash", "ruleContent": content});
    json!([{
        "type": "addRules",
        "rules": contents.iter().map(rule).collect::<Vec<_>>(),
        "behavior": "allow",
        "destination": "localSettings",
    }])
}

#[test]
fn commands_get_a_rule_for_each_part_that_needs_one() {
    let mut policy = policy(Mode::Default);
    policy.allow = fixture::rules("Bash(npm ci)");
    for (command, contents) in [
        ("make", &["make"][..]),
        ("make && ls && npm ci && cargo run", &["make", "cargo run"]),
        ("make; make", &["make"]),
        ("cp *.rs out", &[r"cp \*.rs out"]),
        ("echo $(date) > x", &[r"echo $\(date\) > x"]),
        ("$CMD '(x'", &[r"$CMD '\(x'"]),
    ] {
        assert_eq!(suggested(&policy, &shell(command)), bash_rules(contents), "{command}");
    }
    assert_eq!(suggested(&policy, &shell("a; b; c; d; e; f")), json!([]));
    // No rule permits a text that cannot be parsed.
    assert_eq!(suggested(&policy, &shell("$CMD (x")), json!([]));
}

#[test]
fn other_calls_get_what_fits_them() {
    let policy = policy(Mode::Default);
    assert_eq!(
        suggested(&policy, &network("https://Docs.example.com/a?b")),
        json!([{
            "type": "addRules",
            "rules": [{"toolName": "WebFetch", "ruleContent": "domain:docs.example.com"}],
            "behavior": "allow",
            "destination": "localSettings",
        }])
    );
    let accept = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    assert_eq!(suggested(&policy, &write("/home/ada/project/a")), json!([accept]));
    let directory = json!({
        "type": "addDirectories", "directories": ["/srv/data"], "destination": "session"
    });
    assert_eq!(suggested(&policy, &read("/srv/data/x")), json!([directory]));
    assert_eq!(suggested(&policy, &write("/srv/data/x")), json!([directory, accept]));
    let access = network("stdio:git");
    let tool = suggest(&policy, &Call::new("mcp__git__push", &access));
    assert_eq!(
        serde_json::to_value(tool).unwrap()[0]["rules"],
        json!([{"toolName": "mcp__git__push"}])
    );
}

#[test]
fn nothing_lasting_is_offered_where_a_person_decides_each_time() {
    let mut policy = policy(Mode::Default);
    policy.ask = fixture::rules("Bash(git push *)");
    policy.deny = fixture::rules("Bash(curl *)");
    for access in [
        shell("git push"),
        shell("curl x"),
        shell("rm -rf ~"),
        shell("ls"),
        shell("echo a > .git/config"),
        write("/home/ada/project/.mcp.json"),
    ] {
        assert_eq!(suggested(&policy, &access), json!([]), "{access:?}");
    }
}

#[test]
fn a_suggestion_that_is_taken_ends_the_asking() {
    for command in [
        "make",
        "make && cargo run; npm ci",
        "cp *.rs 'a b'",
        "echo $(date) > x",
        "eval \"$(tool init)\"",
        "sudo make install",
        "find . -exec touch {} \\;",
        "A=1 make",
        "git log | sh",
    ] {
        let mut policy = policy(Mode::Default);
        let access = shell(command);
        assert_eq!(decide(&policy, &call(&access)).verdict, Verdict::Ask, "{command}");
        for suggestion in suggest(&policy, &call(&access)) {
            let Suggestion::AddRules { rules, .. } = suggestion else { panic!("{suggestion:?}") };
            for rule in rules {
                let text = format!("Bash({})", rule.rule_content.unwrap());
                policy.allow.push(Rule::parse(&text, RuleOrigin::Session).unwrap());
            }
        }
        let decision = decide(&policy, &call(&access));
        assert_eq!(decision.verdict, Verdict::Allow, "{command}: {}", decision.reason);
    }
}
