//! Settings, trust and what they let an agent do.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use centurion_testkit::{Lack, Reply, skip};
use serde_json::{Value, json};

use crate::program::{Program, call};
use crate::real_servers::results;
use crate::sandboxes::{can_confine, can_confine_completely};

fn writes() -> [Reply; 2] {
    [call("toolu_1", "Write", json!({"file_path": "x.txt", "content": "y"})), Reply::text("done")]
}

fn wrote(program: &Program) -> bool {
    program.scratch.project().join("x.txt").exists()
}

fn allow(rules: &[&str]) -> String {
    json!({"permissions": {"allow": rules}}).to_string()
}

#[test]
fn the_users_settings_let_calls_through_and_a_deny_anywhere_is_final() {
    let program = Program::answering(writes());
    program.scratch.write_home(".claude/settings.json", allow(&["Edit"]));
    program.run(&["-p", "write"]);
    assert!(wrote(&program));
    let denied = Program::answering(writes());
    denied.scratch.write_home(".centurion/settings.json", allow(&["Edit"]));
    denied
        .scratch
        .write(".claude/settings.json", json!({"permissions": {"deny": ["Edit"]}}).to_string());
    denied.run(&["-p", "write", "--allowedTools", "Edit", "--permission-mode", "acceptEdits"]);
    assert!(!wrote(&denied), "a deny of an untrusted repository counts too");
}

#[test]
fn what_a_repository_allows_counts_only_when_the_folder_is_trusted() {
    let program = Program::answering(writes().into_iter().chain(writes()).chain(writes()));
    program.scratch.write(".claude/settings.json", allow(&["Edit"]));
    program.run(&["-p", "write"]);
    assert!(!wrote(&program));
    assert!(program.run(&["trust"]).stdout.contains("not trusted"));
    assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
    assert!(program.run(&["trust", "list"]).stdout.contains("project"));
    program.run(&["-p", "write"]);
    assert!(wrote(&program));
    std::fs::remove_file(program.scratch.project().join("x.txt")).unwrap();
    program.run(&["trust", "revoke"]);
    program.run(&["-p", "write"]);
    assert!(!wrote(&program));
}

#[test]
fn a_broken_file_is_named_with_its_line_and_the_others_count() {
    let program = Program::answering(writes());
    program.scratch.write_home(".claude/settings.json", allow(&["Edit"]));
    program.scratch.write(".claude/settings.json", "{\n  \"permissions\": {,}\n}");
    let ended = program.run(&["-p", "write"]);
    assert!(wrote(&program));
    assert!(ended.stderr.contains("settings.json:2"), "{}", ended.stderr);
    let doctor = program.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1));
    assert!(doctor.stdout.contains("settings.json:2"), "{}", doctor.stdout);
}

#[test]
fn doctor_lists_what_is_not_in_force() {
    let program = Program::alone();
    let settings = json!({"companyAnnouncements": ["x"], "permisions": {}, "model": "haiku"});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let doctor = program.run(&["doctor"]);
    assert!(doctor.stdout.contains("companyAnnouncements"), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("permisions") && doctor.stdout.contains("`permissions`"));
    assert!(
        !doctor.stdout.contains("  model ("),
        "what is in force is not listed: {}",
        doctor.stdout
    );
    assert!(doctor.stdout.contains("not trusted"));
}

#[test]
fn settings_choose_model_mode_and_environment() {
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "echo value=$FROM_SETTINGS"})),
        Reply::text("done"),
    ]);
    let settings = json!({
        "model": "haiku", "env": {"FROM_SETTINGS": "yes"},
        "permissions": {"defaultMode": "acceptEdits", "allow": ["Bash(echo *)"]},
    });
    let flag = settings.to_string();
    let ended = program.run(&[
        "-p",
        "go",
        "--settings",
        &flag,
        "--output-format",
        "stream-json",
        "--verbose",
    ]);
    let init = &ended.events()[0];
    assert_eq!(
        (&init["model"], &init["permissionMode"]),
        (&json!("claude-haiku-5-5"), &json!("acceptEdits"))
    );
    assert!(program.server().last().json()["messages"].to_string().contains("value=yes"));
}

#[test]
fn settings_that_change_while_a_run_continues_are_taken_up() {
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "sh ./change.sh"})),
        call("toolu_2", "Write", json!({"file_path": "x.txt", "content": "y"})),
        Reply::text("done"),
    ]);
    program.scratch.write("rules.json", allow(&["Edit"]));
    // No command that names the file would run unasked.
    let change = "mkdir -p \"$HOME/.claude\" && cp rules.json \"$HOME/.claude/settings.json\"";
    program.scratch.write("change.sh", change);
    program.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert!(wrote(&program));
}

#[test]
fn explain_names_the_verdict_the_rule_and_its_place() {
    let program = Program::alone();
    let settings = "{\n  \"permissions\": {\n    \"deny\": [\"Bash(git push *)\"],\n    \"allow\": [\"Bash(git *)\"]\n  }\n}";
    program.scratch.write_home(".claude/settings.json", settings);
    let denied = program.run(&["permissions", "explain", "Bash(git push --force)"]);
    assert_eq!(denied.code, Some(0), "{}", denied.stderr);
    for part in ["denied", "Bash(git push *)", "settings.json:3", "user"] {
        assert!(denied.stdout.contains(part), "{part}: {}", denied.stdout);
    }
    let hidden = program.run(&["permissions", "explain", "Bash(git status; git push)"]);
    assert!(hidden.stdout.contains("denied"), "{}", hidden.stdout);
    let allowed = program.run(&["permissions", "explain", "Bash(git fetch)"]);
    assert!(allowed.stdout.contains("allowed"), "{}", allowed.stdout);
    let asked = program.run(&["permissions", "explain", "Bash(git fetch && curl x)"]);
    assert!(asked.stdout.contains("asked about"), "{}", asked.stdout);
    let session = program.run(&["permissions", "explain", "SendMessage(uds:7b5e)"]);
    assert!(session.stdout.starts_with("SendMessage(uds:7b5e): ask"), "{}", session.stdout);
    assert_eq!(program.run(&["permissions", "explain", "nonsense"]).code, Some(1));
}

#[test]
fn rules_that_name_no_tool_or_too_narrow_a_one_are_said_with_their_place() {
    let program = Program::answering([Reply::text("ok")]);
    let rules = "{\"permissions\": {\n\"deny\": [\n\"Bsh(rm *)\", \"PowerShell(rm *)\", \"my_tool\",\n\"Agnt\"],\n\
                 \"allow\": [\"Write(docs/**)\", \"Odd\"]}}";
    program.scratch.write_home(".claude/settings.json", rules);
    let ended = program.run(&["-p", "hi"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for (line, said) in
        [(3, "deny rule `Bsh(rm *)`"), (4, "deny rule `Agnt`"), (5, "allow rule `Write(docs/**)`")]
    {
        let place = format!(".claude/settings.json:{line}");
        let warned = |text: &&str| text.contains(said) && text.contains(&place);
        assert_eq!(ended.stderr.lines().filter(warned).count(), 1, "{said}: {}", ended.stderr);
    }
    assert!(ended.stderr.contains("`Edit(docs/**)`"), "{}", ended.stderr);
    for known in ["PowerShell", "my_tool", "Odd"] {
        assert!(!ended.stderr.contains(known), "{known}: {}", ended.stderr);
    }
}

#[test]
fn explain_knows_where_the_session_may_move() {
    let program = Program::alone();
    let rules = json!({"permissions": {"allow": ["Cd(//srv/*)"], "deny": ["PowerShell(rm *)"]}});
    program.scratch.write_home(".claude/settings.json", rules.to_string());
    for (call, verdict) in [
        ("Cd(/srv/a)", "allowed"),
        ("Cd(/srv/a/b)", "denied"),
        ("PowerShell(ls; del x)", "denied"),
        ("PowerShell(ls)", "asked about"),
    ] {
        let told = program.run(&["permissions", "explain", call]);
        assert!(told.stdout.contains(&format!("{call}: {verdict}")), "{}", told.stdout);
    }
}

#[test]
fn explain_knows_which_agents_may_be_started() {
    // S-366
    let program = Program::alone();
    let rules = json!({"permissions": {"deny": ["Agent(Explore)"]}});
    program.scratch.write_home(".claude/settings.json", rules.to_string());
    for (call, verdict) in
        [("Agent(Explore)", "denied"), ("Task(Explore)", "denied"), ("Agent(Plan)", "allowed")]
    {
        let told = program.run(&["permissions", "explain", call]);
        assert!(told.stdout.contains(&format!("{call}: {verdict}")), "{}", told.stdout);
    }
}

#[test]
fn transcripts_keep_keys_only_when_the_user_says_so() {
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    let program = Program::answering([Reply::text("seen")]);
    program
        .scratch
        .write_home(".claude/settings.json", json!({"redactTranscripts": false}).to_string());
    program.run(&["-p", key]);
    let transcript = std::fs::read_to_string(&program.transcripts()[0]).unwrap();
    assert!(transcript.contains(key));
}

#[test]
fn a_link_does_not_lead_a_command_out_of_the_project() {
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "cat link/secret"})),
        call("toolu_2", "Bash", json!({"command": "rm link/secret"})),
        call("toolu_3", "Bash", json!({"command": "cp a.txt link/planted"})),
        Reply::text("done"),
    ]);
    let outside = program.scratch.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "hidden").unwrap();
    std::os::unix::fs::symlink(&outside, program.scratch.project().join("link")).unwrap();
    program.scratch.write("a.txt", "a");
    program.run(&["-p", "go", "--permission-mode", "acceptEdits"]);
    assert!(outside.join("secret").exists() && !outside.join("planted").exists());
    assert!(!program.server().last().json()["messages"].to_string().contains("hidden"));
}

#[test]
fn a_planted_repository_runs_nothing() {
    let program = Program::answering([
        call("toolu_1", "Write", json!({"file_path": "HEAD", "content": "ref: refs/heads/main"})),
        call(
            "toolu_2",
            "Write",
            json!({"file_path": "config", "content":
            "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = \"touch PWNED #\"\n"}),
        ),
        call("toolu_3", "Bash", json!({"command": "mkdir -p objects refs/heads"})),
        call("toolu_4", "Bash", json!({"command": "git status"})),
        Reply::text("done"),
    ]);
    program.run(&["-p", "go", "--permission-mode", "acceptEdits"]);
    assert!(!program.scratch.project().join("PWNED").exists());
}

/// D-77
#[test]
fn git_starts_what_a_repository_names_only_in_a_trusted_folder() {
    let status = || call("toolu_1", "Bash", json!({"command": "git status"}));
    let program =
        Program::answering([status(), Reply::text("done"), status(), Reply::text("done")]);
    let project = program.scratch.project();
    let git = |arguments: &[&str]| {
        assert!(
            Command::new("git").args(arguments).current_dir(&project).status().unwrap().success()
        );
    };
    git(&["init", "-q"]);
    git(&["config", "core.fsmonitor", "touch PWNED #"]);
    let denied = program.run(&["-p", "go"]);
    assert!(!project.join("PWNED").exists(), "{}", denied.stdout);
    assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
    program.run(&["-p", "go"]);
    assert!(project.join("PWNED").exists());
}

#[test]
fn always_allow_is_written_where_it_belongs_and_holds_in_the_next_process() {
    // D-76
    use std::io::{BufRead, BufReader, Write};
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "touch made.txt"})),
        call("toolu_2", "Bash", json!({"command": "touch made.txt"})),
        Reply::text("done"),
        call("toolu_3", "Bash", json!({"command": "touch made.txt"})),
        Reply::text("done"),
        call("toolu_4", "Bash", json!({"command": "touch made.txt"})),
        call("toolu_5", "Bash", json!({"command": "rm kept.txt"})),
        Reply::text("done"),
    ]);
    Command::new("git")
        .args(["init", "-q"])
        .current_dir(program.scratch.project())
        .status()
        .unwrap();
    let arguments = [
        "--output-format",
        "stream-json",
        "--input-format",
        "stream-json",
        "--verbose",
        "--permission-prompt-tool",
        "stdio",
    ];
    let mut child = program.command(arguments).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", json!({"type": "user", "message": {"role": "user", "content": "go"}}))
        .unwrap();
    let mut asks = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if event["type"] == "control_request" {
            asks += 1;
            let suggestions = event["request"]["permission_suggestions"].clone();
            assert_eq!(suggestions[0]["type"], "addRules", "{suggestions}");
            let answer = json!({"behavior": "allow", "updatedInput": event["request"]["input"], "updatedPermissions": suggestions});
            let response = json!({"subtype": "success", "request_id": event["request_id"], "response": answer});
            writeln!(stdin, "{}", json!({"type": "control_response", "response": response}))
                .unwrap();
        }
        if event["type"] == "result" {
            break;
        }
    }
    drop(stdin);
    child.wait().unwrap();
    assert_eq!(asks, 1, "the second call needs no question");
    let file = program.scratch.project().join(".claude/settings.local.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert!(kept["permissions"]["allow"][0].as_str().unwrap().starts_with("Bash(touch"), "{kept}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // The answer is in force in the next process.
    let made = program.scratch.project().join("made.txt");
    std::fs::remove_file(&made).unwrap();
    let next = program.run(&["-p", "go"]);
    assert!(made.exists(), "{}", next.stderr);
    // A rule that another hand adds to the file does not count, and does not take the answer with it.
    let mut kept = kept;
    kept["permissions"]["allow"].as_array_mut().unwrap().push(json!("Bash(rm *)"));
    std::fs::write(&file, kept.to_string()).unwrap();
    std::fs::remove_file(&made).unwrap();
    let untouched = program.scratch.write("kept.txt", "kept");
    let third = program.run(&["-p", "go"]);
    assert!(made.exists() && untouched.exists(), "{}", third.stderr);
}

#[test]
fn a_sandboxed_command_needs_no_question_and_stays_inside() {
    let program = Program::answering([
        call(
            "toolu_1",
            "Bash",
            json!({"command": "echo in > inside.txt; echo out > $OUTSIDE/planted; cat $OUTSIDE/secret; echo end"}),
        ),
        call(
            "toolu_2",
            "Bash",
            json!({"command": "echo x > inside2.txt", "dangerouslyDisableSandbox": true}),
        ),
        Reply::text("done"),
    ]);
    // Beside the project, and not below the temporary directory, where commands may write.
    let outside = program.scratch.home().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "hidden").unwrap();
    let settings = json!({
        "env": {"OUTSIDE": outside, "TMPDIR": program.scratch.project()},
        "sandbox": {"enabled": true, "failIfUnavailable": false, "filesystem": {"denyRead": [outside]}},
    });
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut command = program.command(["-p", "go"]);
    command.env("TMPDIR", program.scratch.project());
    let ended = crate::program::ended(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let requests = program.server().requests();
    let first = requests[1].json()["messages"].to_string();
    if !can_confine() {
        assert!(first.contains("no user can be asked"), "what is not confined is asked about");
        return skip(Lack::Sandbox);
    }
    assert!(!ended.stderr.contains("without a sandbox"), "{}", ended.stderr);
    assert_eq!(program.scratch.read("inside.txt"), "in\n");
    assert!(!outside.join("planted").exists());
    if can_confine_completely() {
        assert!(!first.contains("hidden"), "{first}");
    } else {
        skip(Lack::CompleteSandbox);
    }
    assert!(
        !program.scratch.project().join("inside2.txt").exists(),
        "outside the sandbox somebody is asked"
    );
}

#[test]
fn a_sandboxed_command_cannot_put_links_where_the_program_writes() {
    let plant = "for d in $TMPDIR/centurion-*; do ls -d $d && ln -s $OUTSIDE/precious $d/toolu_2.txt && \
                 echo planted; ln -s $OUTSIDE/precious $d/tasks/b.output && echo planted; done; echo end";
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": plant})),
        call("toolu_2", "Read", json!({"file_path": "large.txt", "allow_large": true})),
        Reply::text("done"),
    ]);
    let outside = program.scratch.home().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), "kept").unwrap();
    program.scratch.write("large.txt", "many words\n".repeat(50_000));
    let settings = json!({
        "env": {"OUTSIDE": outside, "TMPDIR": program.scratch.project()},
        "sandbox": {"enabled": true, "failIfUnavailable": false},
    });
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut command = program.command(["-p", "go", "--no-session-persistence"]);
    command.env("TMPDIR", program.scratch.project());
    let ended = crate::program::ended(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(std::fs::read_to_string(outside.join("precious")).unwrap(), "kept");
    if can_confine() {
        let told = program.server().requests()[1].json()["messages"].to_string();
        assert!(told.contains("/centurion-") && !told.contains("planted\\n"), "{told}");
    } else {
        skip(Lack::Sandbox);
    }
}

#[test]
fn doctor_says_what_the_machine_can_do() {
    let doctor = Program::alone().run(&["doctor"]);
    assert!(doctor.stdout.contains("Sandbox on this machine:\n  "), "{}", doctor.stdout);
    assert_eq!(doctor.code, Some(0));
}

#[test]
fn only_listed_models_can_be_used_and_git_can_be_left_out_of_the_prompt() {
    let program = Program::answering([Reply::text("ok")]);
    Command::new("git")
        .args(["init", "-q"])
        .current_dir(program.scratch.project())
        .status()
        .unwrap();
    let settings = json!({"availableModels": ["haiku"], "includeGitInstructions": false});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let refused = program.run(&["-p", "hi", "--model", "opus"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("haiku"), "{}", refused.stderr);
    assert_eq!(program.run(&["-p", "hi", "--model", "haiku"]).code, Some(0));
    assert!(!program.server().last().json()["system"].to_string().contains("on branch"));
}

/// The body of the last request of a run with these settings.
fn request_with(settings: &Value, arguments: &[&str]) -> Value {
    let program = Program::answering([Reply::text("ok")]);
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let ended = program.run(&[&["-p", "hi"], arguments].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    program.server().last().json()
}

#[test]
fn the_default_model_must_be_listed_only_where_that_is_enforced() {
    let model = |settings: Value| request_with(&settings, &[])["model"].clone();
    assert_eq!(model(json!({"availableModels": ["haiku"]})), "claude-opus-5-5");
    let enforced =
        |listed: &[&str]| json!({"availableModels": listed, "enforceAvailableModels": true});
    assert_eq!(model(enforced(&["haiku", "sonnet"])), "claude-haiku-5-5");
    assert_eq!(model(enforced(&["haiku", "opus"])), "claude-opus-5-5");
    assert_eq!(model(enforced(&[])), "claude-opus-5-5", "an empty list leaves the default one");
}

#[test]
fn no_fallback_is_a_model_that_is_not_listed() {
    let program = Program::answering((0..40).map(|_| Reply::overloaded()));
    let settings = json!({
        "availableModels": ["haiku", "opus"], "fallbackModel": ["sonnet", "haiku"],
        "env": {"CLAUDE_CODE_MAX_RETRIES": "0"},
    });
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let ended = program.run(&["-p", "hi"]);
    assert!(ended.stderr.contains("do not let sonnet be used as a fallback"), "{}", ended.stderr);
    let requests = program.server().requests();
    let models: Vec<String> =
        requests.iter().map(|it| it.json()["model"].as_str().unwrap().to_owned()).collect();
    assert!(models.contains(&"claude-haiku-5-5".to_owned()), "{models:?}");
    assert!(!models.iter().any(|model| model.contains("sonnet")), "{models:?}");
}

#[test]
fn a_model_has_the_name_of_its_provider_and_keeps_its_abilities() {
    let settings = json!({
        "modelOverrides": {"claude-haiku-5-5": "arn:haiku"}, "effortLevel": "low",
    });
    let sent = request_with(&settings, &["--model", "haiku"]);
    assert_eq!(sent["model"], "arn:haiku");
    assert_eq!(sent["output_config"]["effort"], "low");
    assert_eq!(sent["thinking"]["type"], "adaptive");
    assert_eq!(request_with(&settings, &["--model", "sonnet"])["model"], "claude-sonnet-5-5");
}

#[test]
fn thinking_is_switched_off_by_the_settings() {
    let thinking = |settings: Value| request_with(&settings, &[])["thinking"]["type"].clone();
    assert_eq!(thinking(json!({"alwaysThinkingEnabled": false})), "disabled");
    assert_eq!(thinking(json!({"alwaysThinkingEnabled": true})), "adaptive");
}

/// Doctor must not say of a key that it is in force unless it is: what is listed here has a test.
#[test]
fn doctor_says_why_a_key_does_nothing() {
    let program = Program::alone();
    let settings = json!({
        "cleanupPeriodDays": 3, "modelOverrides": {"a": "b"}, "enforceAvailableModels": true,
        "isolatePeerMachines": true,
        "sandbox": {
            "credentials": {"x": 1},
            "network": {"strictAllowlist": false, "allowUnixSockets": ["/s"], "httpProxyPort": 1,
                        "socksProxyPort": 2, "allowLocalBinding": true},
        },
    });
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let doctor = program.run(&["doctor"]).stdout;
    let (_, rest) = doctor.split_once("Not in force:\n").unwrap();
    let (idle, _) = rest.split_once("\n\n").unwrap();
    let mut keys: Vec<&str> =
        idle.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["isolatePeerMachines", "sandbox.credentials", "sandbox.network.strictAllowlist"],
        "{doctor}"
    );
    assert!(idle.contains("no question is asked about a host") && idle.contains("not settled"));
}

#[test]
fn a_helper_gives_the_key_and_another_one_when_that_is_refused() {
    let program = Program::answering([
        Reply::error(401, "authentication_error", "expired"),
        Reply::text("ok"),
    ]);
    let settings = json!({"apiKeyHelper": "echo x >> asked; echo key-$(wc -l < asked)"});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut command = program.command(["-p", "hi"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let ended = crate::program::ended(command.output().unwrap());
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "ok"), "{}", ended.stderr);
    let requests = program.server().requests();
    let keys: Vec<_> = requests.iter().map(|request| request.header("x-api-key")).collect();
    assert_eq!(keys, [Some("key-1"), Some("key-2")]);
    assert_eq!(requests[1].header("authorization"), Some("Bearer key-2"));
    // A key that is there needs no help.
    let keyed = Program::answering([Reply::text("ok")]);
    keyed.scratch.write_home(".claude/settings.json", settings.to_string());
    keyed.run(&["-p", "hi"]);
    assert_eq!(keyed.server().last().header("x-api-key"), Some("test-key"));
    assert!(!keyed.scratch.project().join("asked").exists());
}

/// A command that no analysis understands is still held to the rules about files, in the sandbox.
#[test]
fn deny_rules_about_files_are_in_force_in_the_sandbox() {
    let command = r#"perl -e 'open F, "." . "env" and print "read: ", <F>; open G, ">", "ke" . "pt" and print G "changed"'; true"#;
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": command})),
        Reply::text("done"),
    ]);
    program.scratch.write(".env", "the-secret-words");
    program.scratch.write("kept", "original");
    let settings = json!({
        "sandbox": {"enabled": true},
        "permissions": {"deny": ["Read(.env)", "Edit(kept)"]},
    });
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let ended = program.run(&["-p", "go", "--output-format", "stream-json", "--verbose"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stdout.contains("the-secret-words"), "{}", ended.stdout);
    let read = |name| std::fs::read_to_string(program.scratch.project().join(name)).unwrap();
    assert_eq!((read(".env").as_str(), read("kept").as_str()), ("the-secret-words", "original"));
}

/// A file that a sandboxed command writes there would run outside of the sandbox with the next command that runs
/// there.
#[test]
fn the_file_that_every_command_reads_first_is_kept_from_commands_and_edits() {
    // No analysis sees which file this writes.
    let hidden = r#"echo seen $SEEN; perl -e 'open F, ">>", "en" . "v.sh" and print F "touch planted\n"; rename "en" . "v.sh", "x"'"#;
    let edit = json!({"file_path": "env.sh", "old_string": "SEEN", "new_string": "EDITED"});
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": hidden})),
        call("toolu_3", "Read", json!({"file_path": "env.sh"})),
        call("toolu_4", "Edit", edit),
        Reply::text("done"),
    ]);
    program.scratch.write("env.sh", "export SEEN=1\n");
    let settings = json!({"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mode = ["--permission-mode", "acceptEdits"];
    let stream = ["-p", "go", "--output-format", "stream-json", "--verbose"];
    let mut command = program.command([&stream[..], &mode].concat());
    command.env("CLAUDE_ENV_FILE", program.scratch.project().join("env.sh"));
    let ended = crate::program::ended(command.output().unwrap());
    assert!(ended.stdout.contains("seen 1"), "{}", ended.stdout);
    let file = program.scratch.project().join("env.sh");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "export SEEN=1\n", "{}", ended.stdout);
}

/// So would what other variables of the user name, and what a script of a hook leads to.
#[test]
fn what_variables_and_links_name_as_code_is_kept_from_commands_and_edits() {
    let hidden = r#"perl -e 'for (qw(BASH_ENV GIT_CONFIG_GLOBAL GIT_EXTERNAL_DIFF)) { open F, ">>", $ENV{$_} and print F "evil\n"; close F } open F, ">>", "lib/re" . "al.sh" and print F "evil\n"; mkdir "conf"; mkdir "conf/g" . "it" and open F, ">>", "conf/g" . "it/config" and print F "evil\n"; for my $at (["a.d", "n.sh"], ["op" . "t", "run.sh"]) { mkdir $at->[0]; open F, ">", "$at->[0]/$at->[1]" and print F "evil\n" }'; echo tried"#;
    let write =
        |id: &str, file: &str| call(id, "Write", json!({"file_path": file, "content": "evil\n"}));
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": hidden})),
        write("toolu_2", "later.sh"),
        write("toolu_3", "lib/real.sh"),
        write("toolu_4", "conf/git/config"),
        Reply::text("done"),
    ]);
    for name in ["gitconfig", "differ", "lib/real.sh"] {
        program.scratch.write(name, "");
    }
    let project = program.scratch.project();
    std::fs::create_dir(project.join("tools")).unwrap();
    std::fs::create_dir(project.join("a.d")).unwrap();
    std::os::unix::fs::symlink("../lib/real.sh", project.join("tools/run.sh")).unwrap();
    let settings = json!({
        "sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true},
        "hooks": {"SessionEnd": [{"hooks": [
            {"type": "command", "command": "sh tools/run.sh"},
            {"type": "command", "command": "for f in a.d/*.sh; do . \"$f\"; done"},
            {"type": "command", "command": "cd opt && sh run.sh"},
        ]}]},
    });
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let stream = ["-p", "go", "--output-format", "stream-json", "--verbose"];
    let mut command =
        program.command([&stream[..], &["--permission-mode", "acceptEdits"]].concat());
    command.env("BASH_ENV", project.join("later.sh"));
    command.env("GIT_CONFIG_GLOBAL", project.join("gitconfig"));
    command.env("GIT_EXTERNAL_DIFF", project.join("differ"));
    command.env("XDG_CONFIG_HOME", project.join("conf"));
    let ended = crate::program::ended(command.output().unwrap());
    assert!(ended.stdout.contains("tried"), "{}", ended.stdout);
    for name in [
        "later.sh",
        "gitconfig",
        "differ",
        "lib/real.sh",
        "conf/git/config",
        "a.d/n.sh",
        "opt/run.sh",
    ] {
        let text = std::fs::read_to_string(project.join(name)).unwrap_or_default();
        assert!(!text.contains("evil"), "{name}: {}", ended.stdout);
    }
}

#[test]
fn git_works_in_a_sandbox_in_a_directory_of_a_repository() {
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "(cd .. && git diff HEAD)"})),
        call("toolu_2", "Bash", json!({"command": "git diff HEAD && git log --format=%s HEAD"})),
        call("toolu_3", "Bash", json!({"command": "git init"})),
        Reply::text("done"),
    ]);
    let settings = json!({"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let project = program.scratch.project();
    let git = |args: &[&str]| {
        let done = Command::new("git").args(args).current_dir(&project).output();
        assert!(done.unwrap().status.success(), "{args:?}");
    };
    git(&["init", "-q"]);
    let person = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git(&[&person[..], &["commit", "-q", "--allow-empty", "-m", "the first"]].concat());
    let below = project.join("below");
    std::fs::create_dir(&below).unwrap();
    let mut command = program.command(["-p", "go", "--output-format", "stream-json", "--verbose"]);
    let ended = crate::program::ended(command.current_dir(&below).output().unwrap());
    assert!(!ended.stdout.contains("ambiguous argument"), "{}", ended.stdout);
    let results = results(&ended);
    assert!(results[1].contains("the first"), "{results:?}");
    let hint = format!("but not to {}", below.join(".git/config").display());
    assert!(results[2].contains(&hint), "{results:?}");
}

/// If the machine lets this program make control groups, limits are those of a command with all that it starts.
#[test]
fn a_whole_command_uses_no_more_than_the_settings_let_it() {
    let half = "perl -e '$x = \"y\" x 50_000_000; print \"half\\n\"; sleep 2'";
    let halves = format!("{half} & {half} & wait; echo over");
    let many = "for i in $(seq 60); do sleep 5 & done; jobs -p | wc -l; kill $(jobs -p)";
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": halves})),
        call("toolu_2", "Bash", json!({"command": many})),
        Reply::text("done"),
    ]);
    let settings = json!({"commandLimits": {"memoryMb": 128, "processes": 40}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let doctor = program.run(&["doctor"]).stdout;
    let is_grouped = doctor.contains("memory: 128 MB of a whole command, by a control group");
    let each = "memory: 128 MB of each process: no control group can be made here";
    assert!(is_grouped || doctor.contains(each), "{doctor}");
    let ended = program.run_with_bash();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let results = results(&ended);
    if is_grouped {
        let halves = results[0].lines().filter(|line| *line == "half").count();
        assert!(halves < 2 && results[0].contains("Killed"), "{}", results[0]);
        assert!(results[0].ends_with("over"), "{}", results[0]);
        assert!(results[1].contains("fork"), "{}", results[1]);
    }
}

#[test]
fn a_command_uses_no_more_than_the_settings_let_it() {
    let command = "head -c 3000000 /dev/zero > big; echo \"wrote $?\"; \
                   perl -e '$x = \"y\" x 300_000_000; print length($x), \" bytes\\n\"'; echo over";
    // The first does what the second may not: what is missing there is missing because of the limits.
    for (memory, file, size) in [(1024, 10, 3_000_000), (128, 1, 1 << 20)] {
        let program = Program::answering([
            call("toolu_1", "Bash", json!({"command": command})),
            Reply::text("done"),
        ]);
        let settings = json!({"commandLimits": {"memoryMb": memory, "fileMb": file}});
        program.scratch.write_home(".claude/settings.json", settings.to_string());
        let ended = program.run_with_bash();
        let result = results(&ended).remove(0);
        let written = std::fs::metadata(program.scratch.project().join("big")).unwrap().len();
        assert_eq!(written, size, "{file} MB: {result}");
        assert_eq!(result.contains("wrote 0"), file == 10, "{file} MB: {result}");
        assert_eq!(result.contains("300000000 bytes"), memory == 1024, "{memory} MB: {result}");
        assert!(result.ends_with("over"), "{memory} MB: {result}");
        let doctor = program.run(&["doctor"]).stdout;
        assert!(doctor.contains(&format!("memory: {memory} MB")), "{doctor}");
        assert!(doctor.contains(&format!("file: {file} MB")), "{doctor}");
    }
    let program = Program::alone();
    let wrong = json!({"commandLimits": {"memoryMb": "much"}});
    program.scratch.write_home(".claude/settings.json", wrong.to_string());
    let doctor = program.run(&["doctor"]);
    assert!(doctor.stdout.contains("commandLimits.memoryMb"), "{}", doctor.stdout);
}

/// Rules that cannot be read, each of which was meant to keep this file from being read.
#[test]
fn a_deny_rule_that_cannot_be_read_takes_the_whole_tool() {
    let broken = [
        json!(["Read(f.txt"]),
        json!(["Read([)"]),
        json!(["Read({a)"]),
        json!(["Read (f.txt)"]),
        json!(["Bash(cat f.txt)x, Read"]),
        json!(["Read,Bash"]),
        json!([["Read(f.txt)"]]),
        json!([{"tool": "Read", "args": ["f.txt"]}]),
        json!(["Read(f\u{0}.txt)"]),
        json!("Read"),
    ];
    for rules in broken {
        let settings = json!({"permissions": {"deny": rules}}).to_string();
        for by_flag in [false, true] {
            let reads = call("toolu_1", "Read", json!({"file_path": "f.txt"}));
            let program = Program::answering([reads, Reply::text("done")]);
            program.scratch.write("f.txt", "SECRET\n");
            let ended = if by_flag {
                program.run(&["-p", "go", "--settings", &settings])
            } else {
                program.scratch.write_home(".claude/settings.json", &settings);
                program.run(&["-p", "go"])
            };
            let told = program.server().last().json()["messages"].to_string();
            assert!(!told.contains("SECRET"), "{settings}: {told}");
            assert!(ended.stderr.contains("warning: "), "{settings}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_run_fails_where_a_deny_rule_is_not_clear() {
    for (settings, place) in [
        ("{\n\"permissions\": {\"deny\": [7]}}", "settings.json:2"),
        ("{\n\"permissions\": {\"ask\": [\"(x)\"]}}", "settings.json:2"),
        ("{\n\"permissions\": [3]}", "settings.json:2"),
        ("{\n\"permissions\": {\"deny\": [\"Raed(x\"]}}", "settings.json:2"),
        ("{\n\"permissions\": {,}}", "settings.json:2"),
    ] {
        let program = Program::answering([Reply::text("done")]);
        program.scratch.write_home(".claude/settings.json", settings);
        let ended = program.run(&["-p", "go"]);
        assert_eq!(ended.code, Some(1), "{settings}: {}", ended.stderr);
        assert!(ended.stderr.contains(place), "{settings}: {}", ended.stderr);
        assert!(ended.stderr.contains("so nothing runs"), "{settings}: {}", ended.stderr);
        assert_eq!(program.server().requests().len(), 0, "{settings}");
    }
}
