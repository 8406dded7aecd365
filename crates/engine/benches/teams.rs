//! What a team costs: memory and processor time of members at rest, the way of a message to one of them, and processor
//! time for one message among members at work.
//!
//! `cargo bench -p centurion-engine --bench teams` has a lead start a hundred members that rest. It fails above its targets.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_config::agents::AgentSources;
use centurion_config::skills::SkillSources;
use centurion_engine::builtin::{self, Switches};
use centurion_engine::{
    AgentOptions, Base, Definitions, DelegationRules, Handle, Limits, Options, Session, Storage,
    TeamOptions,
};
use centurion_model::{
    BlockStart, Delta, EventStream, Model, Provider, ProviderKind, Request, RetryPolicy,
    StreamEvent,
};
use centurion_protocol::{Block, Env, StopReason, SystemWorld, ToolUseId, Usage, World as _};
use centurion_tools::guard::GuardProgram;
use futures_util::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

/// The one of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MEMBERS: usize = 100;
/// How often a member at rest is woken.
const WAKES: usize = 300;
/// How many broadcasts one answer of the lead makes, and how many answers there are.
const BROADCASTS: usize = 20;
const ROUNDS: usize = 5;

const MOST_MEMORY: usize = 100 * 1024;
const MOST_AT_REST: Duration = Duration::from_millis(1);
const LONGEST_WAY: Duration = Duration::from_millis(2);
const MOST_FOR_MESSAGE: Duration = Duration::from_micros(20);

/// Something that the model sees.
enum Seen {
    /// The lead has said all of a planned answer: when, and what the thread had used.
    Spoken(Instant, Duration),
    /// The lead asks for its next answer.
    Lead(Duration),
    /// A member asks for an answer.
    Member(Instant),
}

/// Plays the lead, which says what is planned, and members, which say that they rest.
struct Cast {
    planned: Mutex<VecDeque<Vec<(&'static str, Value)>>>,
    seen: mpsc::UnboundedSender<Seen>,
    /// Members have no answer while it has no permits.
    may_answer: Semaphore,
}

impl Cast {
    fn tell(&self, seen: Seen) {
        // The other end lives as long as the benchmark.
        let _ = self.seen.send(seen);
    }
}

struct Shared(Arc<Cast>);

impl Provider for Shared {
    fn stream(&self, request: Request) -> EventStream {
        let cast = Arc::clone(&self.0);
        if request.agent.is_some() {
            cast.tell(Seen::Member(Instant::now()));
            let turn = async move {
                // Kept free for the next one at once.
                drop(cast.may_answer.acquire().await);
            };
            return turn.into_stream().filter_map(async |()| None).chain(text()).boxed();
        }
        cast.tell(Seen::Lead(thread_time()));
        let planned = cast.planned.lock().pop_front();
        let Some(calls) = planned else { return text() };
        let listen = move |event: &Result<StreamEvent, _>| {
            if matches!(event, Ok(StreamEvent::Finish { .. })) {
                cast.tell(Seen::Spoken(Instant::now(), thread_time()));
            }
        };
        answer(calls).inspect(listen).boxed()
    }

    fn credential(&self) -> &'static str {
        "bench"
    }
}

fn text() -> EventStream {
    let delta = Delta::Text("There is nothing to do.".to_owned());
    let block = [
        StreamEvent::BlockStart { index: 0, block: BlockStart::Text },
        StreamEvent::Delta { index: 0, delta },
        StreamEvent::BlockStop { index: 0 },
    ];
    whole(block.into(), StopReason::EndTurn)
}

fn answer(calls: Vec<(&'static str, Value)>) -> EventStream {
    let call = |(index, (tool, input)): (usize, (&'static str, Value))| {
        let id = ToolUseId::new(format!("toolu_{}", SystemWorld.record_id()));
        [
            StreamEvent::BlockStart {
                index,
                block: BlockStart::ToolUse { id, name: tool.to_owned() },
            },
            StreamEvent::Delta { index, delta: Delta::InputJson(input.to_string()) },
            StreamEvent::BlockStop { index },
        ]
    };
    whole(calls.into_iter().enumerate().flat_map(call).collect(), StopReason::ToolUse)
}

fn whole(blocks: Vec<StreamEvent>, stop_reason: StopReason) -> EventStream {
    let usage = Usage { input_tokens: 1_000, output_tokens: 50, ..Usage::default() };
    let id = format!("msg_{}", SystemWorld.record_id());
    let begin = StreamEvent::Start { id, model: "script".to_owned(), usage, request_id: None };
    let events =
        [begin].into_iter().chain(blocks).chain([StreamEvent::Finish { stop_reason, usage }]);
    stream::iter(events.map(Ok)).boxed()
}

fn options(dir: &Path, cast: &Arc<Cast>) -> Options {
    let env = Arc::new(Env::default());
    let model = Model::with_provider(
        Arc::new(Shared(Arc::clone(cast))),
        ProviderKind::Script,
        "script",
        RetryPolicy::new(&env),
        Arc::new(SystemWorld),
    );
    let built_in = builtin::agents(&Switches::default());
    let sources = AgentSources { built_in, ..AgentSources::default() };
    let definitions = Definitions::new(sources, SkillSources::default(), Arc::new(SystemWorld));
    let base = Base::new(dir.to_owned(), GuardProgram::new("/nonexistent/guard"));
    let storage = Storage {
        resumed_at: None,
        transcript: Some(dir.join("session.jsonl")),
        ..Storage::without_transcript(dir.join("output"))
    };
    let limits = Limits { running: MEMBERS + 1, ..Limits::default() };
    let rules = DelegationRules { limits, ..DelegationRules::default() };
    let team =
        TeamOptions { name: "bench".parse().expect("a name"), teardown: Duration::from_mins(1) };
    let agents = AgentOptions { rules, team: Some(team), ..AgentOptions::new(definitions) };
    Options { agents, ..Options::new(model, base, storage) }
}

/// How long this thread has computed. Other programs run, too, and do not count.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a time after the beginning")
}

/// How long all threads of this process have computed.
fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("a time after the beginning")
}

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("a kernel that counts");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.expect("a number") * 1024
}

/// The benchmark, from outside of the session.
struct Gauge {
    handle: Handle,
    cast: Arc<Cast>,
    seen: mpsc::UnboundedReceiver<Seen>,
}

impl Gauge {
    /// Has the lead say an answer with these calls.
    fn say(&self, calls: Vec<(&'static str, Value)>) {
        self.cast.planned.lock().push_back(calls);
        self.handle.submit(SystemWorld.record_id(), vec![Block::text("Go on.")]);
    }

    async fn next(&mut self) -> Seen {
        self.seen.recv().await.expect("a session that goes on")
    }

    async fn until_spoken(&mut self) -> (Instant, Duration) {
        loop {
            if let Seen::Spoken(at, used) = self.next().await {
                return (at, used);
            }
        }
    }

    /// Waits until the session has nothing to do any more.
    async fn until_quiet(&mut self) {
        let quiet = Duration::from_millis(200);
        while tokio::time::timeout(quiet, self.seen.recv()).await.is_ok() {}
    }

    async fn rest(&mut self) -> (usize, Duration) {
        self.until_quiet().await;
        let before = resident();
        let join = |number: usize| {
            let input = json!({"description": "a job", "prompt": "Wait for work.",
                               "subagent_type": "general-purpose", "name": format!("m{number}")});
            ("Agent", input)
        };
        self.say((0..MEMBERS).map(join).collect());
        self.until_quiet().await;
        let each = resident().saturating_sub(before) / MEMBERS;
        let used = process_time();
        tokio::time::sleep(Duration::from_secs(3)).await;
        (each, process_time().saturating_sub(used))
    }

    /// How long it takes from the lead's words until a member at rest has read them.
    async fn wake(&mut self) -> Duration {
        let mut times = Vec::new();
        for number in 0..WAKES {
            let to = format!("m{}", number % MEMBERS);
            self.say(vec![(
                "SendMessage",
                json!({"to": to, "message": "There is something to do."}),
            )]);
            let (spoken, _) = self.until_spoken().await;
            let read = loop {
                if let Seen::Member(at) = self.next().await {
                    break at;
                }
            };
            times.push(read.saturating_duration_since(spoken));
            while tokio::time::timeout(Duration::from_millis(5), self.seen.recv()).await.is_ok() {}
        }
        times.sort();
        times[WAKES / 2]
    }

    /// What one message to a member at work costs.
    async fn broadcast(&mut self) -> Duration {
        self.cast.may_answer.forget_permits(1);
        let tell_all = || ("SendMessage", json!({"to": "*", "message": "x".repeat(200)}));
        self.say(vec![tell_all()]);
        self.until_quiet().await;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            self.say((0..BROADCASTS).map(|_| tell_all()).collect());
            let (_, before) = self.until_spoken().await;
            let after = loop {
                if let Seen::Lead(used) = self.next().await {
                    break used;
                }
            };
            let messages = u32::try_from(BROADCASTS * MEMBERS).expect("a small number");
            times.push(after.saturating_sub(before) / messages);
            self.until_quiet().await;
        }
        self.cast.may_answer.add_permits(1);
        self.until_quiet().await;
        times.sort();
        times[ROUNDS / 2]
    }
}

fn main() {
    // In memory where that is possible: what a disk needs for a new file is not ours to measure.
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let dir = dir.expect("a scratch directory");
    let (sender, seen) = mpsc::unbounded_channel();
    let cast =
        Arc::new(Cast { planned: Mutex::default(), seen: sender, may_answer: Semaphore::new(1) });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (rest, way, message) = runtime.expect("a runtime").block_on(async {
        let mut session = Session::open(options(dir.path(), &cast)).await.expect("a session");
        let handle = session.handle();
        handle.submit(SystemWorld.record_id(), vec![Block::text("Begin.")]);
        let mut gauge = Gauge { handle, cast, seen };
        let measured = async {
            let measured = (gauge.rest().await, gauge.wake().await, gauge.broadcast().await);
            gauge.handle.close();
            measured
        };
        tokio::join!(measured, session.run()).0
    });
    let (each, used) = rest;
    println!(
        "a member at rest: {} KB (target {} KB); {MEMBERS} of them for three seconds: {used:.1?} of CPU (target {MOST_AT_REST:?})",
        each.div_ceil(1024),
        MOST_MEMORY / 1024
    );
    println!(
        "a message to a member at rest is read after {way:.1?} in the median (target {LONGEST_WAY:?})"
    );
    println!(
        "a message to a member at work takes {message:.1?} of CPU (target {MOST_FOR_MESSAGE:?})"
    );
    let is_met = each <= MOST_MEMORY
        && used <= MOST_AT_REST
        && way <= LONGEST_WAY
        && message <= MOST_FOR_MESSAGE;
    assert!(is_met, "above a target");
}
