//! What an agent costs: processor time to start one, and memory to keep one that has ended.
//!
//! `cargo bench -p centurion-engine --bench agents` lets managers start a hundred agents each with one
//! message. The time is that of the thread, from the manager's words to the last start: input, rules, the
//! checks of a launch, tools, transcript and files. The memory is what the process grows by while all of
//! them end and stay in the table, ready to be spoken to.
//!
//! Before that, a lead with a conversation of 400 KB starts a thousand forks, twenty with each message, which all wait for their
//! turn: time as above, memory while all of them are there, and what they take on disk. What a fork itself takes there is
//! what is written before it does anything: the record of its start, which refers to the conversation, and the small file
//! beside its transcript. What it is told and says comes behind that, and is counted apart.
//!
//! Forks come first, so that their memory is not measured in what others have left.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "parts/script.rs"]
mod script;
#[path = "parts/session.rs"]
mod session;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use centurion_engine::{AgentOptions, DelegationRules, Limits, Options, Session, View};
use centurion_model::{EventStream, ModelError, Provider, Request, StreamEvent};
use centurion_protocol::sdk::{Event, EventBody, System};
use centurion_protocol::{Block, Outcome, Role, SystemWorld, World as _};
use futures_util::{FutureExt, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::sync::Semaphore;

use self::script::answer;
use self::session::{resident, thread_time};

/// The one of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is played.
#[derive(Clone, Copy)]
struct Play {
    /// How many messages start agents.
    messages: usize,
    /// How many each of them starts.
    agents: usize,
    /// How deep those stand.
    depth: u32,
    forks: bool,
    /// How much the lead is told first.
    prompt: usize,
    /// The target for the processor time of one, and the time above which the benchmark fails.
    longest: Duration,
    fails_above: Duration,
    largest: usize,
    /// The most that both files of one may take on disk when it begins, and all of them together in memory, where that is
    /// bounded.
    most_on_disk: Option<usize>,
    most_together: Option<usize>,
}

const FRESH: Play = Play {
    messages: 100,
    agents: 100,
    depth: 2,
    forks: false,
    prompt: 5,
    longest: Duration::from_micros(100),
    fails_above: Duration::from_micros(200),
    largest: 50 * 1024,
    most_on_disk: None,
    most_together: None,
};

const FORKS: Play = Play {
    messages: 50,
    agents: 20,
    depth: 1,
    forks: true,
    prompt: 400 * 1024,
    longest: Duration::from_micros(200),
    fails_above: Duration::from_micros(200),
    largest: 20 * 1024,
    most_on_disk: Some(1024),
    most_together: Some(100 * 1024 * 1024),
};

/// What is measured, by a model that knows what it asks for and a view that sees it happen.
struct Gauge {
    play: Play,
    /// Where the transcripts of agents are.
    directory: PathBuf,
    state: Mutex<State>,
    /// Agents have no answer before all of their manager's are started, and forks none before all forks are.
    all_started: Semaphore,
}

#[derive(Default)]
struct State {
    started: usize,
    /// The thread's time when the manager had spoken.
    spoken: Duration,
    /// What one agent took, for each message.
    times: Vec<Duration>,
    /// How much memory there was when all were started.
    resident: usize,
    /// The same when the first message had started its agents.
    resident_first: usize,
    /// What the records of their starts took on disk, and the files beside them.
    on_disk: (u64, u64),
}

impl Gauge {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl View for Gauge {
    fn show(&self, event: &Event) {
        let EventBody::System(System::TaskStarted(started)) = &event.body else { return };
        let Play { messages, agents, depth, forks, .. } = self.play;
        if started.spawn_depth != Some(depth) {
            return;
        }
        let mut state = self.state();
        state.started += 1;
        if state.started == agents {
            let took = thread_time().saturating_sub(state.spoken);
            state.times.push(took / u32::try_from(agents).unwrap_or(u32::MAX));
            state.started = 0;
            let are_all = state.times.len() == messages;
            if state.times.len() == 1 {
                state.resident_first = resident("VmRSS:");
            }
            if are_all {
                state.resident = resident("VmRSS:");
                state.on_disk = (disk(&self.directory, "jsonl"), disk(&self.directory, "json"));
            }
            match (forks, are_all) {
                (false, _) => self.all_started.add_permits(agents),
                (true, true) => self.all_started.add_permits(messages * agents),
                (true, false) => {}
            }
        }
    }
}

/// Plays the lead, its managers, and the agents that those start.
struct Cast(Arc<Gauge>);

impl Provider for Cast {
    fn stream(&self, request: Request) -> EventStream {
        let said =
            request.prefix.conversation.iter().filter(|it| it.role() == Role::Assistant).count();
        let Play { messages, agents, forks, .. } = self.0.play;
        let is_lead = request.agent.is_none();
        match (is_lead, request.parent_agent.is_some()) {
            (true, _) if said < messages && !forks => answer(vec![("Agent", start("manage"))]),
            (starts, false) if starts == forks && said < if forks { messages } else { 1 } => {
                let call = if forks { fork("work") } else { start("work") };
                let answer = answer(vec![("Agent", call); agents]);
                let gauge = Arc::clone(&self.0);
                let listen = move |event: &Result<StreamEvent, ModelError>| {
                    if matches!(event, Ok(StreamEvent::Finish { .. })) {
                        gauge.state().spoken = thread_time();
                    }
                };
                answer.inspect(listen).boxed()
            }
            (false, is_below) if is_below || forks => {
                let gauge = Arc::clone(&self.0);
                let turn = async move {
                    let turn = gauge.all_started.acquire().await;
                    turn.expect("an open semaphore").forget();
                };
                turn.into_stream().filter_map(async |()| None).chain(done()).boxed()
            }
            _ => done(),
        }
    }

    fn credential(&self) -> &'static str {
        "bench"
    }
}

fn start(task: &str) -> String {
    json!({"description": "a job", "prompt": task, "subagent_type": "general-purpose", "run_in_background": false})
        .to_string()
}

fn fork(task: &str) -> String {
    json!({"description": "a branch", "prompt": task}).to_string()
}

fn done() -> EventStream {
    script::text("The work is done, and there is nothing else to say about it.")
}

fn options(dir: &Path, gauge: &Arc<Gauge>) -> Options {
    let options = session::options(dir, Arc::new(Cast(Arc::clone(gauge))));
    let rules = DelegationRules {
        limits: Limits { running: 1, ..Limits::default() },
        forks: gauge.play.forks,
        ..DelegationRules::default()
    };
    Options {
        view: Arc::clone(gauge) as Arc<dyn View>,
        agents: AgentOptions { rules, ..options.agents },
        ..options
    }
}

/// What the files of a directory with this ending hold.
fn disk(directory: &Path, ending: &str) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.filter(|it| it.path().extension().is_some_and(|it| it == ending));
    files.filter_map(|it| it.metadata().ok()).map(|it| it.len()).sum()
}

fn main() -> ExitCode {
    let plays = [(FORKS, "a fork of 400 KB"), (FRESH, "an agent")];
    let missed = plays.into_iter().filter(|(play, what)| !measure(*play, what)).count();
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays it, and prints what was measured. `false` if a target is missed.
fn measure(play: Play, what: &str) -> bool {
    let dir = session::scratch();
    let (state, all_started) = (Mutex::default(), Semaphore::new(0));
    let directory = dir.path().join("session/subagents");
    let gauge = Arc::new(Gauge { play, directory, state, all_started });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (before, after) = runtime.expect("a runtime").block_on(async {
        let mut session = Session::open(options(dir.path(), &gauge)).await.expect("a session");
        let prompt = "begin ".repeat(play.prompt.div_ceil(6));
        session.handle().submit(SystemWorld.record_id(), vec![Block::text(prompt)]);
        session.handle().close();
        let before = resident("VmRSS:");
        let outcome = session.run().await;
        assert!(outcome.is_some_and(Outcome::is_success), "{outcome:?}");
        // The session is still there, with all its agents.
        (before, resident("VmRSS:"))
    });
    let mut times = std::mem::take(&mut gauge.state().times);
    times.sort();
    assert_eq!(times.len(), play.messages, "every message has started its agents");
    let (best, usual) = (times[0], times[play.messages / 2]);
    let share = usual.as_secs_f64() / play.longest.as_secs_f64() * 100.0;
    let longest = play.longest;
    println!(
        "starting {what}: {usual:.1?} ({best:.1?} at best), {share:.0} % of the target of {longest:?}"
    );
    let all = play.messages * play.agents;
    let kilobytes = |bytes: usize, agents: usize| (bytes / agents).div_ceil(1024);
    let state = gauge.state();
    // What the session itself needs is there when the first have begun.
    let each = kilobytes(state.resident.saturating_sub(state.resident_first), all - play.agents);
    println!(
        "{what}: {each} KB for each one more, {} KB with all that the session grew by; the target is {} KB",
        kilobytes(after.saturating_sub(before), all),
        play.largest / 1024
    );
    let each_of = |bytes: u64| bytes / all as u64;
    let (start, beside) = (each_of(state.on_disk.0), each_of(state.on_disk.1));
    println!(
        "{what}: {start} bytes for the record of its start, {beside} for the file beside it, {} of transcript for all it did",
        each_of(disk(&gauge.directory, "jsonl"))
    );
    let most = resident("VmHWM:");
    println!("{what}: the process had {} MB at most, with {all} of them", most / 1024 / 1024);
    let targets = [
        Target {
            what: "processor time",
            found: micros(usual),
            most: micros(play.longest),
            fails_above: micros(play.fails_above),
            unit: "µs",
        },
        Target::strict("memory", each * 1024, play.largest, "bytes"),
    ];
    let bounded = [
        ("both files when it begins", to_size(start + beside), play.most_on_disk, "bytes"),
        ("memory of all together", most, play.most_together, "bytes"),
    ];
    let bounded = bounded
        .into_iter()
        .filter_map(|(what, found, most, unit)| Some(Target::strict(what, found, most?, unit)));
    // All are printed before one that is not met ends the benchmark.
    let missed =
        targets.into_iter().chain(bounded).filter(|target| !target.print_ratio(what)).count();
    missed == 0
}

/// A number with its target.
struct Target {
    what: &'static str,
    found: usize,
    most: usize,
    fails_above: usize,
    unit: &'static str,
}

impl Target {
    /// A target above which the benchmark fails.
    fn strict(what: &'static str, found: usize, most: usize, unit: &'static str) -> Self {
        Self { what, found, most, fails_above: most, unit }
    }

    /// Prints the number as a ratio of its target; `false` if the benchmark fails.
    fn print_ratio(&self, of: &str) -> bool {
        let Self { what, found, most, fails_above, unit } = self;
        let ratio = *found as f64 / *most as f64;
        let verdict = if found <= most { "met" } else { "MISSED" };
        println!("{of}: {what} {found} of {most} {unit}, ratio {ratio:.2}: {verdict}");
        found <= fails_above
    }
}

fn micros(time: Duration) -> usize {
    to_size(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

fn to_size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
