//! `Cd(…)` rules: the directories to which a person may move the session.

use std::path::Path;

use centurion_permissions::{Call, Mode, Policy, Reason, Verdict, decide};

use crate::fixture::{self, policy, read};

use Verdict::{Allow, Ask, Deny};

#[track_caller]
fn assert_entries(policy: &Policy, expected: &[(&str, Verdict)]) {
    for (path, expected) in expected {
        let decision = decide(policy, &Call::new("Cd", &read(path)));
        assert_eq!(decision.verdict, *expected, "{path}: {}", decision.reason);
    }
}

#[test]
fn without_rules_a_person_goes_anywhere() {
    for mode in [Mode::Default, Mode::Plan, Mode::DontAsk, Mode::BypassPermissions] {
        assert_entries(&policy(mode), &[("/etc", Allow), ("/home/ada/project", Allow)]);
    }
}

#[test]
fn rules_for_other_tools_say_nothing_about_it() {
    let mut policy = policy(Mode::Default);
    policy.deny = fixture::rules("Read(//etc/**)");
    policy.allow = fixture::rules("Read(//srv/**) Edit");
    assert_entries(&policy, &[("/etc", Allow), ("/opt", Allow)]);
}

#[test]
fn one_allow_rule_makes_a_list() {
    let mut policy = policy(Mode::BypassPermissions);
    policy.allow = fixture::rules("Cd(~/work/*)");
    policy.ask = fixture::rules("Cd(~/work/live)");
    policy.deny = fixture::rules("Cd(~/work/secret)");
    assert_entries(
        &policy,
        &[
            ("/home/ada/work/a", Allow),
            ("/home/ada/work/a/b", Deny),
            ("/home/ada/work", Deny),
            ("/etc", Deny),
            ("/home/ada/work/live", Ask),
            ("/home/ada/work/secret", Deny),
        ],
    );
    let unlisted = decide(&policy, &Call::new("Cd", &read("/etc")));
    assert_eq!(unlisted.reason, Reason::NotListed);
}

#[test]
fn a_link_does_not_lead_off_the_list() {
    let mut policy = policy(Mode::Default);
    policy.allow = fixture::rules("Cd(~/work/*)");
    let access = read("/etc");
    let named = Path::new("/home/ada/work/link");
    let call = Call { named: Some(named), ..Call::new("Cd", &access) };
    assert_eq!(decide(&policy, &call).verdict, Deny);
}
