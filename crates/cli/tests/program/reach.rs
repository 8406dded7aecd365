//! Flags that narrow what a run uses and reaches, flags for the hooks of a beginning, and sessions by their names.

use centurion_testkit::{Reply, sse};
use serde_json::{Value, json};

use crate::program::{Ended, Program, call};

/// A home and a project with everything that people add to the program.
fn furnish(program: &Program) {
    let (scratch, root) = (&program.scratch, program.scratch.root());
    for place in ["user", "project"] {
        let mark = |what: &str| format!("MARK-{what}-{place}");
        let write = |path: &str, text: String| match place {
            "user" => drop(scratch.write_home(format!(".claude/{path}"), text)),
            _ => drop(scratch.write(format!(".claude/{path}"), text)),
        };
        write("CLAUDE.md", mark("MEMORY"));
        let skill = format!("---\ndescription: {}\n---\nGo.\n", mark("SKILL"));
        write(&format!("skills/deploy-{place}/SKILL.md"), skill);
        let agent = format!("---\nname: scout-{place}\ndescription: {}\n---\nGo.\n", mark("AGENT"));
        write(&format!("agents/scout-{place}.md"), agent);
    }
    let hook = format!("touch {}", root.join("HOOK").display());
    let hook = json!([{"hooks": [{"type": "command", "command": hook}]}]);
    let settings = json!({
        "hooks": {"SessionStart": hook},
        "agents": {"declared": {"description": "MARK-DECLARED", "prompt": "Go."}},
        "permissions": {"deny": ["Read(secret.txt)"]}, "outputStyle": "Explanatory",
        "model": "claude-opus-4-6",
    });
    scratch.write_home(".claude/settings.json", settings.to_string());
    let server =
        json!({"mcpServers": {"mark": {"command": "touch", "args": [root.join("SERVER")]}}});
    scratch.write_home(".claude.json", server.to_string());
}

fn stream(program: &Program, flags: &[&str]) -> Ended {
    let base = ["-p", "go", "--output-format", "stream-json", "--verbose"];
    program.run(&[&base[..], flags].concat())
}

#[test]
fn a_run_in_safe_mode_has_the_settings_of_people_without_what_they_add() {
    let read = || call("toolu_1", "Read", json!({"file_path": "secret.txt"}));
    for (is_safe, flags, variable) in [
        (false, &[][..], None),
        (true, &["--safe-mode"], None),
        (true, &[], Some(("CLAUDE_CODE_SAFE_MODE", "1"))),
    ] {
        let program = Program::answering([read(), Reply::text("done")]);
        furnish(&program);
        program.scratch.write("secret.txt", "SECRET");
        let base = ["-p", "go", "--output-format", "stream-json", "--verbose"];
        let mut command = program.command([&base[..], flags].concat());
        let ended = crate::program::ended(command.envs(variable).output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let sent = program.server().requests()[0].json();
        assert_eq!(sent["model"], "claude-opus-4-6", "the model of the settings counts");
        assert_eq!(sent.to_string().contains("MARK-"), !is_safe, "{sent}");
        for file in ["HOOK", "SERVER"] {
            assert_eq!(program.scratch.root().join(file).exists(), !is_safe, "{file}");
        }
        let results = program.server().last().json()["messages"].to_string();
        assert!(!results.contains("SECRET"), "a deny rule counts");
        let events = ended.events();
        let init = events.iter().find(|event| event["subtype"] == "init").unwrap();
        let style = if is_safe { "default" } else { "Explanatory" };
        assert_eq!(init["output_style"], style);
    }
}

#[test]
fn what_flags_bring_counts_in_safe_mode() {
    let program = Program::answering([Reply::text("done")]);
    furnish(&program);
    let agents = json!({"mine": {"description": "BROUGHT", "prompt": "Go."}}).to_string();
    let hook = format!("touch {}", program.scratch.root().join("MINE").display());
    let hook = json!([{"hooks": [{"type": "command", "command": hook}]}]);
    let settings = json!({"hooks": {"SessionStart": hook}}).to_string();
    let ended = stream(&program, &["--safe-mode", "--agents", &agents, "--settings", &settings]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(program.server().last().json().to_string().contains("BROUGHT"));
    assert!(program.scratch.root().join("MINE").exists());
}

fn tools(ended: &Ended) -> Vec<String> {
    let events = ended.events();
    let init = events.iter().find(|event| event["subtype"] == "init").unwrap().clone();
    serde_json::from_value(init["tools"].clone()).unwrap()
}

#[test]
fn a_restricted_run_runs_no_commands_and_leaves_no_directory() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().canonicalize().unwrap();
    std::fs::write(place.join("secret.txt"), "SECRET").unwrap();
    let at = |name: &str| place.join(name).display().to_string();
    let program = Program::answering([
        Reply::blocks([
            sse::tool_use("toolu_1", "Read", json!({"file_path": at("secret.txt")})),
            sse::tool_use("toolu_2", "Write", json!({"file_path": at("new.txt"), "content": "a"})),
            sse::tool_use("toolu_3", "Glob", json!({"pattern": "*", "path": at("")})),
            sse::tool_use("toolu_4", "Bash", json!({"command": "touch ran.txt"})),
            sse::tool_use("toolu_5", "Write", json!({"file_path": "in.txt", "content": "a"})),
        ]),
        Reply::text("done"),
    ]);
    furnish(&program);
    program.scratch.write_home(
        ".claude/settings.json",
        json!({"permissions": {"allow": ["Bash", "Read(//**)"]}, "model": "claude-haiku-4-5"})
            .to_string(),
    );
    // Rules that would permit all of it.
    let flags = [
        "--restricted",
        "--tools",
        "default",
        "--allowedTools",
        "Read(//**)",
        "Write",
        "Bash",
        "Glob",
    ];
    let ended = stream(&program, &flags);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let tools = tools(&ended);
    for tool in ["Bash", "WebFetch", "Monitor"] {
        assert!(!tools.contains(&tool.to_owned()), "{tools:?}");
    }
    assert!(tools.contains(&"Read".to_owned()));
    assert!(!place.join("new.txt").exists());
    assert!(!program.scratch.project().join("ran.txt").exists());
    assert_eq!(program.scratch.read("in.txt"), "a");
    let sent = program.server().last().json();
    let results = sent["messages"].to_string();
    assert!(!results.contains("SECRET") && !results.contains("secret.txt\\n"), "{results}");
    assert!(results.contains("outside the working directories"), "{results}");
    assert_ne!(sent["model"], "claude-haiku-4-5", "settings of users are not read");
    let denials = ended.result()["permission_denials"].as_array().unwrap().len();
    assert!(denials >= 3, "{}", ended.result());
}

#[test]
fn a_restricted_run_has_the_tools_that_it_names_and_never_skips_permissions() {
    let program = Program::with_handler(|_| Reply::text("done"));
    let named = stream(&program, &["--restricted", "--tools", "Read,Bash"]);
    assert_eq!(tools(&named), ["Bash", "Read"]);
    for flags in
        [&["--permission-mode", "bypassPermissions"][..], &["--dangerously-skip-permissions"]]
    {
        let base = ["-p", "go", "--restricted"];
        let mut command = program.command([&base[..], flags].concat());
        let ended = crate::program::ended(command.env("IS_SANDBOX", "1").output().unwrap());
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.contains("--restricted"), "{}", ended.stderr);
    }
}

/// A program with a hook for each event of a beginning, which notes its input.
fn noting(program: &Program) -> std::path::PathBuf {
    let notes = program.scratch.root().join("notes");
    let command = format!("cat >> {0}; echo >> {0}", notes.display());
    let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
    let hooks = json!({"Setup": hook, "SessionStart": hook, "SessionEnd": hook});
    program.scratch.write_home(".claude/settings.json", json!({"hooks": hooks}).to_string());
    notes
}

fn noted(notes: &std::path::Path) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(notes).unwrap_or_default();
    let inputs = text.lines().filter(|line| !line.is_empty());
    let inputs = inputs.map(|line| serde_json::from_str::<Value>(line).unwrap());
    inputs
        .map(|it| (it["hook_event_name"].as_str().unwrap().to_owned(), it["trigger"].clone()))
        .collect()
}

#[test]
fn the_hooks_of_a_setup_run_before_those_of_the_start() {
    for (flag, trigger) in [("--init", json!("init")), ("--maintenance", json!("maintenance"))] {
        let program = Program::answering([Reply::text("done")]);
        let notes = noting(&program);
        let ended = program.run(&["-p", "go", flag]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{}", ended.stderr);
        let heard = noted(&notes);
        let names: Vec<_> = heard.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Setup", "SessionStart", "SessionEnd"]);
        assert_eq!(heard[0].1, trigger);
    }
    let program = Program::answering([Reply::text("done")]);
    let notes = noting(&program);
    assert_eq!(program.run(&["-p", "go"]).code, Some(0));
    assert!(noted(&notes).iter().all(|(name, _)| name != "Setup"));
}

#[test]
fn a_beginning_alone_asks_no_model_and_leaves_no_session() {
    let program = Program::alone();
    let notes = noting(&program);
    let ended = program.run(&["--init-only"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", ended.stderr);
    let heard = noted(&notes);
    let names: Vec<_> = heard.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Setup", "SessionStart", "SessionEnd"]);
    assert_eq!(heard[0].1, "init");
    assert!(program.transcripts().is_empty());

    let stop = json!({"continue": false, "stopReason": "no disk"}).to_string();
    let hook = json!([{"hooks": [{"type": "command", "command": format!("echo '{stop}'")}]}]);
    let settings = json!({"hooks": {"Setup": hook}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let ended = program.run(&["--init-only"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("no disk"), "{}", ended.stderr);
}

#[test]
fn a_session_is_continued_by_its_name() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    for (name, word) in [("Fix the build", "first"), ("Twice", "second"), ("Twice", "third")] {
        assert_eq!(program.run(&["-p", word, "--name", name]).code, Some(0));
    }
    let again = program.run(&["-p", "again", "--resume", "Fix the build"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let sent = program.server().last().json()["messages"].to_string();
    assert!(sent.contains("first") && !sent.contains("second"), "{sent}");
    let which = program.run(&["-p", "again", "--resume", "Twice"]);
    assert_eq!(which.code, Some(1));
    assert_eq!(which.stderr.matches("--resume ").count(), 2, "{}", which.stderr);
    let missing = program.run(&["-p", "again", "--resume", "Nobody"]);
    assert!(missing.code == Some(1) && missing.stderr.contains("Nobody"), "{}", missing.stderr);
}
