//! Trust of content in the whole program: what a person accepted runs, and what came later does not, in the
//! same session, in a resumed one and at the next start.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use centurion_testkit::{Lack, Reply, skip};
use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::program::{Ended, Program, call, eventually};
use crate::sandboxes::can_confine_completely;

const SETTINGS: &str = ".claude/settings.json";

fn bash(id: &str, command: &str) -> Reply {
    call(id, "Bash", json!({"command": command}))
}

fn stop_hook(command: &str) -> Value {
    json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
}

fn file(program: &Program, name: &str) -> PathBuf {
    program.scratch.project().join(name)
}

fn good(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

/// Whether a hook has left this file, which is then taken away.
fn ran(program: &Program, name: &str) -> bool {
    fs::remove_file(file(program, name)).is_ok()
}

#[test]
fn a_hook_that_changed_is_off_until_it_is_accepted_again() {
    let program = Program::answering((0..5).map(|_| Reply::text("done")));
    program.scratch.write(SETTINGS, stop_hook("touch one").to_string());
    good(program.run(&["trust", "grant"]));
    good(program.run(&["-p", "go"]));
    assert!(ran(&program, "one"));
    // Changed by another program.
    program.scratch.write(SETTINGS, stop_hook("touch two").to_string());
    let ended = program.run(&["-p", "go"]);
    assert!(!ran(&program, "one") && !ran(&program, "two"));
    let told =
        format!("{}:1: these hooks do not run: it has changed", file(&program, SETTINGS).display());
    assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    assert!(ended.stderr.contains("`centurion trust grant` accepts it"), "{}", ended.stderr);
    let status = good(program.run(&["trust"]));
    assert!(status.contains("trusted (granted here)"), "{status}");
    let squeezed: Vec<String> = status.lines().map(|it| it.replace(' ', "")).collect();
    let expected = ["\"hooks\":[", "{", "-\"command\":\"touchone\",", "+\"command\":\"touchtwo\","];
    assert!(squeezed.contains(&"changed.claude/settings.json,hooks".to_owned()), "{status}");
    assert!(squeezed.windows(expected.len()).any(|lines| lines == expected), "{status}");
    let doctor = program.run(&["doctor"]);
    assert!(doctor.stdout.contains("changed .claude/settings.json, hooks"), "{}", doctor.stdout);
    let granted = good(program.run(&["trust", "grant"]));
    assert!(granted.contains("accepted: changed .claude/settings.json, hooks"), "{granted}");
    good(program.run(&["-p", "go"]));
    assert!(ran(&program, "two"));
    assert_eq!(good(program.run(&["trust"])).lines().count(), 1);
    // And back to what was accepted once: that was taken back with the next acceptance.
    program.scratch.write(SETTINGS, stop_hook("touch one").to_string());
    program.run(&["-p", "go"]);
    assert!(!ran(&program, "one"));
}

#[test]
fn a_script_that_a_hook_runs_is_accepted_with_the_hook() {
    let program = Program::answering((0..3).map(|_| Reply::text("done")));
    program.scratch.write("check.sh", "touch checked\n");
    program.scratch.write(SETTINGS, stop_hook("sh ./check.sh").to_string());
    good(program.run(&["trust", "grant"]));
    good(program.run(&["-p", "go"]));
    assert!(ran(&program, "checked"));
    program.scratch.write("check.sh", "touch evil\n");
    let ended = program.run(&["-p", "go"]);
    assert!(!ran(&program, "evil"));
    assert!(
        ended.stderr.contains("check.sh`, which it runs, is new or has changed"),
        "{}",
        ended.stderr
    );
    let status = good(program.run(&["trust"]));
    assert!(
        status.contains("changed check.sh, program\n    -touch checked\n    +touch evil\n"),
        "{status}"
    );
}

#[test]
fn a_script_among_the_arguments_of_a_hook_is_accepted_with_the_hook() {
    let program = Program::answering((0..3).map(|_| Reply::text("done")));
    program.scratch.write("h.sh", "touch checked\n");
    let hook = json!({"type": "command", "command": "sh", "args": ["${CLAUDE_PROJECT_DIR}/h.sh"]});
    let settings = json!({"hooks": {"Stop": [{"hooks": [hook]}]}});
    program.scratch.write(SETTINGS, settings.to_string());
    let listed = good(program.run(&["trust"]));
    assert!(listed.contains("h.sh, program"), "{listed}");
    good(program.run(&["trust", "grant"]));
    good(program.run(&["-p", "go"]));
    assert!(ran(&program, "checked"));
    program.scratch.write("h.sh", "touch evil\n");
    let ended = program.run(&["-p", "go"]);
    assert!(!ran(&program, "evil"));
    assert!(ended.stderr.contains("h.sh`, which it runs, is new or"), "{}", ended.stderr);
    good(program.run(&["trust", "grant"]));
    good(program.run(&["-p", "go"]));
    assert!(ran(&program, "evil"));
}

#[test]
fn a_server_runs_only_what_was_accepted_whenever_it_is_started() {
    let call_agent = json!({"description": "d", "prompt": "p", "subagent_type": "keeper"});
    let program = Program::answering([call("t1", "Agent", call_agent), Reply::text("done")]);
    program.scratch.write("srv.sh", "touch started\n");
    program.scratch.write("own.sh", "touch started\n");
    let server = json!({"command": "sh", "args": ["${CLAUDE_PROJECT_DIR:-.}/srv.sh"]});
    program.scratch.write(".mcp.json", json!({"mcpServers": {"srv": server}}).to_string());
    let own = json!([{"own": {"command": "sh", "args": ["${NOPE:-.}/own.sh"]}}]);
    let agent = format!("---\nname: keeper\ndescription: d\nmcpServers: {own}\n---\nWork.\n");
    program.scratch.write(".claude/agents/keeper.md", agent);
    good(program.run(&["trust", "grant"]));
    let mut host = Host::start(&program, &[]);
    let started = file(&program, "started");
    eventually("the server was started", || started.exists().then_some(()));
    fs::remove_file(&started).unwrap();
    let mut reconnect = |id: &str| {
        host.send(&control(id, &json!({"subtype": "mcp_reconnect", "serverName": "srv"})));
        host.until(|event| event["response"]["request_id"] == id).pop().unwrap().to_string()
    };
    reconnect("a");
    assert!(ran(&program, "started"), "what was accepted is started again");
    program.scratch.write("srv.sh", "touch evil\n");
    program.scratch.write("own.sh", "touch evil\n");
    let refused = reconnect("b");
    assert!(refused.contains("srv.sh`, which it runs, is new or has changed"), "{refused}");
    host.say("go");
    assert_eq!(host.result()["result"], "done");
    let told = program.server().last().json()["messages"].to_string();
    assert!(told.contains("own.sh`, which it runs, is new or has changed"), "{told}");
    host.finish();
    assert!(!ran(&program, "evil") && !ran(&program, "started"));
}

/// Everything that can be put into a folder and would run or allow something.
fn planted(mark: &str) -> Vec<(String, String)> {
    let hook = stop_hook(&format!("touch {mark}-hook")).to_string();
    let front = |name: &str| {
        format!(
            "---\nname: {name}\ndescription: d\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          \
             command: touch {mark}-{name}\n---\nWork.\n"
        )
    };
    let server = json!({"mcpServers": {"evil": {
        "command": "sh", "args": ["-c", format!("touch {mark}-server")],
    }}});
    let mut files = vec![(".mcp.json".to_owned(), server.to_string())];
    for directory in [".claude", ".centurion"] {
        files.push((format!("{directory}/settings.json"), hook.clone()));
        files.push((format!("{directory}/settings.local.json"), hook.clone()));
        files.push((format!("{directory}/agents/helper.md"), front("helper")));
        files.push((format!("{directory}/skills/care/SKILL.md"), front("care")));
    }
    files.push(("sub/.claude/settings.json".to_owned(), hook));
    files
}

/// A script that writes all of it.
fn planting(files: &[(String, String)]) -> String {
    let write = |(path, text): &(String, String)| {
        format!("mkdir -p \"$(dirname {path})\"; cat > {path} <<'END'\n{text}\nEND\n")
    };
    files.iter().map(write).collect()
}

/// The files that something planted has left, here and below.
fn left_by(program: &Program, mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for directory in [program.scratch.project(), file(program, "sub")] {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        found.extend(names.filter(|name| name.starts_with(mark)));
    }
    found
}

#[test]
fn what_a_command_plants_in_a_trusted_folder_runs_neither_now_nor_later() {
    let files = planted("evil");
    let start = |id: &str| {
        call(id, "Agent", json!({"description": "d", "subagent_type": "helper", "prompt": "work"}))
    };
    let program = Program::answering([
        bash("t1", "sh plant.sh"),
        start("t2"),
        Reply::text("helped"),
        Reply::text("done"),
        // The same session, resumed.
        start("t3"),
        Reply::text("helped"),
        Reply::text("done"),
        // A new one, and one in a directory below.
        Reply::text("done"),
        Reply::text("done"),
    ]);
    program.scratch.write(SETTINGS, json!({"permissions": {"deny": ["Read(x)"]}}).to_string());
    program.scratch.write("plant.sh", planting(&files));
    good(program.run(&["trust", "grant"]));
    let ended = program.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert!(file(&program, ".mcp.json").exists(), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(left_by(&program, "evil"), Vec::<String>::new(), "in the same session");
    good(program.run(&["-p", "go", "--continue"]));
    assert_eq!(left_by(&program, "evil"), Vec::<String>::new(), "in a resumed session");
    let ended = program.run(&["-p", "go"]);
    assert_eq!(left_by(&program, "evil"), Vec::<String>::new(), "at the next start");
    for named in ["settings.json", "settings.local.json", "server `evil` was not started"] {
        assert!(ended.stderr.contains(named), "{named}: {}", ended.stderr);
    }
    let mut below = program.command(["-p", "go"]);
    below.current_dir(file(&program, "sub"));
    assert!(below.status().unwrap().success());
    assert_eq!(left_by(&program, "evil"), Vec::<String>::new(), "below");
    let status = good(program.run(&["trust"]));
    for (path, _) in &files {
        assert!(status.contains(&format!("added {path}, ")), "{path}: {status}");
    }
}

#[test]
fn in_the_same_session_a_changed_file_takes_away_at_once_and_gives_nothing() {
    let rules = |allow: &str, deny: &str| {
        json!({"permissions": {"allow": [allow], "deny": [deny]}}).to_string()
    };
    let write =
        |id: &str, name: &str| call(id, "Write", json!({"file_path": name, "content": "y"}));
    let program = Program::answering([
        bash("t1", "sh change.sh"),
        write("t2", "a.txt"),
        bash("t3", "touch b.txt"),
        Reply::text("done"),
    ]);
    program.scratch.write(SETTINGS, rules("Bash", "Read(x)"));
    program.scratch.write("after.json", rules("Edit", "Bash(touch *)"));
    program.scratch.write("change.sh", "cp after.json .claude/settings.json\n");
    good(program.run(&["trust", "grant"]));
    let ended = program.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert!(
        ended.stderr.contains("`permissions.allow` is off: it has changed"),
        "{}",
        ended.stderr
    );
    assert!(!file(&program, "a.txt").exists(), "an allow rule that nobody accepted");
    assert!(!file(&program, "b.txt").exists(), "a deny rule counts at once");
}

#[test]
fn servers_are_enabled_and_added_as_they_are() {
    // D-58
    let program = Program::answering([]);
    let server = |command: &str| json!({"mcpServers": {"x": {"command": command}}}).to_string();
    let standing = |program: &Program| {
        let list = good(program.run(&["mcp", "list", "--json"]));
        let list: Value = serde_json::from_str(&list).unwrap();
        list[0]["standing"].as_str().unwrap().to_owned()
    };
    program.scratch.write(".mcp.json", server("true"));
    assert_eq!(standing(&program), "untrusted");
    good(program.run(&["mcp", "enable", "x"]));
    assert_eq!(standing(&program), "active");
    program.scratch.write(".mcp.json", server("false"));
    assert_eq!(standing(&program), "untrusted", "the word was for another content");
    good(program.run(&["trust", "grant"]));
    assert_eq!(standing(&program), "active");
    good(program.run(&["mcp", "remove", "x", "--scope", "project"]));
    good(program.run(&["mcp", "add", "x", "--scope", "project", "true"]));
    assert_eq!(standing(&program), "active", "added by the user's own word");
}

fn git(program: &Program, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]);
    let ended = git.args(arguments).current_dir(program.scratch.project()).output().unwrap();
    assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// The places in which a command tries to put something that would run outside of the sandbox.
const FORBIDDEN: [&str; 14] = [
    ".git/commondir",
    ".git/config",
    ".git/hooks/post-checkout",
    ".git/info/attributes",
    ".git/modules/lib/config",
    ".claude/agents/helper.md",
    ".claude/skills/care/SKILL.md",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".centurion/settings.json",
    ".centurion/agents/helper.md",
    ".mcp.json",
    "deep/.claude/settings.json",
    "deep/.git/config",
];

#[test]
fn a_sandboxed_command_changes_nothing_that_makes_us_or_git_run_something() {
    if !can_confine_completely() {
        return skip(Lack::CompleteSandbox);
    }
    let commit = "git -c user.name=a -c user.email=a@b commit --allow-empty -qm in && git status --short && \
                  git branch side && echo committed";
    let tries = |path: &&str| {
        format!("mkdir -p \"$(dirname {path})\"; echo evil >> {path} && echo WROTE {path}\n")
    };
    let attack: String = FORBIDDEN.iter().map(tries).collect::<String>()
        + "mv .git other && echo WROTE moved\nln -s x .git/commondir && echo WROTE linked\n\
           rm -r .claude && echo WROTE removed\ncp .git/config c && mv c .git/config && echo WROTE renamed\n";
    let program = Program::answering([
        bash("t1", commit),
        bash("t2", "sh attack.sh"),
        bash("t3", &commit.replace("side", "other")),
        bash("t4", "sh plant.sh"),
        Reply::text("done"),
        Reply::text("done"),
    ]);
    git(&program, &["init", "-q", "."]);
    program.scratch.write("a", "a\n");
    program.scratch.write(SETTINGS, json!({"permissions": {"deny": ["Read(x)"]}}).to_string());
    git(&program, &["add", "."]);
    git(&program, &["commit", "-qm", "one"]);
    for bare in [".git/modules/lib", "deep/.git"] {
        for part in ["objects/x", "refs/x", "HEAD", "config"] {
            program.scratch.write(format!("{bare}/{part}"), "");
        }
    }
    program.scratch.write("deep/.claude/settings.json", "{}");
    program.scratch.write("attack.sh", attack);
    program.scratch.write("plant.sh", planting(&planted("evil")));
    let sandbox = json!({"sandbox": {"enabled": true, "autoAllowBashIfSandboxed": true}});
    program.scratch.write_home(SETTINGS, sandbox.to_string());
    good(program.run(&["trust", "grant"]));
    let read = |path: &&str| fs::read_to_string(file(&program, path)).ok();
    let before: Vec<_> = FORBIDDEN.iter().map(read).collect();
    let ended = program.run(&["-p", "go", "--output-format", "stream-json", "--verbose"]);
    assert!(!ended.stderr.contains("sandbox"), "{}", ended.stderr);
    let results: Vec<String> = program.server().last().json()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().cloned().unwrap_or_default())
        .filter(|block| block["type"] == "tool_result")
        .map(|block| block["content"].to_string())
        .collect();
    assert!(results[0].contains("committed"), "{}", results[0]);
    assert!(!results[1].contains("WROTE"), "{}", results[1]);
    assert!(results[2].contains("committed"), "{}", results[2]);
    assert_eq!(FORBIDDEN.iter().map(read).collect::<Vec<_>>(), before);
    assert!(!file(&program, ".git/commondir").exists(), "nothing stays in the way");
    git(&program, &["status"]);
    git(&program, &["commit", "--allow-empty", "-qm", "after"]);
    // A file that a command could put into a new directory is off by itself.
    assert!(file(&program, "sub/.claude/settings.json").exists());
    let mut below = program.command(["-p", "go"]);
    below.current_dir(file(&program, "sub"));
    assert!(below.status().unwrap().success());
    assert_eq!(left_by(&program, "evil"), Vec::<String>::new());
}

/// Every place where a sandboxed command may write besides the project: the repository above a session that began
/// below its top, added directories, directories of the settings, and the home directory.
#[test]
fn a_sandboxed_command_changes_nothing_that_runs_in_any_place_where_it_may_write() {
    const KEPT: [&str; 4] =
        [".git/config", ".git/hooks/evil", ".claude/settings.json", ".mcp.json"];
    if !can_confine_completely() {
        return skip(Lack::CompleteSandbox);
    }
    let others = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let place = others.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(&place).unwrap();
        place
    };
    let (added, allowed) = (place("added"), place("allowed"));
    let replies = [bash("t1", "sh attack.sh"), bash("t2", "sh works.sh"), Reply::text("done")];
    let program = Program::answering(replies);
    let (project, home) = (program.scratch.project(), program.scratch.home());
    let roots = [&project, &added, &allowed, &home];
    let tries = |path: PathBuf| {
        format!(
            "mkdir -p {0:?}; echo evil >> {1:?} && echo WROTE {1:?}\n",
            path.parent().unwrap(),
            path
        )
    };
    let kept = roots.iter().flat_map(|root| KEPT.map(|name| root.join(name)));
    let rest = [".bashrc", ".gitconfig", ".config/git/config", ".profile"].map(|it| home.join(it));
    let kept: Vec<PathBuf> = kept.chain(rest).collect();
    let attack: String = kept.iter().cloned().map(tries).collect();
    let works: String = roots.map(|root| tries(root.join("sub/ordinary"))).concat();
    program.scratch.write("sub/attack.sh", attack);
    program.scratch.write("sub/works.sh", works);
    for root in [&project, &added, &allowed] {
        let mut init = Command::new("git");
        assert!(init.args(["init", "-q"]).arg(root).status().unwrap().success());
    }
    let sandbox = json!({"sandbox": {
        "enabled": true, "autoAllowBashIfSandboxed": true,
        "filesystem": {"allowWrite": [&allowed, &home]},
    }});
    program.scratch.write_home(SETTINGS, sandbox.to_string());
    let before: Vec<_> = kept.iter().map(|path| fs::read(path).ok()).collect();
    let mut run = program.command(["-p", "go", "--add-dir"]);
    let ended = run.arg(&added).current_dir(project.join("sub")).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let messages = program.server().last().json()["messages"].to_string();
    let wrote = messages.matches("WROTE").count();
    assert_eq!(
        wrote,
        roots.len(),
        "each place takes an ordinary file and nothing else: {messages}"
    );
    assert_eq!(kept.iter().map(|path| fs::read(path).ok()).collect::<Vec<_>>(), before);
}

/// Scripts of the project that run because of what the user brings: agents, skills, plugins, servers and helpers.
#[test]
fn a_sandboxed_command_changes_no_script_that_what_the_user_brings_runs() {
    const SCRIPTS: [&str; 8] = [
        "agent-hook.sh",
        "agent-server.sh",
        "bin/plugin-hook.sh",
        "bin/plugin-server.sh",
        "key.sh",
        "skill-hook.sh",
        "tools/flag-hook.sh",
        "tools/user-server.sh",
    ];
    if !can_confine_completely() {
        return skip(Lack::CompleteSandbox);
    }
    let tries = |path: &str| format!("echo evil >> {path} && echo WROTE {path}\n");
    let attack: String = SCRIPTS.map(tries).concat() + &tries("bin/ordinary");
    let program = Program::answering([bash("t1", "sh attack.sh"), Reply::text("done")]);
    for script in SCRIPTS {
        program.scratch.write(script, "echo key\n");
    }
    program.scratch.write("attack.sh", attack);
    let front = |name: &str, hook: &str, more: &str| {
        let hooks = json!({"Stop": [{"hooks": [{"type": "command", "command": hook}]}]});
        format!("---\nname: {name}\ndescription: d\nhooks: {hooks}\n{more}---\nWork.\n")
    };
    let server = |script: &str| json!({"s": {"command": "sh", "args": [script]}});
    let servers = format!("mcpServers: [{}]\n", server("${NOPE:-.}/agent-server.sh"));
    let write_home = |path: &str, text: String| program.scratch.write_home(path, text);
    write_home(".claude/agents/mine.md", front("mine", "./agent-hook.sh", &servers));
    write_home(".claude/skills/care/SKILL.md", front("care", "sh skill-hook.sh", ""));
    let user = json!({"mcpServers": server("${CLAUDE_PROJECT_DIR}/tools/user-server.sh")});
    write_home(".claude.json", user.to_string());
    let sandbox = json!({"enabled": true, "autoAllowBashIfSandboxed": true});
    write_home(SETTINGS, json!({"sandbox": sandbox, "apiKeyHelper": "sh key.sh"}).to_string());
    program.scratch.write(".claude-plugin/plugin.json", "{\"name\": \"p\"}");
    let hook = stop_hook("\"${CLAUDE_PLUGIN_ROOT}\"/bin/plugin-hook.sh");
    program.scratch.write("hooks/hooks.json", hook.to_string());
    let of_plugin = json!({"mcpServers": server("${CLAUDE_PLUGIN_ROOT}/bin/plugin-server.sh")});
    program.scratch.write(".mcp.json", of_plugin.to_string());
    let flag = json!({"flagged": {
        "description": "d", "prompt": "p", "hooks": stop_hook("tools/flag-hook.sh")["hooks"],
    }});
    let ended = program.run(&["-p", "go", "--plugin-dir", ".", "--agents", &flag.to_string()]);
    let messages = program.server().last().json()["messages"].to_string();
    assert_eq!(messages.matches("WROTE").count(), 1, "{messages}{}", ended.stderr);
    assert!(messages.contains("WROTE bin/ordinary"), "{messages}");
    for script in SCRIPTS {
        assert_eq!(program.scratch.read(script), "echo key\n", "{script}");
    }
}

fn post_hook(command: &str) -> Value {
    json!({"hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": command}]}]}})
}

#[test]
fn a_hook_runs_only_what_was_accepted_wherever_the_session_stands() {
    let command = "test -f ./local.sh && sh ./local.sh; sh ./check.sh";
    let program = Program::answering([
        bash("t1", "ls"),
        bash("t2", "cd sub"),
        bash("t3", "ls"),
        bash("t4", "cd .."),
        bash("t5", "sh make.sh"),
        bash("t6", "ls"),
        Reply::text("done"),
    ]);
    let mark = |name: &str| format!("touch {}\n", file(&program, name).display());
    program.scratch.write("check.sh", mark("good"));
    program.scratch.write("make.sh", format!("echo '{}' > local.sh\n", mark("evil").trim()));
    program.scratch.write(SETTINGS, post_hook(command).to_string());
    good(program.run(&["trust", "grant"]));
    // It came later, beside an accepted one.
    program.scratch.write("sub/check.sh", mark("evil"));
    let ended = program.run(&["-p", "go", "--allowedTools", "Bash"]);
    assert!(ran(&program, "good"), "{}{}", ended.stdout, ended.stderr);
    assert!(file(&program, "local.sh").exists(), "{}{}", ended.stdout, ended.stderr);
    assert!(!ran(&program, "evil"));
}

#[test]
fn a_file_that_a_hook_waits_for_is_not_made_without_a_question() {
    let program = Program::answering([
        call("t1", "Write", json!({"file_path": "local.sh", "content": "touch evil"})),
        bash("t2", "ls"),
        Reply::text("done"),
    ]);
    let hook = post_hook("test -f ./local.sh && sh ./local.sh");
    program.scratch.write_home(SETTINGS, hook.to_string());
    good(program.run(&["-p", "go", "--permission-mode", "acceptEdits"]));
    assert!(!file(&program, "local.sh").exists() && !ran(&program, "evil"));
}

#[test]
fn rules_and_hooks_leave_ordinary_files_to_be_edited() {
    let names = ["README.md", "src/a.ts", "package.json", "b.py"];
    for hook in [
        "f=$(jq -r .tool_input.file_path); [[ \"$f\" == *.py ]] && ruff check \"$f\"; true",
        "[ -f package.json ] && true",
        "prettier --check \"src/**/*.ts\" || ruff check *.py; true",
        "case $f in *.py) true;; *.ts) true;; esac",
    ] {
        let edits = names.iter().flat_map(|name| {
            [
                call(&format!("r{name}"), "Read", json!({"file_path": name})),
                call(&format!("w{name}"), "Write", json!({"file_path": name, "content": "y"})),
            ]
        });
        let program = Program::answering(edits.chain([Reply::text("done"), Reply::text("done")]));
        let mut settings = post_hook(hook);
        settings["permissions"] =
            json!({"allow": ["Bash(touch *)", "Edit(src/*)", "Bash(cat README.md)"]});
        program.scratch.write(SETTINGS, settings.to_string());
        program.scratch.write_home(SETTINGS, post_hook(hook).to_string());
        git(&program, &["init", "-q", "."]);
        git(&program, &["config", "remote.origin.url", "./README.md"]);
        for name in names {
            program.scratch.write(name, "x");
        }
        good(program.run(&["trust", "grant"]));
        let ended = program.run(&["-p", "go", "--permission-mode", "acceptEdits"]);
        for name in names {
            let text = fs::read_to_string(file(&program, name)).unwrap();
            assert_eq!(text, "y", "{hook}: {name}: {}{}", ended.stdout, ended.stderr);
        }
        let later = program.run(&["-p", "go"]);
        for ended in [ended, later] {
            assert!(!ended.stderr.contains("trust"), "{hook}: {}", ended.stderr);
        }
    }
}

/// Ways to make `git status` at the top of a trusted repository run something. `MARK` is what it would make.
const PLANTED_IN_GIT: [(&str, &str); 6] = [
    ("configuration", "git config core.fsmonitor 'touch MARK;:'"),
    (
        "hook",
        "printf '#!/bin/sh\ntouch MARK\n' > .git/hooks/post-index-change; \
              chmod +x .git/hooks/post-index-change; touch a; git status >/dev/null; touch -d yesterday a; rm -f MARK",
    ),
    (
        "gitlink",
        "git init -q sub; cd sub; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; \
         git config core.fsmonitor 'touch MARK;:'; h=$(git rev-parse HEAD); cd ..; \
         git update-index --add --cacheinfo 160000,$h,sub; rm -f MARK",
    ),
    (
        "another repository in its place",
        "rm -rf .git; git init -q .; git config core.fsmonitor 'touch MARK;:'",
    ),
    (
        "included",
        "git config include.path ../more; git config -f more core.fsmonitor 'touch MARK;:'",
    ),
    (
        "commondir",
        "cp -r .git evil; git config -f evil/config core.fsmonitor 'touch MARK;:'; \
                   echo ../evil > .git/commondir",
    ),
];

#[test]
fn git_is_free_in_a_trusted_repository_only_while_it_runs_what_was_accepted() {
    for (name, plant) in PLANTED_IN_GIT {
        let program = Program::answering([
            bash("t1", "git status"),
            Reply::text("done"),
            bash("t2", "git status"),
            Reply::text("done"),
            bash("t3", "git status"),
            Reply::text("done"),
        ]);
        git(&program, &["init", "-q", "."]);
        program.scratch.write("a", "a\n");
        git(&program, &["add", "a"]);
        git(&program, &["commit", "-qm", "one"]);
        good(program.run(&["trust", "grant"]));
        let denied = |ended: &Ended| ended.stdout.contains("\"tool_name\":\"Bash\"");
        let run = || program.run(&["-p", "go", "--output-format", "json"]);
        let ended = run();
        assert!(!denied(&ended), "{name}: {}{}", ended.stdout, ended.stderr);
        let mark = file(&program, "mark-of-git");
        let plant = plant.replace("MARK", mark.to_str().unwrap());
        let mut shell = Command::new("sh");
        let planted = shell.args(["-c", &plant]).current_dir(program.scratch.project()).output();
        assert!(planted.unwrap().status.success(), "{name}");
        let _ = fs::remove_file(&mark);
        let ended = run();
        assert!(!mark.exists(), "{name}: {}{}", ended.stdout, ended.stderr);
        assert!(denied(&ended), "{name}: {}{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("git commands are asked about"), "{name}: {}", ended.stderr);
        let status = good(program.run(&["trust"]));
        assert!(status.contains(", git "), "{name}: {status}");
        good(program.run(&["trust", "grant"]));
        let ended = run();
        assert!(!denied(&ended), "{name}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn all_that_is_accepted_is_shown() {
    let program = Program::answering([]);
    let hidden = format!("true #{}\n touch evil #\u{202e}\u{1b}[8m", "A".repeat(70_000));
    program.scratch.write(SETTINGS, stop_hook(&hidden).to_string());
    program.scratch.write("long.sh", "# long\n".repeat(20_000) + "touch worse\n");
    program.scratch.write(".claude/settings.local.json", stop_hook("sh long.sh").to_string());
    let status = good(program.run(&["trust"]));
    for part in ["touch evil", "more bytes are not shown", "\\u{202e}", "touch worse"] {
        assert!(status.contains(part), "{part}");
    }
    assert!(!status.contains('\u{1b}') && !status.contains('\u{202e}'));
}

#[test]
fn names_and_texts_of_a_repository_do_not_command_the_terminal() {
    let program = Program::answering((0..2).map(|_| Reply::text("done")));
    let escape = "\u{1b}[31mX";
    let settings = json!({
        "permissions": {"allow": [format!("Bash({escape}"), escape], "deny": [format!("{escape}((")]},
        "hooks": {escape: [{"matcher": escape, "hooks": [{"type": escape, "command": escape}]}]},
        "env": {escape: "1"}, "model": escape, "enabledPlugins": {escape: true},
    });
    program.scratch.write(SETTINGS, settings.to_string());
    program.scratch.write("CLAUDE.md", format!("@./no{escape}.md\n@~/x{escape}\n"));
    program.scratch.write(format!(".claude/agents/a{escape}.md"), "---\nname: x\nbogus: 1\n---\n");
    for _ in 0..2 {
        for arguments in
            [&["-p", "go"][..], &["trust"], &["doctor"], &["agents", "list"], &["trust", "grant"]]
        {
            let ended = program.run(arguments);
            for text in [&ended.stdout, &ended.stderr] {
                assert!(!text.contains('\u{1b}'), "{arguments:?}: {}", text.escape_debug());
            }
        }
    }
}
