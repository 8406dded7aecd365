//! What is in the way of an agent's refs when they are brought home.

use std::fs;

use centurion_worktree::{Mended, Standing, Unsaved};

use crate::support::{Scene, write};

fn commit(scene: &Scene, path: &std::path::Path, text: &str) -> String {
    write(path, "a.txt", text);
    scene.git_in(path, "commit -q -a -m agent");
    scene.git_in(path, "rev-parse HEAD")
}

#[tokio::test]
async fn refs_that_cannot_be_together_are_kept_beside_each_other() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    scene.git_in(&path, "switch -q -c side");
    let first = commit(&scene, &path, "first\n");
    scene.keep(worktree).await;
    // The name is a directory of names now.
    let again = scene.create("one").await;
    scene.git_in(&path, "switch -q --detach");
    if scene.try_git_in(&path, "rev-parse --verify side").1 {
        scene.git_in(&path, "branch -q -D side");
    }
    scene.git_in(&path, "switch -q -c side/deep");
    let second = commit(&scene, &path, "second\n");
    let report = scene.keep(again).await;
    assert_eq!(scene.git("rev-parse refs/centurion/agents/one/refs/heads/side"), first);
    let beside = format!("refs/centurion/agents/one/beside/{}/refs/heads/side/deep", &second[..12]);
    assert!(report.saved.contains(&beside), "{:?}", report.saved);
    assert_eq!(scene.git(&format!("rev-parse {beside}")), second);
    assert_eq!(scene.only().await.standing, Standing::Kept);
}

#[tokio::test]
async fn an_agent_that_renames_its_branch_below_itself_comes_home() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    scene.git_in(&path, "branch -m worktree-one/deep");
    let tip = commit(&scene, &path, "deep\n");
    drop(worktree);
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    assert!(matches!(mended[0].1, Ok(Mended::Kept(_))), "{mended:?}");
    assert_eq!(scene.git("rev-parse worktree-one"), tip);
    assert_eq!(scene.git("rev-parse refs/centurion/agents/one/refs/heads/worktree-one/deep"), tip);
    assert_eq!(scene.only().await.standing, Standing::Kept);
}

#[tokio::test]
async fn a_branch_that_cannot_be_made_in_the_repository_is_kept_beside_it() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let tip = commit(&scene, &path, "agent\n");
    drop(worktree);
    scene.git("update-ref -d refs/heads/worktree-one");
    scene.git("branch worktree-one/y");
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    let Ok(Mended::Kept(report)) = &mended[0].1 else { panic!("{mended:?}") };
    let told = report.notes.join("\n");
    assert!(told.contains("refs/centurion/agents/one/branch"), "{told}");
    assert_eq!(scene.git("rev-parse refs/centurion/agents/one/branch"), tip);
    assert_eq!(scene.git_in(&path, "rev-parse HEAD"), tip);
    let entry = scene.only().await;
    assert_eq!(entry.standing, Standing::Kept);
    let report = scene.worktrees.report(&scene.top, &entry).await.unwrap();
    assert_eq!((report.head, report.ahead), (tip.clone(), 1));
    // An agent continues there, and nothing is lost when it is let go.
    let again = scene.create("one").await;
    assert_eq!(scene.git_in(&path, "rev-parse HEAD"), tip);
    scene.keep(again).await;
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    assert_eq!(scene.git("rev-parse refs/centurion/agents/one/branch"), tip);
    // A branch that is only missing is made again.
    scene.git("branch -D worktree-one/y");
    let worktree = scene.create("two").await;
    let tip = commit(&scene, &worktree.record.path, "agent\n");
    scene.git("update-ref -d refs/heads/worktree-two");
    let report = scene.keep(worktree).await;
    assert!(report.notes.is_empty(), "{:?}", report.notes);
    assert_eq!(scene.git("rev-parse worktree-two"), tip);
}

#[tokio::test]
async fn a_branch_that_another_checkout_is_on_is_not_moved_under_it() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let tip = commit(&scene, &path, "agent\n");
    let other = scene.root().join("other place");
    scene.git_args(&["worktree", "add", "-q", "-f", other.to_str().unwrap(), "worktree-one"]);
    let report = scene.keep(worktree).await;
    assert_eq!(scene.git_in(&other, "status --porcelain"), "");
    let told = report.notes.join("\n");
    let command = told.split('`').nth(1).unwrap();
    scene.shell(command);
    assert_eq!(scene.git_in(&other, "rev-parse HEAD"), tip);
    assert_eq!(scene.git("rev-parse worktree-one"), tip);
    // Nor is it removed there.
    let gone = scene.worktrees.let_go(&scene.top, &scene.only().await, Unsaved::IsSaved).await;
    gone.unwrap().delete();
    assert_eq!(scene.git_in(&other, "rev-parse HEAD"), tip);
    assert!(fs::read_to_string(other.join("a.txt")).unwrap().contains("agent"));
}

#[tokio::test]
async fn worktrees_that_an_agent_made_itself_are_kept_like_its_refs() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let mut commits = Vec::new();
    for name in ["tried", "od\nd"] {
        let linked = scene.root().join(name);
        let (said, is_fine) =
            scene.run_git(&path, &["worktree", "add", "-q", "--detach", linked.to_str().unwrap()]);
        assert!(is_fine, "{said}");
        commits.push(commit(&scene, &linked, &format!("{name} given up\n")));
        scene.git_in(&linked, "reset -q --hard HEAD~1");
        commits.push(commit(&scene, &linked, &format!("{name}\n")));
    }
    let report = scene.keep(worktree).await;
    assert_eq!(scene.git("rev-parse refs/centurion/agents/one/worktrees/tried"), commits[1]);
    for commit in &commits {
        let refs = scene.git(&format!("for-each-ref --format=%(refname) --points-at {commit}"));
        assert!(report.saved.iter().any(|name| refs.contains(name.as_str())), "{refs}");
    }
}

#[tokio::test]
async fn refs_that_lead_nowhere_keep_nothing_else_from_coming_home() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    let tip = commit(&scene, &path, "agent\n");
    let own = worktree.private_repository().unwrap().path().to_owned();
    write(&own, "refs/heads/nowhere", &format!("{}\n", "12".repeat(20)));
    let report = scene.keep(worktree).await;
    assert_eq!(report.notes, ["1 of its refs name commits that it does not have"]);
    assert_eq!(scene.git("rev-parse worktree-one"), tip);
}
