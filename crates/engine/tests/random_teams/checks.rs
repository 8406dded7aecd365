//! What holds in every team.

use std::collections::HashMap;

use centurion_permissions::Mode;
use centurion_team::{Status, TaskChange, TaskList};
use jiff::Timestamp;
use serde_json::Value;

use crate::cut::time;
use crate::mail;
use crate::plan::{Kind, Member};
use crate::players::part_of;
use crate::process::Ended;
use crate::records::{Records, Transcript};
use crate::stage::{LeadsMode, Life, Stage, TEAM};

/// After the first process, whatever became of it.
pub(crate) fn after_life(stage: &Stage, life: &Life, records: &Records) {
    assert_ne!(life.ended, Ended::Stuck, "no agent makes progress");
    assert!(life.faults.is_empty(), "{:#?}", life.faults);
    assert_eq!(life.open_questions, 0, "a question is open");
    always(stage, records);
    no_member_exceeds_its_mode(stage, &life.modes, records);
    if matches!(life.ended, Ended::Over(_)) {
        requests_to_end_are_answered(records);
        words_are_told(records, "by a session that had all the time");
    }
}

/// At every moment, also of records that were cut off.
pub(crate) fn always(stage: &Stage, records: &Records) {
    mail::receipts_are_true(records);
    mail::is_in_order_for_each_pair(records);
    mail::has_one_answer_for_each_request(records);
    names_are_unique(records);
    for agent in &records.agents {
        one_end_for_each_run(agent);
        told_at_most_once(records, agent);
    }
    tasks_keep_their_rules(stage);
}

/// A later process, in which only the lead reads.
pub(crate) fn after_reading(stage: &Stage, before: &Records, life: &Life, after: &Records) {
    assert!(matches!(life.ended, Ended::Over(_)), "{:?}", life.ended);
    assert!(life.faults.is_empty(), "{:#?}", life.faults);
    assert_eq!(before.agents.len(), after.agents.len());
    for agent in &after.agents {
        let was = before.agent(agent.id()).unwrap();
        assert_eq!(agent.runs(), was.runs(), "{} was set to work again", agent.id());
        assert!(agent.status() != "running", "{} has no end", agent.id());
        let (old, new) = (was.ends(), agent.ends());
        assert_eq!(old[..], new[..old.len()], "what was recorded stays");
    }
    let lead = after.lead.as_ref().unwrap();
    assert_eq!(mail::waiting(lead), 0, "the lead has read all its mail");
    always(stage, after);
    words_are_told(after, "over both lives");
    same_roster(before, after);
}

/// The table of a later process shows the agents as the records have them.
fn same_roster(before: &Records, after: &Records) {
    let lead = after.lead.as_ref().unwrap();
    let listed =
        lead.lines.iter().rev().find_map(|line| line["toolUseResult"]["agents"].as_array());
    // The lead may have had no money left to look.
    let Some(listed) = listed else { return };
    let mut listed: Vec<(&str, &str)> = listed
        .iter()
        .map(|entry| (entry["agentId"].as_str().unwrap(), entry["status"].as_str().unwrap()))
        .collect();
    let status = |agent: &Transcript| match before.agent(agent.id()).unwrap().status() {
        "running" => "failed".to_owned(),
        status => status.to_owned(),
    };
    let expected: Vec<(&str, String)> =
        after.agents.iter().map(|agent| (agent.id(), status(agent))).collect();
    let mut expected: Vec<(&str, &str)> =
        expected.iter().map(|(id, status)| (*id, status.as_str())).collect();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected, "the table of a later process");
}

/// A later process, in which the lead speaks to every agent: each reads all that waited for it.
pub(crate) fn after_waking(stage: &Stage, before: &Records, life: &Life, after: &Records) {
    assert!(matches!(life.ended, Ended::Over(_)), "{:?}", life.ended);
    assert!(life.faults.is_empty(), "{:#?}", life.faults);
    always(stage, after);
    no_member_exceeds_its_mode(stage, &life.modes, after);
    for agent in &after.agents {
        let was = before.agent(agent.id()).unwrap();
        let stays = was.ends().last().unwrap()["stoppedBy"] == "person";
        if stays {
            assert_eq!(agent.runs(), was.runs(), "{}: only the user resumes it", agent.id());
        } else if stage.plan.settings.dollars.is_none() {
            assert!(agent.runs() > was.runs(), "{} was not resumed", agent.id());
            assert_eq!(mail::waiting(agent), 0, "{} left mail unread", agent.id());
        }
    }
}

/// No two members have one name, and a name never passes to another.
fn names_are_unique(records: &Records) {
    let names = records.agents.iter().filter_map(|agent| agent.spawn()["spec"]["name"].as_str());
    let mut names: Vec<&str> = names.collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{names:?}");
}

/// I-3: every run ends once; one that was at rest and was then stopped says so in another record of the same run.
fn one_end_for_each_run(agent: &Transcript) {
    let mut run = None;
    for line in &agent.lines {
        match line["subtype"].as_str() {
            Some("agent_spawn" | "agent_resume") => run = Some((&line["data"]["run"], 0)),
            Some("agent_end") => {
                let (run, ends) = run.as_mut().unwrap();
                assert_eq!(**run, line["data"]["run"], "another run's end");
                let is_dismissal = !line["data"]["end"]["stoppedBy"].is_null();
                assert!(*ends == 0 || is_dismissal, "{} ended twice", agent.id());
                *ends += 1;
            }
            _ => {}
        }
    }
}

/// I-3: no end is told twice.
fn told_at_most_once(records: &Records, agent: &Transcript) {
    for (id, _) in notifications(agent) {
        let readers = records.told(id, agent);
        assert!(readers.len() <= 1, "the end of {} was told to {readers:?}", agent.id());
    }
}

/// The news of an agent's ends, with the last record of each.
fn notifications(agent: &Transcript) -> HashMap<&str, &Value> {
    let ends = agent.ends().into_iter();
    ends.map(|end| (end["notification"].as_str().unwrap(), end)).collect()
}

/// What a member said without a message is told once, and so is every failure.
fn words_are_told(records: &Records, when: &str) {
    for agent in &records.agents {
        for (id, end) in notifications(agent) {
            let is_member = !agent.spawn()["spec"]["team"].is_null();
            let is_quiet = end["hasReported"] == true
                || end["text"].as_str().is_none_or(|text| text.trim().is_empty());
            let is_success = end["outcome"] == "completed" && end["stoppedBy"].is_null();
            if is_member && is_quiet && is_success {
                continue;
            }
            // What the user ended is known to the user, and what the session ended ends with it.
            if matches!(end["stoppedBy"].as_str(), Some("person" | "session" | "agent")) {
                continue;
            }
            let readers = records.told(id, agent);
            assert_eq!(readers.len(), 1, "{when}, of {}: {readers:?} {end}", agent.id());
        }
    }
}

/// D-64: a member that was asked to end has said no, or has left since.
fn requests_to_end_are_answered(records: &Records) {
    let Some(lead) = &records.lead else { return };
    for agent in &records.agents {
        for (at, request) in mail::frames(agent).filter(|(_, it)| it["type"] == "shutdown_request")
        {
            let leaves = |line: &&Value| {
                let by = line["data"]["end"]["stoppedBy"].as_str();
                let has_left = matches!(by, Some("shutdown" | "agent" | "person"));
                line["subtype"] == "agent_end" && has_left && at < time(line)
            };
            let is_refused = mail::frames(lead).any(|(_, it)| {
                it["type"] == "shutdown_rejected" && it["requestId"] == request["requestId"]
            });
            let is_answered = is_refused || agent.lines.iter().any(|line| leaves(&line));
            assert!(is_answered, "{} did not answer {request}", agent.id());
        }
    }
}

/// What a member may do unasked at most, as its membership has it.
fn at_most(member: &Member, spec: &Value, lead: Mode, approved: Option<Mode>) -> Mode {
    if lead == Mode::Plan {
        return Mode::Plan;
    }
    if spec["team"]["mustPlan"] == true {
        return match approved {
            None => Mode::Plan,
            Some(mode) if mode.gives_at_most(lead) => mode,
            Some(_) => lead,
        };
    }
    match member.kind {
        Kind::AcceptEdits => Mode::AcceptEdits,
        Kind::Default => Mode::Default,
        Kind::Plan => Mode::Plan,
        Kind::Usual => lead,
    }
}

/// D-43, D-66, D-67: no member changes anything that its membership does not let it, itself or by agents below it.
fn no_member_exceeds_its_mode(stage: &Stage, modes: &[LeadsMode], records: &Records) {
    for agent in &records.agents {
        let Some(number) = part_of(agent.spawn()["prompt"].as_str().unwrap()) else { continue };
        let owner = if number < 1000 {
            agent
        } else {
            let parent = agent.spawn()["spec"]["parent"].as_str().unwrap();
            records.agent(parent).unwrap()
        };
        let spec = &owner.spawn()["spec"];
        let member = &stage.plan.members[number % 1000];
        let must_plan = member.asked_to_plan || member.kind == Kind::Plan;
        assert!(!must_plan || spec["team"]["mustPlan"] == true, "{spec}");
        for (from, until, call) in writes(agent) {
            let certain = modes.iter().find(|it| it.from <= from && until <= it.until);
            let Some(lead) = certain.map(|it| it.mode) else { continue };
            let approved = mail::frames(owner)
                .filter(|(at, it)| *at <= from && it["approve"] == true)
                .filter_map(|(_, it)| it["permissionMode"].as_str()?.parse().ok())
                .last();
            let most = at_most(member, spec, lead, approved);
            let name = agent.id();
            assert_ne!(most, Mode::Plan, "{name} was planning and wrote: {call}");
            let is_free = |mode| matches!(mode, Mode::AcceptEdits | Mode::BypassPermissions);
            // Without a person the lead can say yes to what it may do itself.
            let is_right = stage.plan.settings.has_person || is_free(most) || is_free(lead);
            assert!(is_right, "{name} had {most} below {lead} and wrote: {call}");
        }
    }
}

/// The writes that an agent made, from its words to the result.
fn writes(agent: &Transcript) -> Vec<(Timestamp, Timestamp, &Value)> {
    let mut found = Vec::new();
    for said in agent.lines.iter().filter(|line| line["type"] == "assistant") {
        for call in said["message"]["content"].as_array().into_iter().flatten() {
            if call["name"] != "Write" {
                continue;
            }
            let is_result = |line: &&Value| {
                let block = &line["message"]["content"][0];
                block["tool_use_id"] == call["id"] && block["is_error"] != true
            };
            let result = agent.lines.iter().find(is_result);
            found.extend(result.map(|result| (time(said), time(result), call)));
        }
    }
    found
}

/// D-68: no task is begun while another blocks it, and none is completed twice or by two.
fn tasks_keep_their_rules(stage: &Stage) {
    let Ok(mut list) = TaskList::open_existing(&stage.lists(), &TEAM.parse().unwrap()) else {
        return;
    };
    let mut again = TaskList::open_existing(&stage.lists(), &TEAM.parse().unwrap()).unwrap();
    assert_eq!(list.tasks().unwrap(), again.tasks().unwrap(), "a replay gives the same");
    for task in list.tasks().unwrap() {
        let open = list.open_blockers(&task);
        assert!(task.status == Status::Pending || open.is_empty(), "{task:?} waits for {open:?}");
        assert!(task.status != Status::InProgress || task.owner.is_some(), "{task:?}");
        let mut owner: Option<String> = None;
        for entry in list.history(task.id).unwrap() {
            if let TaskChange::Changed { owner: new, .. } = &entry.what {
                let is_lead = entry.by == "team-lead";
                let is_free = owner.as_deref().is_none_or(|owner| owner == entry.by);
                assert!(is_free || is_lead, "{} took {:?} of {owner:?}", entry.by, task.id);
                if let Some(new) = new {
                    owner = Some(new.clone()).filter(|name| !name.is_empty());
                }
            }
            if matches!(entry.what, TaskChange::Released { .. }) {
                owner = None;
            }
        }
    }
}
