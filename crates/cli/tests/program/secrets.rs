//! No file that the program writes holds a credential of a known shape, whatever brought it there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_testkit::secrets::{Secret, secrets};
use centurion_testkit::{Reply, sse};
use parking_lot::Mutex;
use serde_json::json;

use crate::components::forger;
use crate::host::Host;
use crate::program::{Program, call, ended};

/// Every file below a directory, with what it holds.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => files(&path),
            path => std::fs::read(&path).map(|bytes| (path, bytes)).into_iter().collect(),
        })
        .collect()
}

fn holds(bytes: &[u8], secret: &Secret) -> bool {
    let piece = &secret.piece.as_bytes()[..secret.piece.len().min(16)];
    bytes.windows(piece.len()).any(|window| window == piece)
}

fn assert_clean(kind: &str, bytes: &[u8], secrets: &[Secret]) {
    let held: Vec<&str> =
        secrets.iter().filter(|secret| holds(bytes, secret)).map(|secret| secret.kind).collect();
    assert!(held.is_empty(), "{kind} holds {held:?}");
}

/// Everything of every kind, a line each.
fn all(secrets: &[Secret]) -> String {
    let lines: Vec<&str> = secrets.iter().map(|secret| secret.text.as_str()).collect();
    lines.join("\n") + "\n"
}

#[test]
fn no_file_of_a_session_holds_a_secret() {
    let secrets = secrets();
    let text = all(&secrets);
    let agent = json!({"description": "Look", "prompt": text, "subagent_type": "general-purpose"});
    let many =
        "cat keys; for n in $(seq 3000); do echo a line of output that is long enough $n; done";
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "keys"})),
        call("toolu_2", "Bash", json!({"command": "cat keys"})),
        call("toolu_3", "Bash", json!({"command": many})),
        call("toolu_4", "Bash", json!({"command": "cat keys", "run_in_background": true})),
        call("toolu_5", "Grep", json!({"pattern": ".", "path": "keys", "output_mode": "content"})),
        call("toolu_6", "Agent", agent),
        // The agent's report, and the words of the main agent.
        Reply::blocks([sse::text(&text)]),
        Reply::blocks([sse::text(&text)]),
        Reply::text("done"),
    ]);
    program.scratch.write("keys", &text);
    let allowed = ["-p", &text, "--allowedTools", "Bash,Read,Grep,Agent", "--debug"];
    let ended = program.run(&allowed);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // The model reads what is there: only files lose it.
    let requests = program.server().requests();
    let last = requests.last().unwrap().json().to_string();
    assert!(holds(last.as_bytes(), &secrets[0]), "the model no longer sees what it reads");

    let written = files(&program.scratch.home());
    let has = |part: &str| written.iter().any(|(path, _)| path.to_string_lossy().contains(part));
    for part in [".jsonl", "/subagents/", ".output", ".meta.json"] {
        assert!(
            has(part),
            "no file is called {part}: {:?}",
            written.iter().map(|(path, _)| path).collect::<Vec<_>>()
        );
    }
    for (path, bytes) in &written {
        assert_clean(&path.display().to_string(), bytes, &secrets);
    }
    assert_clean("the log", ended.stderr.as_bytes(), &secrets);
}

#[test]
fn a_result_that_is_too_long_leaves_no_secret_in_its_file() {
    let secrets = secrets();
    let filler = "a line that says nothing at all, and is there to fill the file\n".repeat(4_000);
    let calls = [
        ("Bash", json!({"command": "cat long"})),
        ("Read", json!({"file_path": "long", "allow_large": true})),
        ("mcp__forger__say", json!({"how": "text"})),
        ("mcp__forger__say", json!({"how": "error"})),
        ("mcp__forger__say", json!({"how": "data"})),
    ];
    for (tool, input) in calls {
        // In files of the session, or in those of a run that keeps none.
        for is_kept in [true, false] {
            let what = format!("{tool} {input}, kept: {is_kept}");
            let temporary = tempfile::tempdir().unwrap();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let (there, kept, input) =
                (temporary.path().to_owned(), Arc::clone(&seen), input.clone());
            let program = Program::with_handler(move |request| {
                if !request.json()["messages"].to_string().contains("tool_result") {
                    return call("toolu_1", tool, input.clone());
                }
                // The files that are there while the run continues.
                kept.lock().extend(files(&there));
                Reply::text("done")
            });
            let long = format!("{filler}{}{filler}", all(&secrets));
            let long = program.scratch.write("long", long);
            let servers = json!({"mcpServers": {"forger": forger(&long)}}).to_string();
            let mut flags =
                vec!["-p", "go", "--allowedTools", "Bash,mcp__forger", "--mcp-config", &servers];
            flags.extend((!is_kept).then_some("--no-session-persistence"));
            let mut command = program.command(flags);
            let ended = ended(command.env("TMPDIR", temporary.path()).output().unwrap());
            assert_eq!(ended.code, Some(0), "{what}: {}", ended.stderr);
            let mut written = files(&program.scratch.home());
            written.append(&mut seen.lock());
            let is_whole = written.iter().any(|(_, bytes)| bytes.len() > filler.len());
            assert!(is_whole, "{what}: the whole is in a file");
            for (path, bytes) in &written {
                assert_clean(&format!("{what}: {}", path.display()), bytes, &secrets);
            }
        }
    }
}

#[test]
fn a_hook_that_says_too_much_leaves_no_secret_in_its_file() {
    let secrets = secrets();
    let filler = "a line that says nothing at all, and is there to fill the file\n".repeat(400);
    let program = Program::answering([Reply::text("done")]);
    program.scratch.write("long", format!("{filler}{}{filler}", all(&secrets)));
    let handler = json!({"type": "command", "command": "cat long"});
    let settings = json!({"hooks": {"UserPromptSubmit": [{"hooks": [handler]}]}}).to_string();
    let ended = program.run(&["-p", "go", "--settings", &settings]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let written = files(&program.scratch.home());
    let kept = |path: &Path| path.to_string_lossy().contains("/tool-results/hook-");
    assert!(written.iter().any(|(path, bytes)| kept(path) && bytes.len() > filler.len()));
    for (path, bytes) in &written {
        assert_clean(&path.display().to_string(), bytes, &secrets);
    }
}

#[test]
fn a_cassette_holds_no_secret_and_is_replayed_all_the_same() {
    let secrets = secrets();
    let text = all(&secrets);
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "keys"})),
        Reply::blocks([sse::text(&text)]),
    ]);
    program.scratch.write("keys", &text);
    let record = program.run(&["-p", &text, "--model", "cassette:tape=claude-sonnet-4-5"]);
    assert_eq!(record.code, Some(0), "{}", record.stderr);
    let tape = std::fs::read(program.scratch.project().join("tape")).unwrap();
    assert_clean("the cassette", &tape, &secrets);
    let again = program.run(&["-p", &text, "--model", "cassette:tape"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    assert!(again.stdout.contains("[redacted: "), "{}", again.stdout);
}

#[test]
fn a_schedule_outlives_its_session_without_the_secrets_of_its_prompt() {
    let secrets = secrets();
    let wish =
        json!({"cron": "0 0 1 1 *", "prompt": all(&secrets), "recurring": false, "durable": true});
    let program =
        Program::answering([call("toolu_1", "CronCreate", wish), Reply::text("scheduled")]);
    let mut host = Host::start(&program, &["--assistant", "--allowedTools", "CronCreate"]);
    host.say("go");
    assert_eq!(host.result()["result"], "scheduled");
    host.finish();
    let last = program.server().requests().last().unwrap().json().to_string();
    assert!(last.contains("Scheduled as"), "nothing was scheduled");
    let written = files(&program.scratch.home());
    assert!(written.iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("0 0 1 1 *")));
    for (path, bytes) in &written {
        assert_clean(&path.display().to_string(), bytes, &secrets);
    }
}

#[test]
fn what_is_accepted_of_a_folder_is_kept_without_its_secrets_and_shown_with_them() {
    let secrets = secrets();
    let program = Program::answering([]);
    let hook = json!({"type": "command", "command": format!("sh run.sh '{}'", all(&secrets))});
    let hooks = json!({"hooks": {"Stop": [{"hooks": [hook]}]}}).to_string();
    program.scratch.write(".claude/settings.json", hooks);
    program.scratch.write("run.sh", all(&secrets));
    // To a person nothing is hidden: what looks like a password may be a command.
    let shown = program.run(&["trust"]).stdout;
    assert!(secrets.iter().all(|secret| holds(shown.as_bytes(), secret)), "{shown}");
    assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
    let written = files(&program.scratch.home());
    assert!(written.iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("run.sh")));
    for (path, bytes) in &written {
        assert_clean(&path.display().to_string(), bytes, &secrets);
    }
}
