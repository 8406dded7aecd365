//! Agents that flags, files and plugins bring, with hooks and servers of their own; sessions that only direct.

use serde_json::{Value, json};

use crate::components::{python, script};
use crate::processes::processes;
use crate::program::eventually;
use crate::stage::{Stage, Told, agent, bash};

/// The file of an agent that brings a hook and a server; `mark` is in the server's command line.
fn keeper(mark: &str) -> String {
    let server = json!({"command": python(), "args": [script("server.py"), "stdio", mark]});
    let hook = json!({"matcher": "mcp__own__add", "hooks": [{"type": "command", "command": "touch hooked"}]});
    format!(
        "---\nname: keeper\ndescription: Keeps numbers.\nhooks: {}\nmcpServers: [{}]\n---\nYou keep numbers.\n",
        json!({"PreToolUse": [hook]}),
        json!({"own": server}),
    )
}

fn add() -> Value {
    json!({"tool": "mcp__own__add", "input": {"a": 20, "b": 22}})
}

/// The results of an agent's calls.
fn results(told: &Told, is_main: bool) -> Vec<String> {
    let users = told.of("user").into_iter().filter(|it| it.get("agent_id").is_none() == is_main);
    let results = users.map(|event| &event["message"]["content"][0]);
    results.filter(|it| it["type"] == "tool_result").map(Value::to_string).collect()
}

fn warnings(told: &Told) -> String {
    let said = told.of("informational").into_iter().filter_map(|it| it["content"].as_str());
    format!("{}\n{}", said.collect::<Vec<_>>().join("\n"), told.ended.stderr)
}

#[test]
fn a_trusted_agent_has_its_own_hook_and_server_as_long_as_it_lives() {
    // S-330, S-331, S-334
    let stage = Stage::new(&json!({
        "lead": [
            [agent("@@work", &json!({"subagent_type": "keeper"}))],
            [bash("touch over; until [ -e go ]; do sleep 0.01; done")],
            [add()],
            "done",
        ],
        "work": [[add()], "kept"],
    }));
    let scratch = &stage.program.scratch;
    scratch.write(".claude/agents/keeper.md", keeper("keeper-of-a-child"));
    assert_eq!(stage.program.run(&["trust", "grant"]).code, Some(0));
    let child = stage.command("@@lead", &["--allowedTools", "Bash,mcp__own"]).spawn().unwrap();
    let over = scratch.project().join("over");
    eventually("the agent has ended", || over.exists().then_some(()));
    eventually("its server has ended while the run goes on", || {
        processes("keeper-of-a-child").is_empty().then_some(())
    });
    scratch.write("go", "");
    let told = Told::new(crate::program::ended(child.wait_with_output().unwrap()));
    told.assert_code(0);
    assert!(results(&told, false)[0].contains("42"), "{:?}", results(&told, false));
    assert!(scratch.project().join("hooked").exists(), "{}", warnings(&told));
    let of_main = results(&told, true);
    assert!(
        of_main[2].contains("\"is_error\":true"),
        "the server was the agent's alone: {of_main:?}"
    );
}

#[test]
fn a_session_that_runs_as_an_agent_has_its_hook_and_server() {
    // S-332
    let stage = Stage::new(&json!({"work": [[add()], "kept"]}));
    let scratch = &stage.program.scratch;
    scratch.write(".claude/agents/keeper.md", keeper("keeper-of-a-session"));
    assert_eq!(stage.program.run(&["trust", "grant"]).code, Some(0));
    let told = stage.run("@@work", &["--agent", "keeper", "--allowedTools", "mcp__own"]);
    told.assert_code(0);
    assert!(results(&told, true)[0].contains("42"), "{:?}", results(&told, true));
    assert!(scratch.project().join("hooked").exists());
    assert!(processes("keeper-of-a-session").is_empty());
}

#[test]
fn an_untrusted_folders_agent_has_neither_and_the_run_says_so() {
    // I-5
    let stage = Stage::new(&json!({
        "lead": [[agent("@@work", &json!({"subagent_type": "keeper"}))], "done"],
        "work": [[add()], "kept nothing"],
    }));
    let scratch = &stage.program.scratch;
    scratch.write(".claude/agents/keeper.md", keeper("keeper-untrusted"));
    for (prompt, more) in [("@@lead", &[][..]), ("@@work", &["--agent", "keeper"])] {
        let told = stage.run(prompt, &[&["--allowedTools", "mcp__own"], more].concat());
        told.assert_code(0);
        let is_main = !more.is_empty();
        assert!(results(&told, is_main)[0].contains("\"is_error\":true"), "{:?}", told.events);
        assert!(!scratch.project().join("hooked").exists());
        let told = warnings(&told);
        assert!(
            told.contains("hooks") && told.contains("mcpServers") && told.contains("not trusted"),
            "{told}"
        );
    }
}

#[test]
fn flags_bring_agents_as_text_and_as_a_file_and_mistakes_end_the_run() {
    // S-042
    let stage = Stage::new(&json!({
        "lead": [[agent("@@work", &json!({"subagent_type": "helper"}))], "done"],
        "work": ["helped"],
    }));
    let agents =
        json!({"helper": {"description": "Helps.", "prompt": "You help.", "tools": ["Read"]}});
    let file = stage.program.scratch.write("agents.json", agents.to_string());
    for given in [agents.to_string(), file.display().to_string()] {
        let told = stage.run("@@lead", &["--agents", &given]);
        told.assert_code(0);
        assert!(told.of("init")[0]["agents"].as_array().unwrap().contains(&json!("helper")));
        assert_eq!(told.of("task_started")[0]["subagent_type"], "helper");
    }
    for (bad, why) in [("{bad", "JSON"), (r#"{"helper": {"prompt": "x"}}"#, "helper.description")] {
        let told = stage.run("@@lead", &["--agents", bad]);
        told.assert_code(1);
        assert!(
            told.ended.stderr.contains("--agents") && told.ended.stderr.contains(why),
            "{}",
            told.ended.stderr
        );
        assert!(told.events.is_empty(), "nothing began");
    }
    let told = stage.run("@@lead", &["--agent", "nobody"]);
    told.assert_code(1);
    assert!(told.ended.stderr.contains("nobody"), "{}", told.ended.stderr);
}

#[test]
fn a_plugin_for_one_run_brings_agents_hooks_and_servers() {
    // D-9
    let stage = Stage::new(&json!({
        "lead": [[agent("@@work", &json!({"subagent_type": "kit:helper"}))], "done"],
        "work": [[{"tool": "mcp__plugin_kit_own__add", "input": {"a": 40, "b": 2}}], "helped"],
    }));
    let scratch = &stage.program.scratch;
    let server = json!({"command": python(), "args": [script("server.py"), "stdio"]});
    let hook =
        json!({"matcher": "Agent", "hooks": [{"type": "command", "command": "touch hooked"}]});
    for (path, text) in [
        (".claude-plugin/plugin.json", json!({"name": "kit", "version": "1.0.0"}).to_string()),
        (
            "agents/helper.md",
            "---\nname: helper\ndescription: Helps.\nskills: [greet]\n---\nYou help.\n".to_owned(),
        ),
        (
            "skills/greet/SKILL.md",
            "---\nname: greet\ndescription: Greets.\n---\nSay hello to everybody.\n".to_owned(),
        ),
        (
            "skills/secret/SKILL.md",
            "---\ndescription: For people.\ndisable-model-invocation: true\n---\nx\n".to_owned(),
        ),
        ("hooks/hooks.json", json!({"hooks": {"PreToolUse": [hook]}}).to_string()),
        (".mcp.json", json!({"mcpServers": {"own": server}}).to_string()),
    ] {
        scratch.write(format!("kit/{path}"), text);
    }
    let told =
        stage.run("@@lead", &["--plugin-dir", "kit", "--allowedTools", "mcp__plugin_kit_own"]);
    told.assert_code(0);
    let init = told.of("init")[0];
    assert!(init["agents"].as_array().unwrap().contains(&json!("kit:helper")), "{init}");
    assert_eq!(
        init["skills"],
        json!(["init", "kit:greet", "kit:secret", "new-agent", "new-skill", "review", "verify"]),
        "also those that only people invoke"
    );
    let kit = scratch.project().join("kit");
    assert_eq!(
        init["plugins"],
        json!([{"name": "kit", "path": kit, "source": "kit@inline", "version": "1.0.0"}])
    );
    assert_eq!(told.of("task_started")[0]["subagent_type"], "kit:helper");
    assert!(results(&told, false)[0].contains("42"), "{:?}", results(&told, false));
    assert!(scratch.project().join("hooked").exists(), "{}", warnings(&told));
    let transcript = &stage.agent_transcripts()[0];
    assert!(
        transcript.contains("Say hello to everybody."),
        "the agent knows the skill: {transcript}"
    );
}

#[test]
fn a_session_that_only_directs_starts_workers_in_the_background_with_its_own_model() {
    // S-132, S-202, S-316, S-360
    let stage = Stage::new(&json!({
        "lead": [
            [agent("@@work", &json!({"run_in_background": false, "model": "opus"})), bash("touch no")],
            "directed",
            "heard of it",
        ],
        "work": [{"text": "worked", "latency_ms": 50}],
    }));
    let told = stage.run("@@lead", &["--coordinator", "--allowedTools", "Bash"]);
    told.assert_code(0);
    let tools = told.of("init")[0]["tools"].as_array().unwrap();
    for tool in ["Task", "SendMessage", "ListAgents", "TaskStop"] {
        assert!(tools.contains(&json!(tool)), "{tools:?}");
    }
    for tool in ["Bash", "Read", "Edit", "Write", "Grep", "WebFetch"] {
        assert!(!tools.contains(&json!(tool)), "{tools:?}");
    }
    assert_eq!(told.of("task_started")[0]["is_backgrounded"], true);
    let launched = told.data().into_iter().find(|data| data["status"] == "async_launched").unwrap();
    assert_eq!(launched["resolvedModel"], told.of("init")[0]["model"]);
    assert_eq!(launched["canReadOutputFile"], false, "it has no tool for that");
    assert!(!stage.program.scratch.project().join("no").exists());
    let results: Vec<&Value> = told.of("result").into_iter().map(|it| &it["result"]).collect();
    assert_eq!(results, ["directed", "heard of it"]);
}
