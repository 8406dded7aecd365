//! The model's own way to bring over what agents did apart.

use serde_json::{Value, json};

use crate::stage::{agent, bash};
use crate::worktrees::{Repository, git_in, results};

fn worktrees(input: &Value) -> Value {
    json!({"tool": "Worktrees", "input": input})
}

fn commit(file: &str, text: &str) -> Value {
    bash(&format!(
        "mkdir -p $(dirname {file}); echo {text} > {file}; git add -A; git commit -q -m {text}"
    ))
}

/// The one worktree's name is not known before the run: its branch is asked for by a pattern of the script.
fn only() -> String {
    "worktree-agent-only".to_owned()
}

fn apart(prompt: &str) -> Value {
    agent(prompt, &json!({"isolation": "worktree"}))
}

/// Has the lead speak of the worktree that the first run left.
fn then(repository: &Repository, actions: &[Value]) -> String {
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let name = path.file_name().unwrap().to_str().unwrap();
    let actions = Value::from(actions.to_vec()).to_string().replace(&only(), name);
    let mut script: Vec<Value> = serde_json::from_str(&actions).unwrap();
    script.push("done".into());
    repository.play(&json!({"lead": script}));
    let told = repository.run(&[]);
    told.assert_code(0);
    results(&told)
}

#[test]
fn a_model_looks_at_what_agents_left_and_merges_it() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child")], "done"],
        "child": [[commit("new.txt", "fresh")], "did it"],
    }));
    repository.run(&[]).assert_code(0);
    // A change of the user's own stays.
    repository.write("other.txt", "mine\n");
    let text = then(
        &repository,
        &[
            json!([worktrees(&json!({"action": "list"}))]),
            json!([worktrees(&json!({"action": "show", "name": only()}))]),
            json!([worktrees(&json!({"action": "diff", "name": only()}))]),
            json!([worktrees(&json!({"action": "merge", "name": only()}))]),
            json!([worktrees(&json!({"action": "clean", "name": only()}))]),
            json!([worktrees(&json!({"action": "show", "name": "nothing"}))]),
        ],
    );
    assert!(text.contains(": kept."), "{text}");
    assert!(text.contains("1 file changed since"), "{text}");
    assert!(text.contains("+fresh"), "{text}");
    assert!(text.contains("1 commit came over"), "{text}");
    assert!(text.contains("brings it back"), "{text}");
    assert!(text.contains("there is no worktree `nothing`"), "{text}");
    assert_eq!(repository.git("show HEAD:new.txt"), "fresh");
    assert_eq!(repository.git("status --porcelain"), "?? other.txt");
    assert!(repository.worktrees().is_empty());
}

#[test]
fn a_merge_is_judged_by_the_files_that_it_changes() {
    // A model alone does not merge files that later steps obey, and a merge that a rule denies does not happen.
    for (file, settings, expected) in [
        (".claude/settings.json", json!({}), "it changes .claude/settings.json"),
        ("conf/key", json!({"permissions": {"deny": ["Edit(/conf/**)"]}}), "it changes conf/key"),
        ("Makefile", json!({"permissions": {"ask": ["Edit(/Makefile)"]}}), "it changes Makefile"),
        ("conf/key", json!({"permissions": {"deny": ["Write(/conf/**)"]}}), "it changes conf/key"),
    ] {
        let repository = Repository::new(&json!({
            "lead": [[apart("@@child")], "done"],
            "child": [[commit("plain.txt", "x")], "did it"],
        }));
        repository.run(&[]).assert_code(0);
        let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
        std::fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
        std::fs::write(path.join(file), "{}\n").unwrap();
        git_in(path, "add -A -f");
        git_in(path, "commit -q -m more");
        let before = repository.git("rev-parse HEAD");
        let (settings, name) = (settings.to_string(), path.file_name().unwrap().to_str().unwrap());
        let merge = |how: &Value| {
            let mut input = json!({"action": "merge", "name": name});
            input.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
            json!([worktrees(&input)])
        };
        let picked = json!({"how": "cherry-pick", "commits": [git_in(path, "rev-parse HEAD")]});
        repository.play(&json!({
            "lead": [merge(&json!({})), merge(&json!({"how": "squash"})), merge(&picked), "done"],
        }));
        let told = repository.run(&["--settings", &settings]);
        told.assert_code(0);
        let text = results(&told);
        assert_eq!(text.matches(expected).count(), 3, "{file}: {text}");
        assert_eq!(repository.git("rev-parse HEAD"), before, "{file}");
    }
}

#[test]
fn a_diff_does_not_show_what_may_not_be_read() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child")], "done"],
        "child": [[commit("conf/key", "s3cret-value"), commit("open.txt", "plain")], "did it"],
    }));
    repository.run(&[]).assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    std::fs::create_dir_all(path.join("conf")).unwrap();
    std::fs::write(path.join("conf/loose"), "s3cret-value\n").unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    repository.play(&json!({
        "lead": [[worktrees(&json!({"action": "diff", "name": name}))], "done"],
    }));
    let deny = json!({"permissions": {"deny": ["Read(/conf/**)"]}}).to_string();
    let told = repository.run(&["--settings", &deny]);
    told.assert_code(0);
    let text = results(&told);
    assert!(text.contains("+plain") && !text.contains("s3cret"), "{text}");
    assert!(text.contains("(not shown: conf/key, conf/loose)"), "{text}");
}

#[test]
fn an_agent_apart_merges_what_its_own_agents_did_apart() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@middle")], "done"],
        "middle": [
            [commit("middle.txt", "middle")],
            [apart("@@leaf")],
            [worktrees(&json!({"action": "list"}))],
            "stay",
        ],
        "leaf": [[commit("leaf.txt", "leaf")], "did it"],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    // The middle one is sent on with the name of what its own agent left.
    let leaf =
        repository.worktrees().into_iter().find(|path| path.join("leaf.txt").exists()).unwrap();
    let name = leaf.file_name().unwrap().to_str().unwrap();
    let id = told.data()[0]["agentId"].as_str().unwrap().to_owned();
    let session = told.of("result")[0]["session_id"].as_str().unwrap().to_owned();
    let send =
        json!({"tool": "SendMessage", "input": {"to": id, "message": "@@merge", "summary": "on"}});
    repository.play(&json!({
        "lead": [[send], "wait", "done"],
        "merge": [
            [worktrees(&json!({"action": "merge", "name": name}))],
            [bash("git log --format=%s; ls")],
            "merged",
        ],
    }));
    let again = repository.run(&["--resume", &session]);
    again.assert_code(0);
    let transcripts = repository.stage.agent_transcripts().concat();
    assert!(transcripts.contains("1 commit came over"), "{transcripts}");
    let middle = repository.worktrees().into_iter().find(|path| *path != leaf).unwrap();
    assert_eq!(std::fs::read_to_string(middle.join("leaf.txt")).unwrap(), "leaf\n");
    assert!(!repository.top.join("leaf.txt").exists());
}

#[test]
fn a_merge_changes_nothing_where_the_session_does_not_work() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child")], "done"],
        "child": [[commit("top.txt", "x")], "did it"],
    }));
    repository.run(&[]).assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    let name = path.file_name().unwrap().to_str().unwrap();
    repository.play(&json!({
        "lead": [[worktrees(&json!({"action": "merge", "name": name}))], "done"],
    }));
    let sub = repository.top.join("sub");
    std::fs::create_dir(&sub).unwrap();
    let mut command = repository.stage.command("@@lead", &["--permission-mode", "acceptEdits"]);
    let output = command.current_dir(&sub).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("it changes top.txt"), "{text}");
    assert!(!repository.top.join("top.txt").exists());
}

#[test]
fn a_person_is_shown_the_protected_files_of_a_merge_and_merges_no_other() {
    let repository = Repository::new(&json!({
        "lead": [[apart("@@child")], "done"],
        "child": [[commit("plain.txt", "x")], "did it"],
    }));
    repository.run(&[]).assert_code(0);
    let [path] = &repository.worktrees()[..] else { panic!("{:?}", repository.worktrees()) };
    for file in [".claude/settings.json", ".mcp.json"] {
        std::fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
        std::fs::write(path.join(file), "{}\n").unwrap();
    }
    git_in(path, "add -A -f");
    git_in(path, "commit -q -m more");
    let name = path.file_name().unwrap().to_str().unwrap();
    let merge = |protected: &[&str]| {
        json!([worktrees(&json!({"action": "merge", "name": name, "protected": protected}))])
    };
    let all = [".claude/settings.json", ".mcp.json"];
    repository.play(&json!({"lead": [merge(&[]), merge(&all[..1]), merge(&all), "done"]}));
    // A hook says yes to every question, and notes it.
    let asked = repository.stage.program.scratch.root().join("asked");
    let yes = json!({"hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": {"behavior": "allow"},
    }});
    let command = format!("cat >> {}; echo '{yes}'", asked.display());
    let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {"PermissionRequest": hook}}).to_string();
    let told = repository.run(&["--settings", &settings]);
    told.assert_code(0);
    let text = results(&told);
    // Without names there is no question that shows them; with some of them, the others are named.
    assert_eq!(text.matches("has a person decide about them").count(), 2, "{text}");
    assert_eq!(text.matches("came over").count(), 1, "{text}");
    let asked = std::fs::read_to_string(asked).unwrap();
    assert!(asked.contains(r#"".mcp.json""#), "{asked}");
    assert_eq!(repository.git("show HEAD:.mcp.json"), "{}");
}

#[test]
fn an_agent_apart_changes_no_worktree_that_its_own_agents_did_not_leave() {
    // I-6
    let repository = Repository::new(&json!({
        "lead": [[apart("@@first")], [apart("@@second")], "done"],
        "first": [[commit("first.txt", "first")], "did it"],
        "second": [[commit("second.txt", "second")], "did it"],
    }));
    let told = repository.run(&[]);
    told.assert_code(0);
    let id = |at: usize| told.data()[at]["agentId"].as_str().unwrap().to_owned();
    // One is there, the other is saved.
    repository.play(&json!({
        "lead": [[worktrees(&json!({"action": "clean", "name": id(1)}))], "done"],
    }));
    repository.run(&[]).assert_code(0);
    let loose = repository.worktrees()[0].join("loose.txt");
    std::fs::write(&loose, "loose\n").unwrap();
    let all = || repository.git("for-each-ref --format=%(refname)=%(objectname)");
    let own = |line: &&str| !line.contains("worktree-agent-") && !line.contains("refs/centurion/");
    let before = all();
    repository.play(&json!({
        "lead": [[apart("@@other")], "done"],
        "other": [
            [worktrees(&json!({"action": "clean", "name": id(0)}))],
            [worktrees(&json!({"action": "merge", "name": id(0)}))],
            [worktrees(&json!({"action": "restore", "name": id(1)}))],
            [worktrees(&json!({"action": "show", "name": id(0)}))],
            "tried",
        ],
    }));
    let told = repository.run(&["--permission-mode", "acceptEdits"]);
    told.assert_code(0);
    let said = repository.stage.agent_transcripts().concat();
    // A transcript has each result twice.
    assert_eq!(said.matches("changes only the worktrees that agents of its own left").count(), 6);
    assert!(said.contains("2 files changed since"), "{said}");
    assert_eq!(all(), before);
    assert!(before.lines().any(|line| own(&line)), "{before}");
    assert!(loose.exists() && repository.worktrees().len() == 1);
    // It lets go of, and brings back, what agents of its own left.
    repository.play(&json!({
        "lead": [[apart("@@middle")], "done"],
        "middle": [
            [agent("@@leaf", &json!({"isolation": "worktree"}))],
            [bash("cd ..; ls -d agent-* | grep -v $(basename $OLDPWD) > $OLDPWD/list.txt; true")],
            "left",
        ],
        "leaf": [[commit("leaf.txt", "leaf")], "did it"],
    }));
    let told = repository.run(&[]);
    let id = told.data()[0]["agentId"].as_str().unwrap().to_owned();
    let session = told.of("result")[0]["session_id"].as_str().unwrap().to_owned();
    let leaf = repository.worktrees().into_iter().find(|it| it.join("leaf.txt").exists()).unwrap();
    let record = std::fs::read_to_string(
        repository
            .top
            .join(".git/centurion/worktrees")
            .join(leaf.file_name().unwrap())
            .join("record.json"),
    );
    let record: Value = serde_json::from_str(&record.unwrap()).unwrap();
    let name = record["agent"].as_str().unwrap();
    let send =
        json!({"tool": "SendMessage", "input": {"to": id, "message": "@@tidy", "summary": "on"}});
    repository.play(&json!({
        "lead": [[send], "wait", "done"],
        "tidy": [
            [worktrees(&json!({"action": "clean", "name": name}))],
            [bash(&format!("test ! -e {} && echo gone for now", leaf.display()))],
            [worktrees(&json!({"action": "restore", "name": name}))],
            "tidied",
        ],
    }));
    repository.run(&["--resume", &session]).assert_code(0);
    let said = repository.stage.agent_transcripts().concat();
    assert!(said.contains("\"gone for now"), "{said}");
    assert!(leaf.join("leaf.txt").exists(), "{said}");
}
