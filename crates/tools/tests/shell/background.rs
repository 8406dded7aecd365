//! Background shells: their end is told, and told once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Session, eventually, line_in, text};

/// A command that runs until the test lets it end.
fn held(session: &Session) -> (String, impl Fn() + use<>) {
    let gate = session.path("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
        .unwrap();
    let command = format!("echo working; read line < {}; echo done", gate.display());
    (command, move || drop(fs::write(&gate, "go\n")))
}

#[tokio::test]
async fn an_end_is_told_once() {
    // S-221, S-244, S-245
    let session = Session::new();
    let (command, release) = held(&session);
    let input = json!({ "command": command, "run_in_background": true, "description": "wait" });
    let output = session.call("Bash", input).await.unwrap();
    let id = output.data["backgroundTaskId"].as_str().unwrap();
    let file = output.data["outputFile"].as_str().unwrap();
    assert!(text(&output).contains(id) && text(&output).contains(file));
    assert!(file.ends_with(&format!("output/tasks/{id}.output")), "{file}");

    line_in(file.as_ref()).await;
    let output = session.call("TaskOutput", json!({ "task_id": id, "block": false })).await;
    let output = output.unwrap();
    assert_eq!(output.data["retrieval_status"], "not_ready");
    assert_eq!(output.data["task"]["status"], "running");
    assert_eq!(output.data["task"]["output"], "working");
    assert!(session.witness.ends().is_empty());

    release();
    eventually("the end is told", || !session.witness.ends().is_empty()).await;
    let output = session.call("TaskOutput", json!({ "task_id": id })).await.unwrap();
    assert_eq!(output.data["task"]["status"], "completed");
    assert!(text(&output).ends_with("working\ndone"), "{}", text(&output));
    let ends = session.witness.ends();
    assert_eq!(ends.len(), 1);
    let end = &ends[0];
    assert_eq!((end.task.as_str(), end.call.as_str()), (id, "toolu_1"));
    assert_eq!((end.description.as_str(), end.exit_code, end.stopped), ("wait", Some(0), false));
    assert_eq!(fs::read_to_string(&end.output_file).unwrap(), "working\ndone\n");
}

#[tokio::test]
async fn who_waited_for_the_end_is_the_only_one_told() {
    // S-246, S-247
    let session = Session::new();
    let (command, release) = held(&session);
    let id = session.start(&format!("{command}; exit 5")).await;
    let wait = session.call("TaskOutput", json!({ "task_id": id, "timeout": 20_000 }));
    let (output, ()) = tokio::join!(wait, async { release() });
    let output = output.unwrap();
    assert_eq!(output.data["retrieval_status"], "success");
    assert_eq!(output.data["task"]["exitCode"], 5);
    assert!(text(&output).contains("failed, exit code 5"), "{}", text(&output));
    session.shells().shutdown().await;
    assert_eq!(session.witness.ends(), []);
}

#[tokio::test]
async fn a_wait_that_ends_early_leaves_the_telling_to_the_host() {
    let session = Session::new();
    let (command, release) = held(&session);
    let id = session.start(&command).await;
    let output = session.call("TaskOutput", json!({ "task_id": id, "timeout": 1 })).await.unwrap();
    assert_eq!(output.data["retrieval_status"], "timeout");
    // A cancelled wait tells nothing either.
    let wait = session.call("TaskOutput", json!({ "task_id": id }));
    assert!(tokio::time::timeout(Duration::from_millis(1), wait).await.is_err());
    release();
    eventually("the end is told", || session.witness.ends().len() == 1).await;
}

#[tokio::test]
async fn a_stopped_shell_is_gone_and_not_told_again() {
    // S-249, S-251
    let session = Session::new();
    let id = session.start("sleep 600 & setsid sleep 600").await;
    let output = session.call("TaskStop", json!({ "shell_id": id })).await.unwrap();
    let said: Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!(said["task_id"], id.as_str());
    assert_eq!(said["task_type"], "local_bash");
    assert_eq!(said["command"], "sleep 600 & setsid sleep 600");
    assert_eq!(session.processes(), Vec::<String>::new());
    assert_eq!(session.witness.ends(), []);

    let again = session.call("TaskStop", json!({ "task_id": id })).await.unwrap_err();
    assert!(again.to_string().contains("is not running"), "{again}");
    let output = session.call("TaskOutput", json!({ "task_id": id })).await.unwrap();
    assert_eq!(output.data["task"]["status"], "killed");
}

#[tokio::test]
async fn an_unknown_task_is_answered_with_those_that_run() {
    // S-250
    let session = Session::new();
    let none = session.call("TaskStop", json!({ "task_id": "bnone" })).await.unwrap_err();
    assert!(none.to_string().contains("no background shell is running"), "{none}");
    assert!(session.call("TaskStop", json!({})).await.is_err());
    let id = session.start("sleep 600").await;
    for tool in ["TaskStop", "TaskOutput"] {
        let error = session.call(tool, json!({ "task_id": "bnone" })).await.unwrap_err();
        assert!(error.to_string().contains(&format!("{id} (sleep 600)")), "{error}");
    }
    session.shells().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn however_the_end_is_raced_for_it_is_told_once() {
    // S-221
    for round in 0..12 {
        let session = Session::new();
        let (command, release) = held(&session);
        let id = session.start(&command).await;
        let input = json!({ "task_id": id });
        let stop = async {
            // Every third round does not stop it; the others do at about the time of its end.
            if round % 3 == 0 { None } else { Some(session.call("TaskStop", input.clone()).await) }
        };
        let wait = async {
            if round % 2 == 0 {
                None
            } else {
                Some(session.call("TaskOutput", input.clone()).await)
            }
        };
        // Polled last: a waiting call has begun before the end, and so it tells the end. A call that begins after the
        // end repeats what the host was told.
        let mut ends = None;
        let end = async { ends = Some(tokio::task::spawn_blocking(release)) };
        let (stopped, waited, ()) = tokio::join!(stop, wait, end);
        let told_by_stop = stopped.is_some_and(|result| result.is_ok());
        let told_by_wait =
            waited.is_some_and(|result| result.unwrap().data["retrieval_status"] == "success");
        if !told_by_stop && !told_by_wait {
            eventually("the host is told", || session.witness.ends().len() == 1).await;
        }
        session.shells().shutdown().await;
        let told_by_host = session.witness.ends().len();
        assert!(told_by_host <= 1, "round {round}");
        assert_eq!(told_by_host == 0, told_by_stop || told_by_wait, "round {round}");
        session.nothing_is_left().await;
        // If the command was stopped before it read, no other process holds the other end of the pipe.
        let gate = fs::File::options().read(true).write(true).open(session.path("gate"));
        ends.unwrap().await.unwrap();
        drop(gate.unwrap());
    }
}

#[tokio::test]
async fn a_background_shell_has_a_timeout_only_when_asked_for() {
    let session = Session::with(&[("BASH_DEFAULT_TIMEOUT_MS", "1")], 1 << 20);
    let (command, release) = held(&session);
    let unlimited = session.start(&command).await;
    let input = json!({ "command": "sleep 600", "timeout": 50, "run_in_background": true });
    session.call("Bash", input).await.unwrap();
    eventually("the limited one ends", || session.witness.ends().len() == 1).await;
    assert_eq!(session.witness.ends()[0].exit_code, None);
    assert!(session.shells().running().iter().any(|shell| shell.id.as_str() == unlimited));
    release();
    eventually("the other one ends", || session.witness.ends().len() == 2).await;
}

#[tokio::test]
async fn a_session_that_ends_tells_nothing() {
    let session = Session::new();
    session.start("trap '' TERM; while :; do sleep 600; done").await;
    session.start("exec sleep 600").await;
    session.shells().shutdown().await;
    assert_eq!(session.processes(), Vec::<String>::new());
    assert_eq!(session.witness.ends(), []);
}

#[tokio::test]
async fn what_is_told_of_a_shell_is_one_short_line() {
    let session = Session::new();
    let description = format!("first\nsecond\x1b[31m {}", "long ".repeat(1_000));
    let input = json!({
        "command": "true", "run_in_background": true, "description": description,
    });
    session.call("Bash", input).await.unwrap();
    let command = format!("true\n# {}", "x".repeat(5_000));
    let id = session.start(&command).await;
    eventually("both ends are told", || session.witness.ends().len() == 2).await;
    for end in session.witness.ends() {
        let told = &end.description;
        assert!(told.chars().count() <= 200 && !told.contains(char::is_control), "{told:?}");
    }
    // The command itself stays as it was.
    let shell = session.shells().get(&id).unwrap();
    assert_eq!(shell.command, command);
    assert!(shell.description.starts_with("true # xxx"), "{}", shell.description);
}

#[tokio::test]
async fn the_files_of_a_running_command_are_private() {
    let session = Session::new();
    let (command, release) = held(&session);
    let id = session.start(&format!("umask 000; {command}")).await;
    let tasks = session.path("output/tasks");
    line_in(&tasks.join(format!("{id}.output"))).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&session.path("output")), mode(&tasks)), (0o700, 0o700));
    let files: Vec<_> = fs::read_dir(&tasks).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    release();
    eventually("the end is told", || session.witness.ends().len() == 1).await;
    assert_eq!(fs::read_dir(&tasks).unwrap().count(), 1);
}
