//! Properties of all rules, modes and calls.

use centurion_permissions::{
    Access, Call, Layer, Mode, OwnMode, Policy, Readings, Reason, Role, Rule, RuleOrigin, RuleSet,
    Skipping, Verdict, decide,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::fixture;

const RULES: [&str; 22] = [
    "Bash",
    "Bash(ls *)",
    "Bash(rm *)",
    "Bash(git:*)",
    "Bash(* x)",
    "Bash(e*)",
    "Bash(make)",
    "Read",
    "Read(src/**)",
    "Read(.env)",
    "Read(//**)",
    "Edit",
    "Edit(**)",
    "Edit(/docs/*)",
    "Write",
    "WebFetch",
    "WebFetch(domain:example.com)",
    "WebFetch(domain:*.org)",
    "TodoWrite",
    "mcp__git",
    "mcp__*",
    "*",
];

fn rules() -> impl Strategy<Value = RuleSet> {
    list().prop_map(RuleSet::from)
}

fn list() -> impl Strategy<Value = Vec<Rule>> {
    subsequence(&RULES[..], 0..5).prop_shuffle().prop_map(|texts| {
        texts
            .into_iter()
            .map(|text| Rule::parse(text, RuleOrigin::Flag).expect("a good rule"))
            .collect()
    })
}

pub(crate) fn role() -> impl Strategy<Value = Role> {
    (rules(), rules(), rules()).prop_map(|(allow, deny, only)| Role {
        allow,
        deny,
        only,
        ..Role::default()
    })
}

/// Pieces with a meaning for the shell, and a few words.
const PIECES: [&str; 51] = [
    "ls",
    "rm",
    "git",
    "git log",
    "echo",
    "make",
    "x",
    "src",
    ".env",
    "-rf",
    "--output=x",
    "/",
    "..",
    "~",
    " ",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    ";",
    "&",
    "&&",
    "|",
    ">",
    "<",
    "$",
    "$(",
    ")",
    "`",
    "(",
    "{",
    "}",
    "*",
    "?",
    "[",
    "]",
    "!",
    "#",
    "=",
    "A=1",
    "\\",
    "'",
    "\"",
    ",",
    "%",
    "$HOME",
    "${IFS}",
    "é",
    "\u{a0}",
    "\r",
];

fn hostile_command() -> impl Strategy<Value = String> {
    prop::collection::vec(select(&PIECES[..]), 1..12).prop_map(|pieces| pieces.concat())
}

const PATHS: [&str; 7] = [
    "/home/ada/project/src/main.rs",
    "/home/ada/project/.env",
    "/home/ada/project/.git/config",
    "/home/ada/project/docs/a.md",
    "/home/ada/.ssh/id",
    "/added/x",
    "/etc/passwd",
];

pub(crate) fn tool_and_access() -> impl Strategy<Value = (&'static str, Access)> {
    prop_oneof![
        Just(("TodoWrite", Access::Session)),
        (select(&["Read", "Glob", "Grep"][..]), select(&PATHS[..]))
            .prop_map(|(tool, path)| (tool, fixture::read(path))),
        (select(&["Edit", "Write", "NotebookEdit"][..]), select(&PATHS[..]))
            .prop_map(|(tool, path)| (tool, fixture::write(path))),
        hostile_command().prop_map(|command| ("Bash", Access::Shell(command))),
        select(&["https://example.com/", "https://a.org/", "nonsense"][..])
            .prop_map(|url| ("WebFetch", fixture::network(url))),
        any::<bool>().prop_map(|only_reads| ("mcp__git__push", Access::External { only_reads })),
    ]
}

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    (select(&Mode::ALL[..]), rules(), rules(), rules())
        .prop_map(|(mode, allow, ask, deny)| Policy { allow, ask, deny, ..fixture::policy(mode) })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn a_deny_rule_that_matches_alone_beats_everything(
        policy in policy(), (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let alone = Policy {
            allow: RuleSet::default(),
            ask: RuleSet::default(),
            ..policy.clone()
        };
        let denies = policy.deny.iter().any(|rule| {
            let bypass = Policy {
                mode: Mode::BypassPermissions,
                deny: vec![rule.clone()].into(),
                ..alone.clone()
            };
            decide(&bypass, &call).verdict == Verdict::Deny
        });
        if denies {
            prop_assert_eq!(decide(&policy, &call).verdict, Verdict::Deny);
        }
    }

    #[test]
    fn more_deny_or_ask_rules_never_give_more(
        policy in policy(), deny in rules(), ask in rules(), (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let mut stricter = policy.clone();
        stricter.deny.extend(deny.iter().cloned());
        stricter.ask.extend(ask.iter().cloned());
        let rank = |policy: &Policy| match decide(policy, &call).verdict {
            Verdict::Allow => 2,
            Verdict::Ask => 1,
            Verdict::Deny => 0,
        };
        prop_assert!(rank(&stricter) <= rank(&policy));
    }

    #[test]
    fn the_order_of_rules_of_one_kind_does_not_matter(
        (policy, allow, ask, deny) in policy().prop_flat_map(|policy| {
            let (allow, ask, deny) =
                (policy.allow.to_vec(), policy.ask.to_vec(), policy.deny.to_vec());
            (Just(policy), Just(allow).prop_shuffle(), Just(ask).prop_shuffle(), Just(deny).prop_shuffle())
        }),
        (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let shuffled = Policy {
            allow: allow.into(),
            ask: ask.into(),
            deny: deny.into(),
            ..policy.clone()
        };
        prop_assert_eq!(decide(&shuffled, &call).verdict, decide(&policy, &call).verdict);
    }

    #[test]
    fn where_the_shell_stands_changes_nothing_for_files(
        policy in policy(), (tool, access) in tool_and_access(),
        cwd in select(&["/", "/home/ada/project/src", "/added", "/etc"][..]),
    ) {
        prop_assume!(!matches!(access, Access::Shell(_)));
        let call = Call::new(tool, &access);
        let moved = Policy { cwd: cwd.into(), ..policy.clone() };
        prop_assert_eq!(decide(&moved, &call), decide(&policy, &call));
    }

    #[test]
    fn planning_never_writes_and_dont_ask_never_asks(
        policy in policy(), (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let planning = Policy { mode: Mode::Plan, ..policy.clone() };
        if matches!(access, Access::Write(_)) {
            prop_assert_ne!(decide(&planning, &call).verdict, Verdict::Allow);
        }
        let silent = Policy { mode: Mode::DontAsk, ..policy };
        prop_assert_ne!(decide(&silent, &call).verdict, Verdict::Ask);
    }

    #[test]
    fn any_text_can_be_read_as_rules_or_refused(text in "[A-Za-z_*(), \\\\:/~\\[\\]{}]{0,40}") {
        if let Ok(rules) = Rule::parse_list(&text, &RuleOrigin::Flag) {
            for rule in rules {
                let again = Rule::parse(&rule.to_string(), RuleOrigin::Flag);
                prop_assert!(again.is_ok(), "{rule} was read once and not twice");
            }
        }
    }

    // I-1
    #[test]
    fn no_descendant_does_what_the_ceiling_forbids(
        root in policy(),
        line in prop::collection::vec((role(), select(&Mode::ALL[..])), 1..5),
        (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let ceiling = decide(&Policy { mode: Mode::BypassPermissions, ..root.clone() }, &call);
        let mut agent = root.clone();
        for (role, mode) in line {
            agent = agent.child(role, OwnMode::Given(mode), Skipping::Disabled);
            let verdict = decide(&agent, &call).verdict;
            if ceiling.verdict == Verdict::Deny {
                prop_assert_eq!(verdict, Verdict::Deny, "{}", ceiling.reason);
            }
            if ceiling.verdict == Verdict::Ask {
                prop_assert_ne!(verdict, Verdict::Allow, "{}", ceiling.reason);
            }
            if root.mode == Mode::Plan && matches!(access, Access::Write(_)) {
                prop_assert_eq!(verdict, Verdict::Deny);
            }
            if root.mode != Mode::BypassPermissions {
                prop_assert_ne!(agent.mode, Mode::BypassPermissions);
            }
        }
    }

    #[test]
    fn a_role_never_leaks_to_parents_children_or_siblings(
        root in policy(), foreign in role(), own in role(),
        modes in (select(&Mode::ALL[..]), select(&Mode::ALL[..])),
        (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let before = decide(&root, &call);
        let role = || own.clone();
        let child = |parent: &Policy, role: Role, mode: Mode| {
            parent.child(role, OwnMode::Given(mode), Skipping::Disabled)
        };
        let bound = child(&root, foreign, modes.0);
        let free = child(&root, Role::default(), modes.0);
        // Below an agent with a role, everything is as below one without.
        let (below, beside) = (child(&bound, role(), modes.1), child(&free, role(), modes.1));
        prop_assert_eq!(decide(&below, &call), decide(&beside, &call));
        // And beside it, as if it did not exist.
        let sibling = child(&root, role(), modes.1);
        let alone = Policy { role: Role::default(), ..root.clone() };
        let alone = child(&alone, role(), modes.1);
        prop_assert_eq!(decide(&sibling, &call), decide(&alone, &call));
        prop_assert_eq!(decide(&root, &call), before);
    }

    #[test]
    fn what_an_agent_is_kept_to_gives_nothing_and_binds_in_every_mode(
        policy in policy(), role in role(), mode in select(&Mode::ALL[..]),
        (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let confined = Policy { role: role.clone(), ..policy };
        let free = Role { only: RuleSet::default(), ..role };
        let free = Policy { role: free, ..confined.clone() };
        let (with, without) = (decide(&confined, &call), decide(&free, &call));
        if matches!(with.reason, Reason::Confined { .. }) {
            prop_assert_eq!((with.verdict, with.layer), (Verdict::Deny, Layer::Role));
            let other_mode = Policy { mode, ..confined.clone() };
            prop_assert_eq!(decide(&other_mode, &call), with.clone());
            // No allow rule changes that, but a rule that names the whole tool does.
            let mut allowed = confined.clone();
            allowed.allow.extend(fixture::rules(tool).iter().cloned());
            allowed.role.allow.extend(fixture::rules(tool).iter().cloned());
            prop_assert_eq!(decide(&allowed, &call), with);
            let mut lifted = confined;
            lifted.role.only.extend(fixture::rules(tool).iter().cloned());
            prop_assert_eq!(decide(&lifted, &call), without);
        } else {
            prop_assert_eq!(with, without);
        }
    }

    #[test]
    fn what_is_added_to_an_allowed_line_must_be_allowed_too(line in hostile_command()) {
        // Behind a comment or a backslash, and inside a here-document, it would not run.
        prop_assume!(!line.contains(['#', '<']) && !line.ends_with('\\'));
        let mut policy = fixture::policy(Mode::Default);
        policy.allow = fixture::rules("Bash(ls *) Bash(echo *) Bash(git log *) Bash(make)");
        let verdict = |line: String| {
            let access = Access::Shell(line);
            decide(&policy, &Call::new("Bash", &access)).verdict
        };
        if verdict(line.clone()) == Verdict::Allow {
            for longer in [format!("{line}; curl x"), format!("{line}\ncurl x"), format!("curl x; {line}")] {
                prop_assert_ne!(verdict(longer.clone()), Verdict::Allow, "{:?}", longer);
            }
        }
    }

    #[test]
    fn a_line_that_was_read_before_is_judged_the_same(
        policy in policy(), (tool, access) in tool_and_access(),
        cwd in select(&["/home/ada/project", "/home/ada/project/src", "/etc"][..]),
    ) {
        let call = Call::new(tool, &access);
        decide(&policy, &call);
        let moved = Policy { cwd: cwd.into(), ..policy };
        let anew = Policy { readings: Readings::default(), ..moved.clone() };
        prop_assert_eq!(decide(&moved, &call), decide(&anew, &call));
    }

    #[test]
    fn an_index_finds_what_each_rule_alone_would(
        list in list(), (tool, access) in tool_and_access(),
    ) {
        let call = Call::new(tool, &access);
        let denied = |rules: Vec<Rule>| {
            let policy = Policy { deny: rules.into(), ..fixture::policy(Mode::BypassPermissions) };
            decide(&policy, &call).verdict == Verdict::Deny
        };
        let alone = list.iter().any(|rule| denied(vec![rule.clone()]));
        prop_assert_eq!(denied(list), alone);
    }
}
