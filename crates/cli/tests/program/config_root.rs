//! `--project-config-root`: a session in a worktree runs what the trusted checkout brings, not what the branch carries.

use std::fs;
use std::path::PathBuf;

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::program::{Ended, Program, call, ended};
use crate::worktrees::git_in;

/// A checkout whose configuration is trusted, and a worktree of it whose branch has changed all of that.
struct Checkouts {
    program: Program,
    root: PathBuf,
    branch: PathBuf,
}

/// The configuration of one of the two; `name` is in every part of it.
fn configuration(name: &str) -> Vec<(String, String)> {
    let hook = format!("echo \"{name} $CLAUDE_PROJECT_DIR\" >> \"$HOME/hooks\"");
    let settings = json!({
        "hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": hook}]}]},
        "permissions": {"allow": [format!("Write(/{name}.txt)"), "Bash(echo *)"], "deny": [format!("Read(/{name}-secret.txt)")]},
        "outputStyle": name,
    });
    let servers = json!({"mcpServers": {name: {"command": "/nonexistent/server"}}});
    let file = |path: &str, text: String| (path.to_owned(), text);
    vec![
        file(".claude/settings.json", settings.to_string()),
        file(".mcp.json", servers.to_string()),
        file(
            &format!(".claude/agents/{name}.md"),
            format!("---\nname: {name}-agent\ndescription: d\n---\nWork.\n"),
        ),
        file(
            &format!(".claude/skills/{name}-skill/SKILL.md"),
            "---\ndescription: d\n---\nIn ${CLAUDE_PROJECT_DIR}.\n".into(),
        ),
        file(&format!(".claude/commands/{name}-command.md"), "Do it.\n".into()),
        file(
            &format!(".claude/output-styles/{name}.md"),
            format!("---\nname: {name}\n---\nSpeak like {name}.\n"),
        ),
        file("CLAUDE.md", format!("Notes of {name}.\n")),
        file(
            &format!("below/.claude/skills/{name}-below/SKILL.md"),
            "---\ndescription: d\n---\nx\n".into(),
        ),
        file("below/file.txt", "text\n".into()),
        file(&format!("{name}-secret.txt"), "hidden\n".into()),
    ]
}

impl Checkouts {
    fn new(program: Program) -> Self {
        let root = program.scratch.project().canonicalize().unwrap();
        let write = |place: &PathBuf, name: &str| {
            for (path, text) in configuration(name) {
                let path = place.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        };
        write(&root, "trusted");
        git_in(&root, "init -q -b main .");
        git_in(&root, "config user.name T");
        git_in(&root, "config user.email t@localhost");
        git_in(&root, "add -A");
        git_in(&root, "commit -q -m first");
        assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
        // It lies inside of the checkout, as worktrees of this program do.
        git_in(&root, "worktree add -q -b other .claude/worktrees/other");
        let branch = root.join(".claude/worktrees/other");
        for entry in [".claude", ".mcp.json", "CLAUDE.md", "below", "trusted-secret.txt"] {
            let path = branch.join(entry);
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        write(&branch, "branch");
        fs::write(branch.join("trusted-secret.txt"), "hidden\n").unwrap();
        Self { program, root, branch }
    }

    fn run(&self, root: &str) -> Ended {
        let stream = ["--output-format", "stream-json", "--verbose"];
        let flags = [&["-p", "go", "--project-config-root", root], &stream[..]].concat();
        ended(self.program.command(flags).current_dir(&self.branch).output().unwrap())
    }
}

#[test]
fn a_session_in_a_worktree_runs_what_the_trusted_checkout_brings() {
    let checkouts = Checkouts::new(Program::answering([
        call("toolu_1", "Write", json!({"file_path": "trusted.txt", "content": "x"})),
        call("toolu_2", "Write", json!({"file_path": "branch.txt", "content": "x"})),
        call("toolu_3", "Read", json!({"file_path": "trusted-secret.txt"})),
        call("toolu_4", "Read", json!({"file_path": "below/file.txt"})),
        call("toolu_5", "Bash", json!({"command": "echo \"at $CLAUDE_PROJECT_DIR\""})),
        call("toolu_6", "Skill", json!({"skill": "trusted-skill"})),
        Reply::text("done"),
    ]));
    let Checkouts { program, root, branch } = &checkouts;
    let ended = checkouts.run(root.to_str().unwrap());
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let init = ended.events().into_iter().find(|event| event["subtype"] == "init").unwrap();
    for part in ["agents", "skills", "slash_commands", "mcp_servers", "output_style"] {
        let said = init[part].to_string();
        assert!(said.contains("trusted") && !said.contains("branch"), "{part}: {said}");
    }
    assert_eq!(init["cwd"], branch.to_str().unwrap());
    // Rules of the checkout speak of the files that the session works with.
    assert_eq!(fs::read_to_string(branch.join("trusted.txt")).unwrap(), "x");
    assert!(!branch.join("branch.txt").exists() && !root.join("trusted.txt").exists());
    let denials = ended.result()["permission_denials"].clone();
    let denied: Vec<&Value> =
        denials.as_array().unwrap().iter().map(|it| &it["tool_use_id"]).collect();
    assert_eq!(denied, ["toolu_2", "toolu_3"], "{denials}");
    let hooks = fs::read_to_string(program.scratch.home().join("hooks")).unwrap();
    assert_eq!(hooks, format!("trusted {}\n", root.display()));
    let requests = program.server().requests();
    let first = requests[0].json().to_string();
    assert!(first.contains("Speak like trusted") && first.contains("Notes of branch"), "{first}");
    let last = requests.last().unwrap().json()["messages"].to_string();
    assert!(last.contains(&format!("at {}", root.display())), "{last}");
    assert!(last.contains(&format!("In {}.", root.display())), "{last}");
    assert!(!last.contains("branch-below"), "{last}");
}

#[test]
fn only_a_checkout_that_the_directory_is_a_worktree_of_can_configure_it() {
    let checkouts = Checkouts::new(Program::with_handler(|_| Reply::text("ran")));
    let elsewhere = checkouts.program.scratch.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let missing = elsewhere.join("missing");
    for (root, reason) in [
        ("../../..", "an absolute path is needed"),
        (elsewhere.to_str().unwrap(), "is no worktree of this checkout"),
        (missing.to_str().unwrap(), "No such file"),
    ] {
        let ended = checkouts.run(root);
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
    }
    assert!(checkouts.program.server().requests().is_empty());
    // The directory itself is as good as none.
    let own = checkouts.branch.to_str().unwrap();
    assert_eq!(checkouts.run(own).code, Some(0));
}
