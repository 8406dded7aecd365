//! The process is killed at every journal write of a run with tools. Each time the session resumes into
//! a valid history, and no effect is lost or doubled in the record.
//!
//! A small library loaded before the program counts its writes to transcripts and kills it before, in the
//! middle of, or after one of them: the program itself knows nothing of it. `KILL_FROM` is a text: writes count from the
//! first one on that has it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use centurion_testkit::{Recorded, Reply, sse};
use serde_json::{Value, json};

use crate::program::{Program, ended};

const SHIM: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_transcript(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long n = readlink(link, path, sizeof path - 1);
    if (n < 6) return 0;
    path[n] = 0;
    return strcmp(path + n - 6, ".jsonl") == 0;
}

/* Whether writes are counted: from the first one on that has a text in it, if one is wanted. */
static int has_begun(const void *data, size_t size) {
    static int begun = 0;
    const char *from = getenv("KILL_FROM");
    if (!begun) begun = !from || memmem(data, size, from, strlen(from)) != NULL;
    return begun;
}

ssize_t write(int fd, const void *data, size_t size) {
    static int count = 0;
    const char *at = getenv("KILL_AT_WRITE"), *how = getenv("KILL_HOW");
    if (at && how && is_transcript(fd) && has_begun(data, size) && ++count == atoi(at)) {
        if (*how == 't') syscall(SYS_write, fd, data, size / 2);
        if (*how == 'a') syscall(SYS_write, fd, data, size);
        kill(getpid(), SIGKILL);
    }
    return syscall(SYS_write, fd, data, size);
}
"#;

const ID: &str = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";

pub(crate) fn build_shim(dir: &Path) -> PathBuf {
    let (source, library) = (dir.join("shim.c"), dir.join("shim.so"));
    std::fs::write(&source, SHIM).unwrap();
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(&source)
        .status()
        .unwrap();
    assert!(status.success(), "the C compiler builds the library");
    library
}

/// The model: three rounds of effects, then an answer; after a resume, only an answer.
fn model(request: &Recorded) -> Reply {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    assert_valid(messages);
    let append = |n: u32| json!({"command": format!("echo effect{n} >> log.txt")});
    let answers = messages.iter().filter(|message| message["role"] == "assistant").count();
    if body["messages"].to_string().contains("go on after the crash") {
        return Reply::text("went on");
    }
    match answers {
        0 => Reply::blocks([
            sse::thinking("how?", "c2ln"),
            sse::text("first"),
            sse::tool_use("toolu_1", "Bash", append(1)),
            sse::tool_use("toolu_2", "Write", json!({"file_path": "made.txt", "content": "x"})),
        ]),
        1 => Reply::blocks([
            sse::tool_use("toolu_3", "Read", json!({"file_path": "made.txt"})),
            sse::tool_use("toolu_4", "Glob", json!({"pattern": "*"})),
        ]),
        2 => Reply::blocks([sse::tool_use("toolu_5", "Bash", append(5))]),
        _ => Reply::text("all done"),
    }
}

/// Asserts what a provider demands of calls and results.
pub(crate) fn assert_valid(messages: &[Value]) {
    let mut open: Vec<Value> = Vec::new();
    assert_eq!(messages[0]["role"], "user");
    for message in messages {
        let blocks = message["content"].as_array().unwrap();
        let ids = |kind: &str, key: &str| -> Vec<Value> {
            blocks
                .iter()
                .filter(|block| block["type"] == kind)
                .map(|block| block[key].clone())
                .collect()
        };
        if message["role"] == "user" {
            assert_eq!(ids("tool_result", "tool_use_id"), open);
            open.clear();
        } else {
            assert!(open.is_empty());
            assert_ne!(blocks.last().unwrap()["type"], "thinking");
            open = ids("tool_use", "id");
        }
    }
    assert!(open.is_empty());
}

/// The recorded calls, each with the texts of its recorded results.
fn recorded_calls(transcript: &Path) -> HashMap<String, Vec<String>> {
    let mut calls: HashMap<String, Vec<String>> = HashMap::new();
    let mut results: Vec<(String, String)> = Vec::new();
    for line in std::fs::read_to_string(transcript).unwrap().lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_use" {
                calls.entry(block["id"].as_str().unwrap().to_owned()).or_default();
            }
            if block["type"] == "tool_result" {
                results.push((
                    block["tool_use_id"].as_str().unwrap().to_owned(),
                    block["content"].to_string(),
                ));
            }
        }
    }
    for (id, text) in results {
        calls.get_mut(&id).expect("a result has its call").push(text);
    }
    calls
}

#[test]
fn killed_at_every_journal_write_a_session_resumes_and_its_record_is_true() {
    let build = tempfile::tempdir().unwrap();
    let shim = build_shim(build.path());
    let mut kills = 0;
    for write in 1.. {
        let mut was_killed = false;
        for how in ["before", "torn", "after"] {
            let program = Program::with_handler(model);
            let arguments = ["-p", "work", "--session-id", ID, "--allowedTools", "Bash,Write"];
            let mut command = program.command(arguments);
            command
                .env("LD_PRELOAD", &shim)
                .env("KILL_AT_WRITE", write.to_string())
                .env("KILL_HOW", how);
            let first = ended(command.output().unwrap());
            was_killed |= first.code.is_none();
            kills += u32::from(first.code.is_none());
            check(&program, &format!("killed {how} write {write}"));
        }
        if !was_killed {
            break;
        }
    }
    assert!(kills > 30, "the run has many records: {kills}");
}

fn check(program: &Program, when: &str) {
    let Some(transcript) = program.transcripts().into_iter().next() else { return };
    let resumed = program.run(&["-p", "go on after the crash", "--resume", ID]);
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (Some(0), "went on\n"),
        "{when}: {}",
        resumed.stderr
    );
    let calls = recorded_calls(&transcript);
    let log =
        std::fs::read_to_string(program.scratch.project().join("log.txt")).unwrap_or_default();
    for (id, effect) in [("toolu_1", "effect1"), ("toolu_5", "effect5")] {
        let times = log.matches(effect).count();
        match calls.get(id).map(Vec::as_slice) {
            None => assert_eq!(times, 0, "no effect before its call is recorded: {when}"),
            Some([result]) if result.contains("before this call's result was recorded") => {
                assert!(times <= 1, "{when}");
            }
            Some([_]) => assert_eq!(times, 1, "a recorded result tells of one effect: {when}"),
            Some(results) => panic!("{id} has {} results: {when}", results.len()),
        }
    }
}
