//! The results of Bash calls.

use std::fs;
use std::time::{Duration, Instant};

use centurion_tools::ToolError;
use serde_json::json;

use crate::support::{Session, eventually, line_in, text};

#[tokio::test]
async fn output_and_errors_come_in_order() {
    let session = Session::new();
    let output = session.call("Bash", json!({ "command": "echo a; echo b >&2; echo c" })).await;
    let output = output.unwrap();
    assert_eq!(text(&output), "a\nb\nc");
    assert_eq!(output.data["stdout"], "a\nb\nc");
    assert_eq!((&output.data["stderr"], &output.data["exitCode"]), (&json!(""), &json!(0)));
    assert_eq!(session.bash("true").await, "(no output)");
    // Output that was told whole is not kept.
    assert_eq!(fs::read_dir(session.path("output/tasks")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_failure_carries_its_code_and_output() {
    let session = Session::new();
    assert_eq!(session.bash_fails("echo why; exit 3").await, "Exit code 3\nwhy");
    assert_eq!(session.bash_fails("kill -9 $$").await, "Ended by signal 9");
    let message = session.bash_fails("no-such-program-here").await;
    assert!(message.starts_with("Exit code 127\nbash: line 1: no-such-program-here"), "{message}");
    assert!(matches!(
        session.call("Bash", json!({ "command": "  " })).await,
        Err(ToolError::Input(_))
    ));
    let long = session.bash_fails("seq 1 100000; exit 1").await;
    assert!(long.len() < 11_000, "{}", long.len());
}

#[tokio::test]
async fn the_working_directory_is_kept() {
    let session = Session::new();
    session.bash("mkdir -p 'a b/c'; cd 'a b'").await;
    assert_eq!(session.bash("pwd").await, session.path("a b").to_str().unwrap());
    // Also when the command fails, and not when only a subshell moves.
    session.bash_fails("cd c; false").await;
    session.bash("(cd /)").await;
    assert_eq!(session.bash("pwd").await, session.path("a b/c").to_str().unwrap());
    assert_eq!(session.context.workspace.cwd(), session.path("a b/c"));
}

#[tokio::test]
async fn a_vanished_working_directory_is_said_and_left() {
    let session = Session::new();
    session.bash("mkdir gone; cd gone").await;
    fs::remove_dir(session.path("gone")).unwrap();
    let said = session.bash("pwd").await;
    let root = session.root.to_str().unwrap();
    assert_eq!(
        said,
        format!("The working directory {root}/gone no longer exists; this ran in {root}.\n{root}")
    );
    assert_eq!(session.bash("pwd").await, root);
    // A command that removes its own directory ends well too.
    session.bash("mkdir gone; cd gone; rmdir ../gone").await;
    assert_eq!(session.bash("pwd").await, root);
}

#[tokio::test]
async fn the_environment_says_who_runs_the_command() {
    let session = Session::with(&[("MINE", "kept"), ("PAGER", "less")], 1 << 20);
    let said = session
        .bash("echo $CLAUDECODE $CENTURION $MINE $PAGER $GIT_PAGER $CLAUDE_PROJECT_DIR")
        .await;
    assert_eq!(said, format!("1 1 kept less cat {}", session.root.display()));
}

#[tokio::test]
async fn no_user_can_be_asked() {
    let session = Session::new();
    // Standard input is at its end, and there is no terminal.
    assert_eq!(session.bash("cat; read line || echo end").await, "end");
    let message = session.bash_fails("exec 2>&1; echo password? > /dev/tty").await;
    assert!(message.contains("/dev/tty"), "{message}");
}

#[tokio::test]
async fn a_command_does_not_stand_in_its_own_command_line() {
    let session = Session::new();
    let said = session.bash("pkill -f unlikely-word-in-a-command || echo unhurt").await;
    assert_eq!(said, "unhurt");
}

#[tokio::test]
async fn terminal_noise_is_taken_out() {
    let session = Session::new();
    let command = r"printf '\033[31mred\033[0m\n10%%\r100%%\nnul:\0:\377\n'";
    assert_eq!(session.bash(command).await, "red\n100%\nnul::\u{fffd}");
}

#[tokio::test]
async fn long_output_is_bounded_and_whole_on_disk() {
    let session = Session::with(&[("BASH_MAX_OUTPUT_LENGTH", "1000")], 1 << 30);
    let output = session.call("Bash", json!({ "command": "seq 1 50000" })).await.unwrap();
    let said = text(&output);
    assert!(said.len() < 1_300, "{}", said.len());
    assert!(said.starts_with("1\n2\n") && said.ends_with("\n50000"), "{said}");
    let file = output.data["outputFile"].as_str().unwrap();
    assert!(said.contains(&format!("all of it is in {file}")), "{said}");
    assert_eq!(fs::read_to_string(file).unwrap().lines().count(), 50_000);
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn one_huge_line_is_bounded() {
    let session = Session::new();
    let said = session.bash("head -c 3000000 /dev/zero | tr '\\0' x").await;
    assert!(said.len() < 31_000 && said.contains("bytes left out"), "{}", said.len());
}

#[tokio::test]
async fn a_writer_without_end_is_stopped_by_the_cap() {
    let session = Session::with(&[], 1 << 20);
    let message = session.bash_fails("yes; echo never").await;
    assert!(message.starts_with("Ended because it wrote too much."), "{message}");
    session.nothing_is_left().await;
    let tasks = fs::read_dir(session.path("output/tasks")).unwrap().flatten();
    let sizes: Vec<_> = tasks.map(|entry| entry.metadata().unwrap().len()).collect();
    assert_eq!(sizes, [1 << 20]);
}

#[tokio::test]
async fn a_command_without_standard_output_ends_all_the_same() {
    let session = Session::new();
    assert_eq!(session.bash("exec >&- 2>&-; true").await, "(no output)");
    assert!(session.bash_fails("exec >&- 2>&-; exit 4").await.starts_with("Exit code 4"));
}

#[tokio::test]
async fn a_command_larger_than_an_argument_may_be_runs() {
    let session = Session::new();
    let command = format!(": '{}'; echo done", "x".repeat(300_000));
    assert_eq!(session.bash(&command).await, "done");
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let session = Session::new();
    let (detached, forked) = (session.path("detached"), session.path("forked"));
    // One that leaves the session, one whose parent is gone, one that ignores a polite end.
    let command = format!(
        "setsid sh -c 'echo $$ > {}; exec sleep 600' & \
         (sh -c 'trap \"\" TERM; echo $$ > {}; while :; do sleep 600; done' &) ; \
         echo started; sleep 600",
        detached.display(),
        forked.display()
    );
    let started = Instant::now();
    let input = json!({ "command": command, "timeout": 2_500 });
    let message = session.call("Bash", input).await.unwrap_err().to_string();
    assert!(message.starts_with("Timed out after 2500 ms"), "{message}");
    assert!(message.ends_with("started"), "{message}");
    assert!(started.elapsed() < Duration::from_secs(15));
    // Both existed, and the call returned only when they were gone.
    line_in(&detached).await;
    line_in(&forked).await;
    assert_eq!(session.processes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_cancelled_call_gives_what_there_was() {
    let session = Session::new();
    let running = session.path("running");
    // A shell that outlives its command by a moment says how that ended.
    let command = format!("echo partial; echo > {}; exec sleep 600", running.display());
    let call = session.call("Bash", json!({ "command": command }));
    let cancel = async {
        line_in(&running).await;
        session.context.cancel.cancel();
    };
    let (result, ()) = tokio::join!(call, cancel);
    match result {
        Err(ToolError::Cancelled { partial }) => assert_eq!(partial.as_deref(), Some("partial")),
        other => panic!("{other:?}"),
    }
    session.nothing_is_left().await;
}

#[tokio::test]
async fn a_call_cancelled_at_any_point_leaves_nothing() {
    // Before the guard exists, as soon as it does, and so on until all four processes do.
    for processes in 0..=4 {
        let session = Session::new();
        let call = session.call("Bash", json!({ "command": "sleep 600 & sleep 600" }));
        let cancel = async {
            eventually("the point", || session.processes().len() >= processes).await;
            session.context.cancel.cancel();
        };
        let (result, ()) = tokio::join!(call, cancel);
        assert!(matches!(result, Err(ToolError::Cancelled { .. })), "{result:?}");
        session.nothing_is_left().await;
    }
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing() {
    let session = Session::new();
    let running = session.path("running");
    let command = format!("echo > {}; sleep 600", running.display());
    tokio::select! {
        result = session.call("Bash", json!({ "command": command })) => panic!("{result:?}"),
        _ = line_in(&running) => {}
    }
    session.nothing_is_left().await;
}

#[tokio::test]
async fn what_a_command_leaves_behind_lives_until_the_session_ends() {
    let session = Session::new();
    let said = session.bash("sleep 600 & echo up").await;
    assert!(said.starts_with("Processes of this command still run"), "{said}");
    assert!(said.ends_with("up"), "{said}");
    let sleeps = || session.processes().iter().any(|line| line.starts_with("sleep 600"));
    eventually("the process runs", sleeps).await;
    session.bash("true").await;
    assert!(sleeps());
    session.shells().shutdown().await;
    // The guard of a command that has ended by itself reports it before it is gone.
    eventually("nothing is left", || session.processes().is_empty()).await;
    assert!(session.bash_fails("true").await.contains("the session is ending"));
}

#[tokio::test]
async fn a_planted_bare_repository_runs_nothing() {
    let session = Session::new();
    let plant = "git init -q --bare docs && cd docs && \
                 git --git-dir=. config core.bare false && git --git-dir=. config core.worktree . && \
                 git --git-dir=. config core.fsmonitor 'touch ../ran; false'";
    session.bash(plant).await;
    let refused = session.bash_fails("git status").await;
    assert!(refused.contains("safe.bareRepository"), "{refused}");
    assert!(!session.path("ran").exists());
    // The trap is real: without the setting it works.
    session.bash("GIT_CONFIG_COUNT=0 git status; true").await;
    assert!(session.path("ran").exists());
    // A repository that is named works as usual.
    session.bash("cd .. && git init -q --bare real && git -C . --git-dir=real log --all").await;
}

#[tokio::test]
async fn every_command_reads_the_environment_files_that_are_there() {
    let session = Session::new();
    assert_eq!(session.bash("echo \"[$FROM_A_HOOK]\"").await, "[]");
    fs::write(session.path("environment.sh"), "export FROM_A_HOOK=set\n").unwrap();
    assert_eq!(session.bash("echo \"[$FROM_A_HOOK]\"; echo $LINENO").await, "[set]\n1");
    let message = session.bash_fails("echo one\nno-such-program-here").await;
    assert!(message.contains("line 2: no-such-program-here"), "{message}");
}
