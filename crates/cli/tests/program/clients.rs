//! Programs of others that drive this one or read what it writes, unchanged: the SDK for TypeScript, the adapters of
//! editors, and readers of transcripts. Each test asserts on what the client yields.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use centurion_testkit::Scratch;
use serde_json::{Value, json};

use crate::components::{client, clients, everything_server, inspector, node, python, script};
use crate::processes::processes;
use crate::program::eventually;
use crate::recorder::Recorder;

/// A model that does what a prompt names with `@@name`.
fn scenario(scratch: &Scratch) -> String {
    let notes = scratch.project().join("notes.txt");
    let edit = |old: &str, new: &str| json!({"tool": "Edit", "input": {"file_path": notes, "old_string": old, "new_string": new}});
    let agent = |kind: &str, behind: bool| {
        json!({"tool": "Agent", "input": {
            "description": "a job", "prompt": "@@child", "subagent_type": kind, "run_in_background": behind,
        }})
    };
    let bash = |command: &str, about: &str| json!({"tool": "Bash", "input": {"command": command, "description": about}});
    let made = scratch.project().join("made.txt");
    let todo = json!({"content": "one", "status": "in_progress", "activeForm": "one"});
    let scenario = json!({
        "rules": [
            {"match": {"system": "You are a parrot."}, "respond": "Squawk."},
            {"match": {"system": "two parrots."}, "respond": "Squawk squawk."},
            {"match": {"system": "Speak like a pirate."}, "respond": "Arr."},
            {"match": {"last_user": "most likely type next"}, "respond": "run the tests"},
        ],
        "scripts": {
            "hello": ["Hello there."],
            "aside": ["beside it"],
            "shell": [[bash("echo from the shell", "Say it")], "shell gave: ${re:(?s)(.*)}"],
            "mark": [[bash("echo mark is $MARK", "Say it")], "${re:(mark is .*)}"],
            "reads": [[{"tool": "Read", "input": {"file_path": "${arg}"}}], "read gave: ${re:(?s)(.*)}"],
            "writes": [[{"tool": "Write", "input": {"file_path": "${arg}", "content": "as asked"}}], "wrote"],
            "skill": [[{"tool": "Skill", "input": {"skill": "${arg}"}}], "skill gave: ${re:(?s)(.*)}"],
            "touch": [[bash("touch ${arg}", "Touch a file")], "touch gave: ${re:(?s)(.*)}"],
            "edit": [[edit("first", "second")], "edit gave: ${re:(?s)(.*)}"],
            "change": [[{"tool": "Read", "input": {"file_path": notes}}], [edit("first", "second")], "changed"],
            "change_more": [[edit("second", "third")], "changed"],
            "write": [[{"tool": "Write", "input": {"file_path": made, "content": "as asked"}}], "wrote"],
            "sum": [[{"tool": "mcp__desk__add", "input": {"a": 1, "b": 2}}], "${re:(sum is [0-9]+)}"],
            "sum_or_not": [[{"tool": "mcp__desk__add", "input": {"a": 1, "b": 2}}], "adding gave: ${re:(?s)(.*)}"],
            "sleep": [[bash(&format!("echo about to sleep; {}", sleep()), "Sleep")], "went on", "heard of it"],
            "lead": [[agent("general-purpose", false)], "all done"],
            "lead_helper": [[agent("helper", false)], "all done"],
            "behind": [[agent("helper", true)], "meanwhile", "heard of it"],
            "behind_asleep": [[{"tool": "Agent", "input": {
                "description": "a job", "prompt": "@@sleep", "subagent_type": "general-purpose",
                "run_in_background": true,
            }}], "meanwhile", "heard of it", "heard of it"],
            "child": [[bash("echo from the child", "Say it")], "I helped."],
            "moves": [[bash("mkdir -p deep && cd deep", "Go there")], [bash("false", "Fail")], "moved"],
            "fails": [[{"tool": "Read", "input": {"file_path": "missing.txt"}}], "failed"],
            "work": [
                [{"tool": "TaskCreate", "input": {"subject": "one", "description": "a job"}}],
                [{"tool": "TaskUpdate", "input": {"taskId": "1", "status": "completed"}}],
                "worked",
            ],
            "elicits_name": [
                [{"tool": "mcp__everything__trigger-elicitation-request", "input": {}}],
                "asked: ${re:(?s)(.*)}",
            ],
            "elicits": [[{"tool": "mcp__everything__trigger-elicitation-request", "input": {}}], "asked"],
            "apart": [[{"tool": "Agent", "input": {
                "description": "a job", "prompt": "@@aside", "subagent_type": "general-purpose",
                "isolation": "worktree", "run_in_background": false,
            }}], "done apart"],
            "members": [[{"tool": "Agent", "input": {
                "description": "a job", "prompt": "@@aside", "subagent_type": "general-purpose", "name": "ada",
            }}], "they work"],
            "breaks": [{"error": {"status": 400, "type": "invalid_request_error", "message": "no"}}],
            "data": [[{"tool": "StructuredOutput", "input": {"n": 7}}], "done"],
            "todo": [[{"tool": "TodoWrite", "input": {"todos": [todo]}}], "planned"],
        },
    });
    let path = scratch.root().join("scenario.json");
    std::fs::write(&path, scenario.to_string()).unwrap();
    format!("script:{}", path.display())
}

/// A command that would run for days, and that no other test has.
fn sleep() -> String {
    format!("sleep {}", 1_000_000 + std::process::id())
}

/// A program of others, in a home of its own in which it finds the sessions.
fn command(program: &Path, scratch: &Scratch) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", scratch.home());
    command.env("CLAUDE_CONFIG_DIR", scratch.home().join(".claude")).env("IS_SANDBOX", "1");
    command.current_dir(scratch.project());
    command
}

/// A place with a file in it.
fn place() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("notes.txt", "first line\n");
    scratch
}

fn assert_success(output: &Output) {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}{told}", String::from_utf8_lossy(&output.stdout));
}

/// Runs a host that is written with the SDK for TypeScript.
fn drive(host: &str) {
    drive_by(&node(), host);
}

/// Runs a host that is written for this program.
fn drive_by(program: &Path, host: &str) {
    let scratch = place();
    let recorder = Recorder::new(&scratch);
    let output = command(program, &scratch)
        .arg(script(host))
        .env("CLIENTS", clients())
        .env("CENTURION", recorder.program())
        .env("MODEL", scenario(&scratch))
        .env("EVERYTHING", everything_server().to_string())
        .output()
        .unwrap();
    assert_success(&output);
    eventually("no command is left", || processes(&sleep()).is_empty().then_some(()));
    recorder.check();
}

#[test]
fn every_method_of_the_sdk_for_typescript_works() {
    drive("sdk_methods.mjs");
}

#[test]
fn each_option_of_the_sdk_for_typescript_does_what_it_says() {
    drive("sdk_each_option.mjs");
}

#[test]
fn each_option_of_the_sdk_for_python_does_what_it_says() {
    drive_by(&python(), "each_option_host.py");
}

#[test]
fn the_options_of_the_sdk_for_typescript_are_in_force() {
    drive("sdk_options.mjs");
}

#[test]
fn every_hook_event_reaches_the_sdk_for_typescript() {
    drive("sdk_hooks.mjs");
}

/// Has an editor work through an adapter.
fn edit_through(adapter: &str) {
    let scratch = place();
    let recorder = Recorder::new(&scratch);
    let output = command(&node(), &scratch)
        .arg(script("acp_client.mjs"))
        .arg(client(adapter).join("dist/index.js"))
        .env("CLIENTS", clients())
        .env("CLAUDE_CODE_EXECUTABLE", recorder.program())
        .env("ANTHROPIC_MODEL", scenario(&scratch))
        .output()
        .unwrap();
    assert_success(&output);
    eventually("no command is left", || processes(&sleep()).is_empty().then_some(()));
    recorder.check();
}

#[test]
fn editors_work_through_the_adapter_of_the_protocols_makers() {
    edit_through("@agentclientprotocol/claude-agent-acp");
}

#[test]
fn editors_work_through_the_older_adapter() {
    edit_through("@zed-industries/claude-code-acp");
}

/// Runs the program once, for readers of what it wrote.
fn recorded() -> Scratch {
    let scratch = place();
    let model = scenario(&scratch);
    let output = command(Path::new(env!("CARGO_BIN_EXE_centurion")), &scratch)
        .args(["-p", "@@lead", "--model", &model, "--output-format", "json"])
        .output()
        .unwrap();
    assert_success(&output);
    scratch
}

/// All numbers of this name in a report, added up.
fn sum(report: &Value, name: &str) -> u64 {
    match report {
        Value::Array(items) => items.iter().map(|item| sum(item, name)).sum(),
        Value::Object(fields) => {
            let own = fields.get(name).and_then(Value::as_u64).unwrap_or_default();
            own + fields.values().map(|value| sum(value, name)).sum::<u64>()
        }
        _ => 0,
    }
}

#[test]
fn reports_of_usage_count_the_tokens_of_sessions() {
    let scratch = recorded();
    for (program, list) in
        [("ccusage18/dist/index.js", "sessions"), ("ccusage/src/cli.js", "session")]
    {
        let output = command(&node(), &scratch)
            .arg(client(program))
            .args(["session", "--json", "--offline"])
            .output()
            .unwrap();
        assert_success(&output);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let sessions = report[list].as_array().unwrap();
        assert!(sum(&json!(sessions), "outputTokens") > 0, "{report}");
        assert!(report.to_string().contains("script:"), "{report}");
    }
}

#[test]
fn a_page_made_of_a_session_shows_what_was_said() {
    let scratch = recorded();
    let projects = scratch.home().join(".claude/projects");
    let project = std::fs::read_dir(projects).unwrap().next().unwrap().unwrap().path();
    let page = scratch.root().join("page.html");
    let tool = python().with_file_name("claude-code-log");
    let output = command(&tool, &scratch).arg(project).arg("-o").arg(&page).output().unwrap();
    assert_success(&output);
    let page = std::fs::read_to_string(page).unwrap();
    for said in ["@@lead", "all done", "echo from the child"] {
        assert!(page.contains(said), "{said} is missing");
    }
}

#[test]
fn a_monitor_reads_the_entries_of_a_session() {
    let scratch = recorded();
    let read = "import json, sys\n\
        from claude_monitor.data.reader import load_usage_entries\n\
        entries, _ = load_usage_entries(data_path=sys.argv[1])\n\
        print(json.dumps([[it.input_tokens, it.output_tokens, it.model] for it in entries]))";
    let projects = scratch.home().join(".claude/projects");
    let output = command(&python(), &scratch).args(["-c", read]).arg(projects).output().unwrap();
    assert_success(&output);
    let entries: Vec<(u64, u64, String)> = serde_json::from_slice(&output.stdout).unwrap();
    // Two requests of the lead, two of its agent.
    assert_eq!(entries.len(), 4, "{entries:?}");
    assert!(entries.iter().all(|(input, output, _)| *input > 0 && *output > 0), "{entries:?}");
}

/// The page that says how clients are pointed at the program.
const INSTRUCTIONS: &str = include_str!("../../../../docs/sdk.md");

/// The lines that a block of the page has people type; a name in the block finds it.
fn typed(name: &str) -> String {
    let mut blocks = INSTRUCTIONS.split("```console\n").skip(1);
    let block = blocks.find_map(|rest| {
        let block = rest.split("```").next().unwrap();
        block.contains(name).then_some(block)
    });
    let lines = block.unwrap_or_else(|| panic!("no block has {name}")).lines();
    lines.filter_map(|line| line.strip_prefix("$ ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_instructions_for_programs_of_others_work_as_they_are_written() {
    let scratch = place();
    scratch.write("README.md", "read me");
    let bin = scratch.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let name = |name: &str, line: &str| {
        let path = bin.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let (node, python) = (node().display().to_string(), python());
    name("centurion", &format!("exec '{}' \"$@\"", env!("CARGO_BIN_EXE_centurion")));
    name("npm", "exit 0");
    name("ccusage", &format!("exec {node} {} \"$@\"", client("ccusage/src/cli.js").display()));
    let log = python.with_file_name("claude-code-log");
    name("claude-code-log", &format!("exec {} \"$@\"", log.display()));
    // The page's command starts the Inspector by its name in the mode without a page.
    let cli = inspector().display().to_string();
    name("npx", &format!("shift 2; exec {node} {cli} \"$@\""));
    let adapter = client("@agentclientprotocol/claude-agent-acp").join("dist/index.js");
    name("claude-agent-acp", &format!("exec {node} {} < /dev/null", adapter.display()));

    let run = |lines: &str| {
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let output = command(Path::new("bash"), &scratch)
            .args(["-e", "-c", lines])
            .env("PATH", path)
            .env("ANTHROPIC_MODEL", format!("script:{}", scratch.root().join("go.yaml").display()))
            .env_remove("CLAUDE_CONFIG_DIR")
            .output()
            .unwrap();
        assert_success(&output);
        String::from_utf8(output.stdout).unwrap()
    };
    std::fs::write(scratch.root().join("go.yaml"), "default: gone\n").unwrap();
    let report = run(&typed("ccusage session"));
    assert!(report.contains("gone") && report.contains("outputTokens"), "{report}");
    let projects = scratch.home().join(".claude/projects");
    let project = std::fs::read_dir(&projects).unwrap().next().unwrap().unwrap().path();
    let lines = typed("claude-code-log ~")
        .replace("PROJECT", project.file_name().unwrap().to_str().unwrap());
    run(&lines);
    assert!(scratch.read("page.html").contains("gone"));
    let told = run(&typed("mcp-inspector"));
    assert!(told.contains("\"tools\"") && told.contains("read me"), "{told}");
    run(&typed("CLAUDE_CODE_EXECUTABLE").replace("/usr/local/bin/centurion", "centurion"));
}

/// The code of the only block of the page in a language.
fn code(language: &str) -> &'static str {
    let (_, rest) = INSTRUCTIONS.split_once(&format!("```{language}\n")).unwrap();
    assert!(!rest.contains(&format!("```{language}\n")), "another block in {language}");
    rest.split("```").next().unwrap()
}

#[test]
fn the_code_for_the_sdks_works_as_it_is_written() {
    let scratch = place();
    let model = scratch.root().join("go.yaml");
    std::fs::write(&model, "default: gone\n").unwrap();
    let with_path = |language| {
        let code = code(language);
        let found = code.replace("/usr/local/bin/centurion", env!("CARGO_BIN_EXE_centurion"));
        assert_ne!(found, code, "it names the program");
        found
    };
    let typescript = format!(
        "const {{ query }} = await import(`${{process.env.CLIENTS}}/@anthropic-ai/claude-agent-sdk/sdk.mjs`);\n\
         const prompt = \"go\";\nconst messages =\n{};\n\
         for await (const it of messages) if (it.type === \"result\") console.log(it.result);",
        with_path("ts").trim_end().replace(" //", "; //").trim_end_matches(';'),
    );
    let python_code = format!(
        "import asyncio\nfrom claude_agent_sdk import *\noptions = \\\n{}\n\
         async def main():\n    async for it in query(prompt=\"go\", options=options):\n        \
         if isinstance(it, ResultMessage): print(it.result)\nasyncio.run(main())",
        with_path("python").trim_end(),
    );
    for (program, flags, code) in
        [(node(), &["--input-type=module", "-e"][..], typescript), (python(), &["-c"], python_code)]
    {
        let output = command(&program, &scratch)
            .args(flags)
            .arg(&code)
            .env("CLIENTS", clients())
            .env("ANTHROPIC_MODEL", format!("script:{}", model.display()))
            .output()
            .unwrap();
        assert_success(&output);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "gone\n", "{code}");
    }
}

/// The clients that are run, with their versions: the table of the documentation in another form.
const LIST: &str = include_str!("../clients.json");

#[test]
fn the_table_of_clients_lists_what_is_run_here() {
    let list: Vec<Value> = serde_json::from_str(LIST).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let table = std::fs::read_to_string(root.join("docs/compatibility.md")).unwrap();
    let components = std::fs::read_to_string(root.join("xtask/src/components.rs")).unwrap();
    let tests = [
        include_str!("clients.rs"),
        include_str!("python_host.rs"),
        include_str!("conformance.rs"),
        include_str!("inspector.rs"),
    ];
    for entry in &list {
        let text = |name: &str| entry[name].as_str().unwrap();
        let row = format!(
            "| {} | {} | {} | {} |",
            text("client"),
            text("version"),
            text("run"),
            text("result")
        );
        assert!(table.contains(&row), "missing in docs/compatibility.md: {row}");
        let package = format!("{}{}{}", text("package"), text("separator"), text("version"));
        assert!(components.contains(&format!("\"{package}\"")), "{package} is not installed");
        let proof = text("test").rsplit("::").next().unwrap();
        assert!(tests.iter().any(|it| it.contains(&format!("fn {proof}("))), "there is no {proof}");
    }
    let rows = table.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, list.len(), "the table has rows that are not in the list");
}
