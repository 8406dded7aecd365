//! The restriction of tools by an agent's definition, in every mode and whatever else allows more.

use std::path::{Path, PathBuf};

use centurion_permissions::{
    Access, Apart, Call, Layer, Mode, OwnMode, Policy, Reason, Role, Rule, RuleOrigin, Skipping,
    Verdict, decide,
};
use serde_json::value::RawValue;

use crate::fixture::{self, call, network, policy, read, shell, write};

fn keep_to(only: &str, mode: Mode) -> Policy {
    let rules = Rule::parse_list(only, &RuleOrigin::Role("scout".to_owned())).expect("good rules");
    let role = Role { only: rules.into(), ..Role::default() };
    Policy {
        role,
        // Only the definition restricts the call.
        allow: fixture::rules(
            "Bash Monitor PowerShell Read Edit Write Grep Glob WebFetch mcp__git",
        ),
        ..policy(mode)
    }
}

/// Whether the definition refuses the call, which it does in all modes or in none.
#[track_caller]
fn is_refused(only: &str, call: &Call<'_>) -> bool {
    let mut answers = Mode::ALL.into_iter().map(|mode| {
        let decision = decide(&keep_to(only, mode), call);
        matches!(decision.reason, Reason::Confined { .. })
    });
    let first = answers.next().expect("there are modes");
    assert!(answers.all(|answer| answer == first), "modes differ about {only}: {call:?}");
    first
}

#[test]
fn a_refusal_says_what_the_definition_allows() {
    let policy = keep_to("Bash(git *) Bash(make) Read", Mode::BypassPermissions);
    let decision = decide(&policy, &call(&shell("ls")));
    assert_eq!(
        decision.reason.to_string(),
        "the agent's definition allows Bash only as Bash(git *) or Bash(make)"
    );
    assert_eq!((decision.layer, decision.rule), (Layer::Role, None));
    // A denial for all agents has its own reason.
    let denied = Policy { deny: fixture::rules("Bash(ls)"), ..policy };
    assert_eq!(decide(&denied, &call(&shell("ls"))).layer, Layer::Ceiling);
}

#[test]
fn every_command_of_a_line_must_be_given() {
    for (only, command, refused) in [
        ("Bash(git *)", "git push", false),
        ("Bash(git *)", "git add -A && git commit -m 'a; b'", false),
        ("Bash(git *)", "git log | git shortlog", false),
        ("Bash(git *)", "timeout 5 git fetch", false),
        ("Bash(git *)", "git log 2>/dev/null", false),
        ("Bash(git *)", "git apply < a.patch", false),
        ("Bash(git *) Bash(make)", "git pull && make", false),
        // A command that is free elsewhere is not free here.
        ("Bash(git *)", "ls", true),
        ("Bash(git *)", "git log | head", true),
        ("Bash(git *)", "cd src && git status", true),
        ("Bash(git *)", "echo $(make)", true),
        ("Bash(git *)", "git log \"$(make)\"", true),
        ("Bash(git *)", "git log; make", true),
        ("Bash(git *)", "GIT_PAGER=evil git log", true),
        ("Bash(git *)", "bash -c 'git log'", true),
        ("Bash(git *)", "gitk", true),
        ("Bash(git *)", "$GIT log", true),
        ("Bash(git *)", "g() { make; }; g", true),
        // A file that the shell itself writes is no git command.
        ("Bash(git *)", "git log > notes.md", true),
        ("Bash(git *)", "git apply < /etc/passwd", true),
        ("Bash(git *) Edit", "git log > notes.md", false),
        ("Bash(git *) Edit(docs/**)", "git log > docs/notes.md", false),
        ("Bash(git *) Edit(docs/**)", "git log > notes.md", true),
        // A rule with exactly this text permits it.
        ("Bash(git log > notes.md)", "git log > notes.md", false),
        ("Bash(git log > notes.md)", "git log > other.md", true),
        // No rule is about Bash, or one names the whole tool.
        ("Read(src/**)", "ls; make", false),
        ("Bash(git *) Bash", "ls; make", false),
        ("Bash Bash(git *)", "ls; make", false),
        ("Bash(git *) Bash(*)", "ls; make", false),
        // A pattern over tools allows nothing, and so it lifts nothing.
        ("* Bash(git *)", "make", true),
        ("*", "make", false),
    ] {
        assert_eq!(is_refused(only, &call(&shell(command))), refused, "{only} on {command}");
    }
}

#[test]
fn a_tool_is_confined_by_rules_that_name_it_and_by_no_others() {
    let (command, inside, outside) = (shell("ls"), read("/home/ada/project/src/a"), read("/x/a"));
    let (written, made) = (write("/home/ada/project/src/a"), write("/home/ada/project/b"));
    for (only, tool, access, refused) in [
        ("Bash(git *)", "Monitor", &command, false),
        ("Monitor(ls)", "Monitor", &command, true),
        ("Bash(ls) Monitor(ls)", "Monitor", &command, true),
        ("Read(src/**)", "Read", &inside, false),
        ("Read(src/**)", "Read", &outside, true),
        ("Read(src/**)", "NotebookRead", &outside, true),
        ("Read(src/**)", "Grep", &outside, false),
        ("Read(src/**) Grep(src/**)", "Grep", &outside, true),
        ("Grep(src/**)", "Grep", &inside, false),
        ("Grep(//x) Read(src/**)", "Grep", &inside, true),
        ("Grep(src/**)", "Glob", &outside, false),
        ("Edit(src/**)", "Read", &outside, false),
        ("Edit(src/**)", "Edit", &written, false),
        ("Edit(src/**)", "MultiEdit", &made, true),
        ("Edit(src/**)", "Write", &made, false),
        ("Edit(src/**) Write(/b)", "Write", &written, true),
        ("Edit(src/**) Write(/b)", "Write", &made, false),
        ("Write(src/**)", "Edit", &made, false),
    ] {
        let call = Call::new(tool, access);
        assert_eq!(is_refused(only, &call), refused, "{only} on {tool} {access:?}");
    }
}

#[test]
fn a_path_must_be_inside_as_it_is_named_and_where_it_leads() {
    for (named, leads, refused) in [
        ("/home/ada/project/src/a", "/home/ada/project/src/a", false),
        ("/home/ada/project/src/link", "/home/ada/project/src/b", false),
        ("/home/ada/project/src/link", "/etc/passwd", true),
        ("/home/ada/project/link", "/home/ada/project/src/a", true),
        ("/home/ada/project/src/../b", "/home/ada/project/b", true),
    ] {
        for (tool, access) in [("Read", read(leads)), ("Edit", write(leads))] {
            let call = Call { named: Some(Path::new(named)), ..Call::new(tool, &access) };
            let refused_here = is_refused("Read(src/**) Edit(src/**)", &call);
            assert_eq!(refused_here, refused, "{tool} {named} to {leads}");
        }
    }
}

#[test]
fn hosts_agents_skills_parameters_and_statements_are_kept_to() {
    let fetch = network("https://docs.example.com/a");
    let (session, external) = (Access::Session, Access::External { only_reads: true });
    let (status, compound) = (shell("git status"), shell("git status; ls"));
    for (only, tool, access, input, refused) in [
        ("WebFetch(domain:*.example.com)", "WebFetch", &fetch, "{}", false),
        ("WebFetch(domain:example.org)", "WebFetch", &fetch, "{}", true),
        ("Agent(Explore, Plan)", "Agent", &session, r#"{"subagent_type":"plan"}"#, false),
        ("Agent(Explore, Plan)", "Task", &session, r#"{"subagent_type":"verification"}"#, true),
        ("Agent(Explore, Plan)", "Agent", &session, "{}", true),
        ("Agent(model:haiku)", "Agent", &session, r#"{"model":"haiku"}"#, false),
        ("Agent(model:haiku)", "Agent", &session, r#"{"model":"opus"}"#, true),
        ("Agent(model:haiku)", "Agent", &session, "{}", true),
        ("Skill(review)", "Skill", &session, r#"{"skill":"review"}"#, false),
        ("Skill(review)", "Skill", &session, r#"{"skill":"deploy"}"#, true),
        ("PowerShell(git *)", "PowerShell", &status, "{}", false),
        ("PowerShell(git *)", "PowerShell", &compound, "{}", true),
        ("mcp__git__push(remote:fork)", "mcp__git__push", &external, r#"{"remote":"fork"}"#, false),
        ("mcp__git__push(remote:fork)", "mcp__git__push", &external, r#"{"remote":"x"}"#, true),
        ("mcp__*(remote:fork)", "mcp__git__push", &external, r#"{"remote":"x"}"#, true),
        ("mcp__*(remote:fork) mcp__git", "mcp__git__push", &external, "{}", false),
        ("mcp__git__push(x)", "mcp__git__push", &external, "{}", true),
    ] {
        let input = RawValue::from_string(input.to_owned()).unwrap();
        let call = Call { input: Some(&input), ..Call::new(tool, access) };
        assert_eq!(is_refused(only, &call), refused, "{only} on {tool} {}", input.get());
    }
}

#[test]
fn a_search_sees_what_some_search_may_see() {
    let (inside, outside) = ("/home/ada/project/src/a", "/home/ada/project/docs/b");
    for (only, inside_denied, outside_denied) in [
        ("Read(src/**)", false, false),
        ("Read(src/**) Grep(src/**)", false, false),
        ("Grep(src/**) Glob(src/**)", false, true),
        ("Grep(src/**) Glob(docs/**)", false, false),
        ("Grep(src/**) Glob(src/**) Glob", false, false),
        ("Grep(//etc) Glob(//etc)", true, true),
    ] {
        let policy = keep_to(only, Mode::BypassPermissions);
        let denied = [inside, outside].map(|path| policy.denies_reading(Path::new(path)));
        assert_eq!(denied, [inside_denied, outside_denied], "{only}");
    }
}

#[test]
fn what_an_agent_is_kept_to_ends_with_it() {
    let scout = keep_to("Bash(git *)", Mode::Default);
    let helper = scout.child(Role::default(), OwnMode::Inherited, Skipping::Disabled);
    let access = shell("make");
    assert!(matches!(decide(&scout, &call(&access)).reason, Reason::Confined { .. }));
    assert!(!matches!(decide(&helper, &call(&access)).reason, Reason::Confined { .. }));
}

#[test]
fn an_agents_own_memory_is_its_to_read_and_write_whatever_the_mode_asks() {
    // S-086
    let memory = PathBuf::from("/home/me/.claude/agent-memory/scout");
    let role = Role { memory: Some(memory.clone()), ..Role::default() };
    let inside = memory.join("MEMORY.md");
    let decided = |mode, access: Access, deny: &str| {
        let policy =
            Policy { mode, role: role.clone(), deny: fixture::rules(deny), ..Policy::default() };
        decide(&policy, &Call::new("Write", &access)).verdict
    };
    assert_eq!(decided(Mode::Default, Access::Write(inside.clone()), ""), Verdict::Allow);
    assert_eq!(decided(Mode::DontAsk, Access::Read(inside.clone()), ""), Verdict::Allow);
    // A path beside it is not free, and neither plan mode nor a deny rule is bypassed.
    let beside = PathBuf::from("/home/me/.claude/agent-memory/scouts/MEMORY.md");
    assert_ne!(decided(Mode::Default, Access::Write(beside), ""), Verdict::Allow);
    assert_eq!(decided(Mode::Plan, Access::Write(inside.clone()), ""), Verdict::Deny);
    assert_eq!(decided(Mode::Default, Access::Write(inside), "Write"), Verdict::Deny);
    // Nor may it keep files there that make a program run something.
    for name in [".git/config", ".claude/settings.json", ".mcp.json", "deep/.GIT/hooks/x"] {
        assert_ne!(decided(Mode::Default, Access::Write(memory.join(name)), ""), Verdict::Allow);
    }
}

#[test]
fn an_agent_that_works_apart_reaches_its_own_checkout_and_is_told_the_right_path() {
    // I-6
    let apart = Apart {
        root: "/p/.claude/worktrees/w".into(),
        checkouts: vec!["/p".into(), "/linked".into()],
        kept: vec![
            "/p".into(),
            "/gitdir".into(),
            "/p/.claude/worktrees/w/.git".into(),
            "/home/me/.gitconfig".into(),
        ],
        readable: vec!["/p/node_modules".into()],
        ..Apart::default()
    };
    let memory = PathBuf::from("/p/.claude/agent-memory/scout");
    let role = Role { apart: Some(apart), memory: Some(memory), ..Role::default() };
    let decided = |access: Access| {
        let policy = Policy {
            mode: Mode::BypassPermissions,
            role: role.clone(),
            allow: fixture::rules("Read Edit Write"),
            ..Policy::default()
        };
        decide(&policy, &Call::new("Write", &access))
    };
    let write = |path: &str| decided(Access::Write(path.into()));
    let read = |path: &str| decided(Access::Read(path.into()));
    let refused = write("/p/src/a.rs");
    assert_eq!(refused.verdict, Verdict::Deny);
    assert!(
        refused.reason.to_string().contains("/p/.claude/worktrees/w/src/a.rs"),
        "{}",
        refused.reason
    );
    for path in
        ["/p", "/p/.claude/settings.json", "/p/.claude/worktrees/other/a", "/p/node_modules/x"]
    {
        assert_eq!(write(path).verdict, Verdict::Deny, "{path}");
    }
    assert_eq!(read("/p/src/a.rs").verdict, Verdict::Deny);
    for path in [
        "/linked/a.txt",
        "/gitdir/hooks/post-commit",
        "/home/me/.gitconfig",
        "/p/.claude/worktrees/w/.git",
    ] {
        assert_eq!(write(path).verdict, Verdict::Deny, "{path}");
    }
    assert!(write("/linked/a.txt").reason.to_string().contains("/p/.claude/worktrees/w/a.txt"));
    for path in [
        "/p/.claude/skills/s/SKILL.md",
        "/p/.centurion/agents/a.md",
        "/linked/.claude/agents/a.md",
        "/p/node_modules/x/index.js",
        "/p/.claude/worktrees/w/a",
        // What is kept in no checkout may be looked at.
        "/gitdir/config",
        "/home/me/.gitconfig",
        "/elsewhere/a",
    ] {
        assert_eq!(read(path).verdict, Verdict::Allow, "{path}");
    }
    for path in
        ["/p/.claude/worktrees/w/src/a.rs", "/elsewhere/a", "/p/.claude/agent-memory/scout/M.md"]
    {
        assert_eq!(write(path).verdict, Verdict::Allow, "{path}");
    }
}

#[test]
fn a_repository_around_the_own_one_is_kept_and_the_worktree_in_it_is_not() {
    // I-6
    let apart = Apart {
        root: "/super/sub/.claude/worktrees/w".into(),
        checkouts: vec!["/super/sub".into()],
        kept: vec!["/super".into(), "/super/sub".into()],
        ..Apart::default()
    };
    let policy = Policy {
        mode: Mode::BypassPermissions,
        role: Role { apart: Some(apart), ..Role::default() },
        ..Policy::default()
    };
    let write = |path: &str| decide(&policy, &Call::new("Write", &Access::Write(path.into())));
    for path in ["/super/a", "/super/.git/config", "/super/other/a", "/super/sub/a"] {
        assert_eq!(write(path).verdict, Verdict::Deny, "{path}");
    }
    assert_eq!(write("/super/sub/.claude/worktrees/w/a").verdict, Verdict::Allow);
}

#[test]
fn of_checkouts_within_each_other_the_nearest_one_tells_the_right_path() {
    // I-6
    for checkouts in [["/p", "/p/lib"], ["/p/lib", "/p"]] {
        let apart = Apart {
            root: "/p/.claude/worktrees/w".into(),
            checkouts: checkouts.map(PathBuf::from).to_vec(),
            ..Apart::default()
        };
        let policy =
            Policy { role: Role { apart: Some(apart), ..Role::default() }, ..Policy::default() };
        let told = |path: &str| {
            let access = Access::Write(path.into());
            decide(&policy, &Call::new("Write", &access)).reason.to_string()
        };
        assert!(told("/p/lib/a.rs").contains("/p/.claude/worktrees/w/a.rs"), "{checkouts:?}");
        assert!(told("/p/src/a.rs").contains("/p/.claude/worktrees/w/src/a.rs"), "{checkouts:?}");
    }
}

#[test]
fn servers_of_an_agent_apart_are_asked_about_in_every_mode_where_that_is_wanted() {
    let decided = |asks_about_servers: bool, only_reads: bool, allow: &str| {
        let apart = Apart { root: "/w".into(), asks_about_servers, ..Apart::default() };
        let policy = Policy {
            mode: Mode::BypassPermissions,
            role: Role { apart: Some(apart), ..Role::default() },
            allow: fixture::rules(allow),
            ..Policy::default()
        };
        decide(&policy, &Call::new("mcp__git__push", &Access::External { only_reads })).verdict
    };
    assert_eq!(decided(false, false, "Read"), Verdict::Allow);
    assert_eq!(decided(true, false, "Read"), Verdict::Ask);
    assert_eq!(decided(true, true, "Read"), Verdict::Allow);
    assert_eq!(decided(true, false, "mcp__git__push"), Verdict::Allow);
}
