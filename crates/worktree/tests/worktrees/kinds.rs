//! Repositories of every kind and in every state: work in a worktree of one comes home whole, and the repository stays as
//! it was.

use std::path::PathBuf;

use centurion_worktree::Unsaved;
use centurion_worktree::merge::{How, Merge};

use crate::support::{Scene, wish, write};

/// What makes the repository of a scene, or one beside it, one of a kind, and where its checkout is then. `$R` is the
/// directory of the scene, and the commands run in its repository.
const KINDS: [(&str, &str, &str); 23] = [
    ("detached", "git checkout -q --detach HEAD~1", ""),
    ("packed", "git pack-refs --all && git gc -q", ""),
    ("shallow", "git clone -q --depth 1 \"file://$PWD\" $R/kind", "kind"),
    (
        "without blobs",
        "git config uploadpack.allowFilter true && git clone -q --filter=blob:none \"file://$PWD\" $R/kind",
        "kind",
    ),
    (
        "without trees",
        "git config uploadpack.allowFilter true && git clone -q --filter=tree:0 \"file://$PWD\" $R/kind",
        "kind",
    ),
    ("borrowing objects", "git clone -q --shared \"$PWD\" $R/kind", "kind"),
    (
        "of longer ids",
        "git init -q --object-format=sha256 $R/kind && cp -r a.txt src .gitignore $R/kind && cd $R/kind && git add -A && git commit -q -m x",
        "kind",
    ),
    (
        "with its git directory elsewhere",
        "git clone -q --separate-git-dir=$R/kind.git \"$PWD\" $R/kind",
        "kind",
    ),
    (
        "linked",
        "git worktree add -q -b feature $R/kind && cd $R/kind && git commit -q --allow-empty -m f",
        "kind",
    ),
    (
        "in a merge",
        "git checkout -q -b o HEAD~1 && echo x > src/c.txt && git add -A && git commit -q -m o && git checkout -q main && ! git merge -q o",
        "",
    ),
    (
        "in a rebase",
        "git checkout -q -b o HEAD~1 && echo x > src/c.txt && git add -A && git commit -q -m o && ! git rebase -q main",
        "",
    ),
    (
        "in a pick",
        "git checkout -q -b o HEAD~1 && echo x > src/c.txt && git add -A && git commit -q -m o && ! git cherry-pick main",
        "",
    ),
    ("in a bisection", "git bisect start -q HEAD HEAD~1", ""),
    ("with an index in two parts", "git update-index --split-index", ""),
    ("with an index of another form", "git update-index --index-version 4", ""),
    (
        "with a sparse index",
        "mkdir e && echo e > e/e && git add -A && git commit -q -m e && git sparse-checkout set --cone --sparse-index src",
        "",
    ),
    (
        "with settings of each worktree",
        "git config extensions.worktreeConfig true && git config --worktree core.quotePath false",
        "",
    ),
    ("with other line ends", "git config core.autocrlf true", ""),
    (
        "with a commit replaced",
        "git replace HEAD $(git commit-tree HEAD^{tree} -p HEAD~1 -m replaced)",
        "",
    ),
    (
        "with names that differ in case alone",
        "echo 1 > Readme && echo 2 > README && git add -A && git commit -q -m case",
        "",
    ),
    (
        "with names that are no text",
        "printf x > \"$(printf 'lat\\351')\" && git add -A && git commit -q -m name",
        "",
    ),
    ("at a place with signs", "git clone -q \"$PWD\" \"$R/q\\\"uo'te\\$x:ü\"", "q\"uo'te$x:ü"),
    (
        "with changes of its own",
        "echo dirty >> a.txt && echo staged > s && git add s && echo new > n",
        "",
    ),
];

/// Lines of configuration, of the repository or the user, each with what could come of it. `$PWD` is the repository.
const SETTINGS: [(&str, &str); 14] = [
    ("says where the files are", "core.worktree=$PWD core.bare=false"),
    (
        "signs",
        "commit.gpgSign=true tag.gpgSign=true gpg.program=false push.gpgSign=true log.showSignature=true",
    ),
    (
        "hides",
        "status.showUntrackedFiles=no core.fileMode=false core.trustctime=false core.checkStat=minimal diff.ignoreSubmodules=all",
    ),
    (
        "has hooks elsewhere",
        "core.hooksPath=/nowhere core.attributesFile=/nowhere core.excludesFile=/nowhere",
    ),
    (
        "colours",
        "color.ui=always core.quotePath=true core.abbrev=5 core.pager=false status.relativePaths=false",
    ),
    (
        "shows otherwise",
        "diff.noprefix=true diff.mnemonicPrefix=true diff.renames=copies diff.external=false diff.wordRegex=. diff.orderFile=/nowhere",
    ),
    (
        "keeps many files",
        "feature.manyFiles=true core.untrackedCache=true core.preloadIndex=false index.threads=1",
    ),
    (
        "keeps no logs",
        "core.logAllRefUpdates=false gc.reflogExpire=now gc.auto=1 gc.autoDetach=false gc.pruneExpire=now",
    ),
    (
        "encodes",
        "i18n.commitEncoding=ISO-8859-1 i18n.logOutputEncoding=UTF-16 core.precomposeUnicode=true",
    ),
    (
        "merges otherwise",
        "merge.ff=only pull.rebase=true merge.conflictStyle=diff3 merge.renames=false rebase.autoStash=true merge.autoStash=true \
         branch.autoSetupMerge=always branch.autoSetupRebase=always",
    ),
    (
        "fetches otherwise",
        "fetch.fsckObjects=true fetch.prune=true fetch.pruneTags=true fetch.parallel=0 transfer.hideRefs=refs/centurion \
         fetch.writeCommitGraph=true fetch.negotiationAlgorithm=noop fetch.unpackLimit=1 fetch.recurseSubmodules=true",
    ),
    (
        "leads addresses elsewhere",
        "url./nowhere/.insteadOf=/ url./nowhere/.pushInsteadOf=/ remote.origin.url=/nowhere",
    ),
    (
        "is shared",
        "core.sharedRepository=group core.fsync=all receive.denyCurrentBranch=refuse core.compression=0",
    ),
    (
        "checks white space",
        "apply.whitespace=error core.whitespace=tab-in-indent core.safecrlf=true core.autocrlf=input",
    ),
];

#[tokio::test]
async fn work_comes_home_and_is_merged_whatever_is_configured() {
    // I-7
    for (what, settings) in SETTINGS {
        for whose in ["--local", "--global"] {
            let scene = Scene::new();
            let top = scene.top.display();
            for (name, value) in
                settings.split_ascii_whitespace().filter_map(|it| it.split_once('='))
            {
                let set = format!("git config {whose} '{name}' \"{value}\"");
                scene.shell(&format!("cd '{top}' && {set}"));
            }
            let what = format!("{what}, {whose}");
            let worktree = scene.worktrees.create(&scene.top, &wish("one")).await;
            let worktree = worktree.unwrap_or_else(|error| panic!("{what}: {error}"));
            let path = worktree.record.path.clone();
            write(&path, "committed.txt", "committed\n");
            scene.git_in(&path, "add committed.txt");
            // The user's own git may fail so.
            let free = ["-c", "commit.gpgSign=false", "-c", "diff.orderFile=/dev/null"];
            scene.run_git(&path, &[&free[..], &["commit", "-q", "-m", "wörk"]].concat());
            write(&path, "rest.txt", "rest\n");
            let report = scene.keep(worktree).await;
            let files: Vec<&str> = report.files.iter().map(|it| it.path.as_str()).collect();
            assert_eq!(files, ["committed.txt", "rest.txt"], "{what}: {report:?}");
            assert_eq!((report.ahead, report.uncommitted), (1, 1), "{what}: {report:?}");
            let entry = || async { scene.worktrees.list(&scene.top).await.unwrap().remove(0) };
            let gone = scene.worktrees.let_go(&scene.top, &entry().await, Unsaved::IsSaved).await;
            gone.unwrap_or_else(|error| panic!("{what}: {error}")).delete();
            let back = scene.worktrees.restore(&scene.top, "one").await;
            back.unwrap_or_else(|error| panic!("{what}: {error}"));
            let merge = Merge::any(&How::Merge, "merged");
            let merged = scene.worktrees.merge(&scene.top, &entry().await, &merge).await;
            assert_eq!(
                merged.unwrap_or_else(|error| panic!("{what}: {error}")).commits,
                2,
                "{what}"
            );
            let here = (scene.read("committed.txt"), scene.read("rest.txt"));
            assert_eq!(here, ("committed\n".to_owned(), "rest\n".to_owned()), "{what}");
        }
    }
}

#[tokio::test]
async fn work_comes_home_whole_from_a_worktree_of_any_repository() {
    // I-7
    for (kind, command, place) in KINDS {
        let mut scene = Scene::new();
        let allowed =
            "[protocol \"file\"]\n\tallow = always\n[user]\n\tname = T\n\temail = t@localhost\n";
        std::fs::write(scene.root().join("home/.gitconfig"), allowed).unwrap();
        let (root, repository) = (scene.root(), scene.top.clone());
        scene.shell(&format!("R='{}'; cd '{}' && {command}", root.display(), repository.display()));
        if !place.is_empty() {
            scene.top = root.join(place);
        }
        let config = |scene: &Scene| {
            PathBuf::from(scene.git("rev-parse --path-format=absolute --git-common-dir"))
                .join("config")
        };
        let state = |scene: &Scene| {
            let refs = scene.git("for-each-ref --format=%(refname)%(objectname)");
            let own =
                |line: &&str| line.contains("/worktree-one") || line.contains("refs/centurion/");
            let refs: Vec<&str> = refs.lines().filter(|line| !own(line)).collect();
            let texts =
                [scene.git("ls-files --stage"), scene.git("status --porcelain"), scene.head()];
            format!("{refs:?}\n{}\n{texts:?}", std::fs::read_to_string(config(scene)).unwrap())
        };
        let (before, head) = (state(&scene), scene.head());
        let worktree = scene.worktrees.create(&scene.top, &wish("one")).await;
        let worktree = worktree.unwrap_or_else(|error| panic!("{kind}: {error}"));
        let path = worktree.record.path.clone();
        assert_eq!(worktree.record.base, head, "{kind}");
        assert_eq!(scene.git_in(&path, "status --porcelain"), "", "{kind}");
        write(&path, "src/grün.txt", "work\n");
        scene.git_in(&path, "add -A");
        scene.git_in(&path, "commit -q -m work");
        let made = scene.git_in(&path, "rev-parse HEAD");
        write(&path, "src/staged.txt", "staged\n");
        scene.git_in(&path, "add -A");
        write(&path, "src/rest.txt", "rest\n");
        let report = scene.keep(worktree).await;
        assert_eq!(state(&scene), before, "{kind}");
        assert_eq!(scene.git("rev-parse worktree-one"), made, "{kind}");
        assert_eq!((report.head.as_str(), report.uncommitted), (made.as_str(), 2), "{kind}");
        let files: Vec<&str> = report.files.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(files, ["src/grün.txt", "src/rest.txt", "src/staged.txt"], "{kind}");
        assert_eq!(
            (report.ahead, report.behind, report.merges.len()),
            (1, 0, 1),
            "{kind}: {report:?}"
        );
        let saved =
            scene.git("ls-tree -r --full-tree --name-only refs/centurion/agents/one/uncommitted");
        assert!(saved.contains("rest.txt") && saved.contains("staged.txt"), "{kind}: {saved}");
        // One in which nothing is done goes again.
        let worktree = scene.worktrees.create(&scene.top, &wish("two")).await.unwrap();
        let settled = scene.settle(worktree).await;
        assert!(matches!(settled, centurion_worktree::Settled::Removed(_)), "{kind}: {settled:?}");
        assert_eq!(scene.git("branch --list worktree-two"), "", "{kind}");
    }
}
