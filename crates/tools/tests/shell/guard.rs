//! When Centurion dies, no process that it started outlives it (I-13).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use centurion_testkit::{Lack, skip};
use serde_json::json;

use crate::support::{Session, eventually, processes_with, sleepers_with, start_and_kill};

/// The variable that names the file by which the parent of the test below reports that its commands run.
const READY: &str = "CENTURION_TEST_PARENT_READY";
const MARK: &str = "CENTURION_TEST_MARK";

/// The other half of the test below: the process that it starts and kills. Skipped on its own.
#[tokio::test]
async fn parent() {
    let Ok(ready) = std::env::var(READY) else { return skip(Lack::OtherHalf) };
    let mark = std::env::var(MARK).unwrap();
    let session = Session::with(&[(MARK, &mark)], 1 << 30);
    session.bash("setsid sleep 600 & (sh -c 'trap \"\" TERM HUP; sleep 600' &)").await;
    session.start("sleep 600 | sleep 600").await;
    session.call("Bash", json!({ "command": format!("echo > {ready}; sleep 600") })).await.unwrap();
}

#[tokio::test]
async fn a_killed_parent_leaves_no_process() {
    start_and_kill("guard::parent", [READY, MARK], 5).await;
}

#[tokio::test]
async fn a_dropped_session_leaves_no_process() {
    let session = Session::new();
    session.bash("sleep 600 & setsid sleep 600 &").await;
    session.start("sleep 600").await;
    let mark = session.mark.clone();
    eventually("all three sleep", || sleepers_with(&mark) == 3).await;
    drop(session);
    eventually("every process is gone", || processes_with(&mark).is_empty()).await;
}

#[tokio::test]
async fn a_killed_guard_takes_its_shell_along() {
    let session = Session::new();
    let message = session.bash_fails("kill -9 $PPID; sleep 600").await;
    assert!(message.contains("its guard was killed"), "{message}");
    session.nothing_is_left().await;
}

#[tokio::test]
async fn the_guard_does_not_answer_to_the_programs_name() {
    let session = Session::new();
    assert_eq!(session.bash("cat /proc/$PPID/comm").await, "command-guard");
}

#[test]
fn a_second_watcher_whose_program_died_at_once_ends_no_child_of_another_process() {
    // A program that is killed while its watcher starts leaves the watcher to another parent, such as init. All children
    // of that one with sessions of their own were killed.
    let mut gone = Command::new("true").spawn().unwrap();
    let mark = format!("{}-1", gone.id());
    gone.wait().unwrap();
    let script =
        "setsid sleep 600 </dev/null & echo $!; sleep 600 </dev/null & echo $!; \"$0\" \"$@\"";
    let mut parent = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_centurion-guard")])
        .args([centurion_tools::guard::ARGUMENT, "second", &mark])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = parent.stdin.take().unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines();
    let (bystander, guard) = (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap());
    let kill = |pid: &str| Command::new("kill").args(["-KILL", pid]).status().unwrap().success();
    let (never, ended) = std::sync::mpsc::channel::<()>();
    let pass = |time: u64| assert!(ended.recv_timeout(Duration::from_millis(time)).is_err());
    // Leftovers of a guard are searched for when the guard has ended.
    writeln!(told, "+{guard}").unwrap();
    pass(300);
    assert!(kill(&guard));
    pass(1_000);
    drop((told, never));
    assert!(parent.wait().unwrap().success());
    assert!(kill(&bystander), "it lived");
}
