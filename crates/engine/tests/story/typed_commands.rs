//! Commands that people type: which there are, and what is said of one that is not.

use std::collections::BTreeSet;

use centurion_config::memory::{Memory, MemorySources};
use centurion_engine::AgentOptions;
use centurion_protocol::{Block, Outcome, SeededWorld, World};
use serde_json::{Value, json};

use crate::agent_stage::starts;
use crate::bench::{Bench, Told};
use crate::compaction::{good, read, telling};
use crate::hook_stage::Stage;
use crate::skills::{bench, invokes, said, skill, talk};

#[tokio::test(start_paused = true)]
async fn a_slip_is_compared_with_every_command_that_can_be_typed() {
    let stage = Stage::silent();
    let bench = stage.set(bench(&json!({"lead": ["done"]})));
    for name in ["deploy", "deplore", "deploys", "deployed"] {
        skill(&bench, name, "", "Deploy.");
    }
    for (typed, expected) in [
        ("/contex", "there is no command /contex; did you mean /context?"),
        (
            "/mcp__desk__breif",
            "there is no command /mcp__desk__breif; did you mean /mcp__desk__brief?",
        ),
        ("/deplo", "there is no command /deplo; did you mean /deploy, /deplore or /deploys?"),
        ("/permi", "there is no command /permi; did you mean /permissions?"),
        ("/zzzzzzzz", "there is no command /zzzzzzzz"),
    ] {
        let told = bench.run(typed).await;
        assert!(told.asked.is_empty(), "{typed}");
        assert_eq!(told.outcome, Some(Outcome::CommandFailed), "{typed}");
        assert_eq!(told.result()["errors"], json!([expected]), "{typed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_of_a_server_takes_its_arguments_quoted_and_says_which_is_missing() {
    let bench = Stage::silent().set(Bench::new(json!({"default": "done"})));
    let hint = "/mcp__desk__forecast <city> [days]";
    for (typed, said_or_failed) in [
        ("forecast Berlin", Ok(r#"FORECAST {"city":"Berlin"}"#)),
        (
            "forecast 'New York'  \"the next two\"",
            Ok(r#"FORECAST {"city":"New York","days":"the next two"}"#),
        ),
        (
            "forecast Berlin the  next two",
            Ok(r#"FORECAST {"city":"Berlin","days":"the  next two"}"#),
        ),
        ("forecast $1 $ARGUMENTS", Ok(r#"FORECAST {"city":"$1","days":"$ARGUMENTS"}"#)),
        ("forecast", Err(format!("/mcp__desk__forecast needs `city`: {hint}"))),
        ("brief now", Err("/mcp__desk__brief takes no arguments: now".to_owned())),
        ("nothing", Err("/mcp__desk__nothing: the server has no text for it".to_owned())),
    ] {
        let told = bench.run(&format!("/mcp__desk__{typed}")).await;
        match said_or_failed {
            Ok(text) => assert!(said(&told.asked[0]).contains(text), "{}", said(&told.asked[0])),
            Err(reason) => {
                assert_eq!(told.result()["errors"], json!([reason]));
                assert!(told.asked.is_empty(), "{typed}");
            }
        }
    }
    let told = bench.run("/help").await;
    let help = told.result()["result"].as_str().unwrap();
    assert!(help.contains(&format!("{hint}  The weather\n")), "{help}");
}

#[tokio::test(start_paused = true)]
async fn a_skill_without_a_text_asks_no_model() {
    let scripts = json!({"lead": [invokes("named", ""), "done"]});
    let bench = bench(&scripts);
    skill(&bench, "named", "arguments: who\n", "$who");
    skill(&bench, "all", "", " $ARGUMENTS\n");
    skill(&bench, "none", "", "");
    skill(&bench, "forks", "arguments: who\ncontext: fork\n", "$who\n");
    skill(&bench, "plain", "", "Plain.");
    for typed in ["/named", "/all", "/none", "/none these", "/forks", "/plain /all", "/named ''"] {
        let told = bench.run(typed).await;
        if typed == "/none these" {
            // Arguments that have no place stand behind the text.
            assert!(said(&told.asked[0]).contains("ARGUMENTS: these"), "{typed}");
            continue;
        }
        assert_eq!(told.outcome, Some(Outcome::CommandFailed), "{typed}: {}", told.result());
        assert!(told.result()["errors"].to_string().contains("its text is empty"), "{typed}");
        assert!(told.asked.is_empty(), "{typed}");
    }
    // A model is told the same.
    let told = bench.run("@@lead").await;
    let (text, is_error) = &told.results()[0];
    assert!(*is_error && text.contains("its text is empty"), "{text}");
}

/// A session that has one of everything: a server, hooks, an instruction file, a rule, a skill, and an agent at work.
fn furnished() -> Bench {
    let scripts = json!({
        "lead": [read(), invokes("deploy", "there"), [starts("@@slow")], "started"],
        "slow": [{"text": "slow and steady", "latency_ms": 3_600_000}],
        "then": ["done"],
    });
    let mut bench = bench(&scripts);
    bench.deny = "Write(secret/**)";
    bench.file("CLAUDE.md", &"Always be brief.\n".repeat(40));
    bench.file("long.txt", &"0123456789\n".repeat(200));
    skill(&bench, "deploy", "argument-hint: where\n", &"Deploy $0 with care.\n".repeat(40));
    let cwd = bench.project();
    bench.also(move |options| {
        let sources = MemorySources { cwd: cwd.clone(), ..MemorySources::default() };
        options.memory = Some(Memory::load(sources));
    });
    Stage::silent().set(bench)
}

/// What a command shows while an agent works in the background.
async fn shown(bench: &Bench, command: &str) -> String {
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            let count =
                |events: &[Value]| events.iter().filter(|it| it["type"] == "result").count();
            watcher.until(|events, _| count(events) == 1).await;
            handle.submit(SeededWorld::new(70).record_id(), vec![Block::text(command)]);
            watcher.until(|events, _| count(events) == 2).await;
            handle.stop();
        })
        .await;
    let result = told.of("result", None)[1];
    assert_eq!(result["is_error"], false, "{command}: {result}");
    result["result"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn commands_show_what_the_session_has() {
    let bench = furnished();
    for (command, expected) in [
        ("/help", vec!["/deploy where  About deploy", "/mcp__desk__brief", "/reload-skills  "]),
        ("/cost", vec!["Total cost: $0.", "claude-opus-5-5: "]),
        ("/usage", vec!["Total cost: $0.", "claude-opus-5-5: "]),
        ("/tasks", vec!["agent general-purpose  a job"]),
        ("/mcp", vec!["desk  connected"]),
        ("/hooks", vec!["PreToolUse", "Stop"]),
        ("/permissions", vec!["Mode: acceptEdits", "Write(secret/**)"]),
        ("/memory", vec!["CLAUDE.md"]),
        ("/skills", vec!["deploy  (project)  About deploy"]),
        ("/status", vec!["Session: ", "Model: claude-opus-5-5", "Mode: acceptEdits"]),
        ("/export", vec!["## User", "Deploy there with care."]),
    ] {
        let text = shown(&bench, command).await;
        for part in expected {
            assert!(text.contains(part), "{command}: {part}: {text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_context_is_told_by_category_and_adds_up() {
    let text = shown(&furnished(), "/context").await;
    let rows: Vec<(&str, u64)> = text
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?, cells.next()?.parse().ok()?))
        })
        .collect();
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    let expected = [
        "System prompt",
        "Tools",
        "MCP tools",
        "Agents",
        "Skills",
        "Used skills",
        "Instruction files",
        "Results",
        "Messages",
        "Free",
    ];
    assert_eq!(names, expected);
    assert!(rows.iter().all(|(_, tokens)| *tokens > 0), "{text}");
    let (_, total) = text.split_once("**Tokens:** ").unwrap();
    let mut words = total.split_whitespace();
    let used: u64 = words.next().unwrap().parse().unwrap();
    let window: u64 = words.nth(1).unwrap().parse().unwrap();
    let sum: u64 = rows.iter().map(|(_, tokens)| tokens).sum();
    let free = rows.last().unwrap().1;
    assert_eq!((sum, sum - free), (window, used), "{text}");
    let of = |name| rows.iter().find(|(it, _)| *it == name).unwrap().1;
    assert!(of("Instruction files") > 150 && of("Used skills") > 200, "{text}");
    assert!(of("Results") > 500, "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_person_has_skills_looked_at_again() {
    let bench = bench(&json!({"lead": ["done"]}));
    skill(&bench, "old", "", "Old.");
    let skills = bench.project().join(".claude/skills");
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            watcher.until(|events, _| events.iter().any(|it| it["type"] == "result")).await;
            std::fs::rename(skills.join("old"), skills.join("new")).unwrap();
            handle.submit(SeededWorld::new(70).record_id(), vec![Block::text("/reload-skills")]);
        })
        .await;
    let text = told.of("result", None)[1]["result"].as_str().unwrap();
    assert!(text.contains(" skills and commands now."), "{text}");
    assert_eq!(told.asked.len(), 1, "no model is asked");
}

/// What a model was told and answered when a host chose skills.
async fn with_chosen(chosen: Option<&[&str]>) -> Told {
    let scripts = json!({"lead": [invokes("fix", ""), invokes("greet", ""), "done"]});
    let mut bench = Bench::cast(&scripts);
    bench.knows_agents(|_: &mut AgentOptions| {});
    skill(&bench, "fix", "", "FIX-TEXT");
    skill(&bench, "greet", "", "GREET-TEXT");
    let chosen: Option<BTreeSet<String>> =
        chosen.map(|names| names.iter().map(|&name| name.to_owned()).collect());
    let watcher = std::sync::Arc::new(crate::bench::Watcher::default());
    let start = centurion_engine::Start::New(SeededWorld::new(1).session_id());
    let mut session = bench.open(start, None, &watcher).await;
    let handle = session.handle();
    handle.choose_skills(chosen);
    let world = SeededWorld::new(70);
    handle.submit(world.record_id(), vec![Block::text("@@lead")]);
    handle.close();
    let outcome = session.run().await;
    bench.told(&session, outcome, &watcher)
}

#[tokio::test(start_paused = true)]
async fn a_host_chooses_the_skills_that_models_may_invoke() {
    for (chosen, has_fix, has_greet) in [
        (None, true, true),
        (Some(["greet"].as_slice()), false, true),
        (Some([].as_slice()), false, false),
    ] {
        let told = with_chosen(chosen).await;
        let (first, last) = (said(&told.asked[0]), said(told.asked.last().unwrap()));
        let listed = |name: &str| first.contains(&format!("- {name}: About {name}"));
        assert_eq!((listed("fix"), listed("greet")), (has_fix, has_greet), "{chosen:?}");
        let invoked = |text: &str| last.contains(text);
        assert_eq!(
            (invoked("FIX-TEXT"), invoked("GREET-TEXT")),
            (has_fix, has_greet),
            "{chosen:?}"
        );
        let init = told.of("system", Some("init"))[0];
        assert_eq!(init["skills"].to_string().contains("fix"), has_fix, "{chosen:?}");
        assert!(init["slash_commands"].to_string().contains("fix"), "people may type it");
    }
}

#[tokio::test(start_paused = true)]
async fn every_name_that_is_listed_can_be_typed_and_none_stands_before_a_commands_arguments() {
    let bench = Bench::cast(&json!({"lead": ["done"]}));
    for name in ["c++", "my skill", "my skill set", "deploy", "deploy to", "cost of", "réviser"] {
        skill(&bench, name, "", &format!("@@lead <{name}>: $ARGUMENTS."));
    }
    for (typed, expected) in [
        ("/c++ a b", "<c++>: a b."),
        ("/my skill a", "<my skill>: a."),
        ("/my skill set", "<my skill set>: ."),
        (" /my skill  settle\n", "<my skill>: settle."),
        ("/deploy to prod", "<deploy>: to prod."),
        ("/réviser x", "<réviser>: x."),
        ("/deploy /my skill x", "<my skill>: x."),
    ] {
        let told = bench.run(typed).await;
        let text = said(&told.asked[0]);
        assert!(text.contains(expected), "{typed}: {text}");
    }
    let told = bench.run("/cost of it").await;
    assert!(told.asked.is_empty(), "a command of the program goes first");
    let told = bench.run("/my skil").await;
    assert_eq!(told.outcome, Some(Outcome::CommandFailed));
}

#[tokio::test(start_paused = true)]
async fn words_behind_a_command_that_lists_something_narrow_its_list() {
    let bench = bench(&json!({"lead": ["done"]}));
    skill(&bench, "deploy", "", "Deploy.");
    skill(&bench, "tidy", "", "Tidy.");
    for (command, there, gone) in [
        ("/skills DEPLOY", "deploy  (project)", "tidy"),
        ("/help tidy", "/tidy", "/deploy"),
        ("/agents works OUT how", "Plan", "general-purpose"),
    ] {
        let told = bench.run(command).await;
        let shown = told.result()["result"].as_str().unwrap();
        assert!(shown.contains(there) && !shown.contains(gone), "{command}: {shown}");
    }
    for command in
        ["agents", "hooks", "mcp", "memory", "permissions", "resume", "skills", "tasks", "help"]
    {
        let told = bench.run(&format!("/{command} no such thing")).await;
        assert_eq!(told.outcome, Some(Outcome::CommandFailed), "{command}");
        let expected = format!("/{command} lists nothing with no such thing in it");
        assert_eq!(told.result()["errors"], json!([expected]));
        assert!(told.asked.is_empty(), "{command}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_command_cannot_take_is_refused_and_nothing_happens() {
    let bench = bench(&json!({"lead": ["first answer"], "then": ["second"]}));
    for (command, reason) in [
        ("/clear all", "/clear takes no arguments: all"),
        ("/cost x", "/cost takes no arguments: x"),
        ("/usage x", "/usage takes no arguments: x"),
        ("/context x", "/context takes no arguments: x"),
        ("/status x", "/status takes no arguments: x"),
        ("/reload-skills x", "/reload-skills takes no arguments: x"),
        ("/rename \u{7} \n", "say what the session is to be called"),
        ("/btw", "the question is empty"),
        ("/rewind 99", "there is no prompt 99; /rewind lists them"),
    ] {
        let told = talk(&bench, &["@@lead", command, "@@then"]).await;
        let results = told.of("result", None);
        assert_eq!(results[1]["errors"], json!([reason]), "{command}");
        assert_eq!(results[1]["is_error"], true, "{command}");
        assert!(told.of("conversation_reset", None).is_empty());
        let next = said(told.asked.last().unwrap());
        assert!(next.contains("first answer") && !next.contains(command.trim()), "{next}");
    }
    let told = bench.run("/rename One\n\ttwo").await;
    assert_eq!(told.result()["result"], "The session is called One two from now on.");
}

#[tokio::test(start_paused = true)]
async fn the_context_is_measured_by_the_window_that_the_user_set() {
    let told = telling(40_000, &[good()], &[]).run("/context").await;
    let shown = told.result()["result"].as_str().unwrap();
    assert!(shown.contains(" of 40000 (") && shown.contains("from 26667 tokens on"), "{shown}");
    let free = shown.lines().find(|line| line.starts_with("| Free |")).unwrap();
    let free: u64 = free.split(" | ").nth(1).unwrap().parse().unwrap();
    assert!(free < 40_000, "{shown}");
}
