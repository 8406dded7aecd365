//! Settings, trust and what they let an agent do.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::program::{Program, call};

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
    let settings = json!({"statusLine": {"type": "command", "command": "x"}, "permisions": {}, "model": "haiku"});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let doctor = program.run(&["doctor"]);
    assert!(doctor.stdout.contains("statusLine"), "{}", doctor.stdout);
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
fn settings_that_change_while_a_run_goes_on_are_taken_up() {
    let program = Program::answering([
        call(
            "toolu_1",
            "Bash",
            json!({"command": "mkdir -p \"$HOME/.claude\" && cp rules.json \"$HOME/.claude/settings.json\""}),
        ),
        call("toolu_2", "Write", json!({"file_path": "x.txt", "content": "y"})),
        Reply::text("done"),
    ]);
    program.scratch.write("rules.json", allow(&["Edit"]));
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

#[test]
fn always_allow_is_written_where_it_belongs() {
    use std::io::{BufRead, BufReader, Write};
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "touch made.txt"})),
        call("toolu_2", "Bash", json!({"command": "touch made.txt"})),
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
    if ended.stderr.contains("without a sandbox") {
        assert!(first.contains("nobody is there to ask"), "what is not confined is asked about");
        return;
    }
    assert_eq!(program.scratch.read("inside.txt"), "in\n");
    assert!(!outside.join("planted").exists());
    if !ended.stderr.contains("gaps") {
        assert!(!first.contains("hidden"), "{first}");
    }
    assert!(
        !program.scratch.project().join("inside2.txt").exists(),
        "outside the sandbox somebody is asked"
    );
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
fn nobody_goes_over_to_a_model_that_is_not_listed() {
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
fn a_model_goes_by_the_name_of_whoever_serves_it_and_keeps_its_ways() {
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
        "crossSessionInbound": "refuse",
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
        ["crossSessionInbound", "sandbox.credentials", "sandbox.network.strictAllowlist"],
        "{doctor}"
    );
    assert!(idle.contains("nobody is asked about a host") && idle.contains("not settled"));
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
