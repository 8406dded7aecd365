//! Commits that no ref has and no log names.

use centurion_worktree::{Unsaved, Wish};

use crate::support::{Scene, wish, write};

/// What is kept of an agent's work in the repository, whichever ref has it.
fn texts(scene: &Scene) -> String {
    let refs = scene.git("for-each-ref --format=%(refname) refs/centurion/agents/one");
    let shown = |name: &str| scene.git(&format!("log --format=%s {name}"));
    refs.lines().map(shown).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn what_an_agent_made_without_a_log_and_gave_up_is_kept() {
    // I-7
    for is_packed in [false, true] {
        let scene = Scene::new();
        let worktree = scene.create("one").await;
        let path = worktree.record.path.clone();
        for name in ["mine-1", "mine-2"] {
            write(&path, "p.txt", name);
            scene.git_in(&path, "add -A");
            scene.git_in(&path, &format!("-c core.logAllRefUpdates=false commit -q -m {name}"));
        }
        write(&path, "p.txt", "stashed");
        scene.git_in(&path, "stash -q");
        scene.git_in(&path, "stash drop -q");
        scene.git_in(&path, "reset -q --hard HEAD~2");
        let own = scene.git_in(&path, "rev-parse --absolute-git-dir");
        std::fs::remove_dir_all(format!("{own}/logs")).unwrap();
        if is_packed {
            scene.git_in(&path, "repack -q -a -d -k");
        }
        scene.keep(worktree).await;
        let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
        gone.unwrap().delete();
        scene.git("gc -q --prune=now");
        let kept = texts(&scene);
        assert!(kept.contains("mine-2\nmine-1") && kept.contains("WIP on"), "{is_packed}: {kept}");
    }
}

#[tokio::test]
async fn a_long_log_is_read_to_its_beginning() {
    // I-7
    let scene = Scene::new();
    let wish = Wish { is_private: false, ..wish("one") };
    let worktree = scene.worktrees.create(&scene.top, &wish).await.unwrap();
    let path = worktree.record.path.clone();
    write(&path, "p.txt", "given up");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m precious");
    scene.git_in(&path, "reset -q --hard HEAD~1");
    let log = scene.git_in(&path, "rev-parse --git-path logs/HEAD");
    let log = path.join(log);
    let text = std::fs::read_to_string(&log).unwrap();
    let last = text.lines().last().unwrap();
    std::fs::write(&log, format!("{text}{}", format!("{last}\n").repeat(600))).unwrap();
    drop(worktree);
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
    gone.unwrap().delete();
    assert!(texts(&scene).contains("precious"), "{}", texts(&scene));
}

#[tokio::test]
async fn what_only_refs_of_a_worktree_itself_have_is_saved_before_it_goes() {
    // I-7
    for is_private in [false, true] {
        let scene = Scene::new();
        let wish = Wish { is_private, ..wish("one") };
        let worktree = scene.worktrees.create(&scene.top, &wish).await.unwrap();
        let path = worktree.record.path.clone();
        scene.git_in(&path, "switch -q --detach");
        write(&path, "p.txt", "precious");
        scene.git_in(&path, "add -A");
        scene.git_in(&path, "commit -q -m precious");
        scene.git_in(&path, "update-ref refs/worktree/keep HEAD");
        scene.git_in(&path, "switch -q worktree-one");
        let log = scene.git_in(&path, "rev-parse --git-path logs/HEAD");
        std::fs::remove_file(path.join(log)).unwrap();
        if is_private {
            scene.keep(worktree).await;
        } else {
            drop(worktree);
        }
        let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::Stays).await;
        gone.unwrap().delete();
        scene.git("gc -q --prune=now");
        assert!(texts(&scene).contains("precious"), "{is_private}: {}", texts(&scene));
    }
}
