//! Hooks that a model, an agent, a server or a web service carries out, and when they are asked.

use std::sync::Arc;
use std::time::Duration;

use centurion_config::settings::Level;
use centurion_engine::{Change, ModelRefusal, Rules, ServerPatience};
use centurion_hooks::{Event, Frontmatter, HookOrigin, HookSet, HookSource};
use centurion_permissions::{Mode, Rule, RuleOrigin};
use centurion_protocol::{Block, Outcome, SeededWorld, World};
use centurion_testkit::{Reply, Server};
use serde_json::{Value, json};

use crate::bench::{Bench, Told, Watcher};
use crate::hook_stage::{Stage, every_event};
use crate::hooks::Changes;

/// What the model that judges is told, so that a scenario knows it.
const JUDGE: &str = "judge one thing";

fn settings_hooks(event: Event, handlers: &Value) -> HookSet {
    let origin = HookOrigin::new(HookSource::Settings(Level::User));
    let set = HookSet::from_value(&json!({event.name(): [{"hooks": handlers}]}), &origin);
    assert!(set.problems().is_empty(), "{:?}", set.problems());
    set
}

/// A bench with these hooks, a server for them, and a file to read.
fn bench(scenario: Value, hooks: &HookSet) -> (Bench, Arc<Stage>) {
    let mut bench = Bench::new(scenario);
    bench.file("a.txt", "alpha\n");
    let (stage, hooks) = (Stage::silent(), hooks.clone());
    let owner = Arc::clone(&stage);
    bench.adjust = Box::new(move |options| owner.extend(options, hooks.clone()));
    (bench, stage)
}

fn writing() -> Value {
    json!([[{"tool": "Write", "id": "t1", "input": {"file_path": "x.txt", "content": "y"}}], "done"])
}

fn exists(bench: &Bench) -> bool {
    bench.project().join("x.txt").exists()
}

/// A call of the server that answers what the hook wants it to.
fn verdict(verdict: &Value) -> Value {
    json!({"type": "mcp_tool", "server": "desk", "tool": "judge", "input": {"verdict": verdict}})
}

fn denial(reason: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                  "permissionDecisionReason": reason}})
}

fn first_result(told: &Told) -> String {
    told.results().remove(0).0
}

#[tokio::test]
async fn a_model_may_judge_and_its_no_counts_as_the_event_has_it() {
    let no = json!(r#"I think: {"ok": false, "reason": "too risky"}"#);
    let yes = json!(r#"{"ok": true}"#);
    let prompt = json!([{"type": "prompt", "prompt": "is this fine? $ARGUMENTS"}]);
    let continues = json!([{"type": "prompt", "prompt": "is this fine?", "continueOnBlock": true}]);
    for (event, handlers, answer, outcome, is_written) in [
        (Event::PreToolUse, &prompt, &yes, Outcome::Completed, true),
        (Event::PreToolUse, &prompt, &no, Outcome::HookStopped, false),
        (Event::PreToolUse, &continues, &no, Outcome::Completed, false),
        (Event::PostToolUse, &prompt, &no, Outcome::HookStopped, true),
        (Event::PostToolUse, &continues, &no, Outcome::Completed, true),
        (Event::UserPromptSubmit, &prompt, &no, Outcome::HookStopped, false),
    ] {
        let scenario = json!({"rules": [{"match": {"system": JUDGE}, "respond": answer}], "default": writing()});
        let (bench, _) = bench(scenario, &settings_hooks(event, handlers));
        let told = bench.run("write").await;
        assert_eq!(told.outcome, Some(outcome), "{event} {handlers}");
        assert_eq!(exists(&bench), is_written, "{event} {handlers}");
        let judged: Vec<String> = told
            .requests
            .iter()
            .map(Value::to_string)
            .filter(|it| it.contains("is this fine?"))
            .collect();
        assert_eq!(judged.len(), 1, "{event}");
        assert!(
            judged[0].contains(&format!(r#"\"hook_event_name\":\"{event}\""#)),
            "{}",
            judged[0]
        );
        if event == Event::PreToolUse && !is_written {
            assert_eq!(first_result(&told), "PreToolUse:Write hook error: too risky");
        }
        let lines = std::fs::read_to_string(&told.transcript).unwrap();
        assert!(
            !lines.contains("is this fine?"),
            "what is asked aside is no part of the conversation"
        );
        let usage = &told.result()["modelUsage"];
        assert!(
            usage.as_object().unwrap().values().all(|it| it["costUSD"].as_f64() > Some(0.0)),
            "but it is paid for: {usage}"
        );
    }
}

#[tokio::test]
async fn an_agent_may_look_around_before_it_judges_and_sets_off_no_hooks() {
    let looks = json!({"rules": [
        {"match": {"system": JUDGE, "turn": 0}, "respond": [
            {"tool": "Read", "id": "look", "input": {"file_path": "a.txt"}},
            {"tool": "Write", "id": "meddle", "input": {"file_path": "x.txt", "content": "z"}},
        ]},
        {"match": {"system": JUDGE}, "respond": r#"{"ok": false, "reason": "the file says ${re:(alp\w+)}"}"#},
    ], "default": ["finished", "really finished"]});
    let mut hooks = json!([{"type": "agent", "prompt": "is the work done?"}]);
    let others = json!([{"hooks": [verdict(&denial("no"))]}]);
    let both = json!({"Stop": [{"hooks": hooks}], "PreToolUse": others, "PostToolUse": others});
    let set = HookSet::from_value(&both, &HookOrigin::new(HookSource::Settings(Level::User)));
    let (bench, stage) = bench(looks, &set);
    let told = bench.run("work").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert!(!exists(&bench), "it can only look");
    assert!(stage.desk.calls.lock().is_empty(), "a hook sets off no hooks");
    let request = told
        .requests
        .iter()
        .map(Value::to_string)
        .find(|it| it.contains("Stop hook feedback"))
        .unwrap();
    assert!(request.contains("the file says alpha"), "{request}");
    // A model that gives no verdict has none.
    hooks[0]["type"] = json!("prompt");
    let scenario =
        json!({"rules": [{"match": {"system": JUDGE}, "respond": "hm"}], "default": "finished"});
    let (bench, _) = self::bench(scenario, &settings_hooks(Event::Stop, &hooks));
    let told = bench.run("work").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let warning = &told.of("system", Some("informational"))[0]["content"];
    assert!(
        warning.as_str().unwrap().contains("Stop hook error: [is the work done?]: "),
        "{warning}"
    );
}

#[tokio::test]
async fn a_tool_of_a_server_may_judge_where_its_condition_holds() {
    for (condition, is_written) in
        [("Edit(x.txt)", false), ("Edit(other/**)", true), ("Bash(ls)", true)]
    {
        let mut hook = verdict(&denial("the server says no about ${tool_input.file_path}"));
        hook["if"] = json!(condition);
        let (bench, stage) = bench(
            json!({"default": writing()}),
            &settings_hooks(Event::PreToolUse, &json!([hook])),
        );
        let told = bench.run("write").await;
        assert_eq!(exists(&bench), is_written, "{condition}");
        let calls = stage.desk.calls.lock().len();
        assert_eq!(calls, usize::from(!is_written), "{condition}");
        if !is_written {
            let path = bench.project().join("x.txt");
            let expected =
                format!("PreToolUse:Write hook error: the server says no about {}", path.display());
            assert_eq!(first_result(&told), expected);
        }
    }
    // A server that is not there has no say, and people are told.
    let mut hook = verdict(&denial("never said"));
    hook["server"] = json!("elsewhere");
    let (bench, _) =
        bench(json!({"default": writing()}), &settings_hooks(Event::PreToolUse, &json!([hook])));
    let told = bench.run("write").await;
    assert!(exists(&bench));
    let warning = &told.of("system", Some("informational"))[0]["content"];
    assert!(warning.as_str().unwrap().contains("elsewhere"), "{warning}");
}

#[tokio::test(start_paused = true)]
async fn a_hook_waits_for_its_server_where_the_run_does_not() {
    let hooks = settings_hooks(Event::PreToolUse, &json!([verdict(&denial("no"))]));
    let (mut bench, stage) = bench(json!({"default": writing()}), &hooks);
    *stage.desk.latency.lock() = Duration::from_secs(12);
    let before = bench.adjust;
    bench.adjust = Box::new(move |options| {
        before(options);
        options.extensions.server_patience = ServerPatience::default();
    });
    let told = bench.run("write").await;
    assert!(!exists(&bench), "{:?}", told.results());
    assert_eq!(stage.desk.calls.lock().len(), 1);
}

#[tokio::test]
async fn a_hook_of_a_skill_may_run_once() {
    let mut hook = verdict(&denial("only this time"));
    hook["once"] = json!(true);
    let origin = HookOrigin::new(HookSource::Skill("careful".into()));
    let value = json!({"PreToolUse": [{"matcher": "Write", "hooks": [hook]}]});
    let set = HookSet::from_frontmatter(&value, &origin, Frontmatter::Skill);
    let write = |id: &str| json!({"tool": "Write", "id": id, "input": {"file_path": "x.txt", "content": id}});
    let (bench, stage) = bench(json!({"default": [[write("t1")], [write("t2")], "done"]}), &set);
    let told = bench.run("write").await;
    assert_eq!(first_result(&told), "PreToolUse:Write hook error: only this time");
    assert!(exists(&bench));
    assert_eq!(stage.desk.calls.lock().len(), 1);
}

#[tokio::test]
async fn a_web_service_may_judge_but_not_by_its_status() {
    let answers = |reply: Reply| Server::start_with(move |_| reply.clone());
    let json_reply = |value: &Value| {
        Reply::status(200).header("content-type", "application/json").body(value.to_string())
    };
    for (reply, is_written) in [
        (json_reply(&denial("the service says no")), false),
        (Reply::status(200), true),
        (Reply::status(403), true),
    ] {
        let server = answers(reply);
        let hook = json!([{"type": "http", "url": format!("{}/hook", server.url()), "headers": {"x-key": "v"}}]);
        let (bench, _) =
            bench(json!({"default": writing()}), &settings_hooks(Event::PreToolUse, &hook));
        let told = bench.run("write").await;
        assert_eq!(exists(&bench), is_written);
        let posted = server.last();
        assert_eq!((posted.method.as_str(), posted.path.as_str()), ("POST", "/hook"));
        assert_eq!(
            (posted.header("x-key"), &posted.json()["tool_use_id"]),
            (Some("v"), &json!("t1"))
        );
        if !is_written {
            assert_eq!(first_result(&told), "PreToolUse:Write hook error: the service says no");
        }
    }
}

#[tokio::test]
async fn hooks_of_changed_settings_take_the_place_of_the_old_ones_unless_a_hook_objects() {
    let block = json!({"decision": "block", "reason": "as it was"});
    for (objection, denied_by) in [(None, "new"), (Some(&block), "old")] {
        let group = |verdict: &Value| json!([{"hooks": [self::verdict(verdict)]}]);
        let mut old = json!({"PreToolUse": group(&denial("old"))});
        if let Some(objection) = objection {
            old["ConfigChange"] = group(objection);
        }
        let origin = HookOrigin::new(HookSource::Settings(Level::User));
        let old = HookSet::from_value(&old, &origin);
        let new = settings_hooks(Event::PreToolUse, &json!([verdict(&denial("new"))]));
        let (mut bench, _) = bench(json!({"default": writing()}), &old);
        let before = bench.adjust;
        bench.adjust = Box::new(move |options| {
            before(options);
            let rules = Rules { directories: vec![options.base.cwd.clone()], ..Rules::default() };
            let files = vec![("project_settings", "/settings.json".into())];
            let change = Change { rules, files, hooks: new.clone(), ..Change::default() };
            options.permission.rule_source = Some(Box::new(Changes(vec![change])));
        });
        let told = bench.run("write").await;
        assert_eq!(first_result(&told), format!("PreToolUse:Write hook error: {denied_by}"));
    }
}

#[tokio::test]
async fn what_was_kept_out_does_not_come_along_with_the_next_change() {
    let steps =
        json!([[{"tool": "TodoWrite", "id": "t0", "input": {"todos": []}}], writing()[0], "done"]);
    let mut bench = Bench { mode: Mode::Default, ..Bench::says(&steps) };
    bench.adjust = Box::new(|options| {
        let allow = Rule::parse_list("Edit", &RuleOrigin::Flag).unwrap().into();
        let rules =
            Rules { allow, directories: vec![options.base.cwd.clone()], ..Rules::default() };
        let change = |source| Change {
            rules: rules.clone(),
            files: vec![(source, format!("/{source}.json").into())],
            hooks: every_event(),
            ..Change::default()
        };
        options.permission.rule_source =
            Some(Box::new(Changes(vec![change("project_settings"), change("user_settings")])));
    });
    for (objects, is_written) in [(true, false), (false, true)] {
        let stage = Stage::new(move |told| {
            let is_it = objects && told["source"] == "project_settings";
            Some(if is_it { json!({"decision": "block", "reason": "no"}) } else { json!({}) })
        });
        bench = stage.set(bench);
        bench.run("write").await;
        assert_eq!(exists(&bench), is_written);
        let heard = stage.heard(Event::ConfigChange);
        let sources: Vec<&str> =
            heard.iter().map(|told| told["source"].as_str().unwrap()).collect();
        // The second change would bring the first along if that is not in force.
        let expected = ["project_settings", "user_settings", "project_settings"];
        assert_eq!(sources, expected[..2 + usize::from(objects)]);
    }
}

#[tokio::test]
async fn every_run_of_a_hook_is_an_event_for_those_who_want_to_see_it() {
    let set = settings_hooks(Event::PreToolUse, &json!([verdict(&json!({}))]));
    let (mut bench, _) = bench(json!({"default": writing()}), &set);
    let before = bench.adjust;
    bench.adjust = Box::new(move |options| {
        before(options);
        options.extensions.shows_hooks = true;
    });
    let watcher = Arc::new(Watcher::default());
    let world = SeededWorld::new(3);
    let mut session =
        bench.open(centurion_engine::Start::New(world.session_id()), None, &watcher).await;
    // Hooks may also come while the session is there.
    session.handle().set_host_hooks(settings_hooks(Event::Stop, &json!([verdict(&json!({}))])));
    session.handle().submit(world.record_id(), vec![Block::text("write")]);
    session.handle().close();
    let outcome = session.run().await;
    let told = bench.told(&session, outcome, &watcher);
    let names = |subtype| -> Vec<String> {
        told.of("system", Some(subtype))
            .iter()
            .map(|event| event["hook_name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("hook_started"), ["PreToolUse:Write", "Stop"]);
    assert_eq!(names("hook_response"), ["PreToolUse:Write", "Stop"]);
}

#[tokio::test]
async fn a_hook_that_a_model_carries_out_uses_no_model_that_may_not_be_used() {
    for kind in ["prompt", "agent"] {
        let hook = json!([{"type": kind, "prompt": "judge one thing", "model": "opus"}]);
        let hooks = settings_hooks(Event::PreToolUse, &hook);
        let judges = json!({"match": {"system": JUDGE}, "respond": {"text": "{\"ok\": true}"}});
        let (mut bench, _) = bench(json!({"rules": [judges], "default": writing()}), &hooks);
        let before = std::mem::replace(&mut bench.adjust, Box::new(|_| {}));
        bench.adjust = Box::new(move |options| {
            before(options);
            options.agents.check_model = Arc::new(|name| {
                if name.contains("opus") {
                    return Err(ModelRefusal::new("availableModels has it not"));
                }
                Ok(())
            });
        });
        let told = bench.run("go").await;
        let was_asked = told.asked.iter().any(|it| it.system.concat().contains(JUDGE));
        assert!(!was_asked, "{kind}: nobody was asked");
        let said = json!(told.events).to_string();
        assert!(said.contains("availableModels has it not"), "{kind}: {said}");
    }
}
