//! The anchors of rules, and readable paths outside the working directories.

use std::path::Path;

use crate::fixture::{self, call, policy, read, shell, write};
use centurion_permissions::{Apart, Call, Mode, Policy, Reason, Verdict, decide};

use Verdict::{Allow, Ask, Deny};

#[test]
fn rules_stay_where_they_are_when_the_shell_moves() {
    let mut policy = policy(Mode::Default);
    policy.deny = fixture::rules("Read(secrets/**) Read(.env)");
    policy.allow = fixture::rules("Edit(docs/**)");
    for (cwd, command) in [
        ("/home/ada/project", "cat secrets/key"),
        ("/home/ada/project/src", "cat ../secrets/key"),
        ("/home/ada/project/secrets", "cat key"),
        ("/home/ada/project/src", "cat .env"),
        ("/home/ada/project/src", "cat ../.env"),
        ("/", "cat home/ada/project/secrets/key"),
    ] {
        policy.cwd = cwd.into();
        assert_eq!(decide(&policy, &call(&shell(command))).verdict, Deny, "{command} in {cwd}");
    }
    for cwd in ["/home/ada/project", "/home/ada/project/src", "/srv"] {
        policy.cwd = cwd.into();
        for (access, expected) in [
            (read("/home/ada/project/secrets/key"), Deny),
            (read("/home/ada/project/.env"), Deny),
            (write("/home/ada/project/docs/a.md"), Allow),
            (write("/home/ada/project/src/docs/a.md"), Ask),
            (write("/srv/docs/a.md"), Ask),
        ] {
            let decision = decide(&policy, &call(&access));
            assert_eq!(decision.verdict, expected, "{access:?} in {cwd}: {}", decision.reason);
        }
    }
}

#[test]
fn rules_that_take_hold_in_every_worktree() {
    let mut policy = policy(Mode::BypassPermissions);
    policy.deny =
        fixture::rules("Read(/conf/key) Edit(//home/ada/project/lib/a.rs) Read(./x/y.pem)");
    policy.ask = fixture::rules("Edit(/docs/**)");
    let worktree = "/home/ada/project/.claude/worktrees/agent-1";
    for (access, expected) in [
        (read(&format!("{worktree}/conf/key")), Deny),
        (read(&format!("{worktree}/.claude/worktrees/b/conf/key")), Deny),
        (read(&format!("{worktree}/conf/other")), Allow),
        (write(&format!("{worktree}/lib/a.rs")), Deny),
        (write(&format!("{worktree}/docs/a.md")), Ask),
        (read(&format!("{worktree}/x/y.pem")), Deny),
        (shell(&format!("cat {worktree}/conf/key")), Deny),
        (shell("cat .claude/worktrees/agent-1/conf/key"), Deny),
        (shell("cat .claude/worktrees/*/conf/key"), Deny),
        (shell("cat .claude/worktrees/agent-?/conf/k*"), Deny),
        (shell("d=agent-1; cat .claude/worktrees/$d/conf/key"), Deny),
        (shell("cd .claude/worktrees/agent-1 && cat conf/key"), Deny),
        (shell("cat .claude/worktrees/a/.claude/worktrees/$(echo b)/conf/key"), Ask),
        (
            shell(
                "cat .claude/worktrees/a/.claude/worktrees/b/.claude/worktrees/$(echo c)/conf/key",
            ),
            Ask,
        ),
        (read("/home/ada/project/.claude/worktrees/.trash/agent-1-0/conf/key"), Deny),
        (shell("cat .claude/worktrees/.trash/agent-1-0/conf/key"), Deny),
        (shell("cat .claude/worktrees/.trash/$(echo a)/conf/key"), Ask),
        (shell("cat .claude/worktrees/.trash/*/conf/key"), Deny),
        (shell("cat .claude/worktrees/$(echo a)/conf/key"), Ask),
        (shell("cat .claude/$(echo worktrees)/agent-1/conf/key"), Ask),
        (shell("cat .claude/$(echo worktrees/agent-1)/conf/key"), Ask),
        (shell("cat .claude/work$(echo trees)/agent-1/conf/key"), Ask),
        (shell("cat .cl$(echo aude)/worktrees/agent-1/conf/key"), Ask),
        (shell("cat .claude/*/agent-1/conf/key"), Deny),
        (shell("cat .claude/w*/agent-1/conf/key"), Deny),
        (shell("cat \".claude/$(echo worktrees)/agent-1/conf/key\""), Ask),
        (shell("cat .claude/agents/$(echo a)/key"), Allow),
        (shell("grep -r a ."), Ask),
        (shell("grep -r a .claude/worktrees"), Ask),
        (shell("grep -r a .claude/worktrees/agent-1"), Ask),
        (shell("cat .claude/worktrees/agent-1/conf/other"), Allow),
    ] {
        let decision = decide(&policy, &call(&access));
        assert_eq!(decision.verdict, expected, "{access:?}: {}", decision.reason);
    }
    // The checkout is below the working directory of the session.
    let outer = Policy {
        project_root: "/home/ada".into(),
        directories: vec!["/home/ada".into()],
        cwd: "/home/ada".into(),
        deny: fixture::rules("Read(/project/conf/key)"),
        ..policy.clone()
    };
    for command in [
        "cat project/.claude/worktrees/$(echo a)/conf/key",
        "read i <<< a; cat project/.claude/worktrees/$i/conf/key",
    ] {
        assert_eq!(decide(&outer, &call(&shell(command))).verdict, Ask, "{command}");
    }
    // An allow rule does not reach into another agent's checkout.
    policy.mode = Mode::Default;
    policy.directories = vec!["/home/ada/project/.claude/worktrees/agent-2".into()];
    policy.allow = fixture::rules("Edit(/src/**)");
    let theirs = write(&format!("{worktree}/src/a.rs"));
    assert_eq!(decide(&policy, &call(&theirs)).verdict, Ask);
}

#[test]
fn rules_hold_in_the_copy_that_an_agent_works_in() {
    let mut policy = policy(Mode::Default);
    policy.deny = fixture::rules("Read(/conf/key) Edit(//home/ada/project/lib/a.rs)");
    policy.allow = fixture::rules("Edit(/src/**)");
    // Made by a hook, so its path tells nothing.
    let (root, checkout) = ("/srv/copies/7", "/home/ada/project");
    policy.role.apart =
        Some(Apart { root: root.into(), checkouts: vec![checkout.into()], ..Apart::default() });
    policy.directories = vec![root.into()];
    policy.cwd = root.into();
    for (access, expected) in [
        (read("/srv/copies/7/conf/key"), Deny),
        (write("/srv/copies/7/lib/a.rs"), Deny),
        (write("/srv/copies/7/src/a.rs"), Allow),
        (write("/srv/copies/7/docs/a.md"), Ask),
        (shell("cat conf/key"), Deny),
        (shell("cat conf/k*"), Deny),
        (shell("cat /srv/copies/7/conf/k*y"), Deny),
        (shell("cat conf/other"), Allow),
    ] {
        let decision = decide(&policy, &call(&access));
        assert_eq!(decision.verdict, expected, "{access:?}: {}", decision.reason);
    }
}

/// A policy with a readable path beside the working directories.
fn with_readable(mode: Mode) -> Policy {
    Policy { readable: vec!["/home/ada/.state/session".into()], ..policy(mode) }
}

#[test]
fn a_readable_place_is_read_and_never_written_by_default() {
    let output = "/home/ada/.state/session/tasks/b1.output";
    for (access, expected) in [
        (read(output), [Allow, Allow, Allow, Allow, Allow]),
        (read("/home/ada/.state/session"), [Allow, Allow, Allow, Allow, Allow]),
        (read("/home/ada/.state/session/../other"), [Ask, Ask, Ask, Deny, Allow]),
        (read("/home/ada/.state/session-2/x"), [Ask, Ask, Ask, Deny, Allow]),
        (write(output), [Ask, Ask, Deny, Deny, Allow]),
        (shell(&format!("tail -n 5 {output}")), [Allow, Allow, Allow, Allow, Allow]),
        (shell(&format!("grep --file={output} src/main.rs")), [Allow, Allow, Allow, Allow, Allow]),
        (shell("cat /home/ada/.state/session/../other"), [Ask, Ask, Deny, Deny, Allow]),
        (shell(&format!("touch {output}")), [Ask, Ask, Deny, Deny, Allow]),
        (shell(&format!("rm {output}")), [Ask, Ask, Deny, Deny, Allow]),
        (shell(&format!("cp {output} a")), [Ask, Ask, Deny, Deny, Allow]),
    ] {
        for (mode, expected) in Mode::ALL.into_iter().zip(expected) {
            let decision = decide(&with_readable(mode), &call(&access));
            assert_eq!(decision.verdict, expected, "{mode}: {access:?}: {}", decision.reason);
        }
    }
    for tool in ["Read", "Glob", "Grep"] {
        let access = read(output);
        let decision = decide(&with_readable(Mode::Default), &Call::new(tool, &access));
        assert_eq!((decision.verdict, decision.reason), (Allow, Reason::ReadOpen), "{tool}");
    }
}

#[test]
fn a_readable_place_yields_to_rules_and_is_no_place_to_work_in() {
    let output = read("/home/ada/.state/session/tasks/b1.output");
    let mut policy = with_readable(Mode::Default);
    policy.ask = fixture::rules("Read(~/.state/**)");
    assert_eq!(decide(&policy, &call(&output)).verdict, Ask);
    let command = shell("cat /home/ada/.state/session/tasks/b1.output");
    assert_eq!(decide(&policy, &call(&command)).verdict, Ask);
    policy.deny = fixture::rules("Read(~/.state/**)");
    assert_eq!(decide(&policy, &call(&output)).verdict, Deny);
    assert_eq!(decide(&policy, &call(&command)).verdict, Deny);

    let mut policy = with_readable(Mode::Default);
    policy.cwd = "/home/ada/.state/session".into();
    assert_eq!(decide(&policy, &call(&shell("git status"))).verdict, Ask);
}

#[test]
fn deny_rules_keep_single_paths_from_being_read() {
    let mut policy = policy(Mode::BypassPermissions);
    let secret = Path::new("/home/ada/project/secrets/key");
    assert!(!policy.denies_reading(secret));
    policy.deny = fixture::rules("Bash(cat *) Edit(secrets/**) Write(secrets/**) WebFetch");
    policy.ask = fixture::rules("Read(secrets/**)");
    policy.allow = fixture::rules("Read(secrets/**)");
    assert!(!policy.denies_reading(secret), "none of these rules denies reading it");
    for rule in ["Read(secrets/**)", "Grep(secrets/**)", "Glob(/secrets/*)", "Read(key)"] {
        policy.deny = fixture::rules(rule);
        assert!(policy.denies_reading(secret), "{rule}");
        assert!(!policy.denies_reading(Path::new("/home/ada/project/src/main.rs")), "{rule}");
    }
    // The directory itself, so that a search need not enter it; from any directory of the shell.
    policy.deny = fixture::rules("Read(secrets/**)");
    policy.cwd = "/home/ada/project/src".into();
    for (path, denied) in [
        ("/home/ada/project/secrets", true),
        ("/home/ada/project/a/b/secrets", true),
        ("/home/ada/project", false),
        ("/home/ada/project/secrets.md", false),
    ] {
        assert_eq!(policy.denies_reading(Path::new(path)), denied, "{path}");
    }
}

#[test]
fn what_hooks_and_plugins_are_made_of_is_protected() {
    let mut policy = policy(Mode::AcceptEdits);
    policy.allow = fixture::rules("Edit(**)");
    policy.protected =
        vec!["/home/ada/project/check.sh".into(), "/home/ada/project/my-plugin".into()];
    for (access, expected) in [
        (write("/home/ada/project/check.sh"), Ask),
        (write("/home/ada/project/my-plugin/hooks/hooks.json"), Ask),
        (write("/home/ada/project/check.sh.txt"), Allow),
        (shell("cp a.txt check.sh"), Ask),
        (shell("mv a.txt my-plugin/hooks/run.sh"), Ask),
        (shell("cp a.txt b.txt"), Allow),
    ] {
        let decision = decide(&policy, &call(&access));
        assert_eq!(decision.verdict, expected, "{access:?}: {}", decision.reason);
    }
    let access = write("/home/ada/project/check.sh");
    let quiet = Policy { mode: Mode::DontAsk, ..policy.clone() };
    assert_eq!(decide(&quiet, &call(&access)).verdict, Deny);
}
