//! Git cannot ask a person: no terminal, no program that asks, nothing to read. It works where we say, and fetches nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use centurion_worktree::{Direct, Program, RunProgram, Running};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::support::{Scene, wish, write};

/// Tells of every program that is run.
struct Telling(UnboundedSender<Program>);

impl RunProgram for Telling {
    fn run(&self, program: Program) -> Running<'_> {
        self.0.send(program.clone()).unwrap();
        Direct.run(program)
    }
}

#[tokio::test]
async fn no_git_of_ours_can_ask_or_wait_for_a_person() {
    // S-298
    let scene = Scene::new();
    let (sender, mut told) = unbounded_channel();
    let worktrees = scene.other(Arc::new(Telling(sender)));
    let made = worktrees.create(&scene.top, &wish("one")).await.unwrap();
    worktrees.settle(made, Some(&scene.top)).await.unwrap();
    let made = worktrees.create(&scene.top, &wish("two")).await.unwrap();
    write(&made.record.path, "a.txt", "work\n");
    worktrees.settle(made, Some(&scene.top)).await.unwrap();
    drop(worktrees);
    let mut count = 0;
    while let Some(program) = told.recv().await {
        count += 1;
        let value = |name: &str| program.environment.get(name).map(String::as_str);
        assert_eq!(value("GIT_TERMINAL_PROMPT"), Some("0"), "{:?}", program.args);
        assert_eq!(value("GIT_ASKPASS"), Some(""), "{:?}", program.args);
        // Nor does it take a lock only to look.
        assert_eq!(value("GIT_OPTIONAL_LOCKS"), Some("0"), "{:?}", program.args);
        let has = |word: &str| program.args.iter().any(|it| it == word);
        // It goes to no other repository, not even for an object that is missing, but to bring work home.
        let protocols = if has("fetch") { "file" } else { "none" };
        assert_eq!(value("GIT_ALLOW_PROTOCOL"), Some(protocols), "{:?}", program.args);
        assert_eq!(value("GIT_LFS_SKIP_SMUDGE"), Some("1"), "{:?}", program.args);
        // It looks for a repository only where it does not know of one.
        assert_eq!(value("GIT_DIR").is_none(), has("--git-common-dir"), "{:?}", program.args);
    }
    assert!(count > 3);
    // What is read ends at once: git that waits for more would never end.
    let read = Direct.run(Program {
        program: "/bin/cat".into(),
        args: Vec::new(),
        environment: BTreeMap::default(),
        cwd: scene.top.clone(),
        input: Vec::new(),
    });
    assert_eq!(read.await.unwrap().stdout, b"");
}
