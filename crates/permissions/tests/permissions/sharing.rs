//! Commands that change a checkout in which others work.
#![expect(clippy::unwrap_used, reason = "a scratch directory that cannot be made shows nothing")]

use std::fs;

use centurion_permissions::{Call, Mode, Reason, Sharer, decide};

use crate::disk::Disk;
use crate::fixture::{policy, rules, shell};

/// The others whose files a command changes, for a command in a checkout with a worktree in it and another repository
/// beside it.
fn asked_for(command: &str, who: &[&str]) -> Option<String> {
    let scratch = tempfile::tempdir().unwrap();
    let top = scratch.path().canonicalize().unwrap();
    let place = |who: &str| match who {
        "main" => top.join("main"),
        "apart" => top.join("main/.claude/worktrees/apart"),
        _ => top.join("else"),
    };
    for who in ["main", "apart", "else"] {
        fs::create_dir_all(place(who).join("sub")).unwrap();
        fs::write(place(who).join(".git"), "").unwrap();
    }
    std::os::unix::fs::symlink(place("apart"), top.join("main/link")).unwrap();
    let mut policy = policy(Mode::Default);
    policy.allow = rules("Bash");
    policy.cwd = place("main");
    policy.sharers =
        who.iter().map(|who| Sharer { checkout: place(who), who: (*who).to_owned() }).collect();
    let access = shell(&command.replace("TOP", &top.display().to_string()));
    let decision = decide(&policy, &Call { links: &Disk, ..Call::new("Bash", &access) });
    match decision.reason {
        Reason::SharedTree { others, .. } => Some(others),
        _ => None,
    }
}

#[test]
fn a_command_is_asked_about_for_those_in_the_checkout_that_it_changes() {
    for (command, others, expected) in [
        ("git reset --hard", ["main", "apart"], "main"),
        ("cd sub && git stash", ["main", "apart"], "main"),
        ("sh -c 'git switch -c x'", ["main", "apart"], "main"),
        ("timeout 5 git -C sub rm -r x", ["main", "apart"], "main"),
        ("git -C .claude/worktrees/apart reset --hard", ["else", "apart"], "apart"),
        ("git -C .claude/worktrees -C apart/sub reset --hard", ["else", "apart"], "apart"),
        ("cd link/sub; git apply p", ["else", "apart"], "apart"),
        ("git -C TOP/else checkout .", ["main", "else"], "else"),
        // An unknown path may be any of them.
        ("git -C \"$PLACE\" reset --hard", ["apart", "else"], "apart"),
        ("git -C .claude/$(echo worktrees)/apart reset --hard", ["else", "apart"], "else"),
        ("cd $(pwd)/x && git stash", ["apart", "else"], "apart"),
        ("git $(echo reset) --hard", ["main", "else"], "main"),
        ("git \"$@\"", ["main", "else"], "main"),
        ("$(which git) reset --hard", ["main", "else"], "main"),
        ("git restore --staged $OPTIONS", ["main", "else"], "main"),
        ("git co main", ["main", "else"], "main"),
        ("git --work-tree=/x checkout .", ["else", "apart"], "else"),
        ("GIT_WORK_TREE=/x git checkout .", ["else", "apart"], "else"),
        ("git worktree remove -f -f apart", ["else", "apart"], "else"),
    ] {
        assert_eq!(asked_for(command, &others).as_deref(), Some(expected), "{command}");
    }
    for (command, others) in [
        ("git -C TOP/else reset --hard", "main"),
        ("cd TOP/else && git reset --hard", "main"),
        ("git -C .claude/worktrees/apart reset --hard", "main"),
        ("git reset --hard", "apart"),
        ("git reset -q", "main"),
        ("git status; git stash list", "main"),
        ("git commit -m \"$MESSAGE\"", "main"),
        ("git log \"$RANGE\"", "main"),
    ] {
        assert_eq!(asked_for(command, &[others]), None, "{command}");
    }
}
