//! Real processes that are killed at each write of a compaction, of a fork's start and of a rewind: the next process has
//! the whole of it or what was before, and nothing in between.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_testkit::{Recorded, Reply, sse};
use serde_json::{Value, json};

use crate::crash::{assert_valid, build_shim};
use crate::forks::taken_apart;
use crate::killed_at_steps::{KILLED, Killer, Victims};
use crate::program::{Ended, Program, ended};

const ID: &str = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f14";

/// The words that only a request for a summary has.
const QUESTION: &str = "about to leave its window";

/// Kills a program before, in the middle of and behind each of its writes to transcripts.
struct Writes {
    build: tempfile::TempDir,
    shim: PathBuf,
}

impl Writes {
    fn new() -> Self {
        let build = tempfile::tempdir().unwrap();
        let shim = build_shim(build.path());
        Self { build, shim }
    }

    /// Kills the commands that `start` makes at each write from the first one with a text on, as many as there are and at
    /// most so many; `check` looks at what each leaves. How many were killed.
    fn kill_each(
        &self,
        from: &str,
        most: usize,
        start: impl Fn() -> Command,
        check: impl Fn(&str),
    ) -> usize {
        assert!(self.build.path().exists());
        let mut kills = 0;
        for write in 1..=most {
            let before = kills;
            for how in ["before", "torn", "after"] {
                let mut command = start();
                command.env("LD_PRELOAD", &self.shim).env("KILL_FROM", from);
                command.env("KILL_AT_WRITE", write.to_string()).env("KILL_HOW", how);
                let end = ended(command.output().unwrap());
                kills += usize::from(end.code.is_none());
                if end.code.is_some() {
                    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
                }
                check(&format!("killed {how} write {write}"));
            }
            if kills == before {
                break;
            }
        }
        kills
    }
}

/// A model that reads a file eight times for a prompt, and summarises when it is asked to.
fn reader() -> Program {
    let reads = AtomicUsize::new(0);
    let program = Program::with_handler(move |request: &Recorded| {
        let body = request.json();
        let messages = body["messages"].as_array().unwrap();
        assert_valid(messages);
        let last = messages.last().unwrap().to_string();
        let block = if last.contains(QUESTION) {
            sse::text("<summary>SUMMARY-WORDS</summary>")
        } else if last.contains("NEXT-WORDS") {
            reads.store(0, Ordering::Relaxed);
            sse::text("went on")
        } else {
            let read = reads.fetch_add(1, Ordering::Relaxed);
            let id = format!("toolu_{read}");
            match read {
                8.. => sse::text("All read."),
                _ => sse::tool_use(&id, "Read", json!({"file_path": "long.txt"})),
            }
        };
        let size = u64::try_from(request.body.len() / 4).unwrap();
        let blocks = [block];
        let usage = sse::usage(size, 0, 0, 5);
        Reply::events(sse::answer_with(&blocks, sse::natural_stop(&blocks), &usage))
    });
    program.scratch.write("long.txt", "0123456789abcde\n".repeat(500));
    program
}

/// Continues a session; what its first request says.
fn continue_with(program: &Program, prompt: &str, when: &str) -> String {
    let before = program.server().requests().len();
    let resumed = program.run(&["-p", prompt, "--resume", ID]);
    assert_eq!(resumed.code, Some(0), "{when}: {}{}", resumed.stdout, resumed.stderr);
    assert!(resumed.stdout.contains("went on"), "{when}: {}", resumed.stdout);
    program.server().requests()[before].json()["messages"].to_string()
}

/// Whether a transcript has a whole record of a summary.
fn is_compacted(transcript: &Path) -> bool {
    let text = std::fs::read(transcript).unwrap();
    let lines = text.split(|byte| *byte == b'\n');
    let mut records = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    records.any(|record| record["isCompactSummary"] == true)
}

/// Checks that a session has all of a compaction or nothing of it; whether it has it.
fn check_compaction(program: &Program, transcript: &Path, when: &str) -> bool {
    let has_it = is_compacted(transcript);
    let record = std::fs::read(transcript).unwrap();
    let sent = continue_with(program, "NEXT-WORDS", when);
    assert_eq!(sent.contains("SUMMARY-WORDS"), has_it, "{when}: {sent}");
    assert_eq!(sent.matches("PROMPT-WORDS").count(), 1, "{when}: {sent}");
    assert!(std::fs::read(transcript).unwrap().starts_with(&record), "{when}: nothing is deleted");
    has_it
}

#[test]
fn killed_at_every_write_of_a_compaction_a_session_has_all_of_it_or_nothing() {
    // I-15, D-52
    let writes = Writes::new();
    // In the middle of a run, from the note on on that the summary was paid.
    let seen = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let count = |has_it: bool| seen[usize::from(has_it)].fetch_add(1, Ordering::Relaxed);
    let program = reader();
    let transcripts = || program.transcripts().pop().unwrap();
    let start = || {
        for old in program.transcripts() {
            std::fs::remove_file(old).unwrap();
        }
        let flags = ["-p", "read it PROMPT-WORDS", "--session-id", ID];
        let mut command = program.command(flags);
        command.env("CENTURION_CONTEXT_WINDOW", "30000");
        command
    };
    let kills = writes.kill_each("\"purpose\":\"compact\"", 6, start, |when| {
        count(check_compaction(&program, &transcripts(), when));
    });
    assert_eq!(kills, 18, "the run goes on behind the compaction");
    assert!(seen.iter().all(|it| it.load(Ordering::Relaxed) > 3), "{seen:?}");

    // One that a person asked for, from its first write on.
    let program = reader();
    let first = program.run(&["-p", "read it PROMPT-WORDS", "--session-id", ID]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let transcript = program.transcripts().pop().unwrap();
    let record = std::fs::read(&transcript).unwrap();
    let start = || {
        std::fs::write(&transcript, &record).unwrap();
        program.command(["-p", "/compact", "--resume", ID])
    };
    let seen = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let kills = writes.kill_each("", 40, start, |when| {
        assert!(std::fs::read(&transcript).unwrap().starts_with(&record), "{when}");
        let has_it = check_compaction(&program, &transcript, when);
        seen[usize::from(has_it)].fetch_add(1, Ordering::Relaxed);
        // It can be asked for again.
        let again = program.run(&["-p", "/compact", "--resume", ID]);
        assert_eq!(again.code, Some(0), "{when}: {}{}", again.stdout, again.stderr);
    });
    assert!(kills >= 6, "{kills}");
    assert!(seen.iter().all(|it| it.load(Ordering::Relaxed) > 1), "{seen:?}");
}

/// A model whose main agent forks itself, and wakes the fork in the next process.
fn forker(request: &Recorded) -> Reply {
    let body = request.json();
    let messages = body["messages"].as_array().unwrap();
    assert_valid(messages);
    let said = body["messages"].to_string();
    if request.header("x-claude-code-agent-id").is_some() {
        return Reply::text("Scope: done");
    }
    if !said.contains("tool_result") && !said.contains("GO-ON") {
        let input = json!({"description": "a branch", "prompt": "look at one"});
        return Reply::blocks([sse::tool_use("toolu_1", "Agent", input)]);
    }
    if !said.contains("GO-ON") {
        return Reply::text("meanwhile");
    }
    let told = said.split("<task-id>").nth(1).map(|rest| rest[..17].to_owned());
    match told {
        Some(id) if !said.contains("MORE-WORK") => {
            let input = json!({"to": id, "message": "MORE-WORK", "summary": "more"});
            Reply::blocks([sse::tool_use("toolu_2", "SendMessage", input)])
        }
        _ => Reply::text("went on"),
    }
}

/// The record of the fork, if its start is in it.
fn started(transcript: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(transcript.with_extension("").join("subagents")).ok()?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let path = paths.find(|path| path.extension().is_some_and(|it| it == "jsonl"))?;
    let text = std::fs::read(&path).unwrap();
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    serde_json::from_slice::<Value>(first).is_ok().then_some(path)
}

/// Checks that the fork was woken, and that its request begins with what its parent had sent.
fn check_woken(requests: &[Recorded], before: usize, when: &str) {
    let is_of_fork = |it: &&Recorded| it.header("x-claude-code-agent-id").is_some();
    let woken = requests[before..].iter().find(is_of_fork);
    let woken = woken.unwrap_or_else(|| panic!("{when}: it was not woken")).json();
    let (rest, messages) = taken_apart(&woken);
    let (parent, sent) = taken_apart(&requests[0].json());
    assert_eq!(rest, parent, "{when}");
    assert!(messages.starts_with(&sent), "{when}: {woken}");
    let said = woken["messages"].to_string();
    assert_eq!(said.matches("FORK_DIRECTIVE: look at one").count(), 1, "{when}: {said}");
    assert!(said.contains("<fork-boilerplate>") && said.contains("MORE-WORK"), "{when}: {said}");
}

#[test]
fn killed_at_every_write_of_a_forks_start_it_is_told_of_once_and_continues_from_the_same_bytes() {
    // I-3, I-11
    let writes = Writes::new();
    let mut program = Program::with_handler(forker);
    let transcript = |program: &Program| program.transcripts().pop();
    let seen = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let shared = std::cell::RefCell::new(&mut program);
    let start = || {
        **shared.borrow_mut() = Program::with_handler(forker);
        let program = shared.borrow();
        let mut command = program.command(["-p", "begin", "--session-id", ID]);
        command.env("CLAUDE_CODE_FORK_SUBAGENT", "1");
        command
    };
    let kills = writes.kill_each("\"name\":\"Agent\"", 60, start, |when| {
        let program = shared.borrow();
        let path = transcript(&program).and_then(|it| started(&it));
        let before = program.server().requests().len();
        let mut command = program.command(["-p", "GO-ON", "--resume", ID]);
        command.env("CLAUDE_CODE_FORK_SUBAGENT", "1");
        let resumed = ended(command.output().unwrap());
        assert_eq!(resumed.code, Some(0), "{when}: {}{}", resumed.stdout, resumed.stderr);
        let requests = program.server().requests();
        let of_main = |it: &&Recorded| it.header("x-claude-code-agent-id").is_none();
        let next = requests[before..].iter().find(of_main).unwrap().json()["messages"].to_string();
        let told = next.matches("<task-notification>").count();
        assert_eq!(told, usize::from(path.is_some()), "{when}: {next}");
        seen[usize::from(path.is_some())].fetch_add(1, Ordering::Relaxed);
        if path.is_some() {
            check_woken(&requests, before, when);
        }
    });
    assert!(kills > 20, "{kills}");
    assert!(seen.iter().all(|it| it.load(Ordering::Relaxed) > 1), "{seen:?}");
}

/// A file with what it was and what it has become.
type ChangedFile = (PathBuf, Option<Vec<u8>>, Option<Vec<u8>>);

/// A session that has changed files of all kinds, some of which others have changed since; the files with what they
/// were and what they have become.
struct Changed {
    program: Program,
    copy: tempfile::TempDir,
    files: Vec<ChangedFile>,
}

const THEIRS: &str = "THEIRS\n";

impl Changed {
    fn new() -> Self {
        let write = |id: &str, file: &str, text: &str| {
            sse::tool_use(id, "Write", json!({"file_path": file, "content": text}))
        };
        let read = |id: &str, file: &str| sse::tool_use(id, "Read", json!({"file_path": file}));
        let program = Program::answering([
            Reply::blocks([read("t0", "a.txt"), read("t1", "b.txt"), read("t2", "run.sh")]),
            Reply::blocks([
                write("t3", "a.txt", "first\n"),
                write("t4", "b.txt", "first\n"),
                write("t5", "run.sh", "#!/bin/false\n"),
                write("t6", "new/made.txt", "made\n"),
            ]),
            Reply::text("first is done"),
            Reply::blocks([write("t7", "a.txt", "second\n")]),
            Reply::text("second is done"),
        ]);
        let names = ["a.txt", "b.txt", "run.sh", "new/made.txt"];
        for name in &names[..3] {
            let text = if *name == "run.sh" { "#!/bin/sh\n" } else { "original\n" };
            program.scratch.write(name, text);
        }
        let paths = names.map(|name| program.scratch.project().join(name));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o750);
        std::fs::set_permissions(&paths[2], mode).unwrap();
        let content = |path: &PathBuf| std::fs::read(path).ok();
        let before = paths.each_ref().map(content);
        for (prompt, more) in
            [("FIRST-PROMPT", ["--session-id", ID]), ("SECOND-PROMPT", ["--resume", ID])]
        {
            let mut command = program.command(["-p", prompt, "--permission-mode", "acceptEdits"]);
            command.args(more).env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
            let end = ended(command.output().unwrap());
            assert_eq!(end.code, Some(0), "{}", end.stderr);
        }
        std::fs::write(&paths[1], THEIRS).unwrap();
        let after = paths.each_ref().map(content);
        let files = paths.into_iter().zip(before).zip(after);
        let files = files.map(|((path, before), after)| (path, before, after)).collect();
        let copy = tempfile::tempdir().unwrap();
        copy_all(program.scratch.root(), copy.path());
        Self { program, copy, files }
    }

    /// Everything as it was before the first rewind.
    fn restore(&self) {
        for entry in std::fs::read_dir(self.program.scratch.root()).unwrap() {
            let path = entry.unwrap().path();
            let is_directory = path.is_dir();
            let removed = if is_directory {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
            removed.unwrap();
        }
        copy_all(self.copy.path(), self.program.scratch.root());
    }

    fn prompts(&self) -> Vec<Value> {
        let listed = self.program.run(&["sessions", "rewind", ID, "--json"]);
        serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("{}", listed.stderr))
    }

    /// The words of a rewind to the first prompt.
    fn words(&self) -> Vec<String> {
        let first = self.prompts()[0]["id"].as_str().unwrap().to_owned();
        ["sessions", "rewind", ID, "--to", &first].map(str::to_owned).to_vec()
    }

    /// Checks that a rewind that succeeded has brought back everything, and named what others had made.
    fn check_done(&self, end: &Ended, when: &str) {
        assert_eq!(end.code, Some(0), "{when}: {}{}", end.stdout, end.stderr);
        for (path, before, _) in &self.files {
            assert_eq!(std::fs::read(path).ok(), *before, "{when}: {}", path.display());
        }
        let mode = std::fs::metadata(&self.files[2].0).unwrap().permissions();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o7777, 0o750, "{when}");
        let current = self.prompts().iter().filter(|it| it["isCurrent"] == true).count();
        assert_eq!(current, 0, "{when}: both prompts are taken back");
    }

    /// The copies that a rewind names, each with the file that it is of.
    fn set_aside(end: &Ended) -> Vec<(String, String)> {
        let named = end.stdout.lines().filter_map(|line| {
            let (file, copy) =
                line.strip_prefix("changed by others, set aside: ")?.split_once(" is in ")?;
            Some((file.to_owned(), std::fs::read_to_string(copy).unwrap()))
        });
        named.collect()
    }
}

fn copy_all(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn killed_before_every_step_of_a_rewind_the_next_one_finishes_it_and_nothing_of_others_is_lost() {
    // D-56
    let changed = Changed::new();
    let (killer, words) = (Killer::new(), changed.words());
    let command = || changed.program.command(&words);
    let root = changed.program.scratch.root();
    let whole = ended(killer.kill(&command(), Victims::All, root, 0).output().unwrap());
    changed.check_done(&whole, "not killed");
    let theirs = (changed.files[1].0.display().to_string(), THEIRS.to_owned());
    assert_eq!(Changed::set_aside(&whole), std::slice::from_ref(&theirs), "{}", whole.stdout);
    let steps = killer.steps();
    assert!(steps > 12, "{steps}");
    for step in 1..=steps {
        changed.restore();
        let when = format!("killed before step {step} of {steps}");
        let end = ended(killer.kill(&command(), Victims::All, root, step).output().unwrap());
        assert_eq!(end.code, Some(KILLED), "{when}: {}", end.stderr);
        for (path, before, after) in &changed.files {
            let now = std::fs::read(path).ok();
            assert!(now == *before || now == *after, "{when}: {} is half a file", path.display());
        }
        let again = changed.program.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        changed.check_done(&again, &when);
        // A change by others is named with a copy that has it. One by the session itself may be, too: it looks the same
        // where a change was recorded and not made.
        let aside = Changed::set_aside(&again);
        assert!(aside.contains(&theirs), "{when}: {}", again.stdout);
        for (path, _, after) in &changed.files {
            let own = path.display().to_string();
            let mut copies = aside.iter().filter(|(file, _)| *file == own);
            assert!(copies.all(|(_, it)| Some(it.as_bytes()) == after.as_deref()), "{when}");
        }
    }
}
