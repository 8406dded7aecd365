//! A session that runs as an agent, and what a definition means for an agent that runs as it.

use std::path::PathBuf;
use std::sync::Arc;

use centurion_config::agent_memory::MemoryPlaces;
use centurion_config::memory::{Memory, MemorySources};
use centurion_engine::{AgentOptions, MainFlags, OpenError, PromptOptions, Session, Start};
use centurion_permissions::Mode;
use centurion_protocol::{Effort, Outcome, SeededWorld, World};
use serde_json::{Value, json};

use crate::agent_stage::{agent, waits};
use crate::bench::{Asked, Bench, Watcher};
use crate::hook_stage::Stage;

const FRONT: &str = "tools: Read, Write, Agent\nmodel: claude-haiku-5-5\neffort: low\npermissionMode: plan\nmaxTurns: 5\n";

fn write(file: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": file, "content": "y"}})
}

/// A session that runs as the agent `boss`.
fn as_boss(
    scripts: &Value,
    front: &str,
    change: impl Fn(&mut AgentOptions) + Send + Sync + 'static,
) -> Bench {
    let mut bench = Bench::cast(scripts);
    bench.agent("boss", front, "You are the boss.");
    bench.knows_agents(move |agents| {
        agents.main = Some("boss".to_owned());
        change(agents);
    });
    bench
}

fn more(
    bench: Bench,
    change: impl Fn(&mut centurion_engine::Options) + Send + Sync + 'static,
) -> Bench {
    let before = bench.adjust;
    let adjust = Box::new(move |options: &mut centurion_engine::Options| {
        before(options);
        change(options);
    });
    Bench { adjust, ..bench }
}

#[tokio::test(start_paused = true)]
async fn a_session_runs_as_an_agent_with_all_that_it_says() {
    // S-092, S-084, D-5a, D-8
    let usual = Bench::says(&json!(["hello"])).run("hi").await;
    let bench = as_boss(&json!({"lead": [[write("x.txt")], "planned"]}), FRONT, |_| {});
    let told = bench.run("@@lead").await;
    let first = &told.asked[0];
    assert_eq!(first.system[0], "You are the boss.");
    assert!(!first.system.contains(&usual.asked[0].system[0]), "its text replaces the usual one");
    assert!(first.system.last().unwrap().contains("# Environment"), "{:?}", first.system);
    assert_eq!(first.tools, ["Agent", "Read", "Write"]);
    assert_eq!((first.model.as_str(), first.effort), ("claude-haiku-5-5", Some(Effort::Low)));
    let init = told.of("system", Some("init"))[0];
    assert_eq!(
        (&init["model"], &init["permissionMode"]),
        (&json!("claude-haiku-5-5"), &json!("plan"))
    );
    assert!(!bench.project().join("x.txt").exists(), "its mode counts");
}

#[tokio::test(start_paused = true)]
async fn what_the_user_said_on_the_command_line_wins() {
    let flags = MainFlags { has_model: true, has_effort: true, has_mode: true, has_turns: true };
    let bench = as_boss(&json!({"lead": [[write("x.txt")], "done"]}), FRONT, move |agents| {
        agents.flags = flags.clone();
    });
    let bench = more(bench, |options| {
        options.settings.effort = Some(Effort::High);
        options.settings.max_turns = Some(1);
        options.prompt = PromptOptions {
            replace: Some("As the user says.".to_owned()),
            ..PromptOptions::default()
        };
    });
    let told = bench.run("@@lead").await;
    let first = &told.asked[0];
    assert_eq!((first.model.as_str(), first.effort), ("claude-opus-5-5", Some(Effort::High)));
    assert_eq!(first.system[0], "As the user says.");
    assert!(bench.project().join("x.txt").exists(), "the mode of the flag counts");
    assert_eq!(told.outcome, Some(Outcome::MaxTurns), "and so do its turns");
}

#[tokio::test(start_paused = true)]
async fn turns_of_the_definition_hold_for_the_session() {
    let read = json!([{"tool": "Read", "input": {"file_path": "a.txt"}}]);
    let bench = as_boss(&json!({"lead": vec![read; 9]}), "maxTurns: 2\n", |_| {});
    bench.file("a.txt", "alpha\n");
    let told = bench.run("@@lead").await;
    assert_eq!((told.outcome, told.asked.len()), (Some(Outcome::MaxTurns), 2));
}

/// The texts of the first message of a request.
fn opening(asked: &Asked) -> Vec<&str> {
    let blocks = asked.messages[0]["content"].as_array().unwrap();
    blocks.iter().map(|block| block["text"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_initial_prompt_goes_before_the_first_input() {
    // D-27
    let scripts = json!({
        "lead": [[agent("boss", "@@child", &json!({}))], "done"],
        "more": ["more"],
        "child": ["found"],
    });
    let bench = as_boss(&scripts, "initialPrompt: Look around first.\n", |_| {});
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            watcher.until(|events, _| events.iter().any(|it| it["type"] == "result")).await;
            let id = SeededWorld::new(900).record_id();
            handle.submit(id, vec![centurion_protocol::Block::text("@@more")]);
        })
        .await;
    assert_eq!(opening(&told.asked[0]), ["Look around first.", "@@lead"]);
    assert_eq!(opening(told.asked_by("@@child")[0]), ["Look around first.\n\n@@child"]);
    let all = told.main_texts().join("\n");
    assert_eq!(all.matches("Look around first.").count(), 1, "only before the first: {all}");
}

#[tokio::test(start_paused = true)]
async fn an_initial_prompt_may_be_a_command() {
    // D-27
    let scripts =
        json!({"lead": [[agent("briefed", "@@child", &json!({}))], "done"], "child": ["found"]});
    let bench = as_boss(&scripts, "initialPrompt: /mcp__desk__brief\n", |_| {});
    bench.agent("briefed", "initialPrompt: /mcp__desk__brief\n", "Be brief.");
    let told = Stage::silent().set(bench).run("@@lead").await;
    assert_eq!(opening(&told.asked[0]), ["the whole brief", "@@lead"]);
    assert_eq!(opening(told.asked_by("@@child")[0]), ["the whole brief", "@@child"]);
}

#[tokio::test(start_paused = true)]
async fn skills_and_reminders_are_known_from_the_start() {
    // S-338
    let front = "skills: brewing\ncriticalSystemReminder_EXPERIMENTAL: never boil it\n";
    let scripts =
        json!({"lead": [[agent("boss", "@@child", &json!({}))], "done"], "child": ["found"]});
    let bench = as_boss(&scripts, front, |_| {});
    let directory = bench.project().join(".claude/skills/brewing");
    std::fs::create_dir_all(&directory).unwrap();
    let skill = "---\nname: brewing\ndescription: tea\n---\nPour at eighty degrees.\n";
    std::fs::write(directory.join("SKILL.md"), skill).unwrap();
    let told = bench.run("@@lead").await;
    for asked in [&told.asked[0], told.asked_by("@@child")[0]] {
        let texts = opening(asked);
        let at = |text: &str| texts.iter().position(|it| it.contains(text));
        assert!(at("Pour at eighty degrees.") < at("@@"), "{texts:?}");
        assert!(at("never boil it").is_some_and(|it| Some(it) < at("@@")), "{texts:?}");
    }
    let resumed = bench.resume(&told, "@@lead").await;
    assert_eq!(
        resumed.main_texts().join("\n").matches("eighty degrees").count(),
        1,
        "and once only"
    );
}

fn places(project: PathBuf, auto_memory: bool) -> MemoryPlaces {
    MemoryPlaces {
        state_dir: project.join("state"),
        other_dirs: Vec::new(),
        project_root: project,
        chosen_dir: None,
        home: None,
        is_repository: false,
        auto_memory,
        snapshots: false,
    }
}

#[tokio::test(start_paused = true)]
async fn memory_brings_its_tools_and_keeps_them_to_its_directory() {
    // S-086, S-093, S-341, S-343
    let kept = ".claude/agent-memory/keeper/MEMORY.md";
    let steps = json!([[write("outside.txt"), write(kept)], "kept"]);
    for is_main in [true, false] {
        let mut bench = Bench::cast(&json!({
            "lead": [[agent("keeper", "@@child", &json!({}))], "done"], "child": steps,
        }));
        bench.agent("keeper", "tools: Glob\nmemory: project\n", "Keep.");
        let project = bench.project();
        bench.knows_agents(move |agents| {
            agents.memory = Some(places(project.clone(), true));
            agents.main = is_main.then(|| "keeper".to_owned());
        });
        let told = bench.run(if is_main { "@@child" } else { "@@lead" }).await;
        let asked = told.asked_by("@@child")[0];
        assert_eq!(asked.tools, ["Edit", "Glob", "Read", "Write"], "main: {is_main}");
        let last = asked.system.last().unwrap();
        assert!(last.contains("agent-memory/keeper"), "the memory is the last section: {last}");
        assert!(!bench.project().join("outside.txt").exists(), "main: {is_main}");
        let text = std::fs::read_to_string(bench.project().join(kept)).unwrap();
        assert_eq!(text, "y", "main: {is_main}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_given_for_a_memory_that_is_switched_off() {
    // D-34
    let mut bench = Bench::cast(
        &json!({"lead": [[agent("keeper", "@@child", &json!({}))], "done"], "child": ["found"]}),
    );
    bench.agent("keeper", "tools: Glob\nmemory: project\n", "Keep.");
    let project = bench.project();
    bench.knows_agents(move |agents| agents.memory = Some(places(project.clone(), false)));
    let told = bench.run("@@lead").await;
    let asked = told.asked_by("@@child")[0];
    assert_eq!(asked.tools, ["Glob"]);
    assert!(!asked.system.last().unwrap().contains("agent-memory"));
    assert!(!bench.project().join(".claude/agent-memory").exists());
}

#[tokio::test(start_paused = true)]
async fn instruction_files_are_known_unless_the_definition_leaves_them_out() {
    // D-38
    for (front, is_told) in [("", true), ("omitClaudeMd: true\n", false)] {
        let scripts = json!({"lead": [[agent("boss", "@@child", &json!({}))], [agent("Explore", "@@explore", &json!({}))], "done"], "child": ["found"], "explore": ["found"]});
        let bench = as_boss(&scripts, front, |_| {});
        bench.file("CLAUDE.md", "Speak softly.");
        let bench = more(bench, |options| {
            let cwd = options.base.cwd.clone();
            options.memory = Some(Memory::load(MemorySources { cwd, ..MemorySources::default() }));
        });
        let told = bench.run("@@lead").await;
        let knows = |asked: &Asked| opening(asked).join("\n").contains("Speak softly.");
        assert_eq!(knows(&told.asked[0]), is_told);
        assert_eq!(knows(told.asked_by("@@child")[0]), is_told);
        assert!(!knows(told.asked_by("@@explore")[0]), "Explore goes without");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_types_limits_the_agents_that_the_main_agent_starts() {
    // S-161
    let scripts = json!({
        "lead": [[agent("Explore", "@@child", &json!({})), agent("Plan", "@@child", &json!({})), waits("@@deeper")], "done"],
        "child": ["found"],
        "deeper": [[agent("Plan", "@@child", &json!({}))], "found"],
    });
    let bench = as_boss(&scripts, "tools: Read, Agent(Explore, general-purpose)\n", |_| {});
    let told = bench.run("@@lead").await;
    let listing = told.asked[0].listing.as_deref().unwrap();
    assert!(listing.contains("- Explore: ") && !listing.contains("- Plan: "), "{listing}");
    let results = told.results();
    let refused: Vec<&String> = results.iter().filter(|it| it.1).map(|it| &it.0).collect();
    let [refused] = refused[..] else { panic!("{results:?}") };
    assert!(
        refused.contains(
            "Agent type 'Plan' cannot be started by you. Available agents: Explore, general-purpose"
        ),
        "{refused}"
    );
    assert_eq!(told.agent_ids().len(), 3, "agents below it are not limited");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_not_there_is_an_error_that_lists_those_there_are() {
    let mut bench = Bench::cast(&json!({}));
    bench.scenario = json!({"default": "hello"});
    bench.knows_agents(|agents| agents.main = Some("nobody".to_owned()));
    bench.agent("boss", "", "You are the boss.");
    let start = Start::New(SeededWorld::new(1).session_id());
    let opened = Session::open(bench.options(start, None, &Arc::new(Watcher::default()))).await;
    let Err(error @ OpenError::NoSuchAgent { .. }) = opened else { panic!("it opened") };
    let error = error.to_string();
    assert!(error.starts_with("--agent 'nobody' not found. Available agents: "), "{error}");
    assert!(
        error.contains("boss") && error.contains("Explore") && !error.contains("fork"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_keeps_its_agent() {
    let mut bench = as_boss(&json!({"lead": ["done"]}), FRONT, |_| {});
    let told = bench.run("@@lead").await;
    bench.seed = 40;
    bench.knows_agents(|_| {});
    let resumed = bench.resume(&told, "@@lead").await;
    let (before, after) = (&told.asked[0], &resumed.asked[0]);
    assert_eq!((&after.model, &after.tools), (&before.model, &before.tools));
    assert_eq!(after.system, before.system);
    assert_eq!(resumed.of("system", Some("init"))[0]["permissionMode"], Mode::Plan.to_string());
    // One that is gone is said to be, and the session continues without it.
    std::fs::remove_dir_all(bench.project().join(".claude")).unwrap();
    bench.seed = 80;
    let gone = bench.resume(&resumed, "@@lead").await;
    assert_eq!(gone.outcome, Some(Outcome::Completed));
    let said = gone.of("system", Some("informational"));
    assert!(
        said.iter().any(|it| it["content"]
            .as_str()
            .unwrap()
            .contains("`boss`, which is not there any more")),
        "{said:?}"
    );
}
