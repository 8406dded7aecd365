//! Members that try what is not theirs to do, and what a lead may not give them.

use centurion_hooks::Event;
use serde_json::{Value, json};

use crate::agent_ends::dies_when;
use crate::agent_stage::{agent, message};
use crate::bench::{Asked, Told};
use crate::hook_stage::Stage;
use crate::teams::{PLAN, REQUEST, asks_to_end, joins, member, of_agent, structured, team};

fn writes(name: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": name, "content": "x"}})
}

/// What the last request of an agent held.
fn last_of(told: &Told, name: &str) -> String {
    of_agent(told, name).last().unwrap().texts().join("\n")
}

fn later<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap().block_on(future)
}

#[tokio::test(start_paused = true)]
async fn no_agent_takes_the_name_of_a_member_or_of_the_lead() {
    // teams.md 10.3: mail never reaches a namesake, and no agent works on tasks in another one's name
    let named = |name: &str| agent("general-purpose", "@@deep", &json!({"name": name}));
    let told = team(&json!({
        "lead": [
            [member("w1", "@@work"), member("w2", "@@rest")], "waiting",
            [message("w2", "for w2 alone")], "waiting", "done", "done",
        ],
        "work": [[agent("general-purpose", "@@below", &json!({}))], [message("team-lead", "ready")], "resting"],
        "below": [[named("w2"), named("team-lead"), named("Main"), named("free")], "tried"],
        "deep": ["a namesake"],
        "rest": ["resting", "heard"],
    }))
    .run("@@lead")
    .await;
    let below = told.requests.iter().map(ToString::to_string);
    let below = below.filter(|it| it.contains("@@below")).max_by_key(String::len).unwrap();
    assert_eq!(below.matches("a member of the team has it").count(), 1, "{below}");
    assert_eq!(below.matches("means the agent that the user speaks to").count(), 2, "{below}");
    assert!(below.contains("a namesake"), "another name is free: {below}");
    assert!(last_of(&told, "w2").contains("for w2 alone"));
}

#[tokio::test(start_paused = true)]
async fn a_member_gets_no_name_that_another_agent_has() {
    // teams.md 10.3
    let told = team(&json!({
        "lead": [
            [agent("general-purpose", "@@plain", &json!({}))],
            [member("deep", "@@rest")], "waiting", "done",
        ],
        "plain": [[agent("general-purpose", "@@deep", &json!({"name": "deep"}))], "started"],
        "deep": ["below"],
        "rest": ["resting"],
    }))
    .run("@@lead")
    .await;
    let text = told.last_texts("@@lead");
    assert!(text.contains("name: deep-2"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_fails_after_it_was_asked_to_end_leaves() {
    // D-64, teams.md 11.8: the request does not stay open for ever
    let mut bench = team(&json!({
        "lead": [[member("w1", "@@work")], [asks_to_end("w1")], "waiting", [asks_to_end("w1")], "done", "done"],
        "work": [{"error": {"status": 400, "type": "invalid_request_error"}, "latency_ms": 5000, "blocks": []}],
    }));
    bench.retries = 0;
    let told = bench.run("@@lead").await;
    let text = told.last_texts("@@lead");
    assert!(text.contains("w1 has left the team"), "{text}");
    assert!(text.contains("teammate_terminated"), "it agreed to nothing: {text}");
    assert!(text.contains("w1 has ended already"), "{text}");
}

#[test]
fn an_open_plan_can_be_answered_after_the_lead_was_killed() {
    // D-66, teams.md 10.1, 11.3
    let approves = structured(
        "w1",
        &json!({"type": "plan_approval_response", "request_id": PLAN, "approve": true}),
    );
    let exits = json!({"tool": "ExitPlanMode", "input": {"plan": "write b.txt"}});
    let mut bench = team(&json!({
        "lead": [[joins("w1", "@@work", &json!({"mode": "plan"}))], "waiting"],
        "work": [[exits], {"text": "never", "latency_ms": 3_600_000}],
        "look": [[approves, approves], "waiting", "done"],
    }));
    let has_proposed =
        |asked: &Asked| asked.messages.to_string().contains("Request ID: plan_approval-");
    let died = dies_when(&bench, |_, asked| asked.iter().any(has_proposed));
    bench.scenario["scripts"]["work"] =
        json!(["said already", [writes("b.txt")], [message("team-lead", "written")], "resting"]);
    bench.seed = 40;
    let told = later(bench.resume(&died, "@@look"));
    let text = told.main_texts().join("\n");
    assert!(text.contains("Plan approved for w1"), "{text}");
    assert_eq!(text.matches("there is no open plan").count(), 1, "once only: {text}");
    assert!(bench.project().join("b.txt").exists(), "{}", last_of(&told, "w1"));
}

#[test]
fn a_request_to_end_can_be_answered_after_the_lead_was_killed() {
    // D-64, teams.md 10.4
    let refuses = structured(
        "team-lead",
        &json!({"type": "shutdown_response", "request_id": REQUEST, "approve": false, "reason": "not yet"}),
    );
    let mut bench = team(&json!({
        "lead": [[member("w1", "@@work")], [asks_to_end("w1")], "waiting"],
        "work": [{"text": "never", "latency_ms": 3_600_000}],
        "look": [[message("w1", "go on")], "waiting", "done", "done"],
    }));
    let is_asked = |asked: &Asked| asked.messages.to_string().contains("Shutdown request sent");
    let died = dies_when(&bench, |_, asked| asked.iter().any(is_asked));
    bench.scenario["scripts"]["work"] = json!([[refuses], "working on"]);
    bench.seed = 40;
    let told = later(bench.resume(&died, "@@look"));
    let text = last_of(&told, "w1");
    assert!(text.contains("Continuing to work"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_a_member_said_before_it_was_woken_again_reaches_the_lead() {
    // teams.md 11.2: final reports lost
    let told = team(&json!({
        "lead": [[member("w1", "@@work"), member("w2", "@@wakes"), member("w3", "@@slow")], "waiting", "heard", "done"],
        "work": ["the report of w1", [message("team-lead", "and more")], "resting"],
        "wakes": [{"blocks": [message("w1", "@@again")], "latency_ms": 2000}, "woken"],
        "slow": [{"text": "late", "latency_ms": 60_000}],
    }))
    .run("@@lead")
    .await;
    let text = told.last_texts("@@lead");
    assert_eq!(text.matches("the report of w1").count(), 1, "{text}");
    assert!(text.contains("and more"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_lead_does_not_answer_where_only_a_person_can() {
    // D-67: the lead itself would need a person for it
    let question = json!({"tool": "AskUserQuestion", "input": {"questions": [{
        "question": "Which?", "header": "Choice", "multiSelect": false,
        "options": [{"label": "a", "description": "a"}, {"label": "b", "description": "b"}]}]}});
    let stage = Stage::new(|told| {
        let is_members = told["hook_event_name"] == "PreToolUse" && told["tool_name"] == "Write";
        let asks = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
                                                 "permissionDecisionReason": "a person has to look"}});
        Some(if is_members { asks } else { json!({}) })
    });
    let bench = stage.set(team(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "done", "done"],
        "work": [[writes("a.txt"), question], [message("team-lead", "tried")], "resting"],
    })));
    let told = bench.run("@@lead").await;
    let text = last_of(&told, "w1");
    assert!(!bench.project().join("a.txt").exists(), "{text}");
    assert!(!told.last_texts("@@lead").contains("permission_request"), "the lead is not asked");
}

#[tokio::test(start_paused = true)]
async fn an_agent_below_a_member_asks_the_lead_in_the_members_name() {
    // D-28, S-171, S-173
    let answer = structured(
        "w1",
        &json!({"type": "permission_response", "request_id": r#"${re:"requestId":"(perm-[^"]+)"}"#, "approve": true}),
    );
    let bench = team(&json!({
        "lead": [[member("w1", "@@work")], "waiting", [answer], "waiting", "done"],
        "work": [
            [json!({"tool": "Agent", "input": {"description": "d", "prompt": "@@below", "subagent_type": "careful"}})],
            [message("team-lead", "done")], "resting",
        ],
        "below": [[writes("a.txt")], "tried"],
    }));
    bench.agent("careful", "permissionMode: default\n", "You are careful.");
    let told = bench.run("@@lead").await;
    let text = told.last_texts("@@lead");
    assert!(
        text.contains("permission_request") && text.contains("teammate_id=\\\"w1\\\""),
        "{text}"
    );
    assert!(bench.project().join("a.txt").exists(), "{text}");
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_member_are_told_its_name_its_team_and_one_id() {
    // D-70
    let stage = Stage::silent();
    let bench = stage.set(team(&json!({
        "lead": [[member("w1", "@@work")], "waiting", [message("w1", "@@more")], "waiting", "done", "done"],
        "work": [[writes("a.txt")], "resting"],
        "more": [[writes("b.txt")], "resting"],
    })));
    bench.run("@@lead").await;
    let mut heard = stage.heard(Event::PreToolUse);
    heard.extend(stage.heard(Event::SubagentStart));
    heard.extend(stage.heard(Event::TeammateIdle));
    heard.retain(|told| told["tool_name"] != "Agent" && told["tool_name"] != "SendMessage");
    assert!(heard.len() >= 6, "{heard:?}");
    for told in &heard {
        assert_eq!(told["teammate_name"], "w1", "{told}");
        assert_eq!(told["team_name"], "session-1", "{told}");
        assert_eq!(told["agent_type"], "general-purpose", "{told}");
        assert_eq!(told["agent_id"], heard[0]["agent_id"], "{told}");
    }
    let of_lead = stage.heard(Event::SessionStart);
    assert!(of_lead[0].get("team_name").is_none(), "{of_lead:?}");
}

#[tokio::test(start_paused = true)]
async fn structured_messages_are_not_broadcast() {
    // S-228, D-14
    let told = team(&json!({
        "lead": [[member("w1", "@@work")], [asks_to_end("*")], "waiting", "done", "done"],
        "work": [{"text": "working", "latency_ms": 1000}],
    }))
    .run("@@lead")
    .await;
    let text = told.last_texts("@@lead");
    assert!(text.contains("structured messages go to one agent"), "{text}");
    assert!(!last_of(&told, "w1").contains("shutdown_request"));
}

#[tokio::test(start_paused = true)]
async fn an_inbox_of_many_large_messages_is_shown_whole_and_in_order() {
    // teams.md 11.4: an inbox of a megabyte was read and not shown
    let large = |number: usize| message("w1", &format!("letter {number}: {}", "x".repeat(10_000)));
    let letters: Vec<Value> = (100..200).map(large).collect();
    let told = team(&json!({
        "lead": [[member("w1", "@@work")], letters, "waiting", "done", "done"],
        "work": [{"text": "working", "latency_ms": 60_000}, "read"],
    }))
    .run("@@lead")
    .await;
    let text = last_of(&told, "w1");
    let places: Vec<Option<usize>> =
        (100..200).map(|number| text.find(&format!("\nletter {number}: xxx"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    assert!(text.len() > 1_000_000, "all of each: {}", text.len());
}

#[tokio::test(start_paused = true)]
async fn mail_of_another_session_with_the_same_names_does_not_arrive() {
    // teams.md 11.5: a name means a member of its own session
    let mut bench = team(&json!({
        "lead": [[member("w1", "@@work")], "waiting", "heard"],
        "other": [[member("w1", "@@work")], "waiting", [message("w1", "only for the second")], "waiting", "heard"],
        "look": [[message("w1", "only for the first")], "waiting", "done"],
        "work": [[message("team-lead", "ready")], "resting", "resting"],
    }));
    let first = bench.run("@@lead").await;
    bench.seed = 40;
    let second = bench.run("@@other").await;
    assert!(last_of(&second, "w1").contains("only for the second"));
    bench.seed = 80;
    let told = bench.resume(&first, "@@look").await;
    let text = last_of(&told, "w1");
    assert!(text.contains("only for the first") && !text.contains("only for the second"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_member_at_rest_can_be_stopped() {
    // teams.md 10.9: it hung, because the record of its end asked for what was locked
    let stop = json!({"tool": "TaskStop", "input": {"task_id": "w1"}});
    let told = team(&json!({
        "lead": [[member("w1", "@@work")], "waiting", [stop], "done", "done"],
        "work": [[message("team-lead", "ready")], "resting"],
    }))
    .run("@@lead")
    .await;
    let ended = told.of("system", Some("task_notification"));
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert!(told.outcome.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_full_mailbox_refuses_aloud_and_loses_nothing() {
    // The receipt of an assignment was dropped, and a fault of it made an error of a change that was made
    let create = json!({"tool": "TaskCreate", "input": {"subject": "one", "description": "d"}});
    let give = json!({"tool": "TaskUpdate", "input": {"taskId": "1", "owner": "w1"}});
    let flood = message("w1", &"x".repeat(9 << 20));
    let stop = |name: &str| json!({"tool": "TaskStop", "input": {"task_id": name}});
    let told = team(&json!({
        "lead": [
            [
                member("w1", "@@work"), member("w2", "@@rest"), member("w3", "@@flood"),
                member("w4", "@@rest"), create,
            ],
            "waiting",
            // What these have said is too much for their own conversations, too.
            [stop("w2"), stop("w3")],
            [give, message("w1", "one more"), message("*", "to all"), asks_to_end("w1")],
            "waiting", [message("w1", "@@later")], "waiting", "done", "done", "done",
        ],
        "work": [{"text": "working", "latency_ms": 60_000}, "read", "read"],
        "rest": ["resting", "read", "read"],
        "flood": [[flood.clone(), message("w2", "@@more")], "resting", "read"],
        "more": [[flood, message("team-lead", "sent")], "resting", "read"],
        "later": ["read later"],
    }))
    .run("@@lead")
    .await;
    let results = told.results();
    let result = |part: &str| {
        let found = results.iter().find(|(text, _)| text.contains(part));
        found.unwrap_or_else(|| panic!("{part}: {:?}", told.main_texts()))
    };
    let (text, is_error) = result("Updated task #1 owner");
    assert!(!is_error, "the change is made: {text}");
    assert!(text.contains("The new owner was not told: Too much waits unread for w1"), "{text}");
    assert!(result("\"status\":\"mailbox_full\"").0.contains("nothing was sent"));
    let (broadcast, _) = result("Message sent to 1 of 2 members.");
    assert!(broadcast.contains("\"success\":false"), "{broadcast}");
    assert!(result("w1 cannot be asked").1, "no deadline runs for it");
    let sent_later = results.iter().any(|(text, _)| {
        text.contains("\"status\":\"delivered\"") || text.contains("\"status\":\"resumed\"")
    });
    assert!(sent_later, "once it has read, it is reached again");
    let heard = last_of(&told, "w4");
    assert!(heard.contains("to all"), "{heard}");
    let of_w1 =
        of_agent(&told, "w1").iter().map(|asked| asked.texts().join("\n")).collect::<String>();
    assert!(
        !of_w1.contains("one more") && !of_w1.contains("shutdown_request"),
        "refused is unsent"
    );
}

#[tokio::test(start_paused = true)]
async fn an_old_request_to_end_does_not_end_the_new_member_of_that_name() {
    // teams.md 11.6: an old shutdown killed the namesake
    let old = json!({
        "type": "shutdown_response", "request_id": "${re:old id (shutdown-[^ ]+) end}", "approve": true,
    });
    let agrees = json!({"type": "shutdown_response", "request_id": REQUEST, "approve": true});
    let told = team(&json!({
        "lead": [
            [member("w1", "@@work")], "waiting", [asks_to_end("w1")], "waiting",
            [member("w1", "@@next")],
            [message("w1-2", r#"old id ${re:Request ID: (shutdown-[^"\\]+)} end"#)],
            "waiting", "done", "done",
        ],
        "work": [[message("team-lead", "ready")], "resting", [structured("team-lead", &agrees)]],
        "next": [
            {"text": "longer than the old deadline", "latency_ms": 120_000},
            [structured("team-lead", &old)], [message("team-lead", "still here")], "resting",
        ],
    }))
    .run("@@lead")
    .await;
    let text = last_of(&told, "w1-2");
    assert!(text.contains("old id shutdown-"), "{text}");
    assert!(text.contains("there is no open request to end"), "{text}");
    assert!(told.main_texts().join("\n").contains("still here"));
}

#[tokio::test(start_paused = true)]
async fn mail_to_a_member_that_the_user_stopped_is_refused_and_begins_nothing() {
    // teams.md 10.3: the receipt `terminated`
    let bench = team(&json!({
        "lead": [[member("w1", "@@work")], "waiting", [message("w1", "@@more"), message("*", "all")], "done", "done"],
        "work": [{"text": "never", "latency_ms": 3_600_000}],
        "more": ["never either"],
    }));
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            let is_at_work = |it: &Asked| it.agent.as_deref() == Some("w1@session-1");
            watcher.until(|_, asked| asked.iter().any(is_at_work)).await;
            handle.stop_task("w1").await.unwrap();
        })
        .await;
    let results = told.results();
    let has = |part: &str| results.iter().any(|(text, _)| text.contains(part));
    assert!(has("\"status\":\"terminated\""), "{results:?}");
    assert!(has("There is no other member to speak to"), "{results:?}");
    assert_eq!(of_agent(&told, "w1").len(), 1, "it was not asked again");
    let mail = told.team_mail().join("\n");
    assert!(mail.contains("w1 has left the team: the user stopped it"), "{mail}");
    assert!(!mail.contains("SendMessage with to"), "the lead cannot bring it back: {mail}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_to_end_for_which_the_lead_has_no_room_is_no_answer() {
    // It counted as given, and the lead never heard of it
    let refuses = json!({"type": "shutdown_response", "request_id": REQUEST, "approve": false, "reason": "not yet"});
    let flood = message("team-lead", &"x".repeat(9 << 20));
    let told = team(&json!({
        "lead": [
            [member("w1", "@@work"), member("w2", "@@rest"), member("w3", "@@rest")], "waiting",
            [asks_to_end("w1"), message("w2", "@@flood"), message("w3", "@@flood")],
            {"text": "busy", "latency_ms": 30_000}, "done", "done", "done",
        ],
        "work": [
            [message("team-lead", "ready")], "resting",
            {"blocks": [structured("team-lead", &refuses)], "latency_ms": 5_000},
            "working on", "working on",
        ],
        "rest": ["resting"],
        "flood": [[flood], "resting"],
    }))
    .run("@@lead")
    .await;
    let of_w1 = of_agent(&told, "w1").last().unwrap().texts().join("\n");
    assert!(of_w1.contains("team-lead cannot be told: too much waits unread"), "{of_w1}");
    assert!(!of_w1.contains("Continuing to work"), "{of_w1}");
}
