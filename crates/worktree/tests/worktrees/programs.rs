//! No program that a repository or an agent names is run by our own git.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use centurion_worktree::merge::{How, Merge};
use centurion_worktree::{KeptError, Settled, Unsaved};

use crate::support::{Scene, write};

/// A script that leaves a mark where it is run.
pub(crate) fn canary(scene: &Scene) -> String {
    let path = scene.root().join("canary.sh");
    let mark = scene.root().join("MARK");
    fs::write(&path, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn hooks(directory: &std::path::Path, canary: &str) {
    fs::create_dir_all(directory).unwrap();
    let names = [
        "post-checkout",
        "pre-commit",
        "commit-msg",
        "post-merge",
        "reference-transaction",
        "post-index-change",
        "pre-auto-gc",
        "prepare-commit-msg",
        "post-commit",
        "pre-merge-commit",
    ];
    for name in names {
        let hook = directory.join(name);
        let _ = fs::remove_file(&hook);
        fs::copy(canary, hook).unwrap();
    }
}

/// All that a configuration can name, in one text.
pub(crate) fn configuration(canary: &str) -> String {
    format!(
        "[core]\n\tfsmonitor = {canary}\n\tpager = {canary}\n\teditor = {canary}\n\tsshCommand = {canary}\n\taskPass = {canary}\n\
         \talternateRefsCommand = {canary}\n\
         [filter \"x=y\"]\n\tclean = {canary}\n\tsmudge = {canary}\n\trequired = true\n\
         [filter \"p\"]\n\tprocess = {canary}\n\trequired = true\n\
         [merge \"m\"]\n\tdriver = {canary}\n\
         [diff \"d\"]\n\tcommand = {canary}\n\ttextconv = {canary}\n\
         [diff]\n\texternal = {canary}\n\
         [gpg]\n\tprogram = {canary}\n[commit]\n\tgpgSign = true\n\
         [credential]\n\thelper = {canary}\n[uploadpack]\n\tpackObjectsHook = {canary}\n\
         [interactive]\n\tdiffFilter = {canary}\n[log]\n\tshowSignature = true\n"
    )
}

pub(crate) const ATTRIBUTES: &str = "*.txt filter=x=y merge=m diff=d\n*.p filter=p\n";

#[tokio::test]
async fn nothing_that_is_configured_runs_whatever_is_done_with_worktrees() {
    // D-77
    let scene = Scene::new();
    let canary = canary(&scene);
    let mark = scene.root().join("MARK");
    scene.write(".gitattributes", ATTRIBUTES);
    scene.write("file.p", "p\n");
    scene.commit("attributes");
    let config = scene.path(".git/config");
    let before = fs::read_to_string(&config).unwrap();
    fs::write(&config, before + &configuration(&canary)).unwrap();
    hooks(&scene.path(".git/hooks"), &canary);
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    assert!(!mark.exists(), "made: {}", fs::read_to_string(&mark).unwrap());
    assert_eq!(fs::read_to_string(path.join("file.p")).unwrap(), "p\n");
    // The agent brings more of it, where nothing holds it back.
    let private = worktree.private_repository().unwrap().path().to_owned();
    let own = fs::read_to_string(private.join("config")).unwrap();
    fs::write(private.join("config"), own + &configuration(&canary)).unwrap();
    hooks(&private.join("hooks"), &canary);
    write(&private, "info/attributes", ATTRIBUTES);
    write(&path, "a.txt", "one\ntwo\nthree, by the agent\n");
    write(&path, "b.p", "untracked\n");
    scene.worktrees.work(&worktree).await.unwrap();
    let settled = scene.settle(worktree).await;
    assert!(matches!(settled, Settled::Kept(_)), "{settled:?}");
    assert!(!mark.exists(), "settled: {}", fs::read_to_string(&mark).unwrap());
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    for how in [How::Squash, How::Merge] {
        let _ = scene.worktrees.merge(&scene.top, &listed[0], &Merge::any(&how, "merged")).await;
        assert!(!mark.exists(), "{how:?}: {}", fs::read_to_string(&mark).unwrap());
    }
    assert!(fs::read_to_string(scene.path("a.txt")).unwrap().contains("by the agent"));
    // The ordinary git would have run them.
    scene.try_git_in(&scene.top, "status");
    scene.write("a.txt", "again\n");
    scene.try_git_in(&scene.top, "add a.txt");
    assert!(mark.exists());
}

#[tokio::test]
async fn what_an_agent_puts_in_gits_way_keeps_nothing_waiting() {
    let scene = Scene::new();
    for name in ["HEAD", "packed-refs", "logs/HEAD", "index"] {
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        let private = worktree.private_repository().unwrap().path().to_owned();
        write(&path, "work.txt", "work\n");
        let file = private.join(name);
        let _ = fs::remove_file(&file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("/dev/null", &file).unwrap();
        // Whatever is said of it, the work is still there.
        let settled = scene.worktrees.settle(worktree, Some(&scene.top)).await;
        assert!(!matches!(settled, Ok(Settled::Removed(_))), "{name}: {settled:?}");
        assert_eq!(fs::read_to_string(path.join("work.txt")).unwrap(), "work\n", "{name}");
        scene.git("fsck --strict");
        fs::remove_dir_all(scene.path(".git/centurion")).unwrap();
        fs::remove_dir_all(&path).unwrap();
        fs::remove_dir_all(scene.path(".git/worktrees")).unwrap();
        scene.git("update-ref -d refs/heads/worktree-one");
    }
}

#[tokio::test]
async fn repositories_within_a_worktree_run_nothing_and_are_not_overlooked() {
    // D-77, I-7
    let scene = Scene::new();
    let canary = canary(&scene);
    let mark = scene.root().join("MARK");
    let library = scene.root().join("library");
    fs::create_dir(&library).unwrap();
    scene.git_in(&library, "init -q -b main .");
    write(&library, "lib.txt", "lib\n");
    scene.git_in(&library, "add -A");
    scene.git_in(&library, "commit -q -m lib");
    scene.git(&format!("-c protocol.file.allow=always submodule add -q {} lib", library.display()));
    scene.commit("submodule");
    let hostile = |git_dir: &std::path::Path| {
        let config = git_dir.join("config");
        let before = fs::read_to_string(&config).unwrap();
        fs::write(&config, before + &configuration(&canary)).unwrap();
        hooks(&git_dir.join("hooks"), &canary);
        write(git_dir, "info/attributes", ATTRIBUTES);
    };
    hostile(&scene.path(".git/modules/lib"));
    // The caller's own submodule is looked into, as far as its programs need not run.
    let worktree = scene.create("one").await;
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    let path = worktree.record.path.clone();
    // The agent fills the submodule by hand, and makes another repository.
    for inner in ["lib", "other"] {
        fs::create_dir_all(path.join(inner)).unwrap();
        scene.git_in(&path.join(inner), "init -q .");
        write(&path.join(inner), "work.txt", "work\n");
        scene.git_in(&path.join(inner), "add -A");
        scene.git_in(&path.join(inner), "commit -q -m inner");
        hostile(&path.join(inner).join(".git"));
        write(&path.join(inner), "work.txt", "more work\n");
    }
    let settled = scene.settle(worktree).await;
    assert!(matches!(settled, Settled::Kept(_)), "{settled:?}");
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    for inner in ["lib", "other"] {
        let text = fs::read_to_string(path.join(inner).join("work.txt")).unwrap();
        assert_eq!(text, "more work\n", "{inner}");
    }
    // One that is filled and nothing else keeps the worktree as well.
    let worktree = scene.create("two").await;
    write(&worktree.record.path.join("lib"), "alone.txt", "alone\n");
    let settled = scene.settle(worktree).await;
    assert!(matches!(settled, Settled::Kept(_)), "{settled:?}");
}

#[tokio::test]
async fn what_depends_on_the_place_or_rewrites_addresses_runs_nothing_either() {
    // D-77
    let scene = Scene::new();
    let canary = canary(&scene);
    let mark = scene.root().join("MARK");
    scene.write(".gitattributes", "*.txt filter=x merge=m\n");
    scene.commit("attributes");
    let included = scene.root().join("included");
    let programs = format!(
        "[filter \"x\"]\n\tclean = {canary}\n\tsmudge = {canary}\n[merge \"m\"]\n\tdriver = {canary}\n"
    );
    fs::write(&included, programs).unwrap();
    let config = scene.path(".git/config");
    let before = fs::read_to_string(&config).unwrap();
    let include =
        |condition: &str| format!("[includeIf \"{condition}\"]\n\tpath = {}\n", included.display());
    let conditions =
        ["gitdir:**/centurion/worktrees/**", "gitdir:**/worktrees/**", "onbranch:worktree-**"];
    let conditional: String = conditions.map(include).concat();
    let top = scene.top.display();
    let rewritten = format!(
        "[url \"git://127.0.0.1:1/\"]\n\tinsteadOf = \"{top}/\"\n\tinsteadOf = centurion/\n[core]\n\tgitProxy = {canary}\n"
    );
    fs::write(&config, format!("{before}{conditional}")).unwrap();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, "a.txt", "changed\n");
    scene.keep(worktree).await;
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    scene.worktrees.report(&scene.top, &listed[0]).await.unwrap();
    scene.worktrees.diff(&listed[0], &|_| true).await.unwrap();
    scene
        .worktrees
        .merge(&scene.top, &listed[0], &Merge::any(&How::Squash, "merged"))
        .await
        .unwrap();
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    // Where the way home is rewritten, nothing is fetched, and the work stays.
    fs::write(&config, format!("{before}{rewritten}")).unwrap();
    let worktree = scene.create("two").await;
    let path = worktree.record.path.clone();
    write(&path, "b.txt", "work\n");
    let settled = scene.worktrees.settle(worktree, Some(&scene.top)).await;
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    assert!(settled.is_err(), "{settled:?}");
    assert_eq!(fs::read_to_string(path.join("b.txt")).unwrap(), "work\n");
}

#[tokio::test]
async fn a_committed_repository_within_runs_nothing_when_people_look_and_merge() {
    // D-77
    let scene = Scene::new();
    let canary = canary(&scene);
    let mark = scene.root().join("MARK");
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let inner = path.join("sub");
    fs::create_dir(&inner).unwrap();
    scene.git_in(&inner, "init -q .");
    write(&inner, "f", "one\n");
    scene.git_in(&inner, "add -A");
    scene.git_in(&inner, "commit -q -m inner");
    write(
        &path,
        ".gitmodules",
        "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n",
    );
    scene.git_in(&path, "add .gitmodules sub");
    scene.git_in(&path, "commit -q -m hostile");
    write(&inner, ".git/info/attributes", "* filter=x\n");
    let config = fs::read_to_string(inner.join(".git/config")).unwrap();
    let filter = format!("[filter \"x\"]\n\tclean = {canary}\n\tprocess = {canary}\n");
    fs::write(inner.join(".git/config"), config + &filter).unwrap();
    write(&inner, "f", "two\n");
    write(&path, "more.txt", "more\n");
    scene.keep(worktree).await;
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let _ = scene.worktrees.report(&scene.top, &listed[0]).await;
    let _ = scene.worktrees.diff(&listed[0], &|_| true).await;
    let gone = scene.worktrees.let_go(&scene.top, &listed[0], Unsaved::IsSaved).await;
    assert!(matches!(gone, Err(KeptError::Submodule(_))), "{gone:?}");
    scene
        .worktrees
        .merge(&scene.top, &listed[0], &Merge::any(&How::Merge, "merged"))
        .await
        .unwrap();
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    assert_eq!(fs::read_to_string(inner.join("f")).unwrap(), "two\n");
}
