//! `centurion agents`: agents are listed, checked and written.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Ended, Program};
use crate::stage::Stage;

fn file(name: &str, lines: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n{lines}---\nYou are {name}.\n")
}

pub(crate) fn good(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

fn listed(program: &Program, more: &[&str]) -> Value {
    let text = good(program.run(&[&["agents", "list", "--json"], more].concat()));
    serde_json::from_str(&text).unwrap()
}

/// The names in a list.
pub(crate) fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect()
}

pub(crate) fn named<'l>(list: &'l Value, name: &str) -> &'l Value {
    list.as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap()
}

pub(crate) fn project(program: &Program, relative: &str) -> String {
    program.scratch.project().canonicalize().unwrap().join(relative).display().to_string()
}

#[test]
fn the_list_has_a_fixed_form() {
    // S-001, S-045, S-054, S-110
    let program = Program::alone();
    let lines = "tools: Read, Grep\ndisallowedTools: [Grep]\nmodel: opus\ncolor: pink\n";
    program.scratch.write(".claude/agents/scout.md", file("scout", lines));
    program.scratch.write_home(".claude/agents/scout.md", file("scout", ""));
    program.scratch.write(".claude/agents/bad.md", "---\nname: bad\n---\nx\n");
    let list = listed(&program, &[]);
    let keys: Vec<_> = list.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["active", "shadowed", "failed"]);
    let expected = json!({
        "name": "scout", "description": "Does scout", "tools": ["Read", "Grep"],
        "disallowedTools": ["Grep"], "model": "opus", "color": "pink",
        "source": "projectSettings", "path": project(&program, ".claude/agents/scout.md"),
    });
    assert_eq!(*named(&list["active"], "scout"), expected);
    let built_in = [
        "Bash",
        "centurion-guide",
        "Explore",
        "general-purpose",
        "Plan",
        "scout",
        "statusline-setup",
        "verification",
    ];
    assert_eq!(names(&list["active"]), built_in, "the fork is in no list");
    let explore = named(&list["active"], "Explore");
    assert_eq!(explore["tools"], Value::Null);
    assert_eq!(explore["disallowedTools"].as_array().unwrap().len(), 9);
    assert_eq!((&explore["source"], &explore["model"]), (&json!("built-in"), &json!("haiku")));
    let [shadowed] = list["shadowed"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!(shadowed["shadowedBy"], expected["path"]);
    assert_eq!((&shadowed["source"], &shadowed["model"]), (&json!("userSettings"), &Value::Null));
    let reason = "has no `description`, which says when to use the agent";
    let bad = project(&program, ".claude/agents/bad.md");
    assert_eq!(list["failed"], json!([{"path": bad, "line": 2, "reason": reason}]));
}

#[test]
fn people_read_agents_by_who_defines_them() {
    let program = Program::alone();
    program.scratch.write(".claude/agents/scout.md", file("scout", "tools: Read\n"));
    program.scratch.write_home(".centurion/agents/plan.md", file("Plan", ""));
    program.scratch.write_home(".claude/agents/bad.md", "---\ndescription: x\n---\n");
    let text = good(program.run(&["agents", "list"]));
    let titles: Vec<_> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    let expected = [
        "Project:",
        "",
        "User:",
        "",
        "Built in:",
        "",
        "Another has their name:",
        "",
        "Cannot be used:",
    ];
    assert_eq!(titles, expected, "{text}");
    assert!(text.contains("  scout (model inherit; Read)\n      Does scout\n"), "{text}");
    assert!(text.contains("  Plan of built-in/plan.md: "), "{text}");
    assert!(text.contains("bad.md:2: has no `name`\n"), "{text}");
}

#[test]
fn a_users_file_takes_the_place_of_what_is_built_in() {
    // S-047, D-1
    let program = Program::alone();
    program.scratch.write_home(".claude/agents/mine.md", file("Explore", "model: inherit\n"));
    let list = listed(&program, &[]);
    let explore = named(&list["active"], "Explore");
    assert_eq!(
        (&explore["source"], &explore["model"]),
        (&json!("userSettings"), &json!("inherit"))
    );
    assert_eq!(explore["disallowedTools"], Value::Null, "nothing is left of the other");
    let shadowed = named(&list["shadowed"], "Explore");
    assert_eq!(shadowed["source"], "built-in");
}

#[test]
fn flags_and_settings_bring_agents_and_leave_levels_out() {
    // S-042, S-043, S-044, S-046, D-10
    let program = Program::alone();
    program.scratch.write(".claude/agents/scout.md", file("scout", ""));
    program.scratch.write("agents.json", r#"{"filed": {"description": "d", "prompt": "p"}}"#);
    program.scratch.write("more/.claude/agents/far.md", file("far", ""));
    let json = r#"{"scout": {"description": "d", "prompt": "p"}}"#;
    let list = listed(&program, &["--agents", json]);
    assert_eq!(named(&list["active"], "scout")["source"], "flagSettings");
    assert_eq!(names(&list["shadowed"]), ["scout"]);
    let list = listed(&program, &["--agents", "agents.json", "--add-dir", "more"]);
    assert!(["filed", "far", "scout"].iter().all(|name| names(&list["active"]).contains(name)));
    program.scratch.write("kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    program.scratch.write("kit/agents/deep/fixer.md", file("fixer", ""));
    let list = listed(&program, &["--plugin-dir", "kit"]);
    assert_eq!(named(&list["active"], "kit:deep:fixer")["source"], "plugin");
    let settings = r#"{"agents": {"set": {"description": "d", "prompt": "p"}}}"#;
    let list = listed(&program, &["--settings", settings]);
    assert_eq!(named(&list["active"], "set")["source"], "flagSettings");
    let list = listed(&program, &["--setting-sources", "user"]);
    assert!(!names(&list["active"]).contains(&"scout"));
    let bad = program.run(&["agents", "list", "--agents", r#"{"x": {"description": "d"}}"#]);
    assert_eq!(bad.code, Some(1));
    let expected = "error: --agents: x.prompt: must be text that is not empty\n";
    assert_eq!(bad.stderr, expected);
}

#[test]
fn built_in_agents_are_switched_off_by_variables_and_settings() {
    // S-107, S-111, D-3
    let program = Program::alone();
    let list = |name: &str, value: &str| {
        let mut command = program.command(["agents", "list", "--json"]);
        let output = command.env(name, value).output().unwrap();
        let list: Value = serde_json::from_slice(&output.stdout).unwrap();
        names(&list["active"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", "1"), [""; 0]);
    assert!(!list("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS", "1").contains(&"Plan".to_owned()));
    assert!(!list("CLAUDE_CODE_ENTRYPOINT", "sdk-py").contains(&"centurion-guide".to_owned()));
    let setting = r#"{"subagents": {"disabled": ["bash", "claude-code-guide"]}}"#;
    program.scratch.write_home(".claude/settings.json", setting);
    let left = list("UNRELATED", "1");
    assert!(left.contains(&"Plan".to_owned()));
    assert!(!left.iter().any(|name| name == "Bash" || name == "centurion-guide"), "{left:?}");
}

#[test]
fn a_check_fails_for_files_that_cannot_be_used() {
    // S-053, D-40
    let program = Program::alone();
    let clean = good(program.run(&["agents", "check"]));
    assert_eq!(clean, "0 agents are good, 0 cannot be used, 0 warnings\n");
    program.scratch.write(".claude/agents/good.md", file("good", ""));
    program.scratch.write(".claude/agents/notes.md", "# About these agents\n");
    program.scratch.write(".claude/agents/odd.md", file("odd", "model: Opus\ntools: Raed\n"));
    let warned = program.run(&["agents", "check"]);
    let odd = project(&program, ".claude/agents/odd.md");
    let expected = format!(
        "{odd}:4: `model: Opus` is read as `opus`\n\
         {odd}:5: there is no tool `Raed`, which `tools` names\n\
         2 agents are good, 0 cannot be used, 2 warnings\n"
    );
    assert_eq!((warned.stdout.as_str(), warned.code), (expected.as_str(), Some(0)));
    assert_eq!(program.run(&["agents", "check", "--strict"]).code, Some(1));
    program.scratch.write(".claude/agents/bad.md", "---\nname: a:b\ndescription: c\n---\n");
    let failed = program.run(&["agents", "check"]);
    let bad = project(&program, ".claude/agents/bad.md");
    assert!(failed.stdout.starts_with(&format!("{bad}:2: the name `a:b` ")), "{}", failed.stdout);
    assert_eq!(failed.code, Some(1));
    let data = program.run(&["agents", "check", "--json"]);
    let data: Value = serde_json::from_str(&data.stdout).unwrap();
    assert_eq!((&data["failed"][0]["path"], &data["failed"][0]["line"]), (&json!(bad), &json!(2)));
    assert_eq!(data["warnings"].as_array().unwrap().len(), 2);
}

#[test]
fn paths_are_checked_wherever_they_are() {
    let program = Program::alone();
    program.scratch.write(".claude/agents/bad.md", "---\nname: x\n---\n");
    program.scratch.write("drafts/good.md", file("good", ""));
    program.scratch.write("drafts/README.md", "# Drafts\n");
    program.scratch.write("drafts/deep/bad.md", "---\nname: -x\ndescription: y\n---\n");
    program.scratch.write("kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    program.scratch.write("kit/agents/fixer.md", "---\ndescription: Fixes\n---\n");
    let one = program.run(&["agents", "check", "drafts/good.md", "kit"]);
    assert_eq!(one.stdout, "2 agents are good, 0 cannot be used, 0 warnings\n");
    assert_eq!(one.code, Some(0));
    let all = program.run(&["agents", "check", "drafts"]);
    let bad = project(&program, "drafts/deep/bad.md");
    assert!(all.stdout.starts_with(&format!("{bad}:2: the name `-x` ")), "{}", all.stdout);
    assert_eq!(all.code, Some(1));
    let text = program.run(&["agents", "check", "drafts/README.md"]);
    assert!(text.stdout.contains("README.md:1: has no frontmatter"), "{}", text.stdout);
    assert_eq!(text.code, Some(1));
    let nothing = program.run(&["agents", "check", "nowhere"]);
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stderr.contains("there is nothing at "), "{}", nothing.stderr);
}

#[test]
fn a_new_agent_is_good_and_nothing_is_overwritten() {
    let program = Program::alone();
    let args = ["agents", "new", "Spatial Metal", "--description", "Draws: \"quickly\" # really"];
    let more = ["--tools", "Read, Bash(git log *)", "--model", "sonnet"];
    let wrote = good(program.run(&[&args[..], &more].concat()));
    let path = project(&program, ".claude/agents/Spatial Metal.md");
    assert!(wrote.starts_with(&format!("wrote {path};")), "{wrote}");
    let list = listed(&program, &[]);
    let agent = named(&list["active"], "Spatial Metal");
    assert_eq!(agent["description"], "Draws: \"quickly\" # really");
    assert_eq!(agent["tools"], json!(["Read", "Bash(git log *)"]));
    assert_eq!((&agent["model"], &agent["path"]), (&json!("sonnet"), &json!(path)));
    good(program.run(&["agents", "check", "--strict"]));
    program.scratch.write(".claude/agents/taken.md", "no agent\n");
    let before = program.scratch.read(".claude/agents/Spatial Metal.md");
    for (name, reason) in [
        ("Spatial Metal", "there is an agent `Spatial Metal` already, in "),
        ("taken", "there is a file "),
        ("a:b", "the name `a:b` contains `:`"),
        ("../x", "the name `../x` begins with `.`"),
        ("a/x", "contains `/`, and a name is no path"),
        ("a\\x", "contains `\\`, and a name is no path"),
        ("", "the name `` is empty"),
    ] {
        let refused = program.run(&["agents", "new", name]);
        assert_eq!(refused.code, Some(1), "{name}");
        assert!(refused.stderr.contains(reason), "{name}: {}", refused.stderr);
    }
    assert_eq!(program.scratch.read(".claude/agents/Spatial Metal.md"), before);
    for bad in [["--description", " "], ["--tools", ","], ["--model", ""]] {
        assert_eq!(program.run(&["agents", "new", "x", bad[0], bad[1]]).code, Some(1), "{bad:?}");
    }
    assert!(!Path::new(&project(&program, ".claude/agents/x.md")).exists());
}

#[test]
fn a_new_agent_goes_to_its_scope_and_tells_of_its_rivals() {
    // D-51
    let program = Program::alone();
    program.scratch.write(".git/HEAD", "ref: refs/heads/main\n");
    program.scratch.write("deep/x", "");
    let run = |args: &[&str]| {
        let mut command = program.command(args);
        let output = command.current_dir(program.scratch.project().join("deep")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let told = run(&["agents", "new", "Explore", "--scope", "user", "--tools", "Raed"]);
    assert!(told.contains("there is no tool `Raed`"), "{told}");
    assert!(
        told.contains("note: it takes the place of `Explore` of built-in/explore.md"),
        "{told}"
    );
    assert!(program.scratch.home().join(".centurion/agents/Explore.md").is_file());
    assert!(!program.scratch.home().join(".claude").exists());
    assert_eq!(run(&["agents", "new", "near"]), "");
    assert!(program.scratch.project().join(".claude/agents/near.md").is_file());
    let told = run(&["agents", "new", "near", "--scope", "user"]);
    assert!(told.contains("note: `near` of ") && told.contains("goes before it"), "{told}");
    let data = good(program.run(&["agents", "new", "far", "--tools", "Raed", "--json"]));
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(data["path"], project(&program, ".claude/agents/far.md"));
    assert_eq!((&data["warnings"][0]["line"], &data["note"]), (&json!(4), &json!(null)));
}

#[test]
fn a_repositorys_link_is_not_written_through() {
    let program = Program::alone();
    std::os::unix::fs::symlink(program.scratch.home(), program.scratch.project().join(".claude"))
        .unwrap();
    let refused = program.run(&["agents", "new", "x"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains(".claude is a link"), "{}", refused.stderr);
    assert!(!program.scratch.home().join("agents").exists());
}

#[test]
fn the_home_directory_is_no_project() {
    let program = Program::alone();
    let mut command = program.command(["agents", "new", "x"]);
    let output = command.current_dir(program.scratch.home()).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("the home directory is no project\nhelp: --scope user"), "{told}");
}

/// The commands in the manual are the program's.
#[test]
fn the_manual_names_commands_that_there_are() {
    let guide = include_str!("../../../../docs/guide.md");
    let program = Program::alone();
    let lines = guide.lines().filter_map(|line| line.strip_prefix("    centurion "));
    let mut seen = 0;
    for line in lines.filter(|line| !line.starts_with('-')) {
        let words = line.split_whitespace().take_while(|word| {
            word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
        });
        let words: Vec<_> = words.take(2).collect();
        let help = program.run(&[&words[..], &["--help"]].concat());
        assert_eq!(help.code, Some(0), "{line}: {}", help.stderr);
        let usage = help.stdout.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap();
        let usage = usage.strip_prefix("centurion ").unwrap_or(usage);
        assert!(usage.starts_with(&words.join(" ")), "{line}: {usage}");
        seen += 1;
    }
    assert!(seen > 8, "{seen}");
}

/// The flags in the manual are the program's.
#[test]
fn the_manual_names_flags_that_there_are() {
    let guide = include_str!("../../../../docs/guide.md");
    let program = Program::alone();
    let commands: [&[&str]; 9] = [
        &[],
        &["agents", "list"],
        &["agents", "check"],
        &["agents", "explain"],
        &["agents", "new"],
        &["skills", "new"],
        &["mcp", "add"],
        &["sessions"],
        &["doctor"],
    ];
    let helps = commands.map(|words| program.run(&[words, &["--help"]].concat()).stdout);
    let helps = helps.concat();
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '-';
    // The example of a rule names another program.
    let lines = guide.lines().filter(|line| !line.contains("permissions explain"));
    let words = lines.flat_map(|line| line.split(|letter| !is_letter(letter)));
    let flags: Vec<_> =
        words.filter(|word| word.starts_with("--") && !word.ends_with('-')).collect();
    assert!(flags.len() > 40, "{flags:?}");
    for flag in flags {
        let is_known = helps.split(|letter| !is_letter(letter)).any(|word| word == flag);
        assert!(is_known, "{flag} is no flag");
    }
}

#[test]
fn an_explained_agent_says_what_decided_each_part() {
    let program = Program::alone();
    let lines = "tools: Read, Bash(git *)\nmodel: opus\nmaxTurns: 3\n";
    program.scratch.write(".claude/agents/scout.md", file("scout", lines));
    let explained = |more: &[&str]| -> Value {
        let flags = ["agents", "explain", "scout", "--json"];
        serde_json::from_str(&good(program.run(&[&flags[..], more].concat()))).unwrap()
    };
    let place = |line: usize| format!("{}:{line}", project(&program, ".claude/agents/scout.md"));
    let child = explained(&[]);
    assert_eq!(child["tools"], json!(["Bash", "Read"]));
    assert_eq!(child["maxTurns"], json!({"value": 3, "from": place(6)}));
    assert_eq!(child["model"]["from"], json!(place(5)));
    assert_eq!(child["permissionMode"]["value"], "default");
    assert_eq!(child["limits"][0], "Bash(git *)");
    assert!(child["leftOut"]["Write"].as_str().unwrap().contains("does not list it"), "{child}");
    let from: Vec<&Value> =
        child["promptSections"].as_array().unwrap().iter().map(|it| &it["from"]).collect();
    assert_eq!(from[0], "the definition");
    // The session itself has its own mode, and no agent above it.
    let main = explained(&["--as-main"]);
    assert_eq!(main["permissionMode"]["value"], "default");
    assert_eq!(explained(&["--background"])["background"]["value"], true);
    let text = good(program.run(&["agents", "explain", "scout"]));
    assert!(text.contains(&format!("maxTurns: 3   [{}]", place(6))), "{text}");
    let deep = program.run(&["agents", "explain", "scout", "--depth", "3"]);
    assert_eq!(deep.code, Some(1));
    assert!(deep.stderr.contains("at most 3"), "{}", deep.stderr);
}

#[test]
fn what_an_agent_remembers_is_carried_to_another_home_by_the_project() {
    // S-056, S-342
    let stage = Stage::new(&json!({"lead": ["hello"]}));
    let (program, scratch) = (&stage.program, &stage.program.scratch);
    scratch.write_home(".claude/agents/keeper.md", file("keeper", "memory: user\n"));
    scratch.write_home(".claude/settings.json", r#"{"subagents": {"memorySnapshot": true}}"#);
    assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
    let place = good(program.run(&["agents", "memory", "path", "keeper"]));
    let memory = Path::new(place.trim());
    std::fs::create_dir_all(memory).unwrap();
    std::fs::write(memory.join("MEMORY.md"), "Tea at four.\n").unwrap();
    let wrote = good(program.run(&["agents", "memory", "export", "keeper"]));
    assert!(wrote.contains("agent-memory-snapshots/keeper"), "{wrote}");
    // If the user has no memory yet, the agent begins with the project's.
    std::fs::remove_dir_all(memory).unwrap();
    stage.run("@@lead", &["--agent", "keeper"]).assert_code(0);
    assert_eq!(std::fs::read_to_string(memory.join("MEMORY.md")).unwrap(), "Tea at four.\n");
    // Notes that were made meanwhile are kept beside those that are taken up.
    std::fs::write(memory.join("MEMORY.md"), "Coffee.\n").unwrap();
    good(program.run(&["agents", "memory", "import", "keeper"]));
    assert_eq!(std::fs::read_to_string(memory.join("MEMORY.md")).unwrap(), "Tea at four.\n");
    let kept = std::fs::read_dir(memory).unwrap().flatten().map(|it| it.path());
    let mut kept = kept.filter_map(|path| std::fs::read_to_string(path).ok());
    assert!(kept.any(|text| text == "Coffee.\n"));
    let refused = program.run(&["agents", "memory", "export", "Explore"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("keeps no memory"), "{}", refused.stderr);
}

#[test]
fn a_setting_names_the_agent_that_the_session_runs_as() {
    let stage = Stage::new(&json!({"lead": ["hello"]}));
    let scratch = &stage.program.scratch;
    scratch.write_home(".claude/agents/keeper.md", file("keeper", "tools: Read\n"));
    scratch.write_home(".claude/settings.json", r#"{"agent": "keeper"}"#);
    let told = stage.run("@@lead", &[]);
    told.assert_code(0);
    assert_eq!(told.of("init")[0]["tools"], json!(["Read"]));
}
