//! `--permission-prompt-tool`: a tool of a server answers in a person's place.

use centurion_testkit::Reply;
use serde_json::json;

use crate::components::python_server;
use crate::program::Program;
use crate::real_servers::{calls, results, run};

fn flags(tool: &str) -> Vec<String> {
    let config = json!({"perm": python_server()}).to_string();
    ["--mcp-config", &config, "--permission-prompt-tool", tool].map(str::to_owned).into()
}

#[test]
fn a_tool_allows_changes_and_denies_calls() {
    let write = |content: &str| {
        ("Write", json!({"file_path": format!("{content}.txt"), "content": content}))
    };
    let program = Program::answering([
        calls([write("good"), write("bad"), write("odd")]),
        Reply::text("done"),
    ]);
    let ended = run(&program, "write", &flags("mcp__perm__approve"));
    assert_eq!(program.scratch.read("good.txt"), "Write toolu_0", "what the tool made of it");
    let results = results(&ended);
    assert!(results[1].contains("not in this house"), "{}", results[1]);
    assert!(results[2].contains("the answer of mcp__perm__approve is no JSON"), "{}", results[2]);
    for denied in ["bad.txt", "odd.txt"] {
        assert!(!program.scratch.project().join(denied).exists());
    }
    assert_eq!(ended.result()["permission_denials"].as_array().unwrap().len(), 2);
}

#[test]
fn a_tool_that_is_not_there_is_an_error_and_never_a_yes() {
    let write = || calls([("Write", json!({"file_path": "x.txt", "content": "good"}))]);
    let program = Program::answering([write(), Reply::text("done")]);
    let nobody = program
        .run(&[&["-p", "write"], &["--permission-prompt-tool", "mcp__perm__approve"][..]].concat());
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("there is no server with this tool"), "{}", nobody.stderr);
    let missing = run(&program, "write", &flags("mcp__perm__decide"));
    assert!(
        results(&missing)[0].contains("there is no tool mcp__perm__decide"),
        "{}",
        results(&missing)[0]
    );
    assert!(!program.scratch.project().join("x.txt").exists());
}
