//! `/clear` begins another session in the same process: an id and a transcript of its own, while the one before stays
//! whole on disk and agents in the background continue.

use std::path::PathBuf;

use centurion_engine::{SessionMode, Start, TaskListPlace};
use centurion_hooks::Event;
use centurion_protocol::{Outcome, SeededWorld, SessionId, World};
use serde_json::{Value, json};

use crate::agent_stage::{agent, message, starts};
use crate::bench::{Asked, Bench, Told};
use crate::hook_stage::Stage;
use crate::skills::{bench, said, skill, talk};

/// The session that a bench's runs begin with.
pub(crate) fn first(bench: &Bench) -> SessionId {
    SeededWorld::new(bench.seed).session_id()
}

/// What came of a session, seen as that of the session before `/clear`.
pub(crate) fn before(bench: &Bench, told: &Told) -> Told {
    Told { session: first(bench), transcript: bench.transcript(first(bench)), ..told.clone() }
}

fn ids(events: &[&Value]) -> Vec<String> {
    events.iter().map(|event| event["session_id"].as_str().unwrap().to_owned()).collect()
}

/// Resumes a session as another process would, whose ids are others.
pub(crate) async fn resume(bench: Bench, told: &Told, prompt: &str) -> (Bench, Told) {
    let bench = Bench { seed: bench.seed + 40, ..bench };
    let told = bench.resume(told, prompt).await;
    (bench, told)
}

#[tokio::test(start_paused = true)]
async fn another_session_begins_and_both_can_be_resumed() {
    // context.md 6
    let scripts = json!({"lead": ["first answer", "more of it"], "then": ["second answer", "on"]});
    let bench = bench(&scripts);
    let told = talk(&bench, &["@@lead one", "/rename Old", "/clear", "@@then two"]).await;
    let (old, new) = (first(&bench).to_string(), told.session.to_string());
    assert_ne!(old, new);
    let resets = told.of("conversation_reset", None);
    let [reset] = resets[..] else { panic!("{resets:?}") };
    assert_eq!((&reset["session_id"], &reset["new_conversation_id"]), (&json!(old), &json!(new)));
    assert!(reset["user_message_uuid"].is_string(), "{reset}");
    // The command's own run begins in the old session and ends in the new one, which hosts are told of before its result.
    assert_eq!(
        ids(&told.of("system", Some("init"))),
        [&old, &old, &old, &new, &new].map(Clone::clone)
    );
    assert_eq!(ids(&told.of("result", None)), [&old, &old, &new, &new].map(Clone::clone));
    let before = before(&bench, &told);
    let of =
        |told: &Told| told.lines().iter().map(|it| it["sessionId"].clone()).collect::<Vec<_>>();
    assert!(of(&told).iter().all(|id| *id == json!(new)), "{:?}", of(&told));
    assert!(of(&before).iter().all(|id| *id == json!(old)), "{:?}", of(&before));
    assert!(
        !told.lines().iter().any(|line| line["customTitle"] == "Old"),
        "a title is one session's"
    );
    let (bench, again) = resume(bench, &before, "@@lead more").await;
    let text = said(&again.asked[0]);
    assert!(text.contains("@@lead one") && !text.contains("@@then"), "{text}");
    assert_eq!(again.session, before.session);
    let (_, again) = resume(bench, &told, "@@then more").await;
    let text = said(&again.asked[0]);
    assert!(text.contains("@@then two") && !text.contains("@@lead"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn hooks_and_skills_hear_of_the_session_that_they_are_in() {
    let stage = Stage::new(|_| Some(json!({})));
    let bench = stage.set(bench(&json!({"lead": ["one"], "then": ["two"]})));
    skill(&bench, "who", "", "@@then I am ${CLAUDE_SESSION_ID}.");
    let told = talk(&bench, &["@@lead", "/clear", "/who"]).await;
    let (old, new) = (first(&bench), told.session);
    let heard = |event: Event| -> Vec<(String, PathBuf)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let all = stage.heard(event);
        all.iter()
            .map(|it| (text(&it["session_id"]), text(&it["transcript_path"]).into()))
            .collect()
    };
    let place = |id: SessionId| (id.to_string(), bench.transcript(id));
    assert_eq!(heard(Event::SessionStart), [place(old), place(new)]);
    assert_eq!(heard(Event::SessionEnd), [place(old), place(new)]);
    assert!(said(&told.asked[1]).contains(&format!("I am {new}.")), "{}", said(&told.asked[1]));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_begun_anew_twice_leaves_two_behind() {
    let bench = bench(&json!({"lead": ["one"], "then": ["two"], "last": ["three"]}));
    let told = talk(&bench, &["@@lead", "/new", "@@then", "/reset", "@@last", "/status"]).await;
    let resets = told.of("conversation_reset", None);
    let chain: Vec<(&Value, &Value)> =
        resets.iter().map(|it| (&it["session_id"], &it["new_conversation_id"])).collect();
    assert_eq!(chain.len(), 2);
    assert_eq!(chain[0].1, chain[1].0);
    assert_eq!(chain[1].1, &json!(told.session));
    let state = std::fs::read_dir(bench.dir.path().join("state")).unwrap().flatten();
    let transcripts = state.filter(|it| it.path().extension().is_some_and(|it| it == "jsonl"));
    assert_eq!(transcripts.count(), 3);
    let status = told.result()["result"].as_str().unwrap();
    assert!(status.contains(&format!("Session: {}", told.session)), "{status}");
    assert!(said(told.asked.last().unwrap()).matches("@@").count() == 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_outlives_its_conversation_is_told_of_once_also_after_a_crash() {
    let slow = json!([{"text": "found it", "latency_ms": 60_000}]);
    let scripts = json!({
        "lead": [[starts("@@scout")], "started", "again"],
        "scout": slow,
        "after": ["second"],
        "later": ["heard", "more"],
        "old": ["well"],
    });
    let bench = bench(&scripts);
    // The process dies when the agent has ended, before the new conversation hears of it.
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            let results = |events: &[Value], count: usize| {
                events.iter().filter(|event| event["type"] == "result").count() >= count
            };
            let say = |n: u64, text: &str| {
                let block = centurion_protocol::Block::text(text);
                handle.submit(SeededWorld::new(n).record_id(), vec![block]);
            };
            watcher.until(|events, _| results(events, 1)).await;
            say(801, "/clear");
            watcher.until(|events, _| results(events, 2)).await;
            handle.stop();
        })
        .await;
    let agent = &told.agent_ids()[0];
    let before = before(&bench, &told);
    assert!(before.agent_transcript(agent).exists(), "it stays where it began");
    assert!(!told.agent_transcript(agent).exists());
    // The new session is told how it ended, once.
    let (bench, again) = resume(bench, &told, "@@later").await;
    assert_eq!(again.news().len(), 1, "{:?}", again.main_texts());
    assert!(again.news()[0].contains(agent), "{:?}", again.news());
    let (bench, again) = resume(bench, &told, "@@later").await;
    assert_eq!(again.news().len(), 1, "it is in the conversation, and is not told again");
    // The old one gave it away.
    let (_, again) = resume(bench, &before, "@@old").await;
    assert!(again.news().is_empty(), "{:?}", again.news());
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_given_away_when_the_other_session_has_written_it_down() {
    let scripts = json!({
        "lead": [[starts("@@scout")], "started"],
        "scout": [{"text": "found it", "latency_ms": 60_000}],
        "old": ["well", "well"],
        "after": ["second", "third", "fourth"],
    });
    let bench = bench(&scripts);
    let told = talk(&bench, &["@@lead", "/clear", "@@after"]).await;
    let before = before(&bench, &told);
    let (old, new) = [&before, &told].map(|it| std::fs::read(&it.transcript).unwrap()).into();
    let first_line = new.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut bench = bench;
    // The process died at one of these places of the new transcript.
    for (end, is_taken) in [(0, false), (first_line / 2, false), (first_line, true)] {
        std::fs::write(&before.transcript, &old).unwrap();
        std::fs::write(&told.transcript, &new[..end]).unwrap();
        let (again, later) = resume(bench, &before, "@@old").await;
        assert_eq!(later.news().len(), usize::from(!is_taken), "{end}: {:?}", later.main_texts());
        bench = again;
    }
    let (_, later) = resume(bench, &told, "@@after").await;
    assert_eq!(later.news().len(), 1, "{:?}", later.main_texts());
}

#[tokio::test(start_paused = true)]
async fn names_of_agents_are_free_again_and_new_agents_belong_to_the_new_session() {
    let named = |prompt: &str| {
        agent("general-purpose", prompt, &json!({"run_in_background": false, "name": "bob"}))
    };
    let scripts = json!({
        "lead": [[named("@@one")], "done"],
        "after": [[message("bob", "hello")], [named("@@two")], "done"],
        "one": ["first"],
        "two": ["second"],
    });
    let bench = bench(&scripts);
    let told = talk(&bench, &["@@lead", "/clear", "@@after"]).await;
    let results = told.results();
    assert!(
        results[1].0.contains("no_such_agent") && results[2].0.contains("second"),
        "{results:?}"
    );
    let agents = told.agent_ids();
    assert!(before(&bench, &told).agent_transcript(&agents[0]).exists());
    assert!(told.agent_transcript(&agents[1]).exists(), "{agents:?}");
    let line = std::fs::read_to_string(told.agent_transcript(&agents[1])).unwrap();
    assert!(line.contains(&told.session.to_string()));
}

#[tokio::test(start_paused = true)]
async fn an_agent_in_the_background_is_reached_from_the_new_conversation_and_by_its_transcript() {
    let scripts = json!({
        "lead": [[starts("@@scout")], "started"],
        "scout": [{"text": "found it", "latency_ms": 60_000}, "found more"],
        "after": ["waits", [message(LAST_TASK, "look again")], "done", "heard"],
    });
    let bench = bench(&scripts);
    let told = talk(&bench, &["@@lead", "/clear", "@@after"]).await;
    assert_eq!(told.news().len(), 2, "{:?}", told.main_texts());
    let id = &told.agent_ids()[0];
    let transcript = std::fs::read_to_string(before(&bench, &told).agent_transcript(id)).unwrap();
    assert!(transcript.contains("look again") && transcript.contains("found more"));
}

/// The id that a notification gives, as scripts find it.
const LAST_TASK: &str = "${re:<task-id>(a[0-9a-f]+)}";

#[tokio::test(start_paused = true)]
async fn a_fork_continues_with_the_conversation_that_it_was_forked_from() {
    let fork = |prompt: &str| json!({"tool": "Agent", "input": {"description": "a branch", "prompt": prompt}});
    let scripts = json!({
        "lead": [[fork("@@work")], "meanwhile"],
        "work": [{"text": "Scope: first", "latency_ms": 60_000}],
        "more": ["Scope: more"],
        "after": [[fork("@@other")], "heard", "heard", "heard"],
        "other": ["Scope: other"],
        "poke": [[message("${arg}", "@@more")], "said", "heard", "heard"],
    });
    let mut bench = bench(&scripts);
    bench.knows_agents(|agents| agents.rules.forks = true);
    let told = talk(&bench, &["@@lead", "/clear", "@@after"]).await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    let ids = told.agent_ids();
    let parents: Vec<Vec<u8>> =
        ["@@lead", "@@after"].map(|prompt| told.asked_by(prompt)[0].wire.clone()).into();
    let (mut bench, mut last) = (bench, told);
    for (id, parent) in ids.iter().zip(&parents) {
        (bench, last) = resume(bench, &last, &format!("@@poke:{id}")).await;
        let of_fork = |asked: &&Asked| asked.agent.as_deref() == Some(id);
        let asked =
            last.asked.iter().find(of_fork).unwrap_or_else(|| panic!("{:?}", last.results()));
        assert!(asked.wire.starts_with(parent), "{:?}", asked.texts());
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_list_belongs_to_its_session() {
    let create = |subject: &str| json!({"tool": "TaskCreate", "input": {"subject": subject, "description": "d"}});
    let list = json!({"tool": "TaskList", "input": {}});
    let scripts = json!({
        "lead": [[create("old work")], [starts("@@scout")], "started"],
        "scout": [{"blocks": [list], "latency_ms": 60_000}, "seen"],
        "after": [[list], "done", "heard"],
    });
    let mut bench = bench(&scripts);
    let (lists, name) = (bench.dir.path().join("tasks"), first(&bench).to_string());
    let place = TaskListPlace { lists, name: name.parse().unwrap() };
    bench.also(move |options| options.agents.task_list = Some(place.clone()));
    let told = talk(&bench, &["@@lead", "/clear", "@@after"]).await;
    let is_list = |text: &str| text.contains("#1 [pending] old work");
    let texts = |agent: bool| -> Vec<String> {
        let asked = told.asked.iter().filter(|asked| asked.agent.is_some() == agent);
        asked.flat_map(|asked| asked.texts().into_iter().map(str::to_owned)).collect()
    };
    let of_lead: Vec<String> = texts(false).into_iter().rev().collect();
    let (lead, scout) = (of_lead.join("\n"), texts(true).join("\n"));
    assert!(!is_list(&lead) && lead.contains("No tasks."), "{lead}");
    assert!(is_list(&scout), "it began with that list: {scout}");
}

#[tokio::test(start_paused = true)]
async fn a_question_beside_the_new_conversation_knows_nothing_of_the_old_one() {
    let bench = bench(&json!({"lead": ["first answer"], "then": ["second"]}));
    let told = talk(&bench, &["@@lead one", "/clear", "/btw what did I say?"]).await;
    assert_eq!(told.asked.len(), 1, "nothing of the old conversation is sent");
    assert_eq!(told.outcome, Some(Outcome::CommandFailed), "{}", told.result());
}

#[tokio::test(start_paused = true)]
async fn a_session_that_keeps_nothing_begins_anew_as_well() {
    let mut bench = bench(&json!({"lead": ["one"], "then": ["two"]}));
    bench.also(|options| options.storage.transcript = None);
    let told = talk(&bench, &["@@lead", "/clear", "@@then"]).await;
    assert_ne!(told.session, first(&bench));
    assert!(!said(&told.asked[1]).contains("@@lead"));
    assert!(!bench.dir.path().join("state").exists());
}

#[tokio::test(start_paused = true)]
async fn clear_as_the_first_word_is_no_trouble() {
    let bench = bench(&json!({"then": ["two"]}));
    let told = bench.start(Start::New(first(&bench)), None, "/clear").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_ne!(told.session, first(&bench));
    let (_, again) = resume(bench, &told, "@@then").await;
    assert_eq!(again.outcome, Some(Outcome::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_cannot_be_begun_leaves_the_session_as_it_was_with_all_that_it_has() {
    let schedule = json!({
        "tool": "CronCreate", "input": {"cron": "0 9 * * *", "prompt": "look", "durable": true},
    });
    let lists = json!([{"tool": "CronList", "input": {}}]);
    let scripts = json!({
        "lead": [[schedule, starts("@@scout")], "started"],
        "scout": [{"text": "found it", "latency_ms": 60_000}],
        "list": [lists, "listed", "heard"],
    });
    let mut bench = bench(&scripts);
    bench.knows_agents(|agents| agents.rules.mode = SessionMode::Assistant);
    let transcripts = bench.dir.path().join("state");
    let aside = bench.dir.path().join("aside");
    // Between the two events there is no directory to write to.
    let places = (transcripts.clone(), aside.clone());
    let stage = Stage::new(move |told| {
        if told["hook_event_name"] == "SessionEnd" && told["reason"] == "clear" {
            std::fs::rename(&places.0, &places.1).unwrap();
            std::fs::write(&places.0, "in the way").unwrap();
        }
        if told["hook_event_name"] == "SessionStart" && told["source"] == "resume" {
            std::fs::remove_file(&places.0).unwrap();
            std::fs::rename(&places.1, &places.0).unwrap();
        }
        Some(json!({}))
    });
    let bench = stage.set(bench);
    let told = talk(&bench, &["@@lead", "/clear", "@@list"]).await;
    let results = told.of("result", None);
    let failed = results.iter().find(|it| it["outcome"] == "command_failed").unwrap();
    assert_eq!(failed["session_id"], json!(first(&bench)), "{failed}");
    assert!(failed["errors"].to_string().contains("the conversation is as it was"), "{failed}");
    assert!(told.of("conversation_reset", None).is_empty());
    assert_eq!(told.session, first(&bench));
    let left = std::fs::read_dir(&transcripts).unwrap().flatten();
    let count = left.filter(|it| it.path().extension().is_some_and(|it| it == "jsonl"));
    assert_eq!(count.count(), 1);
    let newest = told.asked.iter().rfind(|asked| asked.agent.is_none()).unwrap();
    assert!(
        said(newest).contains("@@lead") && said(newest).contains("found it"),
        "{}",
        said(newest)
    );
    let (_, again) = resume(Stage::silent().set(bench), &told, "@@list").await;
    assert!(again.results()[0].0.contains("Schedules (1):"), "{:?}", again.results());
}
