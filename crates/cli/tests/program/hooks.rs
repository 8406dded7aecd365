//! Hooks of settings files in the whole program: commands that hear of everything and have a say.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::processes::processes;
use crate::program::{Ended, Program, call, ended, eventually, signal};

const USER: &str = ".claude/settings.json";
const STREAM: [&str; 3] = ["--output-format", "stream-json", "--verbose"];

/// Puts what a hook is told into a file of the project.
const LOG: &str = r#"cat >> "$CLAUDE_PROJECT_DIR/log""#;

/// The events of a session that a program without a host has.
const EVENTS: [&str; 12] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
    "StopFailure",
    "CwdChanged",
    "ConfigChange",
    "SessionEnd",
];

fn command(command: &str) -> Value {
    json!([{"hooks": [{"type": "command", "command": command}]}])
}

fn hooks(events: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let events = events.into_iter().map(|(event, groups)| (event.to_owned(), groups)).collect();
    json!({"hooks": Value::Object(events)})
}

fn logging() -> Value {
    hooks(EVENTS.map(|event| (event, command(LOG))))
}

/// A program whose user has these settings.
fn program(settings: &Value, replies: impl IntoIterator<Item = Reply>) -> Program {
    let program = Program::answering(replies);
    program.scratch.write_home(USER, settings.to_string());
    program
}

fn bash(id: &str, command: &str) -> Reply {
    call(id, "Bash", json!({"command": command}))
}

fn run(program: &Program, more: &[&str]) -> Ended {
    program.run(&[&["-p", "go", "--allowedTools", "Bash"], &STREAM[..], more].concat())
}

/// The inputs of the hooks, in the order in which they wrote them down.
fn told(program: &Program) -> Vec<Value> {
    let log = std::fs::read_to_string(program.scratch.project().join("log")).unwrap_or_default();
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn names(told: &[Value]) -> Vec<&str> {
    told.iter().map(|told| told["hook_event_name"].as_str().unwrap()).collect()
}

/// All that the model was sent last.
fn last(program: &Program) -> String {
    program.server().last().json()["messages"].to_string()
}

#[test]
fn every_event_of_a_session_reaches_a_command() {
    // The part of the matrix that needs a shell: `every_event_is_told_once_for_each_occasion_with_the_right_ids`.
    let program = program(
        &logging(),
        [bash("t1", "mkdir deep && cd deep"), bash("t2", "false"), Reply::text("done")],
    );
    let ended = run(&program, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = told(&program);
    assert_eq!(
        names(&told),
        [
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "CwdChanged",
            "PostToolBatch",
            "PreToolUse",
            "PostToolUseFailure",
            "PostToolBatch",
            "Stop",
            "SessionEnd",
        ]
    );
    let project = program.scratch.project().canonicalize().unwrap();
    let deep = project.join("deep");
    let moved = &told[4];
    assert_eq!((&moved["old_cwd"], &moved["new_cwd"]), (&json!(project), &json!(deep)));
    let transcript = program.transcripts().remove(0).canonicalize().unwrap();
    for (at, told) in told.iter().enumerate() {
        assert_eq!(told["session_id"], ended.result()["session_id"]);
        assert_eq!(told["cwd"], if at < 3 { json!(project) } else { json!(deep) }, "{told}");
        assert_eq!((&told["permission_mode"], &told["depth"]), (&json!("default"), &json!(0)));
        let path = std::path::Path::new(told["transcript_path"].as_str().unwrap());
        assert_eq!(path.canonicalize().unwrap(), transcript);
    }
    let ids: Vec<&str> = told.iter().filter_map(|told| told["tool_use_id"].as_str()).collect();
    assert_eq!(ids, ["t1", "t1", "t2", "t2"]);
}

#[test]
fn a_signal_ends_what_began_once() {
    for name in ["-INT", "-TERM"] {
        let program = program(&logging(), [bash("t1", "touch ready; sleep 98791")]);
        let ready = program.scratch.project().join("ready");
        let child = program.command(["-p", "go", "--allowedTools", "Bash"]).spawn().unwrap();
        eventually("the command started", || ready.exists().then_some(()));
        signal(&child, name);
        let ended = ended(child.wait_with_output().unwrap());
        let told = told(&program);
        assert_eq!(
            names(&told),
            ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUseFailure", "SessionEnd"],
            "{name}: {}",
            ended.stderr
        );
        assert_eq!(
            (&told[2]["tool_use_id"], &told[3]["tool_use_id"]),
            (&json!("t1"), &json!("t1"))
        );
        assert_eq!(told[3]["is_interrupt"], true);
    }
}

#[test]
fn exit_code_two_denies_a_call_in_words_that_the_model_reads() {
    let hook = "echo 'no servers here' >&2; exit 2";
    let group = json!([{"matcher": "Bash", "hooks": [
        {"type": "command", "command": hook, "if": "Bash(serve *)"},
        {"type": "command", "command": "echo wrong >&2; exit 1", "if": "Bash(touch *)"},
    ]}]);
    let program = program(
        &hooks([("PreToolUse", group)]),
        [bash("t1", "echo hi && serve all"), bash("t2", "touch made"), Reply::text("done")],
    );
    let ended = run(&program, &[]);
    let requests = program.server().requests();
    let result = &requests[1].json()["messages"][2]["content"][0];
    assert_eq!(result["is_error"], true);
    assert_eq!(result["content"], format!("PreToolUse:Bash hook error: [{hook}]: no servers here"));
    assert!(program.scratch.project().join("made").exists(), "another exit code stops nothing");
    let warned =
        ended.events().into_iter().find(|event| event["subtype"] == "informational").unwrap();
    let expected =
        "PreToolUse:Bash hook error: [echo wrong >&2; exit 1]: failed with exit code 1: wrong";
    assert_eq!((&warned["level"], &warned["content"]), (&json!("warning"), &json!(expected)));
}

#[test]
fn a_session_starts_with_variables_and_words_of_its_hooks() {
    let start =
        r#"printf 'export FROM_HOOK="a value"\n' >> "$CLAUDE_ENV_FILE"; echo 'today is a holiday'"#;
    let program = program(
        &hooks([("SessionStart", command(start))]),
        [bash("t1", "echo \"it is $FROM_HOOK\""), Reply::text("done")],
    );
    run(&program, &[]);
    let first = program.server().requests()[0].json()["messages"].to_string();
    assert!(
        first.contains("SessionStart:startup hook additional context: today is a holiday"),
        "{first}"
    );
    assert!(last(&program).contains("it is a value"), "{}", last(&program));
}

#[test]
fn changed_settings_are_taken_up_with_their_hooks_unless_a_hook_keeps_them_out() {
    for (verdict, is_taken_up) in [("true", true), ("echo keep them >&2; exit 2", false)] {
        let change = format!("{LOG}; {verdict}");
        let before = hooks([("ConfigChange", command(&change))]);
        let mut after = hooks([("PostToolUse", command("touch heard"))]);
        after["permissions"] = json!({"allow": ["Edit"]});
        let program = program(
            &before,
            [
                bash("t1", "sh ./change.sh"),
                call("t2", "Write", json!({"file_path": "x.txt", "content": "y"})),
                Reply::text("done"),
            ],
        );
        program.scratch.write("after.json", after.to_string());
        // No command that names the file would run unasked.
        program.scratch.write("change.sh", "cp after.json \"$HOME/.claude/settings.json\"");
        let ended = run(&program, &[]);
        let exists = |name: &str| program.scratch.project().join(name).exists();
        assert_eq!(
            (exists("x.txt"), exists("heard")),
            (is_taken_up, is_taken_up),
            "{}",
            ended.stdout
        );
        let told = told(&program);
        assert_eq!(names(&told), ["ConfigChange"]);
        assert_eq!(told[0]["source"], "user_settings");
        assert!(told[0]["file_path"].as_str().unwrap().ends_with(USER));
        assert_eq!(ended.stdout.contains("keep them"), !is_taken_up);
    }
}

#[test]
fn hooks_count_once_where_they_are_trusted_and_not_switched_off() {
    let replies = || [Reply::text("done"), Reply::text("done"), Reply::text("done")];
    let both = program(&logging(), replies());
    both.scratch.write(USER, logging().to_string());
    run(&both, &[]);
    assert_eq!(told(&both).len(), 4, "a repository's hooks are off: {:?}", names(&told(&both)));
    assert_eq!(both.run(&["trust", "grant"]).code, Some(0));
    run(&both, &[]);
    assert_eq!(told(&both).len(), 8, "what stands in two files runs once");
    let mut off = logging();
    off["disableAllHooks"] = json!(true);
    both.scratch.write_home(USER, off.to_string());
    run(&both, &[]);
    assert_eq!(told(&both).len(), 8, "switched off is off");
    let repository = Program::answering(replies());
    repository.scratch.write(USER, logging().to_string());
    let ended = run(&repository, &[]);
    assert_eq!(told(&repository).len(), 0);
    assert!(ended.stderr.contains("this folder is not trusted"), "{}", ended.stderr);
    repository.run(&["trust", "grant"]);
    run(&repository, &[]);
    assert_eq!(
        names(&told(&repository)),
        ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    );
}

#[test]
fn a_hook_that_cannot_run_is_an_error_with_its_place() {
    let settings = "{\"hooks\": {\n\"PreToolUse\": [{\"hooks\": [\n{\"type\": \"comand\", \"command\": \"x\"}]}],\n\
                    \"Stopp\": [],\n\"SubagentStart\": [{\"hooks\": [\n{\"type\": \"prompt\", \"prompt\": \"x\"}]}],\n\
                    \"TeammateIdle\": [{\"hooks\": [\n{\"type\": \"command\", \"command\": \"x\"}]}],\n\
                    \"Stop\": [{\"hooks\": [\n{\"type\": \"command\", \"command\": \"touch heard\"}]}]}}";
    let program = program(&json!({}), [Reply::text("done")]);
    let file = program.scratch.write_home(USER, settings);
    let run = run(&program, &[]);
    assert_eq!(run.code, Some(0));
    assert!(program.scratch.project().join("heard").exists(), "the others run");
    let doctor = program.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1));
    for (line, what) in [
        (3, "`comand` is no type of hook"),
        (4, "`Stopp` is no event"),
        (6, "a hook of type prompt cannot run at SubagentStart"),
    ] {
        let place = format!("{}:{line}: ", file.display());
        for text in [&run.stderr, &doctor.stdout] {
            let is_said = text.lines().any(|said| said.contains(&place) && said.contains(what));
            assert!(is_said, "{place}{what}: {text}");
        }
    }
    assert!(!run.stderr.contains(&format!("{}:8: ", file.display())), "it happens: {}", run.stderr);
    assert!(run.stderr.contains(&format!("error: {}:3: ", file.display())), "{}", run.stderr);
    assert!(doctor.stdout.contains("Stop: touch heard ("), "{}", doctor.stdout);
}

#[test]
fn a_host_may_watch_hooks_run() {
    let hook = "echo out; echo err >&2; exit 3";
    let settings = hooks([("PreToolUse", command(hook)), ("Stop", command("true"))]);
    let program = program(&settings, [bash("t1", "true"), Reply::text("done")]);
    let ended = run(&program, &["--include-hook-events"]);
    let events = ended.events();
    let of = |subtype: &str| -> Vec<Value> {
        events.iter().filter(|event| event["subtype"] == subtype).cloned().collect()
    };
    let (started, ended) = (of("hook_started"), of("hook_response"));
    let name = |event: &Value| event["hook_name"].as_str().unwrap().to_owned();
    assert_eq!(started.iter().map(name).collect::<Vec<_>>(), ["PreToolUse:Bash", "Stop"]);
    for (started, ended) in started.iter().zip(&ended) {
        assert_eq!(started["hook_id"], ended["hook_id"]);
        assert_eq!(started["hook_event"], ended["hook_event"]);
    }
    let fields =
        ["hook_event", "stdout", "stderr", "exit_code", "outcome"].map(|key| &ended[0][key]);
    assert_eq!(json!(fields), json!(["PreToolUse", "out\n", "err\n", 3, "error"]));
    assert_eq!(ended[1]["outcome"], "success");
    let unwatched = self::program(&settings, [Reply::text("done")]);
    assert!(!run(&unwatched, &[]).stdout.contains("hook_started"));
}

#[test]
fn async_hooks_are_heard_later_and_may_wake_the_model() {
    let context = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "by the way"}});
    let asynchronous = json!([{"hooks": [
        {"type": "command", "command": format!("echo '{context}'; touch told"), "async": true},
    ]}]);
    let waking = json!([{"hooks": [{
        "type": "command", "asyncRewake": true,
        "command": "until [ -e go ]; do sleep 0.01; done; echo 'the tests fail' >&2; exit 2",
    }]}]);
    let settings = hooks([("PostToolUse", asynchronous), ("SessionStart", waking)]);
    let program = program(
        &settings,
        [
            bash("t1", "true"),
            bash("t2", "until [ -e told ]; do sleep 0.01; done"),
            Reply::text("first"),
            Reply::text("woken"),
        ],
    );
    let mut host = Host::start(&program, &["--allowedTools", "Bash"]);
    host.say("go");
    assert_eq!(host.result()["result"], "first", "it waited for no hook");
    program.scratch.write("go", "");
    let woken = host.result();
    assert_eq!(
        (&woken["result"], &woken["origin"]["kind"]),
        (&json!("woken"), &json!("auto-continuation"))
    );
    let sent = last(&program);
    assert!(sent.contains("by the way"), "{sent}");
    assert!(
        sent.contains("SessionStart:startup hook feedback:") && sent.contains("the tests fail"),
        "{sent}"
    );
    assert_eq!(host.finish(), 0);
}

#[test]
fn an_async_hook_at_the_end_of_a_turn_wakes_the_model() {
    // S-218
    let complains = "[ -e told ] && exit 0; touch told; echo 'the tests fail' >&2; exit 2";
    let hook = json!({"type": "command", "asyncRewake": true, "command": complains});
    let settings = hooks([("Stop", json!([{"hooks": [hook]}]))]);
    let program = program(&settings, [Reply::text("all done"), Reply::text("mending it")]);
    let mut host = Host::start(&program, &[]);
    host.say("go");
    assert_eq!(host.result()["result"], "all done", "the turn ended without it");
    let woken = host.result();
    assert_eq!(
        (&woken["result"], &woken["origin"]["kind"]),
        (&json!("mending it"), &json!("auto-continuation"))
    );
    assert!(last(&program).contains("the tests fail"), "{}", last(&program));
    assert_eq!(host.finish(), 0);
}

#[test]
fn functions_of_a_host_are_hooks() {
    let program = program(
        &json!({}),
        [call("t1", "Write", json!({"file_path": "x.txt", "content": "y"})), Reply::text("done")],
    );
    let mut host = Host::start(&program, &["--permission-mode", "acceptEdits"]);
    let hooks = json!({"PreToolUse": [{"matcher": "Write", "hookCallbackIds": ["hook_0"]}]});
    host.send(&control("r1", &json!({"subtype": "initialize", "hooks": hooks})));
    host.say("write");
    let asked = host.until(|event| event["type"] == "control_request").pop().unwrap();
    let request = &asked["request"];
    assert_eq!(
        json!([
            request["subtype"],
            request["callback_id"],
            request["tool_use_id"],
            request["input"]["tool_name"]
        ]),
        json!(["hook_callback", "hook_0", "t1", "Write"])
    );
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                      "permissionDecisionReason": "the host says no"}});
    let response =
        json!({"subtype": "success", "request_id": asked["request_id"], "response": deny});
    host.send(&json!({"type": "control_response", "response": response}));
    assert_eq!(host.result()["result"], "done");
    assert!(last(&program).contains("PreToolUse:Write hook error: the host says no"));
    assert!(!program.scratch.project().join("x.txt").exists());
    assert_eq!(host.finish(), 0);
}

#[test]
fn nothing_that_hooks_left_outlives_the_program() {
    // I-13
    let start =
        "setsid sleep 98801 >/dev/null 2>&1 & (setsid sh -c 'sleep 98802 & sleep 98803' &) ; true";
    let hang = "touch ready; sleep 98804";
    let settings = hooks([("SessionStart", command(start)), ("UserPromptSubmit", command(hang))]);
    let killed = program(&settings, [Reply::text("done")]);
    let mut child = killed.command(["-p", "go"]).spawn().unwrap();
    let ready = killed.scratch.project().join("ready");
    eventually("the hook started", || ready.exists().then_some(()));
    eventually("all are running", || (processes("sleep 9880").len() >= 5).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("every process ended", || processes("sleep 9880").is_empty().then_some(()));
    let start = start.replace("988", "989");
    let waiting =
        json!([{"hooks": [{"type": "command", "command": "sleep 98909", "async": true}]}]);
    let settings = hooks([("SessionStart", command(&start)), ("UserPromptSubmit", waiting)]);
    let done = program(&settings, [Reply::text("done")]);
    assert_eq!(run(&done, &[]).code, Some(0));
    eventually("every process ended", || processes("sleep 989").is_empty().then_some(()));
}
