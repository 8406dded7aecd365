//! Accepted content counts, and nothing else does, whatever is changed afterwards.

use serde_json::json;

use super::folder::{FOLDER, Folder, agent, hook};
use super::*;
use crate::mcp::McpStanding;
use crate::settings::{Level, Off, answered_power};

#[test]
fn what_changed_or_came_after_trust_is_off_and_named() {
    let mut folder = Folder::new();
    folder.json(
        ".claude/settings.json",
        &json!({"permissions": {"allow": ["Bash(ls)"]}, "env": {"A": "1"},
                "hooks": {"Stop": [hook("true"), hook("echo")]}}),
    );
    folder.servers_file(&json!({"a": {"command": "a"}, "b": {"command": "b"}}));
    folder.write(".claude/agents/x.md", &agent("x", "true"));
    assert!(folder.power().is_empty(), "{:?}", folder.power());
    folder.grant();
    assert_eq!(folder.power().len(), 7, "{:?}", folder.power());
    // Changed, added and taken away, all at once.
    folder.json(
        ".claude/settings.json",
        &json!({"permissions": {"allow": ["Bash(rm)", "Bash(ls)"], "deny": ["Read(x)"]},
                "env": {"A": "2"}, "hooks": {"Stop": [hook("evil"), hook("echo")]},
                "apiKeyHelper": "evil"}),
    );
    folder.servers_file(&json!({
        "a": {"command": "evil"}, "b": {"command": "b"}, "c": {"command": "c"},
    }));
    folder.write(".claude/agents/x.md", &agent("x", "evil"));
    folder.write(".claude/agents/y.md", &agent("y", "evil"));
    folder.write(".claude/skills/s/SKILL.md", &agent("s", "evil"));
    let settings = folder.settings();
    assert_eq!(settings.permissions().deny.len(), 1, "what takes away counts at once");
    assert!(settings.api_key_helper().is_none());
    let power = folder.power();
    assert_eq!(power.len(), 3, "{power:?}");
    assert!(!power.iter().any(|it| it.contains("evil") || it.contains("rm")), "{power:?}");
    let told: Vec<String> = settings.unaccepted().iter().map(|it| it.message.clone()).collect();
    for (key, why) in
        [("permissions.allow", "has changed"), ("env.A", "has changed"), ("apiKeyHelper", "is new")]
    {
        let is_told = |it: &String| it.contains(&format!("`{key}`")) && it.contains(why);
        assert!(told.iter().any(is_told), "{key}: {told:?}");
    }
    assert_eq!(
        folder.withheld(),
        [
            ("x".to_owned(), Some(Unaccepted::Changed)),
            ("y".to_owned(), Some(Unaccepted::New)),
            ("s".to_owned(), Some(Unaccepted::New)),
        ]
    );
    let standing = |name: &str| folder.servers().find(name).unwrap().standing.clone();
    assert_eq!(standing("a"), McpStanding::Untrusted(Unaccepted::Changed));
    assert_eq!(standing("c"), McpStanding::Untrusted(Unaccepted::New));
    assert!(standing("c").to_string().contains("centurion trust grant"), "{}", standing("c"));
    folder.grant();
    assert_eq!(folder.power().len(), 12, "{:?}", folder.power());
}

#[test]
fn an_agent_that_only_plans_needs_no_acceptance() {
    let mut folder = Folder::new();
    let with_mode =
        |mode: &str| format!("---\nname: x\ndescription: d\npermissionMode: {mode}\n---\nWork.\n");
    folder.grant();
    folder.write(".claude/agents/x.md", &with_mode("plan"));
    assert_eq!(folder.withheld(), [("x".to_owned(), None)]);
    folder.write(".claude/agents/x.md", &with_mode("bypassPermissions"));
    assert_eq!(folder.withheld(), [("x".to_owned(), Some(Unaccepted::New))]);
}

#[test]
fn a_skill_that_allows_tools_or_runs_commands_needs_acceptance() {
    let mut folder = Folder::new();
    let place = ".claude/skills/s/SKILL.md";
    let off = |folder: &Folder| folder.withheld()[0].1.clone();
    folder.grant();
    for harmless in [
        "---\ndescription: d\n---\nUse `git log`!\n",
        "---\nallowed-tools: []\n---\nText.\n",
        "```sh\n!`touch x`\n```\n",
    ] {
        folder.write(place, harmless);
        assert_eq!(off(&folder), None, "{harmless}");
    }
    for acting in [
        "---\nallowed-tools: Bash(rm *)\n---\nText.\n",
        "---\ntools: Bash\n---\nText.\n",
        "See !`git log`.\n",
        "```!\ngit log\n```\n",
    ] {
        folder.write(place, "Text.\n");
        folder.grant();
        folder.write(place, acting);
        assert_eq!(off(&folder), Some(Unaccepted::New), "{acting}");
        folder.grant();
        assert_eq!(off(&folder), None, "{acting}");
    }
    // A script that a command names, wherever it lies.
    let scripts = [
        ("sh tools/run.sh $ARGUMENTS", "tools/run.sh"),
        ("${CLAUDE_SKILL_DIR}/run.sh", ".claude/skills/s/run.sh"),
        ("\"${CLAUDE_PROJECT_DIR}\"/more.sh", "more.sh"),
    ];
    for (command, script) in scripts {
        folder.write(script, "true\n");
        folder.write(place, &format!("See !`{command}`.\n"));
        folder.grant();
        assert_eq!(off(&folder), None, "{command}");
        folder.write(script, "evil\n");
        let changed = folder.machine.path("home/repo").join(script);
        assert_eq!(off(&folder), Some(Unaccepted::Program(changed)), "{command}");
    }
}

#[test]
fn what_a_hook_runs_is_part_of_what_was_accepted() {
    let mut folder = Folder::new();
    folder.write("check.sh", "true\n").write("lib/more.sh", "true\n");
    let hooks = json!({"hooks": {"Stop": [hook("./check.sh && ./new.sh")]}});
    folder.json(".claude/settings.json", &hooks);
    folder.servers_file(&json!({"a": {"command": "sh", "args": ["lib/more.sh"]}}));
    folder.grant();
    let off = |folder: &Folder| folder.settings().hooks()[0].off.clone();
    assert_eq!((off(&folder), folder.servers().active().count()), (None, 1));
    let path = |name: &str| folder.machine.path("home/repo").join(name);
    assert_eq!(folder.trust.programs(&path("")), [path("check.sh"), path("lib/more.sh")]);
    folder.write("check.sh", "evil\n").write("lib/more.sh", "evil\n");
    let changed = Some(Off::Unaccepted(Unaccepted::Program(path("check.sh"))));
    assert_eq!((off(&folder), folder.servers().active().count()), (changed.clone(), 0));
    // A link to something outside in its place.
    fs::remove_file(path("check.sh")).unwrap();
    std::os::unix::fs::symlink("/bin/sh", path("check.sh")).unwrap();
    assert_eq!(off(&folder), changed);
    // As it was, and then with a file that was missing when the folder was trusted.
    fs::remove_file(path("check.sh")).unwrap();
    folder.write("check.sh", "true\n").write("lib/more.sh", "true\n");
    assert_eq!((off(&folder), folder.servers().active().count()), (None, 1));
    folder.write("new.sh", "evil\n");
    assert_eq!(off(&folder), Some(Off::Unaccepted(Unaccepted::Program(path("new.sh")))));
}

#[test]
fn a_script_among_arguments_is_accepted_with_the_item_however_variables_name_it() {
    for argument in [
        "${CLAUDE_PROJECT_DIR}/tools/s.py",
        "${CLAUDE_PROJECT_DIR:-.}/tools/s.py",
        "${PWD}/tools/s.py",
        "${NOPE}/tools/s.py",
        "${S:-tools/s.py}",
        "${NOPE:-./tools}/s.py",
        "--script=${NOPE:-tools}/s.py",
        "${A:-to}${B:-ols}/s.py",
        "tools/s.py",
    ] {
        let mut folder = Folder::new();
        folder.write("tools/s.py", "true\n");
        let runs = json!({"command": "python3", "args": [argument]});
        let hooks =
            json!([{"hooks": [{"type": "command", "command": "python3", "args": [argument]}]}]);
        folder.json(".claude/settings.json", &json!({"hooks": {"Stop": hooks}}));
        folder.servers_file(&json!({"a": runs}));
        folder.grant();
        let root = folder.machine.path(FOLDER);
        let script = root.join("tools/s.py");
        let off = |folder: &Folder| folder.settings().hooks()[0].off.clone();
        assert_eq!((off(&folder), folder.servers().active().count()), (None, 1), "{argument}");
        assert_eq!(folder.trust.programs(&root), std::slice::from_ref(&script), "{argument}");
        let file = root.join(".claude/settings.json");
        let words = ["python3".to_owned(), argument.to_owned()];
        assert_eq!(folder.trust.judge_command(&file, &words, &root), Ok(()), "{argument}");
        folder.write("tools/s.py", "evil\n");
        let changed = Unaccepted::Program(script);
        let turned_off = (Some(Off::Unaccepted(changed.clone())), 0);
        assert_eq!((off(&folder), folder.servers().active().count()), turned_off, "{argument}");
        assert_eq!(folder.trust.judge_command(&file, &words, &root), Err(changed), "{argument}");
    }
}

/// These words stand for text of people in hooks, and for anything at all elsewhere.
#[test]
fn no_name_of_a_server_or_a_variable_hides_the_script_that_it_runs() {
    for name in ["prompt", "matcher", "if", "description", "statusMessage"] {
        let mut folder = Folder::new();
        folder.write("s.sh", "true\n");
        let servers = format!("mcpServers:\n  - {name}:\n      command: ./s.sh\n");
        let definition = format!("---\nname: a\ndescription: d\n{servers}---\nWork.\n");
        folder.write(".claude/agents/a.md", &definition);
        let server = json!({"command": "sh", "args": ["-c", "$X"], "env": {name: "./s.sh"}});
        folder.servers_file(&json!({"m": server}));
        folder.json(".claude/settings.json", &json!({"env": {name: "./s.sh"}}));
        folder.grant();
        let in_force = |folder: &Folder| {
            let withheld = folder.withheld()[0].1.clone();
            (withheld, folder.servers().active().count(), folder.settings().env().len())
        };
        assert_eq!(in_force(&folder), (None, 1, 1), "{name}");
        folder.write("s.sh", "evil\n");
        let script = folder.machine.path(FOLDER).join("s.sh");
        let off = (Some(Unaccepted::Program(script)), 0, 0);
        assert_eq!(in_force(&folder), off, "{name}");
    }
}

#[test]
fn a_program_with_a_space_in_its_name_is_accepted_with_its_server() {
    let mut folder = Folder::new();
    folder.write("my server.sh", "true\n");
    folder.servers_file(&json!({"a": {"command": "${CLAUDE_PROJECT_DIR}/my server.sh"}}));
    folder.grant();
    assert_eq!(folder.servers().active().count(), 1);
    folder.write("my server.sh", "evil\n");
    assert_eq!(folder.servers().active().count(), 0);
}

#[test]
fn a_folder_that_an_earlier_version_trusted_has_to_be_accepted_once() {
    let mut folder = Folder::new();
    folder.json(".claude/settings.json", &json!({"permissions": {"allow": ["Bash"]}}));
    let file = folder.machine.path("home/.centurion/trust.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let path = folder.machine.path(FOLDER).display().to_string();
    fs::write(&file, json!({"folders": {path: {"trusted": true}}}).to_string()).unwrap();
    folder.trust = Arc::new(folder.machine.open());
    let settings = folder.settings();
    assert_eq!(settings.standing(), RepositoryTrust::Full);
    assert!(settings.permissions().allow.is_empty());
    let told = settings.unaccepted()[0].message.clone();
    assert!(told.contains("never accepted") && told.contains("trust grant"), "{told}");
    folder.grant();
    assert_eq!(folder.settings().permissions().allow.len(), 1);
}

#[test]
fn content_is_accepted_at_its_place_in_its_folder() {
    let mut folder = Folder::new();
    let rules = json!({"permissions": {"allow": ["Bash"]}, "env": {"A": "1"}});
    folder.json(".claude/settings.json", &rules);
    folder.grant();
    // The same in another file, in a directory below, and in a repository below.
    folder.json(".centurion/settings.json", &rules).json("sub/.claude/settings.json", &rules);
    folder.write("inner/.git/HEAD", "").json("inner/.claude/settings.json", &rules);
    assert_eq!(folder.settings().permissions().allow.len(), 1);
    for start in ["home/repo/sub", "home/repo/inner"] {
        let settings = folder.settings_in(start);
        assert!(settings.permissions().allow.is_empty() && settings.env().is_empty(), "{start}");
    }
    // Accepted with the folder above, a repository below gets what runs beside the agent, as it was.
    folder.grant();
    let inner = folder.settings_in("home/repo/inner");
    assert_eq!((inner.permissions().allow.len(), inner.env().len()), (0, 1));
    assert_eq!(folder.settings_in("home/repo/sub").env().len(), 1);
    folder.json("inner/.claude/settings.json", &json!({"env": {"A": "2"}}));
    assert!(folder.settings_in("home/repo/inner").env().is_empty());
}

#[test]
fn a_worktree_has_what_was_accepted_in_its_checkout_and_no_more() {
    let mut folder = Folder::new();
    let admin = folder.machine.path("home/repo/.git/worktrees/wt");
    let link = folder.machine.path("home/wt/.git");
    fs::write(&link, format!("gitdir: {}\n", admin.display())).unwrap();
    fs::write(admin.join("gitdir"), format!("{}\n", link.display())).unwrap();
    let rules = |rule: &str| json!({"permissions": {"allow": [rule]}});
    folder.json(".claude/settings.json", &rules("A"));
    folder.grant();
    let allowed = |folder: &Folder| {
        let settings = folder.settings_in("home/wt");
        let rules = settings.permissions().allow.iter();
        rules.filter(|it| it.origin.level == Level::Project).count()
    };
    folder.json("../wt/.claude/settings.json", &rules("A"));
    assert_eq!(allowed(&folder), 1);
    folder.json("../wt/.claude/settings.json", &rules("B"));
    assert_eq!(allowed(&folder), 0);
    // Accepted in the worktree, beside what the checkout has.
    folder.grant_in("home/wt");
    assert_eq!(allowed(&folder), 1);
    folder.json("../wt/.claude/settings.json", &rules("A"));
    assert_eq!(allowed(&folder), 1);
    // Content that neither has any more is not accepted any longer.
    folder.json(".claude/settings.json", &rules("B"));
    folder.json("../wt/.claude/settings.json", &rules("B"));
    folder.grant_in("home/wt");
    folder.json("../wt/.claude/settings.json", &rules("A"));
    assert_eq!(allowed(&folder), 0);
}

#[test]
fn rules_with_patterns_make_no_programs_of_what_people_edit() {
    let mut folder = Folder::new();
    folder.write("src/a.rs", "x");
    folder.write("README.md", "x");
    folder.json(
        ".claude/settings.json",
        &json!({"permissions": {"allow": ["Bash(touch *)", "Edit(src/*)", "Read(README.md)"]},
                "env": {"A": "README"}}),
    );
    folder.grant();
    assert!(folder.trust.programs(&folder.machine.path(FOLDER)).is_empty());
    folder.write("src/a.rs", "y");
    folder.write("README.md", "y");
    assert_eq!(folder.settings().permissions().allow.len(), 3);
}

#[test]
fn git_runs_only_what_was_accepted_with_the_folder() {
    let mut folder = Folder::new();
    let root = folder.machine.path(FOLDER);
    let plain = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://x.example/y\n";
    folder.write(".git/config", plain);
    folder.grant();
    let refused = |folder: &Folder| {
        let refused = folder.trust.judge_git(&root).err();
        refused.map(|reason| reason.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(&folder), "");
    for (line, file) in [
        ("[core]\n\tfsmonitor = touch x\n", ".git/config"),
        ("[filter \"x\"]\n\tclean = ./absent.sh\n", ".git/config"),
        ("#!/bin/sh\n", ".git/hooks/post-index-change"),
        ("[include]\n\tpath = ../more\n", ".git/config"),
    ] {
        folder.write("more", "[core]\nfsmonitor = x\n");
        let text = if file == ".git/config" { format!("{plain}{line}") } else { line.to_owned() };
        folder.write(file, &text);
        assert!(refused(&folder).contains("is new since"), "{line}: {}", refused(&folder));
        assert!(folder.difference().unwrap().has_unaccepted());
        folder.grant();
        assert_eq!(refused(&folder), "", "{line}");
    }
    // A file that was missing and is there now.
    folder.write(".git/config", &format!("{plain}[filter \"x\"]\n\tclean = ./absent.sh\n"));
    folder.grant();
    assert_eq!(refused(&folder), "");
    folder.write("absent.sh", "touch x");
    assert!(refused(&folder).contains("absent.sh"), "{}", refused(&folder));
}

#[test]
fn what_a_hook_means_where_it_runs_must_have_been_accepted() {
    let mut folder = Folder::new();
    folder.write("check.sh", "one");
    let command = "test -f ./local.sh && sh ./local.sh; sh ./check.sh".to_owned();
    folder.json(".claude/settings.json", &json!({"hooks": {"Stop": [hook(&command)]}}));
    folder.grant();
    let root = folder.machine.path(FOLDER);
    let file = root.join(".claude/settings.json");
    let judge = |folder: &Folder, cwd: &str| {
        folder.trust.judge_command(&file, std::slice::from_ref(&command), &root.join(cwd))
    };
    assert_eq!(judge(&folder, ""), Ok(()));
    folder.write("sub/check.sh", "two");
    assert_eq!(judge(&folder, "sub"), Err(Unaccepted::Program(root.join("sub/check.sh"))));
    folder.write("../elsewhere/check.sh", "two");
    assert!(judge(&folder, "../elsewhere").is_err());
    folder.write("local.sh", "three");
    assert_eq!(judge(&folder, ""), Err(Unaccepted::Program(root.join("local.sh"))));
}

#[test]
fn an_answer_is_accepted_alone_and_at_once() {
    // D-76: in a folder that is not trusted
    let folder = Folder::new();
    let file = ".claude/settings.local.json";
    folder.json(file, &json!({"permissions": {"allow": ["Bash(evil)"]}}));
    let path = folder.machine.path(FOLDER).join(file);
    let mut settings = folder.settings();
    let item = answered_power(&path, "permissions.allow", None, &json!("Bash(ls)"));
    folder.trust.accept(&[item], &str::to_owned).unwrap();
    folder.json(file, &json!({"permissions": {"allow": ["Bash(evil)", "Bash(ls)"]}}));
    settings.reload();
    assert_eq!(settings.permissions().allow.len(), 1);
    assert_eq!(folder.settings().permissions().allow.len(), 1);
    let mut trust = folder.machine.open();
    trust.revoke(&folder.machine.key(FOLDER)).unwrap();
    let after = Folder { trust: Arc::new(trust), machine: folder.machine };
    assert!(after.settings().permissions().allow.is_empty(), "revoked is revoked");
}

#[test]
fn a_record_that_cannot_be_read_accepts_nothing() {
    let mut folder = Folder::new();
    folder.json(".claude/settings.json", &json!({"permissions": {"allow": ["Bash"]}}));
    folder.grant();
    let directory = folder.machine.path("home/.centurion/trust.d");
    let record = fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(&record, "{").unwrap();
    assert!(folder.settings().permissions().allow.is_empty());
    let error = folder.difference().unwrap_err().to_string();
    assert!(error.contains("trust.d") && error.contains("not valid JSON"), "{error}");
}

#[test]
fn limits_of_a_repository_raise_others_only_as_they_were_accepted() {
    let mut folder = Folder::new();
    let limits = |depth: u32| json!({"subagents": {"limits": {"depth": depth}}});
    let depth = |folder: &Folder| folder.settings().subagents().limits.depth.map(|it| it.value);
    folder.json(".claude/settings.json", &limits(1));
    assert_eq!(depth(&folder), Some(1));
    folder.json(".claude/settings.json", &limits(9));
    assert_eq!(depth(&folder), None);
    folder.grant();
    assert_eq!(depth(&folder), Some(9));
    folder.json(".claude/settings.json", &limits(10));
    assert_eq!(depth(&folder), None);
}

#[test]
fn what_differs_is_told_item_by_item_without_secrets() {
    let mut folder = Folder::new();
    let rules = |rules: &[&str]| json!({"permissions": {"allow": rules}, "env": {"A": "sk-1"}});
    folder.json(".claude/settings.json", &rules(&["A", "B"]));
    folder.grant();
    assert_eq!(folder.difference().unwrap(), Difference::default());
    folder.json(".claude/settings.json", &rules(&["B", "C"]));
    folder.servers_file(&json!({"a": {"command": "x"}}));
    let changes = folder.difference().unwrap().changes;
    let shown = |change: &ItemChange| {
        let line =
            |text: &Option<String>| text.clone().unwrap_or_default().replace(['\n', ' '], "");
        let (file, item) = (change.file.display().to_string(), change.item.clone());
        (file, item, line(&change.before), line(&change.after))
    };
    let expected = [
        (".claude/settings.json", "permissions.allow", "\"A\"", "\"C\""),
        (".mcp.json", "server `a`", "", "{\"a\":{\"command\":\"x\"}}"),
    ];
    let owned = |(a, b, c, d): (&str, &str, &str, &str)| {
        (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned())
    };
    assert_eq!(changes.iter().map(shown).collect::<Vec<_>>(), expected.map(owned));
    let hide = |text: &str| text.replace("sk-1", "***");
    let mut trust = folder.machine.open();
    let found = survey(&folder.machine.path(FOLDER), None, &SystemWorld);
    trust.grant(&folder.machine.key(FOLDER), &found, &hide).unwrap();
    let directory = folder.machine.path("home/.centurion/trust.d");
    let record = fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(record).unwrap();
    assert!(text.contains("***") && !text.contains("sk-1"), "{text}");
}

#[test]
fn what_names_more_files_than_are_looked_at_is_off_though_it_was_accepted() {
    let mut folder = Folder::new();
    let words = (0..3000).map(|n| format!(" ./w{n}")).collect::<Vec<_>>().concat();
    folder.json(
        ".claude/settings.json",
        &json!({"hooks": {"Stop": [hook("true"), hook(&format!("sh{words}; sh ./z.sh"))]}}),
    );
    folder.write("z.sh", "true");
    folder.grant();
    let off: Vec<_> = folder.settings().hooks().into_iter().map(|hook| hook.off).collect();
    assert_eq!(off, [None, Some(Off::Unaccepted(Unaccepted::TooManyFiles))]);
}
