//! Readers of standard output that do not read for a while, or never.

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use centurion_testkit::{Reply, sse};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bounds::{run_measured, watch_memory};
use crate::program::{Program, call, ended, eventually, signal};

const STREAM: [&str; 5] = ["-p", "go", "--output-format", "stream-json", "--verbose"];

/// Far more than a pipe holds.
fn long_text() -> String {
    "x".repeat(1 << 20)
}

#[test]
fn agents_continue_while_their_host_does_not_read() {
    let long = long_text();
    let shell = sse::tool_use("toolu_1", "Bash", json!({"command": "touch ran"}));
    let program =
        Program::answering([Reply::blocks([sse::text(&long), shell]), Reply::text("done")]);
    let child = program.command(STREAM.iter().chain(&["--allowedTools", "Bash"])).spawn().unwrap();
    let ran = program.scratch.project().join("ran");
    eventually("the command ran", || ran.exists().then_some(()));
    program.server().wait_for(2);
    // Only now is something read: all of it, in order.
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let events = ended.events();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        ["system", "system", "assistant", "assistant", "user", "system", "assistant", "result"]
    );
    assert_eq!(events[2]["message"]["content"][0]["text"], *long);
}

/// An answer in this many pieces.
fn in_pieces(count: usize) -> Reply {
    const AT_ONCE: usize = 1000;
    let mut parts = sse::answer(&[json!({"type": "text", "text": ""})], "end_turn");
    let piece = json!({"type": "text_delta", "text": "piece "});
    let delta = sse::event(&json!({"type": "content_block_delta", "index": 0, "delta": piece}));
    let stop = parts.iter().position(|part| part.contains("content_block_stop")).unwrap();
    parts.splice(stop..stop, std::iter::repeat_n(delta.repeat(AT_ONCE), count / AT_ONCE));
    Reply::events(parts)
}

#[test]
fn a_host_that_does_not_read_gets_all_partial_messages_later_and_they_take_no_memory() {
    const PIECES: usize = 40_000;
    const MORE: u64 = 4 << 20;
    let program = Program::answering([in_pieces(PIECES), in_pieces(PIECES)]);
    let flags = || STREAM.iter().chain(&["--include-partial-messages"]);
    let (_, usual) = run_measured(&mut program.command(flags()));
    let child = program.command(flags()).spawn().unwrap();
    let memory = watch_memory(&child);
    let is_recorded = |path: &PathBuf| path.metadata().is_ok_and(|file| file.len() > 100_000);
    eventually("the answer came", || {
        (program.transcripts().iter().filter(|path| is_recorded(path)).count() == 2).then_some(())
    });
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout.matches("\"text\":\"piece \"").count(), PIECES);
    assert!(ended.stdout.len() as u64 > 2 * MORE);
    let memory = memory.join().unwrap();
    assert!(memory < usual + MORE, "{memory} bytes, {usual} with a host that reads");
}

#[test]
fn verbose_json_is_written_while_the_run_continues() {
    let wait = json!({"command": "until [ -e go ]; do sleep 0.01; done"});
    let program = Program::answering([call("toolu_1", "Bash", wait), Reply::text("done")]);
    let flags = ["-p", "go", "--output-format", "json", "--verbose", "--allowedTools", "Bash"];
    let mut child = program.command(flags).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let read = Arc::new(Mutex::new(Vec::new()));
    let reader = std::thread::spawn({
        let read = Arc::clone(&read);
        move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut piece) {
                read.lock().extend_from_slice(&piece[..count]);
            }
        }
    });
    let has_call = || String::from_utf8_lossy(&read.lock()).contains("\"toolu_1\"").then_some(());
    eventually("the call is shown", has_call);
    program.scratch.write("go", "");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    reader.join().unwrap();
    let events: Vec<Value> = serde_json::from_slice(&read.lock()).unwrap();
    let kind = |event: &Value| match event["type"].as_str().unwrap() {
        "system" => format!("{}{}", event["subtype"], event["status"]).replace('"', ""),
        kind => kind.to_owned(),
    };
    let kinds: Vec<String> = events.iter().map(kind).collect();
    let turn = ["statusrequesting", "assistant"];
    assert_eq!(kinds, [&["initnull"], &turn[..], &["user"], &turn, &["result"]].concat());
}

#[test]
fn verbose_json_is_whole_however_the_run_ends() {
    let program =
        Program::answering([call("toolu_1", "Bash", json!({"command": "touch ready; sleep 600"}))]);
    let flags = ["-p", "go", "--output-format", "json", "--verbose"];
    let child = program.command(flags.iter().chain(&["--allowedTools", "Bash"])).spawn().unwrap();
    let ready = program.scratch.project().join("ready");
    eventually("the command runs", || ready.exists().then_some(()));
    signal(&child, "-TERM");
    let stopped = ended(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, Some(143));
    let events: Vec<Value> = serde_json::from_str(&stopped.stdout).unwrap();
    assert_eq!(events.last().unwrap()["type"], "result");
    // A session that cannot be opened has no events.
    let refused =
        program.run(&[&flags[..], &["--resume", "11111111-1111-4111-8111-111111111111"]].concat());
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), "[]\n"), "{}", refused.stderr);
}

#[test]
fn a_signal_ends_a_program_whose_answer_is_not_read() {
    for format in ["text", "json"] {
        let program = Program::answering([Reply::text(&long_text())]);
        let mut child = program.command(["-p", "go", "--output-format", format]).spawn().unwrap();
        let main = || std::fs::read_to_string(program.transcripts().first()?).ok();
        eventually("the run is over", || main()?.contains("\"outcome\"").then_some(()));
        signal(&child, "-TERM");
        // Nothing is read until the program has ended by itself.
        assert_eq!(child.wait().unwrap().code(), Some(143), "{format}");
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert!(told.contains("its reader does not read"), "{format}: {told}");
    }
}

#[test]
fn a_signal_ends_a_program_whose_two_outputs_are_one_pipe_that_is_not_read() {
    let program = Program::answering([Reply::text(&long_text())]);
    let (_reader, writer) = std::io::pipe().unwrap();
    let mut command = program.command(["-p", "go"]);
    let mut child = command.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
    // It holds the writing end, too.
    drop(command);
    let main = || std::fs::read_to_string(program.transcripts().first()?).ok();
    eventually("the run is over", || main()?.contains("\"outcome\"").then_some(()));
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}
