//! What one message between two processes costs: greeting, message, a line on disk, acknowledgement.
//!
//! `cargo bench -p centurion-team --bench peers` prints the processor time of both sides for one message and how long the
//! sender waited for the acknowledgement, each as a ratio of its target, and fails above one.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_protocol::{SystemWorld, World as _};
use centurion_team::peers::{
    Inbox, Incoming, Introduction, MessageRefusal, MessageTreatment, Outgoing, PeerAddress,
    PeerDirectory, PeerListener,
};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

const MESSAGES: u32 = 2_000;
const ROUNDS: usize = 5;
const MOST_CPU: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(2);
const SESSION: &str = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
/// What the program is called as the recipient; it stands in the scratch directory.
const RECIPIENT: &str = "recipient";

/// Writes each message down, as a session does.
struct Disk(Mutex<File>);

impl Inbox for Disk {
    fn take(&self, message: Incoming) -> Result<MessageTreatment, MessageRefusal> {
        let line = format!("{} {} {}\n", message.id, message.from, message.text);
        let written = self.0.lock().write_all(line.as_bytes());
        written
            .map_err(|error| MessageRefusal::Lost(error.to_string()))
            .map(|()| MessageTreatment::ToRead)
    }
}

fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) = (time.tv_sec, time.tv_nsec);
    Duration::new(u64::try_from(seconds).expect("a time"), u32::try_from(nanos).expect("nanos"))
}

/// Serves a socket until standard input ends, and says before and after each round what it has used.
fn receive(directory: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let log = File::create(directory.join("log")).expect("a file");
    let inbox = Arc::new(Disk(Mutex::new(log)));
    std::thread::spawn(|| {
        for _ in std::io::stdin().lines() {
            println!("{}", own_cpu().as_nanos());
        }
        std::process::abort();
    });
    runtime.block_on(async {
        let peers = PeerDirectory::open(&directory.join("peers")).expect("a directory");
        let session = SESSION.parse().expect("an id");
        let own = Introduction { session, cwd: "/".to_owned() };
        let listener = PeerListener::bind(&peers, own).expect("a socket");
        match listener.serve(inbox).await {}
    });
}

fn send(directory: &Path, ask: &mut impl FnMut() -> Duration) -> (Duration, Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let peers = PeerDirectory::open(&directory.join("peers")).expect("a directory");
    let address = PeerAddress::Session(SESSION.parse().expect("an id"));
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let before = own_cpu() + ask();
        let mut waits = Vec::new();
        for _ in 0..MESSAGES {
            let message = Outgoing::new(SystemWorld.record_id(), "x".repeat(200));
            let started = Instant::now();
            runtime.block_on(peers.send(&address, None, &message)).expect("a receipt");
            waits.push(started.elapsed());
        }
        waits.sort_unstable();
        let cpu = (own_cpu() + ask()).saturating_sub(before) / MESSAGES;
        best = (best.0.min(cpu), best.1.min(waits[waits.len() / 2]));
    }
    best
}

fn ratio(what: &str, found: Duration, target: Duration) -> f64 {
    let ratio = found.as_secs_f64() / target.as_secs_f64();
    println!("{what}: {found:.1?} (target {target:?}, ratio {ratio:.2})");
    ratio
}

fn main() -> ExitCode {
    let program = std::env::current_exe().expect("this program");
    if program.ends_with(RECIPIENT) {
        receive(program.parent().expect("a directory"));
        return ExitCode::SUCCESS;
    }
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let copy = scratch.path().join(RECIPIENT);
    std::fs::copy(program, &copy).expect("a copy of this program");
    let mut recipient = Command::new(copy)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a recipient");
    let mut stdin = recipient.stdin.take().expect("its input");
    let mut lines = BufReader::new(recipient.stdout.take().expect("its output")).lines();
    let mut ask = || {
        writeln!(stdin).expect("a recipient that listens");
        let line = lines.next().expect("an answer").expect("a line");
        Duration::from_nanos(line.parse().expect("a number"))
    };
    // It has answered: its socket may still be on its way.
    ask();
    while !scratch.path().join(format!("peers/{SESSION}.sock")).exists() {
        ask();
    }
    let (cpu, wait) = send(scratch.path(), &mut ask);
    drop(stdin);
    recipient.wait().expect("its end");
    let ratios = [
        ratio("a message between two processes takes of CPU on both sides", cpu, MOST_CPU),
        ratio("it is acknowledged in the median after", wait, LONGEST),
    ];
    if ratios.iter().all(|ratio| *ratio <= 1.0) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
