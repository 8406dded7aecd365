//! The user's own configuration counts without trust, wherever it lies. Where that is within a working directory,
//! neither an edit nor a sandboxed command changes it without a question.

use std::fs;
use std::os::unix::fs::symlink;

use centurion_testkit::{Lack, Reply, skip};
use serde_json::json;

use crate::program::{Ended, Program, call, ended};
use crate::sandboxes::can_confine_completely;

/// Files of the project that flags name, or that links of the home directory lead to, with something to begin with.
const FILES: [(&str, &str); 9] = [
    ("ci.json", "{}\n"),
    ("servers.json", "{\"mcpServers\": {}}\n"),
    ("roles.json", "{}\n"),
    ("dots/settings.json", "{}\n"),
    ("dots/agents/a.md", "---\nname: a\ndescription: d\n---\nWork.\n"),
    ("dots/b.md", "---\nname: b\ndescription: d\n---\nWork.\n"),
    ("dots/state.json", "{}\n"),
    ("dots/bashrc", "true\n"),
    ("dots/gitconfig", "# mine\n"),
];

/// Links in the home directory, each with its target in the project.
const LINKS: [(&str, &str); 6] = [
    (".claude/settings.json", "dots/settings.json"),
    (".claude/agents", "dots/agents"),
    (".centurion/agents/b.md", "dots/b.md"),
    (".claude.json", "dots/state.json"),
    (".bashrc", "dots/bashrc"),
    (".gitconfig", "dots/gitconfig"),
];

const ORDINARY: &str = "dots/notes.md";

/// A person who keeps configuration in the project. The model does this.
fn person(replies: impl IntoIterator<Item = Reply>) -> Program {
    let program = Program::answering(replies);
    for (name, text) in FILES {
        program.scratch.write(name, text);
    }
    program.scratch.write(ORDINARY, "notes\n");
    for (link, target) in LINKS {
        let link = program.scratch.home().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(program.scratch.project().join(target), link).unwrap();
    }
    program
}

fn run(program: &Program, more: &[&str]) -> Ended {
    let flags = ["--settings", "ci.json", "--agents", "roles.json", "--mcp-config", "servers.json"];
    let arguments = [&["-p", "go", "--permission-mode", "acceptEdits"][..], &flags, more].concat();
    program.run(&arguments)
}

#[test]
fn no_edit_reaches_the_users_own_configuration_in_a_working_directory() {
    let names = || FILES.iter().map(|(name, _)| *name).chain([ORDINARY]);
    let read = names().map(|name| call("r", "Read", json!({"file_path": name})));
    let write = |name| call("w", "Write", json!({"file_path": name, "content": "evil"}));
    let calls: Vec<Reply> = read.chain(names().map(write)).chain([Reply::text("done")]).collect();
    let program = person(calls);
    let ended = run(&program, &[]);
    assert_eq!(program.scratch.read(ORDINARY), "evil", "{}", ended.stderr);
    for (name, text) in FILES {
        assert_eq!(program.scratch.read(name), text, "{name}");
    }
}

#[test]
fn no_sandboxed_command_reaches_the_users_own_configuration_in_a_working_directory() {
    if !can_confine_completely() {
        return skip(Lack::CompleteSandbox);
    }
    let program =
        person([call("b", "Bash", json!({"command": "sh attack.sh"})), Reply::text("done")]);
    let names = FILES.iter().map(|(name, _)| *name).chain([ORDINARY]);
    let attack: Vec<String> = names.map(|name| format!("echo evil > {name}\n")).collect();
    program.scratch.write("attack.sh", attack.concat());
    let settings = json!({"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true}});
    program.scratch.write("ci.json", settings.to_string());
    let ended = run(&program, &[]);
    assert_eq!(program.scratch.read(ORDINARY), "evil\n", "{}", ended.stderr);
    assert_eq!(program.scratch.read("ci.json"), settings.to_string());
    for (name, text) in &FILES[1..] {
        assert_eq!(program.scratch.read(name), *text, "{name}");
    }
}

#[test]
fn no_edit_reaches_a_configuration_directory_within_the_project() {
    let write = |name| call("w", "Write", json!({"file_path": name, "content": "{\"a\": 1}"}));
    let names = ["conf/settings.json", "conf/agents/a.md", "conf/trust.json", "conf/notes.md"];
    let program = Program::answering(names.map(write).into_iter().chain([Reply::text("done")]));
    program.scratch.write("conf/agents/x.md", "");
    let mut command = program.command(["-p", "go", "--permission-mode", "acceptEdits"]);
    command.env("CENTURION_CONFIG_DIR", program.scratch.project().join("conf"));
    let ended = ended(command.output().unwrap());
    let exists = |name: &&str| program.scratch.project().join(name).exists();
    let written: Vec<&str> = names.into_iter().filter(exists).collect();
    assert_eq!(written, ["conf/notes.md"], "{}", ended.stderr);
}

/// Scripts outside of the project are not judged by their content, and the temporary directory can be written.
#[test]
fn no_sandboxed_command_changes_a_script_outside_of_the_project_that_runs() {
    if !can_confine_completely() {
        return skip(Lack::CompleteSandbox);
    }
    let program = Program::answering([
        call("b", "Bash", json!({"command": "sh attack.sh"})),
        Reply::text("done"),
    ]);
    let beside = program.scratch.root().join("beside");
    fs::create_dir(&beside).unwrap();
    let path = |name: &str| beside.join(name).display().to_string();
    for name in ["hook.sh", "server.sh", "key.sh", "ordinary"] {
        fs::write(beside.join(name), "echo key\n").unwrap();
    }
    let names = ["hook.sh", "server.sh", "key.sh", "later.sh", "ordinary"];
    let attack: Vec<String> = names.map(|name| format!("echo evil > {}\n", path(name))).into();
    program.scratch.write("attack.sh", attack.concat());
    let (hook, later) = (path("hook.sh"), path("later.sh"));
    let command = format!("sh {hook}; [ -f {later} ] && sh {later}");
    let settings = json!({
        "sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true},
        "apiKeyHelper": format!("sh {}", path("key.sh")),
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]},
    });
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let server = json!({"mcpServers": {"s": {"command": "sh", "args": [path("server.sh")]}}});
    program.scratch.write_home(".claude.json", server.to_string());
    let ended = program.run(&["-p", "go"]);
    let read = |name: &str| fs::read_to_string(beside.join(name)).unwrap_or_default();
    let expected = ["echo key\n", "echo key\n", "echo key\n", "", "evil\n"];
    assert_eq!(names.map(read), expected, "{}", ended.stderr);
}

/// A plugin that is worked on is in use as well, with all parts that it has or could have.
#[test]
fn no_edit_gives_a_plugin_in_use_something_that_runs() {
    let names = [
        "agents/a.md",
        "commands/c.md",
        "hooks/hooks.json",
        "skills/s/SKILL.md",
        "plugin.json",
        "roles/r.md",
        "conf/h.json",
        "src/lib.rs",
    ];
    let write = |name: &str| call("w", "Write", json!({"file_path": name, "content": "evil"}));
    let read = call("r", "Read", json!({"file_path": "conf/h.json"}));
    let calls: Vec<Reply> = [read].into_iter().chain(names.map(write)).collect();
    let program = Program::answering(calls.into_iter().chain([Reply::text("done")]));
    let manifest = json!({"name": "p", "agents": "./roles", "hooks": "./conf/h.json"});
    program.scratch.write(".claude-plugin/plugin.json", manifest.to_string());
    program.scratch.write("roles/x.md", "---\nname: x\ndescription: d\n---\nWork.\n");
    program.scratch.write("conf/h.json", "{\"hooks\": {}}");
    let ended = program.run(&["-p", "go", "--permission-mode", "acceptEdits", "--plugin-dir", "."]);
    let content =
        |name: &&str| fs::read_to_string(program.scratch.project().join(name)).unwrap_or_default();
    let written: Vec<&str> = names.into_iter().filter(|name| content(name) == "evil").collect();
    assert_eq!(written, ["src/lib.rs"], "{}", ended.stderr);
}
