//! The protocol's Inspector, in its mode without a page, before `centurion mcp serve`.

use std::process::Command;

use centurion_testkit::Reply;
use serde_json::Value;

use crate::components::{inspector, node};
use crate::program::Program;

/// Output and exit code of the Inspector.
fn inspect(program: &Program, arguments: &[&str]) -> (Value, Option<i32>) {
    let server = program.command(["mcp", "serve"]);
    let mut command = Command::new(node());
    command.arg(inspector()).arg(server.get_program()).args(server.get_args()).args(arguments);
    command.env_clear().current_dir(program.scratch.project());
    command.env("PATH", std::env::var_os("PATH").unwrap());
    for (name, value) in server.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
            // The Inspector is told what a server gets of the environment.
            let pair = format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap());
            command.args(["-e", &pair]);
        }
    }
    let output = command.output().unwrap();
    let (out, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let printed = serde_json::from_str(&out);
    (printed.unwrap_or_else(|error| panic!("{error}\n{out}\n{errors}")), output.status.code())
}

fn call<'a>(tool: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["--method", "tools/call", "--tool-name", tool];
    for argument in arguments {
        all.extend(["--tool-arg", argument]);
    }
    all
}

#[test]
fn the_inspector_lists_and_calls_our_tools_and_runs_an_agent() {
    let program = Program::answering([Reply::text("All three files are fine.")]);
    program.scratch.write("a.txt", "first line\n");

    let (list, code) = inspect(&program, &["--method", "tools/list", "--strict"]);
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for name in ["Bash", "Edit", "Read", "centurion"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(code, Some(0), "every schema can be used by every client");

    let file = format!("file_path={}", program.scratch.project().join("a.txt").display());
    let (read, code) = inspect(&program, &call("Read", &[&file]));
    assert_eq!((read["isError"].as_bool(), code), (Some(false), Some(0)), "{read}");
    assert!(read["content"][0]["text"].as_str().unwrap().contains("first line"), "{read}");

    let (denied, code) = inspect(&program, &call("Bash", &["command=touch b.txt"]));
    assert_eq!((denied["isError"].as_bool(), code), (Some(true), Some(5)), "{denied}");
    assert!(!program.scratch.project().join("b.txt").exists());

    let (ran, code) = inspect(&program, &call("centurion", &["prompt=check the files"]));
    assert_eq!((ran["isError"].as_bool(), code), (Some(false), Some(0)), "{ran}");
    assert_eq!(ran["content"][0]["text"], "All three files are fine.", "{ran}");
    assert_eq!(ran["structuredContent"]["outcome"], "completed", "{ran}");
}
