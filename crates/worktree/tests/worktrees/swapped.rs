//! What an agent can write to is something else whenever git looks: no git of ours runs a program by it, or goes elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_worktree::merge::{How, Merge};
use centurion_worktree::{
    CreateError, Direct, Mended, Program, RunProgram, Running, Settled, Unsaved, Worktrees,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::programs::{ATTRIBUTES, canary, configuration};
use crate::support::{Scene, wish, write};

/// Files that are others while a git runs: each with what it holds then. Git itself reads a file anew in each process, so an
/// agent that changes it at the right moment does no better.
#[derive(Clone, Default)]
struct Swapping(Vec<(PathBuf, String)>);

impl Swapping {
    fn swap(&mut self, file: PathBuf, text: String) {
        self.0.push((file, text));
    }

    fn worktrees(&self, scene: &Scene) -> Worktrees {
        scene.other(Arc::new(self.clone()))
    }
}

impl RunProgram for Swapping {
    fn run(&self, program: Program) -> Running<'_> {
        let swapped = self.0.clone();
        Box::pin(async move {
            let mut before = Vec::new();
            for (file, text) in swapped {
                // What is not there cannot be exchanged.
                let Ok(was) = fs::read(&file) else { continue };
                fs::write(&file, text).unwrap();
                before.push((file, was));
            }
            let ended = Direct.run(program).await;
            for (file, was) in before {
                // Ours may have replaced it.
                if file.exists() {
                    fs::write(file, was).unwrap();
                }
            }
            ended
        })
    }
}

/// Text of a configuration with all that it can name.
fn hostile(config: &Path, canary: &str) -> String {
    fs::read_to_string(config).unwrap() + &configuration(canary)
}

fn said(mark: &Path) -> String {
    fs::read_to_string(mark).unwrap_or_default()
}

/// A repository of its own in a directory, with one commit, of which git has to read a file to know it.
fn repository(scene: &Scene, at: &Path) {
    fs::create_dir_all(at).unwrap();
    scene.git_in(at, "init -q -b main .");
    write(at, "l.txt", "lib\n");
    scene.git_in(at, "add -A");
    scene.git_in(at, "commit -q -m lib");
    fs::remove_file(at.join("l.txt")).unwrap();
    write(at, "l.txt", "lib\n");
    write(at, ".git/info/attributes", ATTRIBUTES);
}

#[tokio::test]
async fn a_repository_within_the_callers_checkout_runs_nothing_though_its_configuration_changes() {
    // D-77, I-6
    let scene = Scene::new();
    let (canary, mark) = (canary(&scene), scene.root().join("MARK"));
    let lib = scene.path("lib");
    repository(&scene, &lib);
    scene.try_git_in(&scene.top, "add lib");
    scene.git("commit -q -m lib");
    let mut swapping = Swapping::default();
    swapping.swap(lib.join(".git/config"), hostile(&lib.join(".git/config"), &canary));
    let worktrees = swapping.worktrees(&scene);
    let made = worktrees.create(&scene.top, &wish("one")).await.unwrap();
    assert!(!mark.exists(), "{}", said(&mark));
    worktrees.settle(made, Some(&scene.top)).await.unwrap();
    // What has changed there is still seen.
    write(&lib, "l.txt", "more\n");
    let refused = worktrees.create(&scene.top, &wish("two")).await.unwrap_err();
    assert!(matches!(refused, CreateError::Submodule(_)), "{refused}");
    assert!(!mark.exists(), "{}", said(&mark));
    // Nothing of the look is left, nor of one of a process that died.
    let looks = scene.path(".git/centurion/looks");
    assert_eq!(fs::read_dir(&looks).unwrap().count(), 0);
    write(&looks, "centurion-1-0/lease", "");
    worktrees.create(&scene.top, &wish("two")).await.unwrap_err();
    assert_eq!(fs::read_dir(&looks).unwrap().count(), 0);
    // Settings that say how files are compared count.
    write(&lib, "l.txt", "lib\n");
    scene.shell("chmod +x 'my repo/lib/l.txt'");
    let refused = worktrees.create(&scene.top, &wish("three")).await.unwrap_err();
    assert!(matches!(refused, CreateError::Submodule(_)), "{refused}");
    scene.git_in(&lib, "config core.filemode false");
    worktrees.create(&scene.top, &wish("three")).await.unwrap();
    // A git that is not ours would have run it.
    fs::write(lib.join(".git/config"), hostile(&lib.join(".git/config"), &canary)).unwrap();
    scene.try_git_in(&lib, "status");
    assert!(mark.exists());
}

#[tokio::test]
async fn a_pipe_in_a_repository_within_the_callers_checkout_is_named_and_not_waited_for() {
    let scene = Scene::new();
    let lib = scene.path("lib");
    repository(&scene, &lib);
    scene.try_git_in(&scene.top, "add lib");
    scene.git("commit -q -m lib");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    for pipe in [".gitignore", ".git/packed-refs"] {
        rustix::fs::mkfifoat(rustix::fs::CWD, lib.join(pipe), mode).unwrap();
        let refused = scene.try_create("one").await.unwrap_err().to_string();
        assert!(refused.contains("is a pipe") && refused.contains("lib/"), "{refused}");
        fs::remove_file(lib.join(pipe)).unwrap();
    }
    scene.create("one").await;
}

#[tokio::test]
async fn a_clone_that_a_hook_made_runs_nothing_though_its_configuration_changes() {
    // S-303, D-77
    let scene = Scene::new();
    let (canary, mark) = (canary(&scene), scene.root().join("MARK"));
    let clone = scene.root().join("clone");
    scene.git_args(&["clone", "-q", scene.top.to_str().unwrap(), clone.to_str().unwrap()]);
    // One of the agent's own elsewhere, and one that lies in the directory.
    let elsewhere = scene.root().join("elsewhere");
    scene.git_in(&clone, &format!("worktree add -q {}", elsewhere.display()));
    for made in [&clone, &elsewhere] {
        write(&clone, ".git/info/attributes", ATTRIBUTES);
        let mut swapping = Swapping::default();
        let config = clone.join(".git/config");
        swapping.swap(config.clone(), hostile(&config, &canary));
        let worktrees = swapping.worktrees(&scene);
        let hooked = worktrees.hooked(made).await.unwrap();
        write(made, "src/b.txt", "again\n");
        write(made, "a.txt", "changed\n");
        scene.git_in(made, "commit -q -m did a.txt");
        write(made, "new.txt", "1\n");
        for caller in [Some(scene.top.as_path()), None] {
            let told = worktrees.report_hooked(&hooked, caller).await.unwrap();
            assert!(!mark.exists(), "{}", said(&mark));
            let mut files: Vec<_> = told.files.iter().map(|it| it.path.as_str()).collect();
            files.sort_unstable();
            assert_eq!(files, ["a.txt", "new.txt", "src/b.txt"]);
            assert_eq!((told.ahead, told.behind, told.uncommitted), (1, 0, 2));
            assert_eq!(told.head, scene.git_in(made, "rev-parse HEAD"));
        }
    }
    assert_eq!(fs::read_dir(scene.path(".git/centurion/looks")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_the_git_file_of_a_worktree_says_leads_no_git_of_ours_elsewhere() {
    // D-77, I-6
    let scene = Scene::new();
    let (canary, mark) = (canary(&scene), scene.root().join("MARK"));
    scene.write(".gitattributes", ATTRIBUTES);
    scene.commit("attributes");
    let evil = scene.root().join("evil");
    scene.git_args(&["clone", "-q", scene.top.to_str().unwrap(), evil.to_str().unwrap()]);
    write(&evil, ".git/info/attributes", ATTRIBUTES);
    let config = evil.join(".git/config");
    fs::write(&config, hostile(&config, &canary)).unwrap();
    let before = fs::read_to_string(&config).unwrap();
    let refs = |at: &Path| scene.git_in(at, "for-each-ref");
    let evils = refs(&evil);
    let mut swapping = Swapping::default();
    let place = scene.path(".claude/worktrees/one");
    swapping.swap(place.join(".git"), format!("gitdir: {}/.git\n", evil.display()));
    let worktrees = swapping.worktrees(&scene);
    for how in [How::Merge, How::Squash, How::Rebase] {
        let made = worktrees.create(&scene.top, &wish("one")).await.unwrap();
        let name = format!("{how:?}.txt");
        write(&place, &name, "committed\n");
        let (said_by_git, is_fine) = scene.run_git(&place, &["add", &name]);
        assert!(is_fine, "{said_by_git}");
        scene.git_in(&place, "commit -q -m did");
        write(&place, "src/c.txt", &format!("by {how:?}\n"));
        worktrees.work(&made).await.unwrap();
        let settled = worktrees.settle(made, Some(&scene.top)).await.unwrap();
        assert!(matches!(settled, Settled::Kept(_)), "{settled:?}");
        let entry = || async { worktrees.list(&scene.top).await.unwrap().remove(0) };
        let told = worktrees.report(&scene.top, &entry().await).await.unwrap();
        assert_eq!(told.files.len(), 2, "{told:?}");
        assert!(worktrees.diff(&entry().await, &|_| true).await.unwrap().contains(&name));
        let merge = Merge::any(&how, "merged");
        worktrees.merge(&scene.top, &entry().await, &merge).await.unwrap();
        assert_eq!(scene.read(&name), "committed\n");
        assert_eq!(scene.read("src/c.txt"), format!("by {how:?}\n"));
        write(&place, "later.txt", "later\n");
        let gone = worktrees.let_go(&scene.top, &entry().await, Unsaved::IsSaved).await;
        gone.unwrap().delete();
        worktrees.restore(&scene.top, "one").await.unwrap();
        assert_eq!(fs::read_to_string(place.join("later.txt")).unwrap(), "later\n");
        let gone = worktrees.let_go(&scene.top, &entry().await, Unsaved::IsSaved).await;
        gone.unwrap().delete();
        assert!(!mark.exists(), "{how:?}: {}", said(&mark));
        assert_eq!(
            (refs(&evil), fs::read_to_string(&config).unwrap()),
            (evils.clone(), before.clone())
        );
    }
}

#[tokio::test]
async fn a_caller_whose_git_file_leads_elsewhere_gets_no_worktree_there() {
    // D-77, I-6
    let scene = Scene::new();
    let outer = scene.create("outer").await;
    let (path, common) = (outer.record.path.clone(), scene.path(".git"));
    let inner = scene.worktrees.create_in(&common, &path, &wish("inner")).await.unwrap();
    let evil = scene.root().join("evil");
    scene.git_args(&["clone", "-q", scene.top.to_str().unwrap(), evil.to_str().unwrap()]);
    let own = fs::read_to_string(path.join(".git")).unwrap();
    fs::write(path.join(".git"), format!("gitdir: {}/.git\n", evil.display())).unwrap();
    let refused = scene.worktrees.create_in(&common, &path, &wish("two")).await.unwrap_err();
    assert!(refused.to_string().contains("no checkout of"), "{refused}");
    assert!(!evil.join(".git/centurion").exists() && !evil.join(".claude").exists());
    // Nor is what another left held against a commit there.
    write(&inner.record.path, "a.txt", "work\n");
    let settled = scene.worktrees.settle(inner, Some(&path)).await.unwrap();
    let Settled::Kept(told) = settled else { panic!("removed") };
    assert_eq!((told.merges.len(), told.files.len()), (0, 1), "{told:?}");
    fs::write(path.join(".git"), own).unwrap();
    scene.worktrees.create_in(&common, &path, &wish("two")).await.unwrap();
}

#[tokio::test]
async fn an_agent_whose_repository_leads_elsewhere_gets_no_worktree() {
    // D-77: git would follow the link, and read whatever is there.
    let scene = Scene::new();
    let outer = scene.create("outer").await;
    let (path, common) = (outer.record.path.clone(), scene.path(".git"));
    let refs = outer.private_repository().unwrap().path().join("refs");
    fs::rename(&refs, refs.with_extension("old")).unwrap();
    std::os::unix::fs::symlink("/proc/self", &refs).unwrap();
    let refused = scene.worktrees.create_in(&common, &path, &wish("two")).await.unwrap_err();
    assert!(refused.to_string().contains("it is a link"), "{refused}");
    fs::remove_file(&refs).unwrap();
    fs::rename(refs.with_extension("old"), &refs).unwrap();
    scene.worktrees.create_in(&common, &path, &wish("two")).await.unwrap();
}

#[tokio::test]
async fn files_of_nothing_but_their_length_are_not_copied() {
    // I-7
    let scene = Scene::new();
    let huge = 1 << 40;
    let worktree = scene.create("one").await;
    let (path, own) = (worktree.record.path.clone(), worktree.private_repository().unwrap());
    write(&path, "a.txt", "work\n");
    let content = own.path().join("lfs/objects/aa/aa").join("a".repeat(64));
    fs::create_dir_all(content.parent().unwrap()).unwrap();
    fs::File::create(&content).unwrap().set_len(huge).unwrap();
    let index = own.path().join("index");
    let before = fs::read(&index).unwrap();
    fs::File::options().write(true).open(&index).unwrap().set_len(huge).unwrap();
    let refused = scene.worktrees.settle(worktree, Some(&scene.top)).await.unwrap_err();
    assert!(refused.to_string().contains("larger than any of its kind"), "{refused}");
    // As it was, it comes home, without what is no content.
    fs::write(&index, before).unwrap();
    let mended = scene.worktrees.mend(&scene.top).await.unwrap();
    let [(_, Ok(Mended::Kept(told)))] = &mended[..] else { panic!("{mended:?}") };
    assert!(told.notes.iter().any(|it| it.contains("1 with a wrong name")), "{told:?}");
    assert!(!scene.path(".git/lfs/objects/aa").exists());
    assert_eq!(scene.git("show refs/centurion/agents/one/uncommitted:a.txt"), "work");
}

#[tokio::test]
async fn a_link_is_made_in_no_directory_that_a_commit_leads_elsewhere() {
    let scene = Scene::new();
    let outside = scene.root().join("outside");
    fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, scene.path("packages")).unwrap();
    scene.commit("link");
    // In the caller's checkout it is a directory.
    fs::remove_file(scene.path("packages")).unwrap();
    fs::create_dir_all(scene.path("packages/node_modules")).unwrap();
    fs::create_dir_all(scene.path("src/node_modules")).unwrap();
    let mut wish = wish("one");
    wish.contents.links = vec!["packages/node_modules".to_owned(), "src/node_modules".to_owned()];
    let made = scene.worktrees.create(&scene.top, &wish).await.unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(made.warnings.iter().any(|it| it.contains("packages/node_modules")), "{made:?}");
    let link = fs::read_link(made.record.path.join("src/node_modules")).unwrap();
    assert_eq!(link, scene.path("src/node_modules"));
}

#[tokio::test]
async fn what_lies_beside_the_git_file_is_in_no_way() {
    // I-7
    let scene = Scene::new();
    let victim = scene.root().join("victim");
    fs::write(&victim, "precious").unwrap();
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    write(&path, ".git.centurion-0/x", "mine\n");
    std::os::unix::fs::symlink(&victim, path.join(".git.centurion-1")).unwrap();
    write(&path, ".git.centurion-2", "gitdir: of a process that died\n");
    let told = scene.keep(worktree).await;
    assert_eq!(told.uncommitted, 3, "{told:?}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(fs::read_to_string(path.join(".git.centurion-0/x")).unwrap(), "mine\n");
    let status = scene.git_in(&path, "status --porcelain");
    assert_eq!(status, "?? .git.centurion-0/\n?? .git.centurion-1");
}

/// Takes note of the settings that a git is started with.
struct Noting(UnboundedSender<Program>);

impl RunProgram for Noting {
    fn run(&self, program: Program) -> Running<'_> {
        self.0.send(program.clone()).unwrap();
        Direct.run(program)
    }
}

#[tokio::test]
async fn hooks_in_a_configuration_are_off_for_gits_that_have_them() {
    // D-77
    let scene = Scene::new();
    for (key, value) in [("event", "reference-transaction"), ("command", "touch /nowhere")] {
        scene.git_args(&["config", &format!("hook.lint.{key}"), value]);
    }
    let (sender, mut told) = unbounded_channel();
    let worktrees = scene.other(Arc::new(Noting(sender)));
    let made = worktrees.create(&scene.top, &wish("one")).await.unwrap();
    write(&made.record.path, "a.txt", "work\n");
    worktrees.settle(made, Some(&scene.top)).await.unwrap();
    drop(worktrees);
    let mut count = 0;
    while let Some(program) = told.recv().await {
        let writes = ["fetch", "update-ref", "reset", "symbolic-ref"];
        if !writes.iter().any(|word| program.args.iter().any(|it| it == word)) {
            continue;
        }
        count += 1;
        let keys =
            program.environment.iter().filter(|(name, _)| name.starts_with("GIT_CONFIG_KEY"));
        let keys: Vec<&str> = keys.map(|(_, key)| key.as_str()).collect();
        assert!(keys.contains(&"hook.lint.enabled"), "{:?} {keys:?}", program.args);
    }
    assert!(count >= 3, "{count}");
}
