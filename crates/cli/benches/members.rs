//! The cost of a message among members in processes of their own, with the real program: the way to a member at rest, and
//! processor time of all processes together for one message among members at work.
//!
//! `cargo bench -p centurion --bench members` prints each as a ratio of its target, and fails above one.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use centurion_testkit::{Recorded, Reply, Scratch, Server, sse};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// The number of times that a member at rest is woken.
const WAKES: usize = 100;
/// The messages of one answer, and the answers of one round.
const BATCH: usize = 100;
const ANSWERS: usize = 20;
const ROUNDS: usize = 3;

/// The longest wait for a turn, for the end of a round and for the end of the program: longer, and something hangs.
const LONGEST_WAIT: Duration = Duration::from_mins(2);
const LONGEST_WAY: Duration = Duration::from_millis(2);
const MOST_FOR_MESSAGE: Duration = Duration::from_micros(100);

/// The model of the lead and of its two members.
#[derive(Default)]
struct Cast {
    /// The calls of the lead's next answer.
    planned: Vec<Value>,
    /// The answers that the writer is still to give.
    answers: usize,
    calls: usize,
    /// When the lead's answer was given, and when the member asked after that.
    spoken: Option<Instant>,
    heard: Option<Instant>,
}

impl Cast {
    fn call(&mut self, tool: &str, input: Value) -> Value {
        self.calls += 1;
        sse::tool_use(&format!("toolu_{}", self.calls), tool, input)
    }

    fn answer(&mut self, request: &Recorded) -> Reply {
        let now = Instant::now();
        let name = request.header("x-claude-code-agent-id").unwrap_or_default();
        match name.split('@').next() {
            Some("writer") if self.answers > 0 => {
                self.answers -= 1;
                let send = |cast: &mut Self, _| {
                    cast.call("SendMessage", json!({"to": "reader", "message": "x".repeat(200)}))
                };
                let calls: Vec<Value> = (0..BATCH).map(|number| send(self, number)).collect();
                Reply::blocks(calls)
            }
            Some("reader" | "writer") => {
                self.heard.get_or_insert(now);
                Reply::text("I rest.")
            }
            _ if self.planned.is_empty() => Reply::text("I wait."),
            _ => {
                let calls = std::mem::take(&mut self.planned);
                (self.spoken, self.heard) = (Some(now), None);
                Reply::blocks(calls)
            }
        }
    }
}

/// The lead, as its host drives it.
struct Lead {
    child: Child,
    stdin: Option<ChildStdin>,
    /// The ends of its turns. Its output is read all the time: a lead whose host does not read waits for it.
    results: Receiver<()>,
    cast: Arc<Mutex<Cast>>,
    scratch: Scratch,
    _server: Server,
}

impl Lead {
    fn start() -> Self {
        let scratch = Scratch::new();
        let cast = Arc::<Mutex<Cast>>::default();
        let model = Arc::clone(&cast);
        let server = Server::start_forgetful(move |request| model.lock().answer(request));
        let mut command = Command::new(env!("CARGO_BIN_EXE_centurion"));
        command
            .args(["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"])
            .args(["--settings", r#"{"subagents": {"teams": true}}"#])
            .args(["--teammate-mode", "process"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", scratch.home())
            .env("ANTHROPIC_BASE_URL", server.url())
            .env("ANTHROPIC_API_KEY", "test-key")
            .current_dir(scratch.project())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let stdin = child.stdin.take();
        let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let (ended, results) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).expect("JSON");
                if event["type"] == "result" && ended.send(()).is_err() {
                    break;
                }
            }
        });
        Self { child, stdin, results, cast, scratch, _server: server }
    }

    /// Has the lead make these calls, and waits until its turn and all that comes of it are over.
    fn say(&mut self, calls: impl FnOnce(&mut Cast) -> Vec<Value>) {
        // Results of turns that a notice had the lead take meanwhile.
        while self.results.try_recv().is_ok() {}
        {
            let mut cast = self.cast.lock();
            cast.planned = calls(&mut cast);
            // A notice may have had the lead end a turn meanwhile, so that the result below is an earlier one: what was
            // seen of the last message must not count for this one.
            (cast.spoken, cast.heard) = (None, None);
        }
        let message = json!({"type": "user", "message": {"role": "user", "content": "Go on."}});
        let stdin = self.stdin.as_mut().expect("an open input");
        writeln!(stdin, "{message}").expect("a lead that listens");
        self.results.recv_timeout(LONGEST_WAIT).expect("the end of the lead's turn");
    }

    /// Ends the session and waits for the end of the program.
    fn end(mut self) {
        drop(self.stdin.take());
        let until = Instant::now() + LONGEST_WAIT;
        while self.child.try_wait().expect("a child").is_none() {
            assert!(Instant::now() < until, "the lead did not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The processor time of the lead, its members and what watches over them.
    fn used(&self) -> Duration {
        let project = self.scratch.root().canonicalize().expect("a path");
        let home = self.scratch.home();
        let mut nanos = 0;
        for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
            let path = entry.path();
            let is_its = std::fs::read_link(path.join("cwd"))
                .is_ok_and(|cwd| cwd.starts_with(&project) || cwd.starts_with(&home));
            if !is_its {
                continue;
            }
            for task in std::fs::read_dir(path.join("task")).into_iter().flatten().flatten() {
                let stat = std::fs::read_to_string(task.path().join("schedstat"));
                let stat = stat.unwrap_or_default();
                let own: Option<u64> =
                    stat.split(' ').next().and_then(|number| number.parse().ok());
                nanos += own.unwrap_or_default();
            }
        }
        Duration::from_nanos(nanos)
    }

    fn wake(&mut self) -> Duration {
        let mut times = Vec::new();
        for _ in 0..WAKES {
            self.say(|cast| {
                vec![cast.call("SendMessage", json!({"to": "reader", "message": "Look."}))]
            });
            let heard = || {
                let cast = self.cast.lock();
                Some(cast.heard?.saturating_duration_since(cast.spoken?))
            };
            let until = Instant::now() + Duration::from_secs(20);
            times.push(loop {
                match heard() {
                    Some(time) => break time,
                    None => assert!(Instant::now() < until, "the member was not woken"),
                }
                std::thread::sleep(Duration::from_millis(1));
            });
            // It is at rest again.
            std::thread::sleep(Duration::from_millis(30));
        }
        times.sort();
        times[WAKES / 2]
    }

    fn write(&mut self) -> Duration {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let before = self.used();
            self.cast.lock().answers = ANSWERS;
            self.say(|cast| {
                vec![cast.call("SendMessage", json!({"to": "writer", "message": "Write."}))]
            });
            let until = Instant::now() + LONGEST_WAIT;
            loop {
                let used = self.used();
                std::thread::sleep(Duration::from_millis(300));
                if self.cast.lock().answers == 0
                    && self.used().saturating_sub(used) < Duration::from_millis(3)
                {
                    break;
                }
                assert!(Instant::now() < until, "the writer did not end");
            }
            let messages = u32::try_from(BATCH * ANSWERS).expect("a small number");
            times.push(self.used().saturating_sub(before) / messages);
        }
        times.sort();
        times[ROUNDS / 2]
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        // It has ended, but where an assertion failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ratio(what: &str, found: Duration, target: Duration) -> f64 {
    let ratio = found.as_secs_f64() / target.as_secs_f64();
    println!("{what}: {found:.1?} (target {target:?}, ratio {ratio:.2})");
    ratio
}

fn main() -> ExitCode {
    let mut lead = Lead::start();
    lead.say(|cast| {
        let start = |cast: &mut Cast, name: &str| {
            let input = json!({"description": "work", "prompt": "Wait for work.",
                               "subagent_type": "general-purpose", "name": name});
            cast.call("Agent", input)
        };
        vec![start(cast, "writer"), start(cast, "reader")]
    });
    std::thread::sleep(Duration::from_secs(1));
    let way = lead.wake();
    let message = lead.write();
    lead.end();
    let ratios = [
        ratio(
            "a message to a member at rest in a process of its own is read after",
            way,
            LONGEST_WAY,
        ),
        ratio(
            "a message between members in processes takes, in all of them",
            message,
            MOST_FOR_MESSAGE,
        ),
    ];
    if ratios.iter().all(|ratio| *ratio <= 1.0) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
