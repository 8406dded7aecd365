//! Git LFS: pointers stay pointers where the user's git has no filter, and contents come home where it has one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use centurion_worktree::merge::{How, Merge};

use crate::support::{Scene, write};

const ATTRIBUTES: &str = "*.bin filter=lfs diff=lfs merge=lfs -text\n";

const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
    oid sha256:ababababababababababababababababababababababababababababababababab\nsize 4\n";

/// What the filter of Git LFS does, without the network: contents go beside the objects of the repository that it runs
/// in, and come from there or from beside the objects that this one borrows.
const FILTER: &str = r#"#!/bin/sh
common=$(git rev-parse --git-common-dir)
place() { printf '%s/%.2s/%s/%s' "$1" "$2" "$(printf %.4s "$2" | tail -c 2)" "$2"; }
content=$(mktemp)
cat > "$content"
if [ "$1" = clean ]; then
    if head -c 7 "$content" | grep -q version; then cat "$content"; exit; fi
    oid=$(sha256sum < "$content" | cut -d' ' -f1)
    to=$(place "$common/lfs/objects" "$oid")
    mkdir -p "$(dirname "$to")"
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' "$oid" "$(wc -c < "$content")"
    mv "$content" "$to"
else
    oid=$(sed -n 's/^oid sha256://p' "$content")
    borrowed=$(cat "$common/objects/info/alternates" 2> /dev/null)
    for store in "$common/lfs/objects" "${borrowed%/objects}/lfs/objects"; do
        from=$(place "$store" "$oid")
        if [ -f "$from" ]; then cat "$from"; exit; fi
    done
    cat "$content"
fi
"#;

/// Puts the filter into the user's own configuration.
fn install(scene: &Scene) {
    let script = scene.root().join("lfs.sh");
    fs::write(&script, FILTER).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["clean", "smudge"] {
        let key = format!("filter.lfs.{name}");
        let value = format!("{} {name}", script.display());
        scene.git_args(&["config", "--global", &key, &value]);
    }
    scene.git("config --global filter.lfs.required true");
}

#[tokio::test]
async fn pointers_stay_pointers_where_the_user_has_no_filter() {
    let scene = Scene::new();
    scene.write(".gitattributes", ATTRIBUTES);
    scene.write("big.bin", POINTER);
    scene.commit("pointer");
    // A filter that only the repository names does not run.
    let mark = scene.root().join("MARK");
    let filter = format!("sh -c 'touch {}; echo filtered'", mark.display());
    for name in ["clean", "smudge"] {
        scene.git_args(&["config", &format!("filter.lfs.{name}"), &filter]);
    }
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    assert_eq!(fs::read_to_string(path.join("big.bin")).unwrap(), POINTER);
    let other = POINTER.replace("size 4", "size 5");
    write(&path, "other.bin", &other);
    write(&path, "new.txt", "new\n");
    let report = scene.keep(worktree).await;
    assert_eq!((report.uncommitted, report.notes.len()), (2, 0), "{report:?}");
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let merge = Merge::any(&How::Merge, "merged");
    scene.worktrees.merge(&scene.top, &listed[0], &merge).await.unwrap();
    assert!(!mark.exists());
    scene.git("config --remove-section filter.lfs");
    assert_eq!((scene.read("big.bin").as_str(), scene.read("other.bin")), (POINTER, other.clone()));
    assert_eq!(scene.git("show HEAD:other.bin"), other.trim());
    assert_eq!(scene.git("status --porcelain"), "");
}

#[tokio::test]
async fn contents_that_an_agent_adds_come_home_with_its_commits() {
    // I-7
    let scene = Scene::new();
    install(&scene);
    scene.write(".gitattributes", ATTRIBUTES);
    scene.write("big.bin", "old content\n");
    scene.commit("big");
    assert!(scene.git("show HEAD:big.bin").starts_with("version "));
    let worktree = scene.create("one").await;
    let path = worktree.record.path.clone();
    assert_eq!(fs::read_to_string(path.join("big.bin")).unwrap(), "old content\n");
    write(&path, "big.bin", "by the agent\n");
    scene.git_in(&path, "add -A");
    scene.git_in(&path, "commit -q -m mine");
    write(&path, "more.bin", "not committed\n");
    // A content that is not what its name says is no content of that name.
    let forged = "ab".repeat(32);
    let private = worktree.private_repository().unwrap().path().to_owned();
    write(&private, &format!("lfs/objects/ab/ab/{forged}"), "forged\n");
    let report = scene.keep(worktree).await;
    let note =
        "contents of Git LFS stay in its private repository: 1 with a wrong name, 0 too many";
    assert_eq!(report.notes, [note], "{report:?}");
    assert!(!scene.path(&format!(".git/lfs/objects/ab/ab/{forged}")).exists());
    let listed = scene.worktrees.list(&scene.top).await.unwrap();
    let merge = Merge::any(&How::Merge, "merged");
    scene.worktrees.merge(&scene.top, &listed[0], &merge).await.unwrap();
    // All of it is in the repository now, whatever becomes of the worktree.
    fs::remove_dir_all(&path).unwrap();
    fs::remove_dir_all(scene.path(".git/centurion")).unwrap();
    scene.git("checkout -q -f HEAD~1");
    scene.git("checkout -q -f main");
    assert_eq!(scene.read("big.bin"), "by the agent\n");
    assert_eq!(scene.read("more.bin"), "not committed\n");
    assert!(scene.git("show HEAD:more.bin").starts_with("version "));
}
