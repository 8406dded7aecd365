//! Agents in bad weather, with the real program: commands that print without end or leave daemons behind, and
//! a program that is killed at every single write of any transcript.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::crash::build_shim;
use crate::processes::processes;
use crate::program::{ended, eventually};
use crate::stage::{Stage, Told, agent, bash};

const ID: &str = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f13";
/// The most bytes that a command may write here.
const CAP: u64 = 1 << 20;
const CAP_VARIABLE: &str = "CENTURION_MAX_COMMAND_OUTPUT_BYTES";

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The largest file that the program has written.
fn largest(stage: &Stage) -> u64 {
    let sizes = files(&stage.program.scratch.home()).into_iter().map(|path| path.metadata());
    sizes.filter_map(|metadata| Some(metadata.ok()?.len())).max().unwrap_or(0)
}

#[test]
fn a_command_of_an_agent_that_prints_without_end_is_ended_and_the_agent_continues() {
    // scenario 30
    let stage = Stage::new(&json!({
        "lead": [[agent("@@loud", &json!({}))], "done"],
        "loud": [[bash("yes sk-98901")], "it was too much"],
    }));
    let mut command = stage.command("@@lead", &["--allowedTools", "Bash"]);
    let told = Told::new(ended(command.env(CAP_VARIABLE, CAP.to_string()).output().unwrap()));
    told.assert_code(0);
    assert_eq!(told.data()[0]["status"], "completed", "{:?}", told.data());
    assert!(
        told.ended.stdout.contains("Ended because it wrote too much."),
        "{}",
        told.ended.stdout
    );
    assert!(largest(&stage) <= CAP, "{}", largest(&stage));
    assert!(processes("yes sk-98901").is_empty());
}

#[test]
fn daemons_of_agents_at_any_depth_do_not_outlive_a_program_that_is_killed() {
    // scenario 30, I-13
    let daemon = |mark: &str| {
        bash(&format!(
            "(setsid sh -c 'sleep {mark}1 & exec setsid sleep {mark}2' >/dev/null 2>&1 &); \
             touch ready-{mark}; while :; do echo {mark}; sleep 0.01; done"
        ))
    };
    let stage = Stage::new(&json!({
        "lead": [[agent("@@behind", &json!({"run_in_background": true})), agent("@@before", &json!({}))], "never"],
        "behind": [[daemon("9891")], "never"],
        "before": [[agent("@@below", &json!({}))], "never"],
        "below": [[daemon("9892")], "never"],
    }));
    let mut command = stage.command("@@lead", &["--allowedTools", "Bash"]);
    let mut child = command.env(CAP_VARIABLE, CAP.to_string()).spawn().unwrap();
    let project = stage.program.scratch.project();
    for mark in ["9891", "9892"] {
        let ready = project.join(format!("ready-{mark}"));
        eventually("the agents are at work", || ready.exists().then_some(()));
        let daemons = || processes(&format!("sleep {mark}")).len() >= 2;
        eventually("the daemons run", || daemons().then_some(()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for mark in ["9891", "9892"] {
        eventually("nothing is left", || processes(mark).is_empty().then_some(()));
    }
    assert!(largest(&stage) <= CAP, "{}", largest(&stage));
}

/// Every whole line of every transcript, by file.
fn records(stage: &Stage) -> BTreeMap<PathBuf, Vec<Value>> {
    let is_transcript = |path: &PathBuf| path.extension().is_some_and(|it| it == "jsonl");
    let paths = files(&stage.program.scratch.home()).into_iter().filter(is_transcript);
    let lines = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    paths.map(|path| (path.clone(), lines(&path))).collect()
}

/// Each time that an agent was set to work has one end, and one other transcript tells of it once.
fn assert_told_once(stage: &Stage, when: &str) {
    let records = records(stage);
    for (path, lines) in
        records.iter().filter(|(path, _)| path.to_string_lossy().contains("agent-"))
    {
        let name = path.display();
        let of = |kinds: &[&str]| -> Vec<&Value> {
            lines.iter().filter(|line| kinds.iter().any(|kind| line["subtype"] == **kind)).collect()
        };
        let ends = of(&["agent_end"]);
        assert_eq!(of(&["agent_spawn", "agent_resume"]).len(), ends.len(), "{when}: {name}");
        for end in ends {
            let id = end["data"]["end"]["notification"].as_str().unwrap();
            let others = records.iter().filter(|(other, _)| *other != path);
            let tells = |line: &&Value| line.to_string().contains(id);
            let told = others.flat_map(|(_, lines)| lines).filter(tells).count();
            assert_eq!(told, 1, "{when}: {name} {end}");
        }
    }
}

#[test]
fn killed_at_every_write_of_any_transcript_each_agent_ends_and_is_told_of_once() {
    // I-3, S-221, scenario 18
    let scripts = json!({
        "lead": [
            [agent("@@behind", &json!({"run_in_background": true, "name": "bob"})), agent("@@before", &json!({}))],
            [{"tool": "SendMessage", "input": {"to": "bob", "message": "@@more"}}],
            "waiting", "heard", "heard",
        ],
        "behind": ["behind done"],
        "before": [[agent("@@below", &json!({}))], "before done"],
        "below": ["below done"],
        "more": ["more done"],
        "look": ["seen", "seen", "seen"],
    });
    let library = tempfile::tempdir().unwrap();
    let shim = build_shim(library.path());
    let mut was_killed = 0;
    for how in ["torn", "after"] {
        for write in 1.. {
            let stage = Stage::new(&scripts);
            let mut command = stage.command("@@lead", &["--session-id", ID]);
            command.env("LD_PRELOAD", &shim).env("KILL_AT_WRITE", write.to_string());
            let run = command.env("KILL_HOW", how).output().unwrap();
            if run.status.code() == Some(0) {
                break;
            }
            was_killed += 1;
            let when = format!("{how} write {write}");
            let resumed = stage.run("@@look", &["--resume", ID]);
            // Before the first whole record there is no session to resume.
            if write > 2 {
                resumed.assert_code(0);
            }
            assert_told_once(&stage, &when);
            stage.run("@@look", &["--resume", ID]);
            assert_told_once(&stage, &format!("{when}, later"));
        }
    }
    assert!(was_killed > 40, "{was_killed}");
}

#[test]
fn a_command_that_says_nothing_for_long_is_no_stall() {
    // theme 8: a command has a time limit of its own
    let stage = Stage::new(&json!({
        "lead": [[agent("@@patient", &json!({}))], "done"],
        "patient": [[bash("sleep 1")], "waited for it"],
    }));
    let mut command = stage.command("@@lead", &["--allowedTools", "Bash"]);
    let run = command.env("CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS", "300").output().unwrap();
    let told = Told::new(ended(run));
    told.assert_code(0);
    assert_eq!(told.data()[0]["status"], "completed", "{:?}", told.data());
}
