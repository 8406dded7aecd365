//! Flags that SDKs and adapters pass: those that mean something here are in force, the others do no harm.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::host::Host;
use crate::program::{Program, call, ended};

/// Flags of others, each with a value if it takes one.
const WITHOUT_MEANING: [&[&str]; 20] = [
    &["--background"],
    &["--bg"],
    &["--brief"],
    &["--channels=plugin:chat"],
    &["--chrome"],
    &["--cloud"],
    &["--desktop"],
    &["--environment", "staging"],
    &["--file", "file_1:a.txt"],
    &["--from-pr=17"],
    &["--ide"],
    &["--no-chrome"],
    &["--plugin-url", "https://example.com/kit"],
    &["--rc"],
    &["--remote-control"],
    &["--remote-control-session-name-prefix", "mine"],
    &["--sdk-url", "ws://localhost:1"],
    &["--system-prompt-snapshot", "off"],
    &["--teleport"],
    &["--tmux"],
];

#[test]
fn flags_of_others_do_no_harm_and_are_told_of_in_one_line() {
    // D-75
    let program = Program::with_handler(|_| Reply::text("done"));
    for flag in WITHOUT_MEANING {
        let ended = program.run(&[&["-p", "hi"], flag].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{}", ended.stderr);
        let name = flag[0].split('=').next().unwrap();
        let warning = format!("warning: {name} has no effect: ");
        assert!(ended.stderr.starts_with(&warning), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    for (wrong, near) in [("--cloude", "--cloud"), ("--debugfile", "--debug-file")] {
        let ended = program.run(&["-p", "hi", wrong]);
        assert_eq!(ended.code, Some(2));
        assert!(ended.stderr.contains(near), "{}", ended.stderr);
    }
}

#[test]
fn what_flags_say_about_thinking_features_and_budgets_is_sent() {
    let program = Program::with_handler(|_| Reply::text("done"));
    let sent = |flags: &[&str]| {
        let ended = program.run(&[&["-p", "hi", "--model", "claude-opus-4-6"], flags].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        program.server().last()
    };
    let thinking = |request: &Value| request["thinking"].clone();
    let adaptive = sent(&["--thinking", "adaptive", "--thinking-display=omitted"]).json();
    assert_eq!(thinking(&adaptive), json!({"type": "adaptive", "display": "omitted"}));
    let off = sent(&["--thinking=disabled", "--thinking-display=omitted"]).json();
    assert_eq!(thinking(&off), json!({"type": "disabled"}));
    let budget = sent(&["--max-thinking-tokens", "3000"]).json();
    assert_eq!(thinking(&budget), json!({"type": "enabled", "budget_tokens": 3000}));
    assert_eq!(thinking(&sent(&["--max-thinking-tokens=0"]).json()), json!({"type": "disabled"}));
    let request = sent(&["--betas", "one-2026,two", "--task-budget=5000", "--effort", "low"]);
    let betas = request.header("anthropic-beta").unwrap().to_owned();
    assert!(betas.starts_with("one-2026,two,task-budgets-2026-03-13,"), "{betas}");
    let config = json!({"effort": "low", "task_budget": {"type": "tokens", "total": 5000}});
    assert_eq!(request.json()["output_config"], config);
    for wrong in [&["--betas", "a\nb"][..], &["--task-budget", "0"], &["--thinking", "hard"]] {
        assert_eq!(program.run(&[&["-p", "hi"], wrong].concat()).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_host_that_wants_no_questions_is_not_asked() {
    let program = Program::answering([
        call("toolu_1", "Write", json!({"file_path": "x.txt", "content": "a"})),
        Reply::text("without it then"),
    ]);
    let flags = ["--permission-prompt-tool", "stdio", "--permission-prompts", "none"];
    let mut host = Host::start(&program, &flags);
    host.say("write");
    let seen = host.until(|event| event["type"] == "result");
    assert!(seen.iter().all(|event| event["type"] != "control_request"), "{seen:?}");
    let denials = &seen.last().unwrap()["permission_denials"];
    assert_eq!(denials[0]["tool_name"], "Write", "{denials}");
    assert!(!program.scratch.project().join("x.txt").exists());
    assert_eq!(host.finish(), 0);
}

/// A run that may skip permissions, as root, too.
fn skipping(program: &Program, flags: &[&str]) -> Host {
    Host::start_with(program, flags, |command| {
        command.env("IS_SANDBOX", "1");
    })
}

#[test]
fn leave_to_skip_permissions_later_is_not_skipping_them() {
    let write = || call("toolu_1", "Write", json!({"file_path": "x.txt", "content": "a"}));
    let program = Program::answering([write(), Reply::text("no"), write(), Reply::text("yes")]);
    let mut host = skipping(&program, &["--allow-dangerously-skip-permissions"]);
    host.say("write");
    assert_eq!(host.result()["permission_denials"][0]["tool_name"], "Write");
    let wish = json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"});
    assert_eq!(host.ask(&wish)["subtype"], "success");
    host.say("write");
    assert_eq!(host.result()["permission_denials"], json!([]));
    assert_eq!(program.scratch.read("x.txt"), "a");
    assert_eq!(host.finish(), 0);
}

#[test]
fn skipping_permissions_counts_whatever_mode_stands_beside_it() {
    let program = Program::answering([Reply::text("ok")]);
    let flags = ["--dangerously-skip-permissions", "--permission-mode", "plan"];
    let mut host = skipping(&program, &flags);
    host.say("hi");
    let seen = host.until(|event| event["type"] == "result");
    let init = seen.iter().find(|event| event["subtype"] == "init").unwrap();
    assert_eq!(init["permissionMode"], "bypassPermissions");
    assert_eq!(host.finish(), 0);
}

#[test]
fn an_empty_prompt_beside_lines_of_input_is_none() {
    let program = Program::answering([Reply::text("ok")]);
    let mut host = Host::start(&program, &["--replay-user-messages", ""]);
    host.say("hi");
    let seen = host.until(|event| event["type"] == "result");
    assert!(seen.iter().any(|event| event["isReplay"] == true), "{seen:?}");
    assert_eq!(host.finish(), 0);
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "really"];
    assert_eq!(program.run(&flags).code, Some(2));
}

#[test]
fn a_log_goes_to_the_private_file_that_a_flag_names() {
    use std::os::unix::fs::PermissionsExt as _;
    let program = Program::with_handler(|_| Reply::text("done"));
    let file = program.scratch.root().join("log.txt");
    let ended = program.run(&["-p", "hi", "--debug-file", file.to_str().unwrap()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let log = std::fs::read_to_string(&file).unwrap();
    assert!(log.contains("DEBUG") && !log.contains('\u{1b}') && !log.contains("test-key"), "{log}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(program.run(&["-p", "hi", "--debug-to-stderr"]).stderr.contains("DEBUG"));
    let missing = program.run(&["-p", "hi", "--debug-file", "no/such/dir/log"]);
    assert!(
        missing.code == Some(1) && missing.stderr.contains("--debug-file"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_bare_run_uses_nothing_that_it_was_not_given() {
    let program = Program::with_handler(|_| Reply::text("done"));
    let (scratch, root) = (&program.scratch, program.scratch.root());
    scratch.write_home(".claude/CLAUDE.md", "MARK-MEMORY");
    scratch
        .write_home(".claude/skills/deploy/SKILL.md", "---\ndescription: MARK-SKILL\n---\nGo.\n");
    scratch.write_home(
        ".claude/agents/scout.md",
        "---\nname: scout\ndescription: MARK-AGENT\n---\nGo.\n",
    );
    let hook = json!({"hooks": [{"type": "command", "command": format!("touch {}", root.join("HOOK").display())}]});
    scratch.write_home(
        ".claude/settings.json",
        json!({"hooks": {"SessionStart": [hook]}}).to_string(),
    );
    let ordinary = program.run(&["-p", "hi"]);
    assert_eq!(ordinary.code, Some(0), "{}", ordinary.stderr);
    let request = program.server().last().json();
    let told = request.to_string();
    assert!(["MARK-MEMORY", "MARK-SKILL", "MARK-AGENT"].iter().all(|mark| told.contains(mark)));
    assert!(root.join("HOOK").exists());
    std::fs::remove_file(root.join("HOOK")).unwrap();
    assert_eq!(program.run(&["-p", "hi", "--bare"]).code, Some(0));
    let request = program.server().last().json();
    assert!(!request.to_string().contains("MARK-") && !root.join("HOOK").exists(), "{request}");
    let tools = request["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Bash", "Edit", "Read"]);
    let settings = json!({"hooks": {"SessionStart": [hook]}}).to_string();
    assert_eq!(program.run(&["-p", "hi", "--bare", "--settings", &settings]).code, Some(0));
    assert!(root.join("HOOK").exists(), "a flag brought it");
}

#[test]
fn the_id_that_a_host_gives_a_message_is_that_of_its_record() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    let mut host = Host::start(&program, &["--replay-user-messages"]);
    let id = "6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10";
    let message = json!({"role": "user", "content": "hi"});
    let line = json!({"type": "user", "uuid": id, "message": message});
    let mut replayed = Vec::new();
    for _ in 0..2 {
        host.send(&line);
        let seen = host.until(|event| event["type"] == "result");
        let is_replay = |event: &&Value| event["isReplay"] == true;
        replayed.extend(seen.iter().filter(is_replay).map(|event| event["uuid"].clone()));
    }
    assert_eq!(host.finish(), 0);
    let transcript = std::fs::read_to_string(&program.transcripts()[0]).unwrap();
    let lines = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let prompts: Vec<Value> = lines.filter(|line| line["type"] == "user").collect();
    assert_eq!((&prompts[0]["uuid"], &replayed[0]), (&json!(id), &json!(id)));
    assert_eq!(prompts.len(), 2);
    assert_ne!(prompts[1]["uuid"], json!(id), "the same id again gets another record");
}

#[test]
fn a_session_has_the_name_that_a_flag_gives_it() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    let ended = program.run(&["-p", "hi", "--name", "My work"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let listed: Value = serde_json::from_str(&program.run(&["sessions", "--json"]).stdout).unwrap();
    assert_eq!(listed[0]["title"], "My work");
    let ended = program.run(&["-p", "hi", "--continue", "-n", "Other work"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(program.run(&["sessions"]).stdout.contains("Other work"));
    assert_eq!(program.run(&["-p", "hi", "--name", " "]).code, Some(2));
}

#[test]
fn a_session_of_an_sdk_is_kept_where_its_helpers_look_and_found_without_it() {
    // D-72
    let program = Program::with_handler(|_| Reply::text("heard"));
    let run = |arguments: &[&str]| {
        let mut command = program.command(arguments);
        let ended = ended(command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-ts").output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    };
    run(&["-p", "by an SDK"]);
    assert!(program.transcripts().is_empty());
    assert!(program.scratch.home().join(".claude/projects").is_dir());
    let listed: Value = serde_json::from_str(&program.run(&["sessions", "--json"]).stdout).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    for more in [&["--continue"][..], &["--resume", id]] {
        assert_eq!(program.run(&[&["-p", "by hand"], more].concat()).code, Some(0));
        let sent = program.server().last().json()["messages"].to_string();
        assert!(sent.contains("by an SDK"), "{sent}");
    }
    assert!(program.transcripts().is_empty(), "it stays where it is");
    assert_eq!(program.run(&["-p", "another by hand"]).code, Some(0));
    assert_eq!(program.transcripts().len(), 1);
    let listed: Value = serde_json::from_str(&program.run(&["sessions", "--json"]).stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    run(&["-p", "again", "--continue"]);
    assert!(program.server().last().json()["messages"].to_string().contains("another by hand"));
}

#[test]
fn the_state_of_the_key_can_be_asked_for() {
    let program = Program::answering([]);
    let with_key = program.run(&["auth", "status", "--json"]);
    let status: Value = serde_json::from_str(&with_key.stdout).unwrap();
    let expected = json!({
        "loggedIn": true, "authMethod": "api_key", "apiProvider": "firstParty",
        "apiKeySource": "ANTHROPIC_API_KEY",
    });
    assert_eq!((with_key.code, status), (Some(0), expected));
    let without = Program::alone().run(&["auth", "status", "--json"]);
    let status: Value = serde_json::from_str(&without.stdout).unwrap();
    assert_eq!((without.code, &status["loggedIn"]), (Some(1), &json!(false)));
    assert!(program.run(&["auth", "status", "--text"]).stdout.contains("ANTHROPIC_API_KEY"));
}

#[test]
fn a_session_continues_behind_an_earlier_message_and_stays_there() {
    let program = Program::with_handler(|_| Reply::text("heard"));
    let mut host = Host::start(&program, &[]);
    let mut ends = Vec::new();
    let mut session = String::new();
    for word in ["first", "second", "third"] {
        host.say(word);
        let seen = host.until(|event| event["type"] == "result");
        let answer = seen.iter().rfind(|event| event["type"] == "assistant").unwrap();
        ends.push(answer["uuid"].as_str().unwrap().to_owned());
        session = answer["session_id"].as_str().unwrap().to_owned();
    }
    assert_eq!(host.finish(), 0);
    let transcript = std::fs::read_to_string(&program.transcripts()[0]).unwrap();
    let lines = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let prompts = lines.filter(|line| line["type"] == "user");
    let ids: Vec<String> = prompts.map(|it| it["uuid"].as_str().unwrap().to_owned()).collect();
    let said = |word: &str, flags: &[&str]| {
        let ended = program.run(&[&["-p", word, "--resume", &session], flags].concat());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let sent = program.server().last().json()["messages"].to_string();
        let words = ["first", "second", "third", "fourth", "fifth", "sixth"];
        words.into_iter().filter(|word| sent.contains(word)).collect::<Vec<_>>()
    };
    let behind = |end: usize| ["--resume-session-at", ends[end].as_str()];
    assert_eq!(
        said("fourth", &[&behind(0)[..], &["--fork-session"]].concat()),
        ["first", "fourth"]
    );
    let refused = |drops: &str, end: usize| {
        let flags = [
            &["-p", "no", "--resume", &session],
            &behind(end)[..],
            &["--resume-drops-turn", drops],
        ];
        let ended = program.run(&flags.concat());
        assert_eq!(ended.code, Some(1));
        assert!(
            ended.stderr.contains("Resume rejected by --resume-drops-turn:"),
            "{}",
            ended.stderr
        );
    };
    refused(&ids[1], 0);
    refused(&ids[1], 1);
    let drops = ["--resume-drops-turn", ids[2].as_str()];
    assert_eq!(said("fourth", &[&behind(1)[..], &drops].concat()), ["first", "second", "fourth"]);
    assert_eq!(said("fifth", &[]), ["first", "second", "fourth", "fifth"], "it stays there");
    assert_eq!(said("sixth", &behind(0)), ["first", "sixth"]);
    let nowhere = program.run(&["-p", "x", "--resume", &session, "--resume-session-at", &session]);
    assert!(
        nowhere.code == Some(1) && nowhere.stderr.contains("has no message"),
        "{}",
        nowhere.stderr
    );
    assert_eq!(program.run(&["-p", "x", "--resume-session-at", &ids[0]]).code, Some(2));
}
