//! Fifty members on one list of tasks that wait for each other. Members fail and are stopped, the process dies and is
//! resumed; every task is done once, and none is begun before what it waits for.
//!
//! `CENTURION_CROWD=1000` gives them a thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use centurion_engine::Handle;
use centurion_model::{EventStream, Provider, Request};
use centurion_protocol::{StopReason, World};
use centurion_team::{
    Actor, LogEntry, NewTask, Status, TaskChange, TaskList, TaskNumber, TaskRequest,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::bench::messages_of;
use crate::dice::Dice;
use crate::line::Line;
use crate::plan::Plan;
use crate::process::{Ended, run};
use crate::stage::{Later, Stage, TEAM};
use crate::waking_lead::{Call, WakingLead};

const MEMBERS: usize = 50;
/// A member rests after so many answers, so that it is also woken.
const MOST_ANSWERS: usize = 40;

/// The model of all of them.
struct Crowd {
    dice: Dice,
    /// How many tasks there are.
    tasks: usize,
    state: Mutex<CrowdState>,
}

#[derive(Default)]
struct CrowdState {
    lead: WakingLead,
    /// What members know to be done.
    done: BTreeSet<usize>,
}

impl Crowd {
    fn call(&self, tool: &'static str, input: Value) -> Call {
        self.state.lock().lead.call(tool, input)
    }

    fn update(&self, task: usize, status: &str) -> Call {
        self.call("TaskUpdate", json!({"taskId": task.to_string(), "status": status}))
    }

    /// Starts all members, and wakes them as long as there is something to do.
    fn lead(&self, request: &Request) -> Line {
        let state = &mut *self.state.lock();
        let is_over = || state.done.len() == self.tasks;
        let names = (0..MEMBERS).map(|number| format!("m{number}"));
        state.lead.answer(request, is_over, "Work on the list.", names)
    }

    /// Finishes the task that was claimed last, and claims another one.
    fn member(&self, messages: &[Value]) -> Line {
        let latency = Duration::from_millis(self.dice.below(3_000) as u64);
        let rests = || Line::Text(latency, "I rest.".to_owned(), StopReason::EndTurn);
        if self.dice.below(300) == 0 {
            return Line::Error;
        }
        let woken = messages.iter().rposition(|it| it["role"] == "user" && !is_result(it));
        let answers = messages[woken.unwrap_or_default()..].iter();
        if answers.filter(|it| it["role"] == "assistant").count() > MOST_ANSWERS {
            return rests();
        }
        let mut calls = Vec::new();
        if let [.., said, results] = messages
            && is_result(results)
        {
            for (call, result) in pairs(said, results) {
                let task: usize = call["input"]["taskId"].as_str().unwrap().parse().unwrap();
                let is_refused = result["is_error"] == true;
                match call["input"]["status"].as_str().unwrap() {
                    "completed" if !is_refused => drop(self.state.lock().done.insert(task)),
                    "in_progress" if !is_refused => calls.push(self.update(task, "completed")),
                    _ if result["content"].to_string().contains("is completed") => {
                        self.state.lock().done.insert(task);
                    }
                    _ => {}
                }
            }
        }
        let finished: Vec<Value> = calls.iter().map(|call| call.2["taskId"].clone()).collect();
        match self.next(&finished) {
            Some(task) => calls.push(self.update(task, "in_progress")),
            None if calls.is_empty() => return rests(),
            None => {}
        }
        Line::Calls(latency, calls)
    }

    /// One of the first tasks that no member is known to have done, and that are not being finished.
    fn next(&self, finished: &[Value]) -> Option<usize> {
        let state = self.state.lock();
        let is_open =
            |id: &usize| !state.done.contains(id) && !finished.contains(&json!(id.to_string()));
        let open: Vec<usize> = (1..=self.tasks).filter(is_open).take(80).collect();
        open.get(self.dice.below(open.len())).copied()
    }
}

fn is_result(message: &Value) -> bool {
    message["content"][0]["type"] == "tool_result"
}

/// The calls of an answer, each with its result.
fn pairs<'a>(said: &'a Value, results: &'a Value) -> Vec<(&'a Value, &'a Value)> {
    let blocks = |message: &'a Value| message["content"].as_array().into_iter().flatten();
    let result = |call: &'a Value| {
        let result = blocks(results).find(|it| it["tool_use_id"] == call["id"])?;
        Some((call, result))
    };
    blocks(said).filter(|it| it["type"] == "tool_use").filter_map(result).collect()
}

impl Provider for Crowd {
    fn stream(&self, request: Request) -> EventStream {
        let line = if request.agent.is_none() {
            self.lead(&request)
        } else {
            self.member(&messages_of(&request))
        };
        line.events(1, &request.model, (100, 10))
    }

    fn credential(&self) -> &'static str {
        "crowd"
    }
}

/// So many tasks, half of which wait for one or two earlier ones.
fn prepare(stage: &Stage, dice: &Dice, tasks: usize) {
    let mut list = TaskList::open(&stage.lists(), &TEAM.parse().unwrap()).unwrap();
    let members = ["team-lead".to_owned()];
    let lead = Actor { name: "team-lead", is_lead: true, members: &members };
    let now = Later::new(0, 0).now().into();
    for number in 1..=tasks {
        let task = NewTask { subject: format!("task {number}"), ..NewTask::default() };
        list.create(&lead, task, now).unwrap();
        if number > 1 && dice.chance(50) {
            let before = |_| TaskNumber((number - 1 - dice.below(20.min(number - 1))) as u64);
            let add_blocked_by = (0..=dice.below(2)).map(before).collect();
            let wish =
                TaskRequest { add_blocked_by, ..TaskRequest::new(TaskNumber(number as u64)) };
            list.update(&lead, &wish, now).unwrap();
        }
    }
}

/// Stops a few members, one after another, and ends the process.
async fn stop_some(handle: Handle, dice: &Dice, dies: bool) -> Ended {
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(5 + dice.below(20) as u64)).await;
        // It may be at rest, or gone already.
        let _ = handle.stop_task(&format!("m{}", dice.below(MEMBERS))).await;
    }
    if dies {
        return Ended::Died;
    }
    std::future::pending().await
}

/// Reads the log from its beginning: what was begun, by whom, and what it had to wait for.
fn check_log(text: &str, tasks: usize) {
    let mut status: BTreeMap<TaskNumber, (Status, Option<String>)> = BTreeMap::new();
    let mut waits: BTreeMap<TaskNumber, Vec<TaskNumber>> = BTreeMap::new();
    let mut completed: BTreeMap<TaskNumber, usize> = BTreeMap::new();
    for line in text.lines() {
        // A worker that was killed may have left half a line.
        let Ok(entry) = serde_json::from_str::<LogEntry>(line) else { continue };
        match entry.what {
            TaskChange::Created { id, .. } => drop(status.insert(id, (Status::Pending, None))),
            TaskChange::Released { ids } => {
                for id in ids {
                    status.insert(id, (Status::Pending, None));
                }
            }
            TaskChange::Changed { id, status: new, owner, add_blocked_by, .. } => {
                waits.entry(id).or_default().extend(add_blocked_by);
                let now = status.get_mut(&id).unwrap();
                let is_free = now.1.as_deref().is_none_or(|owner| owner == entry.by);
                assert!(is_free || entry.by == "team-lead", "{} took #{id} of {now:?}", entry.by);
                if let Some(owner) = owner {
                    now.1 = Some(owner).filter(|owner| !owner.is_empty());
                }
                let Some(new) = new else { continue };
                now.0 = new;
                if new == Status::Completed {
                    *completed.entry(id).or_default() += 1;
                }
                let is_open = |it: &&TaskNumber| status[*it].0 != Status::Completed;
                let open = waits[&id].iter().find(is_open);
                assert!(new == Status::Pending || open.is_none(), "#{id} waits for {open:?}");
            }
        }
    }
    assert_eq!(completed.len(), tasks, "all are done");
    let twice: Vec<_> = completed.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[test]
fn fifty_members_do_each_task_once_though_members_and_process_die() {
    // D-68, S-348, teams.md 10.6, 11.13
    let seed = crate::seeds::number("CENTURION_TEAM_SEED").unwrap_or(3);
    let dice = Dice::new(seed);
    let stage = Stage::new(Plan::without_events(seed));
    let tasks =
        crate::seeds::number("CENTURION_CROWD").map_or(200, |it| usize::try_from(it).unwrap());
    prepare(&stage, &dice, tasks);
    let crowd = Arc::new(Crowd { dice: Dice::new(seed + 1), tasks, state: Mutex::default() });
    let mut ended = Ended::Died;
    for number in 0..3 {
        let world: Arc<dyn World> = Arc::new(Later::new(seed, number));
        let options = stage.options(number, Arc::clone(&crowd) as Arc<dyn Provider>, &world);
        let dies = number < 2;
        ended = run(options, &*world, Some("Go on."), async |handle| {
            stop_some(handle, &dice, dies).await
        });
        if matches!(ended, Ended::Over(_)) {
            break;
        }
    }
    assert!(matches!(ended, Ended::Over(_)), "{ended:?}");
    let log = stage.lists().join(TEAM).join("log.jsonl");
    check_log(&std::fs::read_to_string(log).unwrap(), tasks);
}
