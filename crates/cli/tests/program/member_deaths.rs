//! Random teams and storms of mail with real processes, in every place where members run: processes of members and of the
//! lead are killed, later processes continue, and every message that was acknowledged is read once, in the order of its pair.
//!
//! `CENTURION_TEAM_SEED=7` plays that team alone, `CENTURION_TEAM_SEEDS=60` plays 60; `CENTURION_STORM=10000` has each
//! writer of the storm send so many (`cargo xtask storm`).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_protocol::{SeededWorld, World as _};
use centurion_testkit::{Recorded, Reply, sse};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::crash::build_shim;
use crate::member_mail::{self, Record, records};
use crate::members::{TEAMS, member, members_in, says};
use crate::program::{Program, ended, eventually};
use crate::stage::Stage;

const PLACES: [&str; 3] = ["in-process", "process", "tmux"];
const ID: &str = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f17";
/// The type of members that ask before they write, where their lead need not.
const CAREFUL: &str = "careful";
/// The most turns in which a lead sets its members to work in one life.
const MOST_ROUNDS: usize = 15;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

/// Chance that comes from a seed.
#[derive(Clone)]
struct Dice(Arc<SeededWorld>);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Arc::new(SeededWorld::new(seed)))
    }

    fn below(&self, count: usize) -> usize {
        usize::try_from(self.0.random() % u64::try_from(count.max(1)).unwrap()).unwrap()
    }

    fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A team whose model is in the test.
struct Cast {
    dice: Dice,
    /// The members that write, with how many messages each sends, and those that only read.
    writers: Vec<String>,
    readers: Vec<String>,
    most: u64,
    /// The most messages of one answer.
    batch: u64,
    /// Members also plan, fail, run commands and are asked to end.
    is_lively: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    has_started: bool,
    sent: Vec<u64>,
    calls: u64,
    /// No member fails any more, and the lead speaks to all of them.
    is_calm: bool,
    wakes_all: bool,
    /// Requests that have their answer.
    answered: Vec<String>,
    /// The number of times that the lead has spoken to all in this life: of those that have left it hears no end.
    rounds: usize,
}

/// Names of members, of every form that a name may have.
fn random_names(dice: &Dice, count: usize) -> Vec<String> {
    let name = |number: usize| match dice.below(6) {
        0 => format!("w{number}"),
        1 => format!("{number}_-{number}"),
        2 => format!("{}{number}", "n".repeat(63)),
        3 => format!("Team-Lead{number}"),
        4 => format!("{number}"),
        _ => format!("W{number}-at-work"),
    };
    (0..count).map(name).collect()
}

impl Cast {
    fn names(&self) -> impl Iterator<Item = &String> {
        self.writers.iter().chain(&self.readers)
    }

    fn call(&self, tool: &str, input: Value) -> Value {
        let mut state = self.state.lock();
        state.calls += 1;
        sse::tool_use(&format!("toolu_{}", state.calls), tool, input)
    }

    fn says(&self, to: &str, message: &Value) -> Value {
        self.call("SendMessage", json!({"to": to, "message": message}))
    }

    fn answer(&self, request: &Recorded) -> Reply {
        let body = request.json();
        let last = body["messages"].as_array().unwrap().last().unwrap().to_string();
        if last.contains("<summary>") {
            return Reply::text("<summary>They write and read.</summary>");
        }
        let name = request.header("x-claude-code-agent-id");
        match name.and_then(|id| id.split_once('@')) {
            None => self.lead(&last),
            Some((name, _)) => self.member(name, &last),
        }
    }

    fn lead(&self, last: &str) -> Reply {
        let answers = self.answers(last);
        if !answers.is_empty() {
            return Reply::blocks(answers);
        }
        if last.contains("tool_result") {
            return Reply::text("I wait.");
        }
        let (is_first, wakes_all) = {
            let mut state = self.state.lock();
            let is_first = !std::mem::replace(&mut state.has_started, true);
            (is_first, std::mem::take(&mut state.wakes_all))
        };
        let is_over = {
            let mut state = self.state.lock();
            state.rounds += 1;
            state.rounds > MOST_ROUNDS || state.sent.iter().all(|sent| *sent >= self.most)
        };
        if is_first {
            let mut starts: Vec<Value> = self.names().map(|name| self.starts(name)).collect();
            if self.is_lively && self.dice.chance(50) {
                // The same name again: it gets another one, and only reads.
                starts.push(self.starts(&self.writers[0]));
            }
            return Reply::blocks(starts);
        }
        if wakes_all {
            // Also to those that have left.
            let all = self.names().cloned().chain(self.namesake());
            let to_all = all.map(|name| self.says(&name, &json!("Read on.")));
            return Reply::blocks(to_all.collect::<Vec<_>>());
        }
        if is_over {
            return Reply::text("Done.");
        }
        let is_calm = self.state.lock().is_calm;
        if self.is_lively && !is_calm && self.dice.chance(30) {
            let name = &self.writers[self.dice.below(self.writers.len())];
            return Reply::blocks([self.says(name, &json!({"type": "shutdown_request"}))]);
        }
        Reply::blocks([self.says("*", &json!("Go on."))])
    }

    /// The name that a second member of the first name has, where there may be one.
    fn namesake(&self) -> Option<String> {
        let name = self.writers.first().filter(|_| self.is_lively)?;
        Some(format!("{}-2", &name[..name.len().min(62)]))
    }

    /// The lead's answers to plans and questions. Some questions it does not answer.
    fn answers(&self, last: &str) -> Vec<Value> {
        let plans = self.unanswered(last, "plan_approval-").into_iter().map(|id| {
            let (_, name) = id.split_once('@').unwrap();
            let name = name.split('@').next().unwrap().to_owned();
            let approve = self.dice.chance(70);
            let answer =
                json!({"type": "plan_approval_response", "request_id": id, "approve": approve});
            self.says(&name, &answer)
        });
        let plans: Vec<Value> = plans.collect();
        let asks = self.unanswered(last, "perm-").into_iter().filter(|_| self.dice.chance(80));
        let asks = asks.map(|id| {
            let approve = self.dice.chance(60);
            let answer = json!({"type": "permission_response", "request_id": id, "approve": approve,
                                "reason": "not now"});
            self.says(&self.writers[0], &answer)
        });
        plans.into_iter().chain(asks).collect()
    }

    fn starts(&self, name: &str) -> Value {
        let kind = if self.is_lively && self.dice.chance(60) { CAREFUL } else { "general-purpose" };
        let mut input = json!({"description": "work", "prompt": "Write, or read.",
                               "subagent_type": kind, "name": name});
        if self.is_lively && self.dice.chance(30) {
            input["mode"] = json!("plan");
        }
        self.call("Agent", input)
    }

    /// The ids of requests in a text that have no answer yet; they have one now.
    fn unanswered(&self, text: &str, kind: &str) -> Vec<String> {
        let found = text.match_indices(kind).filter_map(|(at, _)| {
            let id: String = text[at..]
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || "-_@".contains(*letter))
                .collect();
            (id.contains('@') || kind == "perm-" && id.len() > kind.len()).then_some(id)
        });
        let mut state = self.state.lock();
        let mut new: Vec<String> = found.filter(|id| !state.answered.contains(id)).collect();
        new.sort();
        new.dedup();
        state.answered.extend(new.iter().cloned());
        new
    }

    fn member(&self, name: &str, last: &str) -> Reply {
        let delay = Duration::from_millis(self.dice.below(20) as u64);
        if let Some(id) = self.unanswered(last, "shutdown-").first() {
            let answer = json!({"type": "shutdown_response", "request_id": id,
                                "approve": !self.state.lock().is_calm && self.dice.chance(50),
                            "reason": "not yet"});
            return Reply::blocks([self.says("team-lead", &answer)]);
        }
        let is_calm = self.state.lock().is_calm;
        if !is_calm && self.dice.below(if self.is_lively { 60 } else { 200 }) == 0 {
            return Reply::error(400, "invalid_request_error", "a fault of the test");
        }
        let rests = || Reply::text("I rest.").delay(delay);
        let Some(writer) = self.writers.iter().position(|it| it == name) else {
            return rests();
        };
        let (from, until) = {
            let mut state = self.state.lock();
            let from = state.sent[writer];
            let until = self
                .most
                .min(from + 1 + self.dice.below(usize::try_from(self.batch).unwrap()) as u64);
            state.sent[writer] = until;
            (from, until)
        };
        if from == until {
            return rests();
        }
        let mut calls = Vec::new();
        if self.is_lively && self.dice.chance(20) {
            calls.push(self.call("ExitPlanMode", json!({"plan": "write"})));
        }
        if self.is_lively && self.dice.chance(20) {
            calls.push(self.call("Bash", json!({"command": "sleep 0.02"})));
        }
        if self.is_lively && self.dice.chance(30) {
            // A careful one asks the lead.
            let file = format!("{name}-{until}.txt");
            calls.push(self.call("Write", json!({"file_path": file, "content": "x"})));
        }
        for number in from..until {
            // Numbers begin with one: zero is what was read before the first.
            let text = json!(format!("message <{}> of {name}", number + 1));
            calls.push(self.says(&self.recipient(name), &text));
        }
        Reply::blocks(calls).delay(delay)
    }

    fn recipient(&self, of: &str) -> String {
        if !self.readers.is_empty() {
            return self.readers[self.dice.below(self.readers.len())].clone();
        }
        loop {
            let to = match self.dice.below(self.writers.len() + 2) {
                0 => "*".to_owned(),
                1 => "team-lead".to_owned(),
                number => self.writers[number - 2].clone(),
            };
            if to != of {
                return to;
            }
        }
    }
}

/// A session of several processes, one after another.
struct Play {
    program: Program,
    cast: Arc<Cast>,
    place: &'static str,
}

impl Play {
    fn new(cast: Cast, place: &'static str) -> Self {
        let cast = Arc::new(cast);
        cast.state.lock().sent = vec![0; cast.writers.len()];
        let model = Arc::clone(&cast);
        let program = Program::with_forgetful_handler(move |request| model.answer(request));
        let careful =
            "---\nname: careful\ndescription: asks\npermissionMode: default\n---\nBe careful.\n";
        program.scratch.write_home(".claude/agents/careful.md", careful);
        Self { program, cast, place }
    }

    fn start(&self, is_first: bool) -> Child {
        self.cast.state.lock().rounds = 0;
        let id = if is_first { "--session-id" } else { "--resume" };
        let mut command = self.program.command([
            "-p",
            "Go on.",
            id,
            ID,
            "--settings",
            TEAMS,
            "--teammate-mode",
            self.place,
            "--allowedTools",
            "Bash",
            "--permission-mode",
            "acceptEdits",
            "--output-format",
            "stream-json",
            "--verbose",
        ]);
        command.env("CLAUDE_CODE_TEAM_TEARDOWN_PARK_TIMEOUT_MS", "2000");
        command.spawn().unwrap()
    }

    /// A life of the lead in which some members are killed, and perhaps the lead itself, each behind an event.
    fn live(&self, is_first: bool, dice: &Dice, lead_dies: bool) {
        let mut child = self.start(is_first);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let all = self.cast.writers.len() * usize::try_from(self.cast.most).unwrap();
        let (mut next, last) = (5 + dice.below(30), 20 + dice.below(100 + 2 * all));
        for (at, line) in lines.enumerate() {
            if line.is_err() || lead_dies && at == last {
                break;
            }
            if at == next {
                let members = members_in(&self.program);
                if !members.is_empty() {
                    // It may have ended meanwhile.
                    let victim = members[dice.below(members.len())].to_string();
                    let _ = std::process::Command::new("kill").args(["-9", &victim]).output();
                }
                next += 10 + dice.below(60 + all / 2);
            }
        }
        if lead_dies {
            let _ = child.kill();
        }
        child.wait().unwrap();
        self.no_member_is_left();
    }

    fn no_member_is_left(&self) {
        let is_over = || members_in(&self.program).is_empty().then_some(());
        eventually("the end of the members", is_over);
    }

    /// The last lives, in which nothing is killed and the lead speaks to all members: in the first of them a member that was asked
    /// to end before may leave without having read everything.
    fn calm_down(&self, when: &str) -> Vec<Record> {
        self.calm_life(when);
        self.calm_life(when)
    }

    /// A life in which no agent has anything to do: what is on disk is the whole state, and says so again.
    fn replay(&self, before: &[Record], when: &str) {
        self.cast.state.lock().sent.fill(self.cast.most);
        let end = ended(self.start(false).wait_with_output().unwrap());
        assert_eq!(end.code, Some(0), "{when}: {}\n{}", end.stdout, end.stderr);
        self.no_member_is_left();
        let after = records(&self.program);
        let state = |records: &[Record]| records.iter().map(Record::state).collect::<Vec<_>>();
        assert_eq!(state(before), state(&after), "{when}: a replay gives the same state");
    }

    fn calm_life(&self, when: &str) -> Vec<Record> {
        let mut state = self.cast.state.lock();
        (state.is_calm, state.wakes_all) = (true, true);
        drop(state);
        let end = ended(self.start(false).wait_with_output().unwrap());
        assert_eq!(end.code, Some(0), "{when}: {}\n{}", end.stdout, end.stderr);
        self.no_member_is_left();
        records(&self.program)
    }
}

fn check(records: &[Record], when: &str) {
    member_mail::holds(records, when);
    member_mail::ends_are_told_once(records, when);
}

/// Plays a team; adds what happened to a tally.
fn play(seed: u64, tally: &mut Tally) {
    let dice = Dice::new(seed);
    let place = PLACES[usize::try_from(seed).unwrap() % PLACES.len()];
    let when = format!("seed {seed}, {place}");
    let writers = 2 + dice.below(3);
    let cast = Cast {
        dice: Dice::new(seed + 1),
        writers: random_names(&dice, writers),
        readers: Vec::new(),
        most: 3 + dice.below(15) as u64,
        batch: 1 + dice.below(4) as u64,
        is_lively: true,
        state: Mutex::default(),
    };
    let play = Play::new(cast, place);
    play.live(true, &dice, dice.chance(60));
    if play.program.transcripts().is_empty() {
        // It died before it had begun.
        return;
    }
    check(&records(&play.program), &when);
    if dice.chance(50) {
        play.live(false, &dice, dice.chance(50));
        check(&records(&play.program), &when);
    }
    let records = play.calm_down(&when);
    check(&records, &format!("{when}, at the end"));
    for record in &records {
        let path = record.path.display();
        assert_eq!(record.waiting(), 0, "{when}: {path} left mail unread, {:?}", record.stoppers());
        let wrong = record.calls_without_one_result();
        assert_eq!(wrong, [""; 0], "{when}: {path}");
    }
    let counts = tally.entry(place).or_default();
    for what in member_mail::happened(&records) {
        *counts.entry(what).or_default() += 1;
    }
    play.replay(&records, &when);
}

/// The number of times that something happened, in each place where members run.
type Tally = BTreeMap<&'static str, BTreeMap<String, usize>>;

/// The events that random teams come to in each place, if enough of them are played.
const HAPPENINGS: [&str; 8] = [
    "failed",
    "idle",
    "interrupted",
    "permission_request",
    "plan_approval_request",
    "plan_approval_response",
    "resumed",
    "shutdown_request",
];
/// The number of teams that come to all of that in each place.
const MANY: u64 = 60;

#[test]
fn random_teams_in_every_place_keep_their_promises_though_processes_are_killed() {
    // I-3, S-347, S-355, D-62 to D-68, teams.md 10: in this process, processes of their own and panes
    let mut tally = Tally::new();
    if let Some(seed) = number("CENTURION_TEAM_SEED") {
        return play(seed, &mut tally);
    }
    let teams = number("CENTURION_TEAM_SEEDS").unwrap_or(9);
    (0..teams).for_each(|seed| play(seed, &mut tally));
    eprintln!("{tally:#?}");
    let places: Vec<&str> = tally.keys().copied().collect();
    assert_eq!(places, PLACES);
    for what in HAPPENINGS {
        let has_it = |seen: &&BTreeMap<String, usize>| seen.contains_key(what);
        let count = tally.values().filter(has_it).count();
        let least = if teams < MANY { 1 } else { PLACES.len() };
        assert!(count >= least, "{what} happened in {count} places: {tally:#?}");
    }
}

#[test]
fn sixteen_writers_in_processes_lose_and_double_nothing_though_processes_are_killed() {
    // teams.md 10.1, 11.1: concurrent writers lose mail
    let most = number("CENTURION_STORM").unwrap_or(20);
    let seed = number("CENTURION_TEAM_SEED").unwrap_or(3);
    let dice = Dice::new(seed);
    let cast = Cast {
        dice: Dice::new(seed + 1),
        writers: (0..16).map(|number| format!("w{number}")).collect(),
        readers: (0..4).map(|number| format!("r{number}")).collect(),
        most,
        batch: (most / 10).clamp(1, 200),
        is_lively: false,
        state: Mutex::default(),
    };
    let play = Play::new(cast, "process");
    let begun = Instant::now();
    for life in 0..3 {
        play.live(life == 0, &dice, life < 2);
        check(&records(&play.program), &format!("life {life}"));
    }
    let records = play.calm_down("the last life");
    check(&records, "at the end");
    let mut accepted = 0;
    for record in &records {
        assert_eq!(record.waiting(), 0, "{} left mail unread", record.path.display());
        let is_reader = record.name().is_some_and(|name| name.starts_with('r'));
        accepted += if is_reader { record.count() } else { 0 };
    }
    // Members that were killed do not send what was left.
    assert!(accepted as u64 > 16 * most / 3, "{accepted} messages were accepted");
    eprintln!("{accepted} messages in {:?}", begun.elapsed());
}

#[test]
fn killed_at_writes_of_any_transcript_a_lead_and_its_members_continue_and_each_is_told_of_once() {
    // teams.md 10.1, 10.9; in a process of its own a member dies at the same write of its own as the lead
    let burst = |to: &[&str], from: &str| -> Vec<Value> {
        let texts = (1..4).map(|number| format!("message <{number}> of {from}"));
        texts.flat_map(|text| to.iter().map(move |to| says(to, &text))).collect()
    };
    let scripts = json!({
        "lead": [
            [member("w1", "@@one"), member("w2", "@@two")],
            burst(&["w1", "w2"], "team-lead"),
            "waiting", "heard", "heard", "heard",
        ],
        "one": [burst(&["w2", "team-lead"], "w1"), "resting", "resting", "resting"],
        "two": [burst(&["w1", "team-lead"], "w2"), "resting", "resting", "resting"],
        "look": [[says("w1", "@@heard"), says("w2", "@@heard")], "seen", "seen", "seen", "seen"],
        "heard": ["read", "read", "read", "read"],
    });
    let library = tempfile::tempdir().unwrap();
    let shim = build_shim(library.path());
    for place in ["in-process", "process"] {
        let flags = ["--settings", TEAMS, "--teammate-mode", place];
        let mut was_killed = 0;
        for write in (2..60).step_by(3) {
            let how = if write % 2 == 0 { "torn" } else { "after" };
            let when = format!("{place}, {how} write {write}");
            let stage = Stage::new(&scripts);
            let mut command =
                stage.command("@@lead", &[&flags[..], &["--session-id", ID]].concat());
            command.env("LD_PRELOAD", &shim).env("KILL_AT_WRITE", write.to_string());
            let run = command.env("KILL_HOW", how).output().unwrap();
            was_killed += usize::from(run.status.code() != Some(0));
            eventually("the end of the members", || {
                members_in(&stage.program).is_empty().then_some(())
            });
            check(&records(&stage.program), &when);
            for later in ["next", "later"] {
                let told = stage.run("@@look", &[&flags[..], &["--resume", ID]].concat());
                // Before the first whole record there is no session to resume.
                if write > 2 {
                    told.assert_code(0);
                }
                let records = records(&stage.program);
                check(&records, &format!("{when}, {later}"));
                let left = records.iter().filter(|it| it.waiting() > 0).count();
                assert_eq!(left, 0, "{when}, {later}: mail is unread");
            }
        }
        assert!(was_killed > 6, "{place}: {was_killed}");
    }
}
