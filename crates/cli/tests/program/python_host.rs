//! Hosts that are written with the SDK for Python.

use std::process::Command;

use centurion_testkit::{Recorded, Reply, Scratch, Server, sse};
use serde_json::{Value, json};

use crate::components::{python, script};
use crate::processes::processes;
use crate::recorder::Recorder;
use crate::stage::{Stage, agent, bash};

/// A model that does what it is told in so many words: `call TOOL INPUT`, and says what came of it.
fn obedient(request: &Recorded) -> Reply {
    let request = request.json();
    let last = request["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let blocks = last.as_array().unwrap();
    if let Some(result) = blocks.iter().find(|block| block["type"] == "tool_result") {
        let content = &result["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap_or_default();
        return Reply::text(&format!("result: {text}"));
    }
    let text = blocks.iter().filter_map(|block| block["text"].as_str()).next_back().unwrap();
    let Some((tool, input)) = text.strip_prefix("call ").and_then(|call| call.split_once(' '))
    else {
        return Reply::text(&format!("you said: {text}"));
    };
    let input: Value = serde_json::from_str(input).unwrap_or_else(|_| json!({}));
    let id = format!("toolu_{}", request["messages"].as_array().unwrap().len());
    Reply::blocks([sse::tool_use(&id, tool, input)])
}

/// Runs a script that drives the program by the SDK, and checks what both said to each other.
fn run_host(name: &str) -> (Scratch, Server) {
    let scratch = Scratch::new();
    let model = Server::start_with(obedient);
    let url = model.url();
    succeed(name, &scratch, &[("ANTHROPIC_BASE_URL", &url), ("ANTHROPIC_API_KEY", "test-key")]);
    (scratch, model)
}

/// Runs a script of a host with these variables. It must succeed, and what was said must fit the protocol.
fn succeed(name: &str, scratch: &Scratch, variables: &[(&str, &str)]) {
    let recorder = Recorder::new(scratch);
    let output = Command::new(python())
        .arg(script(name))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", scratch.home())
        .env("CENTURION", recorder.program())
        .envs(variables.iter().copied())
        .current_dir(scratch.project())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{told}", String::from_utf8_lossy(&output.stdout));
    recorder.check();
}

#[test]
fn the_sdk_for_python_drives_the_program() {
    let (scratch, _) = run_host("host.py");
    assert_eq!(scratch.read("allowed.txt"), "changed by the host");
    assert!(!scratch.project().join("denied.txt").exists());
    assert!(!scratch.project().join("hooked.txt").exists());
}

#[test]
fn options_of_the_sdk_for_python_are_in_force_and_its_methods_are_answered() {
    let (_, model) = run_host("options_host.py");
    let request = &model.requests()[0];
    let betas = request.header("anthropic-beta").unwrap();
    assert!(betas.starts_with("context-1m-2025-08-07,task-budgets-2026-03-13,"), "{betas}");
    let request = request.json();
    let thinking = json!({"type": "enabled", "budget_tokens": 4000, "display": "summarized"});
    assert_eq!(request["thinking"], thinking);
    let config = json!({"effort": "low", "task_budget": {"type": "tokens", "total": 9000}});
    assert_eq!(request["output_config"], config);
    let tools = request["tools"].to_string();
    assert!(tools.contains("\"Read\"") && !tools.contains("\"WebFetch\""));
}

/// Runs a host that must succeed, with the model of a stage.
fn drive(stage: &Stage, host: &str) {
    succeed(host, &stage.program.scratch, &[("MODEL", stage.model())]);
}

#[test]
fn the_sdk_for_python_brings_watches_and_ends_agents() {
    // S-328, D-28
    let helper = |prompt: &str, more: &Value| {
        let mut call = agent(prompt, more);
        call["input"]["subagent_type"] = json!("helper");
        call
    };
    let stage = Stage::new(&json!({
        "lead": [[helper("@@asks", &json!({}))], "all done"],
        "asks": [[bash("bash -c 'touch made.txt'")], "I helped."],
        "waits": [[helper("@@stuck", &json!({}))], "not waiting", "heard of it"],
        "stuck": [[bash("sleep 98851")], "never"],
        "behind": [[helper("@@slow", &json!({"run_in_background": true}))], "meanwhile", "heard of it"],
        "slow": [{"blocks": [bash("touch slow.txt")], "latency_ms": 300}, "I helped."],
    }));
    let scratch = &stage.program.scratch;
    scratch.write("kit/.claude-plugin/plugin.json", "{\"name\": \"kit\"}");
    scratch.write("kit/skills/greet/SKILL.md", "---\ndescription: Greets.\n---\nSay hello.\n");
    drive(&stage, "agents_host.py");
    assert!(
        scratch.project().join("made.txt").exists() && scratch.project().join("slow.txt").exists()
    );
    assert!(processes("sleep 98851").is_empty());
}

#[test]
fn the_sdk_for_python_lists_and_runs_a_skill_and_a_command() {
    let stage = Stage::new(&json!({
        "greeting": ["greeted ${arg}"],
        "fixing": ["fixed ${re:FIX (bug [0-9]+)}"],
        "asks": [[{"tool": "Skill", "input": {"skill": "rules"}}], "used it"],
    }));
    let scratch = &stage.program.scratch;
    let front = "description: Greets.\nargument-hint: [name]\n";
    scratch.write(".claude/skills/greet/SKILL.md", format!("---\n{front}---\n@@greeting:$0\n"));
    scratch.write(".claude/skills/rules/SKILL.md", "---\ndescription: Rules.\n---\nBe kind.\n");
    scratch.write(".claude/commands/fix.md", "@@fixing FIX $ARGUMENTS\n");
    drive(&stage, "skills_host.py");
}

#[test]
fn the_helpers_of_the_sdk_for_python_work_on_our_sessions() {
    // D-72, D-73
    let stage = Stage::new(&json!({
        "lead": [[agent("@@helps", &json!({}))], "all done"],
        "helps": ["I helped."],
        "again": ["once more"],
    }));
    drive(&stage, "sessions_host.py");
    assert!(stage.program.transcripts().is_empty(), "nothing goes to our own place");
}
