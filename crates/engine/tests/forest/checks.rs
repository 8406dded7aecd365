//! What holds in every forest.

use serde_json::Value;

use crate::cut::time;
use crate::mail;
use crate::plan::{Fate, Plan};
use crate::process::Ended;
use crate::records::{Records, Transcript};
use crate::stage::{Life, Stage};

/// After the first process, whatever became of it.
pub(crate) fn after_life(stage: &Stage, life: &Life, records: &Records) {
    let settings = &stage.plan.settings;
    // I-8: no agent waits for ever, whatever the limits.
    assert_ne!(life.ended, Ended::Stuck, "no agent makes progress");
    assert!(life.faults.is_empty(), "{:#?}", life.faults);
    // I-4: every question settles, by an answer or because it was withdrawn.
    assert_eq!(life.open_questions, 0, "a question is open");
    // S-225, D-12: the main agent needs no slot, all others do.
    let (children, _) = life.most_flying;
    assert!(
        children <= settings.running,
        "{children} agents compute at once, {} may",
        settings.running
    );
    if let Some(most) = settings.spawns {
        assert!(
            records.agents.len() as u64 <= most,
            "{} agents, {most} may be",
            records.agents.len()
        );
    }
    for agent in &records.agents {
        let depth = agent.spawn()["spec"]["depth"].as_u64().unwrap();
        assert!(depth <= u64::from(settings.depth), "{} is too deep", agent.id());
        one_end_for_each_run(agent, life.ended);
        honest(&stage.plan, agent);
        told_at_most_once(records, agent);
    }
    budgets(stage, life.most_flying.1, life.dollars, records);
    mail::receipts_are_true(records);
    messages_reach_their_node(records);
    let is_over = matches!(life.ended, Ended::Over(_));
    if is_over {
        // I-12: observers saw what the records say.
        for agent in &records.agents {
            assert_eq!(
                life.agents.get(agent.id()).copied(),
                Some(agent.status()),
                "{}",
                agent.id()
            );
        }
        assert_eq!(life.agents.len(), records.agents.len());
    }
    if is_over && settings.wait.is_none() {
        all_told(records, "by a session that had all the time");
    }
}

/// Of what was written until some moment: nothing stands before what it follows from.
pub(crate) fn after_cut(records: &Records) {
    for agent in &records.agents {
        one_end_for_each_run(agent, Ended::Died);
        told_at_most_once(records, agent);
    }
    mail::receipts_are_true(records);
    messages_reach_their_node(records);
}

/// I-3: as many ends as runs, each after its beginning; one fewer where the process died.
fn one_end_for_each_run(agent: &Transcript, ended: Ended) {
    let mut is_running = false;
    let mut runs = Vec::new();
    for line in &agent.lines {
        match line["subtype"].as_str() {
            Some("agent_spawn" | "agent_resume") => {
                assert!(!is_running, "{} began twice", agent.id());
                is_running = true;
                runs.push(line["data"]["run"].clone());
            }
            Some("agent_end") => {
                assert!(is_running, "{} ended twice", agent.id());
                is_running = false;
                assert_eq!(runs.last(), Some(&line["data"]["run"]), "another run's end");
            }
            _ => {}
        }
    }
    let may_run = ended == Ended::Died;
    assert!(!is_running || may_run, "{} has no end", agent.id());
}

/// I-10: an agent completed its task if it said so with its last words, and not otherwise.
fn honest(plan: &Plan, agent: &Transcript) {
    let node = node(agent);
    for (at, note) in agent.notes("agent_end") {
        let end = &note["end"];
        let outcome = end["outcome"].as_str().unwrap();
        let said = agent.lines[..at].iter().rfind(|line| is_conversation(line));
        let last =
            said.map(|line| &line["message"]).filter(|message| message["role"] == "assistant");
        let stop = last.map(|message| message["stop_reason"].as_str().unwrap_or_default());
        let text = last.map(|message| message["content"][0]["text"].as_str().unwrap_or_default());
        let is_word = |word: &str| text == Some(&*format!("{word} of node {node}"));
        let is_report = stop == Some("end_turn") && (is_word("report") || is_word("more"));
        let expected = match outcome {
            "completed" | "denied" => is_report,
            "empty" => !is_report && plan.nodes[node].ending == crate::plan::Ending::Empty,
            "max_tokens" => stop == Some("max_tokens"),
            "refusal" => stop == Some("refusal"),
            "cancelled" => !end["stoppedBy"].is_null() || has_interrupting_denial(end),
            "stalled" => end["stoppedBy"] == "watchdog",
            "api_error" => !end["errors"].as_array().unwrap().is_empty(),
            "budget" => plan.settings.tokens.is_some() || plan.settings.dollars.is_some(),
            "interrupted" => plan.fate != Fate::Lives,
            other => panic!("{} ended as {other}", agent.id()),
        };
        assert!(expected, "{} ended as {outcome} after {last:?}: {end}", agent.id());
        let status = match outcome {
            "completed" => "completed",
            "cancelled" => "killed",
            _ => "failed",
        };
        assert_eq!(note["status"], status);
    }
}

/// Whether a person said no, and that all of it shall stop.
fn has_interrupting_denial(end: &Value) -> bool {
    end["denials"].as_array().is_some_and(|denials| !denials.is_empty())
}

fn is_conversation(line: &Value) -> bool {
    matches!(line["type"].as_str(), Some("user" | "assistant" | "attachment"))
}

/// The node that an agent plays.
fn node(agent: &Transcript) -> usize {
    let prompt = agent.spawn()["prompt"].as_str().unwrap();
    prompt.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// I-3: no end is told twice, and only the asker of the run is told, or the lead in its place.
fn told_at_most_once(records: &Records, agent: &Transcript) {
    for (_, note) in agent.notes("agent_end") {
        let readers = records.told(note["end"]["notification"].as_str().unwrap(), agent);
        assert!(readers.len() <= 1, "the end of {} was told to {readers:?}", agent.id());
        let asker = agent.asker(&note["run"]);
        let is_right = readers.iter().all(|reader| reader.is_none() || *reader == asker);
        assert!(is_right, "{asker:?} asked {}, and {readers:?} was told", agent.id());
    }
}

/// I-3: every end is told exactly once.
pub(crate) fn all_told(records: &Records, when: &str) {
    for agent in &records.agents {
        for end in agent.ends() {
            let readers = records.told(end["notification"].as_str().unwrap(), agent);
            assert_eq!(
                readers.len(),
                1,
                "{when}, the end of {} was told to {readers:?}: {end}",
                agent.id()
            );
        }
    }
}

/// S-229: a message is read by its recipient.
fn messages_reach_their_node(records: &Records) {
    for agent in &records.agents {
        let node = node(agent);
        let is_read = |line: &&Value| line["type"] == "user" && line["origin"]["kind"] == "peer";
        for line in agent.lines.iter().filter(is_read) {
            let text = line["message"]["content"].as_str().unwrap();
            let message = text.lines().last().unwrap();
            assert!(
                message.ends_with(&format!("to node {node}")),
                "{} got `{message}`",
                agent.id()
            );
        }
    }
}

/// I-8, S-159: nothing is spent beyond a limit but by requests that were under way, over all runs.
fn budgets(stage: &Stage, flying: usize, spent: f64, records: &Records) {
    let (tokens, dollars) = stage.dearest();
    if let Some(limit) = stage.plan.settings.dollars {
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let most = limit + flying as f64 * dollars;
        assert!(spent <= most, "${spent} spent of ${limit}");
    }
    let Some(limit) = stage.plan.settings.tokens else { return };
    let most = limit + flying as u64 * tokens;
    for agent in &records.agents {
        let runs = records.agents.iter().flat_map(|other| {
            other.notes("agent_end").filter(|(_, end)| pays(records, agent, &end["run"]))
        });
        let spent: u64 = runs.map(|(_, end)| usage(&end["end"])).sum();
        assert!(spent <= most, "{} spent {spent} tokens of {limit}", agent.id());
    }
}

/// Whether an agent pays for a run: it is its own, or it was asked for in one that it pays for.
fn pays(records: &Records, agent: &Transcript, run: &Value) -> bool {
    let mut next = run;
    loop {
        let begun = |it: &Transcript| it.beginnings().any(|begun| begun["run"] == *next);
        let Some(runner) = records.agents.iter().find(|it| begun(it)) else { return false };
        if runner.id() == agent.id() {
            return true;
        }
        next = &runner.beginnings().find(|it| it["run"] == *next).unwrap()["asker"]["run"];
    }
}

fn usage(end: &Value) -> u64 {
    let usage = end["cumulativeUsage"].as_object().into_iter().flatten();
    usage.filter_map(|(_, count)| count.as_u64()).sum()
}

/// What a later process finds and does: it ends what was interrupted and tells what is owed, once.
pub(crate) fn after_resume(before: &Records, life: &Life, after: &Records) {
    // S-231, I-3, I-12
    assert!(matches!(life.ended, Ended::Over(_)), "{:?}", life.ended);
    assert!(life.faults.is_empty(), "{:#?}", life.faults);
    assert_eq!(before.agents.len(), after.agents.len());
    for agent in &after.agents {
        let was = before.agent(agent.id()).unwrap();
        let (old, new) = (was.ends(), agent.ends());
        assert_eq!(agent.runs(), was.runs(), "{} was set to work again", agent.id());
        assert_eq!(new.len(), agent.runs(), "{} has {} ends", agent.id(), new.len());
        if old.len() < new.len() {
            assert_eq!(new.last().unwrap()["outcome"], "interrupted", "{}", agent.id());
            assert_eq!(new.len(), old.len() + 1);
        }
        assert_eq!(old[..], new[..old.len()], "what was recorded stays");
    }
    all_told(after, "over both lives");
    mail::receipts_are_true(after);
    mail::ends_say_what_waits(after);
}

/// I-12: the table of a later process shows the agents as the records have them, in the order of their start.
pub(crate) fn same_table(before: &Records, after: &Records) {
    let lead = after.lead.as_ref().unwrap();
    let listed =
        lead.lines.iter().rev().find_map(|line| line["toolUseResult"]["agents"].as_array());
    let listed: Vec<(&str, &str)> = listed
        .unwrap()
        .iter()
        .map(|entry| (entry["agentId"].as_str().unwrap(), entry["status"].as_str().unwrap()))
        .collect();
    let mut known: Vec<&Transcript> = before.agents.iter().collect();
    known.sort_by_key(|agent| time(&agent.lines[0]));
    let expected: Vec<(&str, &str)> = known
        .iter()
        .map(|agent| {
            (agent.id(), Some(agent.status()).filter(|it| *it != "running").unwrap_or("failed"))
        })
        .collect();
    assert_eq!(listed, expected, "the table of a later process");
}

/// Every agent can be spoken to, whatever became of it, and knows what it was for. Only what a person
/// stopped stays as it is.
pub(crate) fn after_waking(
    stage: &Stage,
    flying: usize,
    before: &Records,
    life: &Life,
    after: &Records,
) {
    let plan = &stage.plan;
    // S-230, S-231, S-232
    assert!(matches!(life.ended, Ended::Over(_)), "{:?}", life.ended);
    assert!(life.faults.is_empty(), "{:#?}", life.faults);
    let has_budget = plan.settings.tokens.is_some() || plan.settings.dollars.is_some();
    for agent in &after.agents {
        let was = before.agent(agent.id()).unwrap();
        let stays = was.ends().last().unwrap()["stoppedBy"] == "person";
        assert_eq!(agent.runs(), was.runs() + usize::from(!stays), "{}", agent.id());
        one_end_for_each_run(agent, life.ended);
        let status = agent.status();
        assert!(stays || has_budget || status == "completed", "{} is {status}", agent.id());
        // S-229: a resumed agent reads all that was pending, and no other agent does.
        if stays {
            assert_eq!(mail::waiting(agent), mail::waiting(was), "{}", agent.id());
        } else {
            mail::read_what_waited(agent);
        }
        told_at_most_once(after, agent);
    }
    mail::receipts_are_true(after);
    mail::ends_say_what_waits(after);
    budgets(stage, flying.max(life.most_flying.1), life.dollars, after);
    if plan.settings.wait.is_none() {
        all_told(after, "of those who were spoken to");
    }
}
