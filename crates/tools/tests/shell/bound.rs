//! Programs without a guard between: git, as we run it for ourselves.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use centurion_protocol::{SystemWorld, World as _};
use centurion_testkit::{Lack, skip};
use centurion_tools::guard::{CommandLimits, GuardProgram};
use centurion_tools::{Bound, PipedProcess, PipedProgram};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::{eventually, processes_with, sleepers_with, start_and_kill};

const MARK: &str = "CENTURION_TEST_BOUND";
const READY: &str = "CENTURION_TEST_BOUND_READY";

fn guard() -> GuardProgram {
    GuardProgram::new(env!("CARGO_BIN_EXE_centurion-guard"))
}

fn start(guard: &GuardProgram, mark: &str, script: &str) -> Bound {
    let path = std::env::var("PATH").unwrap();
    let environment = [("PATH".to_owned(), path), (MARK.to_owned(), mark.to_owned())];
    let program = PipedProgram {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        environment: BTreeMap::from(environment),
        cwd: Path::new("/").to_owned(),
    };
    Bound::start(guard, &program).unwrap()
}

fn new_mark() -> String {
    SystemWorld.uuid().to_string()
}

async fn said(bound: &mut Bound) -> String {
    let mut said = String::new();
    bound.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
    said
}

/// The other half of the test below: the process that it starts and kills. Skipped on its own.
#[tokio::test]
async fn starter() {
    let Ok(ready) = std::env::var(READY) else { return skip(Lack::OtherHalf) };
    let mark = std::env::var(MARK).unwrap();
    let script = format!(
        "setsid sleep 600 </dev/null >/dev/null 2>&1 & (trap '' TERM HUP; sleep 600) & sleep 600 & echo > {ready}; sleep 600"
    );
    start(&guard(), &mark, &script).wait().await.unwrap();
}

#[tokio::test]
async fn nothing_outlives_a_killed_starter() {
    start_and_kill("bound::starter", [READY, MARK], 4).await;
}

#[tokio::test]
async fn what_it_leaves_is_ended_and_what_is_dropped_too() {
    let mark = new_mark();
    let left = "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo it; exit 3";
    let mut bound = start(&guard(), &mark, left);
    assert_eq!(said(&mut bound).await, "it\n");
    assert_eq!(bound.wait().await.unwrap(), Some(3));
    eventually("what it left is gone", || processes_with(&mark).is_empty()).await;
    let bound = start(&guard(), &mark, "setsid sleep 600 & sleep 600 & sleep 600");
    eventually("they sleep", || sleepers_with(&mark) == 3).await;
    drop(bound);
    eventually("all is gone", || processes_with(&mark).is_empty()).await;
}

#[tokio::test]
async fn it_is_one_process_in_a_session_without_a_terminal() {
    let session =
        "read -r _ _ _ parent _ session tty _ </proc/$$/stat; echo $parent $((session - $$)) $tty";
    let mut bound = start(&guard(), &new_mark(), session);
    assert_eq!(said(&mut bound).await, format!("{} 0 0\n", std::process::id()));
    assert_eq!(bound.wait().await.unwrap(), Some(0));
}

/// Traces processes, and holds them, until it is killed.
const TRACE: &str = r#"$call = $ENV{PTRACE} + 0; for (@ARGV) { syscall($call, 0x4206, $_ + 0, 0, 0) == 0 or exit 1; syscall($call, 0x4207, $_ + 0, 0, 0) == 0 or exit 1 } $| = 1; print "traced\n"; sleep 600"#;

#[tokio::test]
async fn one_that_another_process_traces_continues_where_a_guard_is_ended() {
    // I-13: the kernel ends it with this process, traced or not.
    let call = if cfg!(target_arch = "x86_64") { "101" } else { "117" };
    let guard = guard();
    let mut bound =
        start(&guard, &new_mark(), "echo $$; read -r line; echo \"it read $line\"; exit 7");
    let mut lines = BufReader::new(bound.stdout.take().unwrap()).lines();
    let pid = lines.next_line().await.unwrap().unwrap();
    let program = PipedProgram {
        program: "sh".into(),
        // The guard is two processes, of which we started the upper one.
        args: vec![
            "-c".into(),
            "read -r _ _ _ above _ < /proc/$PPID/stat; echo $above; exec sleep 600".into(),
        ],
        environment: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        cwd: Path::new("/").to_owned(),
    };
    let mut guarded = PipedProcess::start(&guard, &program).unwrap();
    let above = BufReader::new(guarded.stdout.take().unwrap()).lines().next_line().await;
    let above = above.unwrap().unwrap();
    let mut tracer = tokio::process::Command::new("perl");
    tracer.args(["-e", TRACE, &pid, &above]).env("PTRACE", call).stdout(Stdio::piped());
    let mut tracer = tracer.kill_on_drop(true).spawn().unwrap();
    let said = BufReader::new(tracer.stdout.take().unwrap()).lines().next_line().await;
    if said.unwrap().is_none() {
        return skip(Lack::Tracing);
    }
    // Those that look at guards have seen both for longer than a guard may be held.
    let is_over = || match std::fs::read_to_string(format!("/proc/{above}/stat")) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    eventually("the guard is ended", is_over).await;
    tracer.kill().await.unwrap();
    guarded.wait().await;
    bound.stdin.take().unwrap().write_all(b"on\n").await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("it read on"));
    assert_eq!(bound.wait().await.unwrap(), Some(7));
}

#[tokio::test]
async fn limits_on_commands_are_in_force() {
    let limits = CommandLimits { file: Some(1 << 20), ..CommandLimits::default() };
    let mut bound = start(&guard().with_limits(limits), &new_mark(), "ulimit -f");
    assert_eq!(said(&mut bound).await, "2048\n");
    assert_eq!(bound.wait().await.unwrap(), Some(0));
}

#[tokio::test]
async fn a_program_that_is_missing_is_an_error() {
    let (program, environment) = ("/nowhere/git".into(), BTreeMap::new());
    let missing = PipedProgram { program, args: Vec::new(), environment, cwd: "/".into() };
    assert!(Bound::start(&guard(), &missing).is_err());
}
