//! What a git directory says of worktrees may be a stranger's: it deletes nothing, writes nowhere and moves no ref.

use std::fs;
use std::os::unix::fs::symlink;

use centurion_worktree::{CreateError, Settled, Standing, Unsaved};
use serde_json::{Value, json};

use crate::support::{Scene, wish, write};

/// Looks after all worktrees and describes each, as a launch and a person do.
async fn use_all(scene: &Scene) {
    let _ = scene.worktrees.mend(&scene.top).await;
    for entry in scene.worktrees.list(&scene.top).await.unwrap_or_default() {
        let _ = scene.worktrees.report(&scene.top, &entry).await;
        let _ = scene.worktrees.diff(&entry, &|_| true).await;
    }
    let _ = scene.worktrees.mend(&scene.top).await;
}

#[tokio::test]
async fn a_link_in_the_place_of_our_own_directories_leads_to_no_deletion() {
    for linked in [".git/centurion", ".git/centurion/worktrees"] {
        let scene = Scene::new();
        let victim = scene.root().join("victim");
        write(&victim, "photos/one", "one");
        write(&victim, "worktrees/photos/two", "two");
        fs::create_dir_all(scene.path(linked).parent().unwrap()).unwrap();
        symlink(&victim, scene.path(linked)).unwrap();
        use_all(&scene).await;
        // Nor when a worktree is asked for that has the name of one of them.
        let refused = scene.try_create("photos").await;
        assert!(refused.is_err(), "{linked}");
        use_all(&scene).await;
        let left = |name: &str| fs::read_dir(victim.join(name)).unwrap().count();
        assert_eq!((left("photos"), left("worktrees/photos")), (1, 1), "{linked}");
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 2, "{linked}");
    }
}

#[tokio::test]
async fn a_directory_without_a_record_goes_only_if_nothing_is_in_it() {
    let scene = Scene::new();
    for name in ["reserved", "filled"] {
        fs::create_dir_all(scene.path(".git/centurion/worktrees").join(name)).unwrap();
    }
    write(&scene.path(".git/centurion/worktrees/filled"), "git/objects/work", "work");
    use_all(&scene).await;
    assert!(!scene.path(".git/centurion/worktrees/reserved").exists());
    // A worktree of that name is refused, and not tried for ever.
    let refused = scene.try_create("filled").await.unwrap_err();
    assert!(matches!(refused, CreateError::Taken { .. }), "{refused}");
    assert!(scene.path(".git/centurion/worktrees/filled/git/objects/work").exists());
}

#[tokio::test]
async fn no_field_of_a_record_becomes_an_option_a_ref_or_a_path() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    write(&worktree.record.path, "a.txt", "work\n");
    scene.keep(worktree).await;
    let file = scene.path(".git/centurion/worktrees/one/record.json");
    let record: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let outside = scene.root().join("written");
    let option = format!("--output={}", outside.display());
    let main = scene.git("rev-parse main");
    let refspec = format!("x/a\n+{main}:refs/heads/forged\n+{main}:refs/centurion/agents/y");
    let elsewhere = scene.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, scene.path(".git/worktrees/linked")).unwrap();
    let linked = scene.path(".git/worktrees/linked");
    let forgeries = [
        ("base", json!(option)),
        ("tip", json!(option)),
        ("agent", json!(refspec)),
        ("agent", json!("../../heads")),
        ("branch", json!("main")),
        ("slug", json!("two")),
        ("path", json!(scene.root())),
        ("admin", json!(scene.root())),
        ("admin", json!(linked)),
    ];
    for (field, value) in forgeries {
        for is_out in [false, true] {
            let mut forged = record.clone();
            forged[field] = value.clone();
            forged["isOut"] = json!(is_out);
            fs::write(&file, forged.to_string()).unwrap();
            let before = scene.state();
            let listed = scene.worktrees.list(&scene.top).await.unwrap();
            let is_refused = matches!(listed[0].standing, Standing::Unreadable { .. });
            assert!(is_refused, "{field} {value}: {listed:?}");
            use_all(&scene).await;
            assert!(!outside.exists(), "{field} {value}");
            assert_eq!(scene.state(), before, "{field} {value}");
            assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{field} {value}");
        }
    }
    // One that cannot be removed because it is another's keeps its name.
    let mut forged = record.clone();
    let foreign = scene.root().join("other/.claude/worktrees/one");
    write(&foreign, "precious", "precious");
    (forged["stage"], forged["path"]) = (json!("removing"), json!(foreign));
    fs::write(&file, forged.to_string()).unwrap();
    let refused = scene.try_create("one").await.unwrap_err();
    assert!(matches!(refused, CreateError::Taken { .. }), "{refused}");
    assert!(foreign.join("precious").exists());
    // As it was, it is good.
    fs::write(&file, record.to_string()).unwrap();
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    scene.worktrees.report(&scene.top, &listed[0]).await.unwrap();
}

#[tokio::test]
async fn what_is_no_file_in_the_place_of_one_of_ours_is_named_and_not_waited_for() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    write(&worktree.record.path, "a.txt", "work\n");
    scene.keep(worktree).await;
    let own = ".git/centurion/worktrees/one";
    for name in ["lease", "record.json"] {
        let file = scene.path(own).join(name);
        let before = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, mode).unwrap();
        let listed = scene.worktrees.list(&scene.top).await.unwrap();
        scene.worktrees.mend(&scene.top).await.unwrap();
        let gone = scene.worktrees.let_go(&scene.top, &listed[0], Unsaved::IsSaved).await;
        let told = gone.unwrap_err().to_string();
        assert!(
            told.contains("is no file: remove it") || told.contains("cannot be read"),
            "{told}"
        );
        let refused = scene.try_create("one").await.unwrap_err();
        assert!(!refused.to_string().is_empty());
        fs::remove_file(&file).unwrap();
        fs::write(&file, before).unwrap();
    }
    // Where git has to note a worktree, one is noted after the other.
    scene.git("config extensions.worktreeConfig true");
    let lock = scene.path(".git/centurion/lock");
    rustix::fs::mkfifoat(rustix::fs::CWD, &lock, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let refused = scene.try_create("two").await.unwrap_err().to_string();
    assert!(refused.contains("lock: it is no file"), "{refused}");
    fs::remove_file(&lock).unwrap();
    scene.git("config --unset extensions.worktreeConfig");
    // What is removed has no place to go to.
    let trash = scene.path(".claude/worktrees/.trash");
    for is_link in [false, true] {
        let _ = fs::remove_dir_all(&trash);
        let _ = fs::remove_file(&trash);
        if is_link {
            symlink(scene.root(), &trash).unwrap();
        } else {
            fs::write(&trash, "mine").unwrap();
        }
        let name = format!("two-{is_link}");
        let untouched = scene.create(&name).await;
        let report = scene.keep(untouched).await;
        assert!(report.notes[0].contains(".trash is no directory: remove it first"), "{report:?}");
        let listed = scene.worktrees.list(&scene.top).await.unwrap();
        let entry = listed.iter().find(|it| it.name() == name).unwrap();
        assert_eq!(entry.standing, Standing::Kept);
        let gone = scene.worktrees.let_go(&scene.top, entry, Unsaved::Stays).await;
        let told = gone.unwrap_err().to_string();
        assert!(told.contains(".trash is no directory"), "{told}");
        fs::remove_file(&trash).unwrap();
        let gone = scene.worktrees.let_go(&scene.top, entry, Unsaved::Stays).await;
        gone.unwrap().delete();
    }
}

#[tokio::test]
async fn what_is_deleted_is_what_was_put_aside_whatever_its_path_leads_to() {
    let scene = Scene::new();
    let worktree = scene.create("one").await;
    let Settled::Removed(trash) = scene.settle(worktree).await else { panic!("kept") };
    // A command that may write in the checkout exchanges the directory for a link.
    let (place, victim) = (scene.path(".claude/worktrees"), scene.root().join("victim"));
    write(&victim, ".trash/one-0/photo", "precious");
    fs::rename(&place, scene.path("away")).unwrap();
    symlink(&victim, &place).unwrap();
    trash.delete();
    assert!(victim.join(".trash/one-0/photo").exists());
    // Nor is anything put aside there.
    fs::remove_file(&place).unwrap();
    fs::rename(scene.path("away"), &place).unwrap();
    let mut made = scene.create("two").await;
    scene.worktrees.finish(&mut made, None).await.unwrap();
    write(&victim, "two/photo", "precious");
    fs::rename(&place, scene.path("away")).unwrap();
    symlink(&victim, &place).unwrap();
    let _ = scene.worktrees.settle(made, None).await;
    assert!(victim.join("two/photo").exists());
}

#[tokio::test]
async fn a_link_in_the_place_of_a_worktree_is_not_looked_through() {
    let scene = Scene::new();
    let mut made = scene.worktrees.create(&scene.top, &wish("one")).await.unwrap();
    write(&made.record.path, "new.txt", "x\n");
    scene.worktrees.finish(&mut made, Some(&scene.top)).await.unwrap();
    let path = made.record.path.clone();
    drop(made);
    let outside = scene.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "s3cret\n").unwrap();
    fs::rename(&path, scene.root().join("moved")).unwrap();
    symlink(&outside, &path).unwrap();
    let entry = scene.worktrees.list(&scene.top).await.unwrap().remove(0);
    for said in [
        scene.worktrees.diff(&entry, &|_| true).await.map_err(|error| error.to_string()),
        scene
            .worktrees
            .report(&scene.top, &entry)
            .await
            .map(|it| format!("{it:?}"))
            .map_err(|error| error.to_string()),
    ] {
        let (Ok(text) | Err(text)) = &said;
        assert!(!text.contains("secret"), "{text}");
    }
    assert!(outside.join("secret").exists());
}
