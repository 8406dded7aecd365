//! The origin of a decision: levels, files and lines, ceiling and role, modes.

use centurion_permissions::{
    Call, Layer, Mode, OwnMode, Policy, Reason, Role, Rule, RuleLevel, RuleOrigin, Skipping,
    Verdict, decide,
};
use serde_json::value::RawValue;

use crate::fixture::{self, call, network, policy, read, shell, write};

use Verdict::{Allow, Ask, Deny};

fn role(allow: &str, deny: &str) -> Role {
    let rules = |text: &str| {
        let rules = Rule::parse_list(text, &RuleOrigin::Role("scout".to_owned()));
        rules.expect("good rules").into()
    };
    Role { allow: rules(allow), deny: rules(deny), only: fixture::rules(""), ..Role::default() }
}

#[test]
fn a_decision_names_the_rule_its_file_and_line_and_its_layer() {
    let mut policy = policy(Mode::Default);
    let origin = RuleOrigin::Settings {
        level: RuleLevel::Managed,
        file: "/etc/centurion/settings.json".into(),
        line: Some(12),
        root: "/etc/centurion".into(),
    };
    policy.deny = vec![Rule::parse("Bash(curl *)", origin).unwrap()].into();
    policy.role = role("Bash(make *)", "Bash(make install)");

    let decision = decide(&policy, &call(&shell("ls && curl x")));
    let source = decision.rule.unwrap();
    assert_eq!((decision.verdict, decision.layer), (Deny, Layer::Ceiling));
    assert_eq!(source.origin.level(), RuleLevel::Managed);
    assert_eq!(source.origin.line(), Some(12));
    assert_eq!(
        decision.reason.to_string(),
        "denied by the rule `Bash(curl *)` from /etc/centurion/settings.json:12"
    );

    for (command, verdict, layer) in [
        ("make all", Allow, Layer::Role),
        ("make install", Deny, Layer::Role),
        ("ls", Allow, Layer::BuiltIn),
        ("npm ci", Ask, Layer::BuiltIn),
    ] {
        let decision = decide(&policy, &call(&shell(command)));
        assert_eq!((decision.verdict, decision.layer), (verdict, layer), "{command}");
    }
    policy.mode = Mode::AcceptEdits;
    let decision = decide(&policy, &call(&write("/home/ada/project/a")));
    assert_eq!((decision.verdict, decision.layer, decision.rule), (Allow, Layer::Mode, None));
}

#[test]
fn a_role_binds_its_agent_alone() {
    let mut lead = policy(Mode::Default);
    lead.deny = fixture::rules("Bash(curl *)");
    lead.role = role("Bash(make *)", "Read");
    let scout = lead.child(
        role("Bash(curl *) Bash(npm ci)", "Bash(git push *)"),
        OwnMode::Inherited,
        Skipping::Disabled,
    );
    let helper = scout.child(Role::default(), OwnMode::Inherited, Skipping::Disabled);
    for (policy, command, expected) in [
        (&lead, "make", Allow),
        (&scout, "make", Ask),
        (&lead, "npm ci", Ask),
        (&scout, "npm ci", Allow),
        (&helper, "npm ci", Ask),
        (&scout, "git push", Deny),
        (&lead, "git push", Ask),
        (&helper, "git push", Ask),
        // No role permits what the ceiling denies.
        (&scout, "curl x", Deny),
        (&helper, "curl x", Deny),
    ] {
        assert_eq!(decide(policy, &call(&shell(command))).verdict, expected, "{command}");
    }
    assert!(!lead.is_offered("Read"));
    assert!(scout.is_offered("Read") && helper.is_offered("Read"));
}

#[test]
fn a_child_never_leaves_plan_mode_nor_skips_permissions_by_itself() {
    // D-5a
    for (parent, wanted, expected) in [
        (Mode::Plan, Mode::AcceptEdits, Mode::Plan),
        (Mode::Plan, Mode::BypassPermissions, Mode::Plan),
        (Mode::Default, Mode::BypassPermissions, Mode::Default),
        (Mode::DontAsk, Mode::BypassPermissions, Mode::DontAsk),
        (Mode::BypassPermissions, Mode::BypassPermissions, Mode::BypassPermissions),
        (Mode::BypassPermissions, Mode::Plan, Mode::Plan),
        (Mode::Default, Mode::AcceptEdits, Mode::AcceptEdits),
    ] {
        let child =
            policy(parent).child(Role::default(), OwnMode::Given(wanted), Skipping::Disabled);
        assert_eq!(child.mode, expected, "{wanted} under {parent}");
    }
}

#[test]
fn auto_does_not_honour_rules_that_allow_almost_anything() {
    let mut policy = policy(Mode::Auto);
    policy.allow = fixture::rules(
        "Bash Agent Bash(python3 *) Bash(npx *) Bash(make lint) Bash(npm run *) Bash(git fetch *) Read",
    );
    for (command, expected) in [
        ("make lint", Allow),
        ("git fetch origin", Allow),
        ("ls", Allow),
        ("make", Ask),
        ("python3 x.py", Ask),
        ("npx x", Ask),
        ("npm run x", Ask),
    ] {
        assert_eq!(decide(&policy, &call(&shell(command))).verdict, expected, "{command}");
    }
    let access = network("local:agent");
    assert_eq!(decide(&policy, &Call::new("Agent", &access)).verdict, Ask);
    assert_eq!(decide(&policy, &call(&read("/etc/hosts"))).verdict, Allow);
}

#[test]
fn bubble_asks_about_all_that_does_more_than_read() {
    let mut policy = policy(Mode::Bubble);
    policy.allow = fixture::rules("Bash Edit WebFetch");
    policy.deny = fixture::rules("Bash(curl *)");
    for (access, expected) in [
        (shell("ls | head"), Allow),
        (read("/home/ada/project/a"), Allow),
        (shell("make"), Ask),
        (write("/home/ada/project/a"), Ask),
        (network("https://example.com"), Ask),
        (shell("curl x"), Deny),
    ] {
        assert_eq!(decide(&policy, &call(&access)).verdict, expected, "{access:?}");
    }
}

#[test]
fn rules_look_at_parameters_agents_and_skills() {
    let input = |json: &str| RawValue::from_string(json.to_owned()).unwrap();
    let session = centurion_permissions::Access::Session;
    let run = |allow: &str, ask: &str, deny: &str, tool: &str, json: &str| {
        let policy = Policy {
            allow: fixture::rules(allow),
            ask: fixture::rules(ask),
            deny: fixture::rules(deny),
            ..policy(Mode::Default)
        };
        let input = input(json);
        let call = Call { input: Some(&input), ..Call::new(tool, &session) };
        decide(&policy, &call).verdict
    };
    for (ask, deny, tool, json, expected) in [
        ("", "Agent(Explore)", "Agent", r#"{"subagent_type":"explore"}"#, Deny),
        ("", "Task(Explore)", "Agent", r#"{"subagent_type":"Explore"}"#, Deny),
        ("", "Agent(Explore)", "Agent", r#"{"subagent_type":"Plan"}"#, Allow),
        ("", "Agent(fork)", "Agent", r#"{"subagent_type":"fork"}"#, Deny),
        ("Agent(model:opus)", "", "Agent", r#"{"model":"opus"}"#, Ask),
        ("Agent(model:opus)", "", "Agent", "{}", Allow),
        ("", "Agent(isolation:*)", "Agent", r#"{"isolation":"worktree"}"#, Deny),
        ("", "Skill(review)", "Skill", r#"{"skill":"review","args":"x"}"#, Deny),
        ("Skill(deploy *)", "", "Skill", r#"{"skill":"deploy","args":"prod"}"#, Ask),
        ("", "mcp__git__push(remote:origin)", "mcp__git__push", r#"{"remote":"origin"}"#, Deny),
        ("", "mcp__git__push(remote:origin)", "mcp__git__push", r#"{"remote":"fork"}"#, Allow),
        ("", "mcp__git(remote:origin)", "mcp__git__push", r#"{"remote":"origin"}"#, Deny),
        ("", "Agent(Explore)", "Agent", "[1]", Allow),
    ] {
        assert_eq!(run("", ask, deny, tool, json), expected, "ask {ask:?} deny {deny:?} {json}");
    }
    let background = input(r#"{"command":"ls","run_in_background":true}"#);
    let mut policy = policy(Mode::Default);
    policy.deny = fixture::rules("Bash(run_in_background:true)");
    let access = shell("ls");
    let call = Call { input: Some(&background), ..Call::new("Bash", &access) };
    assert_eq!(decide(&policy, &call).verdict, Deny);
}

#[test]
fn an_exact_rule_stands_for_the_text_that_was_approved() {
    let mut policy = policy(Mode::Default);
    policy.allow = fixture::rules(r#"Bash(eval "$\(tool init\)" && make) Bash(sudo make install)"#);
    for (command, expected) in [
        ("eval \"$(tool init)\" && make", Allow),
        ("eval \"$(tool init)\" && make; ls", Ask),
        ("sudo make install", Allow),
        ("sudo make install && ls", Allow),
        ("sudo make", Ask),
    ] {
        let decision = decide(&policy, &call(&shell(command)));
        assert_eq!(decision.verdict, expected, "{command}: {}", decision.reason);
    }
    let unclear = decide(&policy, &call(&shell("$CMD x")));
    assert!(matches!(unclear.reason, Reason::Unclear { .. }), "{:?}", unclear.reason);
}
