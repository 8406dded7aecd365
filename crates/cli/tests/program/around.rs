//! Surroundings of an agent that works apart, which belong to others: other checkouts of the repository, the repositories
//! that this one is a submodule of, and what links in its worktree lead to. None of it changes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use centurion_testkit::{Lack, skip};
use serde_json::{Value, json};

use crate::program::ended;
use crate::sandboxes::can_confine_completely;
use crate::stage::bash;
use crate::worktrees::{FREE, Repository, apart, git_in, results, write};

fn root(repository: &Repository) -> PathBuf {
    repository.stage.program.scratch.root().canonicalize().unwrap()
}

/// Settings in which a hook makes the worktrees.
fn hook(command: &str) -> String {
    let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
    json!({"hooks": {"WorktreeCreate": hook}}).to_string()
}

/// Calls of a child that tries to change checkouts and their repositories, by its tools and by commands.
fn attack(places: &[&Path]) -> Vec<Value> {
    let mut calls = vec![write("mine.txt", "x\n")];
    for place in places.iter().map(|place| place.display().to_string()) {
        calls.push(write(&format!("{place}/a.txt"), "bad\n"));
        calls.push(write(&format!("{place}/.git/hooks/post-commit"), "bad\n"));
        calls.push(bash(&format!(
            "cd {place}; echo bad > a.txt; echo bad > {place}/b.txt; git -C {place} branch bad; \
             git -C {place} commit -q --allow-empty -m bad; git -C {place} config core.hooksPath /tmp; true"
        )));
    }
    calls
}

/// Everything of a checkout that is to stay as it is.
fn state(top: &Path) -> String {
    let refs = git_in(top, "for-each-ref --format=%(refname)=%(objectname)");
    let own = |line: &&str| line.contains("/worktree-") || line.contains("refs/centurion/");
    let refs: Vec<&str> = refs.lines().filter(|line| !own(line)).collect();
    let config = git_in(top, "config --list --local");
    let (files, head) = (git_in(top, "status --porcelain"), git_in(top, "rev-parse HEAD"));
    format!(
        "{refs:?}\n{config}\n{files}\n{head}\n{}",
        fs::read_to_string(top.join("a.txt")).unwrap()
    )
}

#[test]
fn a_directory_that_a_hook_made_is_kept_from_every_checkout_around_the_caller() {
    // I-6
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = Repository::new(&json!({}));
    let root = root(&repository);
    let linked = root.join("linked");
    repository.git(&format!("worktree add -q -b linked {}", linked.display()));
    let made = root.join("made");
    repository.play(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [attack(&[&repository.top, &linked]), "tried"],
    }));
    let before = [state(&repository.top), state(&linked)];
    let settings = hook(&format!("mkdir -p {0}; echo {0}", made.display()));
    let args = [FREE, &["--settings", &settings]].concat();
    let mut command = repository.stage.command("@@lead", &args);
    let ended = ended(command.current_dir(&linked).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(made.join("mine.txt").exists(), "{}", ended.stdout);
    assert_eq!([state(&repository.top), state(&linked)], before);
}

#[test]
fn a_hook_cannot_name_what_its_agent_is_to_be_kept_from() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[write("mine.txt", "x\n")], "did"],
        "session": [[json!({"tool": "EnterWorktree", "input": {"name": "w"}})], "done"],
    }));
    let root = root(&repository);
    let top = &repository.top;
    repository.write("src/b.txt", "b\n");
    repository.write("file", "x");
    symlink(top, root.join("link")).unwrap();
    let before = git_in(top, "status --porcelain");
    let refused = [
        (top.clone(), "is, or has in it"),
        (root.clone(), "is, or has in it"),
        (root.join("link"), "is a symbolic link"),
        (PathBuf::from("/"), "is, or has in it"),
        (top.join("src"), "lies in"),
        (top.join(".git/info"), "lies in"),
        (top.join("file"), ""),
        (root.join("missing"), ""),
    ];
    for (place, why) in refused {
        let settings = hook(&format!("echo {}", place.display()));
        for prompt in ["@@lead", "@@session"] {
            let told = repository.stage.run(prompt, &[FREE, &["--settings", &settings]].concat());
            let text = results(&told);
            assert!(
                text.contains("the WorktreeCreate hook made none"),
                "{prompt} {place:?}: {text}"
            );
            assert!(text.contains(why), "{prompt} {place:?}: {text}");
        }
        assert_eq!(git_in(top, "status --porcelain"), before, "{place:?}");
    }
    // A directory that is no part of the checkout can lie in it.
    let within = [
        format!("mkdir -p {0}; echo {0}", top.join(".claude/worktrees/mine").display()),
        format!(
            "git -C {1} worktree add -q {0} >&2; echo {0}",
            top.join("trees/t").display(),
            top.display()
        ),
    ];
    for command in within {
        let told = repository.run(&["--settings", &hook(&command)]);
        let path = told.data()[0]["worktreePath"].as_str().unwrap_or_default().to_owned();
        assert!(Path::new(&path).join("mine.txt").exists(), "{command}: {}", results(&told));
    }
}

#[test]
fn the_result_of_an_agent_in_a_worktree_of_a_hook_tells_what_is_in_it() {
    // S-303, S-307, D-21
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [[write("other.txt", "x\n"), write("new.txt", "1\n2\n")], "did"],
    }));
    let (root, top) = (root(&repository), repository.top.display().to_string());
    let linked = root.join("linked");
    let add = format!("git -C {top} worktree add -q -b topic {0} >&2; echo {0}", linked.display());
    let told = repository.run(&["--settings", &hook(&add)]);
    let (data, text) = (told.data()[0].clone(), results(&told));
    let report = &data["worktree"]["report"];
    assert_eq!(data["worktreeBranch"], "topic", "{data}");
    assert_eq!(report["base"], repository.git("rev-parse main"), "{data}");
    assert_eq!((&report["ahead"], &report["behind"]), (&json!(0), &json!(0)), "{data}");
    assert_eq!(report["merges"], json!([{"with": "main", "conflicts": []}]), "{data}");
    assert_eq!(report["uncommitted"], 2, "{data}");
    for words in [
        "other.txt (+1 -0)",
        "new.txt (+2 -0)",
        "merges into main without conflict",
        "a hook made it",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // One that git knows nothing of is kept, and that is said.
    let plain = root.join("plain");
    let told =
        repository.run(&["--settings", &hook(&format!("mkdir {0}; echo {0}", plain.display()))]);
    assert!(
        results(&told).contains("no checkout of git's that can be compared"),
        "{}",
        results(&told)
    );
    assert!(plain.join("new.txt").exists());
}

#[test]
fn the_repository_around_a_submodule_is_kept() {
    // I-6
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = Repository::new(&json!({}));
    let top = &repository.top;
    let root = root(&repository);
    let (part, other) = (root.join("part"), root.join("other"));
    for made in [&part, &other] {
        git_in(&root, &format!("clone -q {} {}", top.display(), made.display()));
    }
    for name in ["part", "deep/other"] {
        let from = root.join(name.trim_start_matches("deep/"));
        repository.git(&format!(
            "-c protocol.file.allow=always submodule --quiet add {} {name}",
            from.display()
        ));
    }
    repository.git("commit -q -m submodules");
    let session = top.join("part");
    let sibling = top.join("deep/other");
    repository.play(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [attack(&[top, &session, &sibling]), "tried"],
    }));
    let before = [state(top), state(&session), state(&sibling)];
    let mut command = repository.stage.command("@@lead", FREE);
    let ended = ended(command.current_dir(&session).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut made = fs::read_dir(session.join(".claude/worktrees")).unwrap().flatten();
    assert!(made.any(|it| it.path().join("mine.txt").exists()), "{}", ended.stdout);
    assert_eq!([state(top), state(&session), state(&sibling)], before);
}

#[test]
fn what_a_linked_directory_leads_to_is_kept_wherever_it_is() {
    // I-6
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [write("node_modules/written", "bad\n"), bash("cat node_modules/there > seen.txt; echo bad > node_modules/made; true")],
            "tried",
        ],
    }));
    let store = root(&repository).join("store");
    fs::create_dir(&store).unwrap();
    fs::write(store.join("there"), "there\n").unwrap();
    symlink(&store, repository.top.join("node_modules")).unwrap();
    repository.write(".git/info/exclude", "node_modules\n");
    let told = repository.run(&[]);
    told.assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{}", told.ended.stdout) };
    assert_eq!(fs::read_to_string(path.join("seen.txt")).unwrap(), "there\n");
    let left: Vec<_> = fs::read_dir(&store).unwrap().flatten().map(|it| it.file_name()).collect();
    assert_eq!(left, ["there"]);
}

#[test]
fn what_servers_do_for_an_agent_apart_is_said_and_asked_about_where_the_settings_want_it() {
    let repository = Repository::new(&json!({}));
    let file = root(&repository).join("by-server");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/writer.py");
    let servers =
        json!({"mcpServers": {"w": {"command": "python3", "args": [script]}}}).to_string();
    let call = |tool: &str| json!({"tool": format!("mcp__w__{tool}"), "input": {"path": file}});
    let strict = r#"{"worktree": {"requireSandbox": true}}"#;
    let skipping = ["--mcp-config", &servers, "--dangerously-skip-permissions"];
    let words = "tools of servers that it called (mcp__w__put) work outside of its worktree";
    for is_background in [false, true] {
        repository.play(&json!({
            "lead": [[apart("@@child", &json!({"run_in_background": is_background}))], "wait", "done"],
            "child": [[call("look")], [call("put")], "did"],
        }));
        let mut command = repository.stage.command("@@lead", &skipping);
        let ended = ended(command.env("IS_SANDBOX", "1").output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let lead = repository.stage.program.transcripts();
        let lead = lead.iter().map(|path| fs::read_to_string(path).unwrap()).collect::<String>();
        assert!(lead.contains(words), "{lead}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "written");
        fs::remove_file(&file).unwrap();
    }
    if !can_confine_completely() {
        return skip(Lack::Sandbox);
    }
    // Skipped permissions do not skip this; a rule for the tool does.
    for (more, is_written) in [(vec![], false), (vec!["--allowedTools", "mcp__w__put"], true)] {
        let args = [&skipping[..], &["--settings", strict], &more].concat();
        let mut command = repository.stage.command("@@lead", &args);
        let ended = ended(command.env("IS_SANDBOX", "1").output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(file.exists(), is_written, "{}", ended.stdout);
    }
}

#[test]
fn no_file_tool_gets_through_links_that_others_put_into_a_worktree() {
    // I-6
    let repository = Repository::new(&json!({}));
    let top = repository.top.display().to_string();
    let notebook = json!({"cells": [{"cell_type": "code", "id": "c", "metadata": {}, "source": "1", "outputs": [], "execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    repository.write("n.ipynb", &notebook.to_string());
    repository.git("add -A");
    repository.git("commit -q -m notebook");
    repository.write("a.txt", "s3cret\n");
    let tool = |name: &str, input: Value| json!({"tool": name, "input": input});
    let cell = |path: &str| {
        tool("NotebookEdit", json!({"notebook_path": path, "cell_id": "c", "new_source": "bad"}))
    };
    let read = |path: &str| tool("Read", json!({"file_path": path}));
    let links = "until ls .claude/worktrees/agent-*/ready; do sleep 0.05; done; cd .claude/worktrees/agent-*/; \
        ln ../../../a.txt hard; ln -s ../../.. inside; ln -s ../../../a.txt link; ln -s ../../../n.ipynb linked.ipynb; touch go";
    let calls = [
        read("link"),
        read("inside/n.ipynb"),
        read("linked.ipynb"),
        read(&format!("{top}/a.txt")),
        write("hard", "bad\n"),
        write("link", "bad\n"),
        write("inside/b.txt", "bad\n"),
        tool("Edit", json!({"file_path": "link", "old_string": "s3cret", "new_string": "bad"})),
        cell("linked.ipynb"),
        cell("inside/n.ipynb"),
        cell(&format!("{top}/n.ipynb")),
        tool("Grep", json!({"pattern": "s3c", "output_mode": "content", "glob": "!hard"})),
        tool("Grep", json!({"pattern": "s3c", "output_mode": "content", "path": "inside"})),
        tool("Grep", json!({"pattern": "s3c", "output_mode": "content", "path": top})),
        tool("Glob", json!({"pattern": "**/*.ipynb", "path": "inside"})),
        tool("Glob", json!({"pattern": "inside/*.txt"})),
    ];
    repository.play(&json!({
        "lead": [[apart("@@child", &json!({"run_in_background": true}))], [bash(links)], "wait", "heard"],
        "child": [[bash("touch ready; until [ -e go ]; do sleep 0.05; done")], calls, "tried"],
    }));
    let before = repository.state();
    let told = repository.run(&[]);
    told.assert_code(0);
    assert_eq!(repository.state(), before);
    assert_eq!(fs::read_to_string(repository.top.join("a.txt")).unwrap(), "s3cret\n");
    assert!(!repository.top.join("b.txt").exists());
    let said = repository.stage.agent_transcripts().concat();
    assert!(!said.contains("s3cret\\n") && !said.contains("1\\ts3cret"), "{said}");
    assert!(said.contains("that this agent works apart from"), "{said}");
}

#[test]
fn no_file_tool_gets_through_a_directory_that_is_exchanged_for_a_link() {
    // I-6
    let writes: Vec<Value> = (0..60).map(|at| write(&format!("d/x{at}.txt"), "bad\n")).collect();
    let exchange = "while [ ! -e stop ]; do rm -rf d; ln -s ../../.. d; rm d; mkdir d; done";
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child", &json!({}))], "done"],
        "child": [
            [json!({"tool": "Bash", "input": {"command": exchange, "run_in_background": true}})],
            writes,
            [bash("touch stop")],
            "tried",
        ],
    }));
    let before = repository.state();
    let told = repository.run(&[]);
    told.assert_code(0);
    assert_eq!(repository.state(), before);
    let found = fs::read_dir(&repository.top).unwrap().flatten();
    let found: Vec<_> =
        found.map(|it| it.file_name()).filter(|it| it.to_string_lossy().starts_with('x')).collect();
    assert!(found.is_empty(), "{found:?}");
}
