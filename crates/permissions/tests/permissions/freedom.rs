//! No agent works more freely than the one that starts it, for all rules, modes and calls.

use centurion_permissions::{
    Access, Bounds, Call, Mode, OwnMode, Policy, Reason, Role, RuleSet, Skipping, Verdict, decide,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::fixture::{call, policy, shell, write};
use crate::properties::{policy as any_policy, role, tool_and_access};

/// A definition that only restricts, as those of agents do.
fn taking() -> impl Strategy<Value = Role> {
    (role(), any::<bool>()).prop_map(|(role, only_reads)| Role {
        allow: RuleSet::default(),
        only_reads,
        ..role
    })
}

/// The agent without the restrictions that its own definition adds for it alone.
fn ceiling(agent: &Policy) -> Policy {
    let role = Role { only_reads: agent.role.only_reads, ..Role::default() };
    Policy { role, ..agent.clone() }
}

fn is_free(agent: &Policy, call: &Call<'_>) -> bool {
    decide(agent, call).verdict == Verdict::Allow
}

/// The agent that this one starts, if it asks for a mode of its own.
fn child(agent: &Policy, role: Role, own: Option<Mode>, skips: bool) -> Policy {
    let skipping = if skips { Skipping::Enabled } else { Skipping::Disabled };
    agent.child(role, own.map_or(OwnMode::Inherited, OwnMode::Given), skipping)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    // D-5a
    #[test]
    fn an_heir_is_allowed_nothing_that_its_parent_is_not(
        root in any_policy(), line in prop::collection::vec((taking(), any::<bool>()), 1..5),
        (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let mut agent = root;
        for (role, skips) in line {
            let below = child(&agent, role, None, skips);
            if is_free(&below, &call) {
                prop_assert!(is_free(&ceiling(&agent), &call), "{}", decide(&below, &call).reason);
            }
            agent = below;
        }
    }

    #[test]
    fn a_mode_that_gives_at_most_the_parents_lets_through_no_more(
        root in any_policy(), role in taking(), own in select(&Mode::ALL[..]),
        (tool, access) in tool_and_access(),
    ) {
        prop_assume!(own.gives_at_most(root.mode));
        let call = Call::new(tool, &access);
        let below = child(&root, role, Some(own), true);
        if is_free(&below, &call) {
            prop_assert!(is_free(&ceiling(&root), &call), "{}", decide(&below, &call).reason);
        }
    }

    #[test]
    fn a_mode_of_its_own_gives_what_it_says_and_nothing_beyond_plan_dont_ask_and_skipping(
        root in any_policy(), line in prop::collection::vec((taking(), select(&Mode::ALL[..])), 1..4),
        skips in any::<bool>(), (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let with = |mode| Policy { mode, ..ceiling(&root) };
        let (plans, is_silent) = (with(Mode::Plan), with(Mode::DontAsk));
        let mut agent = root.clone();
        let mut modes = vec![root.mode];
        for (role, own) in line {
            agent = child(&agent, role, Some(own), skips);
            modes.push(own);
            let decision = decide(&agent, &call);
            if decision.verdict == Verdict::Allow {
                // An agent above may pass on the permissions of its own mode.
                let granted = modes.iter().any(|mode| is_free(&with(*mode), &call));
                prop_assert!(granted, "{}", decision.reason);
                prop_assert!(root.mode != Mode::Plan || is_free(&plans, &call));
                prop_assert!(root.mode != Mode::DontAsk || is_free(&is_silent, &call));
            }
            prop_assert!(root.mode != Mode::DontAsk || decision.verdict != Verdict::Ask);
            let may_skip = skips || root.mode == Mode::BypassPermissions;
            prop_assert!(may_skip || agent.mode != Mode::BypassPermissions);
        }
    }

    #[test]
    fn a_reader_changes_nothing_and_starts_no_agent_that_does(
        root in any_policy(), own in prop::option::of(select(&Mode::ALL[..])),
        depth in 0_usize..3, (tool, access) in tool_and_access(),
    ) {
        let scout = Role { only_reads: true, ..Role::default() };
        let mut agent = child(&root, scout, own, true);
        for _ in 0..depth {
            agent = child(&agent, Role::default(), own, true);
        }
        let verdict = decide(&agent, &Call::new(tool, &access)).verdict;
        match &access {
            Access::Write(_) | Access::External { only_reads: false } => {
                prop_assert_eq!(verdict, Verdict::Deny);
            }
            Access::Shell(_) => {
                let plain = Policy { allow: RuleSet::default(), ..policy(Mode::Default) };
                let reads = decide(&plain, &call(&access)).reason == Reason::ReadOnlyCommand;
                prop_assert!(reads || verdict == Verdict::Deny);
            }
            _ => {}
        }
    }
}

#[test]
fn an_agent_that_only_reads_is_told_so_in_every_mode_and_beside_every_rule() {
    for mode in Mode::ALL {
        let mut policy = policy(mode);
        policy.allow = crate::fixture::rules("Bash Edit Write mcp__git");
        let memory = Some("/home/ada/.memory".into());
        policy.role = Role { only_reads: true, memory, ..Role::default() };
        for access in [
            shell("touch x"),
            shell("echo x > y"),
            shell("git log > y"),
            shell("cp -r a b"),
            shell("true & make"),
            write("/home/ada/project/a"),
            write("/home/ada/.memory/a"),
            Access::External { only_reads: false },
        ] {
            let decision = decide(&policy, &call(&access));
            assert_eq!(decision.reason, Reason::OnlyReads, "{access:?} in {mode}");
        }
        for access in [shell("git log | head"), Access::Session] {
            assert_eq!(decide(&policy, &call(&access)).verdict, Verdict::Allow, "{access:?}");
        }
    }
}

#[test]
fn file_tools_of_a_run_that_stays_inside_reach_nothing_outside_in_any_mode_and_beside_any_rule() {
    for mode in Mode::ALL {
        let mut root = policy(mode);
        root.allow = crate::fixture::rules("Read Edit Write Glob Read(//**) Edit(//**)");
        root.bounds = Bounds { stays_inside: true, ..Bounds::default() };
        root.readable = vec!["/tmp/outputs".into()];
        let own = OwnMode::Given(Mode::BypassPermissions);
        let below = root.child(Role::default(), own, Skipping::Enabled);
        for agent in [&root, &below] {
            for access in [
                Access::Read("/etc/passwd".into()),
                Access::Read("/home/ada".into()),
                Access::Read("/home/ada/project-b/x".into()),
                write("/home/ada/x"),
                write("/tmp/outputs/x"),
            ] {
                let decision = decide(agent, &call(&access));
                assert_eq!(decision.verdict, Verdict::Deny, "{access:?} in {mode}");
                assert!(matches!(decision.reason, Reason::Outside(_)), "{access:?} in {mode}");
            }
            for access in
                [Access::Read("/home/ada/project/x".into()), Access::Read("/tmp/outputs/x".into())]
            {
                assert_eq!(decide(agent, &call(&access)).verdict, Verdict::Allow, "{access:?}");
            }
        }
    }
}
