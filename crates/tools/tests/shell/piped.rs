//! Programs that talk through pipes, below their guard.

use std::collections::BTreeMap;
use std::path::Path;

use centurion_tools::guard::GuardProgram;
use centurion_tools::{PipedEnd, PipedProcess, PipedProgram};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{eventually, processes_with};

fn start(mark: &str, script: &str) -> PipedProcess {
    let guard = GuardProgram::new(env!("CARGO_BIN_EXE_centurion-guard"));
    let path = std::env::var("PATH").unwrap();
    let environment = BTreeMap::from([("PATH".to_owned(), path), mark_of(mark)]);
    let program = PipedProgram {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        environment,
        cwd: Path::new("/").to_owned(),
    };
    PipedProcess::start(&guard, &program).unwrap()
}

fn mark_of(mark: &str) -> (String, String) {
    ("PIPED_TEST".to_owned(), format!("{mark}-{}", std::process::id()))
}

fn processes(mark: &str) -> Vec<String> {
    let (name, value) = mark_of(mark);
    processes_with(&format!("{name}={value}"))
}

#[tokio::test]
async fn a_program_has_its_streams_to_itself_and_its_own_exit_code() {
    let mut piped = start("streams", "cat; echo oops >&2; exit 3");
    let mut stdin = piped.stdin.take().unwrap();
    stdin.write_all(b"hello").await.unwrap();
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    piped.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    piped.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("hello", "oops\n"));
    assert_eq!(piped.wait().await, PipedEnd { code: Some(3), left_running: false });
    assert_eq!(piped.wait().await.code, Some(3), "asked again");
}

#[tokio::test]
async fn what_does_not_exist_ends_with_127_and_says_so() {
    let guard = GuardProgram::new(env!("CARGO_BIN_EXE_centurion-guard"));
    let program = PipedProgram {
        program: "no-such-program".into(),
        args: Vec::new(),
        environment: BTreeMap::new(),
        cwd: Path::new("/").to_owned(),
    };
    let mut piped = PipedProcess::start(&guard, &program).unwrap();
    let mut err = String::new();
    piped.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
    assert!(err.contains("no-such-program could not be started"), "{err}");
    assert_eq!(piped.wait().await.code, Some(127));
}

#[tokio::test]
async fn what_a_program_left_running_lives_as_long_as_the_handle() {
    let mut piped = start("left", "setsid sleep 600 >/dev/null 2>&1 & exit 0");
    assert_eq!(piped.wait().await, PipedEnd { code: Some(0), left_running: true });
    assert!(!processes("left").is_empty());
    drop(piped);
    eventually("everything is gone", || processes("left").is_empty()).await;
}

#[tokio::test]
async fn stopping_asks_first_and_takes_everything_along() {
    let mut piped = start("stop", "trap 'echo bye; exit 0' TERM; sleep 600 & echo on; wait");
    let mut stdout = piped.stdout.take().unwrap();
    let mut on = [0; 3];
    stdout.read_exact(&mut on).await.unwrap();
    piped.stop().await;
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "bye\n");
    eventually("everything is gone", || processes("stop").is_empty()).await;
}
