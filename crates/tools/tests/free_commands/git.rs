//! The model's git commands: programs that a hostile repository configures never run unasked.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use centurion_permissions::{Mode, Policy};

use crate::lines::{effort, lines, options};
use crate::scratch::{DENIED, OUTSIDE, Scratch, Watch, is_allowed, write};

const SUBCOMMANDS: [&str; 30] = [
    "blame",
    "branch",
    "cat-file",
    "check-attr",
    "config",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "st",
    "stash",
    "status",
    "submodule",
    "tag",
    "worktree",
];

/// Words with a meaning for git.
const WORDS: [&str; 23] = [
    "HEAD",
    "HEAD~1",
    "main",
    "--",
    "a.txt",
    "secret.env",
    "HEAD:secret.env",
    "list",
    "-v",
    "-p",
    "--stat",
    "'--format=%G?'",
    "--format=%+GK",
    "'--format=%(signature)'",
    "'--format=% GS'",
    "--show-signature",
    "--pretty=%h",
    "--output=made",
    "--no-index",
    "--contents=out-file",
    "-Oout-file",
    "-Oevil",
    "--dirty",
];

/// Options before a subcommand, some of which load another configuration.
const BEFORE: [&str; 5] = ["", "--no-pager ", "-C dir ", "-c core.pager=evil ", "--git-dir=.git "];

/// Lines of git: every subcommand with its own options.
fn git_lines(count: usize) -> Vec<String> {
    let mut all = Vec::new();
    for (index, subcommand) in SUBCOMMANDS.into_iter().enumerate() {
        let options = options("git", &[subcommand, "-h"]);
        for (number, line) in lines(subcommand, &options, &WORDS, count).into_iter().enumerate() {
            let before =
                if number % 4 == 0 { BEFORE[(index + number / 4) % BEFORE.len()] } else { "" };
            all.push(format!("git {before}{line}"));
        }
    }
    all
}

/// Runs the real git to prepare something.
fn prepare(place: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "gc.auto=0"])
        .args(arguments)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(place)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// A scratch directory with a repository of a few commits, one of which claims to be signed.
fn repository() -> Scratch {
    let scratch = Scratch::new();
    let work = &scratch.work;
    prepare(work, &["init", "--quiet", "--initial-branch=main"]);
    prepare(work, &["add", "a.txt", "b.txt", "secret.env", "dir", "out-file"]);
    prepare(work, &["commit", "--quiet", "-m", "one"]);
    write(&work.join("a.txt"), "alpha\ndelta\n");
    prepare(work, &["commit", "--quiet", "-am", "two"]);
    prepare(work, &["tag", "v1"]);
    write(&work.join("b.txt"), "changed\n");
    write(&work.join("secret.env"), &format!("{DENIED} three\n"));
    let signed = "tree $(git rev-parse HEAD^{tree})\nparent $(git rev-parse HEAD)\n\
                  author Ada <a@b> 1700000000 +0000\ncommitter Ada <a@b> 1700000000 +0000\n\
                  gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n";
    let line =
        format!("git update-ref HEAD $(git hash-object -t commit -w --stdin <<X\n{signed}X\n)");
    let status = Command::new("bash").args(["-c", &line]).current_dir(work).status().unwrap();
    assert!(status.success());
    scratch
}

/// Makes git start `evil` in every way that a configuration can ask for it.
fn poison(scratch: &Scratch, repository: &Path) {
    let evil = scratch.root.join("helpers/evil");
    let evil = evil.to_str().unwrap();
    let hooks = repository.join("hooks-of-mine");
    for hook in ["post-index-change", "post-checkout", "reference-transaction", "pre-auto-gc"] {
        write(&hooks.join(hook), &format!("#!/bin/sh\n{evil} hook\n"));
        fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let more = repository.join("more");
    write(&more, &format!("[pager]\n\tlog = {evil}\n[trailer \"x\"]\n\tcommand = {evil}\n"));
    let settings = [
        ("core.fsmonitor", evil.to_owned()),
        ("core.hooksPath", hooks.display().to_string()),
        ("core.pager", evil.to_owned()),
        ("core.editor", evil.to_owned()),
        ("core.sshCommand", evil.to_owned()),
        ("core.askPass", evil.to_owned()),
        ("core.gitProxy", evil.to_owned()),
        ("core.alternateRefsCommand", evil.to_owned()),
        ("pager.status", evil.to_owned()),
        ("pager.diff", evil.to_owned()),
        ("diff.external", evil.to_owned()),
        ("diff.x.textconv", evil.to_owned()),
        ("diff.x.command", evil.to_owned()),
        ("filter.x.clean", evil.to_owned()),
        ("filter.x.smudge", evil.to_owned()),
        ("filter.y.process", evil.to_owned()),
        ("gpg.program", evil.to_owned()),
        ("gpg.ssh.program", evil.to_owned()),
        ("log.showSignature", "true".to_owned()),
        ("credential.helper", evil.to_owned()),
        ("interactive.diffFilter", evil.to_owned()),
        ("alias.st", format!("!{evil}")),
        ("remote.origin.url", format!("ext::{evil}")),
        ("remote.origin.promisor", "true".to_owned()),
        ("remote.origin.uploadpack", evil.to_owned()),
        ("protocol.ext.allow", "always".to_owned()),
        ("extensions.partialClone", "origin".to_owned()),
        ("include.path", more.display().to_string()),
        ("includeIf.gitdir:/**.path", more.display().to_string()),
    ];
    for (key, value) in &settings {
        prepare(&scratch.root, &["config", "--file", path(&repository.join("config")), key, value]);
    }
    write(&repository.join("info/attributes"), "*.txt diff=x filter=x\n*.env filter=y\n");
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn trusting(scratch: &Scratch, denies: bool) -> Policy {
    let policy = scratch.policy(Mode::Default, denies);
    Policy { trusted_repository: Some(scratch.work.clone()), ..policy }
}

/// D-77: without trust, no git command is free, and so no program that the repository names runs.
#[test]
fn git_runs_nothing_of_an_untrusted_repository_unasked() {
    let scratch = repository();
    poison(&scratch, &scratch.work.join(".git"));
    let policy = scratch.policy(Mode::Default, false);
    let mut asked = 0;
    for line in git_lines(20 * effort()) {
        if is_allowed(&policy, &line) {
            scratch.run_line(&line);
            assert_eq!(scratch.started(), None, "{line} ran unasked");
        } else {
            asked += 1;
        }
    }
    assert!(asked > 5_000, "only {asked} lines");
    // The repository is as hostile as it is meant to be.
    for line in ["git status", "git diff", "git log", "git st", "git log -p", "git show"] {
        scratch.run_line(line);
        assert!(scratch.started().is_some(), "{line} started nothing: the test proves nothing");
        fs::remove_file(scratch.trace()).unwrap();
    }
}

/// In a trusted repository, free git commands change nothing but the index, start no helpers, print
/// nothing from outside and nothing that a rule denies.
#[test]
fn free_git_commands_only_read_the_trusted_repository() {
    let scratch = repository();
    let (open, guarded) = (trusting(&scratch, false), trusting(&scratch, true));
    let outside =
        Watch::new(&[scratch.root.join("outside"), scratch.root.join("outside/secret.txt")]);
    let (mut ran, mut wrong) = (0, Vec::new());
    let mut left = std::collections::HashMap::new();
    for (index, line) in git_lines(60 * effort()).into_iter().enumerate() {
        let denies = index % 2 == 0;
        let subcommand = line.split(' ').nth(1).unwrap().to_owned();
        let left = left.entry(subcommand).or_insert(60 * effort());
        if *left == 0 || !is_allowed(if denies { &guarded } else { &open }, &line) {
            continue;
        }
        *left -= 1;
        ran += 1;
        let state = || {
            let mut state = scratch.state();
            state.retain(|path, _| {
                !path.ends_with(".git") && path.file_name().is_none_or(|name| name != "index")
            });
            state
        };
        let before = state();
        outside.was_opened();
        let output = scratch.run_line(&line);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let started = scratch.started();
        let leaks = text.contains(OUTSIDE) || (denies && text.contains(DENIED));
        if started.is_some() || outside.was_opened() || leaks || state() != before {
            wrong.push(format!("{line}: started {started:?}, printed {text}"));
            _ = fs::remove_file(scratch.trace());
        }
    }
    assert!(wrong.is_empty(), "{} of {ran} are not harmless:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ran > 250, "only {ran} commands ran: the test proves little");
}

/// Another repository below a trusted one is not trusted: a clone, a submodule, or files that look like
/// a bare repository.
#[test]
fn a_repository_inside_a_trusted_one_is_asked_about() {
    let scratch = repository();
    let work = &scratch.work;
    prepare(work, &["init", "--quiet", "--bare", "fake"]);
    prepare(work, &["init", "--quiet", "sub"]);
    fs::create_dir_all(work.join("fake/deep")).unwrap();
    fs::create_dir_all(work.join("elsewhere/deep")).unwrap();
    write(&work.join("elsewhere/.git"), "gitdir: ../fake\n");
    poison(&scratch, &work.join("fake"));
    prepare(work, &["config", "--file", path(&work.join("fake/config")), "core.bare", "false"]);
    prepare(
        work,
        &["config", "--file", path(&work.join("fake/config")), "core.worktree", path(work)],
    );
    let policy = trusting(&scratch, false);
    for line in [
        "cd fake && git status",
        "cd fake/deep && git status",
        "cd fake; git log",
        "git -C fake status",
        "git -C sub status",
        "cd sub && git diff",
        "cd elsewhere && git status",
        "cd elsewhere/deep && git log",
        "cd out-dir && git status",
    ] {
        assert!(!is_allowed(&policy, line), "{line}");
    }
    for line in ["git status", "cd dir && git status", "cd dir/sub && git log --oneline"] {
        assert!(is_allowed(&policy, line), "{line}");
    }
    scratch.run_line("cd fake && git status");
    assert!(scratch.started().is_some(), "the fake repository started nothing");
}
