//! A list of a thousand tasks, worked on by fifty processes that are killed at any moment.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use centurion_protocol::Timestamp;
use centurion_team::{
    Actor, LogEntry, NewTask, Status, TaskChange, TaskList, TaskNumber, TaskRequest,
};
use centurion_testkit::{Lack, skip};

const TASKS: u64 = 1_000;
const WORKERS: usize = 50;
/// How many are killed.
const KILLS: usize = 60;
/// The directory and the name that a process has as a worker.
const VARIABLES: [&str; 2] = ["CENTURION_TASK_LISTS", "CENTURION_TASK_WORKER"];

fn now() -> Timestamp {
    jiff::Timestamp::UNIX_EPOCH.into()
}

fn open(lists: &Path) -> TaskList {
    TaskList::open(lists, &"alpha".parse().unwrap()).unwrap()
}

/// A number that comes from others, so that a failure comes again.
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ (number >> 29)
}

/// The worker: claims free tasks and completes them, until all are done. Without its variables it is the other half of a
/// test, and proves nothing alone.
#[test]
fn worker() {
    let [Ok(lists), Ok(name)] = VARIABLES.map(std::env::var) else {
        return skip(Lack::OtherHalf);
    };
    let mut list = open(lists.as_ref());
    let members = [name.clone(), "team-lead".to_owned()];
    let worker = Actor { name: &name, is_lead: false, members: &members };
    let mut turn = name.bytes().map(u64::from).sum::<u64>();
    loop {
        let tasks = list.tasks().unwrap();
        let is_free = |task: &&centurion_team::Task| {
            task.status == Status::Pending
                && task.owner.is_none()
                && list.open_blockers(task).is_empty()
        };
        let free: Vec<TaskNumber> = tasks.iter().filter(is_free).map(|task| task.id).collect();
        if free.is_empty() {
            if tasks.iter().all(|task| task.status == Status::Completed) {
                break;
            }
            // Others have what is left, or died with it: look again.
            std::thread::yield_now();
            continue;
        }
        turn = mix(turn + 1);
        let id = free[usize::try_from(turn % free.len() as u64).unwrap()];
        let status = |status| TaskRequest { status: Some(status), ..TaskRequest::new(id) };
        // Another worker may have been faster.
        if list.update(&worker, &status(Status::InProgress), now()).is_ok() {
            list.update(&worker, &status(Status::Completed), now()).unwrap();
        }
    }
}

fn start(lists: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "workers::worker", "--nocapture"])
        .envs([(VARIABLES[0], lists.as_os_str()), (VARIABLES[1], name.as_ref())])
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// A thousand tasks, half of which wait for an earlier one.
fn prepare(lists: &Path) {
    let mut list = open(lists);
    let members = ["team-lead".to_owned()];
    let lead = Actor { name: "team-lead", is_lead: true, members: &members };
    for number in 1..=TASKS {
        let task = NewTask { subject: format!("task {number}"), ..NewTask::default() };
        list.create(&lead, task, now()).unwrap();
        if number > 1 && mix(number).is_multiple_of(2) {
            let first = TaskNumber(number - 1 - mix(number + TASKS) % (number - 1).min(20));
            let request =
                TaskRequest { add_blocked_by: vec![first], ..TaskRequest::new(TaskNumber(number)) };
            list.update(&lead, &request, now()).unwrap();
        }
    }
}

#[test]
fn fifty_processes_do_a_thousand_tasks_once_each_though_many_are_killed() {
    // D-68, S-348, teams.md 10.6, 11.13
    let scratch = tempfile::tempdir().unwrap();
    let lists = scratch.path();
    prepare(lists);
    let mut workers: Vec<(String, Child)> = (0..WORKERS)
        .map(|number| (format!("w{number}"), start(lists, &format!("w{number}"))))
        .collect();
    let mut list = open(lists);
    for kill in 0..KILLS {
        let at = usize::try_from(mix(kill as u64) % WORKERS as u64).unwrap();
        let (name, mut process) = workers.swap_remove(at);
        // One that is done already has nothing to give back.
        let _ = process.kill();
        process.wait().unwrap();
        list.release(|owner| owner == name, now()).unwrap();
        let next = format!("w{}", WORKERS + kill);
        let process = start(lists, &next);
        workers.push((next, process));
    }
    for (name, mut process) in workers {
        assert!(process.wait().unwrap().success(), "{name}");
    }
    check(&std::fs::read_to_string(lists.join("alpha/log.jsonl")).unwrap());
}

/// Reads the log from its beginning: every task is completed once, by the worker that has it, and none is begun before
/// what it waits for.
fn check(log: &str) {
    let mut tasks: BTreeMap<TaskNumber, (Status, Option<String>)> = BTreeMap::new();
    let mut waits: BTreeMap<TaskNumber, Vec<TaskNumber>> = BTreeMap::new();
    // A worker that was killed may have left half a line.
    let entries = log.lines().filter_map(|line| serde_json::from_str::<LogEntry>(line).ok());
    for entry in entries {
        match entry.what {
            TaskChange::Created { id, .. } => drop(tasks.insert(id, (Status::Pending, None))),
            TaskChange::Released { ids } => {
                tasks.extend(ids.into_iter().map(|id| (id, (Status::Pending, None))));
            }
            TaskChange::Changed { id, status, owner, add_blocked_by, .. } => {
                waits.entry(id).or_default().extend(add_blocked_by);
                let Some(status) = status else { continue };
                let is_open = |it: &&TaskNumber| tasks[*it].0 != Status::Completed;
                assert_eq!(waits[&id].iter().find(is_open), None, "#{id} was begun too early");
                let task = tasks.get_mut(&id).unwrap();
                assert_ne!(task.0, Status::Completed, "#{id} was done already");
                assert!(task.1.as_deref().is_none_or(|it| it == entry.by), "#{id} is {task:?}");
                task.0 = status;
                task.1 = owner.or(task.1.take());
            }
        }
    }
    assert_eq!(tasks.len() as u64, TASKS);
    assert!(tasks.values().all(|(status, _)| *status == Status::Completed), "all are done");
}
