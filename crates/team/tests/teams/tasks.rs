//! Claims, dependencies and ends: each task is done once, also where many members reach for it and some die.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use centurion_protocol::Timestamp;
use centurion_team::{
    Actor, ListName, NewTask, Status, Task, TaskList, TaskListError, TaskNumber, TaskRefusal,
    TaskRequest, TeamName, TeamTaskViews, UpdatedTask,
};
use proptest::prelude::*;

fn now() -> Timestamp {
    jiff::Timestamp::UNIX_EPOCH.into()
}

fn members() -> Vec<String> {
    ["team-lead", "w1", "w2", "w3"].map(str::to_owned).into()
}

fn actor<'a>(name: &'a str, members: &'a [String]) -> Actor<'a> {
    Actor { name, is_lead: name == "team-lead", members }
}

fn open(directory: &Path) -> TaskList {
    TaskList::open(directory, &"alpha".parse::<ListName>().unwrap()).unwrap()
}

fn create(list: &mut TaskList, subject: &str) -> TaskNumber {
    let task = NewTask { subject: subject.to_owned(), ..NewTask::default() };
    list.create(&actor("team-lead", &members()), task, now()).unwrap().id
}

fn update(
    list: &mut TaskList,
    by: &str,
    request: &TaskRequest,
) -> Result<UpdatedTask, TaskRefusal> {
    match list.update(&actor(by, &members()), request, now()) {
        Ok(updated) => Ok(updated),
        Err(TaskListError::Refused(refusal)) => Err(refusal),
        Err(error) => panic!("{error}"),
    }
}

fn status(id: TaskNumber, status: Status) -> TaskRequest {
    TaskRequest { status: Some(status), ..TaskRequest::new(id) }
}

fn owner(id: TaskNumber, owner: &str) -> TaskRequest {
    TaskRequest { owner: Some(owner.to_owned()), ..TaskRequest::new(id) }
}

fn waits(id: TaskNumber, first: TaskNumber) -> TaskRequest {
    TaskRequest { add_blocked_by: vec![first], ..TaskRequest::new(id) }
}

#[test]
fn of_several_workers_one_gets_the_task_and_the_others_are_told_who() {
    // D-68; report 13: one task, several workers
    let scratch = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (open(scratch.path()), open(scratch.path()));
    let id = create(&mut one, "one");
    let claim = status(id, Status::InProgress);
    let updated = update(&mut one, "w1", &claim).unwrap();
    assert_eq!((updated.fields, updated.was), (vec!["owner", "status"], Some(Status::Pending)));
    let held = TaskRefusal::Held { id, owner: "w1".to_owned(), status: Status::InProgress };
    assert_eq!(update(&mut two, "w2", &claim), Err(held.clone()));
    assert_eq!(update(&mut two, "team-lead", &claim), Err(held.clone()), "the lead as well");
    assert_eq!(update(&mut two, "w2", &status(id, Status::Completed)), Err(held));
    assert_eq!(update(&mut one, "w1", &claim).unwrap().fields, Vec::<&str>::new(), "it has it");
    assert_eq!(two.get(id).unwrap().owner.as_deref(), Some("w1"));
}

#[test]
fn many_claim_every_task_and_each_is_done_once() {
    // D-68: as many lists as members, as in processes of their own
    const MEMBERS: usize = 50;
    const TASKS: usize = 200;
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    let ids: Vec<TaskNumber> = (0..TASKS).map(|n| create(&mut list, &n.to_string())).collect();
    // Every fifth waits for the one before it.
    for pair in ids.windows(2).step_by(5) {
        update(&mut list, "team-lead", &waits(pair[1], pair[0])).unwrap();
    }
    let names: Vec<String> = (0..MEMBERS).map(|n| format!("m{n}")).collect();
    let done: Vec<AtomicUsize> = (0..=TASKS).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let (names, done) = (&names, &done);
            let mut list = open(scratch.path());
            scope.spawn(move || work_to_the_end(&mut list, &actor(name, names), done));
        }
    });
    assert!(done[1..].iter().all(|count| count.load(Ordering::SeqCst) == 1));
    assert!(list.tasks().unwrap().iter().all(|task| task.status == Status::Completed));
}

/// Takes whatever is free until all is done; now and then it dies with a task in its hands.
fn work_to_the_end(list: &mut TaskList, actor: &Actor<'_>, done: &[AtomicUsize]) {
    let mut claims = 0;
    loop {
        let tasks = list.tasks().unwrap();
        if tasks.iter().all(|task| task.status == Status::Completed) {
            return;
        }
        for task in tasks.iter().filter(|task| task.status == Status::Pending) {
            if list.update(actor, &status(task.id, Status::InProgress), now()).is_err() {
                continue;
            }
            let blockers = list.get(task.id).unwrap().blocked_by;
            let is_done =
                |id: &TaskNumber| done[usize::try_from(id.0).unwrap()].load(Ordering::SeqCst) == 1;
            assert!(blockers.iter().all(is_done), "it was started while it was blocked");
            claims += 1;
            if claims % 7 == 0 {
                assert_eq!(list.release(|owner| owner == actor.name, now()).unwrap().len(), 1);
                continue;
            }
            done[usize::try_from(task.id.0).unwrap()].fetch_add(1, Ordering::SeqCst);
            list.update(actor, &status(task.id, Status::Completed), now()).unwrap();
        }
    }
}

#[test]
fn a_task_waits_for_those_before_it() {
    // S-348, D-68
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    let [one, two, three] = ["one", "two", "three"].map(|subject| create(&mut list, subject));
    update(&mut list, "w1", &waits(two, one)).unwrap();
    update(&mut list, "w1", &TaskRequest { add_blocks: vec![three], ..TaskRequest::new(two) })
        .unwrap();
    assert_eq!(list.get(one).unwrap().blocks, [two].into(), "the other one knows");
    for begun in [Status::InProgress, Status::Completed] {
        let blocked = TaskRefusal::Blocked { id: two, by: vec![one] };
        assert_eq!(update(&mut list, "team-lead", &status(two, begun)), Err(blocked));
    }
    let at_once = TaskRequest { add_blocked_by: vec![three], ..status(one, Status::InProgress) };
    assert!(update(&mut list, "w1", &at_once).is_err());
    let updated = update(&mut list, "w1", &status(one, Status::Completed)).unwrap();
    assert_eq!(updated.unblocked, [two]);
    assert_eq!(updated.task.owner.as_deref(), Some("w1"), "it did it");
    update(&mut list, "w2", &status(two, Status::InProgress)).unwrap();
    let begun = TaskRefusal::Begun { id: two, status: Status::InProgress };
    let four = create(&mut list, "four");
    assert_eq!(update(&mut list, "team-lead", &waits(two, four)), Err(begun));
    let deleted = update(&mut list, "w2", &status(two, Status::Deleted)).unwrap();
    assert_eq!(deleted.unblocked, [three]);
    assert!(list.get(three).unwrap().blocked_by.is_empty());
    assert_eq!(
        update(&mut list, "w2", &status(two, Status::Pending)),
        Err(TaskRefusal::NotFound(two))
    );
}

#[test]
fn no_task_waits_for_itself_in_whatever_way() {
    // D-68
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    let [one, two, three] = ["one", "two", "three"].map(|subject| create(&mut list, subject));
    update(&mut list, "w1", &waits(two, one)).unwrap();
    assert_eq!(update(&mut list, "w1", &waits(one, one)), Err(TaskRefusal::Itself(one)));
    let circle = TaskRefusal::Circle { first: two, then: one };
    assert_eq!(update(&mut list, "w1", &waits(one, two)), Err(circle));
    // Three waits for two and one for three: each is fine, both are a circle.
    let both = TaskRequest { add_blocks: vec![one], ..waits(three, two) };
    assert!(matches!(update(&mut list, "w1", &both), Err(TaskRefusal::Circle { .. })));
    let same = TaskRequest { add_blocks: vec![one], ..waits(three, one) };
    assert!(matches!(update(&mut list, "w1", &same), Err(TaskRefusal::Circle { .. })));
    assert!(list.get(three).unwrap().blocked_by.is_empty(), "nothing of it was done");
    let unknown = TaskNumber(99);
    assert_eq!(update(&mut list, "w1", &waits(one, unknown)), Err(TaskRefusal::NotFound(unknown)));
}

#[test]
fn owners_are_members_and_the_lead_gives_tasks_to_others() {
    // D-68
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    let id = create(&mut list, "one");
    assert_eq!(update(&mut list, "w1", &owner(id, "w2")), Err(TaskRefusal::NotTheLead));
    let nobody = update(&mut list, "team-lead", &owner(id, "w9"));
    assert!(matches!(nobody, Err(TaskRefusal::NoMember { .. })));
    update(&mut list, "team-lead", &owner(id, "w1")).unwrap();
    let held = update(&mut list, "w2", &status(id, Status::InProgress));
    assert!(matches!(held, Err(TaskRefusal::Held { .. })), "it is promised to another");
    update(&mut list, "w1", &status(id, Status::InProgress)).unwrap();
    update(&mut list, "w1", &owner(id, "w2")).unwrap();
    update(&mut list, "w2", &status(id, Status::Pending)).unwrap();
    assert_eq!(list.get(id).unwrap().owner, None, "what is put back is free");
    let nobodys = TaskRequest { status: Some(Status::InProgress), ..owner(id, "") };
    assert_eq!(update(&mut list, "w3", &nobodys).unwrap().task.owner.as_deref(), Some("w3"));
    assert_eq!(update(&mut list, "w3", &owner(id, "")).unwrap().task.status, Status::Pending);
    update(&mut list, "w3", &status(id, Status::Completed)).unwrap();
    assert_eq!(update(&mut list, "w1", &owner(id, "w1")), Err(TaskRefusal::Completed(id)));
    assert!(update(&mut list, "w1", &status(id, Status::Completed)).unwrap().fields.is_empty());
    update(&mut list, "team-lead", &status(id, Status::Pending)).unwrap();
}

#[test]
fn what_a_member_that_ended_had_begun_is_free_again() {
    // D-68
    let scratch = tempfile::tempdir().unwrap();
    let (mut list, mut other) = (open(scratch.path()), open(scratch.path()));
    let [one, two, three] = ["one", "two", "three"].map(|subject| create(&mut list, subject));
    update(&mut list, "w1", &status(one, Status::Completed)).unwrap();
    update(&mut list, "w1", &status(two, Status::InProgress)).unwrap();
    update(&mut list, "team-lead", &owner(three, "w1")).unwrap();
    let freed: Vec<TaskNumber> =
        other.release(|owner| owner == "w1", now()).unwrap().iter().map(|task| task.id).collect();
    assert_eq!(freed, [two, three]);
    update(&mut list, "w2", &status(two, Status::InProgress)).unwrap();
    assert!(other.release(|owner| owner == "w1", now()).unwrap().is_empty());
    assert_eq!(list.get(one).unwrap().owner.as_deref(), Some("w1"), "done is done");
}

#[test]
fn every_task_has_its_history_also_after_it_was_deleted() {
    // D-69
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    let id = create(&mut list, "one");
    update(&mut list, "w1", &status(id, Status::InProgress)).unwrap();
    list.release(|owner| owner == "w1", now()).unwrap();
    update(&mut list, "team-lead", &status(id, Status::Deleted)).unwrap();
    let told = open(scratch.path()).history(id).unwrap();
    let by: Vec<&str> = told.iter().map(|entry| entry.by.as_str()).collect();
    assert_eq!(by, ["team-lead", "w1", "w1", "team-lead"]);
    assert!(list.history(TaskNumber(2)).is_err());
    let next = create(&mut list, "two");
    assert_eq!(next, TaskNumber(2), "a number means one task for ever");
}

#[test]
fn other_programs_see_the_tasks_in_the_known_form() {
    // D-69
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    let [one, two] = ["one", "two"].map(|subject| create(&mut list, subject));
    update(&mut list, "w1", &waits(two, one)).unwrap();
    update(&mut list, "w1", &status(one, Status::InProgress)).unwrap();
    let view = |id: TaskNumber| {
        let text = fs::read_to_string(scratch.path().join(format!("alpha/{id}.json"))).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let expected = serde_json::json!({
        "id": "1", "subject": "one", "description": "", "owner": "w1", "status": "in_progress",
        "blocks": ["2"], "blockedBy": [],
    });
    assert_eq!(view(one), expected);
    assert_eq!(view(two)["blockedBy"], serde_json::json!(["1"]));
    update(&mut list, "w1", &status(one, Status::Deleted)).unwrap();
    assert!(!scratch.path().join("alpha/1.json").exists());
    assert_eq!(view(two)["blockedBy"], serde_json::json!([]));
    // What others write there counts for nothing.
    fs::write(scratch.path().join("alpha/2.json"), "{\"status\":\"completed\"}").unwrap();
    assert_eq!(open(scratch.path()).get(two).unwrap().status, Status::Pending);
}

#[test]
fn the_tasks_of_a_team_are_seen_in_a_directory_of_its_name() {
    // D-69
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    let (one, two) = (create(&mut list, "one"), create(&mut list, "two"));
    let shown = |name: &str| {
        let mut names: Vec<String> = fs::read_dir(scratch.path().join(name))
            .map(|entries| {
                entries.flatten().map(|it| it.file_name().into_string().unwrap()).collect()
            })
            .unwrap_or_default();
        names.sort();
        names
    };
    let beta: TeamName = "beta".parse().unwrap();
    let mut views = TeamTaskViews::new(scratch.path(), &beta);
    views.show(&[]).unwrap();
    assert!(shown("beta").is_empty(), "nothing is shown of a list without tasks");
    // An earlier process died and left these.
    fs::create_dir(scratch.path().join("beta")).unwrap();
    fs::write(scratch.path().join("beta/7.json"), "{}").unwrap();
    fs::write(scratch.path().join("beta/notes.txt"), "of another program").unwrap();
    views.show(&list.tasks().unwrap()).unwrap();
    assert_eq!(shown("beta"), ["1.json", "2.json", "notes.txt"]);
    for id in [one, two] {
        let read =
            |team: &str| fs::read_to_string(scratch.path().join(format!("{team}/{id}.json")));
        assert_eq!(read("beta").unwrap(), read("alpha").unwrap(), "the same form");
    }
    update(&mut list, "team-lead", &status(two, Status::Deleted)).unwrap();
    views.show(&list.tasks().unwrap()).unwrap();
    assert_eq!(shown("beta"), ["1.json", "notes.txt"]);
    assert_eq!(TaskList::names(scratch.path()).len(), 1, "views are no list");
    views.remove();
    assert_eq!(shown("beta"), ["notes.txt"]);
}

#[test]
fn views_of_a_team_take_the_place_of_no_list_and_follow_no_link() {
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    create(&mut list, "one");
    let tasks = list.tasks().unwrap();
    let alpha: TeamName = "alpha".parse().unwrap();
    let before = fs::read(scratch.path().join("alpha/1.json")).unwrap();
    fs::write(scratch.path().join("alpha/9.json"), "{}").unwrap();
    let mut views = TeamTaskViews::new(scratch.path(), &alpha);
    views.show(&tasks).unwrap_err();
    views.remove();
    assert_eq!(fs::read(scratch.path().join("alpha/1.json")).unwrap(), before);
    assert!(scratch.path().join("alpha/9.json").exists());
    let elsewhere = scratch.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("1.json"), "precious").unwrap();
    std::os::unix::fs::symlink(&elsewhere, scratch.path().join("gamma")).unwrap();
    let mut views = TeamTaskViews::new(scratch.path(), &"gamma".parse().unwrap());
    views.show(&tasks).unwrap_err();
    views.remove();
    assert_eq!(fs::read_to_string(elsewhere.join("1.json")).unwrap(), "precious");
}

#[test]
fn a_list_that_is_old_goes_and_what_others_put_there_stays() {
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    create(&mut list, "one");
    let name: ListName = "alpha".parse().unwrap();
    let (long_ago, later) = (UNIX_EPOCH, SystemTime::now() + Duration::from_mins(1));
    TaskList::remove_unchanged(scratch.path(), &name, long_ago).unwrap();
    assert_eq!(TaskList::names(scratch.path()), std::slice::from_ref(&name));
    fs::write(scratch.path().join("alpha/notes.json"), "{}").unwrap();
    TaskList::remove_unchanged(scratch.path(), &name, later).unwrap();
    assert!(TaskList::names(scratch.path()).is_empty());
    let left: Vec<_> = fs::read_dir(scratch.path().join("alpha")).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn what_is_too_large_or_empty_is_refused_and_credentials_are_not_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let mut list = open(scratch.path());
    let all = members();
    let lead = actor("team-lead", &all);
    for (subject, description) in [(" ", 0), (&*"x".repeat(1001), 0), ("fine", 65 * 1024)] {
        let task = NewTask {
            subject: subject.to_owned(),
            description: "d".repeat(description),
            ..NewTask::default()
        };
        assert!(list.create(&lead, task, now()).is_err());
    }
    let key = format!("sk-ant-api03-{}", "a1B2c3D4".repeat(8));
    let metadata = serde_json::json!({ "key": key }).as_object().unwrap().clone();
    let task = NewTask {
        subject: "deploy".to_owned(),
        description: key.clone(),
        metadata,
        ..NewTask::default()
    };
    list.create(&lead, task, now()).unwrap();
    let kept = fs::read_to_string(scratch.path().join("alpha/log.jsonl")).unwrap();
    assert!(kept.contains("deploy") && !kept.contains(&key));
    let much = serde_json::json!({ "much": "x".repeat(17 * 1024) }).as_object().unwrap().clone();
    let request = TaskRequest { metadata: much, ..TaskRequest::new(TaskNumber(1)) };
    assert!(matches!(update(&mut list, "w1", &request), Err(TaskRefusal::TooLong { .. })));
}

/// One thing that a member does.
#[derive(Clone, Debug)]
enum Step {
    Create,
    Update(Box<TaskRequest>),
    Release,
    /// The process of this handle dies while it writes, and another one takes its place.
    Die,
}

fn step() -> impl Strategy<Value = Step> {
    let id = || (1..7_u64).prop_map(TaskNumber);
    let statuses = [Status::Pending, Status::InProgress, Status::Completed, Status::Deleted];
    let status = proptest::option::of(proptest::sample::select(statuses.to_vec()));
    let owner =
        proptest::option::weighted(0.3, proptest::sample::select(vec!["", "w1", "w2", "w9"]));
    let ids = || proptest::collection::vec(id(), 0..3);
    let request = (id(), status, owner, ids(), ids()).prop_map(
        |(id, status, owner, add_blocks, add_blocked_by)| TaskRequest {
            status,
            owner: owner.map(str::to_owned),
            add_blocks,
            add_blocked_by,
            ..TaskRequest::new(id)
        },
    );
    prop_oneof![
        2 => Just(Step::Create),
        12 => request.prop_map(|request| Step::Update(Box::new(request))),
        1 => Just(Step::Release),
        1 => Just(Step::Die),
    ]
}

/// Whether following `blocked_by` from any task ever comes back.
fn has_circle(tasks: &BTreeMap<TaskNumber, Task>) -> bool {
    let mut left = tasks.clone();
    loop {
        let free =
            left.values().find(|task| task.blocked_by.iter().all(|it| !left.contains_key(it)));
        match free.map(|task| task.id) {
            Some(id) => drop(left.remove(&id)),
            None => return !left.is_empty(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn whatever_members_do_the_rules_hold_and_replay_gives_the_same_state(
        steps in proptest::collection::vec((0..3_usize, step()), 1..60)
    ) {
        // D-68
        let scratch = tempfile::tempdir().unwrap();
        let names = ["team-lead", "w1", "w2"];
        let mut lists = names.map(|_| open(scratch.path()));
        for (who, step) in steps {
            let (name, all) = (names[who], members());
            let by = actor(name, &all);
            let before: BTreeMap<TaskNumber, Task> =
                lists[who].tasks().unwrap().into_iter().map(|task| (task.id, task)).collect();
            match step {
                Step::Create => drop(create(&mut lists[who], "task")),
                Step::Update(request) => {
                    let judged = lists[who].judge(&by, &request).map_err(|error| error.to_string());
                    let done = lists[who].update(&by, &request, now()).map_err(|error| error.to_string());
                    prop_assert_eq!(&judged, &done);
                    if done.is_err() {
                        let after = lists[who].tasks().unwrap();
                        prop_assert_eq!(after, before.values().cloned().collect::<Vec<_>>());
                    }
                }
                Step::Release => drop(lists[who].release(|owner| owner == name, now()).unwrap()),
                Step::Die => {
                    let log = scratch.path().join("alpha/log.jsonl");
                    let mut bytes = fs::read(&log).unwrap();
                    bytes.extend_from_slice(b"{\"at\":\"1970-01-01T00:00:00.000Z\",\"by\"");
                    fs::write(&log, bytes).unwrap();
                    lists[who] = open(scratch.path());
                }
            }
            let after: BTreeMap<TaskNumber, Task> =
                lists[(who + 1) % 3].tasks().unwrap().into_iter().map(|task| (task.id, task)).collect();
            prop_assert!(!has_circle(&after));
            for task in after.values() {
                let begins = task.status != Status::Pending
                    && before.get(&task.id).is_none_or(|it| it.status != task.status);
                let is_open = |id: &TaskNumber| after[id].status != Status::Completed;
                prop_assert!(!begins || !task.blocked_by.iter().any(is_open), "{task:?}");
                prop_assert!(task.status != Status::InProgress || task.owner.is_some());
                prop_assert!(task.blocked_by.iter().all(|id| after[id].blocks.contains(&task.id)));
            }
            let replayed: BTreeMap<TaskNumber, Task> =
                open(scratch.path()).tasks().unwrap().into_iter().map(|task| (task.id, task)).collect();
            prop_assert_eq!(replayed, after);
        }
    }
}
