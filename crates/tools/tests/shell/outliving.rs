//! Ways to outlive Centurion, each tried by a command against the real guard (I-13).
//!
//! A detached process of the command makes the attack and then becomes a process with a mark in its arguments. The test
//! then kills Centurion, which is this test program started again: no process with the mark, and none of the attack,
//! may be left. Without a guard, all these ways work: the first test proves it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_protocol::{SystemWorld, World as _};
use centurion_sandbox::{Sandbox, Support};
use centurion_testkit::{Lack, skip};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{PipedProcess, PipedProgram, SandboxPolicy, SandboxSettings};
use serde_json::json;

use crate::support::{Session, eventually};

/// The attacks: the guard is `$G`, the process above it `$O`, Centurion `$C`, the second watcher `$W`.
const ATTACKS: [(&str, &str); 50] = [
    ("nothing but a daemon", ":"),
    ("kills its guard", "kill -9 $G"),
    ("stops its guard", "kill -STOP $G"),
    (
        "stops its guard again and again",
        "for i in 1 2 3 4 5 6 7 8 9; do kill -STOP $G; kill -CONT $G; done; kill -STOP $G",
    ),
    ("asks its guard to end", "kill -TERM $G"),
    ("hangs up on its guard", "kill -HUP $G"),
    ("interrupts its guard", "kill -INT $G; kill -QUIT $G"),
    (
        "sends its guard every signal that can be caught",
        "for s in 1 2 3 10 12 13 14 15 16 20 21 22 24 25 26 27 28 29 30 34 50 64; do kill -$s $G; done",
    ),
    ("makes its guard crash", "kill -SEGV $G"),
    ("makes its guard abort", "kill -ABRT $G"),
    ("kills its guard's group", "kill -9 -- -$G"),
    ("stops its guard's group", "kill -STOP -- -$G"),
    (
        "kills a thread of its guard",
        "for t in /proc/$G/task/*; do perl -e 'syscall(234, $ARGV[0], $ARGV[1], 9)' $G ${t##*/}; done",
    ),
    (
        "kills its guard by a handle",
        "perl -e '$f = syscall(434, $ARGV[0], 0); syscall(424, $f, 9, 0, 0)' $G",
    ),
    (
        "queues a signal to its guard",
        "perl -e 'syscall(129, $ARGV[0], 9, pack(\"lllx116\", 9, 0, -1))' $G",
    ),
    ("kills what is above its guard", "kill -9 $O"),
    ("stops what is above its guard", "kill -STOP $O"),
    ("kills its guard and what is above it", "kill -9 $G $O"),
    ("kills what is above its guard, then its guard", "kill -9 $O; kill -9 $G"),
    ("stops its guard and what is above it", "kill -STOP $O $G"),
    ("kills the watchers but not its guard", "kill -9 $W $O"),
    ("kills the second watcher", "kill -9 $W"),
    ("stops the second watcher", "kill -STOP $W"),
    ("kills the second watcher and its guard", "kill -9 $W $G"),
    ("stops the second watcher and kills its guard", "kill -STOP $W; kill -9 $G"),
    ("kills the second watcher and stops its guard", "kill -9 $W; kill -STOP $G"),
    ("stops its guard and the second watcher", "kill -STOP $G $W"),
    ("stops Centurion", "kill -STOP $C"),
    ("stops Centurion and its guard", "kill -STOP $C $G"),
    ("asks Centurion to end", "kill -TERM $C"),
    ("kills Centurion", "kill -9 $C"),
    ("kills Centurion and stops its guard", "kill -9 $C; kill -STOP $G"),
    ("stops its guard and kills Centurion", "kill -STOP $G; kill -9 $C"),
    ("takes the guard's files away", "prlimit --pid $G --nofile=0:0"),
    ("takes the guard's processor time away", "prlimit --pid $G --cpu=0:0"),
    ("takes the guard's memory away", "prlimit --pid $G --as=4096:4096 --data=0:0 --stack=0:0"),
    ("takes the guard's processes away", "prlimit --pid $G --nproc=0:0 --sigpending=0:0"),
    (
        "takes the second watcher's files away and kills its guard",
        "prlimit --pid $W --nofile=0:0; kill -9 $G",
    ),
    (
        "slows its guard down",
        "renice -n 19 -p $G; ionice -c 3 -p $G; chrt -i -p 0 $G; taskset -p 1 $G",
    ),
    ("offers its guard to the kernel", "echo 1000 > /proc/$G/oom_score_adj"),
    ("holds the pipes of its guard open", "exec 7>/proc/$G/fd/0; exec 8</proc/$G/fd/0"),
    (
        "holds the pipes of Centurion open",
        "for f in /proc/$C/fd/*; do n=${f##*/}; [ $n -gt 2 ] && [ -p $f ] && eval \"exec $((n + 20))<>$f\"; done 2>/dev/null",
    ),
    ("reports an end that is none", "echo 'exit 0' > /proc/$G/fd/1"),
    ("reports nonsense", "echo nonsense > /proc/$G/fd/1"),
    ("asks its guard for another end", "printf x > /proc/$G/fd/0"),
    (
        "traces its guard",
        "perl -e 'syscall(101, 16, $ARGV[0], 0, 0) == 0 or exit; print \"traced\\n\"; sleep 600' $G & sleep 0.2",
    ),
    (
        "traces Centurion",
        "perl -e 'syscall(101, 16, $ARGV[0], 0, 0) == 0 or exit; sleep 600' $C & sleep 0.2",
    ),
    ("kills its shell first", "kill -9 $SHELL_PID; kill -9 $G"),
    (
        "kills all that is above it but Centurion",
        "p=$G; while [ $p != $C ] && [ $p -gt 1 ]; do n=$(ps -o ppid= -p $p | tr -d ' '); kill -9 $p; p=$n; done",
    ),
    (
        "stops all that is above it but Centurion",
        "p=$G; while [ $p != $C ] && [ $p -gt 1 ]; do n=$(ps -o ppid= -p $p | tr -d ' '); kill -STOP $p; p=$n; done",
    ),
];

/// Attacks on all watchers of a command at once. The attacking process has left its session and has no environment:
/// only its parents tell its origin. Centurion promises to end all but the first about a second later while it lives;
/// the test kills Centurion when that has happened. The attacks wait for it, and those that continue name the attacker.
const ON_ALL: [(&str, &str); 6] = [
    (
        "takes the files of all watchers away",
        "for p in $G $O $W; do prlimit --pid $p --nofile=0:0; done",
    ),
    (
        "takes Centurion's files away and kills its guards",
        "prlimit --pid $C --nofile=0:0; kill -9 $O; kill -9 $G; sleep 60",
    ),
    ("stops Centurion and kills its guards", "kill -STOP $C; kill -9 $O; kill -9 $G; sleep 60"),
    (
        "takes the second watcher's files away, stops Centurion and kills its guards",
        "prlimit --pid $W --nofile=0:0; kill -STOP $C; kill -9 $O; kill -9 $G; sleep 60",
    ),
    (
        "stops all watchers without end",
        "perl -e 'while (1) { kill STOP => @ARGV[0 .. 2] }' $G $O $W $M $0 & sleep 60",
    ),
    (
        "traces all watchers",
        "perl -e 'for (map { m{(\\d+)$} } map { </proc/$_/task/*> } @ARGV[0 .. 2]) { syscall(101, 0x4206, $_ + 0, 0, 0); \
         syscall(101, 0x4207, $_ + 0, 0, 0) } sleep 600' $G $O $W $M $0 & sleep 60",
    ),
];

/// The ways in which a process of the command becomes the one that stays.
const ENDINGS: [(&str, &str); 13] = [
    ("sleeps", "exec sleep $M"),
    ("is stopped", "sleep $M & kill -STOP $!; kill -STOP $$; wait"),
    ("takes no signal", "trap '' 1 2 3 10 12 13 14 15; sh -c \"sleep $M\" & wait"),
    ("has no environment", "exec env -i \"$(command -v sleep)\" $M"),
    ("has another name", "exec -a innocent sleep $M"),
    (
        "forgets its parent's death",
        "exec perl -e 'syscall(157, 1, 0, 0, 0, 0); exec \"sleep\", $ARGV[0]' $M",
    ),
    (
        "adopts orphans",
        "exec perl -e 'syscall(157, 36, 1, 0, 0, 0); if (!fork) { if (!fork) { exec \"sleep\", $ARGV[0] } exit } sleep 600' $M",
    ),
    ("forks away twice", "(setsid sh -c '(setsid sleep $1 &)' - $M &)"),
    ("leaves the directory and its files", "cd /; exec 0<&- 1>&- 2>&-; exec sleep $M"),
    (
        "has processes of its own",
        "unshare --user --map-root-user --pid --fork sleep $M || exec sleep $M",
    ),
    (
        "forks and ends without end",
        "exec perl -e 'while (1) { exit if fork; setpgrp; open F, \">>\", $ENV{BEAT} or exit; print F 1; close F; select(undef, undef, undef, 0.01); $0 = \"sleep $ARGV[0]\" }' $M",
    ),
    (
        "forks and ends without end in sessions of its own",
        "exec perl -e 'use POSIX; while (1) { exit if fork; POSIX::setsid(); open F, \">>\", $ENV{BEAT} or exit; print F 1; close F; select(undef, undef, undef, 0.01) }' $M",
    ),
    (
        "forks and stays",
        "for i in 1 2 3 4 5 6 7 8; do (setsid sh -c \"sleep $M & sleep $M\" &); done; exec sleep $M",
    ),
];

const SCRIPT: &str = "CENTURION_TEST_SCRIPT";
const SANDBOXED: &str = "CENTURION_TEST_SANDBOXED";
const PIPED: &str = "CENTURION_TEST_PIPED";
const UNGUARDED: &str = "CENTURION_TEST_UNGUARDED";

/// The time without a sign of an attempt after which it counts as over.
const SILENCE: Duration = Duration::from_millis(300);

/// Centurion in the tests below: runs a script until it is killed. Skipped on its own.
#[tokio::test]
async fn centurion() {
    let Ok(script) = std::env::var(SCRIPT) else { return skip(Lack::OtherHalf) };
    let command = format!("SHELL_PID=$$ G=$PPID . {script}");
    if std::env::var_os(UNGUARDED).is_some() {
        Command::new("bash").args(["-c", &command]).status().unwrap();
        std::future::pending::<()>().await;
    }
    if std::env::var_os(PIPED).is_some() {
        let guard = GuardProgram::new(env!("CARGO_BIN_EXE_centurion-guard"));
        let environment = [("PATH".to_owned(), std::env::var("PATH").unwrap())].into();
        let program = PipedProgram {
            program: "bash".into(),
            args: ["-c".into(), command.clone().into()].into(),
            environment,
            cwd: "/".into(),
        };
        let mut piped = PipedProcess::start(&guard, &program).unwrap();
        piped.wait().await;
        std::future::pending::<()>().await;
    }
    let mut session = Session::new();
    if std::env::var_os(SANDBOXED).is_some() {
        let directory = Path::new(&script).parent().unwrap().to_owned();
        let sandbox =
            Sandbox { write: vec![directory, session.root.clone()], ..Sandbox::default() };
        let policy = SandboxPolicy::new(sandbox, &Support::detect(), SandboxSettings::default());
        assert!(policy.unavailable().is_none());
        Arc::get_mut(&mut session.context.workspace).unwrap().sandbox = Some(Arc::new(policy));
    }
    let _ = session.call("Bash", json!({ "command": command })).await;
    std::future::pending::<()>().await;
}

/// The origin of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Command,
    /// A hook or an MCP server.
    Piped,
    Sandboxed,
    /// A command without a guard, to prove that the ways to outlive work.
    Unguarded,
}

impl Kind {
    /// The time after which a process that still runs has outlived Centurion.
    fn patience(self) -> Duration {
        if self == Self::Unguarded { 4 * SILENCE } else { Duration::from_secs(15) }
    }
}

/// Makes one attempt; an error says that a process outlived Centurion.
async fn attempt(kind: Kind, attack: &str, ending: &str) -> Result<(), String> {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o777)).unwrap();
    let number = SystemWorld.uuid().as_u128() % 1_000_000_000;
    let mark = format!("70000.{number:09}");
    let ready = root.join("ready");
    let rest = Rest(format!("600.{number:09}"));
    let script = write_script(&root, &ready, (&mark, &rest.0), attack, ending);
    let attacker = root.join("attacker").display().to_string();
    let mut centurion = Command::new(std::env::current_exe().unwrap());
    centurion
        .args(["--exact", "outliving::centurion", "--nocapture"])
        .env(SCRIPT, &script)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match kind {
        Kind::Command => {}
        Kind::Piped => drop(centurion.env(PIPED, "1")),
        Kind::Sandboxed => drop(centurion.env(SANDBOXED, "1")),
        Kind::Unguarded => drop(centurion.env(UNGUARDED, "1")),
    }
    let mut centurion = centurion.spawn().unwrap();
    // An attacker that was killed for it has had its chance, too.
    let is_ready = || std::fs::read(&ready).is_ok_and(|text| text.ends_with(b"\n"));
    let is_over = || root.join("begun").exists() && processes_named(&attacker).is_empty();
    eventually("the attack", || is_ready() || is_over()).await;
    let _ = centurion.kill();
    centurion.wait().unwrap();
    // Some are never seen, but write to a file.
    let beats = || std::fs::metadata(root.join("beat")).map_or(0, |file| file.len());
    let watcher = format!("__guard second {}-", centurion.id());
    // Before it has become the process with the mark, an attacker is known by its script.
    let ours = format!("{}/", root.display());
    let outlived = || -> Vec<_> { [&mark, &watcher, &ours].map(|it| processes_named(it)).concat() };
    let began = Instant::now();
    let (mut heard, mut silent_since) = (beats(), Instant::now());
    while silent_since.elapsed() < SILENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let left = outlived();
        if left.is_empty() && heard == beats() {
            continue;
        }
        (heard, silent_since) = (beats(), Instant::now());
        if began.elapsed() > kind.patience() {
            kill(&left);
            return Err(format!("{kind:?}: {attack}; then {ending}: {left:?}"));
        }
    }
    Ok(())
}

/// The argument of the process with which the script itself ends. Dropping it kills that process: where nothing guards
/// the script, it outlives its parent as well.
struct Rest(String);

impl Drop for Rest {
    fn drop(&mut self) {
        kill(&processes_named(&self.0));
    }
}

fn kill(processes: &[(i32, String)]) {
    for (pid, _) in processes {
        let pid = rustix::process::Pid::from_raw(*pid).unwrap();
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Writes the script of an attack; the names are the mark and the argument of the script's own last process.
fn write_script(
    root: &Path,
    ready: &Path,
    (mark, rest): (&str, &str),
    attack: &str,
    ending: &str,
) -> PathBuf {
    let attacker = root.join("attacker");
    let (ready, begun) = (ready.display(), root.join("begun"));
    let (begun, beat) = (begun.display(), root.join("beat"));
    let beat = beat.display();
    std::fs::write(
        &attacker,
        format!(
            "echo begun > {begun}\nexport M={mark} BEAT={beat}\nparent() {{ ps -o ppid= -p $1 | tr -d ' '; }}\n\
             O=$(parent $G)\nC=$(parent $O)\n\
             W=$(pgrep -P $C -x command-guard | grep -vx $O)\n\
             export O C W\n{{ {attack}\n}} >/dev/null 2>&1\n\
             echo ready > {ready}\n{ending}\n"
        ),
    )
    .unwrap();
    let script = root.join("script");
    let attacker = attacker.display();
    let text = format!(
        "export G SHELL_PID; setsid bash {attacker} & wait $!; echo ready > {ready}; sleep {rest}\n"
    );
    std::fs::write(&script, text).unwrap();
    script
}

/// The live processes with this text among their arguments.
fn processes_named(mark: &str) -> Vec<(i32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let named = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(mark).then_some((pid, line))
    });
    named.collect()
}

async fn try_all(attempts: impl IntoIterator<Item = (Kind, &'static str, &'static str)>) {
    const AT_ONCE: usize = 6;
    let mut running: tokio::task::JoinSet<Result<(), String>> = tokio::task::JoinSet::new();
    let mut failed = Vec::new();
    for (kind, attack, ending) in attempts {
        if running.len() >= AT_ONCE {
            failed.extend(running.join_next().await.unwrap().unwrap().err());
        }
        running.spawn(attempt(kind, attack, ending));
    }
    while let Some(ended) = running.join_next().await {
        failed.extend(ended.unwrap().err());
    }
    assert!(failed.is_empty(), "{} outlived Centurion:\n{}", failed.len(), failed.join("\n"));
}

/// A control: without a guard, each of these survives, so the searches below would find it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_a_process_outlives_its_parent_where_nothing_guards_it() {
    let mut attempts = tokio::task::JoinSet::new();
    for (name, ending) in ENDINGS {
        attempts.spawn(async move { (name, attempt(Kind::Unguarded, ":", ending).await) });
    }
    while let Some(attempt) = attempts.join_next().await {
        let (name, outlived) = attempt.unwrap();
        assert!(outlived.is_err(), "a process that {name} is not found");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_on_the_guards_lets_a_command_outlive_us() {
    try_all(ATTACKS.map(|(_, attack)| (Kind::Command, attack, ENDINGS[0].1))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_on_all_watchers_at_once_lets_a_command_outlive_us() {
    let kinds = [Kind::Command, Kind::Piped];
    let attempts =
        kinds.into_iter().flat_map(|kind| ON_ALL.map(|(_, attack)| (kind, attack, ENDINGS[3].1)));
    try_all(attempts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_form_of_a_process_outlives_us() {
    let kinds = [":", "kill -9 $G", "kill -STOP $G"];
    let attempts = kinds
        .into_iter()
        .flat_map(|attack| ENDINGS.map(|(_, ending)| (Kind::Command, attack, ending)));
    try_all(attempts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_hook_or_server_outlives_us() {
    let attacks = [
        ":",
        "kill -9 $G",
        "kill -STOP $G",
        "kill -9 $C $G",
        "kill -9 $W $G",
        "prlimit --pid $G --nofile=0:0",
    ];
    try_all(attacks.map(|attack| (Kind::Piped, attack, ENDINGS[0].1))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_confined_command_outlives_us() {
    let attacks =
        ATTACKS.iter().step_by(3).map(|(_, attack)| (Kind::Sandboxed, *attack, ENDINGS[0].1));
    let endings =
        ENDINGS.iter().map(|(_, ending)| (Kind::Sandboxed, "kill -9 $G; kill -9 1", *ending));
    try_all(attacks.chain(endings)).await;
}

/// A live Centurion itself ends the processes that a killed guard leaves.
#[tokio::test]
async fn what_a_killed_guard_leaves_is_ended_at_once() {
    let session = Session::new();
    session.bash("true").await;
    let up = session.path("up");
    let command = format!(
        "(setsid env -i /bin/sh -c 'echo up > {}; exec sleep 71234' &); \
         until [ -s {} ]; do sleep 0.01; done; kill -9 $PPID; sleep 600",
        up.display(),
        up.display()
    );
    let message = session.bash_fails(&command).await;
    assert!(message.contains("its guard was killed"), "{message}");
    // The answer comes after the end, not before it.
    assert_eq!(processes_named("sleep 71234"), []);
    // Background commands and other guards continue.
    let task = session.start("sleep 600").await;
    session.bash_fails("kill -9 $PPID; sleep 600").await;
    assert!(session.shells().running().iter().any(|shell| shell.id.as_str() == task));
    session.shells().shutdown().await;
    eventually("all is over", || session.processes().is_empty()).await;
}
