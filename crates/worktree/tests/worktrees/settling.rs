//! How the work in a worktree ends: nothing is lost, and nothing is left without need.

use std::fs;

use centurion_worktree::{Mended, Operation, Settled, Standing};

use crate::support::{Scene, wish, write};

#[tokio::test]
async fn a_worktree_in_which_nothing_was_done_is_removed_with_its_branch() {
    // S-300, S-302
    let scene = Scene::new();
    let before = scene.state();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    // Looking leaves nothing behind.
    scene.git_in(&path, "status");
    scene.git_in(&path, "log -1");
    scene.git_in(&path, "diff");
    let settled = scene.settle(worktree).await;
    let Settled::Removed(trash) = settled else { panic!("{settled:?}") };
    assert!(!path.exists());
    trash.delete();
    assert_eq!(fs::read_dir(scene.path(".claude/worktrees/.trash")).unwrap().count(), 0);
    assert_eq!(scene.git("worktree list").lines().count(), 1);
    assert_eq!(scene.git("branch --list worktree-*"), "");
    assert!(!scene.path(".git/centurion/worktrees/one").exists());
    assert_eq!(scene.state(), before);
}

/// What can be in a worktree that is nowhere else, one kind at a time.
#[tokio::test]
async fn whatever_was_done_keeps_the_worktree() {
    // S-301, I-7
    type Do = fn(&Scene, &std::path::Path);
    let kinds: [(&str, Do); 15] = [
        ("changed", |_, path| write(path, "a.txt", "changed\n")),
        ("deleted", |_, path| fs::remove_file(path.join("a.txt")).unwrap()),
        ("mode", |_, path| {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(path.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("untracked", |_, path| write(path, "new/deep.txt", "new\n")),
        ("ignored", |_, path| write(path, "ignored/result.bin", "result\n")),
        ("ignored by a new rule", |_, path| write(path, "sub/.gitignore", "*\n")),
        ("hidden from git", |scene, path| {
            scene.git_in(path, "update-index --assume-unchanged a.txt");
            write(path, "a.txt", "hidden\n");
        }),
        ("skipped by git", |scene, path| {
            scene.git_in(path, "update-index --skip-worktree a.txt");
            write(path, "a.txt", "skipped\n");
        }),
        ("staged alone", |scene, path| {
            write(path, "a.txt", "staged\n");
            scene.git_in(path, "add a.txt");
            write(path, "a.txt", "one\ntwo\nthree\n");
        }),
        ("stashed", |scene, path| {
            write(path, "a.txt", "stashed\n");
            scene.git_in(path, "stash push -q");
        }),
        ("committed", |scene, path| {
            scene.git_in(path, "commit -q --allow-empty -m work");
        }),
        ("committed and reset", |scene, path| {
            write(path, "a.txt", "reset\n");
            scene.git_in(path, "commit -q -a -m work");
            scene.git_in(path, "reset -q --hard HEAD~1");
        }),
        ("detached", |scene, path| {
            scene.git_in(path, "checkout -q --detach");
            scene.git_in(path, "commit -q --allow-empty -m detached");
            scene.git_in(path, "checkout -q worktree-one");
        }),
        ("tagged", |scene, path| {
            scene.git_in(path, "tag mark HEAD~1");
        }),
        ("tagged and packed", |scene, path| {
            scene.git_in(path, "tag mark HEAD~1");
            scene.git_in(path, "pack-refs --all");
        }),
    ];
    for (kind, act) in kinds {
        let scene = Scene::new();
        let before = scene.state();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        act(&scene, &path);
        let settled = scene.settle(worktree).await;
        assert!(matches!(settled, Settled::Kept(_)), "{kind}: {settled:?}");
        assert!(path.is_dir(), "{kind}");
        // To the repository it is a worktree like any other now.
        let listed = scene.git("worktree list --porcelain");
        assert!(listed.contains("worktrees/one") && !listed.contains("locked"), "{kind}: {listed}");
        scene.git("fsck --strict");
        scene.git_in(&path, "status");
        assert_eq!(scene.state(), before, "{kind}");
    }
}

#[tokio::test]
async fn a_bisection_that_was_only_begun_keeps_the_worktree() {
    // I-7
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    scene.git_in(&worktree.record.path, "bisect start");
    let report = scene.keep(worktree).await;
    assert_eq!(report.operation, Some(Operation::Bisect));
}

#[tokio::test]
async fn commits_of_an_agents_own_worktrees_have_their_names() {
    // I-7
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let (path, inner) = (worktree.record.path.clone(), scene.root().join("inner"));
    scene.git_in(&path, &format!("worktree add -q --detach {}", inner.display()));
    scene.git_in(&inner, "commit -q --allow-empty -m inner");
    let tip = scene.git_in(&inner, "rev-parse HEAD");
    let report = scene.keep(worktree).await;
    let name = "refs/centurion/agents/one/worktrees/inner";
    assert!(report.saved.iter().any(|it| it == name), "{report:?}");
    assert_eq!(scene.git(&format!("rev-parse {name}")), tip);
}

#[tokio::test]
async fn a_ref_to_nothing_is_told_and_all_else_comes_home() {
    // I-7
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    scene.git_in(&path, "commit -q --allow-empty -m work");
    let own = worktree.private_repository().unwrap().path().to_owned();
    fs::write(own.join("refs/heads/odd"), format!("{}\n", "1".repeat(40))).unwrap();
    let report = scene.keep(worktree).await;
    assert_eq!(scene.git("log -1 --format=%s worktree-one"), "work");
    assert_eq!(report.notes, ["1 of its refs name commits that it does not have"]);
}

#[tokio::test]
async fn what_was_committed_is_on_the_branch_and_the_report_says_how_it_stands() {
    // S-301, S-306
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "one\nTWO\nthree\nfour\n");
    write(&path, "new.txt", "new\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m work");
    let tip = scene.git_in(&path, "rev-parse HEAD");
    write(&path, "later.txt", "later\n");
    scene.write("a.txt", "one\n2\nthree\n");
    scene.commit("meanwhile");
    let report = scene.keep(worktree).await;
    assert_eq!(report.head, tip);
    assert_eq!(report.base, scene.git("rev-parse HEAD~1"));
    assert_eq!((report.ahead, report.behind, report.uncommitted), (1, 1, 1));
    assert_eq!(scene.git("rev-parse worktree-one"), tip);
    let files: Vec<_> =
        report.files.iter().map(|file| (file.path.as_str(), file.lines.unwrap())).collect();
    assert_eq!(files, [("a.txt", (2, 1)), ("later.txt", (1, 0)), ("new.txt", (1, 0))]);
    let conflicts: Vec<_> = report.conflicts().collect();
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].with, "main");
    assert_eq!(conflicts[0].conflicts, ["a.txt"]);
    // The checkout continues as the agent left it.
    assert_eq!(scene.git_in(&path, "status --porcelain"), "?? later.txt");
    assert_eq!(scene.git_in(&path, "branch --show-current"), "worktree-one");
    assert_eq!(scene.git_in(&path, "log --format=%s -1"), "work");
    // And what it had not committed is in the repository, too.
    let saved = scene.git("show refs/centurion/agents/one/uncommitted:later.txt");
    assert_eq!(saved, "later");
}

#[tokio::test]
async fn what_is_not_on_the_branch_can_be_found_in_the_repository() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let git = |args: &str| scene.git_in(&path, args);
    let commit = |name: &str| {
        write(&path, name, name);
        git("add -A");
        git(&format!("commit -q -m {name}"));
    };
    commit("amended");
    git("commit -q --amend -m kept");
    commit("reset-away");
    git("reset -q --hard HEAD~1");
    for stash in ["stash-one", "stash-two"] {
        write(&path, "a.txt", stash);
        git("stash push -q");
    }
    git("switch -q -c side");
    commit("side");
    git("tag v1");
    git("checkout -q --detach");
    commit("detached");
    let report = scene.keep(worktree).await;
    scene.git("gc -q --prune=now");
    let show = |what: &str| scene.git(&format!("show refs/centurion/agents/one/{what}"));
    assert_eq!(show("refs/heads/side:side"), "side");
    assert_eq!(show("refs/tags/v1:side"), "side");
    assert_eq!(show("HEAD:detached"), "detached");
    assert_eq!(show("stash/0:a.txt"), "stash-two");
    assert_eq!(show("stash/1:a.txt"), "stash-one");
    let logged: Vec<_> = report.saved.iter().filter(|name| name.contains("/log/")).collect();
    let subjects: Vec<_> =
        logged.iter().map(|name| scene.git(&format!("log -1 --format=%s {name}"))).collect();
    assert!(subjects.contains(&"amended".to_owned()), "{subjects:?}");
    assert!(subjects.contains(&"reset-away".to_owned()), "{subjects:?}");
    // No tag and no branch of the repository's own was made.
    assert_eq!(scene.git("tag"), "");
    assert_eq!(
        scene.git("branch --format=%(refname:short)").lines().filter(|it| *it == "side").count(),
        0
    );
    assert_eq!(
        scene.git_in(&path, "rev-parse HEAD"),
        scene.git("rev-parse refs/centurion/agents/one/HEAD")
    );
}

#[tokio::test]
async fn an_unfinished_merge_stays_as_it_is() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    scene.git_in(&path, "switch -q -c other HEAD~1");
    write(&path, "src/c.txt", "other\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m other");
    assert!(!scene.try_git_in(&path, "merge worktree-one").1);
    let report = scene.keep(worktree).await;
    assert_eq!(report.operation, Some(Operation::Merge));
    assert!(
        scene.git_in(&path, "status").contains("unmerged paths")
            || scene.git_in(&path, "status").contains("Unmerged paths")
    );
    write(&path, "src/c.txt", "both\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m merged");
    // Once it is finished, it comes home.
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    assert_eq!(mended.len(), 1);
    let Ok(Mended::Kept(report)) = &mended[0].1 else { panic!("{mended:?}") };
    assert_eq!(report.operation, None);
    assert_eq!(scene.git("show refs/centurion/agents/one/refs/heads/other:src/c.txt"), "both");
}

#[tokio::test]
async fn an_agent_continues_where_it_was_and_so_does_what_a_person_did_meanwhile() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let commit = |name: &str| {
        write(&path, name, name);
        scene.git_in(&path, "add -A");
        scene.git_in(&path, &format!("commit -q -m {name}"));
    };
    commit("agent");
    write(&path, "staged", "staged");
    scene.git_in(&path, "add staged");
    scene.keep(worktree).await;
    assert_eq!(scene.git_in(&path, "status --porcelain"), "A  staged");
    commit("person");
    scene.write("main.txt", "main\n");
    scene.commit("main-moves");
    let again = scene.create("one").await;
    assert_eq!(scene.git_in(&path, "log --format=%s -2"), "person\nagent");
    // It sees where the others are.
    assert_eq!(scene.git_in(&path, "rev-parse main"), scene.head());
    commit("again");
    let report = scene.keep(again).await;
    assert_eq!(scene.git("log --format=%s -3 worktree-one"), "again\nperson\nagent");
    assert_eq!((report.ahead, report.behind), (3, 1));
}

#[tokio::test]
async fn a_branch_that_another_moved_is_left_where_it_is() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "agent\n");
    scene.git_in(&path, "commit -q -a -m agent");
    let tip = scene.git_in(&path, "rev-parse HEAD");
    scene.git("update-ref refs/heads/worktree-one HEAD~1");
    scene.keep(worktree).await;
    assert_eq!(scene.git("rev-parse worktree-one"), scene.git("rev-parse HEAD~1"));
    assert_eq!(scene.git("rev-parse refs/centurion/agents/one/branch"), tip);
    assert_eq!(scene.git_in(&path, "rev-parse HEAD"), tip);
}

#[tokio::test]
async fn a_worktree_that_another_deleted_still_has_its_history() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "agent\n");
    scene.git_in(&path, "commit -q -a -m agent");
    let tip = scene.git_in(&path, "rev-parse HEAD");
    fs::remove_dir_all(&path).unwrap();
    let report = scene.keep(worktree).await;
    assert_eq!(report.head, tip);
    assert_eq!(scene.git("rev-parse worktree-one"), tip);
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    assert_eq!(listed[0].standing, Standing::Gone);
}

#[tokio::test]
async fn hostile_objects_are_not_taken_into_the_repository() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let private = worktree.private_repository().unwrap();
    write(&path, "a.txt", "agent\n");
    scene.git_in(&path, "commit -q -a -m agent");
    // The content of a blob is exchanged below git.
    let blob = scene.git_in(&path, "rev-parse HEAD:a.txt");
    let (start, rest) = blob.split_at(2);
    let other = scene.git_in(&path, "rev-parse HEAD^{tree}");
    let (of, name) = other.split_at(2);
    let objects = private.path().join("objects");
    fs::remove_file(objects.join(start).join(rest)).unwrap();
    fs::copy(objects.join(of).join(name), objects.join(start).join(rest)).unwrap();
    let before = scene.state();
    let refused = scene.worktrees.settle(worktree, Some(&scene.top)).await.unwrap_err();
    assert!(refused.to_string().contains("stays there"), "{refused}");
    assert_eq!(scene.state(), before);
    scene.git("fsck --strict");
    assert_eq!(scene.git("rev-parse worktree-one"), scene.head());
    // It is told of until a person has looked after it.
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    assert_eq!(listed[0].standing, Standing::Left);
}

#[tokio::test]
async fn worktrees_of_one_session_are_held_against_each_other() {
    let scene = Scene::new();
    let mut reports = Vec::new();
    for (name, text) in [("one", "ONE\ntwo\nthree\n"), ("two", "EIN\ntwo\nthree\n")] {
        let worktree = scene.create(name).await;
        write(&worktree.record.path, "a.txt", text);
        scene.git_in(&worktree.record.path, "commit -q -a -m work");
        reports.push(scene.keep(worktree).await);
    }
    assert!(reports[0].conflicts().next().is_none());
    let conflict = reports[1].conflicts().next().unwrap();
    assert_eq!(conflict.with, "worktree-one");
    assert_eq!(conflict.conflicts, ["a.txt"]);
    // Those of another session are none of its business.
    let mut other = wish("three");
    other.owner.session = Some("s2".to_owned());
    let worktree = scene.worktrees.create(&scene.top, &other).await.unwrap();
    write(&worktree.record.path, "a.txt", "UN\n");
    scene.git_in(&worktree.record.path, "commit -q -a -m work");
    assert_eq!(scene.keep(worktree).await.merges.len(), 1);
}

#[tokio::test]
async fn collecting_garbage_in_between_harms_nothing() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    // The commit that it began at is on no branch of the caller's any more.
    scene.git("reset -q --hard HEAD~1");
    scene.git("reflog expire --expire=now --all");
    scene.git("gc -q --prune=now");
    scene.git("worktree prune");
    write(&path, "a.txt", "agent\n");
    scene.git_in(&path, "commit -q -a -m agent");
    scene.git("gc -q --prune=now");
    scene.keep(worktree).await;
    scene.git("gc -q --prune=now");
    scene.git("fsck --strict");
    assert_eq!(scene.git("log --format=%s worktree-one"), "agent\nsecond\nfirst");
}

#[tokio::test]
async fn links_and_copies_that_git_ignores_are_in_no_ones_way() {
    let scene = Scene::new();
    scene.write("node_modules/x", "x");
    scene.write(".env", "SECRET=1\n");
    scene.write("other.cfg", "kept by hand");
    scene.write(".worktreeinclude", ".env\n");
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "changed\n");
    let report = scene.keep(worktree).await;
    assert_eq!(report.uncommitted, 1);
    let saved = scene.git("ls-tree --name-only refs/centurion/agents/one/uncommitted");
    assert!(!saved.contains("node_modules") && !saved.contains(".env"), "{saved}");
}

#[tokio::test]
async fn mending_the_repository_meanwhile_loses_nothing() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "agent\n");
    scene.git_in(&path, "commit -q -a -m agent");
    scene.git_in(&path, "branch side");
    // As a person may do at any time: it leads the worktree's git to the repository.
    scene.git("worktree repair");
    let report = scene.keep(worktree).await;
    assert_eq!(report.ahead, 1);
    assert_eq!(scene.git("log -1 --format=%s worktree-one"), "agent");
    assert_eq!(scene.git("log -1 --format=%s refs/centurion/agents/one/refs/heads/side"), "agent");
}

#[tokio::test]
async fn a_configuration_that_hides_changes_hides_none() {
    for setting in [
        "core.ignoreStat true",
        "core.trustctime false",
        "core.checkStat minimal",
        "core.fileMode false",
    ] {
        let scene = Scene::new();
        scene.git(&format!("config {setting}"));
        let worktree = scene.create("one").await;
        write(&worktree.record.path, "a.txt", "one\ntwo\nTHREE\n");
        let settled = scene.settle(worktree).await;
        assert!(matches!(settled, Settled::Kept(_)), "{setting}: {settled:?}");
    }
}

#[tokio::test]
async fn links_in_an_agents_repository_lead_us_nowhere() {
    // I-6
    let scene = Scene::new();
    for attack in ["objects", "index"] {
        let worktree = scene.create(attack).await;
        let path = worktree.record.path.clone();
        let own = worktree.private_repository().unwrap().path().to_owned();
        write(&path, "work.txt", "work\n");
        if attack == "objects" {
            for number in 0..=255 {
                let link = own.join(format!("objects/{number:02x}"));
                let _ = fs::remove_dir_all(&link);
                std::os::unix::fs::symlink(&scene.top, link).unwrap();
            }
        } else {
            fs::remove_file(own.join("index")).unwrap();
            std::os::unix::fs::symlink(scene.path(".git/index"), own.join("index")).unwrap();
            fs::write(own.join("sharedindex.0"), "").unwrap();
        }
        let (before, index) = (scene.state(), fs::read(scene.path(".git/index")).unwrap());
        let refused = scene.worktrees.settle(worktree, Some(&scene.top)).await.unwrap_err();
        assert!(refused.to_string().contains("links or pipes"), "{refused}");
        assert_eq!(scene.state(), before, "{attack}");
        assert_eq!(fs::read(scene.path(".git/index")).unwrap(), index, "{attack}");
        assert_eq!(fs::read_to_string(path.join("work.txt")).unwrap(), "work\n");
    }
}

#[tokio::test]
async fn no_record_and_no_link_has_us_delete_what_is_not_ours() {
    let scene = Scene::new();
    let victim = scene.root().join("victim");
    fs::create_dir_all(victim.join("d")).unwrap();
    let kept = scene.path(".git/centurion/worktrees/evil");
    fs::create_dir_all(&kept).unwrap();
    let forged = |path: &std::path::Path| {
        format!(
            r#"{{"slug":"evil","path":{:?},"branch":"worktree-evil","base":"0000","caller":"/","made":1,"stage":"removing","isPrivate":false}}"#,
            path.display().to_string()
        )
    };
    let beside = scene.root().join("other/.claude/worktrees/evil");
    fs::create_dir_all(&beside).unwrap();
    fs::write(beside.join("precious"), "precious").unwrap();
    for path in [&victim, &beside] {
        fs::write(kept.join("record.json"), forged(path)).unwrap();
        scene.worktrees.mend(&scene.top).await.unwrap();
        assert!(victim.join("d").is_dir() && beside.join("precious").exists());
    }
    fs::remove_dir_all(scene.path(".git/centurion")).unwrap();
    // A directory that a repository leads elsewhere.
    fs::create_dir_all(scene.path(".claude/worktrees")).unwrap();
    std::os::unix::fs::symlink(&victim, scene.path(".claude/worktrees/.trash")).unwrap();
    let from = scene.worktrees.checkout(&scene.top).await.unwrap();
    scene.worktrees.trash(&from).delete();
    assert!(victim.join("d").is_dir());
    let worktree = scene.create("one").await;
    scene.worktrees.settle(worktree, None).await.unwrap();
    assert!(victim.join("d").is_dir());
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
}
