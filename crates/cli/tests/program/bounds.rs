//! Bounds on what others send: whatever a provider, a server or a host does, memory stays bounded, the end
//! comes, and it is no success.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use centurion_testkit::{Reply, sse};
use serde_json::{Value, json};

use crate::program::{Ended, Program, call, ended, eventually, signal};

/// A gigabyte in pieces of 64 KiB.
const PIECES: usize = 1 << 14;

/// The most memory of its own that a run may have whose peers send without end.
const MOST_MEMORY: u64 = 80 * 1024 * 1024;

/// Runs to the end and tells the most memory that it had.
pub(crate) fn run_measured(command: &mut Command) -> (Ended, u64) {
    let child = command.spawn().unwrap();
    let watch = watch_memory(&child);
    let ended = ended(child.wait_with_output().unwrap());
    (ended, watch.join().unwrap())
}

/// Watches the memory that a process has of its own: its program's file, which is many times larger in a build for tests,
/// does not count.
pub(crate) fn watch_memory(child: &Child) -> std::thread::JoinHandle<u64> {
    let status = format!("/proc/{}/status", child.id());
    std::thread::spawn(move || {
        let mut peak = 0;
        while let Some(kilobytes) = own_peak_in(&status) {
            peak = peak.max(kilobytes * 1024);
            std::thread::park_timeout(Duration::from_millis(2));
        }
        peak
    })
}

/// The most memory that a process had so far, without the pages of files that it has now.
fn own_peak_in(status: &str) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let kilobytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    Some(kilobytes("VmHWM:")?.saturating_sub(kilobytes("RssFile:")?))
}

fn opening(block: &Value) -> Vec<String> {
    let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
    let mut events = sse::answer(&[], "end_turn");
    events.truncate(1);
    events.push(sse::event(&start));
    events
}

fn delta(kind: &str, field: &str) -> String {
    let delta = json!({"type": kind, field: "x".repeat(64 * 1024)});
    sse::event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}

#[test]
fn a_gigabyte_from_a_provider_ends_as_an_error_in_bounded_memory() {
    let text = json!({"type": "text", "text": ""});
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let call = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
    let floods = [
        ("text", opening(&text), delta("text_delta", "text")),
        ("thinking", opening(&thinking), delta("thinking_delta", "thinking")),
        ("input", opening(&call), delta("input_json_delta", "partial_json")),
        ("line", vec!["data: ".into()], "x".repeat(64 * 1024)),
    ];
    for (name, opening, piece) in floods {
        for partial in [false, true] {
            let reply = Reply::events(opening.clone()).flood(piece.clone(), PIECES);
            let program = Program::answering([reply]);
            let mut flags =
                vec!["-p", "go", "--output-format", "stream-json", "--verbose", "--max-turns", "2"];
            flags.extend(partial.then_some("--include-partial-messages"));
            let (ended, memory) = run_measured(&mut program.command(flags));
            assert_eq!(ended.code, Some(1), "{name}: {}", ended.stderr);
            let result = ended.events().pop().unwrap();
            assert_eq!((&result["type"], &result["is_error"]), (&json!("result"), &json!(true)));
            assert_ne!(result["terminal_reason"], "completed", "{name}");
            let said = result.to_string();
            assert!(said.contains("more than an answer can be"), "{name}: {said}");
            assert!(said.len() < 200_000, "{name}: a result of {} bytes", said.len());
            assert!(memory < MOST_MEMORY, "{name}: {memory} bytes");
            assert!(program.server().sent() < 64 << 20, "{name}: {}", program.server().sent());
            assert_eq!(program.server().requests().len(), 1, "{name}: not sent again");
        }
    }
}

/// A host's flags.
const STREAMS: [&str; 5] =
    ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

fn user(text: &str) -> String {
    json!({"type": "user", "message": {"role": "user", "content": text}}).to_string()
}

#[test]
fn garbage_on_the_input_is_named_by_its_line_and_ends_in_a_failing_code() {
    let message = |role: &str| json!({"type": "user", "message": {"role": role, "content": "x"}});
    let garbage: [&[u8]; 16] = [
        b"not json",
        b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"cut o",
        b"\"text\"",
        b"[]",
        b"null",
        b"{}",
        b"{\"type\":7}",
        b"{\"type\":\"user\"}",
        b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"\xff\xfe\"}}",
        b"\x00\x01\x02",
        b"{\"type\":\"control_request\"}",
        b"{\"type\":\"control_response\"}",
        b"{\"type\":\"control_response\",\"response\":5}",
        b"{\"type\":\"control_response\",\"response\":[1,2]}",
        b"{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\"}}",
        b"{\"type\":\"control_cancel_request\"}",
    ];
    let assistant = message("assistant").to_string();
    for bad in garbage.iter().copied().chain([assistant.as_bytes()]) {
        // In the middle, where work continues, and at the end without a line end.
        for is_last in [false, true] {
            let program = Program::answering([Reply::text("one"), Reply::text("two")]);
            let mut child = program.command(STREAMS).stdin(Stdio::piped()).spawn().unwrap();
            let mut lines = user("first").into_bytes();
            lines.extend_from_slice(b"\n\n");
            lines.extend_from_slice(bad);
            if !is_last {
                lines.extend_from_slice(format!("\n{}\n", user("second")).as_bytes());
            }
            child.stdin.take().unwrap().write_all(&lines).unwrap();
            let ended = ended(child.wait_with_output().unwrap());
            let shown = String::from_utf8_lossy(bad);
            assert_eq!(ended.code, Some(1), "{shown}: {}", ended.stderr);
            assert!(
                ended.stderr.contains("error: line 3 of the input"),
                "{shown}: {}",
                ended.stderr
            );
            assert!(ended.stdout.contains("\"result\":\"one\""), "{shown}: the rest is done");
        }
    }
}

#[test]
fn blank_lines_and_lines_of_newer_hosts_are_no_garbage() {
    let program = Program::answering([Reply::text("one")]);
    let input = format!("\n  \r\n{{\"type\":\"from_the_future\",\"x\":1}}\n{}", user("first"));
    let ended = program.run_with_input(&STREAMS, &input);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("warning") && ended.stderr.contains("from_the_future"));
}

#[test]
fn a_line_of_input_without_end_costs_bounded_memory_and_a_failing_code() {
    let program = Program::answering([Reply::text("one")]);
    let mut child = program.command(STREAMS).stdin(Stdio::piped()).spawn().unwrap();
    let watch = watch_memory(&child);
    let mut stdin = child.stdin.take().unwrap();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..400 {
        stdin.write_all(&piece).unwrap();
    }
    stdin.write_all(format!("\n{}\n", user("first")).as_bytes()).unwrap();
    drop(stdin);
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("line 1 of the input"), "{}", ended.stderr);
    assert!(ended.stdout.contains("\"result\":\"one\""), "what follows is read");
    let memory = watch.join().unwrap();
    assert!(memory < 220 << 20, "{memory} bytes");
}

#[test]
fn a_line_of_input_with_too_many_values_costs_bounded_memory_and_a_failing_code() {
    let program = Program::answering([Reply::text("one")]);
    let mut child = program.command(STREAMS).stdin(Stdio::piped()).spawn().unwrap();
    let watch = watch_memory(&child);
    let mut stdin = child.stdin.take().unwrap();
    let wide = format!("[{}{{}}]", "{},".repeat(8 << 20));
    let request = format!("{{\"subtype\":\"initialize\",\"hooks\":{wide}}}");
    let line =
        format!("{{\"type\":\"control_request\",\"request_id\":\"r\",\"request\":{request}}}");
    stdin.write_all(format!("{line}\n{}\n", user("first")).as_bytes()).unwrap();
    drop(stdin);
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("it has more than 200000 values"), "{}", ended.stderr);
    assert!(ended.stdout.contains("\"result\":\"one\""), "what follows is read");
    let memory = watch.join().unwrap();
    assert!(memory < 220 << 20, "{memory} bytes");
}

#[test]
fn a_reader_that_goes_away_ends_the_run_with_a_failing_code() {
    for format in ["text", "json", "stream-json"] {
        let program = Program::answering([
            call(
                "toolu_1",
                "Bash",
                json!({"command": "touch ready; until [ -e go ]; do sleep 0.01; done"}),
            ),
            call("toolu_2", "Bash", json!({"command": "touch wrong"})),
            Reply::text("done"),
        ]);
        let mut flags = vec!["-p", "go", "--allowedTools", "Bash", "--output-format", format];
        flags.extend((format == "stream-json").then_some("--verbose"));
        let mut child = program.command(flags).spawn().unwrap();
        let ready = program.scratch.project().join("ready");
        eventually("the command runs", || ready.exists().then_some(()));
        drop(child.stdout.take());
        program.scratch.write("go", "");
        let ended = ended(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(1), "{format}: {}", ended.stderr);
        assert!(ended.stderr.contains("standard output was closed"), "{format}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{format}: {}", ended.stderr);
        let transcript = std::fs::read_to_string(program.transcripts().pop().unwrap()).unwrap();
        assert!(transcript.ends_with('\n'), "{format}: the transcript is whole");
        for line in transcript.lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok(), "{format}: {line}");
        }
    }
}

#[test]
fn an_output_that_takes_nothing_gives_a_failing_code() {
    for (format, verbose) in
        [("text", false), ("json", false), ("json", true), ("stream-json", true)]
    {
        let program = Program::answering([Reply::text("done")]);
        let mut flags = vec!["-p", "go", "--output-format", format];
        flags.extend(verbose.then_some("--verbose"));
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = program.command(flags).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{format}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"), "{format}");
    }
}

#[test]
fn commands_whose_output_is_lost_fail_like_runs() {
    let program = Program::answering([]);
    for words in [
        &["--help"][..],
        &["--version"],
        &["doctor"],
        &["doctor", "--help"],
        &["agents", "list"],
        &["agents", "check"],
        &["trust"],
        &["sessions", "list"],
        &["mcp", "list"],
        &["plugin", "list"],
        &["permissions", "explain", "Bash(ls)"],
    ] {
        let whole = program.command(words).output().unwrap();
        assert!(whole.status.success() && !whole.stdout.is_empty(), "{words:?}");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let lost = program.command(words).stdout(full).output().unwrap();
        let closed = closing_output(&program.command(words)).output().unwrap();
        for run in [lost, closed] {
            assert_eq!(run.status.code(), Some(1), "{words:?}");
            let stderr = String::from_utf8_lossy(&run.stderr);
            assert!(stderr.contains("standard output"), "{words:?}: {stderr}");
        }
    }
}

#[test]
fn a_closed_output_gives_a_failing_code_and_no_request_is_made() {
    for format in ["text", "json", "stream-json"] {
        let program = Program::answering([Reply::text("done")]);
        let run = program.command(["-p", "go", "--verbose", "--output-format", format]);
        let run = closing_output(&run).output().unwrap();
        assert_eq!(run.status.code(), Some(1), "{format}");
        assert!(String::from_utf8_lossy(&run.stderr).contains("standard output"), "{format}");
        assert!(program.transcripts().is_empty(), "{format}");
    }
    let program = Program::answering([Reply::text("done")]);
    let nowhere = program.command(["-p", "go"]).stdout(Stdio::null()).status().unwrap();
    assert_eq!(nowhere.code(), Some(0), "an output that is thrown away is one");
}

/// The same command, started by a shell that closes standard output.
fn closing_output(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec \"$@\" >&-", "sh"]).arg(command.get_program()).args(command.get_args());
    shell.stdin(Stdio::null()).env_clear();
    for (name, value) in command.get_envs() {
        shell.envs(value.map(|value| (name, value)));
    }
    if let Some(directory) = command.get_current_dir() {
        shell.current_dir(directory);
    }
    shell
}

#[test]
fn a_host_that_does_not_read_costs_bounded_memory_and_a_signal_still_ends_the_program() {
    // Every answer describes an agent of the host at length: more than memory may have, and more than is kept on disk.
    const MOST_KEPT: usize = 32;
    let initialize = |agents: &Value| {
        let request = json!({"subtype": "initialize", "agents": agents});
        // As long as a pipe, so that each is taken before the next can be sent.
        let pad = " ".repeat(1 << 16);
        let line = json!({"type": "control_request", "request_id": "r", "request": request});
        format!("{line}{pad}\n")
    };
    let first = initialize(&json!({"a": {"description": "x".repeat(4 << 20), "prompt": "work"}}));
    let line = initialize(&json!(null));
    for (name, code, requests) in [("-TERM", 143, 60), ("-INT", 130, 10)] {
        let program = Program::answering([Reply::text("done")]);
        let mut child = program.command(STREAMS).stdin(Stdio::piped()).spawn().unwrap();
        let memory = watch_memory(&child);
        let sent = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(first.as_bytes()).unwrap();
            let (line, sent) = (&line, &sent);
            scope.spawn(move || {
                while sent.load(Ordering::Relaxed) < requests
                    && stdin.write_all(line.as_bytes()).is_ok()
                {
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            });
            let taken = requests.min(MOST_KEPT);
            let has_taken = || (sent.load(Ordering::Relaxed) >= taken).then_some(());
            eventually("the program goes on", has_taken);
            // A program that did not wait now would take the rest.
            std::thread::sleep(Duration::from_secs(2));
            signal(&child, name);
            // Nothing is read until the program has ended by itself.
            let status = child.wait().unwrap();
            assert_eq!(status.code(), Some(code), "{name}");
        });
        let memory = memory.join().unwrap();
        assert!(memory < MOST_MEMORY, "{name}: {memory} bytes");
        let sent = sent.into_inner();
        assert!(sent < MOST_KEPT + 10, "{name}: {sent} requests although nothing is read");
    }
}

/// The same command where files can grow only to this many blocks: writing more fails as on a full disk.
fn with_full_disk(command: &Command, blocks: u32) -> Command {
    let mut limited = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    limited.args(["-c", &script]).arg(command.get_program()).args(command.get_args()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(command.get_current_dir().unwrap());
    limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    limited
}

#[test]
fn a_disk_that_takes_no_record_ends_the_run_as_a_failure() {
    // The first record does not fit, or one in the middle does not.
    for blocks in [1, 6] {
        let long = "y".repeat(20_000);
        let program = Program::answering([
            call("toolu_1", "Bash", json!({"command": "touch ran", "description": long})),
            Reply::text("done"),
        ]);
        let flags = ["-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json"];
        let command = program.command(flags.iter().chain(&["--verbose"]));
        let ended = ended(with_full_disk(&command, blocks).output().unwrap());
        assert_eq!(ended.code, Some(1), "{blocks}: {}", ended.stderr);
        assert_eq!(ended.result()["outcome"], "journal_failed", "{blocks}: {}", ended.stdout);
        assert_eq!(ended.result()["is_error"], true);
        assert!(!ended.stdout.contains("\"subtype\":\"success\""), "{}", ended.stdout);
        let ran = program.scratch.project().join("ran").exists();
        assert!(!ran, "{blocks}: no call runs that is not recorded");
    }
}
