//! What a team costs: memory and processor time of members at rest, the way of a message to one of them, and processor
//! time for one message among members at work.
//!
//! `cargo bench -p centurion-engine --bench teams` has a lead start a hundred members that rest. Each number is printed as a
//! ratio of its target, and it fails above one.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "parts/script.rs"]
mod script;
#[path = "parts/session.rs"]
mod session;

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_engine::{
    AgentOptions, DelegationRules, Handle, Limits, Options, Session, TeamOptions,
};
use centurion_model::{EventStream, Provider, Request, StreamEvent};
use centurion_protocol::{Block, SystemWorld, World as _};
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use self::script::answer;
use self::session::{resident, thread_time};

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
            return turn.into_stream().filter_map(async |()| None).chain(rests()).boxed();
        }
        cast.tell(Seen::Lead(thread_time()));
        let planned = cast.planned.lock().pop_front();
        let Some(calls) = planned else { return rests() };
        let listen = move |event: &Result<StreamEvent, _>| {
            if matches!(event, Ok(StreamEvent::Finish { .. })) {
                cast.tell(Seen::Spoken(Instant::now(), thread_time()));
            }
        };
        let calls = calls.into_iter().map(|(tool, input)| (tool, input.to_string()));
        answer(calls.collect()).inspect(listen).boxed()
    }

    fn credential(&self) -> &'static str {
        "bench"
    }
}

fn rests() -> EventStream {
    script::text("There is nothing to do.")
}

fn options(dir: &Path, cast: &Arc<Cast>) -> Options {
    let options = session::options(dir, Arc::new(Shared(Arc::clone(cast))));
    let limits = Limits { running: MEMBERS + 1, ..Limits::default() };
    let rules = DelegationRules { limits, ..DelegationRules::default() };
    let team = TeamOptions {
        name: "bench".parse().expect("a name"),
        teardown: Duration::from_mins(1),
        views: None,
    };
    Options { agents: AgentOptions { rules, team: Some(team), ..options.agents }, ..options }
}

/// How long all threads of this process have computed.
fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("a time after the beginning")
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
        let before = resident("VmRSS:");
        let join = |number: usize| {
            let input = json!({"description": "a job", "prompt": "Wait for work.",
                               "subagent_type": "general-purpose", "name": format!("m{number}")});
            ("Agent", input)
        };
        self.say((0..MEMBERS).map(join).collect());
        self.until_quiet().await;
        let each = resident("VmRSS:").saturating_sub(before) / MEMBERS;
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

fn ratio(what: &str, found: Duration, target: Duration) -> f64 {
    let ratio = found.as_secs_f64() / target.as_secs_f64();
    println!("{what} {found:.1?} (target {target:?}, ratio {ratio:.2})");
    ratio
}

fn main() -> ExitCode {
    let dir = session::scratch();
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
    let memory = each as f64 / MOST_MEMORY as f64;
    let (kilobytes, target) = (each.div_ceil(1024), MOST_MEMORY / 1024);
    println!("a member at rest: {kilobytes} KB (target {target} KB, ratio {memory:.2})");
    let at_rest = format!("{MEMBERS} of them take in three seconds");
    let ratios = [
        memory,
        ratio(&at_rest, used, MOST_AT_REST),
        ratio("a message to a member at rest is read in the median after", way, LONGEST_WAY),
        ratio("a message to a member at work takes of CPU", message, MOST_FOR_MESSAGE),
    ];
    if ratios.iter().all(|ratio| *ratio <= 1.0) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
