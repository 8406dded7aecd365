//! Processes and signals: nothing that we started outlives us, and an end is always a clean one.

use std::path::Path;
use std::process::Stdio;

use centurion_testkit::{Fault, Reply};
use serde_json::json;

use crate::program::{Program, call, ended, eventually, signal};
use crate::real_servers::results;

/// Processes whose command line holds this text.
pub(crate) fn processes(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(text))
        .collect()
}

fn exists(path: &Path) -> Option<()> {
    path.exists().then_some(())
}

#[test]
fn sigkill_leaves_no_process_behind() {
    // I-13
    let program = Program::answering([call(
        "toolu_1",
        "Bash",
        json!({"command": "sleep 98761 & setsid sleep 98762 & (setsid sh -c 'sleep 98763 & sleep 98764' &) ; touch ready; sleep 98765"}),
    )]);
    let ready = program.scratch.project().join("ready");
    let mut child = program.command(["-p", "go", "--allowedTools", "Bash"]).spawn().unwrap();
    eventually("the command started", || exists(&ready));
    eventually("all are running", || (processes("sleep 9876").len() >= 5).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("every process ended", || processes("sleep 9876").is_empty().then_some(()));
}

/// Helpers for keys once outlived the program.
#[test]
fn what_a_helper_for_keys_started_ends_with_the_program() {
    // I-13
    for ends in ["-KILL", "-TERM"] {
        let program = Program::answering([Reply::text("ok")]);
        let helper = "sleep 98781 & setsid sleep 98782 & touch asked; sleep 98783; echo key";
        let settings = json!({"apiKeyHelper": helper});
        program.scratch.write_home(".claude/settings.json", settings.to_string());
        let mut command = program.command(["-p", "go"]);
        let mut child = command.env_remove("ANTHROPIC_API_KEY").spawn().unwrap();
        let asked = program.scratch.project().join("asked");
        eventually("the helper started", || exists(&asked));
        eventually("all are running", || (processes("sleep 9878").len() >= 4).then_some(()));
        signal(&child, ends);
        child.wait().unwrap();
        eventually("every process ended", || processes("sleep 9878").is_empty().then_some(()));
    }
}

#[test]
fn the_end_of_a_run_ends_what_its_commands_left_running() {
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "setsid sleep 98771 & echo started"})),
        Reply::text("done"),
    ]);
    let ended = program.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert_eq!(ended.code, Some(0));
    eventually("the left-over ended", || processes("sleep 98771").is_empty().then_some(()));
}

#[test]
fn an_interrupt_ends_the_run_with_what_there_is() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let program = Program::answering([call(
            "toolu_1",
            "Bash",
            json!({"command": "echo begun; touch ready; sleep 98781"}),
        )]);
        let ready = program.scratch.project().join("ready");
        let child = program
            .command([
                "-p",
                "go",
                "--allowedTools",
                "Bash",
                "--output-format",
                "stream-json",
                "--verbose",
            ])
            .spawn()
            .unwrap();
        eventually("the command started", || exists(&ready));
        signal(&child, name);
        let ended = ended(child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(code), "{name}");
        assert_eq!(ended.result()["outcome"], "cancelled");
        let events = ended.events();
        let result = events.iter().find(|event| event["type"] == "user").unwrap();
        assert!(result.to_string().contains("begun"), "what the command said is kept: {result}");
        assert!(processes("sleep 98781").is_empty());
        // The transcript is complete: the session can continue at once.
        let id = ended.result()["session_id"].as_str().unwrap().to_owned();
        let next = Program { scratch: program.scratch, ..Program::answering([Reply::text("on")]) };
        assert_eq!(next.run(&["-p", "go on", "--resume", &id]).stdout, "on\n");
    }
}

#[test]
fn an_interrupt_while_the_model_is_silent_ends_at_once() {
    let program = Program::answering([Reply::text("x").fault(Fault::BlackHole)]);
    let child = program.command(["-p", "go", "--output-format", "json"]).spawn().unwrap();
    program.server().wait_for(1);
    signal(&child, "-INT");
    let ended = ended(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130));
    let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["outcome"], "cancelled");
}

#[test]
fn the_directory_is_kept_and_background_shells_report_once() {
    // S-208, S-210, S-214
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "mkdir -p deep && cd deep"})),
        call("toolu_2", "Bash", json!({"command": "pwd"})),
        call(
            "toolu_3",
            "Bash",
            json!({"command": "echo from the background", "run_in_background": true, "description": "say it"}),
        ),
        Reply::text("waiting"),
        Reply::text("it is done"),
    ]);
    let ended = program.run_with_bash();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let requests = program.server().requests();
    assert!(requests[2].json()["messages"].to_string().contains("/project/deep"));
    let last = requests.last().unwrap().json()["messages"].to_string();
    assert_eq!(last.matches("<task-notification>").count(), 1, "{last}");
    assert!(last.contains("completed (exit code 0)"));
    assert_eq!(ended.result()["result"], "it is done");
}

#[test]
fn a_run_with_nothing_on_its_open_pipe_continues_without_it() {
    let program = Program::answering([Reply::text("ok")]);
    let mut child = program.command(["-p", "hi"]).stdin(Stdio::piped()).spawn().unwrap();
    let held_open = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(held_open);
    let ended = ended(output);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "ok\n"));
    assert!(ended.stderr.contains("nothing came on standard input"));
}

/// Started under a limit on the size of files, the program fails with a word and a code, not by a signal.
#[test]
fn a_limit_on_the_size_of_files_gives_an_outcome() {
    for limit in ["0", "1"] {
        let program = Program::answering([Reply::text(&"long ".repeat(2_000))]);
        let plain = program.command(["-p", "go"]);
        let mut limited = std::process::Command::new("bash");
        limited
            .args(["-c", &format!("ulimit -f {limit}; exec \"$0\" \"$@\"")])
            .arg(plain.get_program())
            .args(plain.get_args())
            .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .current_dir(plain.get_current_dir().unwrap_or(program.scratch.project().as_ref()))
            .stdin(Stdio::null());
        let output = limited.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code().is_some_and(|code| code != 0),
            "{limit}: {:?} {said}",
            output.status
        );
        assert!(!said.trim().is_empty(), "{limit}");
    }
}

/// A command that exceeds such a limit is said to have done so, whichever of its processes it is.
#[test]
fn a_command_that_writes_too_large_a_file_is_told_so() {
    let write = "ulimit -f 1; exec head -c 100000 /dev/zero > big";
    let program = Program::answering([
        // The shell of the command is itself the one that is ended: there is no shell left to say so.
        call("toolu_1", "Bash", json!({"command": write})),
        // A child of it is: the shell says so.
        call("toolu_2", "Bash", json!({"command": format!("bash -c '{write}'; echo after $?")})),
        Reply::text("done"),
    ]);
    let results = results(&program.run_with_bash());
    let told = "(SIGXFSZ): it wrote a file that is larger than its limit allows";
    assert!(results[0].contains(told), "{}", results[0]);
    assert!(results[1].contains("File size limit exceeded"), "{}", results[1]);
    assert!(results[1].contains("after 153"), "{}", results[1]);
}

/// Processes that stand in this directory, and are no process of a test.
fn standing_in(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_git = |process: &std::path::PathBuf| {
        std::fs::read(process.join("cmdline")).is_ok_and(|line| {
            line.starts_with(b"git")
                || line.split(|byte| *byte == 0).any(|word| word == b"--no-optional-locks")
        })
    };
    let stands = |process: &std::path::PathBuf| {
        std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == directory)
    };
    entries.filter(|process| stands(process) && is_git(process)).collect()
}

/// A repository of a stranger in which git waits for ever: a session starts all the same, and git ends with it.
#[test]
fn our_own_git_that_hangs_holds_up_no_session_and_outlives_none() {
    for is_killed in [false, true] {
        let program = Program::answering([Reply::text("done")]);
        let project = program.scratch.project().canonicalize().unwrap();
        let git = std::process::Command::new("git").args(["init", "-q"]).arg(&project).status();
        assert!(git.unwrap().success());
        let index = project.join(".git/index");
        assert!(std::process::Command::new("mkfifo").arg(index).status().unwrap().success());
        let mut child = program.command(["-p", "go"]).spawn().unwrap();
        eventually("git looks", || (!standing_in(&project).is_empty()).then_some(()));
        if is_killed {
            child.kill().unwrap();
            child.wait().unwrap();
        } else {
            let ended = ended(child.wait_with_output().unwrap());
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"));
        }
        eventually("git ends", || standing_in(&project).is_empty().then_some(()));
    }
}
