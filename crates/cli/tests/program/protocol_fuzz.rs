//! Hosts that send anything at all, and hosts that die at any moment: the program answers what can be answered, ends by
//! itself, and leaves nothing running.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::declared;
use crate::processes::processes;
use crate::program::eventually;
use crate::stage::{Stage, agent, bash};

/// Numbers that are the same in every run of a test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

/// Every request that there is, with fields that fit, and one that there is not.
fn requests() -> Vec<Value> {
    vec![
        json!({"subtype": "initialize", "hooks": {"PreToolUse": [{"hookCallbackIds": ["h"]}]}}),
        json!({"subtype": "initialize", "sdkMcpServers": ["gone"], "agents": {"a": 1}, "skills": 7}),
        json!({"subtype": "initialize", "systemPrompt": 7, "hooks": [], "plugins": {}, "toolAliases": 7}),
        json!({"subtype": "file_suggestions", "query": "a"}),
        json!({"subtype": "file_suggestions", "query": {"a": 1}}),
        json!({"subtype": "mcp_message", "server_name": "gone", "message": []}),
        json!({"subtype": "side_question", "question": "why?"}),
        json!({"subtype": "generate_session_title", "description": ""}),
        json!({"subtype": "interrupt", "cancel_queued": true}),
        json!({"subtype": "set_permission_mode", "mode": "plan"}),
        json!({"subtype": "set_model", "model": "haiku"}),
        json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 9}),
        json!({"subtype": "set_color", "color": "red"}),
        json!({"subtype": "rename_session", "title": "name"}),
        json!({"subtype": "rewind_files", "user_message_id": "x"}),
        json!({"subtype": "supported_commands"}),
        json!({"subtype": "reload_skills"}),
        json!({"subtype": "reload_plugins", "refuse_if_busy": true}),
        json!({"subtype": "list_models"}),
        json!({"subtype": "get_context_usage", "detail": "summary"}),
        json!({"subtype": "get_session_cost"}),
        json!({"subtype": "get_usage"}),
        json!({"subtype": "get_settings"}),
        json!({"subtype": "apply_flag_settings", "settings": {"permissions": {"deny": ["Bash"]}}}),
        json!({"subtype": "apply_flag_settings", "settings": {"permissions": 7, "hooks": []}}),
        json!({"subtype": "update_settings", "source": "localSettings", "settings": {"model": "x"}}),
        json!({"subtype": "list_permission_rules"}),
        json!({"subtype": "get_hooks_listing"}),
        json!({"subtype": "read_file", "path": "../../../../etc/passwd", "max_bytes": u64::MAX}),
        json!({"subtype": "read_file", "path": "/dev/zero"}),
        json!({"subtype": "seed_read_state", "path": ".", "mtime": -1.5}),
        json!({"subtype": "register_repo_root", "directory": "/"}),
        json!({"subtype": "mcp_status"}),
        json!({"subtype": "mcp_set_servers", "servers": {"none": {"command": "no-such-program"}}}),
        json!({"subtype": "mcp_call", "tool": "mcp__none__x"}),
        json!({"subtype": "mcp_toggle", "serverName": "none", "enabled": false}),
        json!({"subtype": "set_mcp_permission_mode_override", "serverName": "x", "mode": "default"}),
        json!({"subtype": "stop_task", "task_id": "x"}),
        json!({"subtype": "background_tasks"}),
        json!({"subtype": "get_task_output", "task_id": "x"}),
        json!({"subtype": "no_such_request", "deep": [[[[{}]]]]}),
    ]
}

fn stage() -> Stage {
    Stage::new(&json!({
        "hello": ["Hello."],
        "asks": [[bash("bash -c 'touch made.txt'")], "done"],
        "works": [[bash("sleep 98861")], "never"],
        "leads": [[agent("@@works", &json!({"run_in_background": true}))], [bash("sleep 98861")], "never"],
    }))
}

fn start(stage: &Stage) -> Child {
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    let more = ["--permission-prompt-tool", "stdio", "--allowedTools", "Bash(sleep *)"];
    let mut command =
        stage.program.command([&flags[..], &["--model", stage.model()], &more].concat());
    command.stdin(Stdio::piped()).spawn().unwrap()
}

/// A line that a host might send, and the id of the request that it is, if it is a whole one.
fn line(dice: &mut Dice, number: usize) -> (Vec<u8>, Option<String>) {
    let id = format!("r{number}");
    let request = dice.pick(&requests()).clone();
    let whole =
        json!({"type": "control_request", "request_id": id, "request": request}).to_string();
    let kinds = [
        json!({"type": "control_response", "response": {"subtype": "success", "request_id": id}}),
        json!({"type": "control_response", "response": {"subtype": "error", "request_id": "none"}}),
        json!({"type": "control_response", "response": []}),
        json!({"type": "control_cancel_request", "request_id": format!("r{}", dice.roll(number + 1))}),
        json!({"type": "user", "message": {"role": "user", "content": "@@hello"}}),
        json!({"type": "user", "message": {"role": "user", "content": [{"type": "text"}]}}),
        json!({"type": "user", "message": {"role": "assistant", "content": "x"}}),
        json!({"type": "keep_alive"}),
        json!({"type": "control_request", "request_id": {"n": 7}, "request": null}),
        json!({"type": "later", "anything": {"at": "all"}}),
    ];
    match dice.roll(8) {
        0..4 => (whole.into_bytes(), Some(id)),
        4 => {
            // Cut off anywhere.
            let end = dice.roll(whole.len());
            (whole.as_bytes()[..end].to_vec(), None)
        }
        5 => {
            let length = dice.roll(200);
            let bytes = (0..length).map(|_| u8::try_from(dice.roll(256)).unwrap());
            (bytes.filter(|byte| *byte != b'\n').collect(), None)
        }
        6 => (vec![b'['; 1 + dice.roll(300_000)], None),
        _ => (dice.pick(&kinds).to_string().into_bytes(), None),
    }
}

/// The number of answers to each request.
fn answers(stdout: &str) -> BTreeMap<String, usize> {
    let mut answers = BTreeMap::new();
    for line in stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        declared::check(&event);
        if event["type"] == "control_response" {
            let id = event["response"]["request_id"].as_str().unwrap().to_owned();
            *answers.entry(id).or_default() += 1;
        }
    }
    answers
}

#[test]
fn whatever_a_host_sends_each_whole_request_is_answered_once_and_the_program_ends() {
    for seed in 1..=12_u64 {
        let stage = stage();
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut child = start(&stage);
        let mut stdin = child.stdin.take().unwrap();
        let reading = thread::spawn(move || child.wait_with_output().unwrap());
        let mut asked = Vec::new();
        for number in 0..60 {
            let (mut bytes, id) = line(&mut dice, number);
            bytes.push(b'\n');
            stdin.write_all(&bytes).unwrap();
            asked.extend(id);
        }
        drop(stdin);
        let output = reading.join().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code <= 1), "{seed}: {told}");
        assert!(!told.contains("panicked"), "{seed}: {told}");
        let answers = answers(&String::from_utf8(output.stdout).unwrap());
        for id in asked {
            assert_eq!(answers.get(&id), Some(&1), "seed {seed}, request {id}: {told}");
        }
    }
}

#[test]
fn a_line_without_an_end_is_read_past_and_the_next_one_counts() {
    let stage = stage();
    let mut child = start(&stage);
    let mut stdin = child.stdin.take().unwrap();
    let reading = thread::spawn(move || child.wait_with_output().unwrap());
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..65 {
        stdin.write_all(&piece).unwrap();
    }
    let request = json!({"type": "control_request", "request_id": "after", "request": {"subtype": "mcp_status"}});
    stdin.write_all(format!("\n{request}\n").as_bytes()).unwrap();
    drop(stdin);
    let output = reading.join().unwrap();
    assert_eq!(answers(&String::from_utf8(output.stdout).unwrap()).get("after"), Some(&1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("more than"));
}

#[test]
fn a_host_that_dies_at_any_moment_leaves_nothing_running() {
    for (moment, script) in
        (0..12).map(|moment| (moment, ["@@hello", "@@asks", "@@works", "@@leads"][moment % 4]))
    {
        let stage = stage();
        let mut child = start(&stage);
        let mut stdin = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let opening = json!({"type": "control_request", "request_id": "1", "request": {"subtype": "initialize"}});
        let prompt = json!({"type": "user", "message": {"role": "user", "content": script}});
        writeln!(stdin, "{opening}\n{prompt}").unwrap();
        let mut line = String::new();
        // Reads so many lines, or as many as come before the program waits for something.
        for _ in 0..=moment / 2 {
            line.clear();
            if lines.read_line(&mut line).unwrap() == 0
                || line.contains("can_use_tool")
                || line.contains("\"tool_use\"")
                || line.contains("\"type\":\"result\"")
            {
                break;
            }
        }
        // Both ends go at once, as when a process dies.
        drop((stdin, lines));
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = child.wait().unwrap();
        assert!(status.code().is_some(), "moment {moment}: {status}: {told}");
        assert!(!told.contains("panicked"), "moment {moment}: {told}");
        let root = stage.program.scratch.root().display().to_string();
        eventually("the end of everything", || processes(&root).is_empty().then_some(()));
    }
    eventually("the end of every command", || processes("sleep 98861").is_empty().then_some(()));
}
